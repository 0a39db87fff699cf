"""one_descriptor.py FILE ORIGINAL HELD HOW: eight threads read, or touch, places of one open file that are far apart.

HOW: pread or mmap. Prints "waiting" once HELD, the file of slow_store.py, tells that the store is asked for all eight at
once, which nobody would be who held a lock over his request; then, when they have their bytes, "right". A line on
standard input between the two is waited for.
"""
import mmap
import os
import select
import sys
import threading

NR = 8


def main():
    path, original, held, how = sys.argv[1:]
    with open(original, "rb") as file:
        want = file.read()
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    places = [i * (len(want) // NR) // 4096 * 4096 for i in range(NR)]
    got = [b""] * NR

    def read(i):
        if how == "pread":
            got[i] = os.pread(fd, 4096, places[i])
        else:
            got[i] = mapped[places[i] : places[i] + 4096]

    threads = [threading.Thread(target=read, args=(i,)) for i in range(NR)]
    if how == "mmap":  # a fault keeps the interpreter's lock: processes then
        children = []
        for i in range(NR):
            ends = os.pipe()
            if os.fork() == 0:
                read(i)
                os.write(ends[1], got[i])
                os._exit(0)
            os.close(ends[1])
            children.append(ends[0])
    else:
        for thread in threads:
            thread.start()
    number = ""
    while number != f"{NR}\n":
        select.select([], [], [], 0.02)
        if os.path.exists(held):
            with open(held) as file:
                number = file.read()
    print("waiting", flush=True)
    sys.stdin.readline()
    if how == "mmap":
        for i in range(NR):
            with os.fdopen(children[i], "rb") as file:
                got[i] = file.read()
            os.wait()
    else:
        for thread in threads:
            thread.join()
    for i in range(NR):
        assert got[i] == want[places[i] : places[i] + 4096], i
    print("right", flush=True)


main()
