"""What the golden containers are made with: files of regions, seeded data, tables that fit it."""
import hashlib
import struct

import lz4.block
import numpy as np

import wfsfile as w
from wfsfile import Pool, Table, pack_coder, pack_region

rng = np.random.default_rng()


def seed(number):
    """Starts the random numbers of all who use rng again."""
    rng.bit_generator.state = np.random.default_rng(number).bit_generator.state


BAD = {}


def bad(name, status, data):
    assert name not in BAD
    BAD[name] = (status, data)


# ---- building --------------------------------------------------------------------------------------------------------

class File:
    """Pieces of a raw file, one region each, with what is needed to store them."""

    def __init__(self, block_log2=16, use_lz4=True):
        self.raw, self.regions, self.coders, self.pools, self.grids = bytearray(), [], [], [], []
        self.block_log2, self.use_lz4 = block_log2, use_lz4
        self.selectors, self.split_args, self.payloads = {}, {}, {}  # by block number
        self.coder_fields = []
        self.extra_sections, self.gap, self.wide_pools = [], b"", []

    def coder(self, coding, word=1, rot=0, field=0, pool=0, grid=0, borders=()):
        self.coders.append(pack_coder(coding, word, rot, field, pool, grid, borders))
        self.coder_fields.append((coding, word, rot, field, pool, grid, bytes(borders)))
        return len(self.coders) - 1

    def split(self, word, rot, field, tables, seg_log2=10):
        """A coder with a pool of its own."""
        self.pools.append(Pool(field, tables, seg_log2))
        return self.coder(w.SPLIT, word, rot, field, len(self.pools) - 1)

    def wide(self, word, rot, pool):
        self.wide_pools.append(pool)
        return self.coder(w.WIDE, word, rot, pool.field, len(self.wide_pools) - 1)

    def records(self, word, borders, pool, rot=0):
        self.wide_pools.append(pool)
        return self.coder(w.RECORDS, word, rot, pool.field, len(self.wide_pools) - 1, borders=borders)

    def grid(self, grid, table, field=5):
        """A coder with a grid and a pool of its own."""
        self.pools.append(Pool(field, [table], 10))
        self.grids.append(grid)
        return self.coder(w.GRID, grid.word, 1, field, len(self.pools) - 1, len(self.grids) - 1)

    def gridded(self, grid, codes, segments, head=b"", tail=b"", field=5, **args):
        """A region of one block."""
        coder = self.grid(grid, table_for(codes.tobytes(), 1, 1, field), field)
        coded = w.split_encode(codes.tobytes(), 1, 1, field, self.pools[-1])
        raw, payload = w.grid_encode(grid, codes, segments, coded, edges=head + tail, **args)
        assert len(payload) <= len(head + raw + tail), (len(payload), len(raw))
        self.payloads[len(list(w.block_cuts(self.regions, self.block_log2)))] = payload
        self.coded(head + raw + tail, coder, (-len(head)) % grid.word)

    def coded(self, raw, coder, phase=0):
        self.regions.append((len(self.raw), len(raw), w.CODED, phase, coder, 0, 0, 0))
        self.raw += raw

    def fill(self, length, fill, phase=0):
        self.regions.append((len(self.raw), length, w.FILL, phase, 0, 0, int.from_bytes(fill, "little"), 0))
        self.raw += bytes(fill[(phase + i) % 8] for i in range(length))

    def copy(self, source, length):
        self.regions.append((len(self.raw), length, w.COPY, 0, 0, 0, source, 0))
        self.raw += self.raw[source:source + length]

    def encode_block(self, number, region, at, length):
        payload = self.encode_payload(number, region, at, length)
        assert len(payload) <= length, f"block {number} of {length} bytes is stored as {len(payload)}"
        return payload

    def encode_payload(self, number, region, at, length):
        start, _, _, phase, default, *_ = self.regions[region]
        selector = self.selectors.get(number, 0)
        coding, word, rot, field, pool, _, borders = self.coder_fields[selector - 1 if selector else default]
        raw, phase = bytes(self.raw[at:at + length]), phase + at - start
        if coding == w.STORED:
            return raw
        if coding == w.LZ4:
            return lz4.block.compress(raw, store_size=False)
        if coding == w.CONSTANT:
            return bytes(raw[(i - phase) % word] for i in range(word))
        head, n, tail = w.cut(word, phase, length)
        encode, pools = (w.split_encode, self.pools) if coding == w.SPLIT else (w.wide_encode, self.wide_pools)
        body, edges = raw[head:length - tail], raw[:head] + raw[length - tail:]
        if coding == w.RECORDS:
            body = np.frombuffer(body, np.uint8)[w.part_order(n, word, borders)].tobytes()
            word = 1
        return encode(body, word, rot, field, pools[pool], edges=edges, **self.split_args.get(number, {}))

    def build(self, sections=None, head=(), head_args=None, payload=None, hashes=None, meta=None, whole=None):
        """The container's bytes; the arguments are hooks that break it."""
        cuts = list(w.block_cuts(self.regions, self.block_log2))
        payloads = [self.payloads.get(i) or self.encode_block(i, *c) for i, c in enumerate(cuts)]
        if payload:
            payload(payloads)
        column = [w.xxh(bytes(self.raw[at:at + length])) for _, at, length in cuts]
        if hashes:
            hashes(column)
        bodies = [
            (w.REGIONS, b"".join(pack_region(start, length, kind, phase, coder, arg, zero, zero2)
                                 for start, length, kind, phase, coder, zero, arg, zero2 in self.regions)),
            (w.CODERS, b"".join(self.coders)), (w.POOLS, b"".join(p.pack() for p in self.pools)),
            (w.LENGTHS, w.planes([len(p) for p in payloads], 3)),
            (w.SELECTORS, w.planes([self.selectors.get(i, 0) for i in range(len(cuts))], 2)),
            (w.HASHES, struct.pack(f"<{len(column)}Q", *column))]
        if self.grids:
            bodies.append((w.GRIDS, b"".join(g.pack() for g in self.grids)))
        if self.wide_pools:
            bodies.append((w.WIDE_POOLS, b"".join(p.pack() for p in self.wide_pools)))
        plain = (w.POOLS, w.HASHES, w.WIDE_POOLS)
        table = [(kind, *w.pack_section(body, self.use_lz4 and kind not in plain)) for kind, body in bodies]
        table += self.extra_sections
        if sections:
            table = sections(table) or table
        metadata = w.pack_metadata(table)
        if meta:
            metadata = meta(metadata) or metadata
        stored = b"".join(payloads)
        off = w.HEAD + len(metadata) + len(self.gap)
        args = dict(raw_len=len(self.raw), sha256=hashlib.sha256(self.raw).digest(), mtime=(1700000000, 123456789),
                    block_log2=self.block_log2, file_len=off + len(stored) + len(metadata) + w.HEAD, payload_off=off,
                    payload_len=len(stored), meta_len=len(metadata), meta_xxh=w.xxh(metadata), patch=head)
        args.update(head_args or {})
        block = w.pack_head(**args)
        data = bytearray(block + metadata + self.gap + stored + metadata + block)
        if whole:
            data = whole(data) or data
        return bytes(data)


