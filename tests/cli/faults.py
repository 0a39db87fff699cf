"""faults.py - what the tests that disturb pack and unpack share: trees, running with faults.c in between, and what must
hold afterwards.

Trees are held as plain values: {path: (mode, mtime in ns, links, size, SHA-256)} of all that is not a directory."""
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

MANIFEST = ".weightfs-manifest"
TEMPORARY = re.compile(r"\..+\.weightfs-[a-zA-Z0-9]{6}\.tmp$")
HERE = os.path.dirname(os.path.abspath(__file__))
WEIGHTFS = os.environ["WFS_BIN"] + "/weightfs"
LIMIT_SECONDS = 120  # reached only by a run that hangs


class Wrong(Exception):
    """Something that must hold does not."""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def listing(root):
    found = {}
    for where, _, files in os.walk(root):
        for name in files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            what = os.readlink(path) if stat.S_ISLNK(st.st_mode) else sha256(read(path))
            found[os.path.relpath(path, root)] = (st.st_mode, st.st_mtime_ns, st.st_nlink, st.st_size, what)
    return found


def copy_tree(source, destination):
    """Hard links stay hard links. Returns {path: inode of the copy}."""
    inodes, copies = {}, {}
    shutil.rmtree(destination, ignore_errors=True)
    for where, _, files in os.walk(source):
        there = os.path.join(destination, os.path.relpath(where, source))
        os.makedirs(there, exist_ok=True)
        for name in files:
            old, new = os.path.join(where, name), os.path.join(there, name)
            inode = os.lstat(old).st_ino
            if inode in copies:
                os.link(copies[inode], new)
            else:
                shutil.copy2(old, new, follow_symlinks=False)
                copies[inode] = new
            inodes[os.path.relpath(new, destination)] = os.lstat(new).st_ino
    os.makedirs(destination, exist_ok=True)
    return inodes


def make_trees(where):
    """src: the originals; whole: they packed in place; both: src and whole in one, as a kill may leave them."""
    src, whole, both = (os.path.join(where, name) for name in ("src", "whole", "both"))
    os.makedirs(src + "/sub")
    for name, size in (("a", 0.1), ("b", 0.3), ("sub/c", 0.2)):
        seed = str(ord(name[-1]))
        subprocess.run([sys.executable, HERE + "/weights.py", f"{src}/{name}", str(size), seed], check=True)
    os.link(src + "/a", src + "/sub/a-too")
    os.chmod(src + "/sub/c", 0o444)
    with open(src + "/noise", "wb") as file:
        file.write(os.urandom(70000))
    with open(src + "/small", "w", encoding="ascii") as file:
        file.write("small\n")
    os.symlink("sub/c", src + "/link")
    copy_tree(src, whole)
    subprocess.run([WEIGHTFS, "pack", "-q", "--in-place", whole], check=True)
    copy_tree(whole, both)
    for path in listing(src):
        if not os.path.lexists(f"{both}/{path}") and path != "sub/a-too":
            shutil.copy2(f"{src}/{path}", f"{both}/{path}")
    os.link(both + "/a", both + "/sub/a-too")
    return src, whole, both


class Keys:
    """A pair of keys in a directory, to sign trees and to verify them."""

    def __init__(self, where):
        self.key, self.public = where + "/key.pem", where + "/public.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.key], check=True)
        subprocess.run(["openssl", "pkey", "-in", self.key, "-pubout", "-out", self.public], check=True)
        os.chmod(self.public, 0o644)

    def sign(self, tree):
        subprocess.run([WEIGHTFS, "sign", "-q", "--key", self.key, tree], check=True)

    def verify(self, tree):
        done = subprocess.run([WEIGHTFS, "verify", "--pubkey", self.public, tree], capture_output=True, check=False)
        if done.returncode:
            raise Wrong(f"the manifest does not verify: {done.stdout.decode()}{done.stderr.decode()}")


