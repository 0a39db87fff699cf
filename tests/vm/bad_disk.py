"""bad_disk.py FSTYPE WHERE POINTS: from some step of pack --in-place on, the disk refuses all writes, or drops them.

What it drops it says to have written. When the run has ended, the file system is mounted anew, as after a boot, on a
disk that is good. Every original must be there, itself or as its container, and the same run again must finish."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from faults import Originals, Table, Wrong, copy_tree, make_trees, run, spread, steps  # noqa: E402

MNT, SECTORS = "/mnt/disk", 640 * 2048
TABLES = {"good": f"0 {SECTORS} linear /dev/vda 0",
          "refuses writes": f"0 {SECTORS} flakey /dev/vda 0 0 3600 1 error_writes",
          "drops writes": f"0 {SECTORS} flakey /dev/vda 0 0 3600 1 drop_writes"}
PACK = ["pack", "--in-place", "-j1"]


def switch(table):
    return " && ".join(("dmsetup suspend --noflush --nolockfs disk", f"dmsetup load disk --table '{TABLES[table]}'",
                        "dmsetup resume disk"))


def do(command):
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    if done.returncode:
        raise Wrong(f"{command}: {done.stderr.decode()}")


class BadDisk:
    def __init__(self, fstype, where):
        self.src, *_ = make_trees(where)
        self.where, self.originals, self.table, self.tree = where, Originals(self.src), Table(), MNT + "/tree"
        self.fstype = fstype

    def fresh(self):
        copy_tree(self.src, self.tree)
        do("sync -f " + MNT)

    def attempt(self, fault, at):
        kind = f"{self.fstype}: the disk {fault}"
        try:
            self.fresh()
            status, said = run(self.tree, [*PACK, self.tree], at=at, action="run", command=switch(fault))
            if status == 1 and not said:
                raise Wrong("status 1 without a word")
            # Nothing that is in memory only may come to the disk's help: it comes back when all is forgotten.
            subprocess.run(["umount", MNT], check=True)
            do(switch("good"))
            do(f"mount /dev/mapper/disk {MNT}")
            self.originals.check(self.tree)
            again, said = run(self.tree, [*PACK, self.tree])
            if again:
                raise Wrong(f"run once more: status {again}: {said}")
            self.originals.check(self.tree, temporaries=False)
            self.table.add(kind, "refused" if status else "right")
        except Wrong as error:
            self.table.failed(kind, f"from step {at} on", error)

    def all(self, points):
        self.fresh()
        log = self.where + "/log"
        run(self.tree, [*PACK, self.tree], log=log)
        for fault in ("refuses writes", "drops writes"):
            for at in spread(len(steps(log)), points):
                self.attempt(fault, at)
        return self.table.end()


sys.exit(BadDisk(sys.argv[1], sys.argv[2]).all(int(sys.argv[3])))
