"""swap.py STORE MNT OUTSIDE ORIGINAL SWAPS: while STORE/real and STORE/real/deep, model.wfs and plain in it change places
with symbolic links to the same names in OUTSIDE, read them through MNT by descriptors and names that the kernel does not
resolve through links itself. Every byte must be the inside's; an error is as good. So many swaps, and then some until
each reader has had 50 answers of bytes.
"""

import ctypes
import errno
import os
import sys
import threading
import time

RENAME_EXCHANGE, AT_FDCWD = 2, -100
FINE = {errno.ENOENT, errno.ESTALE, errno.ELOOP, errno.ENOTDIR}


class Swapper:
    """Exchanges names without a moment in which either is missing."""

    def __init__(self, store, outside):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.pairs = []
        for i, name in enumerate(("real", "real/deep", "real/deep/model.wfs", "real/deep/plain")):
            link = f"{store}/.link{i}"
            target = name.replace("real", outside, 1)
            os.symlink(target, link)
            self.pairs.append((os.fsencode(link), os.fsencode(f"{store}/{name}")))

    def swap(self, i):
        link, name = self.pairs[i]
        if self.libc.renameat2(AT_FDCWD, link, AT_FDCWD, name, RENAME_EXCHANGE):
            raise OSError(ctypes.get_errno(), "renameat2")

    def close(self):
        for link, _ in self.pairs:
            os.unlink(link)


def nofollow(path):
    """Open name by name, so that no link is followed on the reader's side."""
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    names = path.strip("/").split("/")
    for i, name in enumerate(names):
        above = fd
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | (os.O_DIRECTORY if i < len(names) - 1 else 0), dir_fd=above)
        finally:
            os.close(above)
    return fd


class Reader(threading.Thread):
    def __init__(self, path, want, done):
        super().__init__()
        self.path, self.want, self.done = path, want, done
        self.right = self.refused = 0
        self.wrong = None

    def run(self):
        while not (self.done.is_set() and self.right >= 50) and not self.wrong:
            try:
                fd = nofollow(self.path)
                try:
                    got = os.read(fd, len(self.want) + 1)
                    size = os.fstat(fd).st_size
                finally:
                    os.close(fd)
            except OSError as e:
                self.refused += 1
                if e.errno not in FINE:
                    self.wrong = str(e)
                continue
            if got != self.want[: len(got)] or not got or size != len(self.want):
                self.wrong = f"{self.path}: {len(got)} bytes, {got[:20]}, size {size}"
            self.right += 1


def main():
    store, mnt, outside, original, swaps = sys.argv[1:]
    with open(original, "rb") as f:
        model = f.read()
    done = threading.Event()
    readers = [
        Reader(f"{mnt}/real/deep/{name}", want, done) for name, want in (("model", model), ("plain", b"inside\n")) for _ in "12"
    ]
    swapper = Swapper(store, outside)
    for reader in readers:
        reader.start()
    for n in range(int(swaps)):
        swapper.swap(n % 4)
        if n % 8 < 4:  # so that they meet the link, too, and not only the change
            before = sum(r.right + r.refused for r in readers)
            while sum(r.right + r.refused for r in readers) < before + 4 and not any(r.wrong for r in readers):
                time.sleep(0)
        swapper.swap(n % 4)
    done.set()
    for reader in readers:
        reader.join()
    swapper.close()
    for reader in readers:
        if reader.wrong:
            sys.exit(f"FAIL {reader.wrong}")
    print(f"{swaps} swaps, {sum(r.right for r in readers)} right answers, {sum(r.refused for r in readers)} refused")


main()
