"""The wide coding (codec/FORMAT.md 4), as wfsfile.py has it."""
import struct

import numpy as np

from words import (LANES, SUPER_ROWS, from_rows, lane_order, mode_bits, pack_bits, pack_unit, require, rest_to_value, rotl,
                   rotr, to_rows, unit_bytes, unpack_bits, unpack_unit, value_to_rest, words_of)

ESCAPE, LITERAL, STEP, FLOOR = 255, 255, 32, 1 << 16

# ---- 4.1 pools -------------------------------------------------------------------------------------------------------


class WidePool:
    """tables: one dictionary each, of the frequency of every name that has one; 255 is the escape."""

    def __init__(self, field, base, tables, tail=()):
        self.field, self.base, self.tables, self.tail = field, base, list(tables), list(tail)
        self.freq = np.array([[table.get(name, 0) for name in range(256)] for table in self.tables], np.uint64)
        self.start = np.cumsum(self.freq, 1) - self.freq
        self.slots = np.array([np.repeat(np.arange(256), f.astype(int)) for f in self.freq])
        self.number_bits = (len(self.tables) - 1).bit_length()

    def pack(self):
        out = struct.pack("<BBBBH", len(self.tables), self.field, len(self.tail), 0, self.base)
        out += struct.pack(f"<{len(self.tail)}H", *self.tail)
        for table in self.tables:
            names = [name for name in table if name != ESCAPE]
            first, m = min(names), max(names) - min(names) + 1
            out += bytes((first, m))
            for f in [table.get(name, 0) for name in range(first, first + m)] + [table.get(ESCAPE, 0)]:
                out += bytes((f,)) if f < 128 else bytes((128 | f & 127, f >> 7))
        return out


def parse_wide_pools(data):
    pools, at = [], 0

    def take(size):
        nonlocal at
        at += size
        require(at <= len(data), "wide pools are cut short")
        return data[at - size:at]

    while at < len(data):
        nr_tables, field, ntail, zero, base = struct.unpack("<BBBBH", take(6))
        require(1 <= nr_tables <= 32 and 1 <= field <= 12 and zero == 0 and base < 1 << field, "wide pool")
        tail = struct.unpack(f"<{ntail}H", take(2 * ntail))
        require(len(set(tail)) == ntail and all(v < 1 << field for v in tail), "tail")
        tables = []
        for _ in range(nr_tables):
            first, m = take(2)
            require(m >= 1 and first + m <= min(255, 1 << field), "names of a table")
            freq = []
            for _ in range(m + 1):
                f = take(1)[0]
                if f >= 128:
                    high = take(1)[0]
                    require(1 <= high <= 31, "frequency")
                    f = f & 127 | high << 7
                freq.append(f)
            require(sum(freq) == 4096, "sum of frequencies")
            tables.append({name: f for name, f in zip([*range(first, first + m), ESCAPE], freq) if f})
        pools.append(WidePool(field, base, tables, tail))
    require(len(pools) <= 64, "too many wide pools")
    return pools


# ---- 4.2, 4.3 payloads -----------------------------------------------------------------------------------------------

def segments_of(n, groups, phase):
    """The segment of each word. groups: (first, seg_len) pairs."""
    firsts = [first for first, _ in groups]
    require(firsts and firsts[0] == 0 and firsts[-1] < n and all(a < b for a, b in zip(firsts, firsts[1:])), "groups")
    require(all(seg_len >= 64 for _, seg_len in groups) and phase < groups[0][1], "segments of a group")
    segment, before = np.zeros(n, int), 0
    for i, (first, seg_len) in enumerate(groups):
        end = firsts[i + 1] if i + 1 < len(groups) else n
        segment[first:end] = before + (np.arange(end - first) + (0 if i else phase)) // seg_len
        before = segment[end - 1] + 1
    return segment


def table_rows(table_of_word, word):
    """The table of each position; beyond the last word that of the last."""
    n = len(table_of_word)
    number = np.minimum(to_rows(np.arange(n), word), n - 1).astype(int)
    number[to_rows(np.ones(n), word) == 0] = n - 1
    return table_of_word[number]


