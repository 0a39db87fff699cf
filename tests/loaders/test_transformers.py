"""test_transformers.py: transformers loads the real model from a mount; its embeddings are the original's, bit for bit.

By path, by repository name from a packed and mounted hub cache, with shards, and in several processes at once.
"""

import hashlib
import multiprocessing
import os
import shutil

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["TQDM_DISABLE"] = "1"

import mounted  # noqa: E402

mounted.need("torch", "transformers", "safetensors")

SENTENCES = ["The weights lie compressed on the disk.", "Every byte is as it was.", "Übergrößenträger, 名前, 🦙"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def embed(where, **arguments):
    """The sentences' last hidden states, as bytes. One thread: the sums are then made in one order."""
    import torch
    import transformers

    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(where, **arguments)
    model = transformers.AutoModel.from_pretrained(where, **arguments).eval()
    with torch.no_grad():
        out = model(**tokenizer(SENTENCES, padding=True, return_tensors="pt")).last_hidden_state
    assert out.isfinite().all()
    return out.float().numpy().tobytes()


def embed_elsewhere(where):
    """In a process of its own, which reads the environment as it is now."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(embed, (where,))


def make_hub(folder, hub):
    """The model as huggingface_hub caches it."""
    repo = hub / "models--org--minilm"
    (repo / "blobs").mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    (repo / "snapshots" / COMMIT).mkdir(parents=True)
    for path in folder.iterdir():
        if path.is_file():
            content = path.read_bytes()
            name = hashlib.sha256(content).hexdigest()
            if len(content) < 1 << 20:
                name = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            shutil.copy2(path, repo / "blobs" / name)
            (repo / "snapshots" / COMMIT / path.name).symlink_to(f"../../blobs/{name}")


def main():
    import transformers

    with mounted.scratch() as top:
        folder = mounted.copy_of("minilm-f32", top / "model")
        want = embed(folder)

        with mounted.mounted(folder) as mnt:
            assert embed(mnt) == want, "by path"
            with multiprocessing.get_context("spawn").Pool(3) as pool:
                assert pool.map(embed, [mnt] * 3) == [want] * 3, "three processes"

        sharded = top / "sharded"
        model = transformers.AutoModel.from_pretrained(folder)
        model.save_pretrained(sharded, max_shard_size="20MB")
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(sharded)
        del model
        assert len(list(sharded.glob("*.safetensors"))) > 2
        with mounted.mounted(sharded) as mnt:
            assert embed(mnt) == want, "shards"

        hub = top / "hub"
        make_hub(folder, hub)
        mounted.weightfs("pack", "--in-place", hub)
        assert list(hub.glob("models--*/blobs/*.wfs")), "nothing was packed in the hub"
        with mounted.mounted_store(hub, hub):
            assert embed("org/minilm", cache_dir=hub) == want, "by name from the mounted hub"
            os.environ["HF_HUB_CACHE"] = str(hub)
            assert embed_elsewhere("org/minilm") == want, "by name with HF_HUB_CACHE"


if __name__ == "__main__":
    main()
