"""part.py F32_MODEL OUT [DTYPE]: a few of a model's tensors, rounded to BF16 or DTYPE, as a model of about 3 MB."""
import sys

import ml_dtypes  # noqa: F401 numpy learns bfloat16 from it
import numpy as np
from safetensors.numpy import load_file, save_file

dtype = np.dtype(sys.argv[3] if len(sys.argv) > 3 else "bfloat16")
model, size, part = load_file(sys.argv[1]), 0, {}
for name in sorted(model):
    tensor = model[name].astype(dtype)
    if size + tensor.nbytes <= 3_000_000:
        part[name] = tensor
        size += tensor.nbytes
save_file(part, sys.argv[2])
