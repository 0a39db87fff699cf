#!/bin/bash
# A store of 100,000 files: mounting reads nothing of it, a look-up reads one file, a listing only the folder's heads.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
pack "$dir/zoo/dtype-bf16.safetensors" "$dir/one.wfs"
mkdir "$dir/store" "$dir/mnt"
mounts+=("$dir/mnt")
"$WFS_PYTHON" - "$dir" "$WFS_BIN/weightfs" <<'END' || fail "a big store"
import ctypes, os, struct, subprocess, sys
top, weightfs = sys.argv[1:]
for d in range(100):
    os.mkdir(f"{top}/store/d{d:02}")
    for i in range(1000):
        path = f"{top}/store/d{d:02}/f{i:03}"
        if i % 10 == 0:
            os.link(f"{top}/one.wfs", path + ".wfs")
        else:
            with open(path, "w") as f:
                f.write(path)

# What the daemon touches, as the kernel tells it: opens and reads of the store's folders and of files in two of them.
libc = ctypes.CDLL(None, use_errno=True)
IN_ACCESS, IN_OPEN, IN_ISDIR = 1, 0x20, 0x40000000
watch = libc.inotify_init1(os.O_NONBLOCK)
folders = {}
for path in (f"{top}/store", f"{top}/store/d00", f"{top}/store/d01"):
    wd = libc.inotify_add_watch(watch, os.fsencode(path), IN_ACCESS | IN_OPEN)
    assert wd >= 0
    folders[wd] = os.path.basename(path)

def events():
    seen = set()
    while True:
        try:
            data = os.read(watch, 1 << 20)
        except BlockingIOError:
            return seen
        while data:
            wd, mask, _, length = struct.unpack_from("iIII", data)
            name = data[16 : 16 + length].rstrip(b"\0").decode()
            seen.add((folders[wd], name, "read" if mask & IN_ACCESS else "open"))
            data = data[16 + length :]

subprocess.run([weightfs, "mount", f"{top}/store", f"{top}/mnt"], check=True)
seen = events()
extra = {e for e in seen if e != ("store", "", "open")}
assert not extra, f"mounting touches {sorted(extra)[:10]}"

want = open(f"{top}/zoo/dtype-bf16.safetensors", "rb").read()
assert open(f"{top}/mnt/d00/f010", "rb").read() == want
seen = events()
assert not [e for e in seen if e[0] == "d01"], "a look-up touches another folder"
seen = {name for folder, name, _ in seen if folder == "d00" and name}
assert seen == {"f010.wfs"}, f"one look-up touches {sorted(seen)[:10]}"

assert len(os.listdir(f"{top}/mnt/d01")) == 1000
seen = {name for folder, name, kind in events() if folder == "d01" and name}
assert all(n.endswith(".wfs") for n in seen), f"a listing opens plain files: {sorted(seen)[:10]}"
assert open(f"{top}/mnt/d99/f999").read() == f"{top}/store/d99/f999"
assert sum(len(files) for _, _, files in os.walk(f"{top}/mnt")) == 100000
END
unmount "$dir/mnt"
