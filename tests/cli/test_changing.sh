#!/bin/bash
# A file that changes while it is packed: not packed, said so, the others go on.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

mkdir "$dir/src"
weights "$dir/src/changing" 20 1
weights "$dir/src/still" 1 2
# Changes the file without end: NAME is how.
start_changing()
{
	"$WFS_PYTHON" - "$dir/src/changing" "$1" <<-'END' &
		import os, sys
		path, how = sys.argv[1:]
		size = os.path.getsize(path)
		print("changing", flush=True)
		while True:
		    if how == "grows":
		        with open(path, "ab") as file:
		            file.write(b"x")
		        if os.path.getsize(path) > size + 1000000:
		            os.truncate(path, size)
		    elif how == "rewritten":
		        with open(path, "r+b") as file:
		            file.seek(size // 2)
		            file.write(os.urandom(8))
		    elif how == "time set back":
		        st = os.stat(path)
		        with open(path, "r+b") as file:
		            file.seek(size // 2)
		            file.write(os.urandom(8))
		        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
		    elif how == "replaced":
		        with open(path + ".new", "wb") as file:
		            file.truncate(size)
		        os.rename(path + ".new", path)
	END
	changer=$!
}
for how in grows rewritten "time set back" replaced; do
	for where in "-o $dir/store" --in-place; do
		start_changing "$how" >"$dir/started"
		until [ -s "$dir/started" ]; do :; done
		rm -rf "$dir/store"
		status=0
		# shellcheck disable=SC2086 # words
		weightfs pack "$dir/src" $where --json >"$out" 2>"$err" || status=$?
		kill -9 $changer
		wait $changer 2>/dev/null || true
		[ $status = 1 ] || fail "a file that is $how: status $status"
		json '[f["action"] for f in d["files"] if f["path"] == "changing"] == ["failed"]'
		grep -qE 'changing: .*(changed|replaced|open for writing|cannot open)' "$err" || fail "$how: $(cat "$err")"
		[ -e "$dir/src/changing" ] && [ ! -e "$dir/src/changing.wfs" ] && [ ! -e "$dir/store/changing.wfs" ] ||
			fail "a file that is $how was packed"
		if [ "$where" = --in-place ]; then
			weightfs verify "$dir/src/still.wfs" >/dev/null || fail "the other file"
			weightfs unpack --in-place "$dir/src/still.wfs" >/dev/null
		else
			weightfs verify "$dir/store/still.wfs" >/dev/null || fail "the other file"
		fi
		rm -f "$dir/src/changing.new"
		no_temporaries "$dir"
		weights "$dir/src/changing" 20 1
	done
done
# When its name goes, what became of it is said.
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o "$dir/faults.so" "$tests/cli/faults.c"
# goes SAYS CALL COMMAND: pack in place, in which this command runs before that call.
goes()
{
	rm -rf "$dir/tree"
	mkdir "$dir/tree"
	cp "$dir/src/still" "$dir/tree"
	expect 1 "still: $1" env LD_PRELOAD="$dir/faults.so" FAULT_ROOT="$dir/tree" FAULT_CALLS=",$2," FAULT_AT=1 FAULT_ACTION=run \
		FAULT_COMMAND="$3" "$WFS_BIN/weightfs" pack --in-place "$dir/tree"
	[ "$3" = "rm $dir/tree/still" ] || weightfs cat "$dir/tree/still.wfs" | cmp - "$dir/src/still" || fail "lost: $1"
}
goes "gave way to still.wfs while it was read: another run was faster" fsync "$WFS_BIN/weightfs pack --in-place -q $dir/tree 2>/dev/null"
goes "was removed or moved while it was read" fsync "rm $dir/tree/still"
goes "was removed or moved meanwhile, perhaps by another run; still.wfs holds it" rename "rm -f $dir/tree/still"
# Two runs at once over one tree: both end, neither harms the other.
for round in 1 2 3; do
	rm -rf "$dir/tree" "$dir/store"
	cp -a "$dir/src" "$dir/tree"
	weightfs pack --in-place "$dir/tree" >"$dir/1" 2>&1 & first=$!
	weightfs pack --in-place "$dir/tree" >"$dir/2" 2>&1 & second=$!
	wait $first || true
	wait $second || true
	ok weightfs pack --in-place "$dir/tree"
	for name in changing still; do
		weightfs cat "$dir/tree/$name.wfs" | cmp -s - "$dir/src/$name" || fail "two runs in place, round $round"
		[ ! -e "$dir/tree/$name" ] || fail "two runs in place left $name"
	done
	weightfs pack "$dir/src" -o "$dir/store" >"$dir/1" 2>&1 & first=$!
	weightfs pack "$dir/src" -o "$dir/store" >"$dir/2" 2>&1 & second=$!
	wait $first || true
	wait $second || true
	ok weightfs pack "$dir/src" -o "$dir/store"
	ok weightfs verify "$dir/store"
	no_temporaries "$dir"
done
