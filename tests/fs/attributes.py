"""attributes.py SRC MNT: what MNT tells about SRC's files is right in every way of asking; prints the inode numbers."""

import os
import stat
import sys


def check(cond, *what):
    if not cond:
        print("FAIL", *what, file=sys.stderr)
        sys.exit(1)


def check_file(original, path):
    st, had = os.lstat(path), os.lstat(original)
    check(stat.S_IFMT(st.st_mode) == stat.S_IFMT(had.st_mode), path, "kind", oct(st.st_mode))
    check(st.st_mode == had.st_mode, path, "mode", oct(st.st_mode), oct(had.st_mode))
    check((st.st_uid, st.st_gid) == (had.st_uid, had.st_gid), path, "owner")
    check(st.st_nlink >= 1 and st.st_ino > 0, path, "links, inode", st)
    if stat.S_ISREG(st.st_mode):
        check(st.st_size == had.st_size, path, "size", st.st_size, had.st_size)
        check(st.st_mtime_ns == had.st_mtime_ns, path, "mtime", st.st_mtime_ns, had.st_mtime_ns)
        check(st.st_blocks >= -(-st.st_size // 512), path, "blocks", st.st_blocks)
        check(st.st_blksize >= 4096, path, "blksize", st.st_blksize)
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    check(os.fstat(fd) == st, path, "fstat differs")
    os.close(fd)
    return st


def main():
    src, mnt = sys.argv[1:]
    seen, device = {}, os.stat(mnt).st_dev
    for folder, _, _ in os.walk(src):
        there = os.path.join(mnt, os.path.relpath(folder, src))
        listed = {e.name: e for e in os.scandir(there)}
        check(sorted(listed) == sorted(os.listdir(folder)), there, "listing")
        for name, entry in sorted(listed.items()):
            st = check_file(os.path.join(folder, name), entry.path)
            check(entry.inode() == st.st_ino, entry.path, "inode in the listing", entry.inode(), st.st_ino)
            check(entry.is_dir(follow_symlinks=False) == stat.S_ISDIR(st.st_mode), entry.path, "kind in the listing")
            check(entry.is_symlink() == stat.S_ISLNK(st.st_mode), entry.path, "link in the listing")
            check(entry.stat(follow_symlinks=False) == st, entry.path, "stat in the listing")
            check(st.st_dev == device, entry.path, "device")
            check(st.st_ino not in seen, entry.path, "has the inode of", seen.get(st.st_ino))
            seen[st.st_ino] = entry.path
            print(st.st_ino, os.path.relpath(entry.path, mnt))
    v = os.statvfs(mnt)
    check(v.f_bsize >= 512 and v.f_frsize >= 512 and v.f_namemax == 255, "statvfs", v)
    check(0 < v.f_blocks < 1 << 50 and v.f_flag & os.ST_RDONLY, "statvfs", v)
    check(os.statvfs(os.path.join(mnt, "zoo", "text.txt"))[:3] == v[:3], "statvfs of a file")


main()
