#!/bin/bash
# --in-place: files become containers, unpack --in-place undoes it, and nothing else in the tree changes.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

tree=$dir/tree
mkdir -p "$tree/sub/empty"
weights "$tree/a" 3
weights "$tree/sub/b" 10 1
ln "$tree/a" "$tree/sub/a-too"
ln "$tree/a" "$tree/a-three"
head -c 200000 /dev/urandom >"$tree/noise"
echo small >"$tree/small"
ln -s sub/b "$tree/link"
mkfifo "$tree/fifo"
chmod 640 "$tree/a"
chmod 444 "$tree/sub/b"
touch -d '2001-02-03 04:05:06.7Z' "$tree/a" "$tree/sub/b"
touch -d '2002-02-03 04:05:06.7Z' "$tree/sub/empty" "$tree/sub" "$tree"
rm "$tree/fifo"
touch -d '2002-02-03 04:05:06.7Z' "$tree"
cp -a "$tree" "$dir/kept"

ok weightfs pack --in-place "$tree"
for name in a sub/b sub/a-too a-three; do
	[ -f "$tree/$name.wfs" ] && [ ! -e "$tree/$name" ] || fail "not packed in place: $name"
done
[ "$tree/a.wfs" -ef "$tree/sub/a-too.wfs" ] && [ "$tree/a.wfs" -ef "$tree/a-three.wfs" ] || fail "hard links"
[ -f "$tree/noise" ] && [ -f "$tree/small" ] && [ -L "$tree/link" ] || fail "something else was changed"
for name in . sub; do
	[ "$(stat -c %y "$tree/$name")" = "$(stat -c %y "$dir/kept/$name")" ] || fail "time of the directory $name"
done
ok weightfs verify "$tree"
manifest "$tree" >"$dir/packed"
ok weightfs pack --in-place "$tree" --json
json 'd["totals"]["packed"] == 0 and d["totals"]["kept"] == 6 and d["totals"]["failed"] == 0'
manifest "$tree" | diff "$dir/packed" - >/dev/null || fail "a second run changed something"

ok weightfs unpack --in-place "$tree"
same_tree "$dir/kept" "$tree"
no_temporaries "$tree"

# Where a run was killed: the container is there and its original too. It is read again before the original goes.
weightfs pack "$tree/sub/b" -o "$tree/sub" >/dev/null
touch -r "$dir/kept/sub" "$tree/sub"
cp -a "$tree" "$dir/both"
ok weightfs pack --in-place "$tree" --json
json '[f["action"] for f in d["files"] if f["path"] == "sub/b"] == ["present"]'
[ ! -e "$tree/sub/b" ] && [ -f "$tree/sub/b.wfs" ] || fail "a half-done file was not finished"
ok weightfs unpack --in-place "$dir/both"
same_tree "$dir/kept" "$dir/both"
# The same with one damaged byte in the container: the original stays.
ok weightfs unpack --in-place "$tree"
weightfs pack "$tree/sub/b" -o "$tree/sub" >/dev/null
chmod u+w "$tree/sub/b.wfs"
printf x | dd of="$tree/sub/b.wfs" bs=1 seek=5000000 conv=notrunc status=none
touch -r "$tree/sub/b" "$tree/sub/b.wfs"
expect 1 "sub/b: b.wfs is there already and is not the same" weightfs pack --in-place "$tree"
cmp -s "$tree/sub/b" "$dir/kept/sub/b" || fail "the original beside a damaged container"
ok weightfs pack --in-place "$tree/sub/b" --force
weightfs cat "$tree/sub/b.wfs" | cmp -s - "$dir/kept/sub/b" || fail "--force"
# Another file's container, an ordinary file of that name.
rm -rf "$tree"
mkdir "$tree"
weights "$tree/x" 1 5
cp "$tree/x" "$dir/x"
weights "$dir/y" 1 6
weightfs pack "$dir/y" -o "$tree/x.wfs" >/dev/null
expect 1 "is not the same" weightfs pack --in-place "$tree"
cmp -s "$tree/x" "$dir/x" || fail "x beside another container"
echo precious >"$tree/x.wfs"
for force in "" --force; do
	# shellcheck disable=SC2086 # an option or none
	expect 1 "x.wfs is in the way and is not a container" weightfs pack --in-place "$tree" $force
	[ "$(cat "$tree/x.wfs")" = precious ] && cmp -s "$tree/x" "$dir/x" || fail "an ordinary file was replaced"
