#!/bin/bash
# Temporaries of dead runs are removed where a run writes, those of live ones are not; none is ever taken for a file.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

mkdir -p "$dir/src/sub" "$dir/store/sub" "$dir/locked"
weights "$dir/src/sub/model"
dead=.model.wfs.weightfs-a1B2c3.tmp
for where in src src/sub store store/sub; do
	echo half >"$dir/$where/$dead"
done
ln -s nowhere "$dir/store/.link.weightfs-000000.tmp"
# Alike, but not ours.
odd=(.weightfs-a1B2c3.tmp x.weightfs-a1B2c3.tmp .x.weightfs-a1B2c.tmp .x.weightfs-a1-_c!.tmp ..weightfs-a1B2c3.tmp .x.weightfs-a1B2c3.tmp~ .weightfs-aaaaaa.tmp)
for name in "${odd[@]}"; do
	echo mine >"$dir/store/$name"
done

# Nor is a directory, for the daemon as little (tests/fs/test_names.sh).
mkdir "$dir/src/.d.weightfs-a1B2c3.tmp"
echo inside >"$dir/src/.d.weightfs-a1B2c3.tmp/file"
ok weightfs pack "$dir/src" -o "$dir/store"
[ "$(cat "$dir/store/.d.weightfs-a1B2c3.tmp/file")" = inside ] || fail "a directory called like a temporary is left out"
for where in store store/sub; do
	[ ! -e "$dir/$where/$dead" ] || fail "a dead run's temporary stays in $where"
done
[ ! -L "$dir/store/.link.weightfs-000000.tmp" ] || fail "a dead run's link stays"
for name in "${odd[@]}"; do
	[ "$(cat "$dir/store/$name")" = mine ] || fail "$name was removed"
done
for where in src src/sub; do
	[ -e "$dir/$where/$dead" ] || fail "the source was changed: $where"
done
# As source of unpack they do not count as files either.
echo half >"$dir/store/sub/$dead"
ok weightfs unpack "$dir/store" -o "$dir/back" --json
json 'd["totals"]["copied"] == 8 and d["totals"]["unpacked"] == 1'
[ ! -e "$dir/back/sub/$dead" ] || fail "a temporary was unpacked"
# In place, and for single files.
ok weightfs pack --in-place "$dir/src"
[ ! -e "$dir/src/$dead" ] && [ ! -e "$dir/src/sub/$dead" ] || fail "in place: a dead run's temporary stays"
echo half >"$dir/src/$dead"
ok weightfs unpack "$dir/src/sub/model.wfs" -o "$dir/src"
[ ! -e "$dir/src/$dead" ] || fail "a single file: a dead run's temporary stays"

# A live run holds a lock.
weights "$dir/locked/model"
echo half >"$dir/locked/$dead"
"$WFS_PYTHON" - "$dir/locked/$dead" "$WFS_BIN/weightfs" pack --in-place "$dir/locked" <<-'END' >"$out" 2>"$err" || fail "$(cat "$err")"
	import fcntl, os, struct, subprocess, sys
	file = os.open(sys.argv[1], os.O_RDWR)
	fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
	sys.exit(subprocess.run(sys.argv[2:]).returncode)
END
grep -q "another weightfs is at work here" "$err" || fail "a live run is not noticed: $(cat "$err")"
[ -e "$dir/locked/$dead" ] || fail "a live run's temporary was removed"
[ -e "$dir/locked/model.wfs" ] || fail "not packed beside a live run"
ok weightfs pack --in-place "$dir/locked"
no_temporaries "$dir/locked"

# The lock that another user's dead run has left on a name (mount-tools/safe_file.c, lock_name) is told, and what to do.
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "needs root to be two users"
mkdir "$dir/shared"
weights "$dir/shared/model"
lock=$("$WFS_PYTHON" - model <<-'END'
	import string, sys
	hash, chars = 0xCBF29CE484222325, string.ascii_letters + string.digits
	for byte in sys.argv[1].encode():
	    hash = (hash ^ byte) * 0x100000001B3 % 2**64
	text = ""
	for _ in range(6):
	    hash, at = divmod(hash, len(chars))
	    text += chars[at]
	print(f".{sys.argv[1]}.weightfs-{text}.tmp")
END
)
(umask 077 && : >"$dir/shared/$lock")
chmod 755 "$dir"
chown 65534 "$dir/shared" "$dir/shared/model"
as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"${as_other[@]}" test -x "$WFS_BIN/weightfs" || skip "another user cannot reach $WFS_BIN"
expect 1 "model: cannot lock its name: a lock of another user's weightfs lies beside it, .NAME.weightfs-XXXXXX.tmp: remove" \
	"${as_other[@]}" "$WFS_BIN/weightfs" pack --in-place "$dir/shared"
[ -e "$dir/shared/model" ] || fail "packed in spite of a lock"
rm "$dir/shared/$lock"
ok "${as_other[@]}" "$WFS_BIN/weightfs" pack --in-place "$dir/shared"
no_temporaries "$dir/shared"
