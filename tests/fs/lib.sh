# shellcheck shell=bash
# lib.sh - what the mount tests share; each test_*.sh sources it first.
#
# Expected in the environment: WFS_BIN (the build directory: weightfs, weightfsd, tests/fs/access*), WFS_TMP (a directory
# on a real disk), WFS_PYTHON (with numpy and safetensors), WFS_CORPORA (real models; may be absent). A test works in
# its own $dir, ends at the first surprise with one FAIL line, and leaves neither mounts nor files. A test that cannot
# run here says why and ends with skip.
set -euo pipefail
: "${WFS_BIN:?}" "${WFS_TMP:?}" "${WFS_PYTHON:?}"

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
test_name=$(basename "$0" .sh)
dir=$(mktemp -d "$WFS_TMP/$test_name.XXXXXX")
mounts=()
deadline_seconds=60 # for waiting on a condition: reached only when something is broken

export LC_ALL=C.UTF-8
# Daemons have no terminal: what a sanitizer has to say of them goes to files that cleanup finds.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:log_path=$dir/sanitizer TSAN_OPTIONS=${TSAN_OPTIONS-}:log_path=$dir/sanitizer
export UBSAN_OPTIONS=${UBSAN_OPTIONS-}:log_path=$dir/sanitizer
export PYTHONPATH=$tests/fs PYTHONDONTWRITEBYTECODE=1

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

weightfs()
{
	"$WFS_BIN/weightfs" "$@"
}

access()
{
	"$WFS_BIN/tests/fs/access" "$@"
}

access_many()
{
	"$WFS_BIN/tests/fs/access_many" "$@"
}

# mount_store STORE MNT [ARG...]: returns when the mount serves, because the command does.
mount_store()
{
	local store=$1 mnt=$2
	shift 2
	mkdir -p "$mnt" 2>/dev/null || true # a dead mount may be in the way
	mounts+=("$mnt")
	weightfs mount "$store" "$mnt" "$@" || fail "cannot mount $store"
	is_mounted "$mnt" || fail "the mount command is done but $mnt is no mount"
}

# mount_logged LOG STORE MNT [ARG...]: in the foreground, with its messages in LOG and its process in $daemon. Ready when
# it says so on its notification socket.
mount_logged()
{
	local log=$1 mnt=$3
	shift
	mkdir -p "$mnt" 2>/dev/null || true
	mounts+=("$mnt")
	# shellcheck disable=SC2034 # for the tests
	daemon=$("$WFS_PYTHON" "$tests/fs/start_ready.py" "$log" "$WFS_BIN/weightfs" mount "$@" -f) ||
		fail "the foreground daemon is not ready: $(cat "$log")"
	is_mounted "$mnt" || fail "ready was said before $mnt is a mount: $(tail -n 3 "$log")"
}

is_mounted()
{
	grep -qF " $(mount_path "$1") fuse.weightfs " /proc/self/mounts
}

# As /proc/mounts writes it.
mount_path()
{
	realpath -m -- "$1" 2>/dev/null | sed 's/\\/\\134/g; s/ /\\040/g; s/\t/\\011/g'
}

# Also waits for the daemon's end, so that a leak it reports there is seen.
unmount()
{
	local pid
	pid=$(weightfs stats "$1" --json 2>/dev/null | sed -n 's/.*"pid":\([0-9]*\).*/\1/p') || true # dead: no daemon
	weightfs umount "$1" || fail "cannot unmount $1"
	if is_mounted "$1"; then
		fail "$1 is still mounted after weightfs umount"
	fi
	[ -z "$pid" ] || wait_until "the end of the daemon of $1" gone "$pid"
}

# wait_until WHAT COMMAND...: polls; no time is waited when the condition holds already.
wait_until()
{
	local what=$1 end=$((SECONDS + deadline_seconds))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "$deadline_seconds s went by without: $what"
		"$WFS_PYTHON" -c 'import select; select.select([], [], [], 0.05)'
	done
}

# Whether these programs carry a sanitizer, which takes memory of its own; that of threads is 20 times slower, too.
is_sanitized()
{
	grep -qE '__[at]san_init' "$WFS_BIN/weightfsd"
}
is_thread_sanitized()
{
	grep -q '__tsan_init' "$WFS_BIN/weightfsd"
}

# zoo DIR: the zoo's files; a part of them, spread over all kinds, where each takes long.
zoo()
{
	local nr=0 file
	"$WFS_PYTHON" "$tests/zoo/zoo.py" "$1"
	if is_thread_sanitized; then
		for file in "$1"/*; do
			nr=$((nr + 1))
			[ $((nr % 7)) -eq 0 ] || rm "$file"
		done
	fi
}

# A daemon has ended, whether or not its parent has noticed: in a container process 1 may never. Another program may have
# got its number since.
gone()
{
	local state
	state=$(sed -n 's/.* (weightfsd) //; T; s/ .*//; p' "/proc/$1/stat" 2>/dev/null) || return 0
	[ -z "$state" ] || [ "$state" = Z ]
}

# The process that would take the mount of daemon PID away when that is gone.
keeper_of()
{
	pgrep -P "$1" weightfs-keeper
}

# kill_both DAEMON: nobody is left who could take the mount away.
kill_both()
{
	kill -KILL "$(keeper_of "$1")" "$1"
	wait_until "the end of the daemon" gone "$1"
}

# expect_status N COMMAND...
expect_status()
{
	local want=$1 got=0
	shift
	"$@" >"$dir/out" 2>"$dir/err" || got=$?
	[ "$got" -eq "$want" ] || fail "status $got, not $want: $*: $(head -c 500 "$dir/err")"
}

# pack FILE CONTAINER: quietly, one file.
pack()
{
	weightfs pack "$1" -o "$2" >/dev/null || fail "cannot pack $1"
}

same_tree()
{
	"$WFS_PYTHON" "$tests/fs/same_tree.py" "$1" "$2" || fail "$1 and $2 differ"
}

cleanup()
{
	local status=$? mnt
	set +e
	! declare -F at_end >/dev/null || at_end # what a test has to put back
	if compgen -G "$dir/sanitizer.*" >/dev/null; then
		head -n 60 "$dir"/sanitizer.* >&2
		echo "FAIL $test_name: a sanitizer found something" >&2
		status=1
	fi
	for mnt in "${mounts[@]}"; do
		while is_mounted "$mnt"; do
			umount -l "$mnt" 2>/dev/null || fusermount3 -uzq "$mnt" || break
		done
	done
	rm -rf "$dir"
	exit "$status"
}
trap cleanup EXIT
