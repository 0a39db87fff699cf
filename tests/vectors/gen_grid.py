"""The golden containers of the grid coding (codec/FORMAT.md 3), a part of gen.py."""
import struct

import numpy as np

import wfsfile as w
from build import E2M1, E4M3, E5M2, NF4, File, bad, floats, grid_codes, packed_scales, plain, rng, table_for
from wfsfile import Pool, pack_coder


def ok_grids():
    """Every operation, sign and output; tiles of every kind; segments; literals; words cut in front and behind."""
    f = File(block_log2=20)
    S = w.Segment

    def add(op, flags, output, base, segments, mb=12, sb=13, low=120 << 12, n=0, **args):
        n = n or sum(s.n for s in segments)
        word = 4 if output == w.F32 else 2
        codes = grid_codes(n, len(base), bool(flags & w.SIGNED))
        literals = [(i, int(rng.integers(0, 1 << 8 * word))) for i in (0, 7, n - 1)]
        f.gridded(w.Grid(op, flags, output, base), codes, segments, packed=packed_scales(segments, sb), mb=mb,
                  sb=sb, low=low, literals=literals[:len(f.regions) % 4], **args)

    for op, output in ((w.NEAREST, w.BF16), (w.TRUNCATE, w.BF16), (w.NEAREST, w.F16), (w.NEAREST, w.F32)):
        add(op, 0, output, E4M3, [S(1500, 300, 17, 128, 128, 126)], head=b"h" * (output == w.F32), tail=b"t")
        add(op, w.NEG1, output, floats(np.arange(9)), [S(1000, 256, 5, 32, 1)], mb=7, sb=8, low=119 << 7, field=7)
        add(op, w.SIGNED, output, NF4, [S(1000, 1000, 64, 64, 1)], field=7, head=b"hhh"[:f.raw and 1])
        add(op, 0, output, E5M2, [S(700, 64, 0, 0, 1)], mb=0, sb=5, low=105)  # F16 words that are subnormal or infinite
    add(w.NEAREST, 0, w.BF16, E2M1, [S(1000, 256, 3, 16, 1)], mb=3, sb=6, low=118 << 3, field=7)
    add(w.NEAREST, 0, w.BF16, E4M3, [S(1200, 100)], mb=23, sb=0, low=123 << 23 | 0x123456)
    add(w.NEAREST, 0, w.F16, E4M3, [S(600, 40, 39, 1, 0), S(1, 1), S(300, 33, 2, 7, 5, 4), S(500, 9, 8, 0, 3, 2)])
    add(w.NEAREST, w.NEG1, w.BF16, floats(np.arange(128)), [S(2000, 1 << 31, 3, 50, 1)], field=7, low=115 << 12)
    add(w.NEAREST, w.SIGNED, w.F32, floats(np.arange(256) - 100.5), [S(1500, 77, 0, 70, 2, 1)], field=7, low=115 << 12)
    for output, top in ((w.BF16, 1 << 16), (w.F16, 1 << 16), (w.F32, 1 << 32)):
        for nb in (2, 100, 256):
            base = np.sort(rng.choice(top, nb, replace=False)) if nb > 2 else [0, top - 1]
            add(w.PALETTE, w.SIGNED, output, base, [], mb=0, sb=0, low=0, n=1500, field=7)
    # Codes that name no entry.
    for flags in (0, w.NEG1, w.SIGNED):
        codes = rng.integers(0, 256, 3000).astype(np.uint8)
        codes[500:] = 3
        grid = w.Grid(w.NEAREST, flags, w.BF16, floats([0, 1, 2, 3, 7]))
        f.gridded(grid, codes, [S(3000, 1000)], packed=[0], mb=0, low=127)
    return f.build()


