"""constant.py FILE LOG2: a small container that claims an original of 2^LOG2 bytes: one block, then a single value."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors"))
import build  # noqa: E402
import wfsfile  # noqa: E402

path, total = sys.argv[1], 1 << int(sys.argv[2])
box = build.File()
box.coded(b"once" * 1024, box.coder(wfsfile.STORED))
box.regions.append((len(box.raw), total - len(box.raw), wfsfile.FILL, 0, 0, 0, 0, 0))
with open(path, "wb") as file:
    file.write(box.build(head_args={"raw_len": total}))
