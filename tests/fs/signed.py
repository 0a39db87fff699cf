"""signed.py WHAT ...: what a signed mount gives, and what somebody who may write to the store can do to it.

make DIR: files of every kind that a store may hold.
check SRC MNT [BAD...]: the mount has exactly the names of SRC. Every way of reading gives the bytes of SRC or EIO; EIO only
    for the names BAD (paths), each of which is refused at least once. Prints what it counted.
collide CONTAINER ORIGINAL: change stored bytes of both so that no XXH3 changes; the file must be one of `make`.
storm STORED MNT SECONDS: change a plain file of the store to and fro while others read it through the mount.
"""

import errno
import json
import mmap
import os
import random
import stat
import struct
import subprocess
import sys
import threading

PIECE = 1 << 18
# The first two 8-byte words of XXH3's secret meet the first word of stripes 0 and 1. Where the low halves of both data
# words equal the secret's, products are 0, and only the sum of the data words counts: high halves may move against each
# other.
SECRET = bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1c")


def make(where):
    rng = random.Random(5)
    os.makedirs(os.path.join(where, "sub", "empty directory"))
    os.makedirs(os.path.join(where, "sub-2"))

    def put(name, data):
        with open(os.path.join(where, name), "wb") as f:
            f.write(data)

    words = b"".join(struct.pack("<H", 0x3C00 + rng.randrange(600) | rng.randrange(2) << 15) for _ in range(150_000))
    weights, zeros = words * 2, bytes(700_000)  # the second half is a copy
    for name, tail in (("model.safetensors", b""), ("sub/other.safetensors", b"other")):
        spans, at = {}, 0
        for tensor, data in (("a", weights), ("zero", zeros), ("tied", weights[: len(words)])):
            spans[tensor] = {"dtype": "BF16", "shape": [len(data) // 2], "data_offsets": [at, at + len(data)]}
            at += len(data)
        header = json.dumps(spans).encode()
        put(name, struct.pack("<Q", len(header)) + header + weights + zeros + words + tail)
    for name in ("stored-a.bin", "stored-b.bin", "stored-c.bin", "sub/plain.bin", "storm.bin", "cut.bin"):
        data = bytearray(rng.randbytes(900_001))
        for block in range(0, len(data), PIECE):
            data[block : block + 4] = SECRET[:4]
            data[block + 64 : block + 68] = SECRET[8:12]
        put(name, data)
    for name, size in (("whole", 2 * PIECE), ("piece", PIECE), ("one more", PIECE + 1), ("small", 9), ("empty", 0)):
        put(name, rng.randbytes(size))
    for name in ("config.json", "gone.json", "vocab.txt", "became-link", "became-directory", "became-fifo", "swap-1", "swap-2"):
        put(name, f"the content of {name}".encode())
    put("ordinary.wfs", b"not a container\n")
    put("sub/x%\n\xff".encode("latin-1").decode("utf-8", "surrogateescape"), b"odd\n")
    os.link(os.path.join(where, "vocab.txt"), os.path.join(where, "sub-2/same.txt"))
    for name, target in (("link", "sub/other.safetensors"), ("dangling", "/no/where"), ("sub/up", "../link")):
        os.symlink(target, os.path.join(where, name))


def collide(container, original):
    with open(original, "rb") as f:
        data = bytearray(f.read())
    with open(container, "rb") as f:
        stored = bytearray(f.read())
    for block in (PIECE, 2 * PIECE):
        at = stored.index(data[block : block + 128])
        for high, step in ((4, 1), (68, -1)):
            word = (struct.unpack_from("<I", stored, at + high)[0] + step) % 2**32
            struct.pack_into("<I", stored, at + high, word)
        data[block : block + 128] = stored[at : at + 128]
    for path, content in ((container, stored), (original, data)):
        with open(path, "r+b") as f:
            f.write(content)


class Counts:
    right = refused = 0


def judge(counts, name, wanted, call):
    """What call gives is right, or EIO, or less than was asked for: what came before a refused block."""
    try:
        got = call()
    except OSError as e:
        assert e.errno == errno.EIO, f"{name}: {e}"
        counts.refused += 1
        return
    less = isinstance(got, bytes) and got and wanted.startswith(got)
    assert got == wanted or less, f"{name}: WRONG"
    counts.right += got == wanted
    counts.refused += got != wanted


def drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def read_mapped(counts, name, path, data, offsets):
    """A child for all, and where that ends by SIGBUS one for each."""
    with open(path, "rb") as f:
        view = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)

    def child(places):
        pid = os.fork()
        if not pid:
            os._exit(any(view[off : off + 100] != data[off : off + 100] for off in places))
        return os.waitpid(pid, 0)[1]

    for places in (offsets, *([off] for off in offsets[:20])):
        status = child(places)
        assert status in (0, 7, 7 | 128), f"{name}: WRONG in a mapping, status {status}"
        counts.right += status == 0
        counts.refused += status != 0
    view.close()


def read_all_ways(counts, name, path, data, rng):
    copy = os.path.join(os.environ["SIGNED_TMP"], "copy")

    def whole():
        with open(path, "rb") as f:
            return f.read()

    def copied():
        if subprocess.run(["cp", path, copy], stderr=subprocess.DEVNULL, check=False).returncode:
            raise OSError(errno.EIO, "cp")
        with open(copy, "rb") as f:
            return f.read()

    judge(counts, name, data, copied)
    judge(counts, name, data, whole)
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as e:
        assert e.errno == errno.EIO, f"{name}: {e}"
        counts.refused += 1
        return
    ranges = [(rng.randrange(len(data) + 1), rng.choice((1, 7, 511, 4096, 70_001, 300_000))) for _ in range(40)]
    drop(path)
    for off, size in ranges:
        judge(counts, name, data[off : off + size], lambda o=off, s=size: os.pread(fd, s, o))
    direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
    for off, size in ranges[:10]:
        judge(counts, name, data[off : off + size], lambda o=off, s=size: os.pread(direct, s, o))
    os.close(direct)
    os.close(fd)
    if data:
        drop(path)
        read_mapped(counts, name, path, data, [off for off, _ in ranges if off < len(data)])


def check(src, mnt, *bad):
    total, refused_names = Counts(), set()
    rng = random.Random(7)
    bad = {os.fsencode(name) for name in bad}

    def walk(folder):
        here, there = (os.path.join(os.fsencode(root), folder) for root in (src, mnt))
        names = sorted(os.listdir(here))
        listed = {e.name: e for e in os.scandir(there)}
        assert sorted(listed) == names, f"{folder}: {sorted(set(listed) ^ set(names))}"
        for name in names:
            shown = os.path.join(folder, name) if folder else name
            wanted, path = os.lstat(os.path.join(here, name)), os.path.join(there, name)
            counts = Counts()
            entry = listed[name]
            kinds = (entry.is_dir(follow_symlinks=False), entry.is_symlink(), entry.is_file(follow_symlinks=False))
            same = (stat.S_ISDIR(wanted.st_mode), stat.S_ISLNK(wanted.st_mode), stat.S_ISREG(wanted.st_mode))
            assert kinds == same, f"{shown}: another kind in the listing"
            judge(counts, shown, stat.S_IFMT(wanted.st_mode), lambda p=path: stat.S_IFMT(os.lstat(p).st_mode))
            if counts.refused:
                pass
            elif stat.S_ISLNK(wanted.st_mode):
                judge(counts, shown, os.readlink(os.path.join(here, name)), lambda p=path: os.readlink(p))
            elif stat.S_ISREG(wanted.st_mode):
                st = os.lstat(path)
                assert (st.st_size, st.st_nlink) == (wanted.st_size, 1), f"{shown}: {st}"
                with open(os.path.join(here, name), "rb") as f:
                    read_all_ways(counts, shown, path, f.read(), rng)
            elif shown not in bad:
                walk(shown)
            total.right += counts.right
            total.refused += counts.refused
            if counts.refused:
                refused_names.add(shown)

    walk(b"")
    assert refused_names == bad, f"refused {sorted(refused_names - bad)}, not refused {sorted(bad - refused_names)}"
    print(f"note: {total.right} reads right, {total.refused} refused, 0 wrong")


def storm(stored, shown, seconds):
    with open(stored, "rb") as f:
        good = f.read()
    evil = bytes(byte ^ 1 for byte in good)
    rng, done, counts, wrong = random.Random(9), threading.Event(), Counts(), []

    def write():
        fd = os.open(stored, os.O_WRONLY)
        at = 0
        while not done.is_set():
            data = (evil, good)[at % 2]
            for off in range(0, len(data), 10_000):
                os.pwrite(fd, data[off : off + 10_000], off)
            if at % 8 == 0:
                os.ftruncate(fd, len(good) // 3)
            at += 1
        os.pwrite(fd, good, 0)
        os.close(fd)

    def read(seed):
        mine = random.Random(seed)
        while not done.is_set():
            try:
                fd = os.open(shown, os.O_RDONLY | (os.O_DIRECT if seed % 2 else 0))
                for _ in range(20):
                    off, size = mine.randrange(len(good)), mine.choice((1, 4096, 100_000))
                    try:
                        got = os.pread(fd, size, off)
                        if not got or not good.startswith(got, off):
                            wrong.append(off)
                        counts.right += 1
                    except OSError as e:
                        assert e.errno == errno.EIO, e
                        counts.refused += 1
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
            except OSError as e:
                if e.errno not in (errno.EIO, errno.ESTALE):
                    wrong.append(e)
                counts.refused += 1

    threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=(rng.randrange(99),)) for _ in range(4))]
    for thread in threads:
        thread.start()
    done.wait(float(seconds))
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong, f"WRONG: {wrong[:5]}"
    assert counts.refused, "the storm was never noticed"
    print(f"note: storm: {counts.right} reads right, {counts.refused} refused, 0 wrong")


if __name__ == "__main__":
    {"make": make, "check": check, "collide": collide, "storm": storm}[sys.argv[1]](*sys.argv[2:])
