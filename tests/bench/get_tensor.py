"""get_tensor.py FILE...: load every tensor by the safetensors library; prints what the reader prints of a pattern."""
import hashlib
import json
import sys
import time

import ml_dtypes  # noqa: F401  (teaches numpy the names bfloat16, float8_e4m3fn, ...)
from safetensors import safe_open


def main():
    tensors = []
    start = time.perf_counter()
    for path in sys.argv[1:]:
        with safe_open(path, framework="numpy") as f:
            tensors += [f.get_tensor(name) for name in f.keys()]
    seconds = time.perf_counter() - start
    digest = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        digest.update(tensor.tobytes())
    size = sum(tensor.nbytes for tensor in tensors)
    print(json.dumps({"pattern": "get_tensor", "seconds": seconds, "bytes": size, "gbps": size / seconds / 1e9,
                      "hash": digest.hexdigest()}))


main()
