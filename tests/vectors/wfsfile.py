"""A second reader and writer of weightfs containers, written from codec/FORMAT.md alone.

It proves that the document suffices, makes the golden containers (gen.py) and takes real ones apart. Clarity before
speed: a block of 64 KiB takes some milliseconds. Numbers in comments are sections of the document.
"""
import bisect
import hashlib
import struct

import lz4.block
import numpy as np
import xxhash

from grid import BF16, F16, F32, NEAREST, NEG1, PALETTE, SIGNED, TRUNCATE, Grid, Segment  # noqa: F401 (for gen.py)
from grid import grid_decode, grid_encode, parse_grids, tiles_of  # noqa: F401
from wide import ESCAPE, WidePool, parse_wide_pools, segments_of, wide_decode, wide_encode  # noqa: F401
from words import (LANES, SUPER_ROWS, Bad, Pieces, from_rows, lane_order, mode_bits, nibbles, pack_unit, parse_literals,
                   parse_modes, require, rest_sizes, rest_to_value, rotl, rotr, rows_of_rest, to_rows, unnibbles,
                   with_literals, words_of)

MAGIC = b"\x89WFS\r\n\x1a\n"
HEAD = 4096
STORED, LZ4, CONSTANT, SPLIT, GRID, WIDE, GRID_WIDE, RECORDS = range(8)
REGIONS, CODERS, POOLS, LENGTHS, SELECTORS, HASHES, BLOCK_SHA, GRIDS, WIDE_POOLS = range(1, 10)
CODED, FILL, COPY = 1, 2, 3


def xxh(data):
    return xxhash.xxh3_64_intdigest(data)


def unlz4(comp, raw_len):
    try:
        raw = lz4.block.decompress(comp, uncompressed_size=raw_len)
    except lz4.block.LZ4BlockError as e:
        raise Bad("LZ4") from e
    require(len(raw) == raw_len, "length of LZ4")
    return raw


# ---- 1.1 head --------------------------------------------------------------------------------------------------------

HEAD_FIELDS = struct.Struct("<8sHHIQqIB3xQQQQQ32s")


def pack_head(raw_len, sha256, *, mtime=(0, 0), block_log2=18, file_len, payload_off, payload_len, meta_len, meta_xxh,
              magic=MAGIC, major=1, minor=0, incompat=0, patch=()):
    """patch: (offset, bytes) changes made before the checksum."""
    head = bytearray(HEAD)
    HEAD_FIELDS.pack_into(head, 0, magic, major, minor, incompat, raw_len, mtime[0], mtime[1], block_log2, file_len,
                          payload_off, payload_len, meta_len, meta_xxh, sha256)
    for offset, data in patch:
        head[offset:offset + len(data)] = data
    struct.pack_into("<Q", head, HEAD - 8, xxh(bytes(head[:-8])))
    return bytes(head)


def parse_head(data):
    for head in (data[:HEAD], data[-HEAD:]):
        if head[:8] == MAGIC and len(head) == HEAD and struct.unpack("<Q", head[-8:])[0] == xxh(head[:-8]):
            break
    else:
        raise Bad("no good head")
    names = ("magic major minor incompat raw_len mtime_sec mtime_nsec block_log2 file_len payload_off payload_len "
             "meta_len meta_xxh sha256").split()
    h = dict(zip(names, HEAD_FIELDS.unpack_from(head)))
    require(h["major"] == 1 and h["incompat"] == 0, "version")
    require(not any(head[37:40]) and not any(head[112:4088]), "reserved")
    require(h["raw_len"] <= 1 << 62 and h["mtime_nsec"] < 10**9 and 16 <= h["block_log2"] <= 20, "range of a field")
    require(h["meta_len"] >= 16 and h["payload_off"] >= HEAD + h["meta_len"], "payload_off")
    require(h["payload_off"] + h["payload_len"] + h["meta_len"] + HEAD == h["file_len"] < 1 << 63, "file_len")
    require(len(data) <= h["file_len"], "a longer file")
    return h


# ---- 1.2 metadata ----------------------------------------------------------------------------------------------------

def pack_section(body, use_lz4):
    """(coding, stored bytes, raw length)"""
    if use_lz4:
        comp = lz4.block.compress(body, store_size=False)
        if len(comp) < len(body):
            return 1, comp, len(body)
    return 0, body, len(body)


