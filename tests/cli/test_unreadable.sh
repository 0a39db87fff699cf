#!/bin/bash
# What cannot be read or written is named, the rest is done, the status says so. As another user than root.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root to become another user"
command -v setpriv >/dev/null || skip "there is no setpriv"
src=$dir/src
mkdir -p "$src/closed" "$dir/home"
weights "$src/good"
weights "$src/secret" 1 1
weights "$src/closed/inner" 1 2
chmod 755 "$dir" "$src"
chmod 644 "$src/good"
chmod 600 "$src/secret"
chmod 700 "$src/closed"
chown 65534:65534 "$dir/home"
cp "$WFS_BIN/weightfs" "$dir/weightfs"
nobody()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/weightfs" "$@"
}
chmod 1777 "$WFS_TMP" 2>/dev/null || true
setpriv --reuid 65534 --regid 65534 --clear-groups test -r "$src/good" || skip "other users cannot reach $dir"

status=0
nobody pack "$src" -o "$dir/home/store" --json >"$out" 2>"$err" || status=$?
[ $status = 1 ] || fail "status $status"
json '{f["path"] for f in d["files"] if f["action"] == "failed"} == {"secret", "closed"}'
json '[f["path"] for f in d["files"] if f["action"] == "packed"] == ["good"]'
[ "$(wc -l <"$err")" = 2 ] && grep -q 'secret: cannot open: Permission denied' "$err" || fail "messages: $(cat "$err")"
[ ! -e "$dir/home/store/secret.wfs" ] || fail "secret"
# A destination of someone else who lets us in.
mkdir -m 1777 "$dir/public"
mkdir "$dir/home/own"
weights "$dir/home/own/f"
chown -R 65534:65534 "$dir/home/own"
ok nobody pack "$dir/home/own" -o "$dir/public"
[ -f "$dir/public/f.wfs" ] && [ "$(stat -c '%a %u' "$dir/public")" = "1777 0" ] || fail "another's destination"
# A directory that may not be written: clear, and nothing lost.
status=0
nobody pack --in-place "$src/good" >"$out" 2>"$err" || status=$?
[ $status = 1 ] && grep -q 'Permission denied' "$err" || fail "in place in a closed directory: $(cat "$err")"
[ -f "$src/good" ] || fail "the original"
expect 1 "Permission denied" nobody pack "$src/good" -o "$src"
expect 1 "Permission denied" nobody pack "$src/good" -o "$src/new.wfs"
expect 1 "Permission denied" nobody verify "$src/secret"
expect 1 "Permission denied" nobody cat "$src/secret"
# Another's file: its owner cannot be given, and set-id bits do not move to a new owner.
chmod 6755 "$src/good"
touch -d '2003-03-03 03:03:03.3Z' "$src/good"
ok nobody pack "$src/good" -o "$dir/home/good.wfs"
[ "$(stat -c '%a %u' "$dir/home/good.wfs")" = "755 65534" ] || fail "attributes: $(stat -c '%a %u' "$dir/home/good.wfs")"
# Root keeps owners.
chown 1234:5678 "$src/good"
chmod 4750 "$src/good"
ok weightfs pack "$src/good" -o "$dir/good.wfs"
[ "$(stat -c '%a %u %g' "$dir/good.wfs")" = "4750 1234 5678" ] || fail "owner of the container"
ok weightfs unpack "$dir/good.wfs" -o "$dir/good"
[ "$(stat -c '%a %u %g %y' "$dir/good")" = "$(stat -c '%a %u %g %y' "$src/good")" ] || fail "owner of what came back"
# Root on NFS, whose server takes him for nobody: he is told once what to do. Elsewhere, and another user, is not.
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o "$dir/faults.so" "$tests/cli/faults.c"
mkdir "$dir/nfs"
weights "$dir/nfs/one"
weights "$dir/nfs/two" 1 1
cp -r "$dir/nfs" "$dir/packed"
weightfs pack --in-place "$dir/packed" >/dev/null
hint="run this as the owner of the files"
# refused NR TREE LACKS COMMAND...: it is refused wherever it makes a file in the tree, and NR lines hold the hint.
refused()
{
	local nr=$1 tree=$2 lacks=$3 status=0
	shift 3
	LD_PRELOAD=$dir/faults.so FAULT_ROOT=$tree FAULT_CALLS=,create, FAULT_AT=1+ FAULT_ACTION=13 FAULT_LACKS=$lacks \
		"$@" >"$out" 2>"$err" || status=$?
	[ $status = 1 ] && grep -q "Permission denied" "$err" || fail "status $status: $*: $(cat "$err")"
	[ "$(grep -cF "$hint" "$err")" = "$nr" ] || fail "not $nr hints: $*: $(cat "$err")"
}
refused 1 "$dir/nfs" local "$dir/weightfs" pack --in-place "$dir/nfs"
refused 1 "$dir/nfs" local "$dir/weightfs" pack --in-place "$dir/nfs/one"
refused 1 "$dir/packed" local "$dir/weightfs" unpack --in-place "$dir/packed"
refused 0 "$dir/nfs" none "$dir/weightfs" pack --in-place "$dir/nfs"
chown -R 65534:65534 "$dir/nfs"
refused 0 "$dir/nfs" local setpriv --reuid 65534 --regid 65534 --clear-groups env LD_PRELOAD="$dir/faults.so" "$dir/weightfs" \
	pack --in-place "$dir/nfs"
if command -v openssl >/dev/null; then
	openssl genpkey -algorithm ed25519 -out "$dir/key.pem" 2>/dev/null
	refused 1 "$dir/packed" local "$dir/weightfs" sign --key "$dir/key.pem" "$dir/packed"
fi
[ -f "$dir/nfs/one" ] && [ -f "$dir/packed/two.wfs" ] || fail "something is lost"
no_temporaries "$dir"

# The top of a tree has a name in messages, too. How many descriptors get a run so far depends on those it inherits.
mkdir "$dir/top"
for limit in {4..20}; do
	status=0
	(ulimit -n "$limit" && weightfs pack "$dir/top" -o "$dir/no-top") >"$out" 2>"$err" || status=$?
	[ "$status" != 0 ] || fail "no limit of descriptors stops it at the top"
	grep -qF "weightfs: .: cannot " "$err" && break
	grep -q "weightfs: *: " "$err" && fail "the top has no name: $(cat "$err")"
done
[ "$status" = 1 ] || fail "packed in spite of a lack of descriptors: $status"
