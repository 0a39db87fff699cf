#!/bin/bash
# A store that stops answering: EIO after io_timeout and only for what waits on it, all well afterwards, SIGTERM bounded.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"
# A daemon that leaves a hanging request behind cannot wait for all threads of libfuse.
export TSAN_OPTIONS=$TSAN_OPTIONS:report_thread_leaks=0

# shellcheck source=tests/fs/slow.sh
. "$tests/fs/slow.sh"
"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/files" "$dir/slow"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
pack "$a" "$dir/files/model.wfs"
cp "$dir/files/model.wfs" "$dir/files/other.wfs"
cp -p "$dir/zoo/text.txt" "$dir/files/plain.txt"
slow_store "$dir/files" "$dir/slow" "$dir/hang"
cmp "$dir/files/model.wfs" "$dir/slow/model.wfs" || fail "the slow store itself"

mount_logged "$dir/log" "$dir/slow" "$dir/mnt" -o io_timeout=2
head -c 1000 "$dir/mnt/model" | cmp - <(head -c 1000 "$a") || fail "before it hangs"
touch "$dir/hang"
expect_status 1 cat "$dir/mnt/model"
grep -qi 'input/output error' "$dir/err" || fail "a hanging store gives: $(cat "$dir/err")"
expect_status 1 cat "$dir/mnt/plain.txt"
# The kernel asks again, page by page, for what it did not get, and is answered at once, not after another io_timeout:
# these are the reads that have failed although none has come back from the store.
counter()
{
	weightfs stats "$dir/mnt" --json >"$dir/stats" || fail "stats while the store hangs"
	sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$dir/stats"
}
[ "$(counter read_errors)" -ge 2 ] || fail "asked again, a hanging store is waited for again: $(cat "$dir/stats")"
# The mount itself lives.
[ "$(stat -c %s "$dir/mnt/model")" = "$(stat -c %s "$a")" ] || fail "attributes while the store hangs"
[ "$(counter timeouts)" -ge 2 ] || fail "stats count $(counter timeouts) timeouts"
rm "$dir/hang"
wait_until "the file after the store answers again" cmp -s "$a" "$dir/mnt/model"
wait_until "the plain file after the store answers again" cmp -s "$dir/zoo/text.txt" "$dir/mnt/plain.txt"
access "$a" "$dir/mnt/model" || fail "after the store answers again"

# SIGTERM while a read hangs, and while only the daemon itself still waits for the store: the mount goes at once, the
# daemon a while later, without the store's answer.
not_mounted()
{
	! is_mounted "$dir/mnt"
}
# Nor does SIGKILL leave anybody waiting: the thread that hangs keeps the device, but the keeper knows.
for first in killed signal error; do
	rm -f "$dir/hang.held"
	touch "$dir/hang"
	cat "$dir/mnt/other" >/dev/null 2>&1 &
	reader=$!
	wait_until "a read that hangs in the store" test -e "$dir/hang.held"
	if [ $first = error ]; then
		wait "$reader" && fail "a reader of a store that hangs succeeds"
	fi
	if [ $first = killed ]; then
		kill -KILL "$daemon"
	else
		kill -TERM "$daemon"
	fi
	wait_until "the end of the mount while the store hangs" not_mounted
	if [ $first != error ]; then
		wait "$reader" && fail "a reader of a store that hangs succeeds"
	fi
	# What is mounted there in the meantime is not the leaving daemon's, though it may have the same path and number.
	leaving=$daemon
	mount_logged "$dir/log2" "$dir/files" "$dir/mnt"
	[ $first != killed ] || grep -q "the daemon was killed; its mount was taken away" "$dir/log" || fail "log: $(cat "$dir/log")"
	wait_until "the end of the daemon while the store hangs" gone "$leaving"
	cmp "$a" "$dir/mnt/model" || fail "the new mount, once the old daemon has left"
	unmount "$dir/mnt"
	rm "$dir/hang"
	[ $first = error ] || mount_logged "$dir/log" "$dir/slow" "$dir/mnt" -o io_timeout=2
done
