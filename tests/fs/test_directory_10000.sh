#!/bin/bash
# A directory of 10,000 entries: complete, once each, by several readers at once, from any remembered place.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
pack "$dir/zoo/tensors-alternating-dtypes.safetensors" "$dir/one.wfs"
"$WFS_PYTHON" - "$dir" <<'END'
import os, sys
top = sys.argv[1]
for i in range(10000):
    name = f"{top}/store/shard-{i:05}-of-10000." + "x" * (i % 100)
    if i % 3 == 0:
        os.link(f"{top}/one.wfs", name + ".wfs")  # one inode, many names
    elif i % 3 == 1:
        open(name, "w").write(str(i))
    else:
        os.symlink(str(i), name)
END
mount_store "$dir/store" "$dir/mnt"
"$WFS_PYTHON" - "$dir/store" "$dir/mnt" "$dir/zoo/tensors-alternating-dtypes.safetensors" <<'END'
import ctypes, os, sys, threading
store, mnt, original = sys.argv[1:]
want = sorted(n.removesuffix(".wfs") for n in os.listdir(store))
content = open(original, "rb").read()

def listing():
    got = sorted(os.listdir(mnt))
    if got != want:
        problems.append(f"{len(got)} names, {len(set(got))} different, {len(want)} wanted")

problems = []
threads = [threading.Thread(target=listing) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]

# telldir, seekdir, rewinddir: going back to a place gives the same names again.
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
libc.telldir.argtypes = libc.readdir.argtypes = libc.rewinddir.argtypes = libc.closedir.argtypes = [ctypes.c_void_p]
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
d = libc.opendir(os.fsencode(mnt))
def next_name():
    entry = libc.readdir(d)
    return ctypes.string_at(entry + 19) if entry else None
order, places = [], []
while True:
    places.append(libc.telldir(d))
    name = next_name()
    if name is None:
        break
    order.append(name)
for i in (7777, 3, 9999, 5000, 0, len(order)):
    libc.seekdir(d, places[i])
    if next_name() != (order[i] if i < len(order) else None):
        problems.append(f"seekdir to entry {i}")
libc.rewinddir(d)
if next_name() != order[0]:
    problems.append("rewinddir")
libc.closedir(d)
if not {b".", b".."} <= set(order):
    problems.append("no . and ..")
for name in want[::501]:
    path = os.path.join(mnt, name)
    if not os.path.islink(path) and os.path.getsize(path) > 10 and open(path, "rb").read() != content:
        problems.append(name)
sys.exit("FAIL " + "; ".join(problems) if problems else 0)
END
