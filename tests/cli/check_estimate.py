"""check_estimate.py JSON FILE...: whether `weightfs estimate --json` said the truth about these safetensors files.

Every scheme of weightfs-estimate(1) but weightfs itself is made here from its definition alone: Split12 and K15 by
coding each tensor, decoding it again and counting the bytes, exponent Huffman with a heap and all its arrays, zstd with
the same library. Prints what differs, with status 1.
"""
import ctypes
import heapq
import itertools
import json
import math
import struct
import sys

import numpy as np

FIELDS = {  # bytes of a word, exponent bits, mantissa bits
    "BF16": (2, 8, 7), "F16": (2, 5, 10), "F32": (4, 8, 23), "F64": (8, 11, 52), "C64": (4, 8, 23),
    "F8_E4M3": (1, 4, 3), "F8_E4M3FN": (1, 4, 3), "F8_E4M3FNUZ": (1, 4, 3), "F8_E5M2": (1, 5, 2),
    "F8_E5M2FNUZ": (1, 5, 2), "F8_E8M0": (1, 8, 0), "F8_E8M0FNU": (1, 8, 0), "F4": (1, 0, 0), "F6_E2M3": (1, 0, 0),
    "F6_E3M2": (1, 0, 0), "BOOL": (1, 0, 0), "I8": (1, 0, 0), "U8": (1, 0, 0), "I16": (2, 0, 0), "U16": (2, 0, 0),
    "I32": (4, 0, 0), "U32": (4, 0, 0), "I64": (8, 0, 0), "U64": (8, 0, 0)}
ELEMENT_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64}
EXACT = ["split12", "k15", "dfloat11", "zipnn_zstd"]
BOUNDS = ["bound_exponent", "bound_joint"]


def pack_bits(values, bits):
    """Fields of so many bits, packed."""
    if not bits:
        return b""
    planes = [((values >> values.dtype.type(bits - 1 - i)) & values.dtype.type(1)).astype(np.uint8) for i in range(bits)]
    return np.packbits(np.stack(planes, axis=1).reshape(-1)).tobytes()


def unpack_bits(data, nr, bits, dtype):
    values = np.zeros(nr, dtype)
    if bits:
        fields = np.unpackbits(np.frombuffer(data, np.uint8), count=nr * bits).reshape(nr, bits)
        for i in range(bits):
            values |= fields[:, i].astype(dtype) << dtype(bits - 1 - i)
    return values


def parts(words, dtype):
    """Sign, exponent and mantissa."""
    width, exponent, mantissa = FIELDS[dtype]
    of = words.dtype.type
    sign_bits = 8 * width - exponent - mantissa
    sign = words >> of(8 * width - 1) if sign_bits else words & of(0)
    return sign_bits, sign, (words >> of(mantissa)) & of((1 << exponent) - 1), words & of((1 << mantissa) - 1)


def coded_or_raw(coded, words):
    return 1 + min(coded, words.nbytes)


def join(words, sign, exponent, mantissa, mantissa_bits):
    of = words.dtype.type
    return (sign << of(8 * words.itemsize - 1)) | (exponent << of(mantissa_bits)) | mantissa


def split12(words, dtype, rows):
    _, exponent_bits, mantissa_bits = FIELDS[dtype]
    sign_bits, sign, exponent, mantissa = parts(words, dtype)
    of = words.dtype.type
    counts = np.bincount(exponent.astype(np.int64), minlength=1 << exponent_bits)
    windows = np.convolve(counts, np.ones(15, np.int64), "valid")
    base = int(np.argmax(windows)) - 1
    code = exponent.astype(np.int64) - base
    fits = (code >= 1) & (code <= 15)
    code[~fits] = 0
    columns = len(words) // rows if len(words) else 0
    where = np.flatnonzero(~fits)
    row_of = where // columns if columns else where
    row_offsets = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=rows))]).astype("<i4")
    wrong = (words & ~of(((1 << exponent_bits) - 1) << mantissa_bits)) | of((base % (1 << exponent_bits)) << mantissa_bits)
    rest_bits = sign_bits + mantissa_bits
    rest = (sign << of(mantissa_bits)) | mantissa
    file = {"head": struct.pack("<4i", rows, columns, len(where), base), "codes": pack_bits(code.astype(np.uint8), 4),
            "rest": pack_bits(rest, rest_bits), "rows": row_offsets.tobytes(),
            "columns": (where - row_of * columns).astype("<i4").tobytes(), "right": words[where].tobytes(),
            "wrong": wrong[where].tobytes()}
    # And back.
    got_code = unpack_bits(file["codes"], len(words), 4, np.uint8)
    got_rest = unpack_bits(file["rest"], len(words), rest_bits, of)
    got = join(words, got_rest >> of(mantissa_bits) if sign_bits else got_rest & of(0),
               (got_code.astype(np.int64) + base).astype(of), got_rest & of((1 << mantissa_bits) - 1), mantissa_bits)
    first = np.frombuffer(file["rows"], "<i4")
    rows_again = np.repeat(np.arange(rows), np.diff(first))
    got[rows_again * columns + np.frombuffer(file["columns"], "<i4")] = np.frombuffer(file["right"], words.dtype)
    assert np.array_equal(got, words), "Split12 does not come back"
    return coded_or_raw(sum(map(len, file.values())), words)


