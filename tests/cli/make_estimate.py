"""make_estimate.py DIR: small models for the test of estimate, of every dtype and with every oddity a header may have."""
import json
import os
import struct
import sys

import numpy as np

rng = np.random.default_rng(5)


def write(name, tensors, extra=b""):
    """tensors: name, dtype, shape, bytes[, data_offsets]."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for tensor in tensors:
        key, dtype, shape, raw = tensor[:4]
        offsets = tensor[4] if len(tensor) > 4 else [len(data), len(data) + len(raw)]
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data + extra)


def normal(n):
    scale = np.exp(rng.standard_normal((n + 999) // 1000, dtype=np.float32) * 2).repeat(1000)[:n]
    return rng.standard_normal(n, dtype=np.float32) * scale * np.float32(0.02)


def words(dtype, n):
    """As a network would have them."""
    values = normal(n)
    if dtype == "BF16":
        return (values.view("<u4") >> 16).astype("<u2").tobytes()
    if dtype == "F16":
        return values.astype("<f2").tobytes()
    if dtype in ("F32", "C64"):
        return values.tobytes()
    if dtype == "F64":
        return (values.astype("<f8") * rng.standard_normal(n)).tobytes()
    if dtype.startswith("F8_E5M2"):
        return (values.astype("<f2").view("<u2") >> 8).astype("u1").tobytes()
    if dtype.startswith("F8"):
        return (np.abs(rng.standard_normal(n) * 20) + rng.integers(0, 2, n) * 128).astype("u1").tobytes()
    bytes_ = {"I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8}.get(dtype, 1)
    high = 2 if dtype == "BOOL" else 1000 if bytes_ > 1 else 200
    return rng.integers(0, high, n).astype(f"<u{bytes_}").tobytes()


ALL = ("BF16 F16 F32 F64 C64 F8_E4M3 F8_E4M3FN F8_E4M3FNUZ F8_E5M2 F8_E5M2FNUZ F8_E8M0 F8_E8M0FNU F4 F6_E2M3 F6_E3M2 "
       "BOOL I8 U8 I16 U16 I32 U32 I64 U64").split()
ELEMENT_BYTES = {"F64": 8, "C64": 4, "F32": 4, "BF16": 2, "F16": 2}

every = []
for d in ALL:
    # More than a stretch of 1 MiB, an odd number, a row, few, one, none.
    for part, n in enumerate((300007, 1024, 30, 1)):
        raw = words(d, 2 * n if d == "C64" else n)
        every.append((f"{d}.{part}", d, [n // 3, 3] if n % 3 == 0 else [n], raw))
    every.append((f"{d}.none", d, [0, 7], b""))
    every.append((f"{d}.equal", d, [64, 64], words(d, 2 if d == "C64" else 1) * 4096))
    # All values there are, NaN and infinity among them.
    noise = rng.integers(0, 256, 98304, "u1").tobytes()
    every.append((f"{d}.noise", d, [len(noise)], noise))
write("every", every)

# Frequencies that give a code of 34 bits, unless it is limited: with the end symbol's 1 each exceeds the sum of those
# before the last.
fibonacci = [1, 2]
while len(fibonacci) < 34:
    fibonacci.append(fibonacci[-1] + fibonacci[-2])
write("deep", [("deep", "F8_E8M0", [sum(fibonacci)], np.repeat(np.arange(34, dtype="u1") + 90, fibonacci).tobytes())])

# A tensor that all threads share, and shapes that do not fit or are large.
write("large", [("large", "BF16", [1 << 40, 3, 0], words("BF16", 1 << 20) * 34), ("tall", "BF16", [50000, 1], words("BF16", 50000))])

# Overlaps, holes, an order of their own, half words, unknown dtypes, bytes behind.
raw = words("BF16", 100000)
write("odd", [("a", "BF16", [50000], raw, [0, 100000]), ("b", "BF16", [50000], b"", [50000, 150000]),
              ("c", "F32", [10], b"", [160000, 160040]), ("d", "F32", [10], b"", [160040, 160081]),
              ("e", "NEW9", [10], b"", [160100, 170000]), ("f", "I8", [100], b"", [180000, 180100]),
              ("g", "I8", [0], b"", [170000, 170000])], b"behind")
with open(os.path.join(sys.argv[1], "text"), "w") as file:
    file.write("no safetensors file\n" * 20000)
with open(os.path.join(sys.argv[1], "random"), "wb") as file:
    file.write(rng.integers(0, 256, 200000, "u1").tobytes())
open(os.path.join(sys.argv[1], "empty"), "w").close()
