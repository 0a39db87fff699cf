"""campaign.py WEIGHTFS DIR COUNT SEED: damage COUNT containers in many ways, and hold the command to its promises.

Of each damaged container verify (fast and whole), unpack --keep-going, cat and verify --repair must tell the truth:
- a file under its own name holds the original's bytes, all of them;
- a partial file holds the original's bytes everywhere but in the ranges that its list names, and zeros there;
- what verify calls ok or degraded can be unpacked; what it repaired is the container it was before, byte for byte;
- repair changes nothing else; no command crashes or hangs.
Prints how many of which kind ended how.
"""

import collections
import json
import os
import random
import shutil
import struct
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vectors"))
import wfsfile  # noqa: E402

HEAD = 4096
BATCH = 250
LEVELS = ("default", "max", "fast")
TIMEOUT = 600  # seconds for a batch: reached only by a hang


def make_model(path, seed):
    """BF16 and F32 weights, zeros, and a tensor that is there twice; sizes that no block border likes."""
    rng = np.random.default_rng(seed)

    def normal(nr):
        return (rng.standard_normal(nr, dtype=np.float32) * 0.02).astype("<f4")

    def bf16(nr):
        return (normal(nr).view(np.uint32) >> 16).astype("<u2").tobytes()

    tied = bf16(70001)
    parts = [("a", "BF16", tied), ("b", "F32", normal(20011).tobytes()), ("zeros", "BF16", bytes(150000)),
             ("c", "BF16", bf16(50003)), ("tied", "BF16", tied), ("d", "U8", rng.bytes(3001))]
    header, off = {}, 0
    for name, dtype, data in parts:
        size = {"BF16": 2, "F32": 4, "U8": 1}[dtype]
        header[name] = {"dtype": dtype, "shape": [len(data) // size], "data_offsets": [off, off + len(data)]}
        off += len(data)
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in parts)
    with open(path, "wb") as file:
        file.write(data)
    return data


class Subject:
    """A container, taken apart."""

    def __init__(self, data):
        self.data = data
        box = wfsfile.Container(data)
        self.meta_len, self.payload_off = box.head["meta_len"], box.head["payload_off"]
        self.copy_b = self.payload_off + box.head["payload_len"]
        offs = [self.payload_off]
        for length in box.lengths:
            offs.append(offs[-1] + length)
        self.blocks = list(zip(offs, box.lengths))


def flip(data, at, rng):
    data[at] ^= 1 << rng.randrange(8)


def damage(kind, good, old, other, rng):
    """A damaged copy of good."""
    data = bytearray(good.data)
    size, tail = len(data), len(data) - HEAD
    block = rng.choice(good.blocks)
    if kind == "flip head":
        flip(data, rng.randrange(HEAD), rng)
    elif kind == "flip tail":
        flip(data, tail + rng.randrange(HEAD), rng)
    elif kind == "flip first metadata":
        flip(data, HEAD + rng.randrange(good.meta_len), rng)
    elif kind == "flip second metadata":
        flip(data, good.copy_b + rng.randrange(good.meta_len), rng)
    elif kind == "flip gap":
        flip(data, rng.randrange(HEAD + good.meta_len, good.payload_off), rng)
    elif kind == "flip payload":
        flip(data, rng.randrange(good.payload_off, good.copy_b), rng)
    elif kind == "flip both heads":
        flip(data, rng.randrange(HEAD), rng)
        flip(data, tail + rng.randrange(HEAD), rng)
    elif kind == "flip both metadata":
        flip(data, HEAD + rng.randrange(good.meta_len), rng)
        flip(data, good.copy_b + rng.randrange(good.meta_len), rng)
    elif kind == "flip many":
        for _ in range(rng.randrange(2, 20)):
            flip(data, rng.randrange(size), rng)
    elif kind == "cut anywhere":
        del data[rng.randrange(size):]
    elif kind == "cut spare copies":
        del data[rng.randrange(good.copy_b, size):]
    elif kind == "longer":
        data += rng.randbytes(rng.randrange(1, 5000))
    elif kind == "bytes gone":
        at = rng.randrange(size)
        del data[at:at + rng.randrange(1, 600)]
    elif kind == "bytes put in":
        at = rng.randrange(size)
        data[at:at] = rng.randbytes(rng.randrange(1, 600))
    elif kind == "sector of zeros":
        at = rng.randrange(size) & -512
        data[at:at + 512] = bytes(len(data[at:at + 512]))
    elif kind == "page of rubbish":
        at = rng.randrange(size) & -4096
        data[at:at + 4096] = rng.randbytes(len(data[at:at + 4096]))
    elif kind == "swapped blocks":
        a, b = rng.sample(good.blocks, 2)
        n = min(a[1], b[1])
        data[a[0]:a[0] + n], data[b[0]:b[0] + n] = data[b[0]:b[0] + n], data[a[0]:a[0] + n]
    elif kind == "block of another file":
        source = rng.choice(other.blocks)
        n = min(block[1], source[1])
        data[block[0]:block[0] + n] = other.data[source[0]:source[0] + n]
    elif kind == "block of its past":
        i = rng.randrange(min(len(good.blocks), len(old.blocks)))
        (to, room), (at, length) = good.blocks[i], old.blocks[i]
        n = min(room, length)
        data[to:to + n] = old.data[at:at + n]
    elif kind == "head of another file":
        data[:HEAD] = other.data[:HEAD]
    elif kind == "tail of its past":
        data[tail:] = old.data[-HEAD:]
    elif kind == "metadata of its past":
        n = min(good.meta_len, old.meta_len)
        at = rng.choice((HEAD, good.copy_b))
        data[at:at + n] = old.data[HEAD:HEAD + n]
    else:
        raise KeyError(kind)
    return bytes(data)


# What verify must say of these; of the others it depends on the place.
ALWAYS = {"flip gap": "ok", "flip head": "degraded", "flip tail": "degraded", "flip first metadata": "degraded",
          "flip second metadata": "degraded", "cut spare copies": "degraded", "tail of its past": "degraded",
          "metadata of its past": "degraded", "flip both metadata": "damaged", "longer": "damaged",
          "head of another file": "damaged"}
KINDS = list(ALWAYS) + ["flip both heads", "flip payload", "flip many", "cut anywhere", "bytes gone", "bytes put in",
                        "sector of zeros", "page of rubbish", "swapped blocks", "block of another file",
                        "block of its past"]


def run(*command):
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, text=True, errors="replace")
    assert done.returncode in (0, 1), (command[1:], done.returncode, done.stderr[-2000:])
    return done


