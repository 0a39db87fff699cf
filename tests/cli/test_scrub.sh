#!/bin/bash
# scrub: verify at a rate, in parts that go on where the last one stopped, leaving the page cache as it was.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
mkdir -p store/sub
for i in 1 2 3 4; do
	weights model 0.5 $i
	weightfs pack model -o "store/m$i.wfs" >/dev/null
done
cp store/m1.wfs "store/sub/$(printf 'new\nline').wfs"
nr=5

ok weightfs scrub store
says "$nr of $nr containers are whole"
ok weightfs scrub store --fast --rate 1G --json
json 'd["command"] == "scrub" and d["fast"] and d["totals"]["ok"] == 5 and d["totals"]["left"] == 0'

# A rate holds: the stored bytes cannot have been read faster. All of them, of both copies, count within a few percent.
bytes=$(cat store/m2.wfs store/m3.wfs | wc -c)
for fast in "" --fast; do
	# shellcheck disable=SC2086 # an option or none
	ok weightfs scrub store/m2.wfs store/m3.wfs $fast --rate $((bytes * 2)) --json
	json 'd["totals"]["seconds"] > 0.4'
done
# It is told, but not of a run that failed: what that has gone through is unknown.
ok weightfs scrub store/m2.wfs store/m3.wfs --rate $((bytes * 5))
says "B/s"
cp store/m3.wfs bad.wfs
"$WFS_PYTHON" "$tests/cli/flip.py" bad.wfs $((bytes / 4))
expect 1 "bad.wfs: damaged" weightfs scrub store/m2.wfs bad.wfs --rate $((bytes * 5))
says "1 of 2 containers are whole"
! grep -q 'B/s' "$out" || fail "the rate of a run that failed: $(cat "$out")"
# It holds for the second pass, too, which finds all that is lost.
bytes=$(stat -c %s bad.wfs)
expect 1 "bad.wfs: damaged" weightfs scrub bad.wfs --rate $((bytes / 2)) --json
json 'd["totals"]["seconds"] > 0.6 and d["files"][0]["lost_tensors"]'

# Where no progress is shown nothing is read for it: each container is opened once.
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o faults.so "$tests/cli/faults.c"
for command in "verify -q" "scrub -q" "scrub --json"; do
	# shellcheck disable=SC2086 # words
	ok env LD_PRELOAD="$dir/faults.so" FAULT_ROOT="$dir/store" FAULT_CALLS=,open, FAULT_LOG="$dir/opens" \
		"$WFS_BIN/weightfs" $command store
	[ "$(grep -c '\.wfs$' opens)" = $nr ] || fail "$command: $(cat opens)"
	rm opens
done

