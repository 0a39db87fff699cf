#!/bin/bash
# Start and end of a mount: clear refusals, nothing left in the terminal's way, SIGTERM while busy, kill -9 and again.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
a=$dir/zoo/dtype-bf16.safetensors
mkdir "$dir/store" "$dir/mnt"
pack "$a" "$dir/store/model.wfs"
store=$dir/store mnt=$dir/mnt

# Refusals: one line that names the culprit, no mount.
refused()
{
	local status=$1 word=$2
	shift 2
	expect_status "$status" weightfs mount "$@"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "not one line for: mount $*: $(cat "$dir/err")"
	grep -qF -- "$word" "$dir/err" || fail "$word is not named: $(cat "$dir/err")"
}
refused 1 "$dir/nowhere" "$dir/nowhere" "$mnt"
refused 1 "$dir/nowhere" "$store" "$dir/nowhere"
refused 1 "$store/model.wfs" "$store/model.wfs" "$mnt"
refused 1 "$a" "$store" "$a"
refused 2 nonsense "$store" "$mnt" -o nonsense
refused 2 cache "$store" "$mnt" -o cache=many
# One that the kernel refuses has never said that it was ready.
! "$WFS_PYTHON" "$tests/fs/start_ready.py" "$dir/log" "$WFS_BIN/weightfs" mount "$store" "$mnt" -f -o context=none ||
	fail "ready, and the kernel refuses the mount: $(cat "$dir/log")"
grep -qF "cannot mount at $mnt" "$dir/log" || fail "the kernel does not refuse context=none: $(cat "$dir/log")"
expect_status 2 weightfs mount "$store"
expect_status 2 weightfs mount
expect_status 1 weightfs umount "$mnt"
expect_status 1 weightfs umount "$dir/nowhere"
expect_status 1 weightfs stats "$mnt"
is_mounted "$mnt" && fail "mounted after a refusal"
# What fstab and systemd add is accepted.
mount_store "$store" "$mnt" -o rw,nofail,_netdev,noatime,defaults,x-systemd.automount,x-gvfs-hide,comment=x,noauto,user
refused 1 "$mnt" "$store" "$mnt" # mounted already
unmount "$mnt"

# The daemon lets go of the caller's pipes and folder.
mounts+=("$mnt")
said=$(cd "$dir/store" && weightfs mount . ../mnt 2>&1) || fail "mount in a command substitution: $said"
is_mounted "$mnt" || fail "mount in a command substitution"
unmount "$mnt"
(umask 777 && weightfs mount "$store" "$mnt" <&- >&- 2>&-) || fail "mount without standard descriptors"
cmp "$a" "$mnt/model" || fail "mounted without standard descriptors"
unmount "$mnt"

# SIGTERM and SIGINT with a file open, mapped and being read.
for signal in TERM INT; do
	mount_logged "$dir/log" "$store" "$mnt"
	exec 5<"$mnt/model"
	head -c 1000 <&5 >/dev/null
	"$WFS_PYTHON" -c '
import mmap, os, sys
view = mmap.mmap(5, 0, mmap.MAP_SHARED, mmap.PROT_READ)
view[9]
print("mapped", flush=True)
sys.stdin.read()' <<<"" | grep -q mapped
	kill "-$signal" "$daemon"
	wait_until "the end of the daemon after SIG$signal" gone "$daemon"
	is_mounted "$mnt" && fail "still mounted after SIG$signal"
	exec 5<&-
done

# kill -9 of all there is: readers get an error, not a hang; mounting again over the dead mount works.
mount_logged "$dir/log" "$store" "$mnt"
exec 5<"$mnt/model"
kill_both "$daemon"
expect_status 1 stat "$mnt/model"
# The latter while the kernel still takes it down.
grep -qiE 'not connected|connection abort' "$dir/err" || fail "a dead mount says: $(cat "$dir/err")"
mount_store "$store" "$mnt"
cmp "$a" "$mnt/model" || fail "mounted over a dead mount"
expect_status 1 cat /proc/self/fd/5
exec 5<&-
[ "$(grep -cF " $mnt " /proc/self/mounts)" = 1 ] || fail "the dead mount is still beneath the new one"
unmount "$mnt"
# And umount takes a dead mount away.
mount_logged "$dir/log" "$store" "$mnt"
kill_both "$daemon"
unmount "$mnt"

# Unmounting while busy ends: with the mount gone, or with a word and the mount intact.
mount_logged "$dir/log" "$store" "$mnt"
exec 5<"$mnt/model"
if weightfs umount "$mnt" 2>"$dir/err"; then
	is_mounted "$mnt" && fail "umount of a busy mount reports success"
else
	grep -qE "^weightfs: umount: $mnt: is busy: in use by process $$ \([a-z_.]*\); .*--lazy" "$dir/err" ||
		fail "umount of a busy mount says: $(cat "$dir/err")"
	cmp "$a" "$mnt/model" || fail "a busy mount after umount"
	exec 5<&-
	unmount "$mnt"
fi
exec 5<&-
wait_until "the end of the daemon after umount" gone "$daemon"
# A file that is mapped and not open any more is in use, too.
mount_logged "$dir/log" "$store" "$mnt"
coproc mapper { exec "$WFS_PYTHON" -c 'import ctypes, mmap, sys
libc = ctypes.CDLL(None)
with open(sys.argv[1], "rb") as f: # what Python maps it keeps open, too
    assert libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_PRIVATE, f.fileno(), ctypes.c_long(0)) != -1
print("mapped", flush=True)
sys.stdin.read()' "$mnt/model"; }
# shellcheck disable=SC2154 # coproc sets it
pid=$mapper_PID
read -r <&"${mapper[0]}"
expect_status 1 weightfs umount "$mnt"
grep -qF "in use by process $pid (" "$dir/err" || fail "umount of a mount with a mapped file says: $(cat "$dir/err")"
eval "exec ${mapper[1]}>&-"
wait "$pid"
unmount "$mnt"

# --lazy: out of sight at once; what is open still reads, then the daemon ends.
mount_logged "$dir/log" "$store" "$mnt"
exec 5<"$mnt/model"
weightfs umount --lazy "$mnt" || fail "umount --lazy"
is_mounted "$mnt" && fail "in sight after umount --lazy"
cmp "$a" - <&5 || fail "an open file after umount --lazy"
exec 5<&-
wait_until "the end of the daemon after umount --lazy" gone "$daemon"
