#!/bin/bash
# The daemon's socket: clients that say nothing, or ask and never read, hold up neither readers nor the end; a false
# daemon of another user leads root's tools nowhere, writes nothing to their terminal and does not keep them.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store" "$dir/mnt"
pack "$dir/zoo/dtype-bf16.safetensors" "$dir/store/model.wfs"
export XDG_RUNTIME_DIR=$dir
# socket_of MNT DIRECTORY
socket_of()
{
	awk -v mnt="$1" -v dir="$2" '$5 == mnt { sub(":", "-", $3); print dir "/" $3 ".sock" }' /proc/self/mountinfo
}
nr_sockets()
{
	find "/proc/$daemon/fd" -lname 'socket:*' | wc -l
}

mount_logged "$dir/log" "$dir/store" "$dir/mnt"
[ "$(id -u)" = 0 ] && socket=$(socket_of "$dir/mnt" /run/weightfs) || socket=$(socket_of "$dir/mnt" "$dir/weightfs")
before=$(nr_sockets)
"$WFS_PYTHON" "$tests/fs/silent_clients.py" "$socket" 200 cmp "$dir/zoo/dtype-bf16.safetensors" "$dir/mnt/model" ||
	fail "no reading beside silent clients"
wait_until "an answer after silent clients" weightfs stats "$dir/mnt" >/dev/null
[ "$(nr_sockets)" -le "$before" ] || fail "silent clients have left sockets open"
"$WFS_PYTHON" "$tests/fs/silent_clients.py" "$socket" 200 kill -TERM "$daemon"
wait_until "the end of a daemon with silent clients" gone "$daemon"
! is_mounted "$dir/mnt" || fail "still mounted"

# shellcheck source=tests/fs/user.sh
. "$tests/fs/user.sh"
mkdir -m 700 "$dir/secret"
cp "$dir/store/model.wfs" "$dir/secret/hidden.wfs"
mkdir "$dir/theirs" "$dir/run"
chown 65534:65534 "$dir/theirs" "$dir/run"
unset XDG_RUNTIME_DIR
mounts+=("$dir/theirs")
# With allow_other, else root does not get as far as to ask. A user may say so when /etc/fuse.conf does.
echo user_allow_other >"$dir/fuse.conf"
[ -e /etc/fuse.conf ] && mount --bind "$dir/fuse.conf" /etc/fuse.conf || skip "fuse.conf cannot be replaced for a moment"
as 65534 "$WFS_BIN/weightfs" mount "$dir/store" "$dir/theirs" -o allow_other && status=0 || status=1
umount /etc/fuse.conf
[ "$status" = 0 ] || fail "mount by a user"
expect_status 0 weightfs verify "$dir/theirs"
socket=$(socket_of "$dir/theirs" /tmp/weightfs-65534)
[ -S "$socket" ] || fail "no socket at $socket"
false=
at_end()
{
	[ -z "$false" ] || kill "$false"
	false=
}
false_daemon()
{
	at_end
	false=$("$WFS_PYTHON" "$tests/fs/false_daemon.py" 65534 "$socket" "$1" "$dir/secret") || fail "no false daemon"
}
for kind in path file two nothing; do
	false_daemon $kind
	expect_status 1 weightfs verify "$dir/theirs"
	grep -q "the daemon does not hand over its store $dir/secret" "$dir/err" || fail "$kind: $(cat "$dir/err")"
	! grep -q hidden "$dir/out" "$dir/err" || fail "$kind: root was led to $(cat "$dir/out" "$dir/err")"
done
expect_status 0 weightfs stats "$dir/theirs"
grep -q '?]2;title? store??2J §$' "$dir/out" || fail "a terminal is commanded: $(cat -v "$dir/out")"
false_daemon endless
expect_status 1 weightfs stats "$dir/theirs"
[ "$(stat -c %s "$dir/out")" -lt 10000000 ] || fail "all of an endless answer is taken"
expect_status 1 weightfs verify "$dir/theirs"
at_end
# A socket that another user serves, in the place of this one's.
rm "$socket"
mkfifo "$dir/lock"
"$WFS_PYTHON" -c 'import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
server.listen()
open(sys.argv[2], "w").close()
open(sys.argv[2]).close()' "$socket" "$dir/lock" &
: <"$dir/lock"
expect_status 1 weightfs stats "$dir/theirs"
expect_status 1 as 65534 "$WFS_BIN/weightfsd" --store "$dir/theirs"
grep -q "Permission denied" "$dir/err" || fail "a socket of another user's: $(cat "$dir/err")"
: >"$dir/lock"
wait
as 65534 "$WFS_BIN/weightfs" umount "$dir/theirs" || fail "umount by a user"
