# shellcheck shell=bash
# load.sh - what the tests of the read path share, beside lib.sh, which it sources. They run on $daemon (mount_logged).
# shellcheck source=tests/fs/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# shards DIR MIB DTYPE...: models shard-1.safetensors and so on in DIR/src, their containers in DIR/store.
shards()
{
	local file
	"$WFS_PYTHON" "$tests/fs/shards.py" "$1/src" "${@:2}" || fail "cannot make shards"
	mkdir -p "$1/store"
	for file in "$1"/src/*; do
		pack "$file" "$1/store/${file##*/}.wfs"
	done
}

# bounded SECONDS PROGRAM [ARG...]: a program of tests/fs that must end in time. A sanitizer gets ten times as much.
bounded()
{
	local seconds=$1 status=0
	! is_sanitized || seconds=$((seconds * 10))
	"$WFS_PYTHON" "$tests/fs/bounded.py" "$seconds" "$daemon" "$WFS_BIN/tests/fs/$2" "${@:3}" || status=$?
	[ $status -eq 0 ] || fail "$2 ends with status $status ($(tail -n 3 "$dir/log" 2>/dev/null))"
}

# nr NAME MNT: a number of the mount's statistics; 0 when it has none of that name.
nr()
{
	weightfs stats "$2" --json |
		"$WFS_PYTHON" -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], 0))' "$1"
}

# settle MNT: returns when nothing is decoded any more.
settle()
{
	settled=
	wait_until "the daemon's rest" is_settled "$1"
}
is_settled()
{
	local before=$settled
	settled=$(nr blocks_decoded "$1")/$(nr ahead_blocks "$1")
	[ "$settled" = "$before" ]
}

# blocks FILE...: how many blocks these containers have.
blocks()
{
	local file sum=0
	for file; do
		sum=$((sum + $(weightfs info "$file" --json |
			"$WFS_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["blocks"])')))
	done
	echo $sum
}

# make_cold FILE...: out of the page cache, where the file system has one.
make_cold()
{
	"$WFS_PYTHON" -c '
import os, sys
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)' "$@"
}

# variants: the decoders that this machine has.
variants()
{
	echo scalar
	! grep -qw ssse3 /proc/cpuinfo || echo ssse3
	! grep -qw avx2 /proc/cpuinfo || echo avx2
	! grep -qw avx512_vbmi2 /proc/cpuinfo || echo avx512vbmi
	[ "$(uname -m)" != aarch64 ] || echo neon
}
