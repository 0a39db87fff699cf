"""slow_store.py FOLDER MNT FAULTS [cached]: a file system that shows the plain files of FOLDER and has the faults that the file
FAULTS names while it exists, one a line: REQUEST WHAT. REQUEST: read, lookup, getattr, open, opendir, readdir, statfs or
all of these, or direct-open and direct-read for those with O_DIRECT; WHAT: hang (no answer until FAULTS is gone), short (a read gets half of what it asked for), or the name of an
errno. An empty file means: read hang. FAULTS.held appears with the first request that is held back,
and holds their number.
Every read of a file comes here; with "cached" the kernel's page cache is before it. It speaks the
kernel's FUSE protocol itself (Linux, include/uapi/linux/fuse.h), as root; "ready" on standard output says that it is
mounted.
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
FOPEN_DIRECT_IO = 1
FAULTY = {LOOKUP: "lookup", GETATTR: "getattr", OPEN: "open", READ: "read", STATFS: "statfs", OPENDIR: "opendir", READDIR: "readdir"}


class SlowStore:
    def __init__(self, folder, mnt, faults, cached=None):
        self.folder, self.faults = folder, faults
        self.open_flags = 0 if cached else FOPEN_DIRECT_IO
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

    def is_direct(self, op, body):
        """Whether the caller's flags have O_DIRECT; where they are depends on the request."""
        at = {OPEN: 0, READ: 32}.get(op)
        return at is not None and struct.unpack_from("<I", body, at)[0] & os.O_DIRECT

    def fault_of(self, op, body):
        """What is wrong with this kind of request just now, or None."""
        try:
            with open(self.faults) as f:
                lines = f.read().split("\n")
        except FileNotFoundError:
            return None
        kinds = [FAULTY.get(op), "all"]
        if self.is_direct(op, body):
            kinds.append("direct-" + FAULTY[op])
        for line in lines if any(lines) else ["read hang"]:
            request, _, what = line.partition(" ")
            if what and FAULTY.get(op) and request in kinds:
                return what
        return None

    def answer(self, op, unique, node, body):
        fault = self.fault_of(op, body)
        if fault == "hang":
            self.waiting.append((op, unique, node, body))
            with open(self.faults + ".held", "w") as f:
                f.write(f"{len(self.waiting)}\n")
        elif fault and fault != "short":
            self.reply(unique, error=getattr(errno, fault))
        else:
            self.answer_well(op, unique, node, body, fault == "short")

    def answer_well(self, op, unique, node, body, short):
        if op == INIT:
            self.reply(unique, struct.pack("<IIIIHHIIHHI", 7, 31, 131072, 0, 16, 12, 131072, 1, 0, 0, 0) + bytes(24))
        elif op == LOOKUP:
            name = body.rstrip(b"\0").decode()
            if name not in self.names:
                return self.reply(unique, error=errno.ENOENT)
            found = self.names.index(name) + 2
            self.reply(unique, struct.pack("<QQQQII", found, 0, 0, 0, 0, 0) + self.attr(found))
        elif op == GETATTR:
            self.reply(unique, struct.pack("<QII", 0, 0, 0) + self.attr(node))
        elif op in (OPEN, OPENDIR):
            self.reply(unique, struct.pack("<QII", 0, self.open_flags if op == OPEN else 0, 0))
        elif op == READ:
            _, off, size = struct.unpack_from("<QQI", body)
            self.read_file(unique, node, off, (size + 1) // 2 if short else size)
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

    def answer_all(self, *request):
        try:
            self.answer(*request)
        except OSError as e:
            if e.errno != errno.ENOENT:  # the caller gave up waiting
                raise

    def serve(self):
        while True:
            if not select.select([self.dev], [], [], 0.05)[0]:
                if self.waiting and not os.path.exists(self.faults):
                    held, self.waiting = self.waiting, []
                    for request in held:
                        self.answer_all(*request)
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
            self.answer_all(op, unique, node, request[40:])


def main():
    store = SlowStore(*sys.argv[1:])
    print("ready", flush=True)
    store.serve()


main()
