"""corpus.py - the files that are measured, plain and packed. Used by bench.py.

plain/model/             the model
plain/shards/            the same tensors dealt out to 16 files, as large models come
plain/blocks/            500,000 tensors of alternating dtype, so small that each is a block: for the time of an open
store/PART/, lmz/PART/   the same packed by weightfs and by lmz
drain/file               something else, to read before a measurement (reader.c)

Kept between runs; what was made from something that has changed since is made again.
"""
import json
import os
import random
import shutil
import struct

from lab import Failed, run

NR_SHARDS = 16
DRAIN_BYTES = 128 << 20
PIECE_BYTES = 320  # over 256, below which small strangers are merged


def read_header(path):
    """(header, offset of the data) of a safetensors file."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        return json.loads(f.read(size)), 8 + size


def write_header(f, header):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    f.write(struct.pack("<Q", len(text)) + text)


def make_shards(model, folder):
    """Deal the tensors out in order, by size."""
    header, data = read_header(model)
    header.pop("__metadata__", None)
    tensors = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    total = sum(end - begin for begin, end in (info["data_offsets"] for _, info in tensors))
    groups, done = [[] for _ in range(NR_SHARDS)], 0
    for name, info in tensors:
        begin, end = info["data_offsets"]
        groups[min(done * NR_SHARDS // max(total, 1), NR_SHARDS - 1)].append((name, info))
        done += end - begin
    with open(model, "rb") as source:
        for nr, group in enumerate(groups, 1):
            shard, size = {}, 0
            for name, info in group:
                begin, end = info["data_offsets"]
                shard[name] = {**info, "data_offsets": [size, size + end - begin]}
                size += end - begin
            with open(os.path.join(folder, f"model-{nr:05}-of-{NR_SHARDS:05}.safetensors"), "wb") as f:
                write_header(f, shard)
                for _, info in group:
                    begin, end = info["data_offsets"]
                    source.seek(data + begin)
                    f.write(source.read(end - begin))


def make_blocks(folder, nr):
    """nr tensors of PIECE_BYTES, BF16 and F32 by turns, of weights that compress."""
    header = {}
    for i in range(nr):
        dtype, width = ("BF16", 2) if i % 2 else ("F32", 4)
        header[f"t{i}"] = {"dtype": dtype, "shape": [PIECE_BYTES // width],
                           "data_offsets": [i * PIECE_BYTES, (i + 1) * PIECE_BYTES]}
    draw = random.Random(5)
    weights = [draw.gauss(0, 0.02) for _ in range(1 << 16)]
    kinds = [b"".join(struct.pack("<f", w) for w in weights), b"".join(struct.pack("<f", w)[2:] for w in weights)]
    with open(os.path.join(folder, "blocks.safetensors"), "wb") as f:
        write_header(f, header)
        for i in range(nr):
            kind = kinds[i % 2]
            at = i * 37 * 4 % (len(kind) - PIECE_BYTES)
            f.write(kind[at:at + PIECE_BYTES])


def stamp_of(*paths):
    """Of the files that something is made from."""
    return [[os.path.basename(path), os.path.getsize(path), os.stat(path).st_mtime_ns] for path in paths]


class Corpus:
    """weightfs, lmz: programs; lmz may be None. Everything lies below `folder`."""

    def __init__(self, folder, model, weightfs, lmz, nr_blocks):
        self.folder = folder
        self.model = model
        self.weightfs = weightfs
        self.lmz = lmz
        self.nr_blocks = nr_blocks

    def path(self, tree, *below):
        return os.path.join(self.folder, tree, *below)

    def names(self, part):
        return sorted(os.listdir(self.path("plain", part)))

    def make(self, parts, say):
        os.makedirs(self.folder, exist_ok=True)
        for part in parts:
            kind = {"model": [], "shards": [NR_SHARDS], "blocks": [self.nr_blocks, PIECE_BYTES]}[part]
            self.once("plain", part, [stamp_of(self.model), kind], self.make_plain, say)
            plain = [self.path("plain", part, name) for name in self.names(part)]
            self.once("store", part, stamp_of(self.weightfs, *plain), self.make_store, say)
            if self.lmz:
                self.once("lmz", part, stamp_of(self.lmz, *plain), self.make_lmz, say)
        self.once("drain", "", DRAIN_BYTES, self.make_drain, say)

    def once(self, tree, part, stamp, make, say):
        """Run make(part, folder) unless it was run for the same stamp."""
        folder = self.path(tree, part).rstrip(os.sep)
        note, stamp = folder + ".stamp", json.dumps(stamp)
        if os.path.exists(note):
            with open(note, encoding="utf-8") as f:
                if f.read() == stamp:
                    return
            os.unlink(note)
        say(f"making {tree} {part}".rstrip())
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        make(part, folder)
        os.sync()
        with open(note, "w", encoding="utf-8") as f:
            f.write(stamp)

    def make_plain(self, part, folder):
        if part == "model":
            shutil.copyfile(self.model, os.path.join(folder, "model.safetensors"))
        elif part == "shards":
            make_shards(self.model, folder)
        else:
            make_blocks(folder, self.nr_blocks)

    @staticmethod
    def make_drain(_, folder):
        with open(os.path.join(folder, "file"), "wb") as f:
            for _ in range(DRAIN_BYTES >> 20):
                f.write(os.urandom(1 << 20))

    def make_store(self, part, folder):
        for name in self.names(part):
            packed = os.path.join(folder, name + ".wfs")
            run([self.weightfs, "pack", self.path("plain", part, name), "-o", packed])
            if part == "blocks":
                nr = json.loads(run([self.weightfs, "info", packed, "--json"]))["blocks"]
                if nr < self.nr_blocks:
                    raise Failed(f"{packed}: {nr} blocks, not {self.nr_blocks}: the open is not what it should be")

    def make_lmz(self, part, folder):
        run([self.lmz, "add", self.path("plain", part), "--store", folder, "--name", part, "--quiet"])

    def packed_model(self):
        return self.path("store", "model", self.names("model")[0] + ".wfs")

    def sizes(self, part):
        """Bytes of a part, plain and packed."""
        names = self.names(part)
        return (sum(os.path.getsize(self.path("plain", part, name)) for name in names),
                sum(os.path.getsize(self.path("store", part, name + ".wfs")) for name in names))


def check_safetensors(path):
    try:
        read_header(path)
    except (OSError, ValueError, struct.error) as error:
        raise Failed(f"{path}: not a safetensors file: {error}") from error