# ---- ingredients -----------------------------------------------------------------------------------------------------

def runs(freqs):
    """One run a symbol, in order; a symbol of two runs is given as (first, second)."""
    assert sum(sum(f) if isinstance(f, tuple) else f for f in freqs) == 256
    first = [(f[0] if isinstance(f, tuple) else f, s) for s, f in enumerate(freqs)]
    return first[:1] + [(f[1], s) for s, f in enumerate(freqs) if isinstance(f, tuple)] + first[1:]


def bf16(n, scale=.02, spread=.0):
    """Weights as BF16 words."""
    x = rng.standard_normal(n) * scale * np.exp(rng.standard_normal(n) * spread)
    return (x.astype(np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()


def made(n, word, rot, field, values, weights=None, zero_bits=0, sign=None):
    """Words with fields drawn from values, the rest random; zero_bits low bits clear, the sign bit set to `sign`."""
    bits = 8 * word
    weights = np.array(weights or [1] * len(values), float)
    fields = rng.choice(np.array(values, np.uint64), n, p=weights / weights.sum())
    rest = rng.integers(0, 1 << (bits - field), n, dtype=np.uint64)
    x = w.rotr(fields << np.uint64(bits - field) | rest, rot, bits)
    x = x >> np.uint64(zero_bits) << np.uint64(zero_bits)
    top = np.uint64(1 << (bits - 1))
    if sign is not None:
        x = x | top if sign else x & ~top
    return x.astype(f"<u{word}").tobytes()


def table_for(raw, word, rot, field, nr_symbols=12, ntail=15):
    """A table fitted to the words, the escape for what is rare; frequencies that keep the bucket rule."""
    bits = 8 * word
    fields = (w.rotl(w.words_of(raw, word), rot, bits) >> np.uint64(bits - field)).astype(int)
    values, counts = np.unique(fields, return_counts=True)
    order = values[np.argsort(-counts, kind="stable")]
    nr_symbols = min(nr_symbols, len(order))
    share = {int(v): int(c) for v, c in zip(values, counts)}
    freqs = [max(6, 200 * share[int(v)] // len(fields)) for v in order[:nr_symbols]]
    escape = 8
    freqs[0] += 256 - escape - sum(freqs)
    assert 1 <= freqs[0] <= 255
    return Table([int(v) for v in order[:nr_symbols]], runs(freqs + [escape]),
                 [int(v) for v in order[nr_symbols:nr_symbols + ntail]])


TEXT = b"".join(b'"layer.%d.weight":{"dtype":"BF16","shape":[4,4],"data_offsets":[%d,%d]},' % (i, i, i + 32)
                for i in range(40))


def add_split(f, raw, word, rot, field, seg_log2=10, **table_args):
    return f.split(word, rot, field, [table_for(raw, word, rot, field, **table_args)], seg_log2)


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


def floats(values):
    return np.array(values, np.float32).view(np.uint32)


def minifloats(exponent, mantissa, bias, nr):
    """The first nr values of a small float, from 0 on."""
    codes = np.arange(nr)
    e, m = codes >> mantissa, codes & ((1 << mantissa) - 1)
    scale = 2.0**(np.maximum(e, 1) - bias - mantissa)
    return floats(np.where(e > 0, m + (1 << mantissa), m) * scale)


def grid_codes(n, nb, signed=False):
    """Codes of bell-shaped weights, all entries among them."""
    x = rng.standard_normal(n) * min(.3, 6 / nb)
    if signed:
        codes = np.clip(np.rint((x + 1) / 2 * (nb - 1)), 0, nb - 1).astype(np.uint8)
    else:
        codes = np.minimum(np.rint(np.abs(x) * nb), nb - 1).astype(np.uint8) | np.where(x < 0, 128, 0).astype(np.uint8)
    codes[rng.choice(n, nb, replace=False)] = rng.permutation(nb)
    return codes


def packed_scales(segments, sb):
    return rng.integers(0, 1 << sb, w.tiles_of(segments)[1])


E4M3, E5M2, E2M1 = minifloats(4, 3, 7, 127), minifloats(5, 2, 15, 124), minifloats(2, 1, 1, 8)
NF4 = floats([-1, -.6961928, -.5250731, -.3949175, -.2844414, -.1847734, -.0910500, 0, .0795803, .1609302, .2461123,
              .3379152, .4407098, .5626170, .7229568, 1])
