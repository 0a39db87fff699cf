"""demo.py BUILD SRC...: pack each SRC, mount the store, load every tensor from both sides, compare, print a table.

Status 0 only when every tensor and every other file is the same, bit for bit. Unmounts and cleans up in any case.
"""
import filecmp
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import ml_dtypes  # noqa: F401  (teaches numpy the names bfloat16, float8_e4m3fn, ...)
from safetensors import SafetensorError, safe_open

CHUNK = 8 << 20
ROUNDS = 3


class Demo:
    def __init__(self, build):
        self.build = build
        os.makedirs(os.path.join(build, "demo"), exist_ok=True)
        self.top = tempfile.mkdtemp(dir=os.path.join(build, "demo"))
        self.store, self.mnt = os.path.join(self.top, "store"), os.path.join(self.top, "mnt")
        os.mkdir(self.mnt)

    def weightfs(self, *args):
        command = [os.path.join(self.build, "weightfs"), *args]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"weightfs {' '.join(args)}: exit status {done.returncode}")
        return done.stdout

    def mount(self):
        self.weightfs("mount", self.store, self.mnt)

    def unmount(self):
        self.weightfs("umount", self.mnt)

    def close(self):
        if os.path.ismount(self.mnt):
            subprocess.run([os.path.join(self.build, "weightfs"), "umount", self.mnt], check=False)
        shutil.rmtree(self.top, ignore_errors=True)

    def pack(self, src, name):
        """Bytes before, bytes after, seconds. A folder as a tree; one with links, as a hub snapshot, file by file."""
        target = os.path.join(self.store, name)
        if os.path.isdir(src) and not any(os.path.islink(path) for path in walk(src)):
            jobs = [(src, target)]
        else:
            jobs = [(os.path.realpath(path), os.path.join(target, below) + ".wfs") for path, below in model_files(src)]
        raw = stored = seconds = 0
        for source, destination in jobs:
            os.makedirs(os.path.dirname(destination), exist_ok=True)
            totals = json.loads(self.weightfs("pack", source, "-o", destination, "--json"))["totals"]
            raw += totals["raw_bytes"]
            stored += totals["stored_bytes"]
            seconds += totals["seconds"]
        return raw, stored, seconds

    def decode_speed(self, name):
        """The best variant's GB/s on one core, hash check included, on the largest container."""
        containers = [path for path in walk(os.path.join(self.store, name)) if path.endswith(".wfs")]
        largest = max(containers, key=os.path.getsize)
        result = json.loads(self.weightfs("bench", "--json", "--passes", "3", "--sample", "256M", largest))
        return max(result["decode"], key=lambda v: v["checked_gbps"])


def walk(folder):
    """Everything below, folders included; links to folders are followed."""
    for parent, folders, files in os.walk(folder, followlinks=True):
        for name in folders + files:
            yield os.path.join(parent, name)


def model_files(src):
    """(path, path below src) of each safetensors file."""
    if os.path.isfile(src):
        try:
            with safe_open(src, framework="numpy"):
                return [(src, os.path.basename(src))]
        except SafetensorError as error:
            sys.exit(f"{src}: not a safetensors file: {error}")
    return [(path, os.path.relpath(path, src)) for path in sorted(walk(src)) if path.endswith(".safetensors")]


def drop_cached(path):
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_speed(path):
    """GB/s of reading it once, in order."""
    buffer = bytearray(CHUNK)
    begin, size = time.perf_counter(), 0
    with open(path, "rb", buffering=0) as f:
        while n := f.readinto(buffer):
            size += n
    return size / (time.perf_counter() - begin) / 1e9


def cold_speeds(demo, pairs):
    """Medians of (mounted, plain) with nothing cached: a new mount each round, the pages behind it dropped."""
    mounted, plain = [], []
    largest = max(pairs, key=lambda pair: os.path.getsize(pair[0]))
    for _ in range(ROUNDS):
        for path in walk(demo.store):
            if os.path.isfile(path):
                drop_cached(path)
        drop_cached(largest[0])
        demo.mount()
        mounted.append(read_speed(largest[1]))
        demo.unmount()
        plain.append(read_speed(largest[0]))
    return statistics.median(mounted), statistics.median(plain)


def compare(original, mounted):
    """Loads every tensor of both files; the number of tensors."""
    with safe_open(original, framework="numpy") as a, safe_open(mounted, framework="numpy") as b:
        names = list(a.keys())
        if names != list(b.keys()) or a.metadata() != b.metadata():
            sys.exit(f"DIFFERENT: the headers of {original}")
        for name in names:
            x, y = a.get_tensor(name), b.get_tensor(name)
            if x.dtype != y.dtype or x.shape != y.shape or x.tobytes() != y.tobytes():
                sys.exit(f"DIFFERENT: tensor {name} of {original}")
    return len(names)


def compare_rest(src, mounted):
    """All other files of a folder, those that the mount shows."""
    for path in walk(mounted):
        original = os.path.join(src, os.path.relpath(path, mounted))
        if os.path.isfile(path) and not path.endswith(".safetensors"):
            if not filecmp.cmp(original, path, shallow=False):
                sys.exit(f"DIFFERENT: {path}")


def size(n):
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000 or unit == "TB":
            return f"{n:.1f} {unit}" if unit != "B" else f"{n} B"
        n /= 1000


def run(demo, sources):
    rows, variant = [], ""
    for src in sources:
        name = os.path.basename(src.rstrip("/"))
        files = model_files(src)
        if not files:
            sys.exit(f"{src}: no .safetensors file in it")
        print(f"Packing {src}", flush=True)
        raw, stored, seconds = demo.pack(src, name)
        speed = demo.decode_speed(name)
        variant = speed["variant"]
        folder = os.path.join(demo.mnt, name)
        pairs = [(path, os.path.join(folder, relative)) for path, relative in files]
        from_mount, from_disk = cold_speeds(demo, pairs)
        demo.mount()
        print(f"Loading every tensor by safetensors, from {folder} and from the original", flush=True)
        tensors = sum(compare(*pair) for pair in pairs)
        if os.path.isdir(src):
            compare_rest(src, folder)
        demo.unmount()
        rows.append((name, size(raw), size(stored), f"{100 - 100 * stored / raw:.2f} %", f"{raw / seconds / 1e9:.2f}",
                     f"{speed['checked_gbps']:.2f}", f"{from_mount:.2f}", f"{from_disk:.2f}", str(tensors)))
    head = ("model", "original", "stored", "saved", "pack", "decode", "mount", "file", "tensors equal")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print()
    for row in [head, *rows]:
        print("  ".join([row[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:])]))
    print(f"""
GB/s of original bytes. pack: all cores, with the proof by decoding that follows. decode: one core, {variant}, hash
checked, from memory. mount: the first read of the file through the mount, nothing cached. file: the same for the
plain file on this disk. Every tensor was loaded from the mount and from the original, and is equal bit for bit.""")


def main(build, sources):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    demo = Demo(build)
    try:
        run(demo, sources)
    finally:
        demo.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
