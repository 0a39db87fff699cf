"""damage.py make CONTAINER STORE | check STORE MNT ORIGINAL: damaged copies of a container, and what a mount makes of them.

Places are those of the head (codec/FORMAT.md 1.1): payload_off and payload_len at 48 and 56, meta_len at 64.
"""

import errno
import mmap
import os
import struct
import sys

HEAD = 4096
PIECE = 4096


def make(container, store):
    good = open(container, "rb").read()
    stat = os.stat(container)
    payload_off, payload_len, meta_len = struct.unpack_from("<QQQ", good, 48)
    copy_b = payload_off + payload_len
    assert copy_b + meta_len + HEAD == len(good)

    def put(name, *flips, cut=None, zero=()):
        data = bytearray(good)
        for at in flips:
            data[at] ^= 0x10
        for begin, end in zero:
            data[begin:end] = bytes(end - begin)
        path = os.path.join(store, name + ".wfs")
        with open(path, "wb") as f:
            f.write(data[:cut])
        os.chmod(path, stat.st_mode)

    tail = len(good) - HEAD
    put("good")
    put("flip-payload", payload_off + payload_len // 2)
    put("two-flips", payload_off + 100, copy_b - 1)
    put("first-byte", payload_off)
    put("cut-in-payload", cut=payload_off + payload_len * 2 // 3)
    put("cut-tail", cut=len(good) - 1)
    put("cut-copy-b", cut=copy_b + 1)
    put("head", 40)
    put("head-gone", zero=[(0, HEAD)])
    put("tail", tail + 40)
    put("tail-gone", zero=[(tail, len(good))])
    put("metadata-a", HEAD + meta_len // 2)
    put("metadata-b", copy_b + meta_len // 2)
    put("head-and-metadata-a", 17, HEAD + 3)
    put("tail-and-metadata-b", tail + 17, copy_b + 3)
    put("both-metadata", HEAD + 20, copy_b + 20)
    put("both-heads-but-magic", 20, tail + 20)
    put("both-heads", zero=[(0, HEAD), (tail, len(good))])
    put("both-heads-and-sections", zero=[(0, HEAD + 64), (tail, len(good))])
    with open(os.path.join(store, "both-heads-and-sections.wfs"), "r+b") as f:
        f.write(b"x")
    put("zeros", zero=[(0, len(good))])
    put("longer")
    with open(os.path.join(store, "longer.wfs"), "ab") as f:
        f.write(b"x")
    with open(os.path.join(store, "empty.wfs"), "wb"):
        pass
    with open(os.path.join(store, "text.wfs"), "w") as f:
        f.write("an ordinary file\n")
    put("cut-in-head", cut=100)


def pieces(path, original):
    """What each PIECE of the file gives: True the right bytes, False EIO; anything else ends the test."""
    got = []
    fd = os.open(path, os.O_RDONLY)
    for off in range(0, len(original), PIECE):
        try:
            data = os.pread(fd, PIECE, off)
        except OSError as e:
            assert e.errno == errno.EIO, (path, off, e)
            got.append(False)
            continue
        assert data == original[off : off + PIECE], f"{path}: wrong bytes at {off}"
        got.append(True)
    os.close(fd)
    return got


def pieces_by_fault(path, original):
    """The same through a mapping: a child for each piece, for SIGBUS ends it."""
    got = []
    with open(path, "rb") as f:
        view = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    for off in range(0, len(original), PIECE):
        pid = os.fork()
        if not pid:
            os._exit(view[off : off + PIECE] != original[off : off + PIECE])
        status = os.waitpid(pid, 0)[1]
        assert status in (0, 7), f"{path}: status {status} at {off}"
        got.append(status == 0)
    return got


def runs(got):
    """First and last piece of each run that failed."""
    bad = [i for i, good in enumerate(got) if not good]
    return [(i, next(j for j in range(i, len(got) + 1) if j not in bad) - 1) for i in bad if i - 1 not in bad]


def expect_error(path, wanted, call=lambda p: open(p, "rb").read()):
    try:
        call(path)
    except OSError as e:
        assert e.errno == wanted, (path, e)
        return
    raise AssertionError(f"{path}: no error")


def check(store, mnt, original_path):
    original = open(original_path, "rb").read()
    at = lambda name: os.path.join(mnt, name)

    for name in "good head head-gone tail tail-gone metadata-a metadata-b head-and-metadata-a tail-and-metadata-b".split():
        assert all(pieces(at(name), original)), name
    for name in ("cut-tail", "cut-copy-b"):
        assert all(pieces(at(name), original)), name

    block = 256 * 1024 // PIECE
    for name, nr in (("flip-payload", 1), ("two-flips", 2), ("first-byte", 1)):
        got = pieces(at(name), original)
        bad = runs(got)
        assert len(bad) == nr, (name, bad)
        # Whole blocks: at most one each, and pieces at its border that belong to the neighbour as well.
        assert all(last - first <= block for first, last in bad), (name, bad)
        assert pieces(at(name), original) == got, f"{name}: another answer the second time"
        assert pieces_by_fault(at(name), original) == got, f"{name}: a mapping gives another answer"
    got = pieces(at("cut-in-payload"), original)
    assert got[0] and len(runs(got)) == 1 and runs(got)[0][1] == len(got) - 1, "cut-in-payload"

    size, mtime = len(original), os.stat(original_path).st_mtime_ns
    st = os.stat(at("both-metadata"))  # the head is enough for attributes
    assert (st.st_size, st.st_mtime_ns) == (size, mtime), "both-metadata"
    expect_error(at("both-metadata"), errno.EIO)
    expect_error(at("both-heads-but-magic"), errno.EIO)
    assert "both-heads-but-magic" in os.listdir(mnt)
    expect_error(at("longer"), errno.EIO)
    expect_error(at("cut-in-head"), errno.EIO)
    # Their names and what remains of them tell.
    for name in ("both-heads", "empty", "zeros"):
        expect_error(at(name), errno.EIO)
        expect_error(at(name + ".wfs"), errno.ENOENT, os.stat)
    # No trace of a container: ordinary files under their own names.
    ordinary = ("both-heads-and-sections.wfs", "text.wfs")
    for name in ordinary:
        assert open(at(name), "rb").read() == open(os.path.join(store, name), "rb").read(), name
        expect_error(at(name.removesuffix(".wfs")), errno.ENOENT)
    listed = sorted(os.listdir(mnt))
    assert listed == sorted(n if n in ordinary else n.removesuffix(".wfs") for n in os.listdir(store)), listed


if sys.argv[1] == "make":
    make(*sys.argv[2:])
else:
    check(*sys.argv[2:])
