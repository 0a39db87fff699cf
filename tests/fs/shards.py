"""shards.py DIR MIB DTYPE...: write DIR/shard-1.safetensors and so on, one a dtype, of about MIB MiB each, cheaply.

Matrices of 4,096 columns as of a small transformer, norms between them. Every tensor is one piece of noise, shifted by
another number of elements: no two pages of a file are the same. The same bytes every time.
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zoo"))
import zoo  # noqa: E402

COLUMNS = 4096
ROWS = (1024, 256, 1024, 512, 1)  # of the tensors, over and over; an eighth of them in small files
SMALL_MIB = 16
NOISE_SHIFT = 1009  # odd: page borders fall into place again only after more tensors than a file has


def shard(mib, dtype, seed):
    bits = zoo.DTYPE_BITS[dtype]
    noise = zoo.weights(np.random.default_rng(seed), dtype, 2 * ROWS[0] * COLUMNS)
    header, parts, end = {}, [], 0
    while end < mib << 20:
        nr = len(parts)
        rows = -(-ROWS[nr % len(ROWS)] // (8 if mib < SMALL_MIB else 1))
        begin = (NOISE_SHIFT * nr % (ROWS[0] * COLUMNS)) * bits // 8
        part = memoryview(noise)[begin : begin + rows * COLUMNS * bits // 8]
        header[f"layers.{nr // len(ROWS)}.{nr % len(ROWS)}"] = zoo.entry(dtype, [rows, COLUMNS], end, end + len(part))
        parts.append(part)
        end += len(part)
    return [zoo.header_bytes(header, pad_to=8), *parts]


def main():
    folder, mib, *dtypes = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for nr, dtype in enumerate(dtypes, 1):
        with open(os.path.join(folder, f"shard-{nr}.safetensors"), "wb") as out:
            out.writelines(shard(int(mib), dtype, nr))


main()
