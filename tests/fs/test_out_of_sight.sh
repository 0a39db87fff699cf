#!/bin/bash
# A mount that was taken out of sight while the store hangs: SIGTERM ends the daemon, and whoever waits for an answer gets
# an error, without the store's answer.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"
# A daemon that leaves a hanging request behind cannot wait for all threads of libfuse.
export TSAN_OPTIONS=$TSAN_OPTIONS:report_thread_leaks=0

# shellcheck source=tests/fs/controls.sh
. "$tests/fs/controls.sh"
# shellcheck source=tests/fs/slow.sh
. "$tests/fs/slow.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/files" "$dir/slow"
pack "$dir/zoo/values-rows-of-unlike-scale.safetensors" "$dir/files/model.wfs"
slow_store "$dir/files" "$dir/slow" "$dir/hang"

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
