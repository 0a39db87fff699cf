"""Words, rows and rest bits as codec/FORMAT.md 2.1, 2.4 and 2.5 have them: what all codings of words share."""
import struct

import numpy as np

LANES, SUPER_ROWS = 64, 8


class Bad(Exception):
    """A rule of the document is broken."""


def require(condition, what):
    if not condition:
        raise Bad(what)


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


def pack_bits(values, bits):
    whole = sum(int(v) << (i * bits) for i, v in enumerate(values))
    return whole.to_bytes(-(-len(values) * bits // 8), "little")


def unpack_bits(data, nr, bits):
    whole = int.from_bytes(data, "little")
    require(whole >> (nr * bits) == 0, "unused bits")
    text = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:nr * bits].reshape(nr, bits)
    return text.astype(np.uint64) @ (np.uint64(1) << np.arange(bits, dtype=np.uint64))


def words_of(raw, word):
    return np.frombuffer(raw, f"<u{word}").astype(np.uint64)


# ---- 2.2 pieces of a payload -----------------------------------------------------------------------------------------

class Pieces:
    """What a payload is cut into, one after another."""

    def __init__(self, comp, at=0):
        self.comp, self.at = comp, at

    def take(self, size):
        self.at += size
        require(self.at <= len(self.comp), "short")
        return self.comp[self.at - size:self.at]

    def end(self):
        require(self.at == len(self.comp), "length")


def parse_modes(pieces, nmode, n, word, rot, field):
    """The mode of each superrow."""
    changes = [struct.unpack("<HB", pieces.take(3)) for _ in range(nmode)]
    nr_super = -(-n // (LANES * SUPER_ROWS))
    numbers = [s for s, _ in changes]
    require(all(a < b for a, b in zip(numbers, numbers[1:])) and all(s < nr_super for s in numbers), "modes")
    require(not changes or (rot == 1 and word >= 2), "modes of this word")
    require(all(m >> 6 != 3 and m & 63 <= 8 * word - field - 1 for _, m in changes), "mode")
    mode, modes = 0, []
    for s in range(nr_super):
        mode = dict(changes).get(s, mode)
        modes.append(mode)
    return modes


def parse_literals(pieces, nlit, n, word):
    literals = [(int.from_bytes(pieces.take(4), "little"), pieces.take(word)) for _ in range(nlit)]
    numbers = [number for number, _ in literals]
    require(all(a < b for a, b in zip(numbers, numbers[1:])) and all(i < n for i in numbers), "literals")
    return literals


def with_literals(raw, literals):
    raw = bytearray(raw)
    for number, data in literals:
        raw[number * len(data):(number + 1) * len(data)] = data
    return bytes(raw)


def unit_rows(n):
    nr_rows = -(-n // LANES)
    return [min(SUPER_ROWS, nr_rows - r) for r in range(0, nr_rows, SUPER_ROWS)]


def rest_sizes(n, word, field, modes):
    """Bytes of each unit's rest bits."""
    return [unit_bytes(rows, mode_bits(word, field, m)) for rows, m in zip(unit_rows(n), modes)]


def rows_of_rest(rest, n, word, field, modes):
    """The rest of each word, in (rows, positions)."""
    at, values = 0, []
    for rows, m, size in zip(unit_rows(n), modes, rest_sizes(n, word, field, modes)):
        v = unpack_unit(rest[at:at + size], rows, mode_bits(word, field, m))
        values.append(value_to_rest(v, m))
        at += size
    beyond = to_rows(np.ones(n, np.uint64), word)[-rows:] == 0
    require(not np.any(v[beyond]), "rest bits beyond the last word")
    return np.concatenate(values)
