#!/bin/bash
# verify: what is whole, what is damaged and where; spare copies; the golden containers and those that must be refused.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
mkdir store store/sub
weights model 3
weightfs pack model -o store/model.wfs >/dev/null
weightfs pack model -o store/sub/second.wfs >/dev/null
cp model store/plain
echo no container >store/notes.wfs
ln -s model.wfs store/link.wfs
for fast in "" --fast; do
	# shellcheck disable=SC2086 # an option or none
	ok weightfs verify store $fast
	says "store/model.wfs: ok"
	says "store/notes.wfs: is not a weightfs container"
	says "2 of 2 containers are whole"
	# shellcheck disable=SC2086
	ok weightfs verify store/model.wfs store/link.wfs store/sub $fast --json
	json '[f["status"] for f in d["files"]] == ["ok"] * 3 and d["totals"]["ok"] == 3 and d["totals"]["damaged"] == 0'
	json 'd["files"][0]["sha256"] == "'"$(sha256sum <model | cut -c-64)"'" and d["files"][0]["raw_bytes"] == '"$(stat -c %s model)"
done
ok weightfs verify store -q
[ ! -s "$out" ] || fail "-q prints"
expect 1 "store/notes.wfs: is not a weightfs container" weightfs verify store/notes.wfs
expect 1 "none: No such file" weightfs verify none
expect 1 "none: No such file" weightfs verify none store/model.wfs
says "store/model.wfs: ok"

# Two blocks in the middle: named with their bytes, and only they.
size=$(stat -c %s store/model.wfs)
cp store/model.wfs bad.wfs
"$WFS_PYTHON" "$tests/cli/flip.py" bad.wfs $((size / 2)) $((size * 3 / 4))
expect 1 "bad.wfs: damaged: block" weightfs verify bad.wfs --json
json 'd["files"][0]["damaged_blocks"] == 2 and len(d["files"][0]["first_damaged"]) == 2'
read -r block first last <<<"$("$WFS_PYTHON" -c '
import json, sys
b = json.load(open(sys.argv[1]))["files"][0]["first_damaged"][0]
print(b["block"], b["raw_offset"], b["raw_offset"] + b["raw_bytes"] - 1)' "$out")"
[ "$block" -gt 2 ] && [ "$first" -gt 1000000 ] && [ "$last" -lt 2100000 ] || fail "block $block, $first to $last"
for fast in "" --fast; do
	for cpu in scalar auto; do
		# shellcheck disable=SC2086
		expect 1 "bad.wfs: damaged: block $block (bytes $first to $last): " weightfs verify bad.wfs $fast --cpu $cpu
		grep -q "2 of [0-9]* blocks are damaged" "$err" || fail "$(cat "$err")"
		# shellcheck disable=SC2086
		expect 1 "damaged" weightfs verify bad.wfs store $fast --cpu $cpu --json
		json 'd["totals"]["damaged"] == 1 and d["totals"]["ok"] == 2'
	done
done
expect 1 "block $block" weightfs cat bad.wfs
got=$(stat -c %s "$out")
[ "$got" -le "$first" ] && head -c "$got" model | cmp -s - "$out" || fail "cat and a bad block"
expect 1 "block $block" weightfs unpack bad.wfs -o back
[ ! -e back ] || fail "a damaged container was unpacked"
no_temporaries .
# Cut short.
cp store/model.wfs bad.wfs
truncate -s $((size * 2 / 3)) bad.wfs
expect 1 "bad.wfs: damaged: block" weightfs verify bad.wfs
expect 1 "block" weightfs unpack bad.wfs -o back
truncate -s 2000 bad.wfs
expect 1 "bad.wfs: damaged: " weightfs verify bad.wfs
# Something appended.
cp store/model.wfs bad.wfs
echo >>bad.wfs
expect 1 "bad.wfs: damaged: the file is longer than its head says; cut it to $size bytes" weightfs verify bad.wfs
truncate -s "$size" bad.wfs
ok weightfs verify bad.wfs

# Spare copies: damage to one of two is found, and survived.
for place in "50 the head" "-50 the copy of the head at the end" "4200 the first copy of the metadata" \
	"$((-4096 - 50)) the second copy of the metadata"; do
	cp store/model.wfs bad.wfs
	"$WFS_PYTHON" "$tests/cli/flip.py" bad.wfs "${place%% *}"
	expect 1 "bad.wfs: degraded: ${place#* } is damaged" weightfs verify bad.wfs
	expect 1 "bad.wfs: degraded: ${place#* } is damaged" weightfs verify --fast bad.wfs
	weightfs cat bad.wfs | cmp -s - model || fail "cat with ${place#* } damaged"
	rm -f back
	weightfs unpack bad.wfs -o back >"$out" 2>"$err" || fail "unpack with ${place#* } damaged"
	cmp -s back model || fail "unpack with ${place#* } damaged"
	weightfs info bad.wfs >"$out" || fail "info with ${place#* } damaged"
done
cp store/model.wfs bad.wfs
"$WFS_PYTHON" "$tests/cli/flip.py" bad.wfs 50 -50
expect 1 "bad.wfs: damaged: head and tail are both damaged" weightfs verify bad.wfs
expect 1 "head and tail are both damaged" weightfs cat bad.wfs
expect 1 "head and tail are both damaged" weightfs info bad.wfs
expect 1 "head and tail are both damaged" weightfs bench bad.wfs
# A container under another's SHA-256.
blob=$(sha256sum <"$tests/cli/lib.sh" | cut -c-64)
cp store/model.wfs "$blob.wfs"
expect 1 "its name is a SHA-256" weightfs verify "$blob.wfs"

