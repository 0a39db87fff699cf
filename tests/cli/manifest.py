"""manifest.py DIR: one line for everything in a tree, in order: path, type, mode, mtime in ns, and for files link count,
size and SHA-256, for symbolic links the target. Two trees are the same when their manifests are."""
import hashlib
import os
import stat
import sys

root = os.fsencode(sys.argv[1])
for where, directories, files in os.walk(root):
    directories.sort()
    for name in [b""] * (where == root) + sorted(directories + files):
        path = os.path.join(where, name) if name else root
        st = os.lstat(path)
        line = [repr(os.path.relpath(path, root)), oct(st.st_mode), str(st.st_mtime_ns)]
        if stat.S_ISREG(st.st_mode):
            with open(path, "rb") as file:
                line += [str(st.st_nlink), str(st.st_size), hashlib.file_digest(file, "sha256").hexdigest()]
        elif stat.S_ISLNK(st.st_mode):
            line.append(repr(os.readlink(path)))
        print(*line)
