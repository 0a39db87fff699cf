#!/usr/bin/env python3
"""zoo.py [--big] DIR: write every odd file that a model directory may hold, and some that it may not.

The same bytes every time. Without --big 85 MB in about 150 files; --big writes the large ones instead, which
are sparse or named for their size. Names without .safetensors hold something else. Needs numpy.
"""

import io
import json
import os
import sys
import zlib

import numpy as np

KIB = 1024
MIB = 1024 * 1024
DTYPE_BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

FILES = {}
BIG = {}


def zoo_file(name, where=FILES):
    """Decorator: the function gets a generator seeded by the name and returns the file's bytes."""

    def register(function):
        assert name not in where
        where[name] = function
        return function

    return register


# ---- content ----


def bf16(values):
    """Round f32 to BF16 words, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def normal(rng, n, scale=0.02):
    return (rng.standard_normal(n, np.float32) * np.float32(scale)).astype(np.float32)


def bf16_weights(rng, n, scale=0.02):
    return bf16(normal(rng, n, scale)).tobytes()


def weights(rng, dtype, n):
    """n elements that look like weights of that dtype."""
    if dtype == "BF16":
        return bf16_weights(rng, n)
    if dtype == "F16":
        return normal(rng, n).astype(np.float16).tobytes()
    if dtype == "F32":
        return normal(rng, n).tobytes()
    if dtype == "F64":
        return normal(rng, n).astype(np.float64).tobytes()
    if dtype == "C64":
        return normal(rng, 2 * n).tobytes()
    if dtype.startswith("F8"):
        return (bf16(normal(rng, n)) >> 8).astype(np.uint8).tobytes()
    if dtype == "BOOL":
        return rng.integers(0, 2, n, np.uint8).tobytes()
    bits = DTYPE_BITS.get(dtype, 8)
    if dtype[0] in "IU" and bits > 8:
        return rng.integers(0, 1000, n).astype(f"<i{bits // 8}").tobytes()
    return rng.bytes((n * bits + 7) // 8)


def header_bytes(header, pad_to=None, odd=None):
    """Length field and header. pad_to: spaces up to a multiple of it; odd: up to that remainder of 8."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    if pad_to:
        text += b" " * (-(8 + len(text)) % pad_to)
    if odd is not None:
        text += b" " * ((odd - 8 - len(text)) % 8)
    return len(text).to_bytes(8, "little") + text


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors(tensors, metadata=None, **pad):
    """tensors: (name, dtype, bytes) each, laid out in that order."""
    header, data, begin = {}, [], 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, raw in tensors:
        bits = DTYPE_BITS.get(dtype, 8)
        header[name] = entry(dtype, [len(raw) * 8 // bits], begin, begin + len(raw))
        begin += len(raw)
        data.append(raw)
    return header_bytes(header, **pad) + b"".join(data)


# ---- every dtype, every alignment ----


@zoo_file("dtypes-all.safetensors")
def _(rng):
    tensors = [(f"t.{d}", d, weights(rng, d, 4002)) for d in DTYPE_BITS]
    return safetensors(tensors + [("t.new", "F3_E1M1_NEW", rng.bytes(999))], {"format": "pt"}, pad_to=8)


def dtype_file(dtype):
    @zoo_file(f"dtype-{dtype.lower()}.safetensors")
    def _(rng):
        return safetensors([("w", dtype, weights(rng, dtype, 700 * KIB * 8 // DTYPE_BITS[dtype]))], pad_to=8)


for _dtype in DTYPE_BITS:
    dtype_file(_dtype)


def phase_file(dtype, phase):
    @zoo_file(f"phase-{dtype.lower()}-{phase}.safetensors")
    def _(rng):
        raw = weights(rng, dtype, 300 * KIB * 8 // DTYPE_BITS[dtype])
        return safetensors([("w", dtype, raw)], odd=phase) + b"!" * phase


for _dtype, _phases in (("BF16", (1, 3)), ("F16", (1,)), ("F32", (1, 2, 3)), ("F64", (1, 4, 7))):
    for _phase in _phases:
        phase_file(_dtype, _phase)


@zoo_file("rows-and-superrows.safetensors")
def _(rng):
    """Word counts around the codec's units, packed without padding: most tensors start inside a word of the others."""
    tensors = []
    for n in (1, 2, 3, 63, 64, 65, 127, 128, 129, 511, 512, 513, 575, 576, 577, 1023, 1024, 1025, 4095, 4097, 40000):
        for dtype in ("U8", "BF16", "F32"):
            tensors.append((f"{dtype}.{n}", dtype, weights(rng, dtype, n)))
    return safetensors(tensors)


def block_border_file(size):
    """The whole file has that size, all but the header is BF16."""

    @zoo_file(f"bf16-file-of-{size}.safetensors")
    def _(rng):
        header = header_bytes({"w": entry("BF16", [1], 0, 0)})
        data_len = size - len(header)
        for _ in range(4):  # the length stands in the header and changes its length
            header = header_bytes({"w": entry("BF16", [data_len // 2], 0, data_len)})
            data_len = size - len(header)
        return header_bytes({"w": entry("BF16", [data_len // 2], 0, data_len)}) + bf16_weights(
            rng, data_len // 2 + 1
        )[:data_len]


for _size in (64 * KIB, 256 * KIB, MIB):
    for _delta in (-1, 0, 1):
        block_border_file(_size + _delta)


# ---- headers ----


@zoo_file("header-reversed-order.safetensors")
def _(rng):
    raw = [bf16_weights(rng, 30000), weights(rng, "F32", 20000), bf16_weights(rng, 50001), rng.bytes(77)]
    dtypes, offsets = ["BF16", "F32", "BF16", "U8"], np.cumsum([0] + [len(r) for r in raw]).tolist()
    header = {f"t{i}": entry(dtypes[i], [1], offsets[i], offsets[i + 1]) for i in (3, 1, 2, 0)}
    return header_bytes(header) + b"".join(raw)


def one_tensor(rng, metadata=None, before=b"", after=b""):
    raw = bf16_weights(rng, 50000)
    header = {"w": entry("BF16", [50000], 0, len(raw))}
    if metadata is not None:
        header["__metadata__"] = metadata
    return header_bytes(before + json.dumps(header).encode() + after) + raw


for _name, _before, _after in (
    ("before", b" \n\t\r  ", b""),
    ("after", b"", b"\n  \t \r"),
    ("both-long", b" " * 70000, b"\n" * 70001),
):
    zoo_file(f"white-space-{_name}.safetensors")(lambda rng, b=_before, a=_after: one_tensor(rng, before=b, after=a))

for _name, _text in (
    ("null", b"null"),
    ("empty", b"{}"),
    ("number", b"17"),
    ("nested", b'{"a":{"b":[1,{"c":null}]}}'),
    ("not-utf8", b'{"a":"\xff\xfe\x80"}'),
    ("surrogates", b'{"\\ud83d\\ude00":"\\ud83d"}'),
    ("control-character", b'{"a":"\x01"}'),
    ("twice", b'{"a":"b"},"__metadata__":{"c":"d"}'),
):

    @zoo_file(f"metadata-{_name}.safetensors")
    def _(rng, text=_text):
        raw = bf16_weights(rng, 50000)
        tensor = json.dumps(entry("BF16", [50000], 0, len(raw))).encode()
        return header_bytes(b'{"__metadata__":' + text + b',"w":' + tensor + b"}") + raw


@zoo_file("tensor-called-metadata.safetensors")
def _(rng):
    return safetensors([("__metadata__", "BF16", bf16_weights(rng, 40000)), ("w", "F32", weights(rng, "F32", 9999))])


@zoo_file("names-odd.safetensors")
def _(rng):
    names = ["", " ", '"', "\\", "/", "a/b", "../x", "\n", "\0", "é", "🦙", "名前", "x" * 5000, "data_offsets", "dtype"]
    return safetensors([(n, "BF16", bf16_weights(rng, 3001)) for n in names])


@zoo_file("names-duplicate.safetensors")
def _(rng):
    raw = bf16_weights(rng, 40000)
    tensor = json.dumps(entry("BF16", [20000], 0, 40000)), json.dumps(entry("BF16", [20000], 40000, 80000))
    return header_bytes(f'{{"w":{tensor[0]},"w":{tensor[1]},"w":{tensor[0]}}}'.encode()) + raw


@zoo_file("empty-object.safetensors")
def _(rng):
    return header_bytes({})


@zoo_file("empty-object-and-data.safetensors")
def _(rng):
    return header_bytes({}) + bf16_weights(rng, 100000)


@zoo_file("scalars.safetensors")
def _(rng):
    header, data = {}, b""
    for i, dtype in enumerate(("F32", "BF16", "U8", "I64", "BOOL", "F64") * 50):
        raw = weights(rng, dtype, 1)
        header[f"s{i}"] = entry(dtype, [], len(data), len(data) + len(raw))
        data += raw
    return header_bytes(header) + data


@zoo_file("zero-sized.safetensors")
def _(rng):
    raw = bf16_weights(rng, 50000)
    header = {f"z{i}": entry("F32", [0, i], at, at) for i, at in enumerate((0, 0, 7, 50000, 100000, 100000))}
    header["w"] = entry("BF16", [50000], 0, 100000)
    return header_bytes(header) + raw


@zoo_file("holes.safetensors")
def _(rng):
    raw = b"\0" * 5 + bf16_weights(rng, 30000) + rng.bytes(1001) + bf16_weights(rng, 40000) + b"\0" * 9999
    header = {
        "a": entry("BF16", [30000], 5, 60005),
        "b": entry("BF16", [40000], 61006, 141006),
    }
    return header_bytes(header) + raw


@zoo_file("overlaps.safetensors")
def _(rng):
    raw = bf16_weights(rng, 200000)
    header = {
        "all": entry("BF16", [200000], 0, 400000),
        "same": entry("F16", [200000], 0, 400000),
        "part": entry("F32", [50000], 100001, 300001),
        "byte": entry("U8", [1], 200000, 200001),
        "end": entry("F64", [10], 399920, 400000),
    }
    return header_bytes(header) + raw


@zoo_file("overlaps-many.safetensors")
def _(rng):
    header = {f"t{i}": entry("F32", [1000, 1000], i % 7, i % 7 + 300000) for i in range(5000)}
    return header_bytes(header) + weights(rng, "F32", 75002)


@zoo_file("trailing-bytes.safetensors")
def _(rng):
    return one_tensor(rng) + rng.bytes(12345)


@zoo_file("offsets-beyond-the-end.safetensors")
def _(rng):
    raw = bf16_weights(rng, 50000)
    header = {
        "good": entry("BF16", [50000], 0, 100000),
        "long": entry("BF16", [50001], 0, 100002),
        "far": entry("F32", [1], 2**63, 2**63 + 4),
        "wraps": entry("F32", [1], 2**64 - 4, 0),
        "more-than-64-bits": entry("F32", [2**64], 0, 2**65),
        "reversed": entry("F32", [1], 100, 96),
        "negative": entry("F32", [-1], -4, 0),
        "fraction": {"dtype": "F32", "shape": [1.5], "data_offsets": [0.0, 4.0]},
        "three": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]},
        "no-dtype": {"shape": [1], "data_offsets": [0, 4]},
        "no-offsets": {"dtype": "F32", "shape": [1]},
        "not-an-object": 17,
    }
    return header_bytes(header) + raw


@zoo_file("shape-overflow.safetensors")
def _(rng):
    raw = bf16_weights(rng, 50000)
    return header_bytes({"w": entry("BF16", [2**63, 2**63, 2], 0, 100000), "v": entry("F32", [1], 0, 1000)}) + raw


@zoo_file("truncated-data.safetensors")
def _(rng):
    return one_tensor(rng)[:-30001]


@zoo_file("truncated-header.safetensors")
def _(rng):
    return one_tensor(rng)[:40]


for _name, _length in (
    ("zero", 0),
    ("one", 1),
    ("off-by-one-less", -1),
    ("off-by-one-more", -2),
    ("whole-file", -3),
    ("one-past-the-file", -4),
    ("limit", 100000000),
    ("above-limit", 100000001),
    ("2-to-32", 2**32),
    ("2-to-63", 2**63),
    ("all-ones", 2**64 - 1),
    ("wraps", 2**64 - 8),
):

    @zoo_file(f"header-length-{_name}.safetensors")
    def _(rng, length=_length):
        raw = one_tensor(rng)
        true = int.from_bytes(raw[:8], "little")
        length = {-1: true - 1, -2: true + 1, -3: len(raw) - 8, -4: len(raw) - 7}.get(length, length)
        return length.to_bytes(8, "little") + raw[8:]


for _name, _header in (
    ("array", b"[]"),
    ("string", b'"w"'),
    ("null", b"null"),
    ("not-json", b"hello, world"),
    ("not-utf8", b"\xff\xfe\x80\x80"),
    ("name-not-utf8", b'{"\xc3\x28":{"dtype":"BF16","shape":[100],"data_offsets":[0,200]}}'),
    ("bom", b'\xef\xbb\xbf{"w":{"dtype":"BF16","shape":[100],"data_offsets":[0,200]}}'),
    ("nul-padded", b'{"w":{"dtype":"BF16","shape":[100],"data_offsets":[0,200]}}\0\0\0'),
    ("comma-too-many", b'{"w":{"dtype":"BF16","shape":[100],"data_offsets":[0,200]},}'),
    ("no-end", b'{"w":{"dtype":"BF16","shape":[100],"data_offsets":[0,200]}'),
    ("two-objects", b'{}{"w":{"dtype":"BF16","shape":[100],"data_offsets":[0,200]}}'),
    ("deep-arrays", b'{"w":' + b"[" * 100000 + b"]" * 100000 + b"}"),
    ("deep-objects", b'{"w":' + b'{"a":' * 100000 + b"1" + b"}" * 100000 + b"}"),
    ("deep-open", b"{" + b'"a":{' * 100000),
    ("long-number", b'{"w":' + b"9" * 100000 + b"}"),
    ("long-string", b'{"' + b"\\u20ac" * 50000 + b'":1}'),
):
    zoo_file(f"header-{_name}.safetensors")(lambda rng, h=_header: header_bytes(h) + bf16_weights(rng, 70000))


@zoo_file("tensors-100000.safetensors")
def _(rng):
    """Two bytes each, the last ones larger: a container must not cost more for it than for ten."""
    header, begin = {}, 0
    for i in range(100000):
        length = 2 if i < 99990 else 8000
        header[f"model.layers.{i // 100}.expert.{i % 100}.w"] = entry("BF16", [length // 2], begin, begin + length)
        begin += length
    return header_bytes(header) + bf16_weights(rng, begin // 2)


@zoo_file("tensors-alternating-dtypes.safetensors")
def _(rng):
    tensors = []
    for i in range(2000):
        dtype = ("U8", "BF16", "F32", "I64", "F16")[i % 5]
        tensors.append((f"t{i}", dtype, weights(rng, dtype, 1 + i % 37)))
    return safetensors(tensors)


@zoo_file("tensors-fp8-and-scales.safetensors")
def _(rng):
    """FP8 weights, each followed by a scale: two dtypes in turn, by the hundred."""
    tensors = []
    for i in range(150):
        tensors.append((f"layers.{i}.weight", "F8_E4M3", weights(rng, "F8_E4M3", 128 * 128)))
        tensors.append((f"layers.{i}.weight_scale_inv", "F32", normal(rng, 1 + i % 3, 0.01).tobytes()))
    return safetensors(tensors, {"format": "pt"}, pad_to=8)


# ---- values ----


@zoo_file("values-tied.safetensors")
def _(rng):
    """The same megabyte three times, once at an odd distance: copies, whatever finds them."""
    tied = bf16_weights(rng, MIB // 2)
    other = bf16_weights(rng, 100000)
    return safetensors(
        [
            ("embed", "BF16", tied),
            ("w", "BF16", other),
            ("lm_head", "BF16", tied),
            ("odd", "U8", b"x"),
            ("again", "BF16", tied),
            ("nearly", "BF16", tied[:-1] + bytes([tied[-1] ^ 1])),
        ],
        pad_to=8,
    )


@zoo_file("values-tied-range.safetensors")
def _(rng):
    raw = bf16_weights(rng, 300000)
    tied = entry("BF16", [300000], 0, len(raw))
    return header_bytes({"embed": tied, "lm_head": tied}, pad_to=8) + raw


for _phase in (0, 1, 5):

    @zoo_file(f"values-constant-{_phase}.safetensors")
    def _(rng, phase=_phase):
        tensors = [
            ("zero", "BF16", b"\0" * 600000),
            ("one", "BF16", b"\x80\x3f" * 300000),
            ("f32", "F32", b"\x00\x00\x80\x3f" * 150000),
            ("f64", "F64", b"\x18\x2d\x44\x54\xfb\x21\x09\x40" * 75000),
            ("bytes", "U8", b"\xaa" * 600001),
            ("three", "U8", b"abc" * 100000),
            ("w", "BF16", bf16_weights(rng, 100000)),
            ("tail", "F32", b"\0" * 400000),
        ]
        return safetensors(tensors, odd=phase)


@zoo_file("values-sparse.safetensors")
def _(rng):
    """Zeros with rows of weights here and there: constant blocks beside coded ones."""
    words = np.zeros(2 * MIB // 2, np.uint16)
    for at in rng.integers(0, len(words) - 300, 9):
        words[at : at + 300] = bf16(normal(rng, 300))
    words[0] = words[-1] = 1
    return safetensors([("w", "BF16", words.tobytes())], pad_to=8)


@zoo_file("values-every-16-bit-pattern.safetensors")
def _(rng):
    patterns = np.arange(65536, dtype=np.uint16)
    shuffled = rng.permutation(patterns)
    return safetensors(
        [(f"{d}.{n}", d, w.tobytes()) for d in ("BF16", "F16") for n, w in (("up", patterns), ("mixed", shuffled))]
    )


@zoo_file("values-nan-and-inf.safetensors")
def _(rng):
    """Weights with NaNs of every payload, infinities, subnormals and both zeros strewn in."""
    tensors = []
    for dtype, unsigned, exponent, sign in (
        ("BF16", np.uint16, 0x7F80, 0x8000),
        ("F16", np.uint16, 0x7C00, 0x8000),
        ("F32", np.uint32, 0x7F800000, 0x80000000),
        ("F64", np.uint64, 0x7FF0000000000000, 0x8000000000000000),
    ):
        words = np.frombuffer(weights(rng, dtype, 100000), unsigned).copy()
        at = rng.permutation(len(words))[:5000]
        odd = rng.integers(0, np.iinfo(unsigned).max, 5000, unsigned)
        odd[:2000] |= unsigned(exponent)
        odd[2000:3000] = unsigned(exponent)
        odd[3000:4000] &= unsigned(~(exponent | sign) & np.iinfo(unsigned).max)
        odd[4000:4500] = 0
        odd[4500:] = unsigned(sign)
        words[at] = odd
        tensors.append((dtype, dtype, words.tobytes()))
    return safetensors(tensors)


@zoo_file("values-zero-low-bits.safetensors")
def _(rng):
    """F32 that holds BF16, F16, or less, changing in the middle; and with single words that break the rule."""
    pieces = []
    for mask in (0xFFFF0000, 0xFFFFE000, 0xFFFFFFFF, 0xFF000000, 0xFF800000, 0xFFFFFFFE, 0x80000000):
        pieces.append((normal(rng, 30011).view(np.uint32) & np.uint32(mask)))
    words = np.concatenate(pieces)
    broken = words.copy()
    broken[rng.integers(0, len(broken), 20)] |= 1
    f16 = (normal(rng, 50000).astype(np.float16).view(np.uint16) & np.uint16(0xFFF0)).tobytes()
    return safetensors([("w", "F32", words.tobytes()), ("broken", "F32", broken.tobytes()), ("f16", "F16", f16)])


@zoo_file("values-constant-sign.safetensors")
def _(rng):
    """All positive, all negative, one exception, and signs that change from superrow to superrow."""
    tensors = []
    for dtype, make in (("BF16", bf16), ("F32", lambda v: v), ("F16", lambda v: v.astype(np.float16))):
        v = np.abs(normal(rng, 60000))
        flipped = v.copy()
        flipped[31111] *= -1
        turns = v * np.where(np.arange(len(v)) // 512 % 3 == 0, np.float32(-1), np.float32(1))
        for name, values in (("plus", v), ("minus", -v), ("one", flipped), ("turns", turns)):
            tensors.append((f"{dtype}.{name}", dtype, make(values).tobytes()))
    return safetensors(tensors)


@zoo_file("values-rows-of-unlike-scale.safetensors")
def _(rng):
    """Each row has a scale of its own over 60 powers of two: many tables, many escapes."""
    scale = np.exp2(rng.integers(-30, 30, 400)).astype(np.float32)
    values = normal(rng, 400 * 1000, 1.0).reshape(400, 1000) * scale[:, None]
    return safetensors([("bf16", "BF16", bf16(values).tobytes()), ("f32", "F32", values.tobytes())])


@zoo_file("values-random-bits.safetensors")
def _(rng):
    return safetensors([(d, d, rng.bytes(400000)) for d in ("BF16", "F32", "F16", "F64", "F8_E4M3")])


@zoo_file("values-rare-symbols.safetensors")
def _(rng):
    """Nearly all one value, with bursts of everything else: more literals than a block's counter would hold."""
    words = bf16(normal(rng, 400000))
    words[:200000] = 0x3C12
    burst = rng.integers(0, 65536, 70000).astype(np.uint16)
    words[200000:270000] = burst
    words[rng.integers(0, 200000, 300)] = burst[:300]
    return safetensors([("w", "BF16", words.tobytes())])


def round_e4m3(values):
    """Round to 3 mantissa bits as FP8 E4M3 would (no subnormals, clamped): enough to look like a dequantised model."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 16) / 16, exponent).astype(np.float32)


@zoo_file("values-dequantised-fp8.safetensors")
def _(rng):
    values = normal(rng, 512 * 768, 1.0).reshape(512, 768)
    scales = np.abs(normal(rng, 4 * 6, 0.001)).reshape(4, 6) + np.float32(1e-4)
    full = np.repeat(np.repeat(scales, 128, 0), 128, 1)
    return safetensors([("w", "BF16", bf16(round_e4m3(values / 4) * full).tobytes())], pad_to=8)


@zoo_file("values-dequantised-int4.safetensors")
def _(rng):
    codes = rng.integers(-8, 8, (512, 768)).astype(np.float32)
    scales = np.repeat(np.abs(normal(rng, 512 * 24, 0.01)).reshape(512, 24) + np.float32(1e-4), 32, 1)
    return safetensors([("w", "BF16", bf16(codes * scales).tobytes())], pad_to=8)


# ---- other files ----

for _size in (
    0, 1, 2, 7, 8, 9, 15, 16, 4095, 4096, 4097, 65535, 65536, 65537, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, MIB - 1, MIB,
    MIB + 1, 2 * MIB + 3,
):  # fmt: skip
    zoo_file(f"random-{_size}.bin")(lambda rng, n=_size: rng.bytes(n))

for _size in (1, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, 3 * MIB + 5):
    zoo_file(f"zeros-{_size}.bin")(lambda rng, n=_size: b"\0" * n)


@zoo_file("text.txt")
def _(rng):
    words = [b"weight", b"layer", b"attention", b"the", b"of", b"norm", b"\n"]
    return b" ".join(words[i] for i in rng.integers(0, len(words), 60000))


@zoo_file("config.json")
def _(rng):
    return json.dumps({"architectures": ["Zoo"], "hidden_size": 384, "torch_dtype": "bfloat16"}, indent=2).encode()


@zoo_file("array.npy")
def _(rng):
    out = io.BytesIO()
    np.save(out, normal(rng, 100000).reshape(100, 1000))
    return out.getvalue()


@zoo_file("half-random-half-text.bin")
def _(rng):
    return rng.bytes(300001) + b"all work and no play\n" * 15000 + rng.bytes(3)


@zoo_file("looks-like-a-container.bin")
def _(rng):
    return b"\x89WFS\r\n\x1a\n" + b"\x01" + rng.bytes(99999)


@zoo_file("length-field-only.safetensors")
def _(rng):
    return (2).to_bytes(8, "little")


@zoo_file("smallest.safetensors")
def _(rng):
    return (2).to_bytes(8, "little") + b"{}"


# ---- large ones ----


@zoo_file("big-header-25mb.safetensors", BIG)
def _(rng):
    header = {"__metadata__": {"vocab": "".join(f"token{i} " for i in range(2_000_000))}, "w": entry("BF16", [5], 0, 10)}
    return header_bytes(header) + bf16_weights(rng, 200005)


@zoo_file("tensors-250000.safetensors", BIG)
def _(rng):
    header = {f"model.layers.{i}.mlp.experts.weight": entry("BF16", [4], 8 * i, 8 * i + 8) for i in range(250000)}
    return header_bytes(header) + bf16_weights(rng, 1000000)


@zoo_file("sparse-5gib.safetensors", BIG)
def _(rng):
    """One BF16 tensor of 5 GiB: weights at its start, across 4 GiB, before its end; holes between."""
    size = 5 * 1024 * MIB
    header = header_bytes({"w": entry("BF16", [size // 2], 0, size)}, odd=1)
    at = len(header)
    piece = bf16_weights(rng, MIB)
    return at + size, {0: header, at: piece, 2**32 - MIB - 1: piece, at + size - len(piece): piece}


@zoo_file("sparse-5gib.bin", BIG)
def _(rng):
    piece = rng.bytes(MIB)
    return 5 * 1024 * MIB + 1, {0: b"x", 2**31 - 7: piece, 2**32 - 5: piece, 5 * 1024 * MIB: b"y"}


def write(path, content):
    with open(path, "wb") as f:
        if isinstance(content, tuple):
            size, pieces = content
            f.truncate(size)
            for at, piece in pieces.items():
                f.seek(at)
                f.write(piece)
        else:
            f.write(content)
    crc = zlib.crc32(os.path.basename(path).encode())
    os.utime(path, ns=(0, 1_500_000_000_000_000_000 + crc * 1_000_000_007 % 10**17))


def main():
    args = sys.argv[1:]
    big = "--big" in args
    args = [a for a in args if a != "--big"]
    if len(args) != 1 or args[0].startswith("-"):
        sys.exit(__doc__)
    os.makedirs(args[0], exist_ok=True)
    for name, make in (BIG if big else FILES).items():
        write(os.path.join(args[0], name), make(np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))))


if __name__ == "__main__":
    main()
