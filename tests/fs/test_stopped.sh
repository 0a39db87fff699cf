#!/bin/bash
# A daemon that is stopped (SIGSTOP) or was killed: whoever looks at its mount from outside gets an answer in bounded time
# that says what to do, and what a killed one has left goes away.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
a=$dir/zoo/dtype-bf16.safetensors
mkdir "$dir/store" "$dir/mnt" "$dir/other" "$dir/third"
pack "$a" "$dir/store/model.wfs"
store=$dir/store

at_end()
{
	[ -z "${daemon-}" ] || gone "$daemon" || kill -KILL "$daemon"
}
# refused STATUS COMMAND...: ends by itself, with one line that names the process.
refused()
{
	expect_status "$1" timeout -s KILL "$deadline_seconds" "${@:2}"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "not one line for: ${*:2}: $(cat "$dir/err")"
	grep -q "process $daemon" "$dir/err" || fail "the process is not named by: ${*:2}: $(cat "$dir/err")"
}

# Over another directory, and over the store itself, where the command must not look into the store first.
for mnt in "$dir/mnt" "$store"; do
	mount_logged "$dir/log" "$store" "$mnt" -o entry_timeout=0
	kill -STOP "$daemon"
	refused 1 "$WFS_BIN/weightfs" mount "$store" "$mnt"
	grep -qF "kill -KILL $daemon" "$dir/err" || fail "what to do is not said: $(cat "$dir/err")"
	refused 1 "$WFS_BIN/weightfs" stats "$mnt"
	grep -qF "kill -CONT $daemon" "$dir/err" || fail "stats do not say what to do: $(cat "$dir/err")"
	# Mounts elsewhere leave its socket alone, however many.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		mount_store "$dir/other" "$dir/third"
		unmount "$dir/third"
	done
	refused 1 "$WFS_BIN/weightfs" stats "$mnt"
	is_mounted "$mnt" || fail "a stopped mount is gone after a refusal"
	# Either way out helps: on with it, or kill it and mount again.
	kill -CONT "$daemon"
	cmp "$a" "$mnt/model" || fail "after SIGCONT"
	kill -STOP "$daemon"
	kill -KILL "$daemon"
	wait_until "the end of a stopped daemon after SIGKILL" gone "$daemon"
	mount_store "$store" "$mnt"
	cmp "$a" "$mnt/model" || fail "mounted again"
	unmount "$mnt"
done

# The sockets of daemons: those of killed ones go with the next mount, wherever it is; those of living ones stay.
[ "$(id -u)" = 0 ] && sockets=/run/weightfs || export XDG_RUNTIME_DIR=$dir sockets=$dir/weightfs
socket_of()
{
	awk -v mnt="$1" -v dir="$sockets" '$5 == mnt { sub(":", "-", $3); print dir "/" $3 ".sock" }' /proc/self/mountinfo
}
mount_store "$store" "$dir/other"
mount_logged "$dir/log" "$store" "$dir/mnt"
killed=$(socket_of "$dir/mnt")
[ -S "$killed" ] || fail "the socket $killed is not there"
# A stranger's files stay.
touch "$sockets/kept" "$sockets/1-2.sock"
kill_both "$daemon"
mount_store "$store" "$dir/third"
[ ! -e "$killed" ] || fail "the socket of a killed daemon is left: $killed"
for mnt in "$dir/other" "$dir/third"; do
	[ -S "$(socket_of "$mnt")" ] || fail "the socket of a living daemon is gone"
	weightfs stats "$mnt" >/dev/null || fail "stats of $mnt"
done
[ -e "$sockets/kept" ] && [ -e "$sockets/1-2.sock" ] || fail "a file that is no socket of ours was removed"
rm "$sockets/kept" "$sockets/1-2.sock"
unmount "$dir/mnt"
for mnt in "$dir/other" "$dir/third"; do
	gone_socket=$(socket_of "$mnt")
	unmount "$mnt"
	[ ! -e "$gone_socket" ] || fail "the socket $gone_socket outlives its daemon"
done
