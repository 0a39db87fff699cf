"""crash.py DIR POINTS [SCENARIO...]: pack, unpack and sign are killed, interrupted, lose power, get errors from the disk, or
their source changes, at every step that they take (POINTS 0) or at so many of each kind; what must hold is checked each
time.

Killed: each original is there, itself or in a container that gives its bytes; the same command run again finishes, and
leaves exactly what a run that was not killed leaves. Interrupted: that, and no temporary stays even before.
Power lost: the same of every tree that the disk may hold then, by the least that POSIX promises: content is durable
once its file is fsynced, a name once its directory is; of what is not, any part may be there or not.
Sign: besides, the manifest is the old one or the new one, whole; where it is the new one, the tree verifies by it."""
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys

from faults import MANIFEST, TEMPORARY, Keys, Originals, Table, Wrong, copy_tree, listing, make_trees, run, same_trees, sha256, spread, steps, read

EIO, ENOSPC = 5, 28
NOBODY = 65534
MOST_READS = 150  # of the steps of one run, where reads are some: there are hundreds, and alike


class Scenario:
    """A command on a copy of the tree before, which ends in the tree after. {} in the arguments is the copy."""

    def __init__(self, before, after, *arguments, lacks="sync", lossless=True, user=None, spoilt=None, keys=None):
        self.before, self.after, self.arguments = before, after, arguments
        self.lacks, self.lossless, self.user, self.spoilt = lacks, lossless, user, spoilt
        self.keys = keys  # of a run that signs

    def start_in(self, tree):
        self.inodes = copy_tree(self.before, tree)
        if self.user:
            for where, _, files in os.walk(tree):
                for path in (where, *(os.path.join(where, name) for name in files)):
                    os.chown(path, self.user, self.user, follow_symlinks=False)

    def check_manifest(self, tree):
        old, new, now = (read(path) if os.path.exists(path) else None
                         for path in (f"{where}/{MANIFEST}" for where in (self.before, self.after, tree)))
        if now not in (old, new):
            raise Wrong("the manifest is neither the old nor the new one")
        if now == new and not any(TEMPORARY.match(os.path.basename(path)) for path in listing(tree)):
            self.keys.verify(tree)

    def same_as_after(self, tree):
        got, want = listing(tree), listing(self.after)
        if self.keys:
            # The manifest has the time of its own making. Names of one container that a dead run had begun to renew
            # are files of their own afterwards (weightfs-sign(1)): the same bytes, but no links.
            got, want = ({path: (mode, mtime if path != MANIFEST else 0, *content)
                          for path, (mode, mtime, _, *content) in tree.items()} for tree in (got, want))
        same_trees(got, want)

    def run(self, tree, **faults):
        arguments = [argument.replace("{}", tree) for argument in self.arguments]
        return run(tree, arguments, lacks=self.lacks, user=self.user, **faults)


def scenarios(where):
    src, whole, both = make_trees(where)
    empty, stored, back, spoilt = (os.path.join(where, name) for name in ("empty", "stored", "back", "spoilt"))
    os.mkdir(empty)
    for name, source, command in ((stored, src, "pack"), (back, whole, "unpack")):
        os.mkdir(name)
        run(name, [command, source, "-o", name + "/store"])
    copy_tree(src, spoilt)
    with open(whole + "/b.wfs", "rb") as file, open(spoilt + "/b.wfs", "wb") as damaged:
        damaged.write(file.read()[:-9999])
    pack, unpack = ("pack", "--in-place", "{}", "-j1"), ("unpack", "--in-place", "{}", "-j1")
    named = {
        "pack in place": Scenario(src, whole, *pack),
        "unpack in place": Scenario(whole, src, *unpack),
        "pack in place, 4 threads": Scenario(src, whole, "pack", "--in-place", "{}", "-j4"),
        "pack in place like on NFS": Scenario(src, whole, *pack, lacks="sync,noreplace"),
        "unpack in place like on NFS": Scenario(whole, src, *unpack, lacks="sync,noreplace"),
        "pack in place, half done": Scenario(both, whole, *pack),
        "unpack in place, half done": Scenario(both, src, *unpack),
        "pack in place --force": Scenario(spoilt, whole, *pack, "--force", spoilt="b"),
        "pack -o": Scenario(empty, stored, "pack", src, "-o", "{}/store", "-j1", lossless=False),
        "unpack -o": Scenario(empty, back, "unpack", whole, "-o", "{}/store", "-j1", lossless=False),
    }
    named |= sign_scenarios(where, whole)
    if os.geteuid() == 0 and subprocess.run(["cat", src + "/a"], user=NOBODY, group=NOBODY, extra_groups=[], check=False,
                                            stdout=subprocess.DEVNULL).returncode == 0:
        named["pack in place by a user"] = Scenario(src, whole, *pack, user=NOBODY)
    return Originals(src), named