class Originals:
    """The files of a tree, and whether another tree still has them."""

    def __init__(self, src):
        self.content = {path: {what} for path, (mode, _, _, _, what) in listing(src).items() if stat.S_ISREG(mode)}
        self.decoded = {}  # SHA-256 of a container: of what it holds

    def holds(self, container):
        key = sha256(read(container))
        if key not in self.decoded:
            cat = subprocess.run([WEIGHTFS, "cat", container], capture_output=True, check=False)
            self.decoded[key] = sha256(cat.stdout) if cat.returncode == 0 else cat.stderr.decode()
        return self.decoded[key]

    def check(self, tree, lossless=True, temporaries=True, content=None, spoilt=None):
        """Every file is in the tree, itself or as a container, and nothing else is. Without lossless some may lack.
        content: other sets of SHA-256 that each may have. spoilt: may have a bad container beside it."""
        content = content or self.content
        for path, want in content.items():
            plain, packed = os.path.join(tree, path), os.path.join(tree, path + ".wfs")
            there = [os.path.exists(plain), os.path.exists(packed)]
            if there[0] and sha256(read(plain)) not in want:
                raise Wrong(f"{path} has wrong bytes")
            if there[1] and self.holds(packed) not in want and not (there[0] and path == spoilt):
                raise Wrong(f"{path}.wfs has wrong bytes: {self.holds(packed)}")
            if lossless and not any(there):
                raise Wrong(f"{path} is lost")
        for path in listing(tree):
            if TEMPORARY.match(os.path.basename(path)):
                if not temporaries:
                    raise Wrong(f"{path} is left behind")
            elif path not in (MANIFEST, "link") and path not in content and path.removesuffix(".wfs") not in content:
                raise Wrong(f"{path} was never asked for")


def same_trees(got, want):
    if got != want:
        lines = [f"{path}: {got.get(path)}, not {want.get(path)}" for path in sorted(got.keys() | want.keys())]
        raise Wrong("not the expected tree: " + "; ".join(line for line in lines if line.split(": ")[1]))


def start(root, arguments, log=None, user=None, **faults):
    """Start weightfs; faults: at, action, calls, command, lacks (faults.c)."""
    environment = dict(os.environ, LD_PRELOAD=os.environ["WFS_FAULTS"], FAULT_ROOT=os.path.realpath(root))
    environment.update({"FAULT_" + key.upper(): str(value) for key, value in faults.items() if value is not None})
    if log:
        with open(log, "w", encoding="ascii"):
            os.chmod(log, 0o666)
        environment["FAULT_LOG"] = log
    more = dict(user=user, group=user, extra_groups=[]) if user else {}
    # A shell's background job ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen([WEIGHTFS, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            **more)


def finish(process):
    """Returns the status and what was said on stderr."""
    try:
        said = process.communicate(timeout=LIMIT_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Wrong("hangs") from None
    if process.returncode < 0 and process.returncode not in (-signal.SIGKILL, -signal.SIGINT):
        raise Wrong(f"crashed: {signal.Signals(-process.returncode).name}")
    return process.returncode, said.decode()


def run(root, arguments, **faults):
    return finish(start(root, arguments, **faults))


def steps(log):
    """The counted calls of a log: [(call, what)]."""
    with open(log, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    return [tuple(line[2:]) for line in lines if line[0] == "step"]


def spread(nr, most):
    """At most so many of 1..nr, spread evenly."""
    if not most or nr <= most:
        return range(1, nr + 1)
    return sorted({1 + i * (nr - 1) // (most - 1) for i in range(most)})


class Table:
    """Kind of fault: number tried, right bytes, clean refusals, wrong bytes, hangs, crashes, lost originals."""

    columns = "tried", "right", "refused", "wrong", "hangs", "crashes", "lost"

    def __init__(self):
        self.rows = {}

    def add(self, kind, column):
        row = self.rows.setdefault(kind, dict.fromkeys(self.columns, 0))
        row["tried"] += 1
        row[column] += 1

    def failed(self, kind, what, error):
        text = str(error).strip()
        column = "hangs" if text == "hangs" else "crashes" if text.startswith("crashed") else \
            "lost" if text.endswith("is lost") else "wrong"
        self.add(kind, column)
        print(f"FAIL {kind}: {what}: {text}", file=sys.stderr, flush=True)

    def end(self):
        """Print all; the exit status."""
        print(f"{'kind of fault':<44}" + "".join(f"{name:>9}" for name in self.columns))
        for kind, row in self.rows.items():
            print(f"{kind:<44}" + "".join(f"{row[name]:>9}" for name in self.columns))
        return int(any(row[name] for row in self.rows.values() for name in self.columns[3:]))
