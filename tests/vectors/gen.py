"""gen.py OUT: write the golden containers: OUT/ok/*.wfs with ok/SHA256SUMS, OUT/bad/*.wfs with bad/EXPECTED.

The committed files are the truth: they stay as they are when this script changes, and a released format is never
removed from ok/. Everything is seeded. Each good container also passes wfsfile.py, the reader written from the document.
"""
import hashlib
import os
import struct
import sys

import lz4.block
import numpy as np

import gen_wide
import wfsfile as w
from build import (BAD, E2M1, E4M3, E5M2, NF4, TEXT, File, add_split, bad, bf16, floats, grid_codes, made, packed_scales,
                   rng, runs, seed, table_for)
from wfsfile import Pool, Table, pack_coder


# ---- good ones -------------------------------------------------------------------------------------------------------

def plain():
    """A small file with one of each common thing: the base of the bad ones."""
    f = File()
    weights = bf16(700)
    f.coder(w.LZ4)
    f.coder(w.STORED)
    f.coded(TEXT, 0)
    f.coded(weights, add_split(f, weights, 2, 1, 9))
    f.fill(300, b"\x80\x3f" * 4)
    f.copy(len(TEXT) + 10, 500)
    return f


def ok_empty():
    return File().build()


def ok_one_byte():
    f = File()
    f.coded(b"x", f.coder(w.STORED))
    return f.build()


def ok_plain():
    return plain().build()


def ok_sections_stored():
    f = plain()
    f.use_lz4 = False
    return f.build()


def ok_optional_sections():
    """A section from a later minor version, the block SHA-256 column, bytes in the gap, another minor."""
    f = plain()
    cuts = list(w.block_cuts(f.regions, f.block_log2))
    sums = b"".join(hashlib.sha256(f.raw[at:at + n]).digest() for _, at, n in cuts)
    f.extra_sections = [(w.BLOCK_SHA, 0, sums, len(sums)), (0x8000, 0, b"from the future", 15), (0xffff, 0, b"", 0)]
    f.gap = b"not interpreted" * 7
    return f.build(head_args={"minor": 7, "mtime": (-12345, 999999999)})


def ok_head_damaged():
    return plain().build(whole=lambda d: b"\0" * 4096 + d[4096:])


def ok_tail_damaged():
    return plain().build(whole=lambda d: d[:-4096] + b"\xff" * 4096)


def ok_meta_a_damaged():
    return plain().build(whole=lambda d: d[:4100] + bytes([d[4100] ^ 1]) + d[4101:])


def ok_meta_b_damaged():
    return plain().build(whole=lambda d: d[:-4100] + bytes([d[-4100] ^ 1]) + d[-4099:])


