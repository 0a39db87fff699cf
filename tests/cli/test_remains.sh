#!/bin/bash
# What a power cut, a full disk or bad sectors leave of a container is taken for an ordinary file by no command: an
# empty file, zeros, one without both copies of its head. What somebody else calls NAME.wfs is.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$dir"

head -c 300000 /dev/urandom >model
mkdir store
weightfs pack model -o store/good.wfs --signable >/dev/null
size=$(stat -c %s store/good.wfs)
: >store/empty.wfs
head -c 100 /dev/zero >store/short.wfs
truncate -s 3M store/zeros.wfs
cp store/good.wfs store/heads.wfs
dd if=/dev/urandom of=store/heads.wfs bs=4096 count=1 conv=notrunc status=none
dd if=/dev/urandom of=store/heads.wfs bs=1 seek=$((size - 4096)) count=4096 conv=notrunc status=none
echo notes >store/notes.wfs
: >store/empty
names=(empty heads short zeros)
nothing="is named like a container and is empty or zeros"
declare -A why=([empty]=$nothing [short]=$nothing [zeros]=$nothing [heads]="head and tail are both damaged")
advice="; nothing of it can be read: restore it from elsewhere"
openssl genpkey -algorithm ed25519 -out key 2>/dev/null

# told PREFIX END: each of them has its line on stderr, and nothing else has.
told()
{
	for name in "${names[@]}"; do
		grep -qxF "weightfs: $1$name.wfs: ${why[$name]}$2" "$err" || fail "no line for $name: $(cat "$err")"
	done
	[ "$(wc -l <"$err")" = ${#names[@]} ] || fail "other lines: $(cat "$err")"
}

# refused COMMAND...: it fails.
refused()
{
	"$@" >"$out" 2>"$err" && fail "$* succeeds"
	return 0
}

refused weightfs unpack store -o back
told "" "$advice"
[ "$(ls back)" = $'empty\ngood\nnotes.wfs' ] && cmp -s model back/good || fail "unpack: $(ls back)"
refused weightfs unpack store -o back-2 --keep-going
told "" "$advice"
refused weightfs sign store --key key
told "sign: store/" "$advice"
[ ! -e store/.weightfs-manifest ] || fail "sign left a manifest"
refused weightfs info store
told "info: store/" ""
refused weightfs scrub -q store
sed -i 's/: damaged: /: /' "$err"
told "store/" "$advice"
for name in "${names[@]}"; do
	expect 1 "cat: store/$name.wfs: ${why[$name]}$advice" weightfs cat "store/$name.wfs"
done

# In place they stay, and so they do in a store that is packed again.
cp -a store inside
refused weightfs unpack inside --in-place
told "" "$advice"
rm inside/good
(cd store && find . ! -name good.wfs -exec stat -c '%n %s' {} +) >before
(cd inside && find . -exec stat -c '%n %s' {} +) | diff <(sort before) <(sort) >/dev/null || fail "in place: $(ls inside)"
weightfs pack store -o copy >"$out" 2>"$err" || fail "pack: $(cat "$err")"
for name in "${names[@]}"; do
	grep -qF "$name.wfs: taken as it is, though it is a container that cannot be read: ${why[$name]}" "$err" ||
		fail "pack says nothing of $name: $(cat "$err")"
done
diff -r store copy >/dev/null || fail "pack changed what it took as it is"

# An empty container beside an original holds nothing that could be lost.
mkdir beside
cp model beside/model
: >beside/model.wfs
expect 1 "is not the same" weightfs pack beside/model --in-place
cmp -s model beside/model || fail "an original is gone"
ok weightfs pack beside/model --in-place --force
weightfs cat beside/model.wfs | cmp -s - model || fail "pack over an empty container"