def pack_metadata(sections):
    """sections: (kind, coding, stored bytes, raw length)..."""
    table = struct.pack("<II", len(sections), 0)
    for kind, coding, comp, raw_len in sections:
        table += struct.pack("<HHIQQ", kind, coding, 0, len(comp), raw_len)
    return table + b"".join(comp for _, _, comp, _ in sections)


ALWAYS_STORED = (POOLS, HASHES, BLOCK_SHA, WIDE_POOLS)


def parse_metadata(meta):
    pieces = Pieces(meta)
    nr, zero = struct.unpack("<II", pieces.take(8))
    require(1 <= nr <= 64 and zero == 0, "section table")
    entries, found, last = [struct.unpack("<HHIQQ", pieces.take(24)) for _ in range(nr)], {}, 0
    for kind, coding, zero, comp_len, raw_len in entries:
        body = pieces.take(comp_len)
        require(zero == 0 and kind > last, "section")
        last = kind
        if kind >= 0x8000:
            continue
        require(kind <= WIDE_POOLS and coding <= (kind not in ALWAYS_STORED), "kind or coding of a section")
        if coding == 1:
            require(raw_len <= 255 * comp_len and raw_len <= 2**31 - 2**25, "expansion of a section")
            body = unlz4(body, raw_len)
        require(len(body) == raw_len, "section length")
        found[kind] = body
    pieces.end()
    require(all(kind in found for kind in range(REGIONS, HASHES + 1)), "section missing")
    return found


def planes(values, nr_planes):
    return b"".join(bytes((v >> (8 * p)) & 255 for v in values) for p in range(nr_planes))


def unplanes(data, nr, nr_planes):
    require(len(data) == nr * nr_planes, "column")
    return [sum(data[p * nr + i] << (8 * p) for p in range(nr_planes)) for i in range(nr)]


def pack_region(start, length, kind=CODED, phase=0, coder=0, arg=0, zero=0, zero2=0):
    return struct.pack("<QQBBHIQQ", start, length, kind, phase, coder, zero, arg, zero2)


def pack_coder(coding, word=1, rot=0, field=0, pool=0, grid=0, borders=()):
    return struct.pack("<BBBBHH8s", coding, word, rot, field, pool, grid, bytes(borders))


# ---- 1.3 regions -----------------------------------------------------------------------------------------------------

def parse_regions(data, raw_len, nr_coders):
    require(len(data) % 40 == 0 and len(data) <= 40 << 24, "regions")
    regions, at = list(struct.iter_unpack("<QQBBHIQQ", data)), 0
    starts, copies = [r[0] for r in regions], [0]
    for start, length, kind, phase, coder, zero, arg, zero2 in regions:
        require(kind in (CODED, FILL, COPY) and start == at and length >= 1 and zero == zero2 == 0, "region")
        require(phase <= {CODED: 254, FILL: 7, COPY: 0}[kind], "phase of a region")
        require(coder < nr_coders and arg == 0 if kind == CODED else coder == 0, "coder of a region")
        copies.append(copies[-1] + (kind == COPY))
        if kind == COPY:
            require(arg + length <= start, "source of a copy")
            first, last = bisect.bisect(starts, arg) - 1, bisect.bisect(starts, arg + length - 1) - 1
            require(copies[last + 1] == copies[first], "copy of a copy")
        at += length
    require(at == raw_len, "regions and raw_len")
    require(sum(kind != CODED for _, _, kind, *_ in regions) <= 65536, "constant and copy regions")
    return regions


# ---- 2.3 pools -------------------------------------------------------------------------------------------------------

class Table:
    """val, tail: field values; runs: (length, symbol) pairs, the escape being symbol len(val)."""

    def __init__(self, val, runs, tail=()):
        self.val, self.tail, self.runs = list(val), list(tail), list(runs)

    def freq(self, sym):
        return sum(length for length, s in self.runs if s == sym)

    def slots(self):
        """Symbol and rank of each of the 256 slots."""
        syms, ranks, seen = [], [], {}
        for length, sym in self.runs:
            for _ in range(length):
                syms.append(sym)
                ranks.append(seen.get(sym, 0))
                seen[sym] = seen.get(sym, 0) + 1
        return syms, ranks

    def pack(self):
        return (struct.pack("<BBBB", len(self.val) + 1, len(self.tail), len(self.runs), 0) +
                struct.pack(f"<{len(self.val)}H", *self.val) + struct.pack(f"<{len(self.tail)}H", *self.tail) +
                b"".join(bytes(run) for run in self.runs))


