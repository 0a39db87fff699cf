"""test_gguf.py: ggml's own reader maps a GGUF file of quantised blocks and reads every tensor as in the original."""

import shutil

import mounted

mounted.need("gguf")
import gguf  # noqa: E402

def main():
    with mounted.scratch() as top:
        (top / "model").mkdir()
        original = shutil.copy(mounted.CORPORA / "gguf" / "model.gguf", top / "model" / "model.gguf")
        with mounted.mounted(top / "model") as mnt:
            want, got = gguf.GGUFReader(original), gguf.GGUFReader(mnt / "model.gguf")
            assert len(got.tensors) == len(want.tensors) > 10
            for a, b in zip(want.tensors, got.tensors):
                assert (a.name, a.tensor_type, a.data_offset) == (b.name, b.tensor_type, b.data_offset)
                assert a.data.tobytes() == b.data.tobytes(), a.name
                assert gguf.dequantize(b.data, b.tensor_type).shape == tuple(reversed(b.shape.tolist()))

main()
