"""The golden containers of the file itself (codec/FORMAT.md 1) and of pools (2.3), a part of gen.py."""
import hashlib
import struct

import lz4.block
import numpy as np

import wfsfile as w
from build import TEXT, File, add_split, bad, bf16, plain, rng
from wfsfile import Table


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
    head("magic", "BAD_CHECKSUM", magic=b"\x89WFS\n\n\x1a\n")
    bad("head-both-damaged", "BAD_CHECKSUM",
        plain().build(whole=lambda d: d[:20] + b"\xff" + d[21:-4076] + b"\xff" + d[-4075:]))
    bad("head-longer-file", "BAD_DATA", plain().build(whole=lambda d: d + b"\0"))
    bad("head-only", "BAD_CHECKSUM", plain().build(whole=lambda d: d[:4096]))
    bad("head-100-bytes", "BAD_CHECKSUM", plain().build(whole=lambda d: d[:100]))
    bad("meta-both-damaged", "BAD_CHECKSUM",
        plain().build(whole=lambda d: d[:4100] + b"\xff" + d[4101:-4100] + b"\xff" + d[-4099:]))
    bad("text-file", "NOT_CONTAINER", TEXT)
    bad("no-bytes", "BAD_CHECKSUM", b"")


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


def bad_sections():
    def section(name, status, change, **args):
        bad("section-" + name, status, plain().build(sections=change, **args))

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


def bad_regions():
    def region(name, status, offset, data):
        bad("region-" + name, status, plain().build(sections=body(w.REGIONS, patch(offset, data))))

    second, third, fourth, text = 40, 80, 120, len(TEXT)
    region("gap", "BAD_DATA", second, struct.pack("<Q", text + 1))
    region("overlap", "BAD_DATA", second, struct.pack("<Q", text - 1))
    region("empty", "BAD_DATA", second + 8, bytes(8))
    region("len-wraps", "BAD_DATA", second + 8, b"\xff" * 8)
    region("kind-0", "UNSUPPORTED", 16, b"\0")
    region("kind-4", "UNSUPPORTED", 16, b"\4")
    region("phase-255", "BAD_DATA", 17, b"\xff")
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


def bad_coders():
    def coder(name, status, offset, data, index=2):
        bad("coder-" + name, status, plain().build(sections=body(w.CODERS, patch(16 * index + offset, data))))

    coder("coding-8", "UNSUPPORTED", 0, b"\x08")
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


def bad_pools():
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


def bad_columns():
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


def bad_all():
    bad_heads()
    bad_sections()
    bad_regions()
    bad_coders()
    bad_pools()
    bad_columns()
    bad_blocks()
