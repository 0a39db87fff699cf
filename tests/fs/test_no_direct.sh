#!/bin/bash
# A store that refuses to be read around the page cache, at once or only when it is read: the daemon reads through it,
# and every byte is right.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

# shellcheck source=tests/fs/slow.sh
. "$tests/fs/slow.sh"
"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/files" "$dir/odd"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
pack "$a" "$dir/files/model.wfs"
slow_store "$dir/files" "$dir/odd" "$dir/faults" cached

# told FAULT DIRECT: what the statistics say of reads around the page cache under this fault.
told()
{
	echo "$1" >"$dir/faults"
	mount_logged "$dir/log" "$dir/odd" "$dir/mnt"
	cmp "$a" "$dir/mnt/model" || fail "$1: the bytes"
	access "$a" "$dir/mnt/model" || fail "$1: the bytes"
	weightfs stats "$dir/mnt" --json | grep -q "\"store_direct\":\"$2\"" || fail "$1: $(weightfs stats "$dir/mnt")"
	[ "$(nr read_errors "$dir/mnt")" = 0 ] || fail "$1: reads failed"
	[ "$1" = "nothing at all" ] || [ "$(nr direct_bytes_read "$dir/mnt")" = 0 ] || fail "$1: read around it all the same"
	[ "$1" != "nothing at all" ] || [ "$(nr direct_bytes_read "$dir/mnt")" -gt 0 ] || fail "never tried"
	unmount "$dir/mnt"
}
told "nothing at all" works
told "direct-open EINVAL" refused
told "direct-read EINVAL" works
told "direct-read EIO" works
told "direct-read EOPNOTSUPP" works
