#!/bin/bash
# A signed mount (weightfsd -o pubkey): right bytes of all that was signed; whatever somebody without the key does to the
# store, before or while it is mounted, gives EIO, and never another byte.
# shellcheck source=tests/fs/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "there is no openssl command to make keys"

cd "$dir"
export SIGNED_TMP=$dir
manifest=.weightfs-manifest
for name in key other; do
	openssl genpkey -algorithm ed25519 -out $name.pem 2>/dev/null
	openssl pkey -in $name.pem -pubout -out $name-pub.pem
done

signed()
{
	"$WFS_PYTHON" "$tests/fs/signed.py" "$@" || fail "signed.py $*"
}
# check [BAD...]: the mount shows the source; these names are refused.
check()
{
	signed check src mnt "$@"
}
mount_signed()
{
	rm -f log
	mount_store w mnt -o "pubkey=$dir/key-pub.pem,log=$dir/log"
}
# fresh: the store as it was signed, w.
fresh()
{
	rm -rf w
	cp -a store w
}
counter()
{
	weightfs stats mnt --json | "$WFS_PYTHON" -c "import json, sys; print(json.load(sys.stdin)['$1'])"
}
attack()
{
	"$WFS_PYTHON" "$tests/cli/attack.py" "$@" || fail "attack.py $*"
}

signed make src
# Small files stay as they are, noise is packed by name.
weightfs pack src -o store --signable >/dev/null || fail "pack"
for name in stored-a.bin stored-b.bin stored-c.bin; do
	rm store/$name
	weightfs pack src/$name -o store/$name.wfs --signable >/dev/null || fail "pack $name"
done
[ -e store/model.safetensors.wfs ] && [ -e store/sub/other.safetensors.wfs ] || fail "models are not packed"
# An older version of two files, signed in its day, and a container without the SHA-256 of its blocks.
cp -a store older
weightfs pack src/model.safetensors -o unsigned.wfs >/dev/null
weightfs pack src/model.safetensors -o coarse.wfs --signable --block-size 64k >/dev/null
cp src/stored-b.bin older.bin
printf older | dd of=older.bin conv=notrunc status=none
weightfs pack older.bin -o older.wfs --signable >/dev/null
weightfs sign store --key key.pem >sum || fail "sign"

# ---- a good store ----

fresh
mount_signed
check
[ "$(counter manifest_sha256)" = "$(sha256sum <store/$manifest | cut -c-64)" ] || fail "the manifest's SHA-256"
[ "$(counter refused_blocks)" = 0 ] && [ "$(counter refused_files)" = 0 ] || fail "a good store was refused"
grep -q "$(sha256sum <store/$manifest | cut -c-64)" log || fail "the log does not name the manifest: $(cat log)"
same_inodes=$(stat -c %i mnt/vocab.txt mnt/sub-2/same.txt | sort -u | wc -l)
[ "$same_inodes" = 2 ] || fail "two names are one file"
unmount mnt

# ---- what no mount is made of ----

# refuses WHAT [OPTION]: one line that says so, status 1, no mount.
refuses()
{
	expect_status 1 weightfs mount w mnt -o "${2:-pubkey=$dir/key-pub.pem}"
	if [ "$(wc -l <"$dir/err")" != 1 ] || ! grep -q "$1" "$dir/err"; then
		fail "not one line with '$1': $(cat "$dir/err")"
	fi
	! is_mounted mnt || fail "mounted all the same: $1"
}
refuses "none.pem: No such file" pubkey=none.pem
refuses "config.json: not a public key" pubkey=src/config.json
refuses "key.pem: not a public key" pubkey=key.pem
refuses "signed with another key" pubkey=other-pub.pem
expect_status 2 weightfs mount w mnt -o pubkey=
rm -f w/$manifest
refuses "no $manifest"
ln -s ../store/$manifest w/$manifest
refuses "a symbolic link"
rm w/$manifest
mkdir w/$manifest
refuses "not a regular file"
rmdir w/$manifest
mkfifo w/$manifest
refuses "not a regular file"
rm w/$manifest
: >w/$manifest
refuses "not a manifest"
for lines in 1 5 -1; do
	head -n $lines store/$manifest >w/$manifest
	refuses "manifest"
done
size=$(stat -c %s store/$manifest)
for place in 20 100 $((size / 2)) $((size - 40)); do
	cp store/$manifest w/$manifest
	"$WFS_PYTHON" "$tests/cli/flip.py" w/$manifest "$place"
	refuses "manifest"
done
fresh
weightfs sign w --key other.pem >/dev/null
refuses "signed with another key"