def ok_words():
    """Every word size, rotation and a spread of fields; counts of words around rows and superrows."""
    f = File(block_log2=20)
    for word, rot, field in ((1, 1, 4), (1, 0, 7), (2, 1, 9), (2, 1, 6), (2, 0, 3), (4, 1, 9), (4, 0, 12), (8, 1, 12)):
        values = sorted(rng.choice(1 << field, min(1 << field, 6), replace=False))
        for n in sorted({2048 // word - 1, 1000 // word, 512, 513, 961, 64 * (25 // word)}):
            raw = made(n, word, rot, field, values, [400, 20, 10, 5, 5, 5])
            coder = f.split(word, rot, field, [table_for(raw, word, rot, field, nr_symbols=4)])
            head = w.split_encode(raw, word, rot, field, f.pools[-1])
            if len(head) <= len(raw):
                f.coded(raw, coder)
    assert len(f.regions) >= 30
    return f.build()


def ok_cut_words():
    """Every phase, cut at a block border, for words of 2, 4 and 8 bytes."""
    f = File()
    for word, field in ((2, 9), (4, 9), (8, 12)):
        raw = made(1028, word, 1, field, [3, 200, 9, 77], [90, 9, 2, 1])
        coder = add_split(f, raw, word, 1, field, nr_symbols=2, ntail=3)
        for phase in range(word):
            border = (len(f.raw) // 65536 + 1) * 65536
            before = (word - phase) % word + 512 * word + 1
            after = word - 1 + 512 * word + phase
            f.fill(border - len(f.raw) - before, bytes(8))
            f.coded(raw[phase:phase + before + after], coder, phase)
    return f.build()


def ok_tiny_regions():
    """Regions of a few bytes, shorter than their word included."""
    f = File()
    constants = [f.coder(w.CONSTANT, word) for word in (1, 2, 4, 8)]
    stored = f.coder(w.STORED)
    for i in range(60):
        length, phase = 1 + i % 9, i % 8
        if i % 3 == 0:
            f.coded(rng.bytes(length), stored, phase)
        elif i % 3 == 1:
            fill = rng.bytes(8)
            f.fill(length, fill, phase)
        else:
            word = 1 << i % 4
            fill = rng.bytes(word)
            raw = bytes(fill[(phase + j) % word] for j in range(max(length, word)))
            f.coded(raw, constants[i % 4], phase)
    return f.build()


def ok_constant_blocks():
    """Constant blocks of every word, of full size, in words cut by the borders."""
    f = File()
    for word, phase in ((1, 0), (2, 1), (4, 3), (8, 5)):
        fill = rng.bytes(word)
        length = 200001
        f.coded(bytes(fill[(phase + j) % word] for j in range(length)), f.coder(w.CONSTANT, word), phase)
    return f.build()


def ok_copies():
    """Copies of ranges that cross blocks, constants and both; two copies of one range."""
    f = plain()
    end = len(TEXT) + 1400 + 300
    f = File()
    weights = bf16(700)
    f.coder(w.LZ4)
    f.coded(TEXT, 0)
    f.coded(weights, add_split(f, weights, 2, 1, 9))
    f.fill(300, b"abcdefgh", 5)
    for source, length in ((0, end), (7, 1), (end - 301, 301), (100, len(TEXT) + 700), (100, len(TEXT) + 700)):
        f.copy(source, length)
    f.coded(b"between", f.coder(w.STORED))
    f.copy(end - 1, 1)
    return f.build()


def ok_modes():
    """Every sign mode and several counts of zero bits, changing from superrow to superrow."""
    f = File(block_log2=20)
    for word, field in ((2, 9), (4, 9), (8, 12), (2, 3)):
        most = 8 * word - field - 1
        plan = [(0, 0), (1, 1 << 6), (2, 2 << 6), (3, 3), (4, 1 << 6 | 4), (5, 2 << 6 | 1), (7, 0), (8, most),
                (9, 2 << 6 | most)]
        raw, mode = b"", 0
        for s in range(10):
            mode = dict(plan).get(s, mode)
            raw += made(512 if s < 9 else 100, word, 1, field, [1, 3, 4, 5, 6], [40, 9, 4, 1, 1],
                        zero_bits=mode & 63, sign={1: 0, 2: 1}.get(mode >> 6))
        f.split_args[len(f.regions)] = {"modes": plan}
        f.coded(raw, add_split(f, raw, word, 1, field, nr_symbols=4))
    return f.build()


def ok_literals():
    """Escapes by nibble, literals, nibbles that name nothing (they stand for 0), tables without a tail."""
    f = File()
    for values, rare, nr_symbols, ntail in (([60, 61, 7, 90, 0, 511], 3, 3, 2), ([60, 61, 0], 3, 1, 0),
                                            (range(16), 1, 1, 15)):
        raw = made(1200, 2, 1, 9, values, [300] + [rare] * (len(values) - 1))
        f.coded(raw, f.split(2, 1, 9, [table_for(raw, 2, 1, 9, nr_symbols=nr_symbols, ntail=ntail)]))

    # Field 0 is the only literal, and every other literal becomes a nibble beyond the tail of 3.
    raw = made(1200, 2, 1, 9, [60, 61, 62, 63, 0], [200, 20, 5, 5, 5])

    def beyond(parts):
        numbers = w.unnibbles(parts["escapes"], parts["nesc"])
        places = [i for i, t in enumerate(numbers) if t == 15]
        stored = {int.from_bytes(parts["literals"][i:i + 4], "little"): parts["literals"][i:i + 6]
                  for i in range(0, len(parts["literals"]), 6)}
        order = w.lane_order(2)
        coded = sorted(stored, key=lambda number: (number // 64, list(order).index(number % 64)))
        for k, (place, number) in enumerate(zip(places, coded)):
            if k % 2:
                numbers[place] = 3 + k % 12
                del stored[number]
        parts.update(escapes=w.nibbles(numbers), literals=b"".join(stored[n] for n in sorted(stored)),
                     nlit=len(stored))

    f.split_args[len(f.regions)] = {"patch": beyond}
    f.coded(raw, f.split(2, 1, 9, [Table([60, 500, 501], runs([220, 10, 10, 16]), [61, 62, 63])]))
    return f.build()


def ok_tables():
    """Pools of 2, 3 and 16 tables, segments of several sizes, and tables of every shape the rules allow."""
    f = File(block_log2=20)
    for seg_log2, nr in ((9, 16), (10, 2), (13, 3)):
        parts = [made(512, 2, 1, 9, range(i, i + 9), [200, 90, 40, 10, 5, 3, 2, 1, 1]) for i in range(24)]
        raw = b"".join(parts)
        tables = [table_for(raw if seg_log2 > 9 else parts[i] + parts[(i + 16) % 24], 2, 1, 9, nr_symbols=12)
                  for i in range(nr)]
        nr_segments = -(-len(raw) // 2 // (1 << seg_log2))
        f.split_args[len(f.regions)] = {"segments": [i % nr for i in range(nr_segments)]}
        f.coded(raw, f.split(2, 1, 9, tables, seg_log2))

    def shape(table, weights):
        raw = made(1500, 2, 1, 9, table.val + table.tail, weights)
        f.coded(raw, f.split(2, 1, 9, [table]))

    # 31 symbols; two runs a symbol; 3 starts inside a bucket and one on its border; the smallest tables
    shape(Table(range(100, 131), runs([8] * 32)), [1] * 31)
    shape(Table(range(15), runs([(9, 11), (30, 6)] + [(7, 8)] * 6 + [14] * 5 + [12, 12, 16])), [2] * 15)
    shape(Table(range(502, 511), [(1, 0), (1, 1), (1, 2), (13, 3), (5, 4), (5, 5), (5, 6), (1, 7), (200, 8), (24, 9)]),
          [1, 1, 1, 13, 5, 5, 5, 1, 200])
    shape(Table([511], [(255, 0), (1, 1)]), [1])
    shape(Table([0], [(1, 0), (255, 1)], range(1, 16)), [1] * 16)
    shape(Table([7], [(1, 1), (255, 0)], [8]), [400, 1])
    return f.build()


def ok_many_coders():
    """Selectors above 255, blocks that differ from their region's default, a pool shared by coders."""
    f = File()
    raw = bf16(400)
    shared = add_split(f, raw, 2, 1, 9)
    for i in range(299):
        f.coder(w.STORED)
    last = f.coder(w.SPLIT, 2, 1, 9, 0)
    f.coded(raw, shared)
    f.coded(raw, 5)
    f.selectors[1] = last + 1
    f.coded(raw, shared)
    f.selectors[2] = 8
    f.coded(raw, last)
    return f.build()


def block_sizes(block_log2):
    """Full blocks, split-coded to almost nothing, of this size; a shorter one at the end."""
    f = File(block_log2=block_log2)
    size = 1 << block_log2
    words = np.full((size * 2 + 5000) // 2, 0x3f00, "<u2")
    words[rng.integers(0, len(words), 40)] = 0x4000
    raw = words.tobytes()
    table = Table([0x3f00 >> 8, 0x4000 >> 8], [(250, 0), (4, 1), (2, 2)])
    coder = f.split(2, 1, 7, [table], 13)
    for i in range(3):
        f.split_args[i] = {"modes": [(0, 1 << 6 | 8)]}
    f.coded(raw, coder)
    return f.build()


def ok_block_log2_16():
    return block_sizes(16)


def ok_block_log2_17():
    return block_sizes(17)


def ok_block_log2_18():
    return block_sizes(18)


def ok_block_log2_19():
    return block_sizes(19)


def ok_block_log2_20():
    return block_sizes(20)


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

def bad_heads():
    def head(name, status, *patch, **args):
        bad("head-" + name, status, plain().build(head=patch, head_args=args))

    head("major-2", "UNSUPPORTED", major=2)
    head("major-0", "UNSUPPORTED", major=0)
    head("incompat", "UNSUPPORTED", incompat=4)
    head("raw-len-huge", "BAD_DATA", raw_len=(1 << 62) + 1)
    head("raw-len-longer", "BAD_DATA", raw_len=len(plain().raw) + 1)
    head("raw-len-shorter", "BAD_DATA", raw_len=len(plain().raw) - 1)
    head("nsec", "BAD_DATA", mtime=(0, 1000000000))
    head("block-log2-15", "BAD_DATA", block_log2=15)
    head("block-log2-21", "BAD_DATA", block_log2=21)
    head("zero-38", "BAD_DATA", (38, b"\1"))
    head("reserved-first", "BAD_DATA", (112, b"\1"))
    head("reserved-last", "BAD_DATA", (4087, b"\1"))
    head("file-len-longer", "BAD_DATA", file_len=1 << 20)
    head("meta-len-small", "BAD_DATA", meta_len=15)
    head("meta-len-huge", "BAD_DATA", meta_len=(1 << 64) - 4096)
    head("payload-off-in-meta", "BAD_DATA", payload_off=4200)
    head("payload-len-huge", "BAD_DATA", payload_len=(1 << 64) - 1)
    head("payload-off-wraps", "BAD_DATA", payload_off=(1 << 64) - 8)
    head("magic", "NOT_CONTAINER", magic=b"\x89WFS\n\n\x1a\n")
    bad("head-both-damaged", "BAD_CHECKSUM",
        plain().build(whole=lambda d: d[:20] + b"\xff" + d[21:-4076] + b"\xff" + d[-4075:]))
    bad("head-longer-file", "BAD_DATA", plain().build(whole=lambda d: d + b"\0"))
    bad("head-only", "BAD_CHECKSUM", plain().build(whole=lambda d: d[:4096]))
    bad("head-100-bytes", "BAD_CHECKSUM", plain().build(whole=lambda d: d[:100]))
    bad("meta-both-damaged", "BAD_CHECKSUM",
        plain().build(whole=lambda d: d[:4100] + b"\xff" + d[4101:-4100] + b"\xff" + d[-4099:]))
    bad("text-file", "NOT_CONTAINER", TEXT)
    bad("no-bytes", "NOT_CONTAINER", b"")


def bad_sections():
    def section(name, status, change, **args):
        bad("section-" + name, status, plain().build(sections=change, **args))

    def body(kind, change):
        """Change the raw body of a section, stored plain."""
        def apply(table):
            out = []
            for k, coding, comp, raw_len in table:
                if k == kind:
                    raw = lz4.block.decompress(comp, uncompressed_size=raw_len) if coding else comp
                    raw = bytearray(raw)
                    changed = change(raw)
                    raw = bytes(raw if changed is None else changed)
                    out.append((k, 0, raw, len(raw)))
                else:
                    out.append((k, coding, comp, raw_len))
            return out
        return apply

    def patch(offset, data):
        def change(raw):
            raw[offset:offset + len(data)] = data
        return change

    def entry(index, offset, data):
        def change(meta):
            meta = bytearray(meta)
            at = 8 + 24 * index + offset
            meta[at:at + len(data)] = data
            return bytes(meta)
        return {"meta": change}

    section("unknown-critical", "UNSUPPORTED", lambda t: t + [(10, 0, b"?", 1)])
    section("missing", "BAD_DATA", lambda t: t[:3] + t[4:])
    section("twice", "BAD_DATA", lambda t: t[:3] + t[2:])
    section("order", "BAD_DATA", lambda t: [t[1], t[0]] + t[2:])
    section("kind-0", "UNSUPPORTED", lambda t: [(0, 0, b"", 0)] + t)
    section("too-many", "BAD_DATA", lambda t: t + [(0x8000 + i, 0, b"", 0) for i in range(59)])
    section("hashes-lz4", "BAD_DATA", lambda t: [s if s[0] != 6 else (6, 1, lz4.block.compress(s[2], store_size=False),
                                                                      s[3]) for s in t])
    section("block-sha-short", "BAD_DATA", lambda t: t + [(7, 0, bytes(31), 31)])
    section("lz4-longer", "BAD_DATA", lambda t: [(k, c, b, n + (c == 1)) for k, c, b, n in t])
    section("lz4-shorter", "BAD_DATA", lambda t: [(k, c, b, n - (c == 1)) for k, c, b, n in t])
    section("lz4-bomb", "BAD_DATA", lambda t: [(k, c, b, 256 * len(b) if c == 1 else n) for k, c, b, n in t])
    section("lz4-garbage", "BAD_DATA", lambda t: [(k, c, b"\xff" * len(b) if c == 1 else b, n) for k, c, b, n in t])
    section("none", "BAD_DATA", lambda t: [], meta=lambda m: bytes(16))
    section("table-cut", "BAD_DATA", None, meta=lambda m: struct.pack("<II", 6, 0) + bytes(20))
    section("table-zero", "BAD_DATA", None, meta=lambda m: m[:4] + b"\1" + m[5:])
    section("entry-coding", "UNSUPPORTED", None, **entry(0, 2, b"\2"))
    section("entry-zero", "BAD_DATA", None, **entry(0, 4, b"\1"))
    section("entry-comp-len-huge", "BAD_DATA", None, **entry(1, 8, b"\xff" * 8))
    section("bytes-after", "BAD_DATA", None, meta=lambda m: m + b"\0")

    def region(name, status, offset, data):
        bad("region-" + name, status, plain().build(sections=body(w.REGIONS, patch(offset, data))))

    second, third, fourth, text = 40, 80, 120, len(TEXT)
    region("gap", "BAD_DATA", second, struct.pack("<Q", text + 1))
    region("overlap", "BAD_DATA", second, struct.pack("<Q", text - 1))
    region("empty", "BAD_DATA", second + 8, bytes(8))
    region("len-wraps", "BAD_DATA", second + 8, b"\xff" * 8)
    region("kind-0", "UNSUPPORTED", 16, b"\0")
    region("kind-4", "UNSUPPORTED", 16, b"\4")
    region("phase-8", "BAD_DATA", 17, b"\x08")
    region("coder", "BAD_DATA", 18, b"\3")
    region("zero-20", "BAD_DATA", 20, b"\1")
    region("zero-32", "BAD_DATA", 39, b"\1")
    region("coded-arg", "BAD_DATA", 24, b"\1")
    region("constant-coder", "BAD_DATA", third + 18, b"\1")
    region("copy-forward", "BAD_DATA", fourth + 24, struct.pack("<Q", text + 1400 + 300 - 499))
    region("copy-wraps", "BAD_DATA", fourth + 24, b"\xff" * 8)
    region("copy-phase", "BAD_DATA", fourth + 17, b"\1")
    region("copy-coder", "BAD_DATA", fourth + 18, b"\1")
    bad("region-cut", "BAD_DATA", plain().build(sections=body(w.REGIONS, lambda r: r[:-1])))
    bad("region-none", "BAD_DATA", plain().build(sections=body(w.REGIONS, lambda r: b"")))
    f = plain()
    f.copy(len(f.raw) - 500, 100)
    bad("region-copy-of-copy", "BAD_DATA", f.build())
    f = plain()
    f.copy(len(f.raw) - 600, 200)
    bad("region-copy-meets-copy", "BAD_DATA", f.build())

    def coder(name, status, offset, data, index=2):
        bad("coder-" + name, status, plain().build(sections=body(w.CODERS, patch(16 * index + offset, data))))

    coder("coding-7", "UNSUPPORTED", 0, b"\7")
    coder("coding-255", "UNSUPPORTED", 0, b"\xff")
    coder("word-3", "BAD_DATA", 1, b"\3")
    coder("word-16", "BAD_DATA", 1, b"\x10")
    coder("word-0", "BAD_DATA", 1, b"\0")
    coder("lz4-word-2", "BAD_DATA", 1, b"\2", 0)
    coder("stored-word-4", "BAD_DATA", 1, b"\4", 1)
    coder("rot-2", "BAD_DATA", 2, b"\2")
    coder("stored-rot", "BAD_DATA", 2, b"\1", 1)
    coder("field-0", "BAD_DATA", 3, b"\0")
    coder("field-13", "BAD_DATA", 3, b"\x0d")
    coder("field-of-word", "BAD_DATA", 1, b"\1")
    coder("field-not-pools", "BAD_DATA", 3, b"\x08")
    coder("stored-field", "BAD_DATA", 3, b"\1", 1)
    coder("pool", "BAD_DATA", 4, b"\1")
    coder("stored-pool", "BAD_DATA", 4, b"\1", 1)
    coder("grid-of-split", "BAD_DATA", 6, b"\1")
    coder("zero-8", "BAD_DATA", 8, b"\1")
    coder("zero-15", "BAD_DATA", 15, b"\1")
    bad("coder-cut", "BAD_DATA", plain().build(sections=body(w.CODERS, lambda r: r[:-1])))

    def pool(name, change):
        f = plain()
        p = f.pools[0]
        change(p.tables[0], p)
        f.payloads = dict(enumerate([lz4.block.compress(TEXT, store_size=False), bytes(1000)]))
        bad("pool-" + name, "BAD_DATA", f.build())

    def pool_bytes(name, change):
        bad("pool-" + name, "BAD_DATA", plain().build(sections=body(w.POOLS, change)))

    pool_bytes("no-tables", patch(0, b"\0"))
    pool_bytes("17-tables", patch(0, b"\x11"))
    pool_bytes("table-missing", patch(0, b"\2"))
    pool_bytes("seg-8", patch(1, b"\x08"))
    pool_bytes("seg-14", patch(1, b"\x0e"))
    pool_bytes("field-0", patch(2, b"\0"))
    pool_bytes("field-13", patch(2, b"\x0d"))
    pool_bytes("zero", patch(3, b"\1"))
    pool_bytes("m-1", patch(4, b"\1"))
    pool_bytes("m-33", patch(4, b"\x21"))
    pool_bytes("tail-16", patch(5, b"\x10"))
    pool_bytes("runs-33", patch(6, b"\x21"))
    pool_bytes("runs-few", patch(6, b"\2"))
    pool_bytes("table-zero", patch(7, b"\1"))
    pool_bytes("cut", lambda r: r[:-1])
    pool_bytes("byte-after", lambda r: r + b"\0")

    def values(t, p):
        t.val[1] = t.val[0]
    pool("value-twice", values)

    def value_large(t, p):
        t.val[1] = 512
    pool("value-large", value_large)

    def tail_large(t, p):
        t.tail.append(600)
    pool("tail-large", tail_large)

    def tail_same(t, p):
        t.tail.append(t.val[0])
    pool("tail-is-value", tail_same)

    def with_runs(name, *runs_):
        def change(t, p):
            t.val, t.tail, t.runs = [120, 121, 122, 123], [], list(runs_)
        pool(name, change)

    with_runs("run-empty", (100, 0), (0, 1), (100, 1), (40, 2), (8, 3), (8, 4))
    with_runs("run-sum-255", (100, 0), (99, 1), (40, 2), (8, 3), (8, 4))
    with_runs("run-sum-257", (100, 0), (101, 1), (40, 2), (8, 3), (8, 4))
    with_runs("run-sum-512", (255, 0), (255, 1), (1, 2), (1, 3), (255, 4))
    with_runs("run-symbol", (100, 0), (100, 1), (40, 2), (8, 5), (8, 4))
    with_runs("run-none", (100, 0), (100, 1), (40, 2), (8, 1), (8, 4))
    with_runs("run-three", (50, 0), (50, 1), (50, 0), (40, 2), (50, 0), (8, 3), (8, 4))
    with_runs("run-escape-two", (100, 0), (100, 1), (8, 4), (32, 2), (8, 3), (8, 4))
    with_runs("run-bucket", (1, 0), (1, 1), (1, 2), (1, 3), (252, 4))

    def column(name, kind, change):
        bad("column-" + name, "BAD_DATA", plain().build(sections=body(kind, change)))

    column("lengths-short", w.LENGTHS, lambda r: r[:-1])
    column("lengths-long", w.LENGTHS, lambda r: r + b"\0")
    column("lengths-sum", w.LENGTHS, lambda r: bytes([r[0] ^ 1]) + r[1:])
    column("selectors-short", w.SELECTORS, lambda r: r[:-1])
    column("selector", w.SELECTORS, lambda r: b"\4" + r[1:])
    column("selector-high", w.SELECTORS, lambda r: r[:2] + b"\1" + r[3:])
    column("hashes-short", w.HASHES, lambda r: r[:-8])
    column("length-above-raw", w.LENGTHS, lambda r: r[:4] + b"\xff" + r[5:])


def bad_blocks():
    def block(name, status, change):
        bad("block-" + name, status, plain().build(payload=change))

    def flip(index, at, bit=1):
        def change(p):
            b = bytearray(p[index])
            b[at] ^= bit
            p[index] = bytes(b)
        return change

    def replace(index, data):
        def change(p):
            p[index] = data(p[index])
        return change

    def hash_flip(column):
        column[1] ^= 1 << 63
    bad("block-hash", "BAD_CHECKSUM", plain().build(hashes=hash_flip))
    block("lz4-short", "BAD_DATA", replace(0, lambda p: p[:-1]))
    block("lz4-byte-after", "BAD_DATA", replace(0, lambda p: p + b"\0"))
    block("lz4-empty", "BAD_DATA", replace(0, lambda p: b""))
    block("split-empty", "BAD_DATA", replace(1, lambda p: b""))
    block("split-short", "BAD_DATA", replace(1, lambda p: p[:-1]))
    block("split-byte-after", "BAD_DATA", replace(1, lambda p: p + b"\0"))
    block("split-11-bytes", "BAD_DATA", replace(1, lambda p: p[:11]))
    block("split-counts", "BAD_DATA", replace(1, lambda p: b"\xff" * 12 + p[12:]))
    f = plain()
    f.selectors[1] = 2
    f.payloads[1] = bytes(f.raw[len(TEXT):len(TEXT) + 1399])
    bad("block-stored-short", "BAD_DATA", f.build())
    f = File()
    f.coded(b"ab" * 50, f.coder(w.CONSTANT, 2))
    f.payloads[0] = b"aba"
    bad("block-constant-long", "BAD_DATA", f.build())
    f = File()
    f.coded(b"a", f.coder(w.CONSTANT, 2))
    f.payloads[0] = b"aa"
    bad("block-constant-of-half-a-word", "BAD_DATA", f.build())
    f = File()
    raw = bf16(800)
    f.coded(raw, add_split(f, raw, 2, 1, 9))
    f.coded(b"x", 0)
    f.payloads[1] = b"x"
    bad("block-split-no-words", "BAD_DATA", f.build())

    def split(name, change, status="BAD_DATA", tables=1, rot=1, word=2, modes=()):
        g = File()
        raw = made(1111, word, rot, 9, [60, 61, 62, 63, 7, 200, 8, 300, 0], [300, 90, 30, 9, 9, 9, 5, 3, 3])
        table = table_for(raw, word, rot, 9, nr_symbols=5, ntail=2)
        coder = g.split(word, rot, 9, [table] * tables, 9)
        g.coded(raw, coder)
        g.split_args[0] = {"patch": change, "modes": modes}
        bad("split-" + name, status, g.build())

    def add(key, amount, **also):
        def change(p):
            p[key] += amount
            for k, extra in also.items():
                p[k] += extra
        return change

    split("len0-above", add("len0", 64 * 18 + 1))
    split("nesc-above", add("nesc", 64 * 18 + 1))
    split("nlit-above-nesc", add("nlit", 2000))
    split("stream0-byte-after", add("len0", 1, stream0=b"\0"))
    split("stream1-byte-after", add("len1", 1, stream1=b"\0"))
    split("escape-after", lambda p: p.update(nesc=p["nesc"] + 2, escapes=p["escapes"] + b"\0"))

    def shorten(stream, count):
        def change(p):
            p[stream] = p[stream][:-1]
            p[count] -= 1
        return change
    split("stream0-cut", shorten("stream0", "len0"))
    split("stream1-cut", shorten("stream1", "len1"))

    def fewer_escapes(p):
        n = w.unnibbles(p["escapes"], p["nesc"])[:-1]
        p["escapes"], p["nesc"] = w.nibbles(n), len(n)
    split("escape-cut", fewer_escapes)

    def odd_nibble(p):
        n = w.unnibbles(p["escapes"], p["nesc"])
        n = n + [0] * (1 - len(n) % 2)
        p["escapes"], p["nesc"] = w.nibbles(n)[:-1] + bytes([w.nibbles(n)[-1] | 0x90]), len(n)
    split("escape-nibble", odd_nibble)

    def literal(change):
        def apply(p):
            entries = [p["literals"][i:i + 6] for i in range(0, len(p["literals"]), 6)]
            assert len(entries) >= 2
            p["literals"] = b"".join(change(entries))
        return apply
    split("literal-order", literal(lambda e: [e[1], e[0]] + e[2:]))
    split("literal-twice", literal(lambda e: [e[0], e[0]] + e[2:]))
    split("literal-beyond", literal(lambda e: e[:-1] + [struct.pack("<I", 1111) + e[-1][4:]]))
    split("literal-far", literal(lambda e: e[:-1] + [b"\xff" * 4 + e[-1][4:]]))
    split("table-number", lambda p: p.update(segments=b"\x02\0"), tables=2)
    split("table-nibble", lambda p: p.update(segments=p["segments"][:-1] + b"\x10"), tables=2)
    split("states-zero", lambda p: p.update(states=bytes(256)))
    split("states-ones", lambda p: p.update(states=b"\xff" * 256))

    def state_flip(at, bit):
        def change(p):
            s = bytearray(p["states"])
            s[at] ^= bit
            p["states"] = bytes(s)
        return change
    split("state-l", state_flip(5, 0x10))
    split("state-h", state_flip(64 + 5, 0x01))
    split("state-h-zero", lambda p: p.update(states=p["states"][:64] + b"\0" + p["states"][65:]))

    z, negative = 0x01, 0x80
    split("mode-order", lambda p: p.update(nmode=2, modes=struct.pack("<HBHB", 1, 0, 1, 0)))
    split("mode-descends", lambda p: p.update(nmode=2, modes=struct.pack("<HBHB", 1, 0, 0, 0)))
    split("mode-superrow", lambda p: p.update(nmode=1, modes=struct.pack("<HB", 3, 0)))
    split("mode-sign-3", lambda p: p.update(nmode=1, modes=struct.pack("<HB", 0, 0xc0)))
    split("mode-zeros", lambda p: p.update(nmode=1, modes=struct.pack("<HB", 0, 7)))
    split("mode-size", lambda p: p.update(nmode=1, modes=struct.pack("<HB", 0, z)))
    split("mode-sign-size", lambda p: p.update(nmode=1, modes=struct.pack("<HB", 0, negative)))
    split("mode-rot-0", lambda p: p.update(nmode=1, modes=struct.pack("<HB", 0, 0)), rot=0)

    # The last unit of one row holds 7 partial bits a byte; bit 7 of one is set.
    split("partial-high-bit", lambda p: p.update(rest=p["rest"][:-1] + bytes([p["rest"][-1] | 0x80])), word=4)
    bad("split-carried", "BAD_DATA", carried_bits())


def carried_bits():
    """A last unit of 64 bytes, so half of the final states carry nothing and must be 0: one is not."""
    f = File()
    raw = made(512 * 8 + 64, 1, 0, 7, [48, 49, 50], [20, 9, 1])
    f.split_args[0] = {"beyond": b"\1"}
    f.coded(raw, add_split(f, raw, 1, 0, 7))
    return f.build()


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


def bad_grids():
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


def main(out):
    for folder in ("ok", "bad"):
        os.makedirs(os.path.join(out, folder), exist_ok=True)
    sums, expected = "", ""
    good = {name: make for part in (globals(), vars(gen_wide)) for name, make in part.items() if name[:3] == "ok_"}
    for name in sorted(good):
        seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"))
        data, file = good[name](), name[3:].replace("_", "-") + ".wfs"
        raw = w.Container(data).decode()
        sums += f"{hashlib.sha256(raw).hexdigest()}  {file}\n"
        with open(os.path.join(out, "ok", file), "wb") as f:
            f.write(data)
    seed(21)
    bad_heads()
    bad_sections()
    bad_blocks()
    bad_grids()
    gen_wide.bad_all()
    for name, (status, data) in sorted(BAD.items(), key=lambda item: item[0] + ".wfs"):
        expected += f"{status} {name}.wfs\n"
        with open(os.path.join(out, "bad", name + ".wfs"), "wb") as f:
            f.write(data)
    for path, text in (("ok/SHA256SUMS", sums), ("bad/EXPECTED", expected)):
        with open(os.path.join(out, path), "w") as f:
            f.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
