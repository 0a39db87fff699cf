"""same_tree.py [--hard-links] A B: two trees have the same names, kinds, bytes, modes, owners, mtimes (ns) and links.

Of the roots themselves only the content counts.
"""

import hashlib
import os
import stat
import sys


def describe(root):
    entries, groups = {}, {}
    for folder, dirs, files in os.walk(os.fsencode(root)):
        for name in dirs + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            rel = os.path.relpath(path, os.fsencode(root))
            kind = stat.S_IFMT(st.st_mode)
            entry = [kind, stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns]
            if kind == stat.S_IFLNK:
                entry.append(os.readlink(path))
            elif kind == stat.S_IFREG:
                with open(path, "rb") as f:
                    entry += [st.st_size, hashlib.file_digest(f, "sha256").hexdigest()]
            entries[rel] = entry
            groups.setdefault(st.st_ino, []).append(rel)
    return entries, sorted(sorted(g) for g in groups.values() if len(g) > 1 and entries[g[0]][0] == stat.S_IFREG)


def main():
    links = "--hard-links" in sys.argv
    a, b = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    (left, left_links), (right, right_links) = describe(a), describe(b)
    bad = sorted(set(left) ^ set(right)) or [n for n in sorted(left) if left[n] != right[n]]
    for name in bad[:5]:
        print(f"{name!r}: {left.get(name)} / {right.get(name)}", file=sys.stderr)
    if links and left_links != right_links:
        print(f"hard links: {left_links[:5]} / {right_links[:5]}", file=sys.stderr)
        return 1
    return bool(bad)


sys.exit(main())
