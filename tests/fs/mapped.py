"""mapped.py FILE ORIGINAL: a mapping outlives the descriptor, a listing, other opens and a fork, with every page right."""
import mmap
import os
import random
import sys

PAGE = 4096


def check(mapped, want, places):
    for at in places:
        assert mapped[at : at + PAGE] == want[at : at + PAGE], at


def forget(fd):
    """What the kernel holds of the file beyond what is mapped."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    path, original = sys.argv[1:]
    with open(original, "rb") as file:
        want = file.read()
    places = [i * PAGE for i in range(len(want) // PAGE)]
    random.Random(1).shuffle(places)
    fd = os.open(path, os.O_RDONLY)
    mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    os.close(fd)
    for _ in range(3):
        names = os.listdir(os.path.dirname(path))
        for name in names:
            beside = os.open(os.path.join(os.path.dirname(path), name), os.O_RDONLY)
            forget(beside)
            os.close(beside)
        mapped.madvise(mmap.MADV_DONTNEED)
        check(mapped, want, places[: len(places) // 2])
    # Both sides of a fork, each by the other's mapping and descriptor, and the child after the parent has let go.
    fd = os.open(path, os.O_RDONLY)
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ends[1])
        check(mapped, want, places)
        os.read(ends[0], 1)
        forget(fd)
        mapped.madvise(mmap.MADV_DONTNEED)
        check(mapped, want, places)
        assert os.pread(fd, len(want), 0) == want
        os._exit(0)
    check(mapped, want, reversed(places))
    mapped.close()
    os.close(fd)
    os.close(ends[1])
    assert os.waitpid(child, 0)[1] == 0


main()
