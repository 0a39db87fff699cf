#!/bin/bash
# Every file of the zoo: packed alone, mounted, read by every access pattern, unpacked: byte for byte.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

zoo "$dir/src"
mkdir "$dir/store" "$dir/back"
for file in "$dir"/src/*; do
	pack "$file" "$dir/store/${file##*/}.wfs"
done
weightfs verify "$dir/store" >/dev/null || fail "verify refuses what pack wrote"

mount_store "$dir/store" "$dir/mnt"
diff <(ls -A "$dir/src") <(ls -A "$dir/mnt") || fail "the listing differs"
for file in "$dir"/src/*; do
	name=${file##*/}
	access "$file" "$dir/mnt/$name" || fail "$name, one reader"
	access_many "$file" "$dir/mnt/$name" || fail "$name, many readers"
	cp --sparse=auto --preserve=timestamps,mode "$dir/mnt/$name" "$dir/copy" || fail "cp $name"
	cmp "$file" "$dir/copy" || fail "$name, by cp"
	cmp "$file" "$dir/mnt/$name" || fail "$name, by cmp"
	rm "$dir/copy"
	weightfs unpack "$dir/store/$name.wfs" -o "$dir/back/$name" >/dev/null || fail "cannot unpack $name"
	weightfs cat "$dir/store/$name.wfs" | cmp - "$file" || fail "$name, by weightfs cat"
done
same_tree "$dir/src" "$dir/back"
same_tree "$dir/src" "$dir/mnt"
unmount "$dir/mnt"
