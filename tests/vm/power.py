"""power.py FSTYPE BEFORE AFTER WHERE POINTS COMMAND...: the power goes while COMMAND runs over a real file system.

All writes to /dev/vda are recorded by the device mapper (log-writes, on /dev/vdb) while it runs on a copy of BEFORE.
Then disks are made that could be there after a cut: all that was written before the last flush that had ended, and of
what was written since none, some or all, in any order. Each is mounted, as after a boot: every original must be there,
itself or as its container, and the same command run again must finish. AFTER: what the tree then is."""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from faults import WEIGHTFS, Originals, Table, Wrong, copy_tree, listing, same_trees  # noqa: E402

FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
MAGIC = 0x6A736677736872
DISK_MIB = {"ext4": 64, "xfs": 320, "btrfs": 128}
DISK, LOG, MNT = "/dev/vda", "/dev/vdb", "/mnt/disk"


def do(*command, **more):
    done = subprocess.run(command, capture_output=True, check=False, **more)
    if done.returncode:
        raise Wrong(f"{' '.join(command)}: {done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout.decode().strip()


def entries(log):
    """The recorded requests: (flags, byte offset, data)."""
    word = lambda data, i: int.from_bytes(data[8 * i:8 * i + 8], "little")
    with open(log, "rb") as file:
        head = file.read(512)
        if word(head, 0) != MAGIC:
            raise SystemExit("there is no record of what was written")
        nr, sector = word(head, 2), int.from_bytes(head[24:28], "little")
        file.seek(sector)
        for _ in range(nr):
            entry = file.read(sector)
            at, nr_sectors, flags = word(entry, 0), word(entry, 1), word(entry, 2)
            if flags & MARK:
                continue
            data = bytes(nr_sectors * sector) if flags & DISCARD else file.read(nr_sectors * sector)
            yield flags, at * sector, data


class Power:
    def __init__(self, fstype, before, after, where, arguments):
        self.fstype, self.where, self.arguments = fstype, where, arguments
        self.originals, self.after = Originals(where + "/src"), listing(after)
        self.image, self.nr_sectors = where + "/image", DISK_MIB[fstype] * 2048
        os.makedirs(MNT, exist_ok=True)
        with open(DISK, "r+b") as disk:
            for _ in range(DISK_MIB[fstype]):
                disk.write(bytes(1 << 20))
        do("dmsetup", "create", "plain", "--table", f"0 {self.nr_sectors} linear {DISK} 0")
        do("mkfs." + fstype, "-q", *(["-m", "single"] if fstype == "btrfs" else []), "/dev/mapper/plain")
        do("mount", "/dev/mapper/plain", MNT)
        copy_tree(before, MNT + "/tree")
        do("umount", MNT)
        do("dmsetup", "remove", "plain")
        do("cp", "--sparse=always", DISK, self.image)
        os.truncate(self.image, self.nr_sectors * 512)
        self.record()
        self.loop = do("losetup", "--show", "-f", self.image)

    def record(self):
        do("dmsetup", "create", "logged", "--table", f"0 {self.nr_sectors} log-writes {DISK} {LOG}")
        do("mount", "/dev/mapper/logged", MNT)
        do(WEIGHTFS, *self.arguments, MNT + "/tree")
        do("umount", MNT)
        do("dmsetup", "remove", "logged")

    def attempt(self, apply):
        """With these requests beside all that is in the image already."""
        cow = self.where + "/cow"
        with open(cow, "wb") as file:
            file.truncate(256 << 20)
        cow_loop = do("losetup", "--show", "-f", cow)
        do("dmsetup", "create", "trial", "--table", f"0 {self.nr_sectors} snapshot {self.loop} {cow_loop} N 8")
        try:
            with open("/dev/mapper/trial", "r+b", buffering=0) as trial:
                for at, data in apply:
                    os.pwrite(trial.fileno(), data, at)
            do("mount", "/dev/mapper/trial", MNT)
            try:
                self.check(MNT + "/tree")
            finally:
                do("umount", MNT)
        finally:
            do("dmsetup", "remove", "--retry", "trial")
            do("losetup", "-d", cow_loop)
            os.unlink(cow)

    def check(self, tree):
        self.originals.check(tree)
        do(WEIGHTFS, *self.arguments, tree)
        self.originals.check(tree, temporaries=False)
        same_trees(listing(tree), self.after)

    def cut(self, points):
        table, kind, kept = Table(), f"power lost, {self.fstype}: {self.arguments[0]}", []
        written = list(entries(LOG))
        wanted = {1 + i * len(written) // points for i in range(points)}
        with open(self.loop, "r+b", buffering=0) as base:
            for i, (flags, at, data) in enumerate(written, 1):
                if flags & FLUSH:
                    # All that was answered before is on the disk for good.
                    for old in kept:
                        os.pwrite(base.fileno(), old[1], old[0])
                    kept = []
                if data:
                    kept.append((at, data, flags & FUA))
                if i not in wanted:
                    continue
                os.fsync(base.fileno())
                share = random.choice((0, 0.3, 0.7, 1))
                apply = [(at, data) for at, data, fua in kept if fua or random.random() < share]
                try:
                    self.attempt(apply)
                    table.add(kind, "right")
                except Wrong as error:
                    what = f"after request {i} of {len(written)}, {len(apply)} of {len(kept)} beyond the flush"
                    table.failed(kind, what, error)
        do("losetup", "-d", self.loop)
        nr_flushes = sum(flags & FLUSH for flags, _, _ in written)
        print(f"{self.fstype}, {self.arguments[0]}: {len(written)} requests, {nr_flushes} flushes")
        return table.end()


def main():
    random.seed(6)
    fstype, before, after, where, points = sys.argv[1:6]
    try:
        sys.exit(Power(fstype, before, after, where, sys.argv[6:]).cut(int(points)))
    except Wrong as error:
        sys.exit(f"power.py: {error}")


main()
