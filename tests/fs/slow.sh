# shellcheck shell=bash
# slow.sh - a file system whose faults come and go at will (slow_store.py), for tests to have a store on; sourced after
# lib.sh, or load.sh.
# shellcheck disable=SC2154 # dir and tests are theirs
[ "$(id -u)" = 0 ] || skip "needs root to mount a file system of its own"

# slow_store FOLDER MNT FAULTS [cached]: start it; with the test it ends. It is not waited for: it goes when it is
# unmounted, and cleanup unmounts.
slow_store()
{
	local word
	slow_mnt=$2 slow_faults=$3
	mkfifo "$dir/slow.ready"
	"$WFS_PYTHON" "$tests/fs/slow_store.py" "$@" >"$dir/slow.ready" &
	slow=$!
	read -r word <"$dir/slow.ready"
	[ "$word" = ready ] || fail "the slow store does not start"
}
at_end()
{
	[ -n "${slow-}" ] || return 0
	rm -f "$slow_faults"
	umount -l "$slow_mnt"
	kill "$slow" 2>/dev/null
}
