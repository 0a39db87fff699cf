#!/bin/bash
# 1,000 damaged containers, bits flipped or cut anywhere: the right bytes, EIO or a refusal, never a wrong byte or a crash.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
original=$dir/zoo/phase-f32-1.safetensors
pack "$original" "$dir/good.wfs"
"$WFS_PYTHON" - "$dir/good.wfs" "$dir/store" <<'END'
import random, sys
good = open(sys.argv[1], "rb").read()
rng = random.Random(20)
meta = int.from_bytes(good[64:72], "little")
for i in range(1000):
    data = bytearray(good)
    if i % 4 == 3:
        del data[rng.randrange(len(good)):]
    else:  # anywhere, in head and metadata, or in payload near the metadata
        limit = (len(good), 4096 + meta, 4096 + meta + 3000)[i % 4]
        at = rng.randrange(limit)
        data[at] ^= 1 << rng.randrange(8)
        if i % 8 == 1:  # the same damage in both copies
            mirror = len(good) - 4096 + at if at < 4096 else len(good) - 8192 - meta + at
            data[mirror] = data[at]
    open(f"{sys.argv[2]}/n{i:03}.wfs", "wb").write(data)
END
for cpu in auto scalar; do
	mount_store "$dir/store" "$dir/mnt" -o "cpu=$cpu,log=$dir/log"
	"$WFS_PYTHON" - "$dir/mnt" "$original" <<'END' || fail "a damaged container shows something else than EIO"
import errno, os, sys
mnt, want = sys.argv[1], open(sys.argv[2], "rb").read()
counts = {"right": 0, "refused": 0, "partly": 0, "ordinary": 0}
for name in sorted(os.listdir(mnt)):
    path = os.path.join(mnt, name)
    if name.endswith(".wfs"):  # nothing left that says it was a container
        counts["ordinary"] += 1
        continue
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as e:
        assert e.errno in (errno.EIO, errno.EOPNOTSUPP), (name, e)
        counts["refused"] += 1
        continue
    whole = True
    off = 0
    while off < len(want):
        try:
            data = os.pread(fd, 20000, off)
        except OSError as e:
            assert e.errno == errno.EIO, (name, off, e)
            whole = False
            off = off // 4096 * 4096 + 4096
        else:  # short before a page that fails
            assert data and data == want[off : off + len(data)], f"{name}: wrong bytes at {off}"
            off += len(data)
    counts["right" if whole else "partly"] += 1
    os.close(fd)
assert sum(counts.values()) == 1000 and counts["right"] >= 100 and counts["partly"] >= 100, counts
print("note:", counts)
END
	unmount "$dir/mnt"
done
