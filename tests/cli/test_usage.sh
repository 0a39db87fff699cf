#!/bin/bash
# Help, versions, and one clear line with the right status for every wrong call.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

version=$(weightfs --version)
[[ $version =~ ^weightfs\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version prints: $version"
ok weightfs --help
for command in pack unpack verify sign info estimate cat stats doctor mount umount bench; do
	weightfs --help | grep -q "^  $command " || fail "--help does not list $command"
	ok weightfs "$command" --help
	says "usage: weightfs $command"
	[ "$(weightfs help "$command")" = "$(weightfs "$command" --help)" ] || fail "help $command is not $command --help"
	[ "$(weightfs "$command" --version)" = "$version" ] || fail "$command --version"
	expect 2 "--nonsense" weightfs "$command" --nonsense
	expect 2 "missing argument" weightfs "$command"
done
expect 2 "which command" weightfs
expect 2 "'nonsense'" weightfs nonsense
expect 2 "'nonsense'" weightfs help nonsense
expect 2 "'--nonsense'" weightfs --nonsense

for command in pack unpack verify sign info estimate cat stats doctor umount bench; do
	expect 2 "$command: a path is empty" weightfs "$command" ""
done
expect 2 "mount: a path is empty" weightfs mount "" "$dir"
expect 2 "mount: a path is empty" weightfs mount "$dir" ""
expect 2 "verify: a path is empty" weightfs verify "$dir" ""

touch "$dir/file"
mkdir "$dir/tree"
expect 2 "where to" weightfs pack "$dir/file"
expect 2 "where to" weightfs unpack "$dir/file"
expect 2 "exclude" weightfs pack "$dir/file" -o "$dir/x" --in-place
expect 2 "exclude" weightfs unpack "$dir/file" -o "$dir/x" --in-place
expect 2 "too many" weightfs pack "$dir/file" "$dir/tree" -o "$dir/x"
expect 2 "path is empty" weightfs pack "" -o "$dir/x"
expect 2 "path is empty" weightfs pack "$dir/file" -o ""
for threads in 0 -1 x 1x 99999999999999999999 ''; do
	expect 2 "number of threads" weightfs pack "$dir/file" -o "$dir/x" -j "$threads"
done
expect 2 "percentage" weightfs pack "$dir/file" -o "$dir/x" --min-saving=-1
expect 2 "percentage" weightfs pack "$dir/file" -o "$dir/x" --min-saving=101
for size in 0 1 32k 100k 2M 1G x; do
	expect 2 "block size" weightfs pack "$dir/file" -o "$dir/x" --block-size "$size"
done
for command in pack unpack verify estimate cat; do
	expect 2 "'mmx'" weightfs "$command" "$dir/file" --cpu mmx
done
expect 2 "passes" weightfs bench "$dir/file" --passes 0
expect 2 "size" weightfs bench "$dir/file" --sample 1
[ ! -e "$dir/x" ] || fail "a wrong call made a file"

for command in pack unpack; do
	expect 1 "$dir/none: No such file" weightfs $command "$dir/none" -o "$dir/x"
	expect 1 "No such file" weightfs $command "$dir/file" -o "$dir/none/x"
	expect 1 "no such directory" weightfs $command "$dir/file" -o "$dir/none/"
	expect 1 "neither a file nor a directory" weightfs $command /dev/null -o "$dir/x"
	expect 1 "is there and is not a directory" weightfs $command "$dir/tree" -o "$dir/file"
	expect 1 "use --in-place" weightfs $command "$dir/tree" -o "$dir/tree/"
	expect 1 "lies in the source" weightfs $command "$dir/tree" -o "$dir/tree/sub"
	expect 1 "holds the source" weightfs $command "$dir/tree" -o "$dir"
done
[ -z "$(ls "$dir/tree")" ] || fail "a refused destination was made"
for command in verify info estimate cat bench; do
	expect 1 "No such file" weightfs $command "$dir/none"
done
expect 1 "not a weightfs container" weightfs verify "$dir/file"
expect 1 "not a weightfs container" weightfs info "$dir/file"
expect 1 "not a weightfs container" weightfs unpack "$dir/file" -o "$dir/x"
expect 1 "Is a directory" weightfs cat "$dir/tree"
expect 1 "is a directory: name one of its files" weightfs bench "$dir/tree"
expect 1 "not a regular file" weightfs cat /dev/null
expect 1 "no blocks" weightfs bench "$dir/file"
expect 1 "no weightfs is mounted" weightfs umount "$dir/tree"
expect 1 "No such file" weightfs mount "$dir/none" "$dir/tree"
expect 1 "Not a directory" weightfs mount "$dir/file" "$dir/tree"