# ---- before it is mounted ----

# refused_lines NAME...: each has one line in the log, and nothing else is an error there.
refused_lines()
{
	local name
	for name; do
		[ "$(grep -cE "(refused|container|block in) ${name}[:. ]" log)" = 1 ] || fail "$name: not one line in the log: $(cat log)"
	done
	[ "$(grep -c "Input/output error; run weightfs verify --pubkey $dir/key-pub.pem $dir/w, and restore" log)" = $# ] ||
		fail "$# lines, not these: $(cat log)"
}

# Names.
fresh
echo more >w/more
mkdir w/sub/more
echo more >w/sub/more/file
cp store/stored-a.bin.wfs w/more.bin.wfs
cp store/stored-a.bin.wfs w/vocab.txt.wfs
ln -s config.json w/more-link
echo x >w/model.safetensors # beside its container
rm w/gone.json w/sub-2/same.txt
rm -r "w/sub/empty directory"
: >"w/sub/empty directory"
rm w/became-link w/became-directory w/became-fifo w/ordinary.wfs w/small
ln -s config.json w/became-link
mkdir w/became-directory
mkfifo w/became-fifo
cp store/stored-a.bin.wfs w/ordinary.wfs
mkdir w/small.wfs
rm w/sub/other.safetensors.wfs
cp src/sub/other.safetensors w/sub/other.safetensors.wfs
ln -sfn ../../etc/passwd w/link
rm w/dangling
echo >w/dangling
mount_signed
names=(gone.json sub-2/same.txt "sub/empty directory" became-link became-directory became-fifo ordinary.wfs small
	sub/other.safetensors link dangling)
check "${names[@]}"
refused_lines gone.json sub-2/same.txt "sub/empty directory" became-link became-directory became-fifo ordinary.wfs small \
	sub/other.safetensors link dangling
[ "$(counter refused_files)" = ${#names[@]} ] || fail "refused files: $(counter refused_files)"
for name in more sub/more more.bin more-link $manifest model.safetensors.wfs; do
	expect_status 1 stat "mnt/$name"
	grep -q "No such file" "$dir/err" || fail "$name: $(cat "$dir/err")"
done
# Mended in the store, it is right again, without a mount.
for name in gone.json link; do
	rm -f w/$name
	cp -a store/$name w/$name
done
wait_until "the mended file" cmp -s src/gone.json mnt/gone.json
[ "$(readlink mnt/link)" = sub/other.safetensors ] || fail "the mended link"
unmount mnt

# Plain files: a byte in a piece, sizes, one in another's place, a link to another.
fresh
"$WFS_PYTHON" "$tests/cli/flip.py" w/sub/plain.bin 600000
"$WFS_PYTHON" "$tests/cli/flip.py" w/piece 0
"$WFS_PYTHON" "$tests/cli/flip.py" w/config.json 3
echo >>w/whole
echo >>w/empty
truncate -s -1 "w/one more"
mv w/swap-1 w/swap
mv w/swap-2 w/swap-1
mv w/swap w/swap-2
ln -f w/config.json w/vocab.txt
mount_signed
check sub/plain.bin piece config.json whole empty "one more" swap-1 swap-2 vocab.txt
refused_lines sub/plain.bin piece config.json whole empty "one more" swap-1 swap-2 vocab.txt
[ "$(counter refused_blocks)" = 5 ] && [ "$(counter refused_files)" = 4 ] ||
	fail "$(counter refused_blocks) blocks, $(counter refused_files) files"
# The piece is refused, what lies beside it is not.
expect_status 1 dd if=mnt/sub/plain.bin bs=4096 skip=$((600000 / 4096)) count=1 iflag=direct of=/dev/null
cmp <(head -c 524288 src/sub/plain.bin) <(dd if=mnt/sub/plain.bin bs=262144 count=2 iflag=direct status=none) ||
	fail "the pieces before a bad one"
unmount mnt

# Containers: other bytes of the same XXH3; blocks of two exchanged, with all checksums right; the same file packed
# otherwise; without the SHA-256 of the blocks; an older one; one of another file; cut; a flipped bit.
fresh
cp src/stored-a.bin evil.bin
signed collide w/stored-a.bin.wfs evil.bin
weightfs verify w/stored-a.bin.wfs >/dev/null 2>&1 && fail "the attack is none"
mount_store w mnt
cmp -s evil.bin mnt/stored-a.bin || fail "the attack is none: without the signature nobody sees it"
unmount mnt
cp coarse.wfs w/model.safetensors.wfs
cp older.wfs w/stored-b.bin.wfs
"$WFS_PYTHON" "$tests/cli/flip.py" w/sub/other.safetensors.wfs 200000
truncate -s 400000 w/stored-c.bin.wfs
mount_signed
check stored-a.bin model.safetensors stored-b.bin sub/other.safetensors stored-c.bin
[ "$(grep -c "bad block in stored-a.bin.wfs" log)" = 2 ] || fail "two blocks differ: $(cat log)"
grep -q "model.safetensors.wfs.*metadata is not the signed one" log || fail "$(cat log)"
grep -q "stored-b.bin.wfs.*holds another file" log || fail "$(cat log)"
[ "$(counter refused_files)" = 2 ] || fail "$(counter refused_files) files refused"
unmount mnt
fresh
attack swap w/stored-a.bin.wfs w/stored-b.bin.wfs
attack table w/stored-c.bin.wfs
cp unsigned.wfs w/model.safetensors.wfs
cp store/model.safetensors.wfs w/sub/other.safetensors.wfs
mount_signed
check stored-a.bin stored-b.bin stored-c.bin model.safetensors sub/other.safetensors
[ "$(counter refused_files)" = 5 ] || fail "$(counter refused_files) files refused"
unmount mnt
# What is not signed may differ: times and permissions, the copy of head and metadata that is not used.
fresh
attack nanos w/stored-a.bin.wfs
chmod 600 w/config.json
touch w/vocab.txt
"$WFS_PYTHON" "$tests/cli/flip.py" w/stored-b.bin.wfs 50 4200
mount_signed
check

# ---- while it is mounted ----

unmount mnt
mount_signed # nothing is in a cache
exec 5<mnt/stored-a.bin 6<mnt/cut.bin 7<mnt/whole
head -c 10 <&5 >/dev/null
cp src/stored-a.bin evil.bin
signed collide w/stored-a.bin.wfs evil.bin
truncate -s 300000 w/cut.bin
cp src/stored-c.bin replacement
mv replacement w/sub/plain.bin
cp w/stored-b.bin.wfs w/model.safetensors.wfs
cp -p w/whole kept
"$WFS_PYTHON" "$tests/cli/flip.py" w/whole 400000
touch -r kept w/whole
ln -f w/swap-1 w/swap-2
ln -sfn vocab.txt w/link
rm w/gone.json
echo new >w/new
settled()
{
	for name in gone.json link swap-2 sub/plain.bin model.safetensors stored-a.bin cut.bin whole; do
		! cat "mnt/$name" >/dev/null 2>&1 || return 1
	done
}
wait_until "the changes to be seen" settled
check stored-a.bin cut.bin sub/plain.bin model.safetensors whole swap-2 link gone.json
# Open since before.
for descriptor in 5:stored-a.bin 6:cut.bin 7:whole; do
	"$WFS_PYTHON" - "${descriptor%:*}" "src/${descriptor#*:}" <<-'END' || fail "$descriptor"
		import errno, os, sys
		fd, data, refused = int(sys.argv[1]), open(sys.argv[2], "rb").read(), 0
		os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
		for off in range(0, len(data), 4099):
		    try:
		        got = os.pread(fd, 4099, off) # less: up to a refused block
		        assert got and data.startswith(got, off), f"WRONG at {off}"
		    except OSError as e:
		        assert e.errno == errno.EIO, e
		        refused += 1
		assert refused, "nothing was refused"
	END
done
exec 5<&- 6<&- 7<&-
# Signed anew: what the new manifest has is seen by the next mount, not by this one.
cp store/model.safetensors.wfs w/model.safetensors.wfs
rm -f w/link w/swap-2
for name in cut.bin sub/plain.bin whole swap-2 link gone.json stored-a.bin.wfs; do
	cp -a --remove-destination store/$name w/$name
done
cp older.wfs w/stored-b.bin.wfs
weightfs sign w --key key.pem >/dev/null || fail "sign anew"
newer()
{
	! cat mnt/stored-b.bin >/dev/null 2>&1
}
wait_until "the other container to be seen" newer
wait_until "the mended ones to be seen" cmp -s src/cut.bin mnt/cut.bin
check stored-b.bin
expect_status 1 stat mnt/new
signed storm w/storm.bin mnt/storm.bin "${WFS_STORM_SECONDS:-2}"
wait_until "the end of the storm" cmp -s src/storm.bin mnt/storm.bin
unmount mnt
mount_signed
cmp older.bin mnt/stored-b.bin && [ "$(cat mnt/new)" = new ] || fail "the new manifest"
unmount mnt
