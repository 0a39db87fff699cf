#!/bin/bash
# A tree with the zoo, links, odd names and modes: pack, mount and unpack give it back, whatever became a container.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/src/zoo"
cd "$dir/src" || exit
mkdir -p empty "sub dir/deep/er" .hidden
long=$(printf 'n%.0s' {1..251})
for name in "with space" $'new\nline' "-dash" "quote'\"" "ünï" '*' .dot "$long"; do
	cp -p zoo/dtype-bf16.safetensors "sub dir/$name"
done
cp -p zoo/dtype-f32.safetensors "$(printf 'm%.0s' {1..255})" # no room for the suffix
cp -p zoo/text.txt "sub dir/deep/er/text"
ln -s "../zoo/dtype-f32.safetensors" "sub dir/link"
ln -s /nowhere/at/all dangling
ln -s . loop
ln -s "zoo" to-dir
chmod 640 zoo/dtype-f16.safetensors
chmod 400 zoo/config.json
chmod 755 "sub dir/deep/er/text"
chmod 750 .hidden
touch -d '1969-12-31 23:59:59.999999999 UTC' zoo/text.txt
touch -d '2100-01-02 03:04:05.000000001 UTC' zoo/dtype-i64.safetensors
cd "$dir" || exit

weightfs pack "$dir/src" -o "$dir/store" >/dev/null || fail "pack"
[ -e "$dir/store/zoo/dtype-bf16.safetensors.wfs" ] || fail "a BF16 file did not become a container"
[ -e "$dir/store/zoo/config.json" ] || fail "a small file did not stay plain"
[ -e "$dir/store/zoo/random-1048576.bin" ] || fail "a file that does not gain did not stay plain"
mount_store "$dir/store" "$dir/mnt"
same_tree "$dir/src" "$dir/mnt"
for name in dtype-f32.safetensors text.txt random-1048576.bin config.json; do
	access "$dir/src/zoo/$name" "$dir/mnt/zoo/$name" || fail "$name"
	access_many "$dir/src/zoo/$name" "$dir/mnt/zoo/$name" || fail "$name"
done
mkdir "$dir/untar"
tar -C "$dir/mnt" --format=pax -cf - . | tar -C "$dir/untar" --warning=no-timestamp -xpf -
same_tree "$dir/src" "$dir/untar"
cp -a "$dir/mnt" "$dir/copy"
same_tree "$dir/src" "$dir/copy"
unmount "$dir/mnt"

weightfs unpack "$dir/store" -o "$dir/back" >/dev/null || fail "unpack"
same_tree "$dir/src" "$dir/back"
# Packed again over itself: nothing to do, nothing changed.
weightfs pack "$dir/src" -o "$dir/store" >/dev/null || fail "a second pack"
weightfs unpack "$dir/store" -o "$dir/again" >/dev/null || fail "unpack after a second pack"
same_tree "$dir/src" "$dir/again"
