"""two_clients.py SERVED HERE THERE TREES ROUNDS [SEED]: two NFS clients pack and unpack one tree in place.

HERE and THERE are the directory SERVED, as the two clients have it mounted. Each run is stopped at some step, or
killed there, while the other goes on (tests/cli/faults.c); whatever the order, no file is lost or wrong, nobody waits
for ever, and one more run finishes the work. Of files that were removed while they were open (.nfsXXXX) none stays."""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from faults import Originals, Table, Wrong, copy_tree, finish, make_trees, run, start, steps  # noqa: E402

KINDS = {"pack": ["pack", "--in-place", "-j1"], "unpack": ["unpack", "--in-place", "-j1"],
         "pack, 4 threads": ["pack", "--in-place", "-j4"], "unpack --force": ["unpack", "--in-place", "-j1", "--force"]}


class Clients:
    def __init__(self, served, here, there, trees):
        self.served, self.roots, self.table = served + "/tree", (here, there), Table()
        src, whole, both = make_trees(trees)
        self.log = trees + "/log"
        self.befores = {"originals": src, "containers": whole, "both": both}
        self.originals = Originals(src)
        self.nr_steps = {}
        for state, before in self.befores.items():
            for kind, command in KINDS.items():
                tree = self.fresh(before)
                run(tree, [*command, tree], lacks="sync", log=self.log)
                self.nr_steps[state, kind] = len(steps(self.log))

    def fresh(self, before):
        copy_tree(before, self.roots[0] + "/tree")
        return self.roots[0] + "/tree"

    def begin(self, client, kind, at, action):
        tree = self.roots[client] + "/tree"
        process = start(tree, [*KINDS[kind], tree], at=at, action=action, lacks="sync")
        if action == "run":
            return process
        # Until it is stopped or has ended.
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
        return process

    @staticmethod
    def end(process):
        if process.returncode is None:
            os.kill(process.pid, 18)
        status, said = finish(process)
        if status == 1 and not said:
            raise Wrong("status 1 without a word")
        return status

    def check(self):
        # On the server: what a client has seen a second ago it may see still.
        self.originals.check(self.served)
        for root in self.roots:
            tree = root + "/tree"
            status, said = run(tree, [*KINDS["pack"], tree], lacks="sync")
            if status:
                raise Wrong(f"run once more: status {status}: {said}")
            self.originals.check(self.served, temporaries=False)
            if os.path.exists(self.served + "/a") or os.path.exists(self.served + "/b"):
                raise Wrong("not all is packed")

    def round(self, what, state, kinds, at, actions):
        try:
            self.fresh(self.befores[state])
            processes = [self.begin(client, kinds[client], at[client], actions[client]) for client in (0, 1)]
            statuses = [self.end(process) for process in processes]
            self.check()
            self.table.add(what, "refused" if 1 in statuses else "right")
        except Wrong as error:
            self.table.failed(what, f"{state}: {kinds} at {at}, {actions}", error)
        finally:
            for root in self.roots:
                subprocess.run(["chmod", "-R", "u+w", root + "/tree"], check=False)


def main():
    random.seed(int(sys.argv[6]) if sys.argv[6:] else 6)
    clients = Clients(*sys.argv[1:5])
    for i in range(int(sys.argv[5])):
        state = random.choice(list(clients.befores))
        kinds = random.choices(list(KINDS), k=2)
        at = [random.randint(1, clients.nr_steps[state, kind] + 1) for kind in kinds]
        what, actions = (("two clients, stopped in turn", ["stop", "stop"]),
                         ("two clients, one killed", ["kill", "stop"]),
                         ("two clients, side by side", ["run", "run"]))[i % 3]
        clients.round(what, state, kinds, at, actions)
    sys.exit(clients.table.end())


main()