def k15(words, dtype):
    _, exponent_bits, mantissa_bits = FIELDS[dtype]
    sign_bits, sign, exponent, mantissa = parts(words, dtype)
    of = words.dtype.type
    symbol_bits = sign_bits + exponent_bits
    symbol = ((sign << of(exponent_bits)) | exponent).astype(np.int64)
    counts = np.bincount(symbol, minlength=1 << symbol_bits)
    palette = np.argsort(-counts, kind="stable")[:15]
    code_of = np.full(1 << symbol_bits, 15, np.uint8)
    code_of[palette] = np.arange(len(palette))
    code = code_of[symbol]
    escaped = symbol[code == 15].astype(np.uint16)
    file = {"head": struct.pack("<Q15H", len(escaped), *(list(palette) + [0] * 15)[:15]), "codes": pack_bits(code, 4),
            "rest": pack_bits(mantissa, mantissa_bits), "escapes": pack_bits(escaped, symbol_bits)}
    # And back.
    got_code = unpack_bits(file["codes"], len(words), 4, np.uint8)
    got_symbol = np.append(palette, 0)[np.minimum(got_code, len(palette))]
    got_symbol[got_code == 15] = unpack_bits(file["escapes"], len(escaped), symbol_bits, np.uint16)
    got = join(words, (got_symbol >> exponent_bits).astype(of), (got_symbol & ((1 << exponent_bits) - 1)).astype(of),
               unpack_bits(file["rest"], len(words), mantissa_bits, of), mantissa_bits)
    if not sign_bits:
        got = (got_symbol.astype(of) << of(mantissa_bits)) | unpack_bits(file["rest"], len(words), mantissa_bits, of)
    assert np.array_equal(got, words), "K15 does not come back"
    return coded_or_raw(sum(map(len, file.values())), words)


def code_lengths(weights):
    """A Huffman code of symbols with these weights, as strings; of equal weights leaves come before inner nodes."""
    order = itertools.count()
    heap = [(weight, 0, next(order), [symbol]) for symbol, weight in weights]
    heapq.heapify(heap)
    codes = {symbol: "" for symbol, _ in weights}
    while len(heap) > 1:
        low, high = heapq.heappop(heap), heapq.heappop(heap)
        for bit, node in (("0", low), ("1", high)):
            for symbol in node[3]:
                codes[symbol] = bit + codes[symbol]
        heapq.heappush(heap, (low[0] + high[0], 1, next(order), low[3] + high[3]))
    return codes


