"""together.py DIR ROUNDS [SEED]: several runs of pack, unpack, sign and verify --repair over one tree at once. Each is stopped at some step, or
killed there, while the others go on (faults.c); whatever the order, nothing is lost or wrong, nobody waits for ever, and
one more run finishes the work, and the tree can be signed and verifies.

First the one interleaving that would lose a file without the lock of its name, without and with that lock; then two
runs with a stop each, at every pair of kinds; then five at once, some of them killed."""
import os
import random
import signal
import subprocess
import sys

from faults import Keys, Originals, Table, Wrong, copy_tree, finish, make_trees, run, start, steps

PACK, UNPACK = ["pack", "--in-place", "-j1"], ["unpack", "--in-place", "-j1"]
KINDS = {
    "pack": PACK,
    "unpack": UNPACK,
    "pack, 4 threads": ["pack", "--in-place", "-j4"],
    "pack --force": [*PACK, "--force"],
    "unpack --force": [*UNPACK, "--force"],
    "sign": ["sign", "-j1"],
    "verify --repair": ["verify", "--repair", "-j1"],
}


class Together:
    def __init__(self, where):
        self.where, self.tree, self.log, self.table = where, where + "/tree", where + "/log", Table()
        src, whole, both = make_trees(where)
        self.befores = {"originals": src, "containers": whole, "both": both}
        self.originals = Originals(src)
        self.keys = Keys(where)
        self.nr_steps = {}
        for before in self.befores.values():
            for kind in KINDS:
                copy_tree(before, self.tree)
                run(self.tree, self.command(kind), lacks="sync", log=self.log)
                self.nr_steps[before, kind] = len(steps(self.log))

    def start(self, kind, at, action, lacks="sync"):
        return start(self.tree, self.command(kind), at=at, action=action, lacks=lacks)

    def command(self, kind):
        return [*KINDS[kind], *(("--key", self.keys.key) if kind == "sign" else ()), self.tree]

    @staticmethod
    def wait_stopped(process):
        """Until it is stopped or has ended. Returns whether it is stopped."""
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        process.returncode = os.waitstatus_to_exitcode(status)
        return False

    def end(self, process):
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
        status, said = finish(process)
        # verify has its findings on stdout.
        if status == 1 and not said and "verify" not in process.args:
            raise Wrong("status 1 without a word")
        return status

    def attempt(self, kind, what, trial):
        try:
            statuses = trial()
            self.originals.check(self.tree)
            status, said = run(self.tree, [*PACK, self.tree], lacks="sync")
            if status:
                raise Wrong(f"run once more: status {status}: {said}")
            self.originals.check(self.tree, temporaries=False)
            if os.path.exists(self.tree + "/a") or os.path.exists(self.tree + "/b"):
                raise Wrong("not all is packed")
            self.keys.sign(self.tree)
            self.keys.verify(self.tree)
            self.table.add(kind, "refused" if 1 in statuses else "right")
        except Wrong as error:
            self.table.failed(kind, what, error)
        finally:
            subprocess.run(["chmod", "-R", "u+w", self.tree], check=False)

    def two(self, before, first, at, second, at_second, lacks="sync"):
        """The first is stopped; the second runs to its stop; the first goes on to its end, then the second."""
        copy_tree(before, self.tree)
        a = self.start(first, at, "stop", lacks)
        self.wait_stopped(a)
        b = self.start(second, at_second, "stop", lacks)
        self.wait_stopped(b)
        return self.end(a), self.end(b)

    def without_lock(self):
        """Right before pack removes a, unpack removes a.wfs: both have seen both. Returns where pack was stopped."""
        before = self.befores["both"]
        copy_tree(before, self.tree)
        run(self.tree, [*PACK, self.tree], lacks="sync", log=self.log)
        at = 1 + steps(self.log).index(("unlink", "a"))
        self.two(before, "pack", at, "unpack", 0, "sync,locks")
        try:
            self.originals.check(self.tree)
        except Wrong as error:
            if str(error) == "a is lost":
                return at
        sys.exit("without locks nothing was lost: this test tests nothing")

    def pairs(self, rounds):
        at = self.without_lock()
        self.attempt("two runs at the worst moment", f"step {at}",
                     lambda: self.two(self.befores["both"], "pack", at, "unpack", 0))
        for i in range(rounds):
            state, before = random.choice(list(self.befores.items()))
            first, second = random.choice(list(KINDS)), random.choice(list(KINDS))
            at, at_second = (random.randint(1, self.nr_steps[before, kind] + 1) for kind in (first, second))
            if i % 3 == 0:
                at_second = 0
            lacks = "sync,noreplace" if i % 2 else "sync"  # like NFS
            self.attempt("two runs at once", f"{state}: {first} stopped at {at}, {second} at {at_second}, no {lacks}",
                         lambda: self.two(before, first, at, second, at_second, lacks))

    def signing(self, rounds):
        """Sign beside each of the others, stopped in turn: who is first, and where, is drawn."""
        for i in range(rounds):
            state, before = random.choice(list(self.befores.items()))
            pair = ["sign", random.choice(list(KINDS))]
            if i % 2:
                pair.reverse()
            at = [random.randint(1, self.nr_steps[before, kind] + 1) for kind in pair]
            self.attempt("sign beside another run", f"{state}: {pair} stopped at {at}",
                         lambda: self.two(before, pair[0], at[0], pair[1], at[1]))

    def five(self, rounds):
        for _ in range(rounds):
            state, before = random.choice(list(self.befores.items()))
            kinds = random.choices(list(KINDS), k=5)
            moments = [random.randint(1, self.nr_steps[before, kind] + 1) for kind in kinds]
            actions = [random.choice(("kill", "stop", "run")) for _ in kinds]

            def trial():
                copy_tree(before, self.tree)
                processes = [self.start(*each) for each in zip(kinds, moments, actions)]
                for process, action in zip(processes, actions):
                    if action == "stop":
                        self.wait_stopped(process)
                return [self.end(process) for process in processes]
            self.attempt("five runs at once, some killed", f"{state}: {list(zip(kinds, moments, actions))}", trial)

    def same_destination(self, rounds):
        """pack -o into one place twice at once. What comes out is then taken for a tree in which pack was killed."""
        source, store = self.where + "/source", self.tree + "/store"
        copy_tree(self.befores["originals"], source)
        for _ in range(rounds):
            at = [random.randint(1, 60) for _ in range(2)]

            def trial():
                copy_tree(self.where + "/none", self.tree)
                both = [start(self.tree, ["pack", source, "-o", store], at=n, action="stop", lacks="sync")
                        for n in at]
                for process in both:
                    self.wait_stopped(process)
                statuses = [self.end(process) for process in both]
                if run(self.tree, ["pack", source, "-o", store], lacks="sync")[0]:
                    raise Wrong("run once more fails")
                self.originals.check(store, temporaries=False)
                copy_tree(store, self.where + "/result")
                copy_tree(self.where + "/result", self.tree)
                return statuses
            self.attempt("two runs into one destination", f"stopped at {at}", trial)


def main():
    random.seed(int(sys.argv[3]) if sys.argv[3:] else 6)
    rounds = int(sys.argv[2])
    together = Together(sys.argv[1])
    together.pairs(rounds)
    together.signing(rounds)
    together.five(rounds // 4)
    together.same_destination(rounds // 4)
    sys.exit(together.table.end())


main()
