"""lab.py - what is measured and under which conditions: mounts, page cache, throttled disk. Used by bench.py.

What is mounted and made here is taken away again by close(), also after an error or a signal.
"""
import contextlib
import json
import os
import signal
import subprocess
import time

from rows import COLD, THROTTLED

DEADLINE_SECONDS = 900  # of any single step: reached only when something hangs
SPARE_BYTES = 1 << 30  # for the daemon and whatever else
TRIES = 3  # to fill the page cache, of which others may drop pages meanwhile


class Failed(Exception):
    """A step failed; the message says which and why."""


def run(command, **kwargs):
    """The standard output of a command that must succeed."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              text=True, timeout=DEADLINE_SECONDS, check=False, **kwargs)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}: not done within {DEADLINE_SECONDS} s") from error
    if done.returncode:
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


@contextlib.contextmanager
def uninterrupted():
    """Signals that come meanwhile take effect at the end: a mount is made and known, or neither."""
    came = []
    handlers = {number: signal.signal(number, lambda number, _: came.append(number))
                for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def files_below(folder):
    return [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in sorted(names)]


def read_text(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def write_text(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


# ---- the page cache ---------------------------------------------------------------------------------------------------

class PageCache:
    """programs: what the measured processes are started from; their pages stay, whatever else is dropped."""

    def __init__(self, reader, programs):
        self.reader = reader
        self.programs = programs
        self.can_drop = os.access("/proc/sys/vm/drop_caches", os.W_OK)

    def resident(self, folder):
        state = json.loads(run([self.reader, "resident", *files_below(folder)]))
        return state["resident"], state["bytes"]

    def empty(self, folder):
        """Nothing of the folder's files is cached, nor, as root, of names and inodes. Caches that belong to the disk
        (a device's, a host's below a virtual machine) are warm for everyone: they would favour what was read last."""
        run([self.reader, "wake", *files_below(folder)])
        run([self.reader, "evict", *files_below(folder)])
        if self.can_drop:
            write_text("/proc/sys/vm/drop_caches", "3")
            run([self.reader, "load", *self.programs])
        resident, _ = self.resident(folder)
        if resident:
            raise Failed(f"{folder}: {resident} bytes stay in the page cache")

    def fill(self, folder):
        """All of the folder's files is cached."""
        for _ in range(TRIES):
            run([self.reader, "load", *files_below(folder)])
            resident, size = self.resident(folder)
            if resident == size:
                return
        raise Failed(f"{folder}: only {resident} of {size} bytes stay in the page cache: too little memory")


    def back_memory(self, folder):
        """Lets a host back the memory that reading will take: one to which a virtual machine reports its free pages
        takes them away within seconds, and gives each back at its first use, in milliseconds for a huge page."""
        size = 2 * sum(map(os.path.getsize, files_below(folder))) + SPARE_BYTES
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        run([self.reader, "touch", str(min(size, available // 2))])


# ---- the throttled disk -----------------------------------------------------------------------------------------------

def disk_of(path):
    """MAJ:MIN of the whole disk below a file."""
    dev = os.stat(path).st_dev
    node = os.path.realpath(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}")
    if not os.path.isdir(node):
        raise Failed(f"{path} lies on no block device")
    if os.path.exists(os.path.join(node, "partition")):
        node = os.path.dirname(node)
    return read_text(os.path.join(node, "dev"))


class Throttle:
    """A cgroup in which the disk below `path` gives at most `rate` bytes a second. Raises Failed where there is none."""

    def __init__(self, path, rate):
        disk = disk_of(path)
        for folder, setting, value in self.candidates():
            self.group = os.path.join(folder, f"weightfs-bench-{os.getpid()}")
            try:
                os.mkdir(self.group)
            except OSError as error:
                raise Failed(f"cannot make a cgroup: {error.strerror}") from error
            try:
                write_text(os.path.join(self.group, setting), value.format(disk=disk, rate=rate))
                return
            except OSError:
                os.rmdir(self.group)
        raise Failed("no cgroup controller limits the reads of this disk")

    @staticmethod
    def candidates():
        with open("/proc/self/mounts", encoding="utf-8") as f:
            for line in f:
                _, folder, kind, options = line.split()[:4]
                if kind == "cgroup" and "blkio" in options.split(","):
                    yield folder, "blkio.throttle.read_bps_device", "{disk} {rate}"
                elif kind == "cgroup2" and "io" in read_text(os.path.join(folder, "cgroup.subtree_control")).split():
                    yield folder, "io.max", "{disk} rbps={rate}"

    def enter(self):
        """In a child, before it executes a program."""
        write_text(os.path.join(self.group, "cgroup.procs"), "0")

    def close(self):
        wait_until("the end of the processes in the cgroup", lambda: not self.members())
        os.rmdir(self.group)

    def members(self):
        return read_text(os.path.join(self.group, "cgroup.procs"))


def wait_until(what, holds):
    """Poll: for ends that nobody announces."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"{DEADLINE_SECONDS} s went by without {what}")
        time.sleep(0.005)


# ---- subjects ---------------------------------------------------------------------------------------------------------

class Subject:
    """Something that shows files: below root(part), what lies on the disk in stored(part)."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder

    def stored(self, part):
        return os.path.join(self.folder, part)

    def mount(self, part, enter):
        pass

    def unmount(self, lazy=False):
        pass

    def root(self, part):
        return self.stored(part)


class Plain(Subject):
    pass


class Mounted(Subject):
    """Mounted by command(part), which returns when the mount serves. The daemon has ended when unmount() returns."""

    def __init__(self, name, folder, mnt, program):
        super().__init__(name, folder)
        self.mnt = mnt
        self.program = program
        self.settings = {}  # of the kernel's side, by file: to be set after mounting
        self.daemon = None
        os.makedirs(mnt, exist_ok=True)

    def command(self, part):
        """The null daemon's: it prints its process id."""
        return [self.program, self.stored(part), self.mnt]

    def find_daemon(self, output):
        return int(output)

    def root(self, part):
        return self.mnt

    def mount(self, part, enter):
        with uninterrupted():
            self.mount_whole(part, enter)

    def mount_whole(self, part, enter):
        # A session of its own: what the terminal interrupts is this program only.
        output = run(self.command(part), preexec_fn=enter, start_new_session=True)
        if not is_mounted(self.mnt):
            raise Failed(f"{self.name}: the mount command is done but there is no mount")
        self.daemon = self.find_daemon(output)
        for kind, value in self.settings.items():
            if read_text(self.kernel_files()[kind]) != value:
                write_text(self.kernel_files()[kind], value)

    def unmount(self, lazy=False):
        if is_mounted(self.mnt):
            tool = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
            run([*tool, *(["-l" if os.geteuid() == 0 else "-z"] if lazy else []), self.mnt])
        if self.daemon is not None:
            wait_until(f"the end of {self.name}'s daemon", lambda: process_ended(self.daemon))
            self.daemon = None

    def kernel_files(self):
        """Where the kernel says how it treats the mount."""
        dev = os.stat(self.mnt).st_dev
        files = {"read_ahead_kb": f"/sys/class/bdi/{os.major(dev)}:{os.minor(dev)}/read_ahead_kb"}
        for kind in ("max_background", "congestion_threshold"):
            files[kind] = f"/sys/fs/fuse/connections/{os.minor(dev)}/{kind}"
        return {kind: path for kind, path in files.items() if os.path.exists(path)}

    def kernel_settings(self):
        return {kind: read_text(path) for kind, path in self.kernel_files().items()}


class Weightfs(Mounted):
    def __init__(self, name, folder, mnt, program, cpu):
        super().__init__(name, folder, mnt, program)
        self.cpu = cpu
        self.stats = None

    def command(self, part):
        return [self.program, "mount", self.stored(part), self.mnt, "-o", f"cpu={self.cpu}"]

    def find_daemon(self, output):
        self.stats = json.loads(run([self.program, "stats", self.mnt, "--json"]))
        return self.stats["pid"]


class Lmz(Mounted):
    """Mounts a store of its own for each part, in which the part is a folder."""

    def command(self, part):
        return [self.program, "mount", self.mnt, "--store", self.stored(part), "--daemon", "--quiet"]

    def find_daemon(self, output):
        """Its process cannot be asked; it is the one with the mount point in its command line."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                if self.mnt.encode() in f.read().split(b"\0"):
                    return int(pid)
        return None

    def root(self, part):
        return os.path.join(self.mnt, part)


def is_mounted(path):
    """Also when its daemon is dead, where os.path.ismount says no."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as f:
        return any(line.split()[1].replace("\\040", " ") == path for line in f)


def process_ended(pid):
    try:
        state = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


# ---- the lab ----------------------------------------------------------------------------------------------------------

class Lab:
    """throttle may be None; it stays the caller's."""

    def __init__(self, reader, programs, subjects, throttle):
        self.subjects = subjects
        self.throttle = throttle
        self.cache = PageCache(reader, programs)
        for subject in subjects:
            subject.unmount(lazy=True)  # what a killed run has left

    def measure(self, subject, setting, part, command):
        """What one run prints, a dictionary, in a fresh mount. In the command, {root} is where the files are."""
        enter = self.throttle.enter if setting == THROTTLED else None
        if setting in (COLD, THROTTLED):
            self.cache.empty(subject.stored(part))
        else:
            self.cache.fill(subject.stored(part))
        self.cache.back_memory(self.subjects[0].stored(part))
        try:
            subject.mount(part, enter)
            words = [word.format(root=subject.root(part)) for word in command]
            return json.loads(run(words, preexec_fn=enter))
        finally:
            subject.unmount()

    def close(self):
        for subject in self.subjects:
            with contextlib.suppress(Failed):
                subject.unmount(lazy=True)