def sign_scenarios(where, whole):
    """New, with containers to write anew; over an old manifest that lacks some; and over one that is as it would be."""
    keys = Keys(where)
    signed, old, resigned = (os.path.join(where, name) for name in ("signed", "old", "resigned"))
    copy_tree(whole, signed)
    keys.sign(signed)
    copy_tree(whole, old)
    os.rename(old + "/b.wfs", where + "/b.wfs")
    keys.sign(old)
    os.rename(where + "/b.wfs", old + "/b.wfs")
    copy_tree(old, resigned)
    keys.sign(resigned)
    command = "sign", "-q", "--key", keys.key, "{}", "-j1"
    return {
        "sign": Scenario(whole, signed, *command, keys=keys),
        "sign over an old manifest": Scenario(old, resigned, *command, keys=keys),
        "sign like on NFS": Scenario(whole, signed, *command, lacks="sync,noreplace", keys=keys),
        "sign, 4 threads": Scenario(old, resigned, *command[:-1], "-j4", keys=keys),
    }


class Disk:
    """What may be on the disk after a power failure: the log of faults.c, played by the rules."""

    def __init__(self, log, inodes):
        self.file = {str(inode): str(inode) for inode in inodes.values()}  # which file has an inode number now
        self.names = {path: str(inode) for path, inode in inodes.items()}
        self.pending = []  # (directory, change) that no sync has made durable
        self.dirty = set()  # files whose content is not
        with open(log, encoding="utf-8") as file:
            for line in file:
                self.play(*line.rstrip("\n").split("\t"))

    def play(self, what, *arguments):
        if what in ("write", "truncate", "fallocate", "attributes"):
            self.dirty.add(self.file.get(arguments[0]))
        elif what == "fsync":
            self.dirty.discard(self.file.get(arguments[0]))
        elif what == "syncdir":
            self.sync(arguments[0])
        elif what == "syncfs":
            self.dirty.clear()
            self.sync(None)
        elif what in ("create", "symlink", "link", "unlink", "rename"):
            *arguments, inode = arguments if what != "unlink" else (*arguments, None)
            if what in ("create", "symlink"):
                self.file[inode] = f"{inode} of {arguments[1]}"
            if what == "create":
                self.dirty.add(self.file[inode])
            self.pending.append((arguments[0], (what, *arguments, self.file.get(inode))))

    def sync(self, directory):
        for where, change in self.pending:
            if directory in (None, where):
                self.apply(self.names, change)
        self.pending = [(where, change) for where, change in self.pending if directory not in (None, where)]

    @staticmethod
    def apply(names, change):
        what, directory, name, *more = change
        path = os.path.join(directory, name)
        if what in ("create", "symlink", "link"):
            names[path] = more[0]
        elif what == "unlink":
            names.pop(path, None)
        else:
            names.pop(path, None)
            names[os.path.join(directory, more[0])] = more[1]

    def states(self, most):
        """Sets of names that may be found: each a subset of the pending changes."""
        changes = [change for _, change in self.pending]
        masks = list(itertools.product((False, True), repeat=len(changes))) if len(changes) <= 8 else \
            [[random.random() < 0.5 for _ in changes] for _ in range(256)]
        random.shuffle(masks)
        seen = set()
        for mask in masks:
            names = dict(self.names)
            for kept, change in zip(mask, changes):
                if kept:
                    self.apply(names, change)
            if frozenset(names.items()) not in seen:
                seen.add(frozenset(names.items()))
                yield names
            if len(seen) == most:
                return

    def build(self, names, scenario, tree, destination):
        """Make that tree of what the dead run left and what was there before it."""
        content = {str(inode): os.path.join(scenario.before, path) for path, inode in scenario.inodes.items()}
        for where, _, files in os.walk(tree):
            for name in files:
                path = os.path.join(where, name)
                content[self.file[str(os.lstat(path).st_ino)]] = path
        shutil.rmtree(destination, ignore_errors=True)
        for where, _, _ in os.walk(tree):
            os.makedirs(os.path.join(destination, os.path.relpath(where, tree)))
        made = {}
        for path, inode in names.items():
            new = os.path.join(destination, path)
            if inode in made:
                os.link(made[inode], new)
                continue
            made[inode] = new
            if inode in self.dirty or inode not in content:
                self.spoil(content.get(inode), new)
            else:
                shutil.copy2(content[inode], new, follow_symlinks=False)

    @staticmethod
    def spoil(content, new):
        """Nothing, half of it, or zeros."""
        data = read(content) if content else b""
        with open(new, "wb") as file:
            file.write(random.choice((b"", data[:len(data) // 2], bytes(len(data)))))


class Crash:
    def __init__(self, where, most):
        self.where, self.most, self.table = where, most, Table()
        self.originals, self.scenarios = scenarios(where)
        self.tree, self.other, self.log = where + "/tree", where + "/other", where + "/log"

    def check(self, scenario, tree, temporaries=True):
        self.originals.check(tree if scenario.lossless else tree + "/store", scenario.lossless, temporaries,
                             spoilt=scenario.spoilt)
        if scenario.keys:
            scenario.check_manifest(tree)

    def finishes(self, scenario, tree):
        """The same command, run again, completes what a dead run began."""
        status, said = scenario.run(tree)
        if status:
            raise Wrong(f"run again: status {status}: {said}")
        self.check(scenario, tree, temporaries=False)
        if not scenario.user:
            scenario.same_as_after(tree)

    def count(self, scenario, **faults):
        scenario.start_in(self.tree)
        scenario.run(self.tree, log=self.log, **faults)
        return steps(self.log)

    def attempt(self, kind, what, trial):
        try:
            self.table.add(kind, trial())
        except Wrong as error:
            self.table.failed(kind, what, error)

    def kills(self, name, scenario):
        for action, calls, again in (("kill", None, False), ("torn", ",write,", False), ("kill", None, True)):
            found = self.count(scenario, calls=calls)
            for at in spread(len(found), self.most):
                second = random.randint(1, len(found))

                def trial():
                    scenario.start_in(self.tree)
                    status, _ = scenario.run(self.tree, at=at, action=action, calls=calls)
                    if status != -signal.SIGKILL and "threads" not in name:
                        raise Wrong("not killed")
                    self.check(scenario, self.tree)
                    if again:
                        scenario.run(self.tree, at=second, action="kill")
                        self.check(scenario, self.tree)
                    self.finishes(scenario, self.tree)
                    return "right"
                self.attempt(f"kill -9: {name}", f"{action} at step {at}, {found[at - 1]}{f', the next run at {second}' * again}", trial)

    def interrupts(self, name, scenario):
        found = self.count(scenario)
        for at in spread(len(found), self.most):
            def trial():
                scenario.start_in(self.tree)
                status, said = scenario.run(self.tree, at=at, action="interrupt")
                if status != -signal.SIGINT:
                    raise Wrong(f"status {status}, not ended by SIGINT: {said}")
                self.check(scenario, self.tree, temporaries=bool(scenario.keys))
                self.finishes(scenario, self.tree)
                return "right"
            self.attempt(f"SIGINT: {name}", f"at step {at}, {found[at - 1]}", trial)

    def power(self, name, scenario):
        nr = len(self.count(scenario))
        states = 3 if self.most else 6
        for at in spread(nr + 1, self.most):
            scenario.start_in(self.tree)
            scenario.run(self.tree, log=self.log, at=at, action="kill")
            disk = Disk(self.log, scenario.inodes)
            for names in disk.states(states):
                def trial():
                    disk.build(names, scenario, self.tree, self.other)
                    self.check(scenario, self.other)
                    self.finishes(scenario, self.other)
                    return "right"
                self.attempt(f"power lost: {name}", f"at step {at}, {sorted(names)}", trial)

    def errors(self, name, scenario):
        for error, calls in ((EIO, None), (EIO, ",pread,"), (ENOSPC, None)):
            found = self.count(scenario, calls=calls)
            for at in spread(len(found), self.most or MOST_READS):
                for each in ("", "+"):
                    def trial():
                        scenario.start_in(self.tree)
                        status, said = scenario.run(self.tree, at=f"{at}{each}", action=error, calls=calls)
                        if status not in (0, 1) or (status == 1 and not said):
                            raise Wrong(f"status {status}, says {said!r}")
                        call = found[at - 1][0]
                        self.check(scenario, self.tree, temporaries=call == "unlink" or each == "+")
                        self.finishes(scenario, self.tree)
                        return "refused" if status else "right"
                    self.attempt(f"{os.strerror(error)}: {name}", f"at step {at}{each}, {found[at - 1]}", trial)

    # Shell commands that change the file a.
    changes = {
        "grows": "printf x >>a",
        "is cut": "truncate -s 90000 a",
        "is rewritten": "printf XXXX | dd of=a bs=1 seek=9999 conv=notrunc status=none",
        "is rewritten, its time set back": "touch -r a ../time; printf XXXX | dd of=a bs=1 seek=9999 conv=notrunc "
                                           "status=none; touch -r ../time a",
        "is replaced": "cp noise a.new; mv a.new a",
        "vanishes": "rm a",
    }

    def source_changes(self, name, scenario):
        calls = ",open,pread,forget,create,write,fsync,rename,link,unlink,attributes,"
        for how, change in self.changes.items():
            found = self.count(scenario, calls=calls)
            scenario.start_in(self.tree)
            os.system(f"cd {self.tree} && {{ {change}; }}")
            new = sha256(read(self.tree + "/a")) if os.path.exists(self.tree + "/a") else None
            command = f"cd {self.tree} && [ ! -e a ] || {{ {change}; touch ../changed; }}"
            for at in spread(len(found), self.most or MOST_READS):
                # Nothing lies between the last look and the removal, so nothing here may come between them.
                if found[at - 1] in (("unlink", "a"), ("unlink", "a-too")):
                    continue

                def trial():
                    if os.path.exists(self.where + "/changed"):
                        os.remove(self.where + "/changed")
                    scenario.start_in(self.tree)
                    status, _ = scenario.run(self.tree, at=at, action="run", command=command, calls=calls)
                    self.check_changed(scenario, how, new if os.path.exists(self.where + "/changed") else "")
                    return "refused" if status else "right"
                self.attempt(f"source {how}: {name}", f"at step {at}, {found[at - 1]}", trial)

    def check_changed(self, scenario, how, new):
        """new: what a has become; None: it is gone; empty: it was packed before."""
        content = dict(self.originals.content)
        old = next(iter(content["a"]))
        plain, packed = self.tree + "/a", self.tree + "/a.wfs"
        if new:
            content["a"] = {old, new}
            if how != "is replaced":
                content["sub/a-too"] = {old, new}
        elif new is None and not os.path.exists(packed):
            del content["a"]
        self.originals.check(self.tree, temporaries=False, content=content)
        holds = {sha256(read(plain))} if os.path.exists(plain) else set()
        holds |= {self.originals.holds(packed)} if os.path.exists(packed) else set()
        if new and new not in holds:
            raise Wrong("the new a is lost")
        # A container of the old bytes beside the new ones is kept and named.
        status, said = scenario.run(self.tree)
        if status != (len(holds) > 1) or (status and "is not the same" not in said):
            raise Wrong(f"{len(holds)} contents of a, and run again status {status}: {said}")
        self.originals.check(self.tree, temporaries=False, content=content)


def main():
    where, most = sys.argv[1], int(sys.argv[2])
    random.seed(6)
    crash = Crash(where, most)
    for name, scenario in crash.scenarios.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        crash.kills(name, scenario)
        if not most or name in ("pack in place, 4 threads", "unpack -o"):
            crash.interrupts(name, scenario)
        if "threads" not in name and not scenario.user:
            crash.power(name, scenario)
        # In the short form where the least is the same elsewhere.
        if name in ("pack in place", "unpack in place", "pack -o", "sign") or not (most or "threads" in name or scenario.user):
            crash.errors(name, scenario)
        if name == "pack in place":
            crash.source_changes(name, scenario)
    sys.exit(crash.table.end())


main()