# In parts. A day of time is left over for each: all at once, and the state says "from the beginning".
ok weightfs scrub store --state state --max-seconds 86400
says "5 of 5"
[ "$(wc -l <state)" = 1 ] || fail "the state of a finished pass: $(cat state)"
# At this rate the first one takes longer than a second, so each run looks at one, in the order of names.
seen=
for i in 1 2 3 4 5; do
	ok weightfs scrub store --state state --max-seconds 1 --rate 250k --json
	json 'len(d["files"]) == 1 and d["totals"]["left"] == 5 - '$i
	seen+=$("$WFS_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["files"][0]["path"].replace("\n", "?"), end=" ")' <"$out")
done
[ "$seen" = "store/m1.wfs store/m2.wfs store/m3.wfs store/m4.wfs store/sub/new?line.wfs " ] || fail "order: $seen"
[ "$(wc -l <state)" = 1 ] || fail "the state after the last part: $(cat state)"
# A state from before the files changed: what it names is gone, what is behind it is looked at.
printf 'weightfs scrub: the last container that was looked at\nstore/m2x.wfs\n' >state
ok weightfs scrub store --state state --json
json '[f["path"] for f in d["files"]] == ["store/m3.wfs", "store/m4.wfs", "store/sub/new\nline.wfs"]'
printf 'weightfs scrub: the last container that was looked at\nzzz\n' >state
ok weightfs scrub store --state state
says "5 of 5"
# Damage is found by the part that meets it; the state goes on.
cp store/m3.wfs good
"$WFS_PYTHON" "$tests/cli/flip.py" store/m3.wfs 200000
expect 1 "store/m3.wfs: damaged: block" weightfs scrub store --state state
says "hit: tensor w (BF16)"
[ "$(wc -l <state)" = 1 ] || fail "the state after damage: $(cat state)"
cp good store/m3.wfs
"$WFS_PYTHON" "$tests/cli/flip.py" store/m3.wfs 50
ok weightfs scrub store --repair
says "store/m3.wfs: repaired: the head was written anew"
cmp -s good store/m3.wfs || fail "not repaired"

# A path that no state can hold leaves the last one that it could.
cat >"$dir/deep.py" <<-'END'
	import os, sys
	os.chdir(sys.argv[1])
	for i in range(330):
	    os.mkdir("d" * 200)
	    os.chdir("d" * 200)
	for name in ("x.wfs", "y.wfs"):
	    with open(sys.argv[2], "rb") as f, open(name, "wb") as to:
	        to.write(f.read())
END
mkdir deep
cp store/m1.wfs deep/a.wfs
"$WFS_PYTHON" deep.py deep "$dir/good"
for i in 1 2; do
	ok weightfs scrub deep --state state --max-seconds 1 --rate 250k --json
done
[ "$(tail -n 1 state)" = deep/a.wfs ] || fail "the state behind a path that is too long: $(tail -n 1 state | head -c 100)"
ok weightfs scrub deep --state state
says "2 of 2 containers"
[ "$(wc -l <state)" = 1 ] || fail "the state after the last of the long paths"

# A container that takes for ever stops one run only, however that ends, and not for ever.
mkdir long
cp good long/a.wfs
"$WFS_PYTHON" "$tests/cli/constant.py" long/b.wfs 40
cp good long/c.wfs
"$WFS_BIN/weightfs" scrub long --state state >"$out" 2>"$err" &
pid=$!
until [ "$(tail -n 1 state)" = long/b.wfs ]; do
	kill -0 $pid 2>/dev/null || fail "the long one was not begun: $(cat state "$err")"
done
kill -9 $pid
wait $pid 2>/dev/null || true
ok weightfs scrub long --state state --json
json '[f["path"] for f in d["files"]] == ["long/c.wfs"]'
printf 'weightfs scrub: the last container that was looked at\nlong/a.wfs\n' >state
expect 1 "long/b.wfs: was not finished within ten times --max-seconds" weightfs scrub long --state state --max-seconds 1 --json
json 'd["totals"]["error"] == 1 and d["totals"]["left"] == 1 and d["totals"]["seconds"] < 600'
[ "$(tail -n 1 state)" = long/b.wfs ] || fail "the state behind a container that was given up"
rm state

# What a killed run has left beside the state goes.
echo half >.state.weightfs-a1B2c3.tmp
ok weightfs scrub store --state state
no_temporaries .
rm -f state
# That of a run which is alive stays, and keeps no first run from making its state.
"$WFS_PYTHON" - .other.weightfs-a1B2c3.tmp "$WFS_BIN/weightfs" scrub store --state state <<-'END' >"$out" 2>"$err" || fail "$(cat "$err")"
	import fcntl, os, struct, subprocess, sys
	file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
	fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
	sys.exit(subprocess.run(sys.argv[2:]).returncode)
END
[ -e .other.weightfs-a1B2c3.tmp ] && [ -e state ] || fail "beside a live run: $(ls -A)"
rm .other.weightfs-a1B2c3.tmp state

# Never somebody else's file.
cp model other
expect 1 "other: is not a state of weightfs scrub" weightfs scrub store --state other
cmp -s model other || fail "a file that is no state was overwritten"
expect 1 "none/state: " weightfs scrub store --state none/state
expect 2 "needs --state" weightfs scrub store --max-seconds 5
expect 2 "is not a number for --rate" weightfs scrub store --rate fast
expect 2 "is not a number for --max-seconds" weightfs scrub store --state state --max-seconds 0
expect 2 "--repair needs the whole proof" weightfs scrub store --repair --fast
no_temporaries .

# A size of exabytes is only said.
mkdir holes
cp good holes/a.wfs
truncate -s 7E holes/a.wfs 2>/dev/null || truncate -s 15T holes/a.wfs # ext4 has less room
cp good holes/b.wfs
expect 1 "holes/a.wfs: damaged: the file is longer than its head says" weightfs scrub holes
says "holes/b.wfs: ok"

# The page cache: what was there stays, what was not goes again.
weights big 9
weightfs pack big -o big.wfs >/dev/null
sync big.wfs
pages()
{
	"$WFS_PYTHON" - "$@" <<-'END'
		import ctypes, mmap, os, sys
		libc = ctypes.CDLL(None, use_errno=True)
		fd = os.open(sys.argv[1], os.O_RDWR)
		size = os.fstat(fd).st_size
		if len(sys.argv) > 2:
		    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
		    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
		    os.pread(fd, 1 << 20, int(sys.argv[2]))
		view = mmap.mmap(fd, size)
		vec = ctypes.create_string_buffer((size + 4095) // 4096)
		at = ctypes.addressof(ctypes.c_char.from_buffer(view))
		assert libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), vec) == 0
		print(sum(b & 1 for b in vec.raw))
	END
}
before=$(pages big.wfs 2097152)
if [ "$before" -ge 256 ] && [ "$before" -lt 800 ]; then
	ok weightfs scrub big.wfs --rate 1G
	after=$(pages big.wfs)
	[ "$after" -ge "$before" ] && [ "$after" -lt $((before + 200)) ] || fail "cached pages: $before before, $after after"
	ok weightfs verify big.wfs
	[ "$(pages big.wfs)" -gt 1400 ] || fail "verify, too, drops what it reads: this test proves nothing"
fi