class Pool:
    def __init__(self, field, tables, seg_log2=10):
        self.field, self.tables, self.seg_log2 = field, tables, seg_log2

    def pack(self):
        return bytes((len(self.tables), self.seg_log2, self.field, 0)) + b"".join(t.pack() for t in self.tables)


def parse_pools(data):
    pieces, pools = Pieces(data), []
    while pieces.at < len(data):
        nr, seg_log2, field, zero = pieces.take(4)
        require(1 <= nr <= 16 and 9 <= seg_log2 <= 13 and 1 <= field <= 12 and zero == 0, "pool")
        tables = []
        for _ in range(nr):
            m, ntail, nrun, zero = pieces.take(4)
            require(2 <= m <= 32 and ntail <= 15 and m <= nrun <= 32 and zero == 0, "table")
            values = struct.unpack(f"<{m - 1 + ntail}H", pieces.take(2 * (m - 1 + ntail)))
            runs = list(struct.iter_unpack("BB", pieces.take(2 * nrun)))
            require(len(set(values)) == len(values) and all(v < 1 << field for v in values), "values")
            require(sum(length for length, _ in runs) == 256 and all(length and s < m for length, s in runs), "runs")
            counts = [sum(s == sym for _, s in runs) for sym in range(m)]
            require(all(1 <= c <= 2 for c in counts) and counts[-1] == 1, "runs of a symbol")
            starts = np.cumsum([0] + [length for length, _ in runs[:-1]])
            require(all(sum(s // 16 == b and s % 16 != 0 for s in starts) <= 3 for b in range(16)), "bucket rule")
            tables.append(Table(values[:m - 1], runs, values[m - 1:]))
        pools.append(Pool(field, tables, seg_log2))
    require(len(pools) <= 4096, "too many pools")
    return pools


# ---- 2.2, 2.6 split payloads -----------------------------------------------------------------------------------------

def split_encode(raw, word, rot, field, pool, segments=None, modes=(), edges=b"", patch=None, beyond=b"\0"):
    """Whole words only. segments: table number of each segment; modes: (superrow, mode)...

    To make bad payloads: patch is called with a dict of the parts before they are joined; beyond fills the bytes that
    the states carry beyond the rest bits.
    """
    words = words_of(raw, word)
    n, bits = len(words), 8 * word
    rows = to_rows(words, word)
    x = rotl(rows, rot, bits)
    fields = (x >> np.uint64(bits - field)).astype(int)
    rest = x & np.uint64((1 << (bits - field)) - 1)
    nr_rows = len(rows)
    real = to_rows(np.ones(n, np.uint64), word).astype(bool)
    nr_segments = -(-n // (1 << pool.seg_log2))
    segments = list(segments) if segments is not None else [0] * nr_segments

    # What is coded at each place: symbols, then escape nibbles and literals.
    symbols = np.zeros((nr_rows, LANES), int)
    escapes, literals, order = [], [], lane_order(word)
    for r in range(nr_rows):
        table = pool.tables[segments[r * LANES >> pool.seg_log2]]
        common = max(range(len(table.val)), key=table.freq)
        for p in range(LANES):
            if not real[r, p]:
                symbols[r, p] = common
            elif fields[r, p] in table.val:
                symbols[r, p] = table.val.index(fields[r, p])
            else:
                symbols[r, p] = len(table.val)
                if fields[r, p] in table.tail:
                    escapes.append(table.tail.index(fields[r, p]))
                else:
                    escapes.append(15)
                    number = r * LANES + int(order[p])
                    literals.append((number, raw[number * word:(number + 1) * word]))
    literals.sort()

    # Rest bits, the last of them into the states.
    mode, changes, stored = 0, dict(modes), b""
    for s in range(0, nr_rows, SUPER_ROWS):
        mode = changes.get(s // SUPER_ROWS, mode)
        unit_rest = rest[s:s + SUPER_ROWS]
        unit = pack_unit(rest_to_value(unit_rest, mode) * real[s:s + SUPER_ROWS], mode_bits(word, field, mode))
        stored += unit
    carried = min(128, len(unit))
    payload_states = stored[len(stored) - carried:].ljust(128, beyond)
    stored = stored[:len(stored) - carried]

    states, streams = [], []
    for strand in range(2):
        state = [256 + b for b in payload_states[strand * 64:strand * 64 + 64]]
        out = bytearray()
        for r in reversed(range(strand, nr_rows, 2)):
            table = pool.tables[segments[r * LANES >> pool.seg_log2]]
            syms, ranks = table.slots()
            where = {(s, k): slot for slot, (s, k) in enumerate(zip(syms, ranks))}
            for p in reversed(range(LANES)):
                f = table.freq(symbols[r, p])
                if state[p] >= 256 * f:
                    out.append(state[p] & 255)
                    state[p] >>= 8
                state[p] = (state[p] // f) << 8 | where[symbols[r, p], state[p] % f]
        states.append(state)
        streams.append(bytes(reversed(out)))

    parts = {
        "len0": len(streams[0]), "len1": len(streams[1]), "nesc": len(escapes), "nlit": len(literals),
        "nmode": len(modes), "segments": nibbles(segments) if len(pool.tables) > 1 else b"",
        "modes": b"".join(struct.pack("<HB", *m) for m in modes),
        "states": b"".join(bytes(s & 255 for s in st) + bytes(s >> 8 for s in st) for st in states),
        "stream0": streams[0], "stream1": streams[1], "escapes": nibbles(escapes),
        "literals": b"".join(struct.pack("<I", number) + data for number, data in literals),
        "rest": stored, "edges": edges,
    }
    if patch:
        patch(parts)
    head = b"".join(parts[k].to_bytes(size, "little")
                    for k, size in (("len0", 3), ("len1", 3), ("nesc", 3), ("nlit", 2), ("nmode", 1)))
    return head + b"".join(parts[k] for k in ("segments", "modes", "states", "stream0", "stream1", "escapes",
                                              "literals", "rest", "edges"))


def split_decode(comp, n, word, rot, field, pool, edge_len):
    """(raw bytes of n words, edge bytes)"""
    require(len(comp) >= 12, "short")
    len0, len1, nesc = (int.from_bytes(comp[i:i + 3], "little") for i in (0, 3, 6))
    nlit, nmode = int.from_bytes(comp[9:11], "little"), comp[11]
    nr_rows = -(-n // LANES)
    require(max(len0, len1, nesc) <= 64 * nr_rows and nlit <= nesc, "counts")
    pieces = Pieces(comp, 12)
    nr_segments = -(-n // (1 << pool.seg_log2))
    segments = [0] * nr_segments
    if len(pool.tables) > 1:
        segments = unnibbles(pieces.take(-(-nr_segments // 2)), nr_segments)
    require(all(s < len(pool.tables) for s in segments), "table number")
    modes = parse_modes(pieces, nmode, n, word, rot, field)
    raw_states = pieces.take(256)
    streams = [pieces.take(len0), pieces.take(len1)]
    escapes = unnibbles(pieces.take(-(-nesc // 2)), nesc)
    literals = parse_literals(pieces, nlit, n, word)
    sizes = rest_sizes(n, word, field, modes)
    carried = min(128, sizes[-1])
    rest = pieces.take(sum(sizes) - carried)
    edges = pieces.take(edge_len)
    pieces.end()

    fields = np.zeros((nr_rows, LANES), np.uint64)
    state = [[raw_states[128 * s + p] | raw_states[128 * s + 64 + p] << 8 for p in range(LANES)] for s in range(2)]
    used, next_escape = [0, 0], 0
    for r in range(nr_rows):
        strand = r % 2
        table = pool.tables[segments[r * LANES >> pool.seg_log2]]
        syms, ranks = table.slots()
        freqs = [table.freq(s) for s in range(len(table.val) + 1)]
        for p in range(LANES):
            slot = state[strand][p] & 255
            x = freqs[syms[slot]] * (state[strand][p] >> 8) + ranks[slot]
            if x < 256:
                require(used[strand] < len(streams[strand]), "stream runs out")
                x = x << 8 | streams[strand][used[strand]]
                used[strand] += 1
            state[strand][p] = x
            if syms[slot] < len(table.val):
                fields[r, p] = table.val[syms[slot]]
            else:
                require(next_escape < nesc, "escapes run out")
                t = escapes[next_escape]
                next_escape += 1
                fields[r, p] = table.tail[t] if t < len(table.tail) else 0
    require(used == [len0, len1] and next_escape == nesc, "streams not used up")
    require(all(x >> 8 == 1 for s in state for x in s), "final state")
    last = bytes(x & 255 for s in state for x in s)
    require(not any(last[carried:]), "states beyond the payload")
    rest += last[:carried]

    bits = 8 * word
    x = fields << np.uint64(bits - field) | rows_of_rest(rest, n, word, field, modes)
    words = from_rows(rotr(x, rot, bits), word, n)
    return with_literals(words.astype(f"<u{word}").tobytes(), literals), edges


# ---- 1.4 coders ------------------------------------------------------------------------------------------------------

GRID_CODINGS, WIDE_CODINGS = {GRID, GRID_WIDE}, {WIDE, GRID_WIDE, RECORDS}


def parse_coders(data, container):
    """(coding, word, rot, field, pool, grid, borders) of each. Of the container: its pools and grids."""
    require(len(data) % 16 == 0 and len(data) <= 16 * 65534, "coders")
    coders = [struct.unpack_from("<BBBBHH8s", data, at) for at in range(0, len(data), 16)]
    for coding, word, rot, field, pool, grid, borders in coders:
        require(coding <= RECORDS, "coding")
        used = borders.rstrip(b"\0")
        require(not used or coding == RECORDS, "borders of a coder")
        require(all(a < b for a, b in zip(b"\0" + used, used + bytes([word]))), "borders of a coder")
        if coding < SPLIT:
            require(word in ((1, 2, 4, 8) if coding == CONSTANT else (1,)), "word of a coder")
            require(rot == field == pool == grid == 0, "unused fields of a coder")
            continue
        if coding in GRID_CODINGS:
            require(grid < len(container.grids) and container.grids[grid].word == word, "grid of a coder")
        else:
            require(grid == 0 and (word >= 2 if coding == RECORDS else word in (1, 2, 4, 8)), "word of a coder")
        code_bits = 8 * word if coding in (SPLIT, WIDE) else 8
        whole_byte = coding in WIDE_CODINGS and field == code_bits == 8 and rot == 0
        require(rot <= 1 and (1 <= field <= 12 and field < code_bits or whole_byte), "field of a coder")
        pools = container.wide_pools if coding in WIDE_CODINGS else container.pools
        require(pool < len(pools) and pools[pool].field == field, "pool of a coder")
    return coders


# ---- 1.5 blocks ------------------------------------------------------------------------------------------------------

def cut(word, phase, raw_len):
    head = min((word - phase % word) % word, raw_len)
    n = (raw_len - head) // word
    return head, n, raw_len - head - n * word


def block_cuts(regions, block_log2):
    """(region number, raw offset, raw length) of every block."""
    size = 1 << block_log2
    for i, (start, length, kind, *_) in enumerate(regions):
        at = start
        while kind == CODED and at < start + length:
            end = min((at // size + 1) * size, start + length)
            yield i, at, end - at
            at = end


def nr_of_blocks(regions, block_log2):
    return sum((start + length - 1 >> block_log2) - (start >> block_log2) + 1
               for start, length, kind, *_ in regions if kind == CODED)


def part_order(n, word, borders):
    """The place of each byte of n records in part order."""
    starts = [0, *borders.rstrip(b"\0"), word]
    places = np.arange(n * word).reshape(n, word)
    return np.concatenate([places[:, a:b].ravel() for a, b in zip(starts, starts[1:])])


def decode_block(coder, container, phase, comp, raw_len):
    coding, word, rot, field, pool, grid, borders = coder
    require(len(comp) <= raw_len, "comp_len")
    if coding == STORED:
        raw = comp
    elif coding == LZ4:
        raw = unlz4(comp, raw_len)
    elif coding == CONSTANT:
        require(len(comp) == word, "constant")
        raw = bytes(comp[(phase + i) % word] for i in range(raw_len))
    else:
        head, n, tail = cut(word, phase, raw_len)
        require(n >= 1, "no words")
        is_wide = coding in WIDE_CODINGS
        decode, pools = (wide_decode, container.wide_pools) if is_wide else (split_decode, container.pools)
        if coding in GRID_CODINGS:
            body, edges = grid_decode(comp, n, container.grids[grid], head + tail,
                                      lambda codes: decode(codes, n, 1, rot, field, pools[pool], 0)[0])
        elif coding == RECORDS:
            parts, edges = decode(comp, n * word, 1, rot, field, pools[pool], head + tail)
            body = np.zeros(n * word, np.uint8)
            body[part_order(n, word, borders)] = np.frombuffer(parts, np.uint8)
            body = body.tobytes()
        else:
            body, edges = decode(comp, n, word, rot, field, pools[pool], head + tail)
        raw = edges[:head] + body + edges[head:]
    require(len(raw) == raw_len, "block length")
    return raw


class Container:
    """A parsed container."""

    def __init__(self, data):
        self.data, self.head = data, parse_head(data)
        h = self.head
        for at in (HEAD, h["payload_off"] + h["payload_len"]):
            meta = data[at:at + h["meta_len"]]
            if len(meta) == h["meta_len"] and xxh(meta) == h["meta_xxh"]:
                break
        else:
            raise Bad("metadata checksum")
        m = parse_metadata(meta)
        self.pools = parse_pools(m[POOLS])
        self.grids = parse_grids(m.get(GRIDS, b""))
        self.wide_pools = parse_wide_pools(m.get(WIDE_POOLS, b""))
        self.coders = parse_coders(m[CODERS], self)
        codings = {coding for coding, *_ in self.coders}
        require((GRIDS in m) == bool(codings & GRID_CODINGS), "section of grids")
        require((WIDE_POOLS in m) == bool(codings & WIDE_CODINGS), "section of wide pools")
        self.regions = parse_regions(m[REGIONS], h["raw_len"], len(self.coders))
        nr = len(m[HASHES]) // 8
        require(len(m[HASHES]) % 8 == 0 and nr_of_blocks(self.regions, h["block_log2"]) == nr, "column of hashes")
        require(len(m.get(BLOCK_SHA, bytes(32 * nr))) == 32 * nr, "column of SHA-256")
        self.cuts = list(block_cuts(self.regions, h["block_log2"]))
        self.lengths = unplanes(m[LENGTHS], nr, 3)
        self.selectors = unplanes(m[SELECTORS], nr, 2)
        self.hashes = struct.unpack(f"<{nr}Q", m[HASHES])
        require(all(s <= len(self.coders) for s in self.selectors), "selector")
        require(sum(self.lengths) == h["payload_len"], "payload length")

    def block(self, i):
        """(coder, phase, stored bytes, raw length) of a block"""
        region, at, raw_len = self.cuts[i]
        start, _, _, phase, default, *_ = self.regions[region]
        off = self.head["payload_off"] + sum(self.lengths[:i])
        coder = self.coders[self.selectors[i] - 1 if self.selectors[i] else default]
        return coder, phase + at - start, self.data[off:off + self.lengths[i]], raw_len

    def decode(self):
        raw = bytearray(self.head["raw_len"])
        for i, (_, at, raw_len) in enumerate(self.cuts):
            coder, phase, comp, _ = self.block(i)
            piece = decode_block(coder, self, phase, comp, raw_len)
            require(xxh(piece) == self.hashes[i], f"hash of block {i}")
            raw[at:at + raw_len] = piece
        for start, length, kind, phase, _, _, arg, _ in self.regions:
            if kind == FILL:
                fill = arg.to_bytes(8, "little")
                raw[start:start + length] = bytes(fill[(phase + i) % 8] for i in range(length))
        for start, length, kind, _, _, _, arg, _ in self.regions:
            if kind == COPY:
                raw[start:start + length] = raw[arg:arg + length]
        require(hashlib.sha256(raw).digest() == self.head["sha256"], "SHA-256")
        return bytes(raw)


if __name__ == "__main__":
    import sys
    for path in sys.argv[1:]:
        with open(path, "rb") as f:
            print(f"{hashlib.sha256(Container(f.read()).decode()).hexdigest()}  {path}")
