"""attack.py WHAT FILE...: what somebody who may write to a store, and knows the format, can do to it.

swap A B: exchange the second block of two containers of stored blocks, with every checksum that needs no key made right
    again: lengths and XXH3 in both copies of metadata and head, and the SHA-256 of the whole. Each is then a good container.
table A: change the SHA-256 of one block, and the checksums above it.
nanos A: change the modification time in the head, and its checksum.
bits MANIFEST COMMAND...: change each bit in turn, one by one, and see COMMAND fail each time; every 8th byte only.
"""
import hashlib
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors"))
import wfsfile  # noqa: E402


def sections(meta):
    at = 8 + 24 * struct.unpack_from("<I", meta)[0]
    for i in range(struct.unpack_from("<I", meta)[0]):
        kind, _, _, comp_len, _ = struct.unpack_from("<HHIQQ", meta, 8 + 24 * i)
        yield kind, at
        at += comp_len


def section(meta, kind):
    return dict(sections(meta))[kind]


class File:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.path, self.data = path, bytearray(f.read())
        h = self.head = wfsfile.parse_head(bytes(self.data))
        self.meta = bytearray(self.data[wfsfile.HEAD:wfsfile.HEAD + h["meta_len"]])

    def save(self, sha256=None, nanoseconds=None):
        h, data = self.head, self.data
        copy_b = h["payload_off"] + h["payload_len"]
        data[wfsfile.HEAD:wfsfile.HEAD + h["meta_len"]] = data[copy_b:copy_b + h["meta_len"]] = self.meta
        head = bytearray(data[:wfsfile.HEAD])
        struct.pack_into("<Q", head, 72, wfsfile.xxh(bytes(self.meta)))
        if sha256:
            head[80:112] = sha256
        if nanoseconds is not None:
            struct.pack_into("<I", head, 32, nanoseconds)
        struct.pack_into("<Q", head, 4088, wfsfile.xxh(bytes(head[:4088])))
        data[:wfsfile.HEAD] = data[-wfsfile.HEAD:] = head
        with open(self.path, "r+b") as f:
            f.write(data)


def swap(paths):
    a, b = map(File, paths)
    size = wfsfile.Container(bytes(a.data)).lengths[0]  # stored: each block's
    for kind, width in ((wfsfile.HASHES, 8), (wfsfile.BLOCK_SHA, 32)):
        x, y = section(a.meta, kind) + width, section(b.meta, kind) + width
        a.meta[x:x + width], b.meta[y:y + width] = b.meta[y:y + width], a.meta[x:x + width]
    x, y = a.head["payload_off"] + size, b.head["payload_off"] + size
    a.data[x:x + size], b.data[y:y + size] = b.data[y:y + size], a.data[x:x + size]
    for file in (a, b):
        start = file.head["payload_off"]
        file.save(hashlib.sha256(file.data[start:start + file.head["payload_len"]]).digest())


def table(paths):
    file = File(paths[0])
    file.meta[section(file.meta, wfsfile.BLOCK_SHA)] ^= 1
    file.save()


def nanos(paths):
    File(paths[0]).save(nanoseconds=123)


def bits(arguments):
    path, command = arguments[0], arguments[1:]
    with open(path, "rb") as f:
        data = f.read()
    for i in range(0, len(data), 8):
        bad = bytearray(data)
        bad[i] ^= 1 << i // 8 % 8
        with open(path, "wb") as f:
            f.write(bad)
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 1 or not done.stderr:
            sys.exit(f"bit {i // 8 % 8} of byte {i}: status {done.returncode}: {done.stderr.decode()}")
    with open(path, "wb") as f:
        f.write(data)


{"swap": swap, "table": table, "nanos": nanos, "bits": bits}[sys.argv[1]](sys.argv[2:])
