#!/bin/bash
# The large files of the zoo: 5 GiB with data beyond 4 GiB, 250,000 tensors, a header of 25 MB.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" --big "$dir/src"
mkdir "$dir/store"
for file in "$dir"/src/*; do
	pack "$file" "$dir/store/${file##*/}.wfs"
done
mount_store "$dir/store" "$dir/mnt"
for file in "$dir"/src/*; do
	name=${file##*/}
	access "$file" "$dir/mnt/$name" stat pread-random pread-borders read-2gib seeks mmap-write reopens || fail "$name"
	case $name in
	*.safetensors) access_many "$file" "$dir/mnt/$name" libaio || fail "$name, many in flight" ;;
	*) access_many "$file" "$dir/mnt/$name" threads-many-fds || fail "$name, many readers" ;;
	esac
	cmp "$file" "$dir/mnt/$name" || fail "$name, by cmp"
	# Holes and long runs cost next to nothing, and neither do 250,000 tensors.
	size=$(stat -c %s "$dir/store/$name.wfs")
	used=$(($(stat -c %b "$file") * 512))
	[ "$size" -lt $((used + used / 8 + 65536)) ] || fail "$name takes $size bytes packed, $used on disk before"
done
unmount "$dir/mnt"
