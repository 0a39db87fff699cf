#!/bin/bash
# A single file always becomes a container, where and as it is told; what is in the way is not touched.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
weights model 1
mkdir there
# comes_back CONTAINER ORIGINAL: by unpack to a new name, and by cat.
comes_back()
{
	rm -f back
	ok weightfs unpack "$1" -o back
	cmp -s back "$2" || fail "$1 does not hold $2"
	[ "$(stat -c '%a %y' back)" = "$(stat -c '%a %y' "$2")" ] || fail "attributes of what came from $1"
	weightfs cat "$1" | cmp -s - "$2" || fail "cat of $1"
}

ok weightfs pack model -o there
comes_back there/model.wfs model
ok weightfs pack model -o there/
ok weightfs pack model -o other.wfs
comes_back other.wfs model
expect 0 "only under names that end in .wfs" weightfs pack model -o odd
comes_back odd model
# Tiny, empty, and incompressible files too.
: >empty
echo x >tiny
head -c 100000 /dev/urandom >noise
for name in empty tiny noise; do
	ok weightfs pack $name -o .
	! grep -q 'B/s' "$out" || fail "the rate of a tiny file: $(cat "$out")"
	comes_back $name.wfs $name
done
# By a symbolic link: the content of the file under the name of the link.
ln -s ../model there/link
ok weightfs pack there/link -o .
comes_back link.wfs model
expect 1 "is a symbolic link" weightfs pack --in-place there/link
# A container is taken as it is, also in place; a plain file with its name is not.
ok weightfs pack other.wfs -o there
cmp -s other.wfs there/other.wfs || fail "a container was changed"
ok weightfs pack other.wfs --in-place
[ -f other.wfs ] || fail "a container was packed in place"
echo text >text.wfs
ok weightfs pack text.wfs -o .
comes_back text.wfs.wfs text.wfs

# Sizes are told in the direction of the work.
ok weightfs pack model -o direction.wfs
says " saved"
ok weightfs unpack direction.wfs -o direction
grep -q saved "$out" && fail "unpack speaks of what is saved: $(cat "$out")"
[ "$(sed -n 's/^direction.wfs: \(.*\) -> .*/\1/p' "$out")" = "$(sed -n 's/.*: \(.*\) -> \(.*\), [0-9.]* s.*/\1/p' "$out")" ] &&
	grep -q ' -> 1.05 MB$' "$out" || fail "unpack says: $(cat "$out")"
rm direction direction.wfs

# Existing results: the same is kept, another is refused, --force replaces it.
inode=$(stat -c %i other.wfs)
ok weightfs pack model -o other.wfs --json
json 'd["files"][0]["action"] == "present"'
[ "$(stat -c %i other.wfs)" = "$inode" ] || fail "written anew"
cp other.wfs kept.wfs
touch -d '2020-02-02' model
expect 1 "is there already" weightfs pack model -o other.wfs
weights model 1 7
expect 1 "is there already" weightfs pack model -o other.wfs
echo something >file
expect 1 "is there already" weightfs pack model -o file
cmp -s other.wfs kept.wfs && [ "$(cat file)" = something ] || fail "a refused run changed what was there"
ok weightfs pack model -o other.wfs --force
comes_back other.wfs model
mkdir isdir.wfs
ok weightfs pack model -o isdir.wfs
[ -f isdir.wfs/model.wfs ] || fail "a directory as destination"
mkdir taken taken/model.wfs
expect 1 "is there already" weightfs pack model -o taken
expect 1 "Is a directory" weightfs pack model -o taken --force
# A device, as /dev/null might be named, or a FIFO is never replaced.
mkfifo fifo
mkdir links fifos
ln -s to links/fifo
mkfifo fifos/fifo
expect 1 "never replaced" weightfs pack model -o fifo --force
expect 1 "never replaced" weightfs unpack other.wfs -o fifo --force
expect 1 "something else is there" weightfs pack links -o fifos --force
[ -p fifo ] && [ -p fifos/fifo ] || fail "a FIFO was replaced"

# unpack likewise.
ok weightfs unpack other.wfs -o taken
cmp -s taken/other model || fail "unpack into a directory"
ok weightfs unpack other.wfs -o taken --json
json 'd["files"][0]["action"] == "present"'
echo something >taken/other
expect 1 "is there already" weightfs unpack other.wfs -o taken
[ "$(cat taken/other)" = something ] || fail "a refused unpack changed what was there"
ok weightfs unpack other.wfs -o taken -f
cmp -s taken/other model || fail "unpack --force"

# The JSON of a run, a dry run that writes nothing.
ok weightfs pack model -o new.wfs --json
json 'd["command"] == "pack" and d["in_place"] is False and d["dry_run"] is False and d["stopped"] is None'
json 'd["files"][0]["raw_bytes"] == '"$(stat -c %s model)"' and d["files"][0]["stored_bytes"] == '"$(stat -c %s new.wfs)"
json 'd["files"][0]["sha256"] == "'"$(sha256sum <model | cut -c-64)"'"'
json 'd["totals"]["packed"] == 1 and 20 < d["totals"]["saved_percent"] < 45'
touch .before
find . | sort >.before
for where in "-o dry.wfs" --in-place ""; do
	# shellcheck disable=SC2086 # options are words
	ok weightfs pack model -n --json $where
	json 'd["dry_run"] and d["files"][0]["action"] == "packed" and 20 < d["totals"]["saved_percent"] < 45'
done
find . | sort | diff .before - >/dev/null || fail "a dry run left something"

# Names that are a SHA-256.
blob=$(sha256sum <model | cut -c-64)
cp model "$blob"
ok weightfs pack "$blob" -o .
weights "$blob" 1 8
rm "$blob.wfs"
expect 1 "its name is a SHA-256" weightfs pack "$blob" -o .
[ ! -e "$blob.wfs" ] || fail "a damaged blob was packed"
expect 0 "its name is a SHA-256" weightfs pack "$blob" -o . --force
# Names too long for the suffix.
long=$(printf 'n%.0s' {1..252})
cp model "$long"
expect 1 "too long" weightfs pack "$long" -o .
ok weightfs pack "$long" -o short.wfs
comes_back short.wfs "$long"
no_temporaries .
