#!/bin/bash
# Random, strided and sparse readers of a large model: the daemon decodes next to nothing that no request touches.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

mib=320 # 336 MB
! is_sanitized || mib=48
shards "$dir" $mib BF16
model=$dir/src/shard-1.safetensors
for pattern in $("$WFS_BIN/tests/fs/access_sparse" --list); do
	mount_logged "$dir/log" "$dir/store" "$dir/mnt"
	bounded 60 access_sparse "$model" "$dir/mnt/${model##*/}" "$pattern"
	settle "$dir/mnt"
	decoded=$(nr blocks_decoded "$dir/mnt")
	ahead=$(nr ahead_blocks "$dir/mnt") used=$(nr ahead_used "$dir/mnt") wasted=$(nr ahead_wasted "$dir/mnt")
	echo "note: $pattern: $decoded decoded, ahead $ahead, of these used $used, wasted $wasted"
	[ "$decoded" -gt 0 ] || fail "$pattern decodes nothing"
	[ $((used + wasted)) -le "$ahead" ] && [ "$ahead" -le "$decoded" ] || fail "$pattern: these counts cannot be"
	# What is evicted untouched and what lies untouched at the end.
	[ $((10 * (ahead - used))) -lt "$decoded" ] || fail "$pattern: of $decoded blocks $((ahead - used)) were for nobody"
	unmount "$dir/mnt"
done
