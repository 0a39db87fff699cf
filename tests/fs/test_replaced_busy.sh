#!/bin/bash
# Containers are replaced and overwritten while others read them: each open sees one whole version or EIO, never a mixture.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store" "$dir/versions"
names=(dtype-f32 dtype-bf16 phase-bf16-1 values-every-16-bit-pattern)
for name in "${names[@]}"; do
	pack "$dir/zoo/$name.safetensors" "$dir/versions/$name.wfs"
done
cp "$dir/versions/dtype-f32.wfs" "$dir/store/model.wfs"
cp "$dir/versions/dtype-f32.wfs" "$dir/store/in-place.wfs"
for options in entry_timeout=0 entry_timeout=1; do
	mount_store "$dir/store" "$dir/mnt" -o "$options,cache=16M"
	"$WFS_PYTHON" - "$dir" "${names[@]}" <<'END' || fail "a mixture of versions ($options)"
import errno, os, random, shutil, sys, time
top, *names = sys.argv[1:]
want = {os.path.getsize(p): open(p, "rb").read() for p in (f"{top}/zoo/{n}.safetensors" for n in names)}
assert len(want) == len(names)

def read_whole(path, rng):
    """One of the versions in pieces of any order, or EIO. True: whole."""
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        pieces = list(range(0, size, 50000))
        rng.shuffle(pieces)
        for off in pieces:
            data = os.pread(fd, 50000, off)
            assert want[size][off : off + len(data)] == data, f"{path}: wrong bytes at {off} of {size}"
        return os.pread(fd, 10, size) == b""
    finally:
        os.close(fd)

def reader(seed):
    rng, whole, refused = random.Random(seed), 0, 0
    end = time.monotonic() + 30
    while not os.path.exists(f"{top}/stop") and time.monotonic() < end:
        for name in ("model", "in-place"):
            try:
                whole += read_whole(f"{top}/mnt/{name}", rng)
            except OSError as e:
                # ESTALE: replaced between look-up and open. EIO, EOPNOTSUPP, ENOENT: half written in place.
                allowed = (errno.ESTALE,) if name == "model" else (errno.ESTALE, errno.EIO, errno.EOPNOTSUPP, errno.ENOENT)
                assert e.errno in allowed, (name, e)
                refused += 1
    assert whole > 0, f"no version could be read at all, {refused} refusals"

pids = []
for seed in range(4):
    pid = os.fork()
    if not pid:
        try:
            reader(seed)
        except BaseException as e:
            print("FAIL", repr(e), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    pids.append(pid)
rng = random.Random(99)
for turn in range(150):
    version = f"{top}/versions/{rng.choice(names)}.wfs"
    shutil.copyfile(version, f"{top}/new")
    os.rename(f"{top}/new", f"{top}/store/model.wfs")
    if turn % 3 == 0:
        with open(version, "rb") as src, open(f"{top}/store/in-place.wfs", "r+b") as dst:
            dst.truncate(0)
            while piece := src.read(100000):
                dst.write(piece)
                dst.flush()
    os.listdir(f"{top}/mnt")
open(f"{top}/stop", "w").close()
failed = [pid for pid in pids if os.waitpid(pid, 0)[1]]
os.unlink(f"{top}/stop")
assert not failed
# When all is quiet, both show their last version.
deadline = time.monotonic() + 30
for name in ("model", "in-place"):
    while True:
        stored = os.path.getsize(f"{top}/store/{name}.wfs")
        now = [n for n in names if os.path.getsize(f"{top}/versions/{n}.wfs") == stored]
        try:
            if any(open(f"{top}/mnt/{name}", "rb").read() == open(f"{top}/zoo/{n}.safetensors", "rb").read() for n in now):
                break
        except OSError:
            pass
        assert time.monotonic() < deadline, f"{name} never settles"
END
	unmount "$dir/mnt"
done