def verify(weightfs, store, *options):
    done = run(weightfs, "verify", store, "--json", *options)
    report = json.loads(done.stdout)
    bad = [f for f in report["files"] if f["status"] not in ("ok", "repaired")]
    assert done.returncode == (1 if bad else 0), done.returncode
    return {os.path.basename(f["path"]).removesuffix(".wfs"): f for f in report["files"]}


def check_partial(name, out, raw):
    with open(os.path.join(out, name + ".partial.json")) as file:
        told = json.load(file)
    with open(os.path.join(out, name + ".partial"), "rb") as file:
        got = file.read()
    want, lost, last = bytearray(raw), 0, -1
    for r in told["lost_ranges"]:
        assert r["offset"] > last and r["bytes"] > 0, (name, "ranges are not sorted")
        last = r["offset"] + r["bytes"]
        want[r["offset"]:last] = bytes(r["bytes"])
        lost += r["bytes"]
    assert got == want, f"{name}: WRONG BYTES in what was saved"
    assert 0 < lost == told["lost_bytes"] <= len(raw), (name, lost)
    if told["tensor_names"] == "known":
        for t in told["lost_tensors"]:
            begin, end = t["offset"], t["offset"] + t["bytes"]
            hit = sum(max(0, min(end, r["offset"] + r["bytes"]) - max(begin, r["offset"])) for r in told["lost_ranges"])
            assert hit == t["lost_bytes"] > 0, (name, t)
    return told


def check_one(name, kind, verdict, out, raw):
    """How it ended, once it is known to be no lie."""
    status = verdict["status"] if verdict else "none"
    own, partial = os.path.join(out, name), os.path.join(out, name + ".partial")
    expected = ALWAYS.get(kind)
    assert expected in (None, status), (name, kind, status, verdict)
    if status == "none":  # no trace of a container: an ordinary file, which is copied under its own name
        assert os.path.exists(own + ".wfs") and not os.path.exists(own), name
        return "ordinary"
    if status in ("ok", "degraded"):
        with open(own, "rb") as file:
            assert file.read() == raw, f"{name}: WRONG BYTES"
        return "right"
    assert not os.path.exists(own), (name, kind, status)
    if not os.path.exists(partial):
        return "refused"
    told = check_partial(name, out, raw)
    if verdict["damaged_blocks"] == told["damaged_blocks"] and kind == "flip payload":
        assert told["damaged_blocks"] == 1, (name, told)
    assert {k: v for k, v in verdict.items() if k in told and k != "reason"}.items() <= told.items(), name
    return "saved in part"


