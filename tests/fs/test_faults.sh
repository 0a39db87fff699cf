#!/bin/bash
# A store with every fault a disk or a file server can have, for each kind of request: the right error in bounded time,
# right bytes before and after, and a daemon that can still be told to go.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"
# A daemon that leaves a hanging request behind cannot wait for all threads of libfuse.
export TSAN_OPTIONS=$TSAN_OPTIONS:report_thread_leaks=0

# shellcheck source=tests/fs/slow.sh
. "$tests/fs/slow.sh"
"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/files" "$dir/bad" "$dir/mnt"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
pack "$a" "$dir/files/model.wfs"
cp "$dir/files/model.wfs" "$dir/files/other.wfs"
cp -p "$dir/zoo/text.txt" "$dir/files/plain.txt"
for i in {100..299}; do
	cp "$dir/zoo/text.txt" "$dir/files/many$i"
done
slow_store "$dir/files" "$dir/bad" "$dir/faults"
counter()
{
	weightfs stats "$dir/mnt" --json >"$dir/stats" || fail "stats while the store is faulty"
	sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$dir/stats"
}
# have LINE...: the store has these faults from now on.
have()
{
	rm -f "$dir/faults.held"
	printf '%s\n' "$@" >"$dir/faults.new"
	mv "$dir/faults.new" "$dir/faults"
}
well()
{
	rm -f "$dir/faults"
	wait_until "the file after $1" cmp -s "$a" "$dir/mnt/model"
	wait_until "the plain file after $1" cmp -s "$dir/zoo/text.txt" "$dir/mnt/plain.txt"
	[ "$(find "$dir/mnt" -type f | wc -l)" = 203 ] || fail "the listing after $1"
}
# fails MESSAGE COMMAND...: with this error and not in any other way.
fails()
{
	local got=0
	timeout -s KILL "$deadline_seconds" "${@:2}" >"$dir/out" 2>"$dir/err" || got=$?
	[ "$got" = 1 ] || fail "status $got from ${*:2} with $(cat "$dir/faults" 2>/dev/null): $(head -c 300 "$dir/err")"
	grep -qi "$1" "$dir/err" || fail "not '$1' from ${*:2}: $(cat "$dir/err")"
}
# The kernel's pages of the mount stay out of it.
direct=(dd iflag=direct bs=1M of=/dev/null status=none)

# ---- errors. The daemon's cache is small beside the files: 200 names, no block of `other` is ever read before.
mount_logged "$dir/log" "$dir/bad" "$dir/mnt" -o io_timeout=1,entry_timeout=0
well "mounting"
# To the kernel, ENOSYS is how a FUSE store says that it need not be told of opens, for ever.
opens()
{
	[ $error = ENOSYS ] && [[ $1 == open* ]]
}
for error in EIO ESTALE ENOSYS ENOTCONN; do
	says='input/output error'
	[ $error != ESTALE ] || says='input/output error\|stale file handle'
	for request in lookup open read; do
		opens $request && continue
		have "$request $error"
		fails "$says" "${direct[@]}" if="$dir/mnt/other"
		well "$request $error"
	done
	for request in lookup getattr open; do
		opens $request && continue
		have "$request $error"
		fails "$says" cat "$dir/mnt/plain.txt"
		well "$request $error"
	done
	for request in opendir readdir; do
		have "$request $error"
		opens $request && continue
		fails "$says" find "$dir/mnt" -maxdepth 0 -empty
		well "$request $error"
	done
	have "statfs $error"
	if [ $error = ENOSYS ]; then
		timeout -s KILL "$deadline_seconds" stat -f "$dir/mnt" >"$dir/out" 2>&1 || true
	else
		fails "$says" stat -f "$dir/mnt"
	fi
	well "statfs $error"
done
gone "$daemon" && fail "the daemon died of an error"
[ "$(grep -c 'cannot read other' "$dir/log")" -le 4 ] || fail "a read error is logged again and again: $(cat "$dir/log")"
[ "$(counter bad_blocks)" = 0 ] || fail "errors of the store count as bad blocks"
# Reads that come short are gone on with.
have "read short"
"${direct[@]}" if="$dir/mnt/other" || fail "short reads"
cmp "$a" "$dir/mnt/other" || fail "the bytes of short reads"
well "short reads"

# ---- no answer: EIO after io_timeout, whatever the request.
for request in lookup getattr open readdir statfs read; do
	have "$request hang"
	case $request in
	readdir) fails 'input/output error' find "$dir/mnt" -maxdepth 0 -empty ;;
	statfs) fails 'input/output error' stat -f "$dir/mnt" ;;
	read) fails 'input/output error' "${direct[@]}" if="$dir/mnt/plain.txt" ;;
	*) fails 'input/output error' cat "$dir/mnt/plain.txt" ;;
	esac
	[ -e "$dir/faults.held" ] || fail "no $request was held back"
	well "a $request without an answer"
done
# So many at once that every thread would hang: all are told, and those who come later at once, without new timeouts.
exec 8<"$dir/mnt/other"
have "all hang"
"$WFS_PYTHON" - "$dir/mnt" <<'END' || fail "200 requests at once to a store that hangs"
import errno, os, sys, threading
got = []
def look(name):
    try:
        os.stat(f"{sys.argv[1]}/{name}")
        got.append(0)
    except OSError as e:
        got.append(e.errno)
threads = [threading.Thread(target=look, args=(f"many{i}",)) for i in range(100, 300)]
for t in threads: t.start()
for t in threads: t.join(60)
if got != [errno.EIO] * 200:
    sys.exit(f"{len(got)} answers: {sorted(set(got))}")
END
before=$(counter timeouts)
for i in {100..119}; do
	fails 'input/output error' cat "$dir/mnt/many$i"
	fails 'input/output error' stat -f "$dir/mnt"
	fails 'input/output error' "$WFS_PYTHON" -c 'import fcntl, mmap, os
fcntl.fcntl(8, fcntl.F_SETFL, os.O_DIRECT)
os.preadv(8, [mmap.mmap(-1, 4096)], 0)'
done
exec 8<&-
[ "$(counter timeouts)" = "$before" ] || fail "a store in which 200 requests hang is asked again"
well "200 requests without an answer"

# ---- unmounted while a read hangs that was given up: the daemon ends without the store.
have "read hang"
fails 'input/output error' "${direct[@]}" if="$dir/mnt/plain.txt"
[ -e "$dir/faults.held" ] || fail "no read was held back"
weightfs umount "$dir/mnt" || fail "umount while the store hangs"
wait_until "the end of a daemon whose mount is gone while the store hangs" gone "$daemon"
rm "$dir/faults"

# ---- the store's daemon is killed: EIO, and this mount is not taken for a dead one.
mount_logged "$dir/log" "$dir/bad" "$dir/mnt" -o io_timeout=1,entry_timeout=0
cmp "$a" "$dir/mnt/model" || fail "before the store dies"
kill -KILL "$slow"
store_is_dead()
{
	! stat "$dir/bad" 2>/dev/null
}
wait_until "the end of the store" store_is_dead
fails 'input/output error' cat "$dir/mnt/many100"
expect_status 1 weightfs mount "$dir/files" "$dir/mnt"
is_mounted "$dir/mnt" || fail "a mount whose store is gone was taken away: $(cat "$dir/err")"
gone "$daemon" && fail "the daemon died with its store"
# The store's path comes to life with another store: this daemon keeps to its own.
umount -l "$dir/bad"
cp "$dir/zoo/text.txt" "$dir/bad/many100"
fails 'input/output error' cat "$dir/mnt/many100"
unmount "$dir/mnt"
