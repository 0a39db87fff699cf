"""read_only.py MNT: try every way to change a file, a directory or a name beneath MNT."""

import ctypes
import errno
import os
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)
bad = 0


def expect(wanted, what, call, *args, **kwargs):
    global bad
    try:
        result = call(*args, **kwargs)
    except OSError as e:
        if e.errno in wanted:
            return
        result = errno.errorcode[e.errno]
    print(f"FAIL {what}: {result}, not {' or '.join(errno.errorcode[w] for w in wanted)}", file=sys.stderr)
    bad += 1


def syscall(name, *args):
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), name)
    return "success"


def refuse(what, call, *args, **kwargs):
    expect((errno.EROFS,), what, call, *args, **kwargs)


def files(mnt):
    for name in ("dtype-bf16.safetensors", "config.json", "folder/config.json"):
        path = os.path.join(mnt, name)
        for flags in ("O_RDWR", "O_WRONLY", "O_WRONLY|O_APPEND", "O_RDWR|O_TRUNC", "O_RDWR|O_CREAT", "O_RDWR|O_DIRECT"):
            value = 0
            for flag in flags.split("|"):
                value |= getattr(os, flag)
            refuse(f"open {name} {flags}", os.open, path, value)
        refuse(f"open {name} O_RDONLY|O_TRUNC", os.open, path, os.O_RDONLY | os.O_TRUNC)
        expect((errno.EEXIST, errno.EROFS), f"open {name} O_EXCL", os.open, path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        refuse(f"truncate {name}", os.truncate, path, 3)
        refuse(f"chmod {name}", os.chmod, path, 0o600)
        refuse(f"chown {name}", os.chown, path, 1, 1)
        refuse(f"utime {name}", os.utime, path)
        refuse(f"utime ns {name}", os.utime, path, ns=(1, 1))
        refuse(f"unlink {name}", os.unlink, path)
        refuse(f"rename {name}", os.rename, path, path + ".new")
        refuse(f"rename over {name}", os.rename, os.path.join(mnt, "text.txt"), path)
        refuse(f"link {name}", os.link, path, path + ".link")
        refuse(f"setxattr {name}", os.setxattr, path, "user.a", b"b")
        expect((errno.EROFS, errno.ENODATA), f"removexattr {name}", os.removexattr, path, "user.a")
        refuse(f"access W_OK {name}", syscall, "access", os.fsencode(path), os.W_OK)
        fd = os.open(path, os.O_RDONLY)
        expect((errno.EBADF,), f"write {name}", os.write, fd, b"x")
        expect((errno.EBADF,), f"pwrite {name}", os.pwrite, fd, b"x", 0)
        expect((errno.EINVAL, errno.EBADF), f"ftruncate {name}", os.ftruncate, fd, 0)
        expect((errno.EBADF,), f"fallocate {name}", os.posix_fallocate, fd, 0, 10)
        refuse(f"fchmod {name}", os.fchmod, fd, 0o600)
        os.close(fd)


def names(mnt):
    for folder in (mnt, os.path.join(mnt, "folder")):
        new = os.path.join(folder, "new")
        refuse("create", os.open, new, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        refuse("create for reading", os.open, new, os.O_RDONLY | os.O_CREAT)
        refuse("O_TMPFILE", os.open, folder, os.O_RDWR | os.O_TMPFILE)
        refuse("mkdir", os.mkdir, new)
        refuse("symlink", os.symlink, "a", new)
        refuse("fifo", os.mkfifo, new)
        refuse("socket", os.mknod, new, stat.S_IFSOCK | 0o600)
        refuse("device", os.mknod, new, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        refuse("create a container's name", os.open, new + ".wfs", os.O_RDWR | os.O_CREAT)
        refuse("chmod of a directory", os.chmod, folder, 0o700)
        refuse("utime of a directory", os.utime, folder)
        refuse("access W_OK of a directory", syscall, "access", os.fsencode(folder), os.W_OK)
    refuse("rmdir", os.rmdir, os.path.join(mnt, "folder"))
    refuse("rename of a directory", os.rename, os.path.join(mnt, "folder"), os.path.join(mnt, "other"))
    refuse("unlink of a symlink", os.unlink, os.path.join(mnt, "link"))
    refuse("lchown of a symlink", os.lchown, os.path.join(mnt, "link"), 1, 1)


files(sys.argv[1])
names(sys.argv[1])
sys.exit(bad != 0)
