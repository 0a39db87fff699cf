"""test_safetensors.py: the ordinary safetensors library, every framework and backend it has here, on real models."""

import importlib
import inspect
import os
import threading

import mounted
import numpy as np
import safetensors.numpy
from safetensors import safe_open


def framework_names():
    names = ["numpy"]
    try:
        import torch  # noqa: F401

        names.append("pt")
    except ImportError:
        print("note: no torch here")
    return names


def backends():
    """Values of the backend argument that this version takes; None: the default."""
    found = [None]
    if "backend" in inspect.signature(safetensors.numpy.load_file).parameters:
        found += ["mmap", "pread"]
    return found


def bits(tensor):
    """The bytes of a tensor of either framework."""
    if isinstance(tensor, np.ndarray):
        return tensor.tobytes()
    import torch

    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()


def open_arguments(backend):
    return {} if backend is None else {"backend": backend}


def check_safe_open(original, path, framework, backend):
    with (
        safe_open(original, framework=framework) as want,
        safe_open(path, framework=framework, **open_arguments(backend)) as got,
    ):
        assert list(got.keys()) == list(want.keys()) and got.metadata() == want.metadata()
        for name in want.keys():
            a, b = want.get_tensor(name), got.get_tensor(name)
            assert a.shape == b.shape and a.dtype == b.dtype and bits(a) == bits(b), name
        # As a tensor-parallel rank: strided columns and a range of rows of each matrix, in another order.
        for name in reversed(list(want.keys())):
            a, b = want.get_slice(name), got.get_slice(name)
            assert a.get_shape() == b.get_shape()
            if len(a.get_shape()) == 2:
                rows, cols = a.get_shape()
                assert bits(a[:, cols // 4 : cols // 2]) == bits(b[:, cols // 4 : cols // 2]), name
                assert bits(a[rows // 3 : rows // 2]) == bits(b[rows // 3 : rows // 2]), name


def check_load(original, path, module, backend):
    arguments = open_arguments(backend)
    want = module.load_file(original)
    loaded = [module.load_file(path, **arguments)]
    # safetensors.numpy.load knows no BF16, unlike its load_file.
    if module is not safetensors.numpy or all(t.dtype.kind != "V" for t in want.values()):
        loaded.append(module.load(open(path, "rb").read()))
    for got in loaded:
        assert got.keys() == want.keys()
        assert all(bits(got[n]) == bits(want[n]) and got[n].shape == want[n].shape for n in want)


def check_closed_first(original, path):
    """Tensors that are read after their file was closed, and after the folder was listed (bindfs#159)."""
    import torch  # noqa: F401

    with safe_open(path, framework="pt") as f:
        tensors = {n: f.get_tensor(n) for n in f.keys()}
    os.listdir(os.path.dirname(path))
    with safe_open(original, framework="pt") as f:
        assert all(bits(f.get_tensor(n)) == bits(t) for n, t in tensors.items())
    name = next(iter(tensors))
    tensors[name].zero_()  # a private mapping: the file does not change
    with safe_open(path, framework="pt") as f, safe_open(original, framework="pt") as g:
        assert bits(f.get_tensor(name)) == bits(g.get_tensor(name))


def check_threads(original, path, framework):
    """One handle for eight threads, each of which wants every tensor, from another one on."""
    with safe_open(original, framework=framework) as f:
        want = {n: bits(f.get_tensor(n)) for n in f.keys()}
    names, wrong = list(want), []
    with safe_open(path, framework=framework) as shared:

        def work(start):
            for i in range(len(names)):
                name = names[(start * len(names) // 8 + i) % len(names)]
                if bits(shared.get_tensor(name)) != want[name]:
                    wrong.append(name)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong, wrong


def main():
    frameworks = framework_names()
    for name in ("minilm-f32", "minilm-bf16", "minilm-f16", "minilm-f32-from-bf16"):
        original = mounted.corpus(name) / "model.safetensors"
        with mounted.mounted(original.parent) as mnt:
            path = str(mnt / "model.safetensors")
            for framework in frameworks:
                if framework == "numpy" and name == "minilm-bf16":
                    try:
                        import ml_dtypes  # noqa: F401
                    except ImportError:
                        continue  # numpy alone has no BF16
                for backend in backends():
                    check_safe_open(original, path, framework, backend)
                    module = "safetensors.torch" if framework == "pt" else "safetensors.numpy"
                    check_load(original, path, importlib.import_module(module), backend)
            if "pt" in frameworks:
                check_closed_first(original, path)
            check_threads(original, path, frameworks[-1])


main()
