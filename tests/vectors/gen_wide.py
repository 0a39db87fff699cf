"""The golden containers of the wide coding (codec/FORMAT.md 4), a part of gen.py."""
import struct

import lz4.block
import numpy as np

import wfsfile as w
from build import E4M3, TEXT, File, bad, floats, grid_codes, made, packed_scales, rng
from wfsfile import pack_coder

ALL = 1 << 12


def names_from(first, freqs):
    """A table: the frequencies of the names from `first` on, then that of the escape."""
    return dict(zip([*range(first, first + len(freqs) - 1), w.ESCAPE], freqs))


def pool_of(field, tables, base=0, tail=()):
    return w.WidePool(field, base, tables, tail)


def table_of(names, least=2, escape=24):
    """A table fitted to names, the escape for what comes fewer than `least` times."""
    names, counts = np.unique(names, return_counts=True)
    keep = {int(k): int(c) for k, c in zip(names, counts) if c >= least and k < w.ESCAPE}
    total = sum(keep.values())
    freqs = {k: max(1, c * (ALL - escape) // total - 1) for k, c in keep.items()}
    most = max(freqs, key=freqs.get)
    freqs[most] += ALL - escape - sum(freqs.values())
    return {**freqs, w.ESCAPE: escape}


def fields_of(raw, word, rot, field):
    bits = 8 * word
    return (w.rotl(w.words_of(raw, word), rot, bits) >> np.uint64(bits - field)).astype(int)


def pool_for(raws, word, rot, field, base=0, tail=(), **args):
    """A pool with a table for each of raws."""
    tables = [table_of((fields_of(raw, word, rot, field) - base) % (1 << field), **args) for raw in raws]
    return pool_of(field, tables, base, tail)


def drawn(n, word, rot, field, base=0, spread=1.0, **args):
    """Words whose fields are bell-shaped around base, far ones among them."""
    values = sorted({int(v) % (1 << field) for v in np.rint(rng.standard_normal(40) * spread * 3 + base)})
    return made(n, word, rot, field, values, list(rng.exponential(1, len(values)) ** 3 + .01), **args)


def ok_wide():
    """Words, fields and rotations; tables, groups and phases; escapes, literals, modes; words cut at borders."""
    f = File(block_log2=20)

    def add(raw, word, rot, pool, place=0, **args):
        f.split_args[len(f.regions)] = args
        f.coded(raw, f.wide(word, rot, pool), place)

    for word, rot, field in ((1, 0, 8), (1, 1, 4), (1, 0, 7), (2, 1, 9), (2, 0, 3), (2, 1, 12), (4, 1, 9), (4, 0, 12),
                             (8, 1, 12), (8, 0, 1)):
        for n in (513, 961, 1536, 130, 2000):
            raw = drawn(n, word, rot, field, base=1 << field - 1)
            pool = pool_for([raw], word, rot, field, base=max(0, (1 << field - 1) - 100))
            if len(w.wide_encode(raw, word, rot, field, pool)) <= len(raw):
                add(raw, word, rot, pool)
    assert len(f.regions) >= 25
    # Tables of 2, 3, 5 and 32; the base such that names wrap around; groups of other segments, cut in front.
    for nr, groups, phase in ((2, [(0, 64)], 63), (3, [(0, 100), (130, 300), (131, 64)], 7), (32, [(0, 65535)], 65000),
                              (5, [(0, 1000), (1000, 999), (4095, 77)], 0)):
        raws = [drawn(4096 // nr + 1, 2, 1, 9, base=5 * (i % 4)) for i in range(nr)]
        raw = b"".join(raws)
        pool = pool_for([8 * piece + raw for piece in raws], 2, 1, 9, base=400, tail=[*range(40), *range(480, 512)])
        nr_segments = int(w.segments_of(len(raw) // 2, groups, phase)[-1]) + 1
        add(raw, 2, 1, pool, groups=groups, phase=phase, numbers=[(5 * i + 1) % nr for i in range(nr_segments)])
    # Modes.
    for word, field in ((2, 9), (4, 9), (8, 12)):
        most = 8 * word - field - 1
        plan = [(0, 0), (1, 1 << 6), (2, 2 << 6), (3, 3), (4, 1 << 6 | 4), (6, 2 << 6 | most)]
        raw, mode = b"", 0
        for s in range(8):
            mode = dict(plan).get(s, mode)
            raw += made(512 if s < 7 else 100, word, 1, field, [1, 3, 4, 5, 6], [40, 9, 4, 1, 1],
                        zero_bits=mode & 63, sign={1: 0, 2: 1}.get(mode >> 6))
        add(raw, word, 1, pool_for([raw], word, 1, field), modes=plan)
    # Escapes by byte and literals; a byte that names nothing stands for field 0; no escape; nearly one name; 255 names.
    raw = made(2000, 2, 1, 9, [3, 4, 300, 511, 0, 77], [900, 60, 5, 5, 5, 5])
    add(raw, 2, 1, pool_of(9, [names_from(0, [4000, 80, 16])], 3, [511, 300]))
    raw = made(2000, 2, 1, 9, [3, 0], [900, 20])
    add(raw, 2, 1, pool_of(9, [names_from(0, [4000, 96])], 3, [511]), patch=lambda p: p.update(
        nlit=0, literals=b"", escapes=bytes(1 + i % 255 for i in range(p["nesc"]))))
    raw = made(2000, 2, 1, 9, [3, 4], [900, 20])
    add(raw, 2, 1, pool_of(9, [names_from(0, [4000, 96, 0])], 3))
    add(made(2000, 2, 1, 9, [261]), 2, 1, pool_of(9, [names_from(254, [4095, 1])], 7))
    raw = made(3000, 2, 1, 12, range(4000, 4096), [400, 100] + [1] * 94)
    add(raw, 2, 1, pool_of(12, [names_from(0, [1700, 300] + [8] * 253 + [72])], 4000))
    # Words cut in front and behind.
    for word, field in ((2, 9), (4, 9), (8, 12)):
        raw = made(1028, word, 1, field, [3, 200, 9, 77], [90, 9, 2, 1])
        for phase in range(word):
            piece = raw[phase:len(raw) - (phase + 1) % word]
            add(piece, word, 1, pool_for([raw], word, 1, field, tail=[77], least=60), phase)
    return f.build()


def ok_grid_wide():
    """Codes of grids in the wide coding: fields of 5 bits and whole bytes, with several tables; literals, cut words."""
    f = File(block_log2=20)

    def add(op, flags, output, base, segments, rot, field, head=b"", tail=b"", n=0, literals=(), **args):
        grid = w.Grid(op, flags, output, base)
        n = n or sum(s.n for s in segments)
        codes = grid_codes(n, len(base), bool(flags & w.SIGNED))
        half = n // 2
        pool = pool_for([codes[:half].tobytes(), codes[half:].tobytes()], 1, rot, field)
        f.grids.append(grid)
        f.wide_pools.append(pool)
        coder = f.coder(w.GRID_WIDE, grid.word, rot, field, len(f.wide_pools) - 1, len(f.grids) - 1)
        numbers = [int(i >= half // 100) for i in range(-(-n // 100))]
        coded = w.wide_encode(codes.tobytes(), 1, rot, field, pool, groups=[(0, 100)], numbers=numbers)
        packed = packed_scales(segments, args["sb"]) if segments else ()
        raw, payload = w.grid_encode(grid, codes, segments, coded, packed=packed, literals=literals, edges=head + tail,
                                     **args)
        assert len(payload) <= len(raw)
        f.payloads[len(f.regions)] = payload
        f.coded(head + raw + tail, coder, -len(head) % grid.word)

    S = w.Segment
    for rot, field in ((1, 5), (0, 8)):
        add(w.NEAREST, 0, w.BF16, E4M3, [S(1500, 300, 17, 128, 128, 126)], rot, field, tail=b"t", mb=12, sb=13,
            low=120 << 12, literals=[(3, 1), (900, 65535)])
        add(w.NEAREST, w.SIGNED, w.F32, floats(np.arange(16) - 7.5), [S(800, 256, 5, 32, 1), S(701, 100)], rot, field,
            head=b"hhh", mb=7, sb=8, low=119 << 7)
        add(w.PALETTE, w.SIGNED, w.F16, np.arange(200) * 300, [], rot, field, n=1500, mb=0, sb=0, low=0)
    return f.build()


# ---- bad ones --------------------------------------------------------------------------------------------------------

def wide_file(patch=None, rot=1, word=2, nr_tables=1, field=9, n=1111, **args):
    """One block: 18 rows, the last superrow of 2; some escapes and literals."""
    f = File()
    if field == 9:
        raw = made(n, word, rot, 9, [60, 61, 62, 63, 7, 200, 300, 0], [900, 90, 30, 9, 5, 5, 5, 5])
        pool = pool_of(9, [names_from(60, [3000, 800, 200, 64, 32])] * nr_tables, 0, [200, 7])
    else:
        raw = made(n, 8, 1, 12, [60, 61, 7], [900, 30, 20], zero_bits=40)
        pool = pool_of(12, [names_from(60, [3900, 164, 32])], 0)
        word, args = 8, {"modes": [(0, 40)]}
    f.split_args[0] = {"patch": patch, **args}
    f.coded(raw, f.wide(word, rot, pool))
    return f


def put(**values):
    return lambda p: p.update(values)


def bad_payloads():
    def payload(name, change, **args):
        bad("wide-" + name, "BAD_DATA", wide_file(change, **args).build())

    def more(key, amount, piece):
        """Counts more than the rule allows, with the bytes to match."""
        return lambda p: p.update({key: p[key] + amount, piece: p[piece] + bytes(amount)})

    rows = 18
    payload("stream-odd", more("stream_len", 1, "stream"))
    payload("stream-above", lambda p: p.update(stream_len=128 * rows + 2, stream=p["stream"].ljust(128 * rows + 2, b"\0")),
            field=12)
    payload("escapes-above", lambda p: p.update(nesc=64 * rows + 1, escapes=p["escapes"].ljust(64 * rows + 1, b"\0")),
            field=12)

    def many_literals(p):
        """One more than escapes, with the words that are there: only their number is wrong."""
        numbers = range(p["nesc"] + 1)
        raw = bytes(f.raw)
        p.update(nlit=len(numbers), literals=b"".join(struct.pack("<I", i) + raw[8 * i:8 * i + 8] for i in numbers))
    f = wide_file(field=12)
    f.split_args[0]["patch"] = many_literals
    bad("wide-literals-above-escapes", "BAD_DATA", f.build())

    payload("no-groups", put(ngroup=0, groups=b""))
    payload("phase", put(phase=65535))

    def group(name, groups, phase=0, **args):
        joined = b"".join(first.to_bytes(3, "little") + struct.pack("<H", seg_len) for first, seg_len in groups)
        payload("group-" + name, put(ngroup=len(groups), groups=joined, phase=phase), **args)
    group("first", [(1, 2000)])
    group("twice", [(0, 2000), (500, 2000), (500, 2000)])
    group("descends", [(0, 2000), (500, 2000), (400, 2000)])
    group("at-end", [(0, 2000), (1111, 2000)])
    group("far", [(0, 2000), ((1 << 24) - 1, 2000)])
    group("segment-63", [(0, 63)])
    group("segment-0", [(0, 0)])
    group("second-segment-63", [(0, 2000), (500, 63)])
    group("phase", [(0, 64)], phase=64)
    payload("groups-cut", put(ngroup=255, numbers=b"", modes=b"", states=b"", stream=b"", escapes=b"", literals=b"",
                              rest=b""))
    payload("table-number", put(numbers=b"\3"), nr_tables=3)
    payload("table-bits", put(numbers=b"\x10"), nr_tables=3)
    payload("table-bytes-short", put(numbers=b""), nr_tables=3)

    def modes(*changes):
        return put(nmode=len(changes), modes=b"".join(struct.pack("<HB", *c) for c in changes))
    payload("mode-twice", modes((1, 0), (1, 0)))
    payload("mode-descends", modes((1, 0), (0, 0)))
    payload("mode-superrow", modes((3, 0)))
    payload("mode-sign-3", modes((0, 0xc0)))
    payload("mode-zeros", modes((0, 7)))
    payload("mode-size", modes((0, 1)))
    payload("mode-rot-0", modes((0, 0)), rot=0)

    def words(change):
        """Change the states or the stream, as a list of numbers."""
        def apply(p):
            states, stream = list(struct.unpack("<32I", p["states"])), p["stream"]
            states, stream = change(states, stream)
            p.update(states=struct.pack("<32I", *states), stream=stream, stream_len=len(stream))
        return apply
    payload("states-zero", words(lambda s, t: ([0] * 32, t)))
    payload("states-ones", words(lambda s, t: ([0xffffffff] * 32, t)))
    payload("state-low", words(lambda s, t: (s[:5] + [s[5] ^ 0x10] + s[6:], t)))
    payload("state-high", words(lambda s, t: (s[:31] + [s[31] ^ 1 << 31], t)))
    payload("stream-after", words(lambda s, t: (s, t + b"\0\0")))
    payload("stream-cut", words(lambda s, t: (s, t[:-2])))
    payload("stream-first", words(lambda s, t: (s, t[2:])))
    payload("stream-none", words(lambda s, t: (s, b"")))
    payload("stream-end", words(lambda s, t: (s, t[:-2] + bytes([t[-2] ^ 1, t[-1]]))))
    payload("escape-after", more("nesc", 1, "escapes"))
    payload("escape-cut", lambda p: p.update(nesc=p["nesc"] - 1, escapes=p["escapes"][:-1]))

    def literal(change):
        def apply(p):
            entries = [p["literals"][i:i + 6] for i in range(0, len(p["literals"]), 6)]
            assert len(entries) >= 2
            p["literals"] = b"".join(change(entries))
        return apply
    payload("literal-order", literal(lambda e: [e[1], e[0]] + e[2:]))
    payload("literal-twice", literal(lambda e: [e[0], e[0]] + e[2:]))
    payload("literal-beyond", literal(lambda e: e[:-1] + [struct.pack("<I", 1111) + e[-1][4:]]))
    payload("literal-far", literal(lambda e: e[:-1] + [b"\xff" * 4 + e[-1][4:]]))

    # The last superrow has 2 rows and 87 words. A word of 2 bytes has 7 rest bits: a partial byte each.
    payload("partial-high-bit", lambda p: p.update(rest=p["rest"][:-128] + bytes([p["rest"][-128] | 0x80]) + p["rest"][-127:]))
    payload("rest-beyond", lambda p: p.update(rest=p["rest"][:-1] + bytes([p["rest"][-1] | 1])))
    payload("rest-beyond-8-rows", lambda p: p.update(rest=p["rest"][:-1] + bytes([p["rest"][-1] | 0x80])), n=1500)
    payload("rest-short", lambda p: p.update(rest=p["rest"][:-1]))
    payload("byte-after", lambda p: p.update(edges=b"\0"))
    for length in (0, 11, 12, 17, 100):
        bad(f"wide-{length}-bytes", "BAD_DATA", wide_file().build(payload=lambda p: p.__setitem__(0, p[0][:length])))
    f = wide_file()
    f.coded(b"x", 0)
    f.payloads[1] = b"x"
    bad("wide-no-words", "BAD_DATA", f.build())


def bad_pools():
    def section(name, change, lz4_coded=False):
        """Change the bytes of the section of wide pools."""
        def apply(table):
            body = change(wide_file().wide_pools[0].pack())
            coding, comp = (1, lz4.block.compress(body, store_size=False)) if lz4_coded else (0, body)
            return [s if s[0] != w.WIDE_POOLS else (s[0], coding, comp, len(body)) for s in table]
        bad("wide-pool-" + name, "BAD_DATA", wide_file().build(sections=apply))

    def patch(offset, data):
        return lambda b: b[:offset] + data + b[offset + len(data):]

    def pool(name, **changes):
        """A section of one pool, otherwise like that of wide_file."""
        good = {"field": 9, "tables": [names_from(60, [3000, 800, 200, 64, 32])], "base": 0, "tail": [200, 7]}
        section(name, lambda b: pool_of(**{**good, **changes}).pack())

    section("no-tables", patch(0, b"\0"))
    section("table-missing", patch(0, b"\2"))
    pool("33-tables", tables=[names_from(60, [3000, 800, 200, 64, 32])] * 33)
    section("field-0", patch(1, b"\0"))
    section("field-13", patch(1, b"\x0d"))
    section("zero", patch(3, b"\1"))
    pool("base", base=512)
    pool("tail-large", tail=[200, 512])
    pool("tail-twice", tail=[200, 7, 200])
    section("m-0", patch(11, b"\0"))
    section("names-above-254", patch(10, b"\xfc"))
    pool("sum-4095", tables=[names_from(60, [3000, 800, 200, 64, 31])])
    pool("sum-4097", tables=[names_from(60, [3000, 800, 200, 64, 33])])
    section("sum-8192", lambda b: pool_of(9, [names_from(60, [4000, 4000, 96, 64, 32])], 0, [200, 7]).pack())
    section("frequency-4096", lambda b: pool_of(9, [names_from(60, [ALL, 0, 0])], 0).pack())
    section("frequency-long", lambda b: b.replace(b"\x40\x20", b"\xc0\0\x20"))
    section("cut", lambda b: b[:-1])
    section("byte-after", lambda b: b + b"\0")
    section("tail-cut", lambda b: b[:7])
    section("65", lambda b: b * 65)
    section("none", lambda b: b"")
    section("lz4", lambda b: b * 9, lz4_coded=True)
    bad("wide-section-missing", "BAD_DATA", wide_file().build(sections=lambda t: [s for s in t if s[0] != w.WIDE_POOLS]))
    f = File()
    f.coded(TEXT, f.coder(w.LZ4))
    body = wide_file().wide_pools[0].pack()
    bad("wide-section-unused", "BAD_DATA", f.build(sections=lambda t: t + [(w.WIDE_POOLS, 0, body, len(body))]))
    # A field of 7 bits has names up to 127.
    f = File()
    raw = made(1000, 2, 1, 7, [120, 121], [9, 1])
    f.coded(raw, f.wide(2, 1, pool_of(7, [names_from(120, [3000, 900, 100, 40, 24, 16, 8, 4, 3, 1])])))
    bad("wide-pool-names-above-field", "BAD_DATA", f.build())


def bad_coders():
    def coder(name, base=wide_file, **fields):
        f = base()
        good = dict(zip(("coding", "word", "rot", "field", "pool", "grid"), f.coder_fields[0]))
        f.coders[0] = pack_coder(**{**good, **fields})
        bad("wide-coder-" + name, "BAD_DATA", f.build())

    def byte_file():
        f = File()
        raw = made(1500, 1, 0, 8, [7, 8, 9], [90, 9, 1])
        f.coded(raw, f.wide(1, 0, pool_for([raw], 1, 0, 8)))
        return f

    def nine_bit_file():
        f = File()
        f.coded(bytes(1500), f.wide(1, 0, pool_of(9, [names_from(0, [4000, 96])])))
        f.payloads[0] = bytes(400)
        return f

    def grid_file():
        f = File()
        codes = grid_codes(1000, 100)
        pool = pool_for([codes.tobytes()], 1, 0, 8)
        grid, segments = w.Grid(w.NEAREST, 0, w.BF16, floats(np.arange(100))), [w.Segment(1000, 90)]
        f.grids.append(grid)
        f.wide_pools.append(pool)
        raw, f.payloads[0] = w.grid_encode(grid, codes, segments, w.wide_encode(codes.tobytes(), 1, 0, 8, pool),
                                           packed=[0], low=127)
        f.coded(raw, f.coder(w.GRID_WIDE, 2, 0, 8))
        return f

    coder("pool", pool=1)
    coder("field-of-pool", field=8)
    coder("field-0", field=0)
    coder("rot-2", rot=2)
    coder("word-3", word=3)
    coder("word-1", word=1)
    coder("grid", grid=1)
    coder("byte-rot-1", byte_file, rot=1)
    coder("byte-field-9", nine_bit_file)
    coder("split", coding=w.SPLIT)
    coder("grid-rot-1", grid_file, rot=1)
    coder("grid-word-4", grid_file, word=4)
    coder("grid-word-1", grid_file, word=1)
    coder("grid-number", grid_file, grid=1)
    coder("grid-pool", grid_file, pool=1)
    coder("grid-field", grid_file, field=7)
    coder("grid-split", grid_file, coding=w.GRID)
    bad("wide-grid-codes-cut", "BAD_DATA", grid_file().build(payload=lambda p: p.__setitem__(0, p[0][:-1])))
    bad("wide-grid-codes-after", "BAD_DATA", grid_file().build(payload=lambda p: p.__setitem__(0, p[0] + b"\0")))


def bad_all():
    bad_payloads()
    bad_pools()
    bad_coders()
