#!/bin/bash
# The store changes under a running mount: replaced, edited, added, removed files show up; open files keep the old content.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
old=$dir/zoo/values-tied.safetensors new=$dir/zoo/dtype-f32.safetensors
mkdir "$dir/store"
pack "$old" "$dir/store/model.wfs"
pack "$new" "$dir/new.wfs"
cp "$dir/store/model.wfs" "$dir/old.wfs"
cp -p "$old" "$dir/store/plain"
cp "$dir/zoo/text.txt" "$dir/store/edited"
cp -p "$dir/zoo/config.json" "$dir/store/removed"
mount_store "$dir/store" "$dir/mnt"

has_size()
{
	[ "$(stat -c %s "$dir/mnt/$1")" = "$(stat -c %s "$2")" ]
}
cmp "$old" "$dir/mnt/model"
cmp "$old" "$dir/mnt/plain"
inode=$(stat -c %i "$dir/mnt/model")
exec 5<"$dir/mnt/model" 6<"$dir/mnt/plain"
expect_status 1 test -e "$dir/mnt/added"

mv "$dir/new.wfs" "$dir/store/model.wfs"
cp -p "$new" "$dir/plain.new"
mv "$dir/plain.new" "$dir/store/plain"
wait_until "the new container under its name" has_size model "$new"
wait_until "the new plain file under its name" has_size plain "$new"
cmp "$new" "$dir/mnt/model" || fail "the new container's content"
cmp "$new" "$dir/mnt/plain" || fail "the new plain file's content"
[ "$(stat -c %i "$dir/mnt/model")" != "$inode" ] || fail "a new container under the old inode"
access "$new" "$dir/mnt/model" || fail "the new container"
# The old ones by their open descriptors, from the page cache and without it.
cmp "$old" /proc/self/fd/5 || fail "the open container lost its content"
access "$old" /proc/self/fd/5 pread-random direct mmap-shared advice || fail "the open container"
cmp "$old" - <&6 || fail "the open plain file lost its content"
exec 5<&- 6<&-

printf 'one line more\n' >>"$dir/store/edited"
wait_until "the longer plain file" has_size edited "$dir/store/edited"
cmp "$dir/store/edited" "$dir/mnt/edited" || fail "a plain file that grew"
printf 'X' | dd of="$dir/store/edited" bs=1 seek=5 conv=notrunc status=none
wait_until "the change inside the plain file" cmp -s "$dir/store/edited" "$dir/mnt/edited"
# A change that size and modification time do not tell, when the kernel has both and the bytes.
has_time()
{
	[ "$(stat -c %y "$dir/mnt/$1")" = "$(stat -c %y "$dir/store/$1")" ]
}
wait_until "the time of the change" has_time edited
cmp "$dir/store/edited" "$dir/mnt/edited" || fail "a plain file that was changed"
cp -p "$dir/store/edited" "$dir/before"
printf 'Y' | dd of="$dir/store/edited" bs=1 seek=7 conv=notrunc status=none
touch -r "$dir/before" "$dir/store/edited"
wait_until "the change under the old time" cmp -s "$dir/store/edited" "$dir/mnt/edited"
truncate -s 100 "$dir/store/edited"
wait_until "the shorter plain file" has_size edited "$dir/store/edited"
cmp "$dir/store/edited" "$dir/mnt/edited" || fail "a plain file that was cut"

# A container that is overwritten where it lies.
inode=$(stat -c %i "$dir/store/model.wfs")
cp "$dir/old.wfs" "$dir/store/model.wfs"
[ "$(stat -c %i "$dir/store/model.wfs")" = "$inode" ] || fail "cp does not write in place"
wait_until "the other content of the container" cmp -s "$old" "$dir/mnt/model"
access "$old" "$dir/mnt/model" || fail "the container with other content"

pack "$new" "$dir/store/added.wfs"
wait_until "a container that was added" cmp -s "$new" "$dir/mnt/added"
rm "$dir/store/removed"
wait_until "a name that was removed" test ! -e "$dir/mnt/removed"
mkdir "$dir/store/folder"
cp -p "$dir/store/added.wfs" "$dir/store/folder"
wait_until "a folder that was added" cmp -s "$new" "$dir/mnt/folder/added"
[ "$(echo "$dir"/mnt/*)" = "$(echo "$dir"/mnt/{added,edited,folder,model,plain})" ] || fail "the listing"

# Container to plain file and back, as unpack and pack --in-place do it.
cp -p "$new" "$dir/store/added.tmp"
mv "$dir/store/added.tmp" "$dir/store/added"
rm "$dir/store/added.wfs"
wait_until "the plain file in the container's place" cmp -s "$new" "$dir/mnt/added"
weightfs pack --in-place "$dir/store/added" >/dev/null || fail "pack --in-place beneath a mount"
wait_until "the container in the plain file's place" cmp -s "$new" "$dir/mnt/added"
access "$new" "$dir/mnt/added" || fail "packed in place beneath a mount"
