"""weights.py FILE [MIB [SEED]]: a safetensors file of BF16 weights as networks have them: normal, rows of unlike scale."""
import json
import struct
import sys

import numpy as np

path = sys.argv[1]
mib = float(sys.argv[2]) if len(sys.argv) > 2 else 1
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
rng = np.random.default_rng(seed)
rows = max(1, int(mib * 512))
scale = 0.02 * np.exp(rng.standard_normal((rows, 1), dtype=np.float32))
values = rng.standard_normal((rows, 1024), dtype=np.float32) * scale
words = (values.view(np.uint32) >> 16).astype("<u2")
header = json.dumps({"w": {"dtype": "BF16", "shape": [rows, 1024], "data_offsets": [0, words.nbytes]}}).encode()
header += b" " * (-len(header) % 8)
with open(path, "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    file.write(words.tobytes())
