#!/bin/bash
# A mount that was taken out of sight while the store hangs: SIGTERM ends the daemon, and whoever waits for an answer gets
# an error, without the store's answer.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"
# A daemon that leaves a hanging request behind cannot wait for all threads of libfuse.
export TSAN_OPTIONS=$TSAN_OPTIONS:report_thread_leaks=0

[ "$(id -u)" = 0 ] || skip "needs root to mount a file system of its own"
# In a mount namespace of its own, for the control files of FUSE.
if [ -z "${WFS_TEST_UNSHARED-}" ] && unshare --mount --propagation private true 2>/dev/null; then
	WFS_TEST_UNSHARED=1 unshare --mount --propagation private bash "$0"
	exit
fi
controls=/sys/fs/fuse/connections
if [ -n "${WFS_TEST_UNSHARED-}" ] && [ "$(stat -f -c %T $controls)" != fusectl ]; then
	mount -t fusectl none $controls || skip "cannot mount fusectl"
fi
[ "$(stat -f -c %T $controls)" = fusectl ] || skip "no fusectl is mounted, and no mount namespace can be made here"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/files" "$dir/slow"
pack "$dir/zoo/values-rows-of-unlike-scale.safetensors" "$dir/files/model.wfs"
mkfifo "$dir/ready"
"$WFS_PYTHON" "$tests/fs/slow_store.py" "$dir/files" "$dir/slow" "$dir/hang" >"$dir/ready" &
slow=$!
read -r word <"$dir/ready"
[ "$word" = ready ] || fail "the slow store does not start"
at_end()
{
	rm -f "$dir/hang"
	umount -l "$dir/slow"
	kill "$slow" 2>/dev/null
}

mount_logged "$dir/log" "$dir/slow" "$dir/mnt" -o io_timeout=0
head -c 1000 "$dir/mnt/model" >/dev/null || fail "before it hangs"
touch "$dir/hang"
cat "$dir/mnt/model" >/dev/null 2>"$dir/err" &
reader=$!
wait_until "a read that hangs in the store" test -e "$dir/hang.held"
weightfs umount --lazy "$dir/mnt" || fail "umount --lazy while the store hangs"
kill -TERM "$daemon"
ended()
{
	! kill -0 "$reader" 2>/dev/null || grep -q ') Z' "/proc/$reader/stat"
}
wait_until "the end of a reader whose mount is out of sight" ended
wait "$reader" && fail "a reader of a store that hangs succeeds"
wait_until "the end of the daemon while the store hangs" gone "$daemon"
