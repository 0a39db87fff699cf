#!/bin/bash
# A disk that fills up: a clear word, no half file, the original in its place; with room the same command finishes.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

disk=$dir/disk
mkdir "$disk" "$dir/src"
mount -t tmpfs -o size=12m,mode=755 tmpfs "$disk" 2>/dev/null || skip "cannot mount a small disk here"
cleanup_disk()
{
	local ended=$?
	set +e
	umount -l "$disk"
	(exit "$ended")
	cleanup
}
trap cleanup_disk EXIT
weights "$dir/src/a" 6 1
weights "$dir/src/b" 5 2

# In place without room for either.
cp -a "$dir/src/." "$disk"
expect_full()
{
	local got=0
	"$@" >"$out" 2>"$err" || got=$?
	[ $got = 1 ] || fail "status $got: $*: $(cat "$err")"
	grep -q 'No space left on device' "$err" && grep -q 'stopped: the disk is full' "$err" || fail "$*: $(cat "$err")"
	no_temporaries "$disk"
}
expect_full weightfs pack --in-place "$disk"
cmp -s "$disk/a" "$dir/src/a" && cmp -s "$disk/b" "$dir/src/b" || fail "originals after a full disk"
[ "$(find "$disk" -type f | wc -l)" = 2 ] || fail "left on a full disk: $(ls -A "$disk")"
expect_full weightfs pack --in-place "$disk" --json
json 'd["stopped"].startswith("the disk is full")'
# With room for one after the other: each frees what the next one needs.
mount -o remount,size=16m "$disk"
ok weightfs pack --in-place "$disk"
ok weightfs verify "$disk"
for name in a b; do
	weightfs cat "$disk/$name.wfs" | cmp -s - "$dir/src/$name" || fail "$name.wfs"
done
# unpack in place needs room as well.
mount -o remount,size=9m "$disk"
expect_full weightfs unpack --in-place "$disk"
ok weightfs verify "$disk"
mount -o remount,size=20m "$disk"
ok weightfs unpack --in-place "$disk"
cmp -s "$disk/a" "$dir/src/a" && cmp -s "$disk/b" "$dir/src/b" || fail "undone"

# From tree to tree, also where the file that does not fit is only copied.
rm -rf "${disk:?}"/*
mount -o remount,size=3m "$disk"
expect_full weightfs pack "$dir/src" -o "$disk/store"
mkdir "$dir/noise"
head -c 5000000 /dev/urandom >"$dir/noise/n"
rm -rf "${disk:?}"/*
expect_full weightfs pack "$dir/noise" -o "$disk/store"
weightfs pack "$dir/src/a" -o "$dir/a.wfs" >/dev/null
rm -rf "${disk:?}"/*
expect_full weightfs unpack "$dir/a.wfs" -o "$disk/a"
mount -o remount,size=9m "$disk"
ok weightfs pack "$dir/src" -o "$disk/store"
rm -rf "${disk:?}/store/b.wfs"
ok weightfs pack "$dir/src" -o "$disk/store"
ok weightfs verify "$disk"

# A limit on the size of files: an error like others, not a signal that leaves a temporary.
cp -a "$dir/src/a" "$dir/limited"
status=0
(
	ulimit -f 1024
	"$WFS_BIN/weightfs" pack --in-place "$dir/limited" >"$dir/said" 2>&1
) || status=$?
[ $status = 1 ] && grep -q 'File too large' "$dir/said" || fail "a limit of file sizes: status $status, $(cat "$dir/said")"
no_temporaries "$dir"
cmp -s "$dir/limited" "$dir/src/a" || fail "a limit of file sizes: the original"