def wide_encode(raw, word, rot, field, pool, groups=((0, 1024),), phase=0, numbers=None, modes=(), edges=b"", patch=None,
                lanes=None):
    """Whole words only. numbers: table of each segment; modes: (superrow, mode)...

    To make bad payloads: patch is called with a dict of the parts before they are joined; lanes are the states to start
    from.
    """
    words = words_of(raw, word)
    n, bits = len(words), 8 * word
    x = rotl(to_rows(words, word), rot, bits)
    real = to_rows(np.ones(n, np.uint64), word).astype(bool)
    fields = (x >> np.uint64(bits - field)).astype(int)
    segment = segments_of(n, groups, phase)
    numbers = list(numbers) if numbers is not None else [0] * (segment[-1] + 1)
    tables = table_rows(np.array(numbers)[segment], word)

    names = (fields - pool.base) % (1 << field)
    names[names > 254] = ESCAPE
    names[pool.freq[tables, names] == 0] = ESCAPE
    commonest = np.argmax(pool.freq[:, :ESCAPE], 1)
    names[~real] = commonest[tables][~real]
    escaped = (names == ESCAPE) & real
    escapes = [pool.tail.index(v) if v in pool.tail else LITERAL for v in fields[escaped]]
    place = (np.arange(len(x))[:, None] * LANES + lane_order(word))[escaped]
    literals = sorted((int(i), raw[i * word:(i + 1) * word]) for i, t in zip(place, escapes) if t == LITERAL)

    lane = np.array(lanes if lanes is not None else [FLOOR] * STEP, np.uint64)
    stream = []
    for step in reversed(range(2 * len(x))):
        here = np.s_[step // 2, STEP * (step % 2):STEP * (step % 2 + 1)]
        f, start = pool.freq[tables[here], names[here]], pool.start[tables[here], names[here]]
        full = lane >= f << np.uint64(20)
        stream.append((lane[full] & np.uint64(0xffff)).astype("<u2").tobytes())
        lane[full] >>= np.uint64(16)
        lane = lane // f << np.uint64(12) | start + lane % f

    mode, changes, stored = 0, dict(modes), b""
    rest = x & np.uint64((1 << (bits - field)) - 1)
    for s in range(0, len(x), SUPER_ROWS):
        mode = changes.get(s // SUPER_ROWS, mode)
        unit = rest_to_value(rest[s:s + SUPER_ROWS], mode) * real[s:s + SUPER_ROWS]
        stored += pack_unit(unit, mode_bits(word, field, mode))
    stream = b"".join(reversed(stream))
    parts = {
        "stream_len": len(stream), "nesc": len(escapes), "nlit": len(literals), "nmode": len(modes),
        "ngroup": len(groups), "phase": phase, "groups": b"".join(first.to_bytes(3, "little") + struct.pack("<H", seg_len)
                                                                  for first, seg_len in groups),
        "numbers": pack_bits(numbers, pool.number_bits), "modes": b"".join(struct.pack("<HB", *m) for m in modes),
        "states": lane.astype("<u4").tobytes(), "stream": stream, "escapes": bytes(escapes),
        "literals": b"".join(struct.pack("<I", number) + data for number, data in literals), "rest": stored,
        "edges": edges,
    }  # fmt: skip
    if patch:
        patch(parts)
    head = b"".join(parts[k].to_bytes(size, "little")
                    for k, size in (("stream_len", 3), ("nesc", 3), ("nlit", 2), ("nmode", 1), ("ngroup", 1), ("phase", 2)))
    return head + b"".join(parts[k] for k in ("groups", "numbers", "modes", "states", "stream", "escapes", "literals",
                                              "rest", "edges"))


def decode_names(states, stream, tables, pool):
    """The names of all positions."""
    lane, words = np.frombuffer(states, "<u4").astype(np.uint64), np.frombuffer(stream, "<u2").astype(np.uint64)
    names, used = np.zeros((len(tables), LANES), int), 0
    for step in range(2 * len(tables)):
        here = np.s_[step // 2, STEP * (step % 2):STEP * (step % 2 + 1)]
        slot = (lane % np.uint64(4096)).astype(int)
        name = names[here] = pool.slots[tables[here], slot]
        rank = slot.astype(np.uint64) - pool.start[tables[here], name]
        lane = pool.freq[tables[here], name] * (lane >> np.uint64(12)) + rank
        need = lane < FLOOR
        more = words[used:used + np.count_nonzero(need)]
        require(len(more) == np.count_nonzero(need), "stream runs out")
        lane[need] = lane[need] << np.uint64(16) | more
        used += len(more)
    require(used == len(words) and np.all(lane == FLOOR), "stream or states")
    return names


def wide_decode(comp, n, word, rot, field, pool, edge_len):
    """(raw bytes of n words, edge bytes)"""
    at = 0

    def take(size):
        nonlocal at
        at += size
        require(at <= len(comp), "short")
        return comp[at - size:at]

    def number(size):
        return int.from_bytes(take(size), "little")

    stream_len, nesc, nlit, nmode, ngroup, phase = (number(size) for size in (3, 3, 2, 1, 1, 2))
    nr_rows = -(-n // LANES)
    require(stream_len % 2 == 0 and stream_len <= 128 * nr_rows and nesc <= 64 * nr_rows and nlit <= nesc, "counts")
    segment = segments_of(n, [(number(3), number(2)) for _ in range(ngroup)], phase)
    nr_segments = int(segment[-1]) + 1
    numbers = unpack_bits(take(-(-nr_segments * pool.number_bits // 8)), nr_segments, pool.number_bits).astype(int)
    require(np.all(numbers < len(pool.tables)), "table number")
    changes = [(number(2), number(1)) for _ in range(nmode)]
    nr_super, supers = -(-nr_rows // SUPER_ROWS), [s for s, _ in changes]
    require(all(a < b for a, b in zip(supers, supers[1:])) and all(s < nr_super for s in supers), "modes")
    require(not changes or (rot == 1 and word >= 2), "modes of this word")
    require(all(m >> 6 != 3 and m & 63 <= 8 * word - field - 1 for _, m in changes), "mode")
    mode, modes = 0, []
    for s in range(nr_super):
        mode = dict(changes).get(s, mode)
        modes.append(mode)
    states, stream, escapes = take(128), take(stream_len), take(nesc)
    literals = [(number(4), take(word)) for _ in range(nlit)]
    places = [place for place, _ in literals]
    require(all(a < b for a, b in zip(places, places[1:])) and all(i < n for i in places), "literals")
    units = [min(SUPER_ROWS, nr_rows - s * SUPER_ROWS) for s in range(nr_super)]
    rests = [take(unit_bytes(u, mode_bits(word, field, m))) for u, m in zip(units, modes)]
    edges = take(edge_len)
    require(at == len(comp), "length")

    names = decode_names(states, stream, table_rows(numbers[segment], word), pool)
    fields = (names + pool.base) % (1 << field)
    escaped = names == ESCAPE
    require(np.count_nonzero(escaped) == nesc, "escapes not used up")
    tail = np.array(pool.tail + [0] * (256 - len(pool.tail)))
    fields[escaped] = tail[list(escapes)]

    values = [value_to_rest(unpack_unit(rest, u, mode_bits(word, field, m)), m) for rest, u, m in zip(rests, units, modes)]
    beyond = ~to_rows(np.ones(n, np.uint64), word).astype(bool)[SUPER_ROWS * (nr_super - 1):]
    stored = unpack_unit(rests[-1], units[-1], mode_bits(word, field, modes[-1]))
    require(not np.any(stored[beyond]), "rest bits beyond the last word")
    x = fields.astype(np.uint64) << np.uint64(8 * word - field) | np.concatenate(values)
    raw = bytearray(from_rows(rotr(x, rot, 8 * word), word, n).astype(f"<u{word}").tobytes())
    for place, data in literals:
        raw[place * word:(place + 1) * word] = data
    return bytes(raw), edges
