#!/bin/bash
# Attributes: the same by stat, fstat, readdir and READDIRPLUS; statfs; the fields of /proc/mounts; inode numbers that stay.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/src/zoo"
ln -s zoo/text.txt "$dir/src/link"
chmod 440 "$dir/src/zoo/dtype-f16.safetensors"
weightfs pack "$dir/src" -o "$dir/store" >/dev/null
mount_store "$dir/store" "$dir/mnt"

read -r source _ type options _ < <(grep -F " $dir/mnt " /proc/self/mounts)
[ "$source" = weightfs ] || fail "source is $source"
[ "$type" = fuse.weightfs ] || fail "type is $type"
[[ ",$options," == *,ro,* ]] || fail "options without ro: $options"
[[ ",$options," == *,nosuid,* && ",$options," == *,nodev,* ]] || fail "options without nosuid,nodev: $options"
[ "$(stat -f -c %t "$dir/mnt")" = 65735546 ] || fail "statfs type is not FUSE"

"$WFS_PYTHON" "$tests/fs/attributes.py" "$dir/src" "$dir/mnt" >"$dir/inodes" || fail "attributes"
# The same numbers from the next daemon.
unmount "$dir/mnt"
mount_store "$dir/store" "$dir/mnt"
"$WFS_PYTHON" "$tests/fs/attributes.py" "$dir/src" "$dir/mnt" >"$dir/inodes2" || fail "attributes after a remount"
cmp "$dir/inodes" "$dir/inodes2" || fail "inode numbers change with a remount"

# A listing first, by a process that stats nothing; then the mapping still reaches the end of each file (bindfs#159).
unmount "$dir/mnt"
mount_store "$dir/store" "$dir/mnt"
ls -f "$dir/mnt/zoo" >/dev/null
for name in dtype-bf16.safetensors random-1048577.bin values-tied.safetensors; do
	access "$dir/src/zoo/$name" "$dir/mnt/zoo/$name" mmap-shared stat || fail "$name after a listing"
done
