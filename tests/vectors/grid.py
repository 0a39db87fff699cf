"""The grid coding (codec/FORMAT.md 3), as wfsfile.py has it."""
import struct

import numpy as np

from words import Pieces, pack_bits, parse_literals, require, unpack_bits, with_literals

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
    pieces, grids = Pieces(data), []
    while pieces.at < len(data):
        op, flags, last, output = pieces.take(4)
        require(op <= 2 and flags <= 3 and output <= 2, "grid kind")
        base = np.frombuffer(pieces.take(4 * (last + 1)), "<u4")
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
    pieces = Pieces(comp)
    take = pieces.take
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
    literals = parse_literals(pieces, nlit, n, grid.word)
    edges = take(edge_len)
    codes = np.frombuffer(decode_codes(comp[pieces.at:]), np.uint8)
    scales = np.zeros(n, np.uint32)
    if nr_tiles:
        bits = [(low + int(p)) << (23 - mb) for p in packed]
        require(all(27 << 23 <= b < 227 << 23 for b in bits), "scale")
        values = [abs(float(v)) for v in np.array(grid.base, np.uint32).view(np.float32) if v != 0]
        for b in {min(bits), max(bits)}:
            scale = float(np.array([b], np.uint32).view(np.float32)[0])
            require(all(2.0**-126 <= scale * v < 2.0**127 for v in values), "products")
        scales = np.array(bits, np.uint32)[tiles]
    words = grid.words(codes, scales)
    return with_literals(words.astype(f"<u{grid.word}").tobytes(), literals), edges
