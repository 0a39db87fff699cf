"""The golden containers of records (codec/FORMAT.md 5), a part of gen.py."""
import numpy as np

import wfsfile as w
from build import File, bad, made, rng
from gen_wide import drawn, names_from, pool_for, pool_of
from wfsfile import pack_coder

Q4_0, Q4_K = (18, (1, 2)), (144, (1, 2, 3, 4, 8, 12, 16))


def blocks(n, word, borders):
    """Records whose parts are each distributed in a way of their own."""
    raw = np.zeros((n, word), np.uint8)
    starts = [0, *borders, word]
    for i, (a, b) in enumerate(zip(starts, starts[1:])):
        part = drawn(n * (b - a), 1, 0, 8, base=20 + 25 * i, spread=.5 + i % 3)
        raw[:, a:b] = np.frombuffer(part, np.uint8).reshape(n, b - a)
    return raw.tobytes()


def ok_records():
    """Lengths and borders; blocks that begin and end anywhere in a record; a group a part, and groups across parts."""
    f = File(block_log2=20)

    def add(word, borders, n, skip=0, cut=0, **args):
        raw = blocks(n, word, borders)
        pool = pool_for([raw], 1, 0, 8)
        f.split_args[len(f.regions)] = args
        f.coded(raw[skip:len(raw) - cut], f.records(word, borders, pool), skip)

    for word, borders, n in ((2, (1,), 700), (2, (), 700), (17, (1,), 60), (*Q4_0, 90), (*Q4_K, 12), (255, (), 6),
                             (255, (1, 2, 3, 4, 100, 200, 253, 254), 6), (9, range(1, 9), 120), (210, (128, 192, 208, 209), 7)):
        add(word, borders, n, groups=[(0, 1000), *((n * b, 64 + b) for b in borders)])
        add(word, borders, n, word - 1, word - 1, groups=[(0, 65535)])
    for skip in (0, 1, 2, 17):
        add(*Q4_0, 100, skip, 7 * skip % 18, groups=[(0, 100), (77, 64)], phase=50)
    return f.build()


def ok_records_fields():
    """Bytes of which a part only is coded, and rotated ones."""
    f = File(block_log2=20)
    for rot, field in ((0, 1), (0, 5), (0, 7), (1, 1), (1, 4), (1, 7)):
        n, (word, borders) = 200, Q4_0
        raw = made(n * word, 1, rot, field, [0, 1, (1 << field) - 1], [90, 9, 1])
        f.coded(raw[3:-4], f.records(word, borders, pool_for([raw], 1, rot, field), rot), 3)
    return f.build()


def ok_records_blocks():
    """A region of several blocks, which cut records at places of their own; its phase goes on behind them."""
    f = File(block_log2=16)
    raw = blocks(1200, *Q4_K)
    f.coded(b"in front of it", f.coder(w.STORED))
    f.coded(raw[100:-3], f.records(*Q4_K, pool_for([raw], 1, 0, 8)), 100)
    f.coder(w.CONSTANT, 8)
    f.selectors[2] = 1
    return f.build()


def bad_all():
    def records_file():
        f = File()
        raw = blocks(100, *Q4_0)
        f.coded(raw, f.records(*Q4_0, pool_for([raw], 1, 0, 8)))
        return f

    def coder(name, **fields):
        f = records_file()
        good = dict(zip(("coding", "word", "rot", "field", "pool", "grid", "borders"), f.coder_fields[0]))
        f.coders[0] = pack_coder(**{**good, **fields})
        bad("records-coder-" + name, "BAD_DATA", f.build())

    coder("word-0", word=0, borders=())
    coder("word-1", word=1, borders=())
    coder("border-of-word", borders=(1, 18))
    coder("border-beyond", borders=(1, 200))
    coder("borders-equal", borders=(1, 1))
    coder("borders-descend", borders=(2, 1))
    coder("borders-gap", borders=(1, 2, 0, 3))
    coder("borders-first-0", borders=(0, 2))
    coder("wide-with-borders", coding=w.WIDE, word=1)
    coder("rot-1", rot=1)
    coder("field-7", field=7)
    coder("field-9", field=9)
    coder("pool", pool=1)
    coder("grid", grid=1)
    bad("records-cut", "BAD_DATA", records_file().build(payload=lambda p: p.__setitem__(0, p[0][:-1])))
    bad("records-after", "BAD_DATA", records_file().build(payload=lambda p: p.__setitem__(0, p[0] + b"\0")))
    f = records_file()  # phases of records are no phases of constants
    f.fill(300, b"\x80\x3f" * 4, 8)
    bad("region-constant-phase-8", "BAD_DATA", f.build())
    f = File()  # one byte short of a record
    f.coded(rng.bytes(17), f.records(*Q4_0, pool_of(8, [names_from(0, [4000, 96])])))
    f.payloads[0] = bytes(10)
    bad("records-no-record", "BAD_DATA", f.build())
