#!/bin/bash
# Names: a plain file beside its container, ordinary files with the suffix, suffix twice, special files, deep folders.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
a=$dir/zoo/dtype-bf16.safetensors b=$dir/zoo/dtype-f32.safetensors
mkdir "$dir/store"
cd "$dir/store" || exit
pack "$a" both.wfs
cp -p "$b" both
echo hello >ordinary.wfs
cp both.wfs .wfs # nothing that could be a name is left without the suffix
cp both.wfs ..wfs
cp both.wfs ...wfs
mkdir folder.wfs
pack "$b" folder.wfs/inner.wfs
pack "$a" twice.wfs.wfs
pack "$dir/store/both.wfs" container-as-it-is.wfs
ln -s ordinary.wfs link.wfs
ln -s both.wfs link-to-container
pack "$a" target.wfs
ln -s target link-to-original
mkfifo fifo
ln both.wfs hardlink.wfs
cp -p "$a" upper.WFS
deep=$(printf 'd%.0s/' {1..200})
mkdir -p "$deep"
pack "$a" "$deep/model.wfs"
mkdir noaccess
# What pack is still writing, and what only looks like it.
temporaries=(.model.wfs.weightfs-aZ09bc.tmp .x.weightfs-123456.tmp)
lookalikes=(x.weightfs-123456.tmp .weightfs-123456.tmp ..weightfs-123456.tmp .x.weightfs-12345.tmp .x.weightfs-1234_6.tmp
	.x.weightfs-123456.tmp2 .x.weightfs-1234567.tmp)
touch "${temporaries[@]}" "${lookalikes[@]}"
ln -s target .link.weightfs-abcdef.tmp
temporaries+=(.link.weightfs-abcdef.tmp)
# A temporary is a file or a link: this is somebody's directory, for the tools too.
mkdir .dir.weightfs-abcdef.tmp
echo inside >.dir.weightfs-abcdef.tmp/file
cd "$dir" || exit

mount_store "$dir/store" "$dir/mnt" -o "log=$dir/log"
cd "$dir/mnt" || exit
find . -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | diff - <(
	find "$dir/store" -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -vxFf <(printf '%s\n' "${temporaries[@]}") |
	sed 's/^\(both\|twice.wfs\|target\|hardlink\|container-as-it-is\)\.wfs$/\1/' | sort -u
) || fail "the listing"
cmp "$b" both || fail "the plain file beside its container does not win"
expect_status 1 test -e both.wfs
cmp "$dir/store/ordinary.wfs" ordinary.wfs || fail "an ordinary file with the suffix"
expect_status 1 test -e ordinary
for name in .wfs ..wfs ...wfs; do
	cmp "$dir/store/$name" $name || fail "a file called $name"
done
for name in "${temporaries[@]}"; do
	expect_status 1 test -e "$name"
	expect_status 1 test -L "$name"
done
for name in "${lookalikes[@]}"; do
	[ -e "$name" ] || fail "$name is not shown"
done
[ "$(cat .dir.weightfs-abcdef.tmp/file)" = inside ] || fail "a directory called like a temporary"
cmp "$b" folder.wfs/inner || fail "a folder with the suffix"
cmp "$a" twice.wfs || fail "the suffix twice"
cmp "$a" container-as-it-is || fail "a container that was packed again"
[ "$(readlink link.wfs)" = ordinary.wfs ] || fail "a link with the suffix"
[ "$(readlink link-to-container)" = both.wfs ] || fail "a link is not shown as it is"
cmp "$a" link-to-original || fail "a link to a name that only the mount has"
cmp "$a" hardlink || fail "a second name of a container"
cmp "$a" upper.WFS || fail "another suffix in upper case"
[ -p fifo ] || fail "a fifo"
cmp "$a" "$deep/model" || fail "200 folders deep"
[ "$(grep -c "both" "$dir/log")" = 1 ] || fail "no warning, or not once, about x beside x.wfs: $(cat "$dir/log")"
cd "$dir" || exit
unmount "$dir/mnt"
# The tools take the same files for containers.
mkdir odd
cp -p store/{.wfs,..wfs,...wfs,target.wfs} odd
weightfs unpack odd -o unpacked >/dev/null || fail "unpack"
mount_store "$dir/odd" "$dir/mnt"
same_tree unpacked "$dir/mnt"
unmount "$dir/mnt"
