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
echo hello >.wfs
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
cd "$dir" || exit

mount_store "$dir/store" "$dir/mnt" -o "log=$dir/log"
cd "$dir/mnt" || exit
find . -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | diff - <(
	find "$dir/store" -mindepth 1 -maxdepth 1 -printf '%f\n' |
	sed 's/^\(both\|twice.wfs\|target\|hardlink\|container-as-it-is\)\.wfs$/\1/' | sort -u
) || fail "the listing"
cmp "$b" both || fail "the plain file beside its container does not win"
expect_status 1 test -e both.wfs
cmp "$dir/store/ordinary.wfs" ordinary.wfs || fail "an ordinary file with the suffix"
expect_status 1 test -e ordinary
cmp "$dir/store/.wfs" .wfs || fail "a file called .wfs"
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
