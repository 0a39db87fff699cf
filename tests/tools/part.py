"""part.py F32_MODEL OUT: a few of a model's tensors, rounded to BF16, as a model of about 3 MB."""
import sys

import ml_dtypes
from safetensors.numpy import load_file, save_file

model, size, part = load_file(sys.argv[1]), 0, {}
for name in sorted(model):
    tensor = model[name].astype(ml_dtypes.bfloat16)
    if size + tensor.nbytes <= 3_000_000:
        part[name] = tensor
        size += tensor.nbytes
save_file(part, sys.argv[2])
