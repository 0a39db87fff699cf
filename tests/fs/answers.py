"""answers.py FILE: what a read-only file on a mount should say to calls that are not about its bytes."""

import errno
import fcntl
import os
import select
import struct
import sys


def expect(wanted, what, call, *args):
    try:
        got = 0
        call(*args)
    except OSError as e:
        got = e.errno
    if got not in wanted:
        names = [errno.errorcode.get(w, "success") for w in wanted]
        sys.exit(f"FAIL {what}: {errno.errorcode.get(got, 'success')}, not {' or '.join(names)}")


def in_child(wanted, what, call, *args):
    pid = os.fork()
    if not pid:
        expect(wanted, what, call, *args)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit(1)


def main():
    path = sys.argv[1]
    fd, other = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
    none = (0,)

    expect(none, "flock shared", fcntl.flock, fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    expect(none, "flock shared twice", fcntl.flock, other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    expect((errno.EWOULDBLOCK,), "flock exclusive", fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    expect(none, "flock unlock", fcntl.flock, fd, fcntl.LOCK_UN)
    expect(none, "flock exclusive", fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    expect(none, "flock unlock", fcntl.flock, other, fcntl.LOCK_UN)

    expect(none, "fcntl read lock", fcntl.lockf, fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    in_child(none, "fcntl read lock beside it", fcntl.lockf, fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    expect((errno.EBADF,), "fcntl write lock", fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
    expect(none, "open file description lock", fcntl.fcntl, fd, 37, lock)

    expect((errno.ENOTTY, errno.EINVAL), "ioctl TCGETS", fcntl.ioctl, fd, 0x5401, bytes(64))
    expect((errno.ENOTTY,), "ioctl FS_IOC_GETFLAGS", fcntl.ioctl, fd, 0x80086601, bytes(8))
    expect((errno.ENOTTY, errno.EOPNOTSUPP), "ioctl FS_IOC_FIEMAP", fcntl.ioctl, fd, 0xC020660B, bytes(32))
    for name in ("security.selinux", "user.a", "system.posix_acl_access", "security.capability", "trusted.x"):
        expect((errno.ENODATA, errno.ENOTSUP), f"getxattr {name}", os.getxattr, path, name)
    try:
        if os.listxattr(path):
            sys.exit("FAIL listxattr is not empty")
    except OSError as e:
        if e.errno != errno.ENOTSUP:
            raise
    expect((errno.ENODATA, errno.ENOTSUP), "getxattr of a directory", os.getxattr, os.path.dirname(path), "user.a")
    expect(none, "fsync", os.fsync, fd)
    expect(none, "fdatasync", os.fdatasync, fd)
    expect((errno.EINVAL,), "readlink", os.readlink, path)
    expect((errno.ENOTDIR,), "open beneath a file", os.open, path + "/x", os.O_RDONLY)
    expect((errno.ENOTDIR,), "open as a directory", os.open, path, os.O_RDONLY | os.O_DIRECTORY)
    expect((errno.EISDIR,), "read a directory", os.read, os.open(os.path.dirname(path), os.O_RDONLY), 1)
    expect((errno.ENOENT,), "a name that is not there", os.stat, path + ".wfs")
    expect((errno.ENAMETOOLONG,), "a name too long", os.stat, os.path.join(os.path.dirname(path), "n" * 256))
    expect((errno.ENOENT,), "a name of 255 bytes", os.stat, os.path.join(os.path.dirname(path), "n" * 255))
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(0):
        sys.exit("FAIL poll says the file is not readable")


main()
