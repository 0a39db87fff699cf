"""repair_kills.py WEIGHTFS TORN_SO CONTAINER ORIGINAL DIR POINTS: kill verify --repair after each of many numbers of bytes.

Whatever it was about, and wherever it was caught: the container opens, all its bytes are right, and running it again
makes it what it was before the damage. Prints how many kills there were."""

import json
import os
import signal
import struct
import subprocess
import sys

HEAD = 4096


def places(good):
    payload_off, payload_len, meta_len = struct.unpack_from("<QQQ", good, 48)
    copy_b, tail = payload_off + payload_len, len(good) - HEAD
    return {"head": (0, HEAD), "meta-a": (HEAD, meta_len), "meta-b": (copy_b, meta_len), "tail": (tail, HEAD)}


def damages(good):
    """Name, damaged copy, bytes that the repair writes."""
    at = places(good)
    for names in (("head",), ("meta-a",), ("meta-b",), ("tail",), ("head", "meta-a"), ("head", "meta-b"), ("tail", "meta-a"),
                  ("tail", "meta-b")):
        data, bytes_written = bytearray(good), 0
        for name in names:
            off, length = at[name]
            data[off:off + length] = bytes((b ^ 0x5A) & 0xFF for b in data[off:off + length])
            bytes_written += length
        yield "-".join(names), bytes(data), bytes_written
    yield "no-tail", good[:-HEAD], HEAD
    yield "cut-tail", good[:-1000], HEAD
    yield "no-spares", good[:at["meta-b"][0]], HEAD + at["meta-b"][1]
    yield "cut-spares", good[:at["meta-b"][0] + 7], HEAD + at["meta-b"][1]


def cuts(nr_bytes, points):
    """After so many bytes: around the borders of fields and copies, and evenly between."""
    at = {0, 1, 7, 8, 9, 15, 16, 17, 100, 4087, 4088, 4095, 4096, 4097, nr_bytes - 17, nr_bytes - 1, nr_bytes}
    at = {cut for cut in at if 0 <= cut <= nr_bytes}
    step = max(1, nr_bytes // max(1, points - len(at)))
    return sorted(at | set(range(step // 2, nr_bytes, step)))


def statuses(weightfs, store, *options):
    done = subprocess.run([weightfs, "verify", store, "--json", *options], capture_output=True, text=True)
    return {os.path.basename(f["path"]): f["status"] for f in json.loads(done.stdout)["files"]}


def main():
    weightfs, torn, container, original, folder, points = *sys.argv[1:6], int(sys.argv[6])
    with open(container, "rb") as file:
        good = file.read()
    with open(original, "rb") as file:
        raw = file.read()
    env = dict(os.environ, LD_PRELOAD=torn)
    killed = 0
    for name, data, nr_bytes in damages(good):
        for cut in cuts(nr_bytes, points):
            path = os.path.join(folder, f"{name}-{cut}.wfs")
            with open(path, "wb") as file:
                file.write(data)
            env["TORN_AT"] = str(cut)
            done = subprocess.run([weightfs, "verify", "-q", "--repair", path], env=env, capture_output=True)
            assert done.returncode == -signal.SIGKILL, (name, cut, done)
            killed += 1
    found = statuses(weightfs, folder)
    assert len(found) == killed and set(found.values()) <= {"ok", "degraded"}, found
    assert "degraded" in found.values()
    done = subprocess.run([weightfs, "unpack", "-q", folder, "-o", folder + ".out"], capture_output=True)
    assert done.returncode == 0, done
    for name in found:
        with open(os.path.join(folder + ".out", name.removesuffix(".wfs")), "rb") as file:
            assert file.read() == raw, f"{name}: WRONG BYTES"
    again = statuses(weightfs, folder, "--repair")
    assert all(again[name] == ("ok" if was == "ok" else "repaired") for name, was in found.items()), again
    for name in found:
        with open(os.path.join(folder, name), "rb") as file:
            assert file.read() == good, f"{name}: not what it was"
    print(f"{killed} kills of verify --repair: every container whole afterwards, and healed by the next run")


main()
