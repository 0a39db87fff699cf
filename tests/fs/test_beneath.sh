#!/bin/bash
# The daemon never leaves its store: symbolic links are shown as they are and not followed, not even while somebody
# swaps directories, files and links in the store as fast as they can. Once with openat2, once without.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
a=$dir/zoo/dtype-bf16.safetensors b=$dir/zoo/dtype-f16.safetensors
mkdir -p "$dir/store/real/deep" "$dir/outside/deep" "$dir/mnt"
pack "$a" "$dir/store/real/deep/model.wfs"
echo inside >"$dir/store/real/deep/plain"
# What must never be seen: the same names outside, as other users' secrets would be.
pack "$b" "$dir/outside/deep/model.wfs"
echo OUTSIDE >"$dir/outside/deep/plain"
ln -s "$dir/outside" "$dir/store/absolute"
ln -s ../outside/deep/model.wfs "$dir/store/escape.wfs"
ln -s ../../../../../../../../../../etc/passwd "$dir/store/climb"
ln -s real/deep/model "$dir/store/good"
ln -s self "$dir/store/self"
ln -s /proc/self/root "$dir/store/magic"
ln -s "$(printf '%04000d' 0)" "$dir/store/long"

for way in openat2 walk; do
	mounts+=("$dir/mnt")
	if [ $way = openat2 ]; then
		mount_store "$dir/store" "$dir/mnt" -o entry_timeout=0
	else
		"$WFS_PYTHON" "$tests/fs/forbid.py" openat2 "$WFS_BIN/weightfs" mount "$dir/store" "$dir/mnt" \
			-o entry_timeout=0 || fail "cannot mount where openat2 is forbidden"
	fi
	pid=$(weightfs stats "$dir/mnt" --json | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
	for link in absolute escape.wfs climb good self magic long; do
		[ "$(readlink "$dir/mnt/$link")" = "$(readlink "$dir/store/$link")" ] || fail "$way: $link reads otherwise"
	done
	cmp "$a" "$dir/mnt/good" || fail "$way: a link within the mount"
	# What the kernel follows for a reader is the reader's business; the daemon holds nothing from outside.
	"$WFS_PYTHON" "$tests/fs/swap.py" "$dir/store" "$dir/mnt" "$dir/outside" "$a" "${WFS_SWAPS:-400}" ||
		fail "$way: while names are swapped"
	if [ "$(id -u)" = 0 ]; then
		! readlink "/proc/$pid/fd"/* | grep "$dir/outside" || fail "$way: the daemon has a file outside open"
	fi
	cmp "$a" "$dir/mnt/real/deep/model" || fail "$way: after the swaps"
	unmount "$dir/mnt"
done
