"""The golden containers of the split coding (codec/FORMAT.md 2), a part of gen.py."""
import struct

import wfsfile as w
from build import File, add_split, bad, made, rng, runs, table_for
from wfsfile import Table


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


# ---- bad ones --------------------------------------------------------------------------------------------------------

def bad_all():
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
