"""second_reader.py WEIGHTFS CORPORA TMP: wfsfile.py, written from FORMAT.md alone, reads what the encoder writes.

Small models of each word size, cut out of the real ones, dequantised and quantised matrices; plus odd files. It also
refuses every golden container that breaks a rule, because of a rule.
"""
import glob
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

import build
import wfsfile

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
import grids  # noqa: E402

LIMIT = 900_000
GRIDS = ("fp8-128x128", "int8-full", "int4-g32-f16", "nf4-f32", "ternary")  # codes of several rotations and fields


def cut_out(model, convert):
    """Tensors of several shapes, up to LIMIT bytes."""
    chosen, size = {}, 0
    for name in sorted(model, key=lambda n: (model[n].nbytes % 7, n)):
        tensor = convert(model[name])
        if size + tensor.nbytes <= LIMIT:
            chosen[name] = tensor
            size += tensor.nbytes
    return chosen


def models(model, tmp):
    kinds = {
        "f64": lambda v: v.astype(np.float64), "f32": lambda v: v, "f16": lambda v: v.astype(np.float16),
        "bf16": lambda v: v.astype(ml_dtypes.bfloat16), "f8": lambda v: v.astype(ml_dtypes.float8_e4m3fn),
        "f32-bf16": lambda v: v.astype(ml_dtypes.bfloat16).astype(np.float32), "abs": np.abs, "i8": lambda v: (v * 99).astype(np.int8),
    }  # fmt: skip
    for name, convert in kinds.items():
        path = os.path.join(tmp, name + ".safetensors")
        save_file(cut_out(model, convert), path)
        yield path


def dequantised(model, tmp):
    """A matrix in grids, of more than one block."""
    matrix = model["encoder.layer.0.intermediate.dense.weight"][:384]
    for name in GRIDS:
        path = os.path.join(tmp, name + ".safetensors")
        save_file({"weight": grids.variant(name)(matrix)}, path)
        yield path


def blocks(model, tmp):
    """A matrix as Q4_0 blocks of ggml: an F16 scale and 32 codes of 4 bits each, behind a few other bytes."""
    x = np.concatenate([v.ravel() for k, v in sorted(model.items()) if "intermediate.dense.weight" in k]).reshape(-1, 32)
    largest = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)
    scale = (largest / -8).astype(np.float16)
    codes = np.clip(np.rint(x / scale.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    packed = np.concatenate([scale.view(np.uint8), codes[:, :16] | codes[:, 16:] << 4], 1)
    path = os.path.join(tmp, "q4_0")
    with open(path, "wb") as f:
        f.write(b"a header" + packed.tobytes())
    return path


def odd_files(tmp):
    rng = np.random.default_rng(3)
    for name, data in (("empty", b""), ("byte", b"x"), ("zeros", bytes(700_001)), ("noise", rng.bytes(300_000)),
                       ("text", b"one line of text, " * 20_000)):
        path = os.path.join(tmp, name)
        with open(path, "wb") as f:
            f.write(data)
        yield path


def read(weightfs, path, level):
    """The codings of the blocks of its container."""
    container = f"{path}.{level}.wfs"
    subprocess.run([weightfs, "pack", "--level", level, path, "-o", container], check=True, stdout=subprocess.DEVNULL)
    with open(path, "rb") as original, open(container, "rb") as packed:
        data = packed.read()
        parsed = wfsfile.Container(data)
        if parsed.decode() != original.read():
            sys.exit(f"{path}: the second reader gives other bytes")
    codings = sorted({parsed.block(i)[0][0] for i in range(len(parsed.cuts))})
    print(f"{os.path.basename(container)}: {os.path.getsize(path)} -> {len(data)}, {len(parsed.cuts)} blocks, "
          f"codings {codings}")
    return codings


def refuse(path):
    with open(path, "rb") as f:
        data = f.read()
    try:
        wfsfile.Container(data).decode()
    except wfsfile.Bad as e:
        print(f"{os.path.basename(path)}: {e}")
    else:
        sys.exit(f"{path}: the second reader takes it")


def most_repeats(weightfs, tmp):
    """As many constant regions as there may be, then one more: both readers draw the same line."""
    for nr, good in ((65536, True), (65537, False)):
        path, f = os.path.join(tmp, f"{nr}.wfs"), build.File()
        for i in range(nr):
            f.fill(1, bytes((i % 251,)) * 8)
        data = f.build()
        with open(path, "wb") as out:
            out.write(data)
        status = subprocess.run([weightfs, "verify", path], stdout=subprocess.DEVNULL).returncode
        if status != (0 if good else 1):
            sys.exit(f"{nr} constant regions: weightfs verify gives {status}")
        if not good:
            refuse(path)
        elif wfsfile.Container(data).decode() != bytes(f.raw):
            sys.exit(f"{nr} constant regions: the second reader gives other bytes")


def main(weightfs, corpora, tmp):
    model = load_file(os.path.join(corpora, "minilm-f32", "model.safetensors"))
    model = {k: v for k, v in model.items() if v.dtype == np.float32}
    for path in (*models(model, tmp), *odd_files(tmp)):
        for level in ("default", "max"):
            read(weightfs, path, level)
    for path in dequantised(model, tmp):
        for level, coding in (("default", wfsfile.GRID), ("max", wfsfile.GRID_WIDE)):
            if coding not in read(weightfs, path, level):
                sys.exit(f"{path}: no block of level {level} has coding {coding}")
    path = blocks(model, tmp)
    for level in ("default", "max"):
        if wfsfile.RECORDS not in read(weightfs, path, level):
            sys.exit(f"{path}: no block of level {level} is coded as records")
    most_repeats(weightfs, tmp)
    here = os.path.dirname(__file__)
    paths = sorted(glob.glob(os.path.join(here, "bad", "*.wfs")))
    if not paths:
        sys.exit("no bad golden containers")
    for path in paths:
        refuse(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
