#!/bin/bash
# Random, strided and sparse readers of a large model: the daemon decodes next to nothing that no request touches.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

mib=320 # 336 MB
spare=0
# A reader's first 8 MiB, 32 blocks, are free (fs/streams.h): much of a small model, little of a large one.
! is_sanitized || mib=48 spare=32
shards "$dir" $mib BF16
model=$dir/src/shard-1.safetensors
for setting in '2048 warm' '2048 cold' '128 cold'; do
	read -r read_ahead store <<<"$setting"
	for pattern in $("$WFS_BIN/tests/fs/access_sparse" --list); do
		[ "$store" = warm ] || make_cold "$dir"/store/*
		mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o "read_ahead_kb=$read_ahead"
		bounded 60 access_sparse "$model" "$dir/mnt/${model##*/}" "$pattern"
		settle "$dir/mnt"
		decoded=$(nr blocks_decoded "$dir/mnt") ahead=$(nr ahead_blocks "$dir/mnt")
		used=$(nr ahead_used "$dir/mnt") wasted=$(nr ahead_wasted "$dir/mnt")
		unmount "$dir/mnt"
		what="$pattern, read_ahead_kb=$read_ahead, store $store"
		echo "note: $what: $decoded decoded, ahead $ahead, of these used $used, wasted $wasted"
		[ "$decoded" -gt 0 ] || fail "$what: nothing is decoded"
		[ $((used + wasted)) -le "$ahead" ] && [ "$ahead" -le "$decoded" ] || fail "$what: these counts cannot be"
		# What is evicted untouched and what lies untouched at the end.
		[ $((10 * (ahead - used - spare))) -lt "$decoded" ] ||
			fail "$what: of $decoded blocks $((ahead - used)) were for nobody"
	done
done
