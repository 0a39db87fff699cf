"""A second reader and writer of weightfs containers, written from codec/FORMAT.md alone.

It proves that the document suffices, makes the golden containers (gen.py) and takes real ones apart. Clarity before
speed: a block of 64 KiB takes some milliseconds. Numbers in comments are sections of the document.
"""
import hashlib
import struct

import lz4.block
import numpy as np
import xxhash

MAGIC = b"\x89WFS\r\n\x1a\n"
HEAD = 4096
STORED, LZ4, CONSTANT, SPLIT, GRID, WIDE, GRID_WIDE = range(7)
REGIONS, CODERS, POOLS, LENGTHS, SELECTORS, HASHES, BLOCK_SHA, GRIDS, WIDE_POOLS = range(1, 10)
CODED, FILL, COPY = 1, 2, 3
LANES, SUPER_ROWS = 64, 8


class Bad(Exception):
    """A rule of the document is broken."""


def require(condition, what):
    if not condition:
        raise Bad(what)


def xxh(data):
    return xxhash.xxh3_64_intdigest(data)


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


def parse_metadata(meta):
    nr, zero = struct.unpack_from("<II", meta)
    require(1 <= nr <= 64 and zero == 0, "section table")
    at, found = 8 + 24 * nr, {}
    for i in range(nr):
        kind, coding, zero, comp_len, raw_len = struct.unpack_from("<HHIQQ", meta, 8 + 24 * i)
        body = meta[at:at + comp_len]
        at += comp_len
        require(zero == 0 and coding in (0, 1) and len(body) == comp_len, "section")
        if coding == 1:
            body = lz4.block.decompress(body, uncompressed_size=raw_len)
        require(len(body) == raw_len, "section length")
        found[kind] = body
    require(at == len(meta), "section bodies")
    return found


def planes(values, nr_planes):
    return b"".join(bytes((v >> (8 * p)) & 255 for v in values) for p in range(nr_planes))


def unplanes(data, nr, nr_planes):
    require(len(data) == nr * nr_planes, "column")
    return [sum(data[p * nr + i] << (8 * p) for p in range(nr_planes)) for i in range(nr)]


def pack_region(start, length, kind=CODED, phase=0, coder=0, arg=0, zero=0, zero2=0):
    return struct.pack("<QQBBHIQQ", start, length, kind, phase, coder, zero, arg, zero2)


def pack_coder(coding, word=1, rot=0, field=0, pool=0, grid=0, zero=0):
    return struct.pack("<BBBBHHQ", coding, word, rot, field, pool, grid, zero)


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
    at, pools = 0, []
    while at < len(data):
        nr, seg_log2, field, zero = data[at:at + 4]
        require(1 <= nr <= 16 and 9 <= seg_log2 <= 13 and 1 <= field <= 12 and zero == 0, "pool")
        at, tables = at + 4, []
        for _ in range(nr):
            m, ntail, nrun, zero = data[at:at + 4]
            require(2 <= m <= 32 and ntail <= 15 and m <= nrun <= 32 and zero == 0, "table")
            at += 4
            values = struct.unpack_from(f"<{m - 1 + ntail}H", data, at)
            at += 2 * len(values)
            runs = [(data[at + 2 * i], data[at + 2 * i + 1]) for i in range(nrun)]
            at += 2 * nrun
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


# ---- 2.1, 2.4, 2.5 words and rest bits -------------------------------------------------------------------------------

