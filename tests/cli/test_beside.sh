#!/bin/bash
# x beside x.wfs, containers and damaged containers in the source, what an earlier run left in the other form.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

src=$dir/src
mkdir "$src"
weights "$src/x" 1 1
weights "$dir/y" 1 2
# An ordinary x.wfs: x cannot take that name, both come back.
weights "$src/x.wfs" 1 3
expect 0 "x: not packed: x.wfs lies beside it" weightfs pack "$src" -o "$dir/s1"
[ -f "$dir/s1/x" ] && [ -f "$dir/s1/x.wfs.wfs" ] && [ ! -e "$dir/s1/x.wfs" ] || fail "x beside an ordinary x.wfs"
ok weightfs unpack "$dir/s1" -o "$dir/b1"
same_tree "$src" "$dir/b1"
# A container x.wfs of something else: it is taken as it is, and unpack says that x hides it.
weightfs pack "$dir/y" -o "$src/x.wfs" --force >/dev/null
expect 0 "x: not packed: x.wfs lies beside it" weightfs pack "$src" -o "$dir/s2"
cmp -s "$src/x.wfs" "$dir/s2/x.wfs" && cmp -s "$src/x" "$dir/s2/x" || fail "x beside a container"
expect 1 "x.wfs: x lies beside it with other content" weightfs unpack "$dir/s2" -o "$dir/b2"
cmp -s "$src/x" "$dir/b2/x" || fail "the plain file wins"
# A container of x itself: no loss, no failure.
weightfs pack "$src/x" -o "$src/x.wfs" --force >/dev/null
expect 0 "not packed" weightfs pack "$src" -o "$dir/s3"
ok weightfs unpack "$dir/s3" -o "$dir/b3"
cmp -s "$src/x" "$dir/b3/x" || fail "x beside its own container"
# Alone: a tree that is packed in part already.
mv "$src/x" "$dir/x"
ok weightfs pack "$src" -o "$dir/s4" --json
json 'd["files"][0]["action"] == "copied" and d["files"][0]["raw_bytes"] == '"$(stat -c %s "$dir/x")"
cmp -s "$src/x.wfs" "$dir/s4/x.wfs" || fail "a container was packed again"
# Damaged, but a container: taken as it is, with a word; unpack refuses it.
dd if=/dev/zero of="$src/x.wfs" bs=1 seek=100 count=8 conv=notrunc status=none
truncate -s -1 "$src/x.wfs"
expect 0 "cannot be read" weightfs pack "$src" -o "$dir/s5"
cmp -s "$src/x.wfs" "$dir/s5/x.wfs" || fail "a damaged container was changed"
expect 1 "x.wfs" weightfs unpack "$dir/s5" -o "$dir/b5"
[ ! -e "$dir/b5/x" ] && [ ! -e "$dir/b5/x.wfs" ] || fail "a damaged container was unpacked"

# What was packed shrinks below the limit, and the other way round: never two forms of one file.
rm "$src/x.wfs"
weights "$src/f"
ok weightfs pack "$src" -o "$dir/s6"
echo small now >"$src/f"
expect 1 "f.wfs is there already" weightfs pack "$src" -o "$dir/s6"
ok weightfs pack "$src" -o "$dir/s6" --force
[ -f "$dir/s6/f" ] && [ ! -e "$dir/s6/f.wfs" ] || fail "from container to copy"
weights "$src/f" 1 4
expect 1 "f is there already" weightfs pack "$src" -o "$dir/s6"
ok weightfs pack "$src" -o "$dir/s6" -f
[ ! -e "$dir/s6/f" ] && weightfs cat "$dir/s6/f.wfs" | cmp -s - "$src/f" || fail "from copy to container"

# Names of containers that stand for no name.
mkdir "$dir/odd"
for name in .wfs ..wfs ...wfs; do
	cp "$dir/s6/f.wfs" "$dir/odd/$name"
done
ok weightfs unpack "$dir/odd" -o "$dir/odd2"
same_tree "$dir/odd" "$dir/odd2"
# Special files are left out, with a word; of links nothing is lost.
mkdir "$dir/special"
mkfifo "$dir/special/fifo"
ln -s fifo "$dir/special/link"
expect 0 "fifo: left out" weightfs pack "$dir/special" -o "$dir/special2"
[ -L "$dir/special2/link" ] && [ ! -e "$dir/special2/fifo" ] || fail "special files"
# Something else under the name of a link or of a directory.
mkdir "$dir/l1" "$dir/l1/sub" "$dir/l2"
ln -s to "$dir/l1/link"
echo x >"$dir/l1/sub/file"
echo y >"$dir/l2/link"
expect 1 "link: something else is there already" weightfs pack "$dir/l1" -o "$dir/l2"
ok weightfs pack "$dir/l1" -o "$dir/l2" --force
[ "$(readlink "$dir/l2/link")" = to ] || fail "--force on a link"
# A symbolic link in the destination is not followed.
mkdir "$dir/elsewhere" "$dir/l3"
ln -s "$dir/elsewhere" "$dir/l3/sub"
expect_two()
{
	local got=0
	weightfs pack "$dir/l1" -o "$dir/l3" >"$out" 2>"$err" || got=$?
	[ "$got" = 1 ] || fail "a link in the way of a directory: status $got"
}
expect_two
[ -z "$(ls "$dir/elsewhere")" ] || fail "a link in the destination was followed"
