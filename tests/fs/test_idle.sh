#!/bin/bash
# A daemon that nobody asks does nothing: no processor time, and its threads are hardly ever woken. Also when readers that
# it decoded ahead for have gone away in the middle.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

is_sanitized && skip "a sanitizer has threads of its own"
shards "$dir" 64 BF16 F32
model=$dir/src/shard-1.safetensors other=$dir/src/shard-2.safetensors

# Two lines: ticks of processor time, and how often its threads were switched to and from.
used()
{
	sed 's/.*) //' "/proc/$daemon/stat" | awk '{ print $12 + $13 }'
	cat /proc/"$daemon"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'
}
# What was asked may still be winding down: one of ten spans of half a second must be idle. A tick is 10 ms.
check_idle()
{
	local before after ticks switches seen=
	for _ in {1..10}; do
		mapfile -t before < <(used)
		"$WFS_PYTHON" -c 'import select; select.select([], [], [], 0.5)'
		mapfile -t after < <(used)
		ticks=$((after[0] - before[0])) switches=$((after[1] - before[1]))
		[ $ticks -gt 0 ] || [ $switches -gt 5 ] || return 0
		seen+=" $ticks/$switches"
	done
	fail "after $1: ticks and switches in half seconds of idleness:$seen"
}

mount_logged "$dir/log" "$dir/store" "$dir/mnt"
check_idle "mounting"
bounded 60 access_many "$model" "$dir/mnt/${model##*/}" threads-many-fds
check_idle "many threads"
# Readers in order that stop in the middle: one that keeps its descriptor, one that closes it, one past the page cache.
exec 5<"$dir/mnt/${other##*/}"
head -c 20000000 <&5 | cmp -n 20000000 - "$other" || fail "the bytes"
check_idle "a stream that stands still"
head -c 30000000 "$dir/mnt/${model##*/}" | cmp -n 30000000 - "$model" || fail "the bytes"
check_idle "a stream that was given up"
dd if="$dir/mnt/${other##*/}" iflag=direct bs=1M skip=30 count=20 status=none |
	cmp -n 20971520 - <(tail -c +31457281 "$other") || fail "the bytes"
check_idle "a direct stream that was given up"
exec 5<&-
check_idle "closing"
unmount "$dir/mnt"