def lane_order(word):
    """The row's word number at each position."""
    per = 16 // word
    return np.array([per * (p // 16) + (p % 16) % per + 4 * per * ((p % 16) // per) for p in range(LANES)])


def to_rows(words, word):
    """Words in (rows, positions), zero beyond the last."""
    rows = -(-len(words) // LANES)
    padded = np.zeros(rows * LANES, np.uint64)
    padded[:len(words)] = words
    return padded.reshape(rows, LANES)[:, lane_order(word)]


def from_rows(rows, word, n):
    out = np.zeros_like(rows)
    out[:, lane_order(word)] = rows
    return out.reshape(-1)[:n]


def rotl(x, rot, bits):
    mask = np.uint64((1 << bits) - 1) if bits < 64 else np.uint64(2**64 - 1)
    return x if rot == 0 else ((x << np.uint64(1)) | (x >> np.uint64(bits - 1))) & mask


def rotr(x, rot, bits):
    return x if rot == 0 else (x >> np.uint64(1)) | ((x & np.uint64(1)) << np.uint64(bits - 1))


def mode_bits(word, field, mode):
    return 8 * word - field - (mode & 63) - (mode >> 6 != 0)


def rest_to_value(rest, mode):
    if mode == 0:
        return rest
    value = (rest >> np.uint64(1)) >> np.uint64(mode & 63)
    return value if mode >> 6 else value << np.uint64(1) | (rest & np.uint64(1))


def value_to_rest(v, mode):
    z, sign = np.uint64((mode & 63) + 1), mode >> 6
    if mode == 0:
        return v
    if sign == 0:
        return (v >> np.uint64(1)) << z | (v & np.uint64(1))
    return v << z | np.uint64(sign == 2)


def unit_bytes(rows, bits):
    pr, nf = bits % 8, bits // 8
    return 64 * pr + 512 * nf if rows == SUPER_ROWS else rows * LANES * ((pr > 0) + nf)


def pack_unit(v, bits):
    """v: (rows, 64) values of `bits` bits."""
    pr, nf = bits % 8, bits // 8
    out = b""
    top = (v >> np.uint64(8 * nf)).astype(np.uint8) if nf < 8 else None
    if len(v) == SUPER_ROWS:
        for i in range(pr):
            vector = top[i].copy()
            for j in range(pr, 8):
                vector |= ((top[j] >> i) & 1) << j
            out += vector.tobytes()
    elif pr:
        out += top.tobytes()
    for p in range(nf):
        out += ((v >> np.uint64(8 * (nf - 1 - p))) & np.uint64(255)).astype(np.uint8).tobytes()
    return out


def unpack_unit(data, rows, bits):
    pr, nf = bits % 8, bits // 8
    v = np.zeros((rows, LANES), np.uint64)
    at = 0
    if rows == SUPER_ROWS:
        for i in range(pr):
            vector = np.frombuffer(data, np.uint8, LANES, at)
            at += LANES
            v[i] |= (vector & ((1 << pr) - 1)).astype(np.uint64)
            for j in range(pr, 8):
                v[j] |= ((vector >> j) & 1).astype(np.uint64) << np.uint64(i)
    elif pr:
        v = np.frombuffer(data, np.uint8, rows * LANES, at).reshape(rows, LANES).astype(np.uint64)
        require(not np.any(v >> np.uint64(pr)), "bits above the partial bits")
        at += rows * LANES
    for _ in range(nf):
        plane = np.frombuffer(data, np.uint8, rows * LANES, at).reshape(rows, LANES)
        v = v << np.uint64(8) | plane.astype(np.uint64)
        at += rows * LANES
    require(at == len(data), "unit")
    return v


def nibbles(values):
    values = list(values) + [0] * (len(values) % 2)
    return bytes(values[i] | values[i + 1] << 4 for i in range(0, len(values), 2))


def unnibbles(data, nr):
    out = [v for b in data for v in (b & 15, b >> 4)]
    require(not any(out[nr:]), "unused nibble")
    return out[:nr]


# ---- 2.2, 2.6 split payloads -----------------------------------------------------------------------------------------

def words_of(raw, word):
    return np.frombuffer(raw, f"<u{word}").astype(np.uint64)


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
    at = 12

    def take(size):
        nonlocal at
        at += size
        require(at <= len(comp), "short")
        return comp[at - size:at]

    nr_segments = -(-n // (1 << pool.seg_log2))
    segments = [0] * nr_segments
    if len(pool.tables) > 1:
        segments = unnibbles(take(-(-nr_segments // 2)), nr_segments)
    require(all(s < len(pool.tables) for s in segments), "table number")
    changes = [struct.unpack("<HB", take(3)) for _ in range(nmode)]
    nr_super = -(-nr_rows // SUPER_ROWS)
    numbers = [s for s, _ in changes]
    require(all(a < b for a, b in zip(numbers, numbers[1:])) and all(s < nr_super for s in numbers), "modes")
    require(not changes or (rot == 1 and word >= 2), "modes of this word")
    require(all(m >> 6 != 3 and m & 63 <= 8 * word - field - 1 for _, m in changes), "mode")
    mode, modes = 0, []
    for s in range(nr_super):
        mode = dict(changes).get(s, mode)
        modes.append(mode)
    raw_states = take(256)
    streams = [take(len0), take(len1)]
    escapes = unnibbles(take(-(-nesc // 2)), nesc)
    literals = []
    for _ in range(nlit):
        literals.append((int.from_bytes(take(4), "little"), take(word)))
    numbers = [number for number, _ in literals]
    require(all(a < b for a, b in zip(numbers, numbers[1:])) and all(i < n for i in numbers), "literals")
    units = [min(SUPER_ROWS, nr_rows - s * SUPER_ROWS) for s in range(nr_super)]
    sizes = [unit_bytes(u, mode_bits(word, field, m)) for u, m in zip(units, modes)]
    carried = min(128, sizes[-1])
    rest = take(sum(sizes) - carried)
    edges = take(edge_len)
    require(at == len(comp), "length")

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

    at, values = 0, []
    for u, m, size in zip(units, modes, sizes):
        values.append(value_to_rest(unpack_unit(rest[at:at + size], u, mode_bits(word, field, m)), m))
        at += size
    bits = 8 * word
    x = fields << np.uint64(bits - field) | np.concatenate(values)
    words = from_rows(rotr(x, rot, bits), word, n)
    raw = bytearray(words.astype(f"<u{word}").tobytes())
    for number, data in literals:
        raw[number * word:(number + 1) * word] = data
    return bytes(raw), edges


# ---- 3 grids ---------------------------------------------------------------------------------------------------------

NEAREST, TRUNCATE, PALETTE = range(3)
NEG1, SIGNED = 1, 2
BF16, F16, F32 = range(3)


class Grid:
    """base: bits of binary32 numbers, or words."""

    def __init__(self, op, flags, output, base):
        self.op, self.flags, self.output, self.base = op, flags, output, [int(b) for b in base]
        self.word = 4 if output == F32 else 2

    def pack(self):
        head = bytes((self.op, self.flags, len(self.base) - 1, self.output))
        return head + struct.pack(f"<{len(self.base)}I", *self.base)

    def words(self, codes, scales):
        """codes, scales: one a word (scales as bits of binary32)."""
        entry, sign = codes.astype(int), np.zeros(len(codes), np.uint32)
        if not self.flags & SIGNED:
            sign = (codes >> 7).astype(np.uint32)
            entry = (codes & 127) + (sign if self.flags & NEG1 else 0)
        base = np.zeros(257, np.uint32)
        base[:len(self.base)] = self.base
        value = base[entry]
        if self.op == PALETTE:
            return value
        with np.errstate(over="ignore"):
            product = value.view(np.float32) * scales.view(np.float32)
            half = product.astype(np.float16)
        bits = product.view(np.uint32)
        if self.output == F32:
            return bits | sign << np.uint32(31)
        if self.output == F16:
            word = half.view(np.uint16).astype(np.uint32)
        elif self.op == TRUNCATE:
            word = bits >> np.uint32(16)
        else:
            odd = bits >> np.uint32(16) & np.uint32(1)
            word = (bits + np.uint32(0x7fff) + odd) >> np.uint32(16)
        return word | sign << np.uint32(15)


def parse_grids(data):
    at, grids = 0, []
    while at < len(data):
        op, flags, last, output = data[at:at + 4]
        require(op <= 2 and flags <= 3 and output <= 2, "grid kind")
        base = np.frombuffer(data, "<u4", last + 1, at + 4)
        at += 4 + 4 * len(base)
        require(flags != 3 and (op != PALETTE or flags == SIGNED) and (op != TRUNCATE or output == BF16), "grid")
        require(2 <= len(base) <= (256 if flags & SIGNED else 128), "entries of a grid")
        if op == PALETTE:
            require(np.all(np.diff(base.astype(np.int64)) > 0) and (output == F32 or base[-1] < 65536), "palette")
        else:
            exponent = base >> 23 & 255
            require(np.all((base == 0) | ((exponent > 0) & (exponent < 255))), "values of a grid")
            require(np.all(np.diff(base.view(np.float32)) > 0) and (flags & SIGNED or base[0] == 0), "order of a grid")
        grids.append(Grid(op, flags, output, base))
    require(len(grids) <= 16384, "too many grids")
    return grids


class Segment:
    """n words of a matrix of cols columns; tiles of tw columns and th rows."""

    def __init__(self, n, cols, col0=0, tw=0, th=0, row0=0):
        self.n, self.cols, self.col0, self.tw, self.th, self.row0 = n, cols, col0, tw, th, row0

    def pack(self):
        return struct.pack("<IIIHHHHI", self.n, self.cols, self.col0, self.tw, self.th, self.row0, 0, 0)

    def tiles(self):
        """(tile of each word, how many there are)"""
        row, col = np.divmod(self.col0 + np.arange(self.n, dtype=np.int64), self.cols)
        across = -(-self.cols // self.tw) if self.tw else 1
        tile_row = (self.row0 + row) // self.th if self.th else 0 * row
        tile = tile_row * across + (col // self.tw if self.tw else 0)
        if self.th == 1:
            return tile - tile[0], int(tile[-1] - tile[0] + 1)
        return tile, int(tile_row[-1] + 1) * across


def tiles_of(segments):
    """(tile of each word of all segments, how many there are)"""
    tiles, nr = [np.zeros(0, np.int64)], 0
    for s in segments:
        tile, more = s.tiles()
        tiles.append(tile + nr)
        nr += more
    return np.concatenate(tiles), nr


def pack_bits(values, bits):
    whole = sum(int(v) << (i * bits) for i, v in enumerate(values))
    return whole.to_bytes(-(-len(values) * bits // 8), "little")


def unpack_bits(data, nr, bits):
    whole = int.from_bytes(data, "little")
    require(whole >> (nr * bits) == 0, "unused bits")
    text = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:nr * bits].reshape(nr, bits)
    return text.astype(np.uint64) @ (np.uint64(1) << np.arange(bits, dtype=np.uint64))


def grid_encode(grid, codes, segments, coded, packed=(), mb=0, sb=0, low=0, literals=(), edges=b"", patch=None):
    """(words, payload). coded: the codes' own payload; packed: the scale of each tile as stored; literals: (number,
    word) pairs."""
    scales = np.zeros(len(codes), np.uint32)
    if segments:
        scales = ((low + np.array(packed, np.int64)) << (23 - mb)).astype(np.uint32)[tiles_of(segments)[0]]
    words = grid.words(codes, scales).copy()
    for number, word in literals:
        words[number] = word
    parts = {
        "mb": mb, "sb": sb, "nseg": len(segments), "low": low, "nlit": len(literals), "zero": 0,
        "segments": b"".join(s.pack() for s in segments), "scales": pack_bits(packed, sb),
        "literals": b"".join(struct.pack("<I", i) + int(v).to_bytes(grid.word, "little") for i, v in literals),
        "edges": edges, "codes": coded,
    }
    if patch:
        patch(parts)
    head = struct.pack("<BBHIHH", *(parts[k] for k in ("mb", "sb", "nseg", "low", "nlit", "zero")))
    return words.astype(f"<u{grid.word}").tobytes(), head + b"".join(
        parts[k] for k in ("segments", "scales", "literals", "edges", "codes"))


def grid_decode(comp, n, grid, edge_len, decode_codes):
    """(raw bytes of n words, edge bytes). decode_codes: of the rest of the payload."""
    at = 0

    def take(size):
        nonlocal at
        at += size
        require(at <= len(comp), "short")
        return comp[at - size:at]

    mb, sb, nseg, low, nlit, zero = struct.unpack("<BBHIHH", take(12))
    require(mb <= 23 and sb <= 31 and zero == 0, "grid header")
    require(mb == sb == nseg == low == 0 if grid.op == PALETTE else nseg >= 1, "grid header")
    segments = []
    for _ in range(nseg):
        *fields, zero, zero2 = struct.unpack("<IIIHHHHI", take(24))
        s = Segment(*fields)
        require(s.n and s.cols and s.col0 < s.cols and s.tw <= s.cols and zero == zero2 == 0, "segment")
        require(s.row0 < s.th if s.th else s.row0 == 0, "row of a segment")
        segments.append(s)
    require(grid.op == PALETTE or sum(s.n for s in segments) == n, "words of segments")
    tiles, nr_tiles = tiles_of(segments)
    require(nr_tiles <= -(-n // 2), "tiles")
    packed = unpack_bits(take(-(-nr_tiles * sb // 8)), nr_tiles, sb) if nr_tiles else []
    literals = [(int.from_bytes(take(4), "little"), int.from_bytes(take(grid.word), "little")) for _ in range(nlit)]
    numbers = [number for number, _ in literals]
    require(all(a < b for a, b in zip(numbers, numbers[1:])) and all(i < n for i in numbers), "literals")
    edges = take(edge_len)
    codes = np.frombuffer(decode_codes(comp[at:]), np.uint8)
    scales = np.zeros(n, np.uint32)
    if nr_tiles:
        bits = [(low + int(p)) << (23 - mb) for p in packed]
        require(all(27 << 23 <= b < 227 << 23 for b in bits), "scale")
        values = [abs(float(v)) for v in np.array(grid.base, np.uint32).view(np.float32) if v != 0]
        for b in {min(bits), max(bits)}:
            scale = float(np.array([b], np.uint32).view(np.float32)[0])
            require(all(2.0**-126 <= scale * v < 2.0**127 for v in values), "products")
        scales = np.array(bits, np.uint32)[tiles]
    words = grid.words(codes, scales).copy()
    for number, word in literals:
        words[number] = word
    return words.astype(f"<u{grid.word}").tobytes(), edges


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


def decode_block(coder, pools, grids, phase, comp, raw_len):
    coding, word, rot, field, pool, grid = coder
    require(len(comp) <= raw_len, "comp_len")
    if coding == STORED:
        raw = comp
    elif coding == LZ4:
        raw = lz4.block.decompress(comp, uncompressed_size=raw_len)
    elif coding == CONSTANT:
        require(len(comp) == word, "constant")
        raw = bytes(comp[(phase + i) % word] for i in range(raw_len))
    else:
        require(coding in (SPLIT, GRID), "coding")
        head, n, tail = cut(word, phase, raw_len)
        if coding == GRID:
            body, edges = grid_decode(comp, n, grids[grid], head + tail,
                                      lambda codes: split_decode(codes, n, 1, rot, field, pools[pool], 0)[0])
        else:
            body, edges = split_decode(comp, n, word, rot, field, pools[pool], head + tail)
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
            if xxh(meta) == h["meta_xxh"]:
                break
        else:
            raise Bad("metadata checksum")
        m = parse_metadata(meta)
        self.regions = [struct.unpack_from("<QQBBHIQQ", m[REGIONS], 40 * i) for i in range(len(m[REGIONS]) // 40)]
        self.coders = [struct.unpack_from("<BBBBHH", m[CODERS], 16 * i) for i in range(len(m[CODERS]) // 16)]
        self.pools = parse_pools(m[POOLS])
        self.grids = parse_grids(m.get(GRIDS, b""))
        uses = [(word, grid) for coding, word, _, _, _, grid in self.coders if coding in (GRID, GRID_WIDE)]
        require((GRIDS in m) == bool(uses), "section of grids")
        require(all(g < len(self.grids) and self.grids[g].word == word for word, g in uses), "grid of a coder")
        self.cuts = list(block_cuts(self.regions, h["block_log2"]))
        nr = len(self.cuts)
        self.lengths = unplanes(m[LENGTHS], nr, 3)
        self.selectors = unplanes(m[SELECTORS], nr, 2)
        self.hashes = struct.unpack(f"<{nr}Q", m[HASHES])
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
            piece = decode_block(coder, self.pools, self.grids, phase, comp, raw_len)
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
