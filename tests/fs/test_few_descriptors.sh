#!/bin/bash
# A daemon that may open only 40 files: an error for the surplus, EMFILE or ENFILE, and all is well once some are closed.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
pack "$dir/zoo/dtype-bf16.safetensors" "$dir/one.wfs"
for i in {0..199}; do
	cp "$dir/one.wfs" "$dir/store/m$i.wfs"
done
mkdir "$dir/mnt"
mounts+=("$dir/mnt")
# LeakSanitizer needs a descriptor of its own at the end, and would wait for it for ever.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
# The hard limit: the daemon takes all that the soft one leaves it.
(ulimit -n 40 && weightfs mount "$dir/store" "$dir/mnt") || fail "cannot mount"
"$WFS_PYTHON" - "$dir/mnt" "$dir/zoo/dtype-bf16.safetensors" <<'END' || fail "with few descriptors"
import errno, os, sys
mnt, original = sys.argv[1:]
want = open(original, "rb").read()
assert len(os.listdir(mnt)) == 200
for i in range(200):  # one after another is no problem
    assert open(f"{mnt}/m{i}", "rb").read() == want, i
pids = []
for child in range(8):  # 200 at once may be
    pid = os.fork()
    if not pid:
        fds = []
        for i in range(child * 25, child * 25 + 25):
            try:
                fds.append(os.open(f"{mnt}/m{i}", os.O_RDONLY))
            except OSError as e:
                assert e.errno in (errno.EMFILE, errno.ENFILE), e
        for fd in fds:
            assert os.pread(fd, len(want), 0) == want
        os._exit(0)
    pids.append(pid)
assert not any(os.waitpid(pid, 0)[1] for pid in pids)
for i in range(200):
    assert open(f"{mnt}/m{i}", "rb").read() == want, i
END
# With no descriptor left at all the daemon ends in good order. (fusermount3 would need some of its own.)
[ "$(id -u)" = 0 ] || exit 0
pid=$(weightfs stats "$dir/mnt" --json | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
"$WFS_PYTHON" -c 'import resource, sys; resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (3, 3))' "$pid"
kill -TERM "$pid"
wait_until "the end of the daemon" gone "$pid"
! is_mounted "$dir/mnt" || fail "a daemon without descriptors left its mount behind"