done
# unpack in place beside another plain file: both stay.
rm "$tree/x.wfs"
weightfs pack "$dir/y" -o "$tree/x.wfs" >/dev/null
expect 1 "is there already" weightfs unpack --in-place "$tree"
cmp -s "$tree/x" "$dir/x" && weightfs cat "$tree/x.wfs" | cmp -s - "$dir/y" || fail "unpack beside another file"

# A file that another program has open for writing stays; one that is open for reading can be packed.
rm "$tree/x.wfs"
exec 5>>"$tree/small"
ok weightfs pack --in-place "$tree" -n
ok weightfs pack --in-place "$tree" --min-saving 90
exec 5>>"$tree/x"
expect 1 "open for writing" weightfs pack --in-place "$tree"
exec 5<"$tree/x"
[ -f "$tree/x" ] && [ ! -e "$tree/x.wfs" ] || fail "a file that is written to was packed"
ok weightfs pack --in-place "$tree"
cmp -s /proc/self/fd/5 "$dir/x" || fail "the reader lost its file"
exec 5<&-
# A name outside of the tree keeps the file's space.
rm -rf "$tree"
mkdir "$tree"
weights "$tree/x" 1 5
ln "$tree/x" "$dir/outside"
expect 0 "other hard links outside" weightfs pack --in-place "$tree"
cmp -s "$dir/outside" "$dir/x" || fail "the name outside"

# A name that cannot be packed, here as its container's is taken: then the file is packed under none of its names, and
# under all once it can.
rm -rf "$tree"
mkdir -p "$tree/sub"
weights "$tree/x" 1 5
ln "$tree/x" "$tree/sub/y"
echo precious >"$tree/sub/y.wfs"
status=0
weightfs pack --in-place "$tree" >"$out" 2>"$err" || status=$?
[ $status = 1 ] && grep -q "y.wfs is in the way" "$err" && grep -q "x: kept beside its other form" "$err" ||
	fail "one name of two: $(cat "$err")"
[ "$tree/x" -ef "$tree/sub/y" ] && [ "$(cat "$tree/sub/y.wfs")" = precious ] || fail "one name of two was packed"
rm "$tree/sub/y.wfs"
ok weightfs pack --in-place "$tree"
[ ! -e "$tree/x" ] && [ ! -e "$tree/sub/y" ] && [ "$tree/x.wfs" -ef "$tree/sub/y.wfs" ] || fail "all names in the end"
weightfs cat "$tree/x.wfs" | cmp -s - "$dir/x" || fail "what two names hold"

# -o onto the file itself, by its own name or another path.
rm -rf "$tree"
mkdir -p "$tree/sub" "$dir/bound"
cp -p "$dir/x" "$tree/x"
cp -p "$dir/x" "$tree/sub/x"
for force in "" --force; do
	# shellcheck disable=SC2086 # an option or none
	expect 1 "the destination is the file itself" weightfs pack "$tree/x" -o "$tree/x" $force
	cmp -s "$tree/x" "$dir/x" || fail "a file packed onto itself"
done
if mount --bind "$tree" "$dir/bound" 2>/dev/null; then
	manifest "$tree" >"$dir/before"
	for destination in "$dir/bound" "$dir/bound/sub"; do
		for force in "" --force; do
			# shellcheck disable=SC2086 # an option or none
			expect 1 "the destination is the source by another path" weightfs pack "$tree" -o "$destination" $force
			manifest "$tree" | diff "$dir/before" - >/dev/null || fail "packed into itself through a bind mount"
		done
	done
	# A directory of the destination that is the source.
	umount "$dir/bound"
	mkdir -p "$dir/store/sub"
	mount --bind "$tree" "$dir/store/sub"
	status=0
	weightfs pack "$tree" -o "$dir/store" --force >"$out" 2>"$err" || status=$?
	umount "$dir/store/sub"
	[ $status = 1 ] && grep -q "the source by another path" "$err" || fail "a source in the destination: $(cat "$err")"
	manifest "$tree" | diff "$dir/before" - >/dev/null || fail "a source in the destination was changed"
else
	untried "cannot make a bind mount here: sources by another path"
fi
# --force that was killed between the new form and the removal of the old one: run again, it removes it.
ok weightfs pack "$tree" -o "$dir/forms" --min-saving 90
[ -e "$dir/forms/x" ] || fail "a plain copy"
printf other >"$dir/forms/x"
ok weightfs pack "$tree/x" -o "$dir/forms/x.wfs"
expect 1 "x: x is there already and is not the same" weightfs pack "$tree" -o "$dir/forms"
ok weightfs pack "$tree" -o "$dir/forms" --force
[ ! -e "$dir/forms/x" ] && [ -e "$dir/forms/x.wfs" ] || fail "the other form stays"
