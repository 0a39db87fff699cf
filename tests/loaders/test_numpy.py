"""test_numpy.py: memmap, fromfile, npy and plain mmap on a real model, alone and from several processes."""

import json
import mmap
import multiprocessing
import os

import mounted
import numpy as np


def tensor_places(path):
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(length))
    header.pop("__metadata__", None)
    return {n: (8 + length + t["data_offsets"][0], t["shape"]) for n, t in header.items() if t["dtype"] == "F32"}


def check_memmap(original, path):
    """As llama.cpp's converter: a memmap for each tensor, whose offset need not be aligned."""
    for mode in ("r", "c"):
        for offset, shape in tensor_places(original).values():
            want = np.memmap(original, "<f4", "r", offset, tuple(shape))
            got = np.memmap(path, "<f4", mode, offset, tuple(shape))
            assert want.tobytes() == got.tobytes()


def check_fromfile(original, path):
    for offset, shape in tensor_places(original).values():
        count = int(np.prod(shape))
        assert np.fromfile(path, "<u4", count, offset=offset).tobytes() == (
            np.fromfile(original, "<u4", count, offset=offset).tobytes()
        )


def check_mmap(original, path):
    want = open(original, "rb").read()
    with open(path, "rb") as f:
        for access in (mmap.ACCESS_READ, mmap.ACCESS_COPY):
            view = mmap.mmap(f.fileno(), 0, access=access)
            assert view == want if len(view) < 1 << 20 else bytes(view) == want
            view.close()


def digest_rows(arguments):
    path, offset, shape, first, step = arguments
    rows = np.memmap(path, "<u4", "r", offset, tuple(shape))[first::step]
    return int(rows.sum(dtype=np.uint64))


def check_processes(original, path):
    """Forked workers take turns with the rows of the largest tensor."""
    offset, shape = max(tensor_places(original).values(), key=lambda t: np.prod(t[1]))
    with multiprocessing.get_context("fork").Pool(6) as pool:
        jobs = [(offset, shape, i, 6) for i in range(6)]
        want = pool.map(digest_rows, [(original, *job) for job in jobs])
        assert pool.map(digest_rows, [(path, *job) for job in jobs]) == want


def main():
    with mounted.scratch() as top:
        folder = mounted.copy_of("minilm-f32", top / "model")
        offset, shape = max(tensor_places(folder / "model.safetensors").values(), key=lambda t: np.prod(t[1]))
        big = np.array(np.memmap(folder / "model.safetensors", "<f4", "r", offset, tuple(shape)))
        np.save(folder / "big.npy", big)
        with mounted.mounted(folder, "-o", "cache=32M") as mnt:
            original, path = folder / "model.safetensors", mnt / "model.safetensors"
            for check in (check_memmap, check_fromfile, check_mmap, check_processes):
                check(original, path)
            assert np.load(mnt / "big.npy").tobytes() == big.tobytes()
            assert np.load(mnt / "big.npy", mmap_mode="r").tobytes() == big.tobytes()
            assert os.path.getsize(path) == os.path.getsize(original)


main()
