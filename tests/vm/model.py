"""model.py FILE: a safetensors file of 40 BF16 tensors of 256 KiB, each with its data in blocks of its own."""
import json
import struct
import sys

import numpy as np

rng = np.random.default_rng(5)
tensors = [((rng.standard_normal(131072, dtype=np.float32) * 0.02).view(np.uint32) >> 16).astype("<u2").tobytes()
           for _ in range(40)]
header = json.dumps({f"layer.{i}": {"dtype": "BF16", "shape": [len(data) // 2],
                                    "data_offsets": [i * len(data), (i + 1) * len(data)]}
                     for i, data in enumerate(tensors)}).encode()
header += b" " * ((1 << 18) - 8 - len(header))
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + b"".join(tensors))
