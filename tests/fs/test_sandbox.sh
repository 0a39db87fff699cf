#!/bin/bash
# What the daemon has given up, as the kernel tells it: capabilities, new privileges, system calls, core files; of all
# its threads. It still unmounts, as root and as a plain user, and when it is killed its keeper does. Where no filter can
# be had it says so and serves.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store" "$dir/mnt"
a=$dir/zoo/dtype-bf16.safetensors
pack "$a" "$dir/store/model.wfs"
not_mounted()
{
	! is_mounted "$dir/mnt"
}

# confined PID CAPABILITIES: every thread. (ThreadSanitizer has one from before main.)
confined()
{
	local status threads='*'
	! is_thread_sanitized || threads=$1
	# shellcheck disable=SC2086 # a pattern
	for status in "/proc/$1/task"/$threads/status; do
		for want in "NoNewPrivs 1" "Seccomp 2" "CapPrm $2" "CapEff $2" "CapInh 0" "CapAmb 0"; do
			awk -v want="$want" '{ sub(":", "", $1); v = $2; sub("^0*", "", v); if (v == "") v = "0" }
				$1 " " v == want { found = 1 } END { exit !found }' "$status" ||
				fail "a thread has not: $want: $(grep -E 'Cap|NoNew|Seccomp:' "$status" | tr '\n\t' '  ')"
		done
	done
}
# One process beside the daemon, which holds neither the store nor the device.
keeper_is_modest()
{
	local held
	keeper=$(keeper_of "$1") || fail "there is no keeper"
	held=$(readlink "/proc/$keeper/fd"/* /proc/"$keeper"/cwd)
	! grep -E "$dir/store|/dev/fuse" <<<"$held" || fail "the keeper holds $held"
}
read_search=0
[ "$(id -u)" = 0 ] && read_search=4 # CAP_DAC_READ_SEARCH

mount_logged "$dir/log" "$dir/store" "$dir/mnt"
cmp "$a" "$dir/mnt/model" || fail "the bytes"
confined "$daemon" "$read_search"
keeper_is_modest "$daemon"
if ! is_sanitized; then
	[ "$(stat -c %u "/proc/$daemon/environ")" = 0 ] || fail "the daemon could be traced"
	! grep -q warning "$dir/log" || fail "the daemon says: $(cat "$dir/log")"
fi
# It unmounts at its end, and takes the keeper with it.
kill -TERM "$daemon"
wait_until "the end of the daemon" gone "$daemon"
not_mounted || fail "still mounted after SIGTERM"
[ ! -e "/proc/$keeper" ] || fail "the keeper outlives a daemon that ended in good order"

# Killed or crashed: the mount goes, with a file open, and somebody is told.
for signal in KILL SEGV; do
	mount_logged "$dir/log" "$dir/store" "$dir/mnt"
	exec 5<"$dir/mnt/model"
	kill "-$signal" "$daemon"
	wait_until "the mount of a daemon that got SIG$signal to go" not_mounted
	wait_until "the end of a daemon that got SIG$signal" gone "$daemon"
	wait_until "a word about it" grep -q "was killed; its mount was taken away" "$dir/log"
	expect_status 1 cat /proc/self/fd/5
	exec 5<&-
	: >"$dir/log"
	rm -f "$dir"/sanitizer.* # of SIGSEGV
done
# The keeper killed: the daemon serves, and leaves when told, with a word.
mount_logged "$dir/log" "$dir/store" "$dir/mnt"
kill -KILL "$(keeper_of "$daemon")"
cmp "$a" "$dir/mnt/model" || fail "the bytes without a keeper"
kill -TERM "$daemon"
wait_until "the end of the daemon without a keeper" gone "$daemon"
grep -q "cannot be unmounted" "$dir/log" || fail "nothing is said about a mount that stays: $(cat "$dir/log")"
weightfs umount "$dir/mnt" || fail "umount of what the daemon left"
# A mount that was replaced is not the keeper's: unmounted, mounted anew, and only then the old daemon ends.
mount_logged "$dir/log" "$dir/store" "$dir/mnt"
old=$daemon
exec 5<"$dir/mnt/model"
weightfs umount --lazy "$dir/mnt"
mount_logged "$dir/log" "$dir/store" "$dir/mnt"
kill -KILL "$old"
wait_until "the end of the old daemon" gone "$old"
exec 5<&-
cmp "$a" "$dir/mnt/model" || fail "the new mount after the old daemon was killed"
unmount "$dir/mnt"

# Without the right to install filters, as in some containers: with a word. (Another filter forbids seccomp here.)
"$WFS_PYTHON" "$tests/fs/forbid.py" seccomp "$WFS_BIN/weightfs" mount "$dir/store" "$dir/mnt" 2>"$dir/err" ||
	fail "cannot mount where seccomp is forbidden"
mounts+=("$dir/mnt")
cmp "$a" "$dir/mnt/model" || fail "the bytes without a filter"
grep -q "without a filter of system calls" "$dir/err" || fail "nothing is said: $(cat "$dir/err")"
unmount "$dir/mnt"

# Under valgrind, whose system calls are the daemon's. The hint: that calls on files may wait for the daemon itself.
if command -v valgrind >/dev/null && ! is_sanitized; then
	mounts+=("$dir/mnt")
	"$WFS_PYTHON" "$tests/fs/start_ready.py" "$dir/log.valgrind" valgrind --sim-hints=fuse-compatible "$WFS_BIN/weightfsd" \
		"$dir/store" "$dir/mnt" -f -o cpu=scalar,threads=1 >"$dir/pid" || fail "under valgrind: $(cat "$dir/log.valgrind")"
	cmp "$a" "$dir/mnt/model" || fail "the bytes under valgrind"
	weightfs umount "$dir/mnt" || fail "umount under valgrind"
	wait_until "the end of valgrind" test ! -e "/proc/$(cat "$dir/pid")/exe"
	grep -q 'ERROR SUMMARY: 0 errors' "$dir/log.valgrind" || fail "valgrind: $(tail -n 30 "$dir/log.valgrind")"
fi

# As a plain user: fusermount3 is the keeper's.
# shellcheck source=tests/fs/user.sh
. "$tests/fs/user.sh"
chown 65534:65534 "$dir/mnt"
for way in TERM KILL umount; do
	as 65534 "$WFS_BIN/weightfs" mount "$dir/store" "$dir/mnt" || fail "mount by a user"
	as 65534 cmp "$a" "$dir/mnt/model" || fail "a user's own mount"
	daemon=$(as 65534 "$WFS_BIN/weightfs" stats "$dir/mnt" --json | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
	confined "$daemon" 0
	keeper_is_modest "$daemon"
	if [ $way = umount ]; then
		as 65534 "$WFS_BIN/weightfs" umount "$dir/mnt" || fail "umount by a user"
	else
		kill "-$way" "$daemon"
	fi
	wait_until "the end of a user's daemon after $way" gone "$daemon"
	wait_until "the end of a user's mount after $way" not_mounted
	wait_until "the end of a user's keeper after $way" test ! -e "/proc/$keeper/exe"
done
