"""kill_loop.py BIN STORE MNT ROUNDS SEED ORIGINAL...: kill the daemon under load again and again.

Each round mounts STORE, lets readers of every kind compare the originals with what the mount gives (whole files, pieces at
random, past the page cache, mapped, names and attributes), kills the daemon after a random number of right answers, and
waits for the readers, which may meet errors then but neither wrong bytes nor a hang. The mount must go by itself; every
fourth round the keeper is killed first, and the next mount must take the dead one away. Prints one line of numbers.
"""

import ctypes
import errno
import mmap
import os
import random
import select
import signal
import subprocess
import sys
import time

DEADLINE = 60  # seconds: reached only by what hangs
CLEAN = {errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT, errno.EIO, errno.ENODEV}
RIGHT, ERROR, WRONG, BUS = range(4)
KINDS = 6


def read_once(kind, path, want, rand):
    """One look at the file: raises OSError, or returns whether all of it was right."""
    if kind == 0:
        with open(path, "rb", buffering=0) as f:
            got = bytearray()
            while piece := f.read(1 << 20):
                got += piece
            return got == want
    if kind == 5:
        names = os.listdir(os.path.dirname(path))
        if not names:  # unmounted: the directory beneath
            raise OSError(errno.ENOENT, "nothing is there")
        return os.path.basename(path) in names and os.stat(path).st_size == len(want)
    fd = os.open(path, os.O_RDONLY | (os.O_DIRECT if kind == 2 else 0))
    try:
        if kind in (3, 4):
            view = mmap.mmap(fd, 0, (mmap.MAP_SHARED, mmap.MAP_PRIVATE)[kind - 3], mmap.PROT_READ)
            for _ in range(20):
                at = rand.randrange(len(want))
                if view[at : at + 4096] != want[at : at + 4096]:
                    return False
            return True
        buf = mmap.mmap(-1, 1 << 20)
        for _ in range(20):
            at = rand.randrange(len(want)) & ~4095
            end = min(at + (1 << 20), len(want))
            while at < end:  # a read may come short when the daemon dies during it; the next one tells
                n = os.preadv(fd, [buf], at)
                if not n or buf[:n] != want[at : at + n]:
                    return False
                at += n
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return True
    finally:
        os.close(fd)


def reader(kind, mnt, files, counts, seed):
    rand = random.Random(seed)
    errors = 0
    while errors < 3:
        name, want = rand.choice(files)
        try:
            if read_once(kind, os.path.join(mnt, name), want, rand):
                counts[kind] += 1
            else:
                print(f"FAIL a reader of kind {kind} got wrong bytes", file=sys.stderr)
                os._exit(WRONG)
        except OSError as e:
            if e.errno not in CLEAN:
                print(f"FAIL a reader of kind {kind} got {e}", file=sys.stderr)
                os._exit(WRONG)
            errors += 1
    os._exit(ERROR)


def start_reader(kind, mnt, files, counts, seed):
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        reader(kind, mnt, files, counts, seed)
    return pid


def is_mounted(mnt):
    with open("/proc/self/mounts") as f:
        return any(line.split()[1] == mnt for line in f)


def wait_until(what, condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"FAIL {DEADLINE} s went by without: {what}")
        select.select([], [], [], 0.01)


def pid_of(bin_dir, mnt):
    out = subprocess.run([f"{bin_dir}/weightfsd", "--stats", mnt, "--json"], capture_output=True, text=True, check=True).stdout
    return int(out.split('"pid":', 1)[1].split(",", 1)[0])


def keeper_of(pid):
    return int(subprocess.run(["pgrep", "-P", str(pid), "weightfs-keeper"], capture_output=True, check=True).stdout)


def one_round(bin_dir, store, mnt, files, nr, rand, total):
    began = time.monotonic()
    subprocess.run([f"{bin_dir}/weightfs", "mount", store, mnt], check=True, timeout=DEADLINE)
    daemon = pid_of(bin_dir, mnt)
    counts = (ctypes.c_uint64 * KINDS).from_buffer(mmap.mmap(-1, 4096))
    readers = [start_reader(kind, mnt, files, counts, rand.random()) for kind in range(KINDS)]
    enough = rand.randrange(1, 60)
    wait_until("right answers", lambda: sum(counts) >= enough)
    dead_mount = nr % 4 == 3
    life = os.pidfd_open(daemon)
    if dead_mount:
        os.kill(keeper_of(daemon), signal.SIGKILL)
    os.kill(daemon, (signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV)[nr % 3])
    killed = time.monotonic()
    ended = {}

    def all_ended():
        for pid in readers:
            if pid not in ended:
                got, status = os.waitpid(pid, os.WNOHANG)
                if got:
                    ended[pid] = status
        return len(ended) == len(readers)

    wait_until("the end of all readers of a killed daemon", all_ended)
    if not dead_mount:
        wait_until("the end of a killed daemon's mount", lambda: not is_mounted(mnt))
    wait_until("the end of a killed daemon", lambda: select.select([life], [], [], 0)[0])
    os.close(life)
    total["slowest end"] = max(total["slowest end"], time.monotonic() - killed)
    total["right answers"] += sum(counts)
    for status in ended.values():
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS:
            total["SIGBUS of a mapping"] += 1
        elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == ERROR:
            total["clean ends"] += 1
        else:
            sys.exit(f"FAIL round {nr}: wrong bytes, or a reader ended with status {status:#x}")
    total["rounds"] += 1
    total["seconds"] += time.monotonic() - began


def main():
    bin_dir, store, mnt, rounds, seed = sys.argv[1:6]
    files = []
    for path in sys.argv[6:]:
        with open(path, "rb") as f:
            files.append((os.path.basename(path), f.read()))
    rand = random.Random(int(seed))
    total = dict.fromkeys(("rounds", "right answers", "clean ends", "SIGBUS of a mapping", "slowest end", "seconds"), 0)
    for nr in range(int(rounds)):
        one_round(bin_dir, store, mnt, files, nr, rand, total)
    print(", ".join(f"{name} {value:.1f}" if isinstance(value, float) else f"{name} {value}" for name, value in total.items()))


main()
