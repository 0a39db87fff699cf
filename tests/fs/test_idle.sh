#!/bin/bash
# A daemon that nobody asks does nothing: its threads are not woken more than a few times a second.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

is_sanitized && skip "a sanitizer has threads of its own"
"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
pack "$dir/zoo/values-tied.safetensors" "$dir/store/model.wfs"
mount_logged "$dir/log" "$dir/store" "$dir/mnt"
access_many "$dir/zoo/values-tied.safetensors" "$dir/mnt/model" threads-many-fds
switches()
{
	cat /proc/"$daemon"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'
}
# What was asked may still be winding down: the least of five spans of half a second counts.
least=1000000
for _ in 1 2 3 4 5; do
	before=$(switches)
	"$WFS_PYTHON" -c 'import select; select.select([], [], [], 0.5)'
	got=$(($(switches) - before))
	[ "$got" -ge "$least" ] || least=$got
done
[ "$least" -le 5 ] || fail "woken $least times in half a second of idleness"
unmount "$dir/mnt"
