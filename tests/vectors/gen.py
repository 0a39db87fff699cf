"""gen.py OUT: write the golden containers: OUT/ok/*.wfs with ok/SHA256SUMS, OUT/bad/*.wfs with bad/EXPECTED.

The committed files are the truth: they stay as they are when this script changes, and a released format is never
removed from ok/. Everything is seeded. Each good container also passes wfsfile.py, the reader written from the document.
"""
import hashlib
import os
import sys

import gen_file
import gen_grid
import gen_records
import gen_split
import gen_wide
import wfsfile as w
from build import BAD, seed

# In this order: the bad ones share one sequence of random numbers.
PARTS = (gen_file, gen_split, gen_grid, gen_wide, gen_records)


def file_of(name):
    return name[3:].replace("_", "-") + ".wfs"


def main(out):
    for folder in ("ok", "bad"):
        os.makedirs(os.path.join(out, folder), exist_ok=True)
    sums, expected = "", ""
    good = {name: make for part in PARTS for name, make in vars(part).items() if name[:3] == "ok_"}
    for name in sorted(good, key=file_of):
        seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"))
        data, file = good[name](), file_of(name)
        raw = w.Container(data).decode()
        sums += f"{hashlib.sha256(raw).hexdigest()}  {file}\n"
        with open(os.path.join(out, "ok", file), "wb") as f:
            f.write(data)
    seed(21)
    for part in PARTS:
        part.bad_all()
    for name, (status, data) in sorted(BAD.items(), key=lambda item: item[0] + ".wfs"):
        expected += f"{status} {name}.wfs\n"
        with open(os.path.join(out, "bad", name + ".wfs"), "wb") as f:
            f.write(data)
    for path, text in (("ok/SHA256SUMS", sums), ("bad/EXPECTED", expected)):
        with open(os.path.join(out, path), "w") as f:
            f.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