# Golden containers are whole, or degraded where their name says so; bad ones are refused by every command.
for file in "$tests"/vectors/ok/*.wfs; do
	case ${file##*/} in
	head-damaged.wfs | tail-damaged.wfs | meta-?-damaged.wfs) expect 1 degraded weightfs verify "$file" ;;
	*) ok weightfs verify "$file" ;;
	esac
	want=$(awk -v name="${file##*/}" '$2 == name {print $1}' "$tests/vectors/ok/SHA256SUMS")
	[ "$(weightfs cat "$file" | sha256sum | cut -c-64)" = "$want" ] || fail "cat of $file"
	rm -f golden
	weightfs unpack "$file" -o golden >"$out" 2>"$err" || fail "unpack of $file: $(cat "$err")"
	[ "$(sha256sum <golden | cut -c-64)" = "$want" ] || fail "unpack of $file"
	ok weightfs info "$file" --json
	json 'd["sha256"] == "'"$want"'"'
done
while read -r status name; do
	file=$tests/vectors/bad/$name
	case $status in
	UNSUPPORTED) expect 1 "unsupported" weightfs verify "$file" ;;
	NOT_CONTAINER) expect 1 "not a weightfs container" weightfs verify "$file" ;;
	*) expect 1 "damaged" weightfs verify "$file" ;;
	esac
	rm -f golden
	expect 1 ": " weightfs unpack "$file" -o golden
	[ ! -e golden ] || fail "$name was unpacked"
	[ "$status" = NOT_CONTAINER ] || expect 1 ": " weightfs cat "$file"
done <"$tests/vectors/bad/EXPECTED"

# A container is looked at under whatever names it has; a name that is a SHA-256 must be that of its content.
mkdir links
weights links/model
ok weightfs pack links/model -o links/m.wfs
rm links/model
ln links/m.wfs links/blob
ok weightfs verify links
grep -q "1 of 1 container is whole" "$out" || fail "a container of several names: $(cat "$out")"
ln links/m.wfs "links/$(printf '%064d' 7).wfs"
expect 1 "its name is a SHA-256" weightfs verify links
# The right one beside it does not hide the wrong one, on whichever side it sorts; nor does a name given by hand.
ln links/m.wfs "links/$(weightfs cat links/m.wfs | sha256sum | cut -c-64).wfs"
expect 1 "$(printf '%064d' 7).wfs: damaged: its name is a SHA-256" weightfs verify links
says "1 of 2 containers"
mv "links/$(printf '%064d' 7).wfs" "links/$(printf 'f%.0s' {1..64}).wfs"
expect 1 "ffff.wfs: damaged: its name is a SHA-256" weightfs verify links/m.wfs links
rm links/ff*.wfs
ok weightfs verify links
says "1 of 1 container is whole"
"$WFS_PYTHON" "$tests/cli/flip.py" links/m.wfs $(($(stat -c %s links/m.wfs) / 2))
rm links/[0-9a-f]*.wfs
for command in verify scrub; do
	expect 1 "links/m.wfs: damaged: block" weightfs $command links
done

# What a power cut leaves is not passed over; a file that somebody calls so is.
mkdir cut none
: >cut/empty.wfs
head -c 100 /dev/zero >cut/short.wfs
truncate -s 3M cut/zeros.wfs
echo notes >cut/notes.wfs
for name in empty short zeros; do
	mkdir "cut/$name"
	mv "cut/$name.wfs" "cut/$name"
	expect 1 "cut/$name/$name.wfs: damaged: is named like a container and is empty or zeros" weightfs verify "cut/$name"
	says "0 of 1 container"
done
expect 1 "cut/empty/empty.wfs: damaged: is named like a container and is empty or zeros; nothing of it can be read: restore" \
	weightfs verify cut/empty/empty.wfs
weightfs verify cut --json >"$out" 2>"$err" && fail "holes are whole"
json '[f["status"] for f in d["files"]] == ["damaged"] * 3 and d["totals"]["damaged"] == 3'
expect 0 "verify: no container was found" weightfs verify none
expect 0 "verify: no container was found" weightfs verify none --json
json 'd["files"] == []'
rm -r cut/*/
expect 0 "verify: no container was found" weightfs verify cut
says "cut/notes.wfs: is not a weightfs container"
expect 0 "verify: no container was found" weightfs verify cut --json
json 'd["files"] == [] and d["ordinary_files"] == ["cut/notes.wfs"]'

# More files than descriptors: of one directory, and of as many directories.
for i in {1..60}; do
	mkdir "none/$i"
	ln store/model.wfs "none/$i.wfs"
	ln store/model.wfs "none/$i/m.wfs"
done
(ulimit -n 32 && ok weightfs verify -j 1 --fast none/*.wfs)
says "60 of 60 containers are whole"
(ulimit -Sn 32 && ok weightfs verify -j 1 --fast none/*/*.wfs)
says "60 of 60 containers are whole"

# Exabytes of one value: the blocks are proved at once, and that the SHA-256 is not is said at once.
"$WFS_PYTHON" "$tests/cli/constant.py" huge.wfs 62
expect 1 "huge.wfs: claims to hold 4611686018427387904 bytes, more than can be proved" weightfs verify huge.wfs
ok weightfs verify --fast huge.wfs store
says "huge.wfs: ok"
expect 1 "huge.wfs: claims to hold" weightfs scrub huge.wfs store
says "store/model.wfs: ok"
ok weightfs scrub --fast huge.wfs
