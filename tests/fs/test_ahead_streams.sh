#!/bin/bash
# Readers in order, one or several at once on one descriptor: no block is decoded twice, and for one who reads alone, and
# for whom the kernel does not read far ahead, the daemon does.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

mib=96
! is_sanitized || mib=48
! is_thread_sanitized || mib=24
shards "$dir" $mib BF16
model=$dir/src/shard-1.safetensors
size=$(stat -c %s "$model") total=$(blocks "$dir/store/${model##*/}.wfs")

# run PATTERN READ_AHEAD: read everything once, on a new mount. False when that shows nothing: the kernel has asked for
# something twice, because it had to drop pages, or on a busy machine the reader was faster than those ahead of him.
run()
{
	mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o read_ahead_kb="$2"
	bounded 60 access_streams "$model" "$dir/mnt/${model##*/}" "$1"
	settle "$dir/mnt"
	decoded=$(nr blocks_decoded "$dir/mnt") ahead=$(nr ahead_blocks "$dir/mnt") used=$(nr ahead_used "$dir/mnt")
	served=$(nr bytes_served "$dir/mnt")
	unmount "$dir/mnt"
	echo "note: $1, $setting: $total blocks, decoded $decoded, ahead $ahead, used $used, served $served bytes"
	[ "$served" -eq "$size" ] || return 1
	case $1,$2 in # several readers keep the processors busy without that
	one,128 | mapped,128 | one-direct,*) [ "$used" -gt 0 ] ;;
	esac
}

for setting in '2048 warm' '2048 cold' '128 warm'; do
	read -r read_ahead store <<<"$setting"
	for pattern in $("$WFS_BIN/tests/fs/access_streams" --list); do
		[ "$read_ahead" = 2048 ] || [[ $pattern != *-direct ]] || continue # it is not the kernel that reads ahead then
		[ "$store" = warm ] || make_cold "$dir"/store/*
		what="$pattern, read_ahead_kb=$read_ahead, store $store"
		tries=1
		until run "$pattern" "$read_ahead"; do
			[ $((tries++)) -lt 10 ] || fail "$what: pages asked for again, or nothing decoded ahead"
		done
		[ "$used" -le "$ahead" ] && [ "$ahead" -le "$decoded" ] || fail "$what: these counts cannot be"
		[ "$decoded" -ge "$total" ] || fail "$what: of $total blocks only $decoded were decoded"
		# Several readers may be led into what another had read and given away: rarely.
		spare=0
		[[ $pattern != @(threads|turns|forks|two-speeds)* ]] || spare=$((total / 10))
		[ "$decoded" -le $((total + spare)) ] || fail "$what: of $total blocks $decoded were decoded"
	done
done
