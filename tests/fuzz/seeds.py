"""seeds.py OUT: starting points for the fuzz targets, OUT/{container,block,safetensors,roundtrip,opts,manifest}/*.

Containers are the golden ones. Blocks are taken out of them with the second reader,
and block_seeds.c makes those of every shape. The rest is small and made here.
"""
import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "vectors")
sys.path.insert(0, VECTORS)
import wfsfile  # noqa: E402


def put(out, target, name, data):
    folder = os.path.join(out, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def golden():
    for kind in ("ok", "bad"):
        for name in sorted(os.listdir(os.path.join(VECTORS, kind))):
            if name.endswith(".wfs"):
                with open(os.path.join(VECTORS, kind, name), "rb") as f:
                    yield kind, name[:-4], f.read()


def block_seeds(data):
    container = wfsfile.Container(data)
    for i in range(len(container.cuts)):
        (coding, word, rot, field, pool, *_), phase, comp, raw_len = container.block(i)
        if coding == wfsfile.SPLIT:
            head = bytes((word.bit_length() - 1 | rot << 2, field, phase % 8)) + raw_len.to_bytes(3, "little")
            yield i, head + container.pools[pool].pack() + comp


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors_seeds():
    yield "one", safetensors({"a": tensor("BF16", [2, 3], 0, 12)}, bytes(range(12)))
    yield "many", safetensors({f"layer.{i}.weight": tensor("F32", [i], 2 * i * (i - 1), 2 * i * (i + 1))
                               for i in range(20)}, bytes(840))
    yield "metadata", safetensors({"__metadata__": {"format": "pt"}, "x": tensor("F8_E4M3", [], 0, 1)}, b"z")
    yield "escapes", safetensors(b'{"\\u00e9\\n\\ud83d\\ude00":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}  ', bytes(8))
    yield "overlap", safetensors({"a": tensor("U8", [8], 0, 8), "b": tensor("U8", [4], 2, 6)}, bytes(8))
    yield "zero", safetensors({"a": tensor("F16", [0], 0, 0), "b": tensor("F16", [0, 4], 0, 0)})
    yield "lies", safetensors({"a": tensor("BF16", [4], 0, 8)}, bytes(8), length=1 << 40)
    yield "deep", safetensors(b"[" * 200 + b"]" * 200)


COMMAND_LINES = (
    ("/store", "/mnt"), ("-f", "/store", "/mnt", "-o", "cache=1G,threads=4,cpu=scalar,entry_timeout=.5,io_timeout=0"),
    ("--stats", "/mnt", "--json"), ("-oallow_other,context=x,log=/tmp/log,log_level=debug", "--", "-store", "mnt"),
    ("/store", "/mnt", "-o", "rw,read_ahead_kb=4,x-systemd.automount,comment=none,_netdev"), ("--help",), ("-V",),
    ("a", "b", "-o", "cache=16383K"), ("a", "b", "-o", "entry_timeout=1e8,noexec,suid,dev"), ("a", "b", "c"), ("-o",),
)  # fmt: skip


HASH = "0123456789abcdef" * 4
MANIFESTS = (
    "", "dir a\n", "symlink a ../b\n", f"file {HASH} 5 a\n", f"container {HASH} 7 {HASH} a.wfs\n",
    f"dir a\nfile {HASH} 0 a-b\nfile {HASH} 524289 a/%80%20\n" + 3 * f"piece {HASH}\n" + "symlink b /\n",
    f"file {HASH} 4611686018427387904 a\npiece {HASH}\n", "dir ..\n", f"file {HASH} 1 b\nfile {HASH} 1 a\n",
    f"weightfs-manifest 1\nkey {HASH}\ndir a\nsignature {'A' * 86}==\n", "weightfs-manifest 2\n",
)  # fmt: skip


def main(out):
    for i, text in enumerate(MANIFESTS):
        put(out, "manifest", str(i), text.encode())
    for kind, name, data in golden():
        put(out, "container", f"{kind}-{name}", data)
        if kind == "ok":
            for i, block in block_seeds(data):
                put(out, "block", f"{name}-{i}", block)
    for i, words in enumerate(COMMAND_LINES):
        put(out, "opts", str(i), b"".join(word.encode() + b"\0" for word in words))
    for name, data in safetensors_seeds():
        put(out, "safetensors", name, data)
        for flags in (0, 0x31, 0xf9):
            put(out, "roundtrip", f"{name}-{flags:02x}", bytes((flags,)) + data)
    words = struct.pack("<512H", *(0x3c00 + (i * 7919) % 512 for i in range(512)))
    model = safetensors({"w": tensor("BF16", [512], 0, 1024), "v": tensor("F32", [256], 1024, 2048)}, words * 2)
    for flags in (0, 0x28, 0xa0):
        put(out, "roundtrip", f"model-{flags:02x}", bytes((flags,)) + model)


if __name__ == "__main__":
    main(sys.argv[1])