def check_repair(name, path, before, verdict, good):
    with open(path, "rb") as file:
        now = file.read()
    if verdict and verdict["status"] == "repaired":
        gap = slice(HEAD + good.meta_len, good.payload_off)
        assert now[gap] == before[gap] and len(now) == len(good.data), name
        assert now[:gap.start] + now[gap.stop:] == good.data[:gap.start] + good.data[gap.stop:], f"{name}: badly repaired"
        return True
    assert now == before, f"{name}: changed though not repaired"
    return False


def check_cat(weightfs, path, raw):
    done = subprocess.run([weightfs, "cat", path], capture_output=True, timeout=TIMEOUT)
    assert done.returncode in (0, 1), (path, done.returncode)
    assert raw.startswith(done.stdout) and (done.returncode or len(done.stdout) == len(raw)), f"{path}: WRONG BYTES"
    assert done.returncode == 0 or path.encode() in done.stderr, (path, done.stderr)


def batch(weightfs, folder, subjects, raw, count, rng, counts):
    good, old, other = subjects
    store, out = os.path.join(folder, "store"), os.path.join(folder, "out")
    for path in (store, out):
        shutil.rmtree(path, ignore_errors=True)
    os.mkdir(store)
    cases = {}
    while len(cases) < count:
        kind = rng.choice(KINDS)
        data = damage(kind, good, old, other, rng)
        if data == good.data:  # blocks that are the same, for example
            continue
        name = f"n{len(cases):04}"
        cases[name] = kind, data
        with open(os.path.join(store, name + ".wfs"), "wb") as file:
            file.write(data)
    fast, whole = verify(weightfs, store, "--fast"), verify(weightfs, store)
    assert {n: f["status"] for n, f in fast.items()} == {n: f["status"] for n, f in whole.items()}
    run(weightfs, "unpack", "--keep-going", store, "-o", out, "--json", "--cpu", rng.choice(("auto", "scalar")))
    for name in rng.sample(sorted(cases), 3):
        if name in whole:
            check_cat(weightfs, os.path.join(store, name + ".wfs"), raw)
    repaired = verify(weightfs, store, "--repair")
    for name, (kind, data) in cases.items():
        ended = check_one(name, kind, whole.get(name), out, raw)
        counts[kind, ended] += 1
        was = check_repair(name, os.path.join(store, name + ".wfs"), data, repaired.get(name), good)
        assert was == (whole.get(name, {}).get("status") == "degraded"), (name, kind, repaired.get(name))
        counts["", "repaired"] += was
    left = [n for n in os.listdir(out) if n.startswith(".")]
    assert not left, left


def take_apart(weightfs, folder, level):
    """The containers of the three models."""
    subjects = []
    for number in (1, 2, 3):
        path = os.path.join(folder, f"model{number}")
        run(weightfs, "pack", "-q", "--force", "--level", level, "--block-size", "64k", path, "-o", path + ".wfs")
        with open(path + ".wfs", "rb") as file:
            subjects.append(Subject(file.read()))
    kinds = {kind for _, _, kind, *_ in wfsfile.Container(subjects[0].data).regions}
    assert kinds == {wfsfile.CODED, wfsfile.FILL, wfsfile.COPY} and len(subjects[0].blocks) > 5, kinds
    return subjects


def main():
    weightfs, folder, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    rng = random.Random(seed)
    raws = []
    for number in (1, 2, 3):
        path = os.path.join(folder, f"model{number}")
        raws.append(make_model(path, number))
    # Its past: the same file before a part of it was trained on.
    past = bytearray(raws[0])
    past[100000:250000] = raws[1][100000:250000]
    with open(os.path.join(folder, "model2"), "wb") as file:
        file.write(past)
    subjects = [take_apart(weightfs, folder, level) for level in LEVELS]
    counts = collections.Counter()
    for begin in range(0, count, BATCH):
        batch(weightfs, folder, subjects[begin // BATCH % len(LEVELS)], raws[0], min(BATCH, count - begin), rng, counts)
    repaired = counts.pop(("", "repaired"), 0)
    ends = collections.Counter()
    for (kind, ended), nr in sorted(counts.items()):
        print(f"{kind:24}{ended:16}{nr:7}")
        ends[ended] += nr
    print(f"{sum(ends.values())} damaged containers: {dict(ends)}; {repaired} repaired; 0 wrong, 0 hangs, 0 crashes")


main()
