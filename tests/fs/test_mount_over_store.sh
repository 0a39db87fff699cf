#!/bin/bash
# The mount point may be the store itself, but not lie inside it; a live weightfs mount is refused as a store,
# and by commands that want its containers.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir -p "$dir/src/sub"
cp -p "$dir"/zoo/dtype-{bf16,f32}.safetensors "$dir/src"
cp -p "$dir"/zoo/{dtype-f16.safetensors,text.txt} "$dir/src/sub"
weightfs pack "$dir/src" -o "$dir/store" >/dev/null

mount_store "$dir/store" "$dir/store"
same_tree "$dir/src" "$dir/store"
access_many "$dir/src/sub/dtype-f16.safetensors" "$dir/store/sub/dtype-f16.safetensors" || fail "reading over the store"
expect_status 1 weightfs mount "$dir/store" "$dir/mnt2"
mkdir "$dir/mnt2"
expect_status 1 weightfs mount "$dir/store" "$dir/mnt2"
expect_status 1 weightfs mount "$dir/store/sub" "$dir/mnt2"
is_mounted "$dir/mnt2" && fail "mounted although the store is a live mount"
# Through the mount there is nothing to convert or to list: that must not look like success.
for command in "info" "info --json" "pack --in-place" "unpack --in-place"; do
	for path in "$dir/store" "$dir/store/sub"; do
		# shellcheck disable=SC2086 # words
		expect_status 1 weightfs $command "$path"
		grep -q "a weightfs is mounted there" "$dir/err" || fail "$command $path: $(cat "$dir/err")"
	done
done
for command in "info" "info --json"; do
	# shellcheck disable=SC2086 # words
	expect_status 1 weightfs $command "$dir/store/dtype-bf16.safetensors"
	grep -q "a weightfs is mounted there" "$dir/err" || fail "$command of a file: $(cat "$dir/err")"
done
unmount "$dir/store"
[ -e "$dir/store/dtype-bf16.safetensors.wfs" ] || fail "the store is not there after unmounting"

# Relative paths, the store as the working directory.
cd "$dir/store" || exit
mounts+=("$dir/store")
weightfs mount . . || fail "mount . ."
cd "$dir" || exit
same_tree "$dir/src" "$dir/store"
unmount "$dir/store"

# A mount point inside its store would show itself: refused.
expect_status 1 weightfs mount "$dir/store" "$dir/store/sub"
[ -s "$dir/err" ] || fail "refused without a word"
is_mounted "$dir/store/sub" && fail "mounted inside its store"
[ -e "$dir/store/sub/text.txt.wfs" ] || fail "the store is covered"
