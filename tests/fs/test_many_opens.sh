#!/bin/bash
# 20,000 times open, map, close; hundreds of files open and read at once: no descriptor lost, memory under the cap.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
names=(dtype-bf16 dtype-f32 dtype-f16 dtype-u8 dtype-i64 dtype-f64)
for name in "${names[@]}"; do
	pack "$dir/zoo/$name.safetensors" "$dir/store/$name.wfs"
done
cp -p "$dir/zoo/config.json" "$dir/store"
for i in {0..599}; do
	cp "$dir/store/${names[i % 6]}.wfs" "$dir/store/copy-$i.wfs"
done
mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o cache=32M
before=$(find "/proc/$daemon/fd" -type l | wc -l)
"$WFS_PYTHON" - "$dir" "${names[@]}" <<'END' || fail "opening"
import mmap, os, sys
top, *names = sys.argv[1:]
want = {n: open(f"{top}/zoo/{n}.safetensors", "rb").read() for n in names}
for i in range(20000):
    name = names[i % len(names)]
    fd = os.open(f"{top}/mnt/{name}", os.O_RDONLY)
    view = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    os.close(fd)
    at = i * 7919 % len(view)
    assert view[at] == want[name][at], (name, at)
    view.close()
    if i % 100 == 0:
        os.listdir(f"{top}/mnt")
# 600 files open at once, read in turn.
fds = [os.open(f"{top}/mnt/copy-{i}", os.O_RDONLY) for i in range(600)]
for turn in range(4):
    for i, fd in enumerate(fds):
        data = want[names[i % 6]]
        off = len(data) // 4 * turn
        assert os.pread(fd, 100000, off) == data[off : off + 100000], i
END
# Some files are kept open for a while, none for good. The kernel tells of closes when it likes.
has_closed()
{
	[ "$(find "/proc/$daemon/fd" -type l | wc -l)" -le $((before + 128)) ]
}
wait_until "the daemon's closing what was closed" has_closed
# The cap, a constant for code, threads and buffers; far below the 400 MB that were decoded.
peak=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$daemon/status")
is_sanitized || [ "$peak" -le $((32 + 160)) ] || fail "the daemon took $peak MiB with a cache of 32"
unmount "$dir/mnt"
