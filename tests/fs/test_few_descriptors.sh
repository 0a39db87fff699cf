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
ulimit -S -n 40
mount_store "$dir/store" "$dir/mnt"
ulimit -S -n "$(ulimit -H -n)"
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
