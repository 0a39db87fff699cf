#!/bin/bash
# Readers in order, one or several at once, on one descriptor or one each: every block is decoded once.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

mib=96
! is_sanitized || mib=48
! is_thread_sanitized || mib=24
shards "$dir" $mib BF16
model=$dir/src/shard-1.safetensors
total=$(blocks "$dir/store/${model##*/}.wfs")
for read_ahead in 4096 128; do
	for pattern in $("$WFS_BIN/tests/fs/access_streams" --list); do
		direct=$([[ $pattern != *-direct ]] || echo 1)
		[ $read_ahead = 4096 ] || [ -z "$direct" ] || continue # it is not the kernel that reads ahead then
		mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o read_ahead_kb=$read_ahead
		bounded 60 access_streams "$model" "$dir/mnt/${model##*/}" "$pattern"
		settle "$dir/mnt"
		decoded=$(nr blocks_decoded "$dir/mnt") ahead=$(nr ahead_blocks "$dir/mnt") used=$(nr ahead_used "$dir/mnt")
		what="$pattern, read_ahead_kb=$read_ahead"
		echo "note: $what: $total blocks, decoded $decoded, ahead $ahead, used $used"
		[ "$decoded" -eq "$total" ] || fail "$what: of $total blocks $decoded were decoded"
		[ "$used" -le "$ahead" ] && [ "$ahead" -le "$decoded" ] || fail "$what: these counts cannot be"
		unmount "$dir/mnt"
	done
done
