"""memory.py DAEMON CAP_MIB STORE_MNT ORIGINALS_DIR MODEL_BLOCKS TEXT_BLOCKS [--no-limits]: see test_memory.sh.

Below STORE_MNT lie models/N, copies of ORIGINALS_DIR/model-(N % 3), and texts/N, copies of ORIGINALS_DIR/text. The last two numbers: blocks of all the models together, of all the texts together.
"""

import concurrent.futures
import mmap
import os
import sys

MIB = 1 << 20
KIB = 1024
BYTES_A_BLOCK = 16
# A container besides its blocks, when it has no probability tables: node, name, file, a few regions, malloc's rounding.
BYTES_A_FILE = 8 * KIB
# The daemon besides its cache and the blocks of open containers, at most: 8 MiB of program and libraries; 192 threads of
# libfuse with 64 KiB each of stack, request buffer and malloc arena; 16 decoders with room for one stored block and its
# escapes, 2.2 MiB where blocks are of 1 MiB; 500 containers with a pool of tables, 24 KiB each. Together less than:
CONSTANT_MIB = 68


def status(daemon, name):
    with open(f"/proc/{daemon}/status") as lines:
        return next(int(line.split()[1]) * KIB for line in lines if line.startswith(name + ":"))


def open_all(folder):
    files = []
    for name in sorted(os.listdir(folder), key=int):
        fd = os.open(f"{folder}/{name}", os.O_RDONLY)
        files.append((fd, mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)))
    return files


def stream(number, file, want):
    """Whole, by one of three ways."""
    fd, mapping = file
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if number % 3 == 0:
        return mapping[:] == want
    if number % 3 == 1:
        return b"".join(iter(lambda: os.read(fd, 300000), b"")) == want and os.lseek(fd, 0, os.SEEK_SET) == 0
    direct = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_DIRECT)
    room = mmap.mmap(-1, len(want) + 4096)
    got = os.preadv(direct, [room], 0)
    os.close(direct)
    return got == len(want) and room[:got] == want


def stream_all(files, originals):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for turn in range(2):
            right = pool.map(lambda n: stream(n + turn, files[n], originals[n % 3]), range(len(files)))
            for number, ok in enumerate(right):
                assert ok, f"model {number} has wrong bytes"


def read_texts(files, want):
    """Parts of far more blocks than the cache has room for, which it would like to keep."""
    places = 7
    for number, (fd, mapping) in enumerate(files):
        for i in range(places):
            off = (number * 99991 + i * len(want) // places) % (len(want) - 5000)
            assert mapping[off : off + 5000] == want[off : off + 5000], f"text {number} at {off}"
            assert os.pread(fd, 5000, off) == want[off : off + 5000], f"text {number} at {off}"


def main():
    daemon, cap, mnt, top = int(sys.argv[1]), int(sys.argv[2]) * MIB, sys.argv[3], sys.argv[4]
    model_blocks, text_blocks = int(sys.argv[5]), int(sys.argv[6])
    limits = "--no-limits" not in sys.argv
    originals = [open(f"{top}/model-{i}", "rb").read() for i in range(3)]
    text = open(f"{top}/text", "rb").read()

    def note(what):
        print(f"note: {what}: RSS {status(daemon, 'VmRSS') / MIB:.1f} MiB, at most {status(daemon, 'VmHWM') / MIB:.1f}")

    def check(what, got, most):
        assert not limits or got <= most, f"{what}: {got / MIB:.1f} MiB, more than {most / MIB:.1f}"

    note("mounted")
    before = status(daemon, "VmRSS")
    texts = open_all(f"{mnt}/texts")
    note(f"{len(texts)} texts open, {text_blocks} blocks")
    grown = status(daemon, "VmRSS") - before
    check("open files", grown, BYTES_A_BLOCK * text_blocks + BYTES_A_FILE * len(texts))
    models = open_all(f"{mnt}/models")
    note(f"{len(models)} models open, {model_blocks} blocks")
    stream_all(models, originals)
    note("streamed")
    read_texts(texts, text)
    stream_all(models, originals)
    note("read and streamed again")
    check("peak", status(daemon, "VmHWM"), cap + CONSTANT_MIB * MIB + BYTES_A_BLOCK * (model_blocks + text_blocks))



main()
