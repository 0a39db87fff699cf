"""slow_store.py FOLDER MNT HANG: a file system that shows the plain files of FOLDER and stops answering reads while the
file HANG exists; HANG.held appears with the first read that it holds back. It speaks the kernel's FUSE protocol
itself (Linux, include/uapi/linux/fuse.h), as root; "ready" on standard output says that it is mounted.
"""

import ctypes
import errno
import os
import select
import stat
import struct
import sys
import threading

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT, OPENDIR, READDIR, RELEASEDIR, BATCH_FORGET = 26, 27, 28, 29, 42


class SlowStore:
    def __init__(self, folder, mnt, hang):
        self.folder, self.hang = folder, hang
        self.names = sorted(os.listdir(folder))
        self.waiting = []
        self.lock = threading.Lock()
        self.dev = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.dev},rootmode=40000,user_id=0,group_id=0,max_read=131072".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"slow", os.fsencode(mnt), b"fuse.slow", 6, options):
            raise OSError(ctypes.get_errno(), "mount")

    def path(self, node):
        return os.path.join(self.folder, self.names[node - 2])

    def attr(self, node):
        st = os.stat(self.folder if node == 1 else self.path(node))
        times = (int(st.st_atime), int(st.st_mtime), int(st.st_ctime), 0, st.st_mtime_ns % 10**9, 0)
        mode = stat.S_IFDIR | 0o755 if node == 1 else st.st_mode
        return struct.pack("<QQQQQQIIIIIIIIII", node, st.st_size, st.st_blocks, *times[:3], *times[3:], mode, 1, 0, 0, 0, 4096, 0)

    def reply(self, unique, body=b"", error=0):
        with self.lock:
            os.write(self.dev, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)

    def read_file(self, unique, node, off, size):
        with open(self.path(node), "rb") as f:
            f.seek(off)
            self.reply(unique, f.read(size))

    def answer(self, op, unique, node, body):
        if op == INIT:
            self.reply(unique, struct.pack("<IIIIHHIIHHI", 7, 31, 131072, 0, 16, 12, 131072, 1, 0, 0, 0) + bytes(24))
        elif op == LOOKUP:
            name = body.rstrip(b"\0").decode()
            if name not in self.names:
                return self.reply(unique, error=errno.ENOENT)
            found = self.names.index(name) + 2
            self.reply(unique, struct.pack("<QQQQII", found, 0, 1, 1, 0, 0) + self.attr(found))
        elif op == GETATTR:
            self.reply(unique, struct.pack("<QII", 1, 0, 0) + self.attr(node))
        elif op in (OPEN, OPENDIR):
            self.reply(unique, struct.pack("<QII", 0, 1, 0))  # direct I/O: every read comes here
        elif op == READ:
            _, off, size = struct.unpack_from("<QQI", body)
            if os.path.exists(self.hang):
                self.waiting.append((unique, node, off, size))
                open(self.hang + ".held", "w").close()
            else:
                self.read_file(unique, node, off, size)
        elif op == READDIR:
            off = struct.unpack_from("<QQ", body)[1]
            out = b""
            for i, name in list(enumerate(self.names))[off:]:
                raw = name.encode()
                out += struct.pack("<QQII", i + 2, i + 1, len(raw), stat.S_IFREG >> 12) + raw + bytes(-len(raw) % 8)
            self.reply(unique, out)
        elif op == STATFS:
            self.reply(unique, struct.pack("<QQQQQIIII", 1000, 0, 0, 10, 0, 4096, 255, 4096, 0) + bytes(24))
        elif op in (RELEASE, RELEASEDIR, FLUSH):
            self.reply(unique)
        elif op not in (FORGET, BATCH_FORGET):
            self.reply(unique, error=errno.ENOSYS)

    def serve(self):
        while True:
            if not select.select([self.dev], [], [], 0.05)[0]:
                if self.waiting and not os.path.exists(self.hang):
                    held, self.waiting = self.waiting, []
                    for request in held:
                        self.read_file(*request)
                continue
            try:
                request = os.read(self.dev, 1 << 20)
            except OSError as e:
                if e.errno == errno.ENODEV:  # unmounted
                    return
                if e.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    continue
                raise
            _, op, unique, node = struct.unpack_from("<IIQQ", request)
            try:
                self.answer(op, unique, node, request[40:])
            except OSError as e:
                if e.errno != errno.ENOENT:  # the caller gave up waiting
                    raise


def main():
    store = SlowStore(*sys.argv[1:])
    print("ready", flush=True)
    store.serve()


main()
