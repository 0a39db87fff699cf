"""test_torch.py: torch.load of checkpoints, mapped and not, and worker processes that share what the parent opened."""

import mounted

mounted.need("torch", "safetensors")

import torch  # noqa: E402
import torch.utils.data  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file  # noqa: E402


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))


class Rows(torch.utils.data.Dataset):
    """Rows of one tensor; the handle is opened before the workers are forked."""

    def __init__(self, path, name):
        self.file = safe_open(path, framework="pt")
        self.rows = self.file.get_slice(name)

    def __len__(self):
        return self.rows.get_shape()[0]

    def __getitem__(self, index):
        return self.rows[index : index + 1][0]


def check_workers(original, path):
    name = "embeddings.word_embeddings.weight"
    with safe_open(original, framework="pt") as f:
        name = name if name in f.keys() else max(f.keys(), key=lambda n: f.get_slice(n).get_shape()[0])
        want = f.get_tensor(name)
    loader = torch.utils.data.DataLoader(
        Rows(path, name), batch_size=500, num_workers=4, shuffle=False, multiprocessing_context="fork"
    )
    assert same(torch.cat(list(loader)), want)


def check_checkpoint(original, path):
    want = torch.load(original, weights_only=True)
    for arguments in ({}, {"mmap": True}):
        got = torch.load(path, weights_only=True, **arguments)
        assert got.keys() == want.keys() and all(same(got[n], want[n]) for n in want), arguments


def check_from_file(original, path):
    size = original.stat().st_size
    want = torch.from_file(str(original), size=size, dtype=torch.uint8)
    assert torch.equal(torch.from_file(str(path), size=size, dtype=torch.uint8), want)


def main():
    with mounted.scratch() as top:
        folder = mounted.copy_of("minilm-bf16", top / "model")
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        with mounted.mounted(folder) as mnt:
            check_workers(folder / "model.safetensors", mnt / "model.safetensors")
            check_checkpoint(folder / "pytorch_model.bin", mnt / "pytorch_model.bin")
            check_from_file(folder / "model.safetensors", mnt / "model.safetensors")


main()