def dfloat11(words, dtype):
    _, exponent_bits, mantissa_bits = FIELDS[dtype]
    sign_bits, _, exponent, _ = parts(words, dtype)
    counts = np.bincount(exponent.astype(np.int64), minlength=1 << exponent_bits)
    seen = [(int(e), int(counts[e])) for e in np.flatnonzero(counts)]
    if not seen:
        return coded_or_raw(0, words)
    codes, rare = code_lengths(seen + [("end", 1)]), 2
    while max(map(len, codes.values())) > 32:
        limited = dict(seen)
        for e, _ in sorted(seen, key=lambda item: item[1])[:rare]:
            limited[e] = 1
        codes, rare = code_lengths(list(limited.items()) + [("end", 1)]), rare + 1
    code_bytes = -(-sum(counts[e] * len(codes[e]) for e, _ in seen) // 8)
    blocks = -(-int(code_bytes) // 4096)
    prefixes = {code[:depth] for code in codes.values() for depth in (0, 8, 16, 24) if len(code) > depth}
    entry = 2 if exponent_bits > 8 else 1
    tables = 256 * entry * len(prefixes) + max(256, 1 << exponent_bits)
    rest = -(-len(words) * (sign_bits + mantissa_bits) // 8)
    return coded_or_raw(int(code_bytes) + rest + 512 * 5 // 8 * blocks + 4 * (blocks + 1) + tables, words)


class Zstd:
    def __init__(self):
        self.lib = ctypes.CDLL("libzstd.so.1")
        self.lib.ZSTD_createCCtx.restype = ctypes.c_void_p
        for name in ("ZSTD_compress2", "ZSTD_CCtx_setParameter"):
            getattr(self.lib, name).restype = ctypes.c_size_t
        self.ways = []
        for parameters in ([(100, 3)], [(100, self.lib.ZSTD_minCLevel()), (1002, 1)]):
            context = ctypes.c_void_p(self.lib.ZSTD_createCCtx())
            bad = [self.lib.ZSTD_isError(ctypes.c_size_t(self.lib.ZSTD_CCtx_setParameter(context, *p)))
                   for p in parameters]
            if not any(bad):
                self.ways.append(context)
        self.room = ctypes.create_string_buffer(1 << 20)

    def size(self, data):
        return min([len(data)] + [self.lib.ZSTD_compress2(way, self.room, ctypes.c_size_t(1 << 20), data,
                                                          ctypes.c_size_t(len(data))) for way in self.ways])

    def tensor(self, words, dtype):
        width, bytes_ = words.itemsize, 32
        if dtype in ("BF16", "F32", "C64"):
            of = words.dtype.type
            words = (words << of(1)) | (words >> of(8 * width - 1))
        chunk = (128 if width == 1 else 256) * 1024 // width
        for start in range(0, len(words), chunk):
            planes = words[start:start + chunk].view(np.uint8).reshape(-1, width)
            bytes_ += sum(9 + self.size(planes[:, i].tobytes()) for i in range(width))
        return coded_or_raw(bytes_, words)


def entropy_bits(values):
    _, counts = np.unique(values, return_counts=True)
    return float(np.sum(counts * np.log2(len(values) / counts)))


def bounds(words, dtype):
    width, exponent_bits, mantissa_bits = FIELDS[dtype]
    raw = words.nbytes
    if not len(words):
        return {"bound_exponent": 0, "bound_joint": 0}
    planes = words.view(np.uint8).reshape(-1, width)
    joint = entropy_bits(words >> words.dtype.type(max(0, 8 * width - 16)))
    joint += sum(entropy_bits(planes[:, i]) for i in range(width - 2))
    result = {"bound_exponent": raw, "bound_joint": min(raw, math.ceil(joint / 8))}
    if exponent_bits:
        bits = entropy_bits(parts(words, dtype)[2]) + len(words) * (8 * width - exponent_bits)
        result["bound_exponent"] = min(raw, math.ceil(bits / 8))
    return result


def tensors(path):
    """Dtype, shape and bytes of the tensors that do not overlap an earlier one; and the bytes of the file."""
    data = np.memmap(path, np.uint8, "r")
    header_len = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:8 + header_len].tobytes())
    header.pop("__metadata__", None)
    found, end = [], 0
    for t in sorted(header.values(), key=lambda t: t["data_offsets"]):
        begin, stop = t["data_offsets"]
        if t["dtype"] in FIELDS and begin >= end and (stop - begin) % FIELDS[t["dtype"]][0] == 0:
            end = stop
            found.append((t["dtype"], t["shape"], data[8 + header_len + begin:8 + header_len + stop].tobytes()))
    return found, len(data)


def count(paths):
    zstd, sums, total_raw = Zstd(), {}, 0
    for path in paths:
        found, file_len = tensors(path)
        total_raw += file_len
        for dtype, shape, data in found:
            width = FIELDS[dtype][0]
            words = np.frombuffer(data, f"<u{width}")
            weights = len(data) * 8 // ELEMENT_BITS.get(dtype, 8 * width)
            columns = shape[-1] if shape else 0
            rows = weights // columns if columns and weights and weights % columns == 0 else 1
            row = sums.setdefault(dtype, dict.fromkeys(["tensors", "weights", "raw_bytes"] + EXACT + BOUNDS, 0))
            row["tensors"] += 1
            row["weights"] += weights
            row["raw_bytes"] += len(data)
            sizes = dict.fromkeys(EXACT, len(data)) | bounds(words, dtype)
            if FIELDS[dtype][1]:
                # A row of complex weights has two words a weight.
                sizes |= {"split12": split12(words, dtype, rows), "k15": k15(words, dtype),
                          "dfloat11": dfloat11(words, dtype)}
            sizes["zipnn_zstd"] = zstd.tensor(words, dtype)
            for name, size in sizes.items():
                row[name] += size
    return sums, total_raw


def main():
    said = json.load(open(sys.argv[1]))
    sums, total_raw = count(sys.argv[2:])
    wrong = []

    def compare(where, name, got, want, slack=0):
        if got is None or abs(got - want) > slack:
            wrong.append(f"{where}: {name}: {got}, counted {want}")

    other = total_raw - sum(row["raw_bytes"] for row in sums.values())
    compare("total", "raw_bytes", said["total"]["raw_bytes"], total_raw)
    compare("other", "raw_bytes", said["other"]["raw_bytes"], other)
    compare("all", "dtypes", len(said["dtypes"]), len(sums))
    for d in said["dtypes"]:
        row = sums[d["dtype"]]
        for name in ("tensors", "weights", "raw_bytes"):
            compare(d["dtype"], name, d[name], row[name])
        for name in EXACT + BOUNDS:
            if not FIELDS[d["dtype"]][1] and name not in ("bound_joint", "zipnn_zstd"):
                compare(d["dtype"], name, 1 if d["schemes"][name] is None else 0, 1)
            elif name == "zipnn_zstd" and said["zstd"] is None:
                continue
            else:
                # Bounds are rounded up a tensor, from sums of logarithms in another order.
                slack = row["tensors"] if name in BOUNDS else 0
                compare(d["dtype"], name, d["schemes"][name]["bytes"], row[name], slack)
    for name in EXACT + BOUNDS:
        if name == "zipnn_zstd" and said["zstd"] is None:
            continue
        slack = sum(row["tensors"] for row in sums.values()) if name in BOUNDS else 0
        want = other + sum(row[name] for row in sums.values())
        compare("total", name, said["total"]["schemes"][name]["bytes"], want, slack)
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
