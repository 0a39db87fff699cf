# shellcheck shell=bash
# lib.sh - what the tests of the command share; each test_*.sh sources it first.
#
# Expected in the environment: WFS_BIN (the build directory), WFS_TMP (a directory on a real disk), WFS_PYTHON (with
# numpy). A test works in its own $dir, prints nothing when all is well, and ends at the first surprise with a line
# that says FAIL. A test that cannot run here says why and ends with skip.
set -euo pipefail
: "${WFS_BIN:?}" "${WFS_TMP:?}" "${WFS_PYTHON:?}"

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
test_name=$(basename "$0" .sh)
dir=$(mktemp -d "$WFS_TMP/$test_name.XXXXXX")
out=$dir/.out err=$dir/.err
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1

fail()
{
	echo "FAIL $test_name: $*" >&2
	exit 1
}

skip()
{
	echo "SKIP $test_name: $*"
	exit 77
}

# untried WHAT: a part that cannot run here; the others do. Root can run all of them, so there it is a failure.
untried()
{
	[ "$(id -u)" != 0 ] || fail "$*: not tried"
	echo "NOT TRIED $*"
}

weightfs()
{
	"$WFS_BIN/weightfs" "$@"
}

# expect STATUS TEXT COMMAND...: the exit status, and one line on stderr that holds TEXT; with TEXT empty, no line.
expect()
{
	local want=$1 text=$2 got=0
	shift 2
	"$@" >"$out" 2>"$err" || got=$?
	# How far a long command is, every ten seconds: on a slow machine only.
	sed -i -E '/^weightfs: (packing|unpacking|verifying|scrubbing|estimating|signing): +[0-9]+ %/d' "$err"
	[ "$got" -eq "$want" ] || fail "status $got, not $want: $*: $(head -c 600 "$err")"
	if [ -z "$text" ]; then
		[ ! -s "$err" ] || fail "unexpected message: $*: $(head -c 600 "$err")"
	else
		[ "$(wc -l <"$err")" -eq 1 ] || fail "not one line on stderr: $*: $(head -c 600 "$err")"
		grep -qF -- "$text" "$err" || fail "'$text' is not in: $(cat "$err")"
	fi
}

# ok COMMAND...: status 0, nothing on stderr.
ok()
{
	expect 0 "" "$@"
}

# says TEXT: it is on stdout of the last expect.
says()
{
	grep -qF -- "$1" "$out" || fail "'$1' is not in: $(head -c 600 "$out")"
}

# json PYTHON_EXPRESSION: true of the document d that the last expect left on stdout.
json()
{
	"$WFS_PYTHON" - "$out" "$1" <<-'END' || fail "not true of the JSON: $1: $(head -c 1500 "$out")"
		import json, sys
		d = json.load(open(sys.argv[1], errors="strict"))
		sys.exit(not eval(sys.argv[2]))
	END
}

# weights FILE [MIB [SEED]]: a safetensors file of BF16 weights.
weights()
{
	"$WFS_PYTHON" "$tests/cli/weights.py" "$@"
}

# manifest DIR: what a tree is: path, type, mode, mtime in ns, link count of files, size of files, target, SHA-256.
manifest()
{
	"$WFS_PYTHON" "$tests/cli/manifest.py" "$1"
}

same_tree()
{
	manifest "$1" >"$dir/.manifest1"
	manifest "$2" >"$dir/.manifest2"
	diff "$dir/.manifest1" "$dir/.manifest2" >"$dir/.diff" || fail "$1 and $2 differ: $(head -n 12 "$dir/.diff")"
}

no_temporaries()
{
	local left
	left=$(find "$1" -name '.*.weightfs-*.tmp')
	[ -z "$left" ] || fail "left behind: $left"
}

cleanup()
{
	local status=$?
	set +e
	chmod -R u+rwx "$dir" 2>/dev/null
	rm -rf "$dir"
	exit "$status"
}
trap cleanup EXIT