def ok_grid_blocks():
    """A matrix of more than one block, in tiles that go on from block to block; words cut by the borders."""
    f = File()
    grid, n, cols = w.Grid(w.NEAREST, 0, w.BF16, E4M3), 40000, 700
    codes = grid_codes(n, 127)
    coder = f.grid(grid, table_for(codes.tobytes(), 1, 1, 5))
    first, raw, edge = 65535 // 2, b"\x11", b"\x22\x33"
    for i, (at, end) in enumerate(((0, first), (first + 1, n))):
        row, col = divmod(at, cols)
        segments = [w.Segment(end - at, cols, col, 128, 128, row % 128)]
        coded = w.split_encode(codes[at:end].tobytes(), 1, 1, 5, f.pools[0])
        words, f.payloads[i] = w.grid_encode(grid, codes[at:end], segments, coded, packed_scales(segments, 9), 8, 9,
                                             119 << 8, edges=raw + edge[:1] if i == 0 else edge[1:])
        raw += words + edge if i == 0 else words
    f.coded(raw, coder, 1)
    return f.build()


# ---- bad ones --------------------------------------------------------------------------------------------------------

def grid_file(grid=None, patch=None):
    """One block of a grid: two segments, scales whose bits end within a byte, two literals."""
    f = File()
    grid = grid or w.Grid(w.NEAREST, 0, w.BF16, floats(np.arange(100)))
    n, args = 1000, {}
    if grid.op != w.PALETTE:
        segments = [w.Segment(600, 90, 7, 32, 4, 3), w.Segment(400, 90, 0, 32, 4)]
        args = {"packed": packed_scales(segments, 5), "mb": 7, "sb": 5, "low": 120 << 7}
    codes = grid_codes(n, len(grid.base), grid.flags == w.SIGNED)
    f.gridded(grid, codes, segments if args else [], literals=[(3, 1), (900, 2)], patch=patch, **args)
    return f


def bad_payloads():
    def payload(name, change, grid=None):
        bad("grid-" + name, "BAD_DATA", grid_file(grid, change).build())

    def put(key, value):
        return lambda p: p.update({key: value})

    def segment(index, offset, data):
        def change(p):
            b = bytearray(p["segments"])
            b[24 * index + offset:24 * index + offset + len(data)] = data
            p["segments"] = bytes(b)
        return change

    payload("mantissa-24", put("mb", 24))
    payload("scale-bits-32", put("sb", 32))
    payload("no-segments", put("nseg", 0))
    payload("segments-cut", put("nseg", 60000))
    payload("literals-cut", put("nlit", 60000))
    payload("zero", put("zero", 1))
    payload("low", put("low", 0xffffffff))
    payload("scale-large", put("low", 227 << 7))
    payload("scale-small", put("low", (27 << 7) - 40))
    payload("product-small", put("low", 27 << 7), w.Grid(w.NEAREST, 0, w.BF16, floats([0, 2.0**-30])))
    payload("product-large", put("low", 135 << 7), w.Grid(w.NEAREST, 0, w.BF16, floats([0, 1, 2.0**120])))
    payload("scale-unused-bits", lambda p: p.update(scales=p["scales"][:-1] + bytes([p["scales"][-1] | 0x80])))
    payload("segment-longer", segment(0, 0, struct.pack("<I", 601)))
    payload("segment-shorter", segment(0, 0, struct.pack("<I", 599)))
    payload("segment-huge", segment(0, 0, b"\xff" * 4))
    payload("segment-empty", segment(1, 0, bytes(4)))
    payload("segment-no-columns", segment(0, 4, bytes(4)))
    payload("segment-column", segment(0, 8, struct.pack("<I", 90)))
    payload("segment-tile-columns", segment(0, 12, struct.pack("<H", 91)))
    payload("segment-row", segment(0, 16, struct.pack("<H", 4)))
    payload("segment-row-of-all", segment(0, 14, struct.pack("<H", 0)))
    payload("segment-zero", segment(1, 23, b"\1"))
    payload("tiles", segment(0, 4, struct.pack("<I", 1 << 20)))
    payload("tiles-wrap", segment(0, 4, struct.pack("<I", (1 << 32) - 1)))
    payload("literal-order", lambda p: p.update(literals=p["literals"][6:] + p["literals"][:6]))
    payload("literal-twice", lambda p: p.update(literals=p["literals"][:6] * 2))
    payload("literal-beyond", lambda p: p.update(literals=p["literals"][:6] + struct.pack("<IH", 1000, 2)))
    payload("codes-cut", lambda p: p.update(codes=p["codes"][:-1]))
    payload("codes-byte-after", lambda p: p.update(codes=p["codes"] + b"\0"))
    payload("codes-damaged", lambda p: p.update(codes=p["codes"][:200] + b"\xff" * 8 + p["codes"][208:]))
    payload("codes-none", put("codes", b""))
    palette = w.Grid(w.PALETTE, w.SIGNED, w.F16, range(7, 107))
    for key in ("mb", "sb", "nseg", "low"):
        payload("palette-" + key, put(key, 1), palette)


