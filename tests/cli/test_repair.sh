#!/bin/bash
# verify --repair: spare copies written anew, and nothing else; what it refuses; killed at hundreds of points.
# WFS_REPAIR_POINTS: how many for each of 12 kinds of damage.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
flip()
{
	"$WFS_PYTHON" "$tests/cli/flip.py" "$@"
}
weights model 0.4
touch -d '2021-03-04 05:06:07.123456789' model
weightfs pack model -o good.wfs --block-size 64k >/dev/null
size=$(stat -c %s good.wfs)

# repairs WHAT: it is found and mended; inode, time and mode stay.
repairs()
{
	local inode verb=was be=is
	[[ $1 != *" and "* ]] || verb=were be=are
	inode=$(stat -c %i bad.wfs)
	expect 1 "bad.wfs: degraded: $1 $be damaged" weightfs verify bad.wfs
	ok weightfs verify bad.wfs --repair
	says "bad.wfs: repaired: $1 $verb written anew"
	says "1 of 1 container is whole"
	cmp -s bad.wfs good.wfs || fail "$1: not repaired"
	[ "$(stat -c '%i %y %a' bad.wfs)" = "$inode $(stat -c '%y %a' good.wfs)" ] || fail "$1: inode, time or mode"
	ok weightfs verify bad.wfs --repair
	says "bad.wfs: ok"
}
while read -r at what; do
	cp -p good.wfs bad.wfs
	# shellcheck disable=SC2086 # one or two numbers
	flip bad.wfs ${at//,/ }
	repairs "$what"
done <<-END
	50 the head
	-50 the copy of the head at the end
	4200 the first copy of the metadata
	-4150 the second copy of the metadata
	50,4200 the head and the first copy of the metadata
	50,-4150 the head and the second copy of the metadata
	4200,-50 the first copy of the metadata and the copy of the head at the end
	-4150,-50 the second copy of the metadata and the copy of the head at the end
END
for cut in 1 3000 4096; do
	cp -p good.wfs bad.wfs
	truncate -s -$cut bad.wfs
	touch -r good.wfs bad.wfs
	repairs "the copy of the head at the end"
done
cp -p good.wfs bad.wfs
truncate -s -4100 bad.wfs
touch -r good.wfs bad.wfs
repairs "the second copy of the metadata and the copy of the head at the end"
cp -p good.wfs bad.wfs
flip bad.wfs 50
ok weightfs verify bad.wfs --repair --json
json 'd["repair"] and d["files"][0]["status"] == "repaired" and d["totals"]["repaired"] == 1'

# What is refused stays as it is, byte for byte.
refuses()
{
	local sum
	sum=$(sha256sum <"$2")
	expect 1 "$1" weightfs verify --repair "$2"
	[ "$(sha256sum <"$2")" = "$sum" ] || fail "$1: changed"
}
cp good.wfs bad.wfs
flip bad.wfs 50 $((size / 2))
refuses "bad.wfs: damaged: block" bad.wfs
cp good.wfs bad.wfs
flip bad.wfs 4200 -4150
refuses "both copies of the metadata are damaged; nothing of it can be read" bad.wfs
cp good.wfs bad.wfs
flip bad.wfs 50 -50
refuses "head and tail are both damaged; nothing of it can be read" bad.wfs
cp good.wfs bad.wfs
echo >>bad.wfs
refuses "longer than its head says" bad.wfs
# Rightly made, but of another file: the name says so.
blob=$(sha256sum <"$tests/cli/lib.sh" | cut -c-64).wfs
cp good.wfs "$blob"
flip "$blob" 50
refuses "its name is a SHA-256, but not that of its content" "$blob"
expect 2 "--repair needs the whole proof" weightfs verify --repair --fast good.wfs
# A read-only disk: said, and the other container is mended all the same.
mkdir ro store
cp good.wfs ro/bad.wfs
flip ro/bad.wfs 50
cp -p ro/bad.wfs store/
if mount --bind ro ro 2>/dev/null && mount -o remount,ro,bind ro; then
	trap 'umount -l "$dir/ro"; cleanup' EXIT
	refuses "ro/bad.wfs: degraded: the head is damaged and cannot be written anew: Read-only file system" ro/bad.wfs
	expect 1 "cannot be written anew" weightfs verify --repair ro store
	says "store/bad.wfs: repaired"
	umount ro
	trap cleanup EXIT
else
	untried "cannot mount a directory read-only here: a read-only disk"
fi

# A disk that cannot read one copy any more, but takes it anew.
cc -O1 -shared -fPIC -D_GNU_SOURCE -o torn.so "$tests/cli/torn.c" -ldl
on_bad_disk()
{
	TORN_EIO=$1 LD_PRELOAD=$dir/torn.so weightfs "${@:2}"
}
while read -r bytes what; do
	cp -p good.wfs bad.wfs
	expect 1 "bad.wfs: degraded: $what is damaged" on_bad_disk "$bytes" verify bad.wfs
	ok on_bad_disk "$bytes" verify --repair bad.wfs
	says "bad.wfs: repaired: $what was written anew"
	cmp -s bad.wfs good.wfs || fail "$what cannot be read: badly repaired"
done <<-END
	0-512 the head
	4096-4097 the first copy of the metadata
	$((size - 4097))-$((size - 4096)) the second copy of the metadata
	$((size - 1))-$size the copy of the head at the end
END
# Without memory for reading one (ENOMEM), nobody knows whether it is damaged: nothing is written.
cp -p good.wfs bad.wfs
for bytes in 0-512 4096-4097 $((size - 4097))-$((size - 4096)) $((size - 1))-$size; do
	for repair in "" --repair; do
		# shellcheck disable=SC2086 # an option or none
		TORN_ERRNO=12 expect 1 "Cannot allocate memory" on_bad_disk "$bytes" verify bad.wfs $repair
		! grep -qE 'degraded|damaged|repaired|changed' "$err" || fail "ENOMEM at $bytes: $(cat "$err")"
	done
	cmp -s bad.wfs good.wfs || fail "ENOMEM at $bytes: written to"
done
# Not so a block of data: what it cost is told, what can be read is saved.
expect 1 "bad.wfs: block 4 (bytes 196608 to 262143): cannot read a block: Input/output error" \
	on_bad_disk 150000-150001 verify --repair bad.wfs
says "lost: bytes 196608 to 262143"
cmp -s bad.wfs good.wfs || fail "a block that cannot be read: changed"
expect 1 "block 4 (bytes 196608 to 262143): cannot read a block: Input/output error; 65536 of 417880 bytes are lost, the rest is in eio.partial" \
	on_bad_disk 150000-150001 unpack --keep-going bad.wfs -o eio
{ head -c 196608 model && head -c 65536 /dev/zero && tail -c +262145 model; } | cmp - eio.partial || fail "what was saved"
# All of it unreadable is no verdict on what it holds.
expect 1 "bad.wfs: cannot read head or tail: Input/output error" on_bad_disk "0-$size" verify --repair bad.wfs
cmp -s bad.wfs good.wfs || fail "an unreadable file: changed"
# A lack of descriptors is no verdict either.
for limit in {4..20}; do
	status=0
	(ulimit -n "$limit" && weightfs verify -j 1 good.wfs) >"$out" 2>"$err" || status=$?
	grep -q "good.wfs: d" "$err" && fail "without descriptors: $(cat "$err")"
	[ $status = 0 ] && break
done
[ "$limit" -gt 4 ] && [ "$status" = 0 ] || fail "no limit of descriptors tells: $limit"

mkdir kills
"$WFS_PYTHON" "$tests/cli/repair_kills.py" "$WFS_BIN/weightfs" "$dir/torn.so" good.wfs model kills "${WFS_REPAIR_POINTS:-26}" \
	>"$out" 2>&1 || fail "kills: $(tail -n 5 "$out")"
[ -z "${WFS_REPAIR_POINTS-}" ] || cat "$out"