def bad_lists():
    def grid(name, op=w.NEAREST, flags=0, output=w.BF16, base=floats([0, 1, 2, 3]), status="BAD_DATA"):
        f = grid_file()
        f.grids[0] = w.Grid(op, flags, output, base)
        bad("grid-list-" + name, status, f.build())

    grid("op-3", op=3, status="UNSUPPORTED")
    grid("flag-2", flags=4, status="UNSUPPORTED")
    grid("output-3", output=3, status="UNSUPPORTED")
    grid("both-flags", flags=3)
    grid("truncate-f16", op=w.TRUNCATE, output=w.F16)
    grid("palette-unsigned", op=w.PALETTE, base=[0, 1, 2])
    grid("one-entry", base=[0])
    grid("129-entries", base=floats(np.arange(129)))
    grid("not-zero-first", base=floats([1, 2, 3]))
    grid("order", base=floats([0, 2, 1]))
    grid("twice", base=floats([0, 1, 1]))
    grid("minus-zero", flags=w.SIGNED, base=floats([-1, -0.0, 1]))
    grid("subnormal", base=[0, 0x7fffff, 0x800000])
    grid("infinity", base=floats([0, 1, np.inf]))
    grid("nan", base=[0, 0x3f800000, 0x7f800001])
    grid("palette-order", op=w.PALETTE, flags=w.SIGNED, base=[3, 2])
    grid("palette-word", op=w.PALETTE, flags=w.SIGNED, base=[3, 65536])

    def section(name, change):
        bad("grid-section-" + name, "BAD_DATA", grid_file().build(sections=change))

    section("missing", lambda t: [s for s in t if s[0] != w.GRIDS])
    section("cut", lambda t: t[:-1] + [(w.GRIDS, 0, grid_file().grids[0].pack()[:-1], 403)])
    section("byte-after", lambda t: t[:-1] + [(w.GRIDS, 0, grid_file().grids[0].pack() + b"\0", 405)])
    bad("grid-section-unused", "BAD_DATA", plain().build(
        sections=lambda t: t + [(w.GRIDS, 0, grid_file().grids[0].pack(), 404)]))


def bad_coders():
    def coder(name, **fields):
        f = grid_file()
        good = dict(zip(("coding", "word", "rot", "field", "pool", "grid"), f.coder_fields[0]))
        f.coders[0] = pack_coder(**{**good, **fields})
        bad("grid-coder-" + name, "BAD_DATA", f.build())

    coder("grid", grid=1)
    coder("word-4", word=4)
    coder("word-1", word=1)
    coder("rot-2", rot=2)
    coder("field-of-pool", field=6)
    coder("pool", pool=1)
    f = grid_file()
    f.pools[0] = Pool(8, f.pools[0].tables)
    f.coders[0] = pack_coder(w.GRID, 2, 0, 8)
    bad("grid-coder-field-8", "BAD_DATA", f.build())
    f = grid_file()
    f.coded(b"x", 0, 0)
    f.payloads[1] = b"x"
    bad("grid-no-words", "BAD_DATA", f.build())


def bad_all():
    bad_payloads()
    bad_lists()
    bad_coders()
