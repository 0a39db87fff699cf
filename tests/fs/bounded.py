"""bounded.py SECONDS DAEMON COMMAND...: run the command and end with its status, 128 + N after signal N; 124 when it
takes too long.

Then the command hangs, and a reader that waits for its mount cannot be killed: what the threads of the daemon (a process
id) and of the command wait for is printed, the daemon is killed, which wakes the reader, and then the command.
"""

import glob
import os
import signal
import subprocess
import sys


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return "?"


def print_threads(pid):
    """How many threads of the process wait at each place."""
    places = {}
    for task in glob.glob(f"/proc/{pid}/task/*"):
        calls = [line.split()[-1].split("+")[0] for line in read(f"{task}/stack").splitlines()[:4]]
        place = " ".join([read(f"{task}/comm").strip(), read(f"{task}/wchan"), *calls])
        places[place] = places.get(place, 0) + 1
    for place, nr in sorted(places.items(), key=lambda item: -item[1])[:12]:
        print(f"  process {pid}: {nr} in {place}", file=sys.stderr)


def of_session(session):
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    return [pid for pid in pids if read(f"/proc/{pid}/stat").split(") ")[-1].split()[3:4] == [str(session)]]


def main():
    seconds, daemon, command = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    child = subprocess.Popen(command, start_new_session=True)
    try:
        status = child.wait(seconds)
        return status if status >= 0 else 128 - status
    except subprocess.TimeoutExpired:
        print(f"hangs, {seconds:g} s: {' '.join(command)[:500]}", file=sys.stderr)
        for pid in [daemon, *of_session(child.pid)[:4]]:
            print_threads(pid)
        os.kill(daemon, signal.SIGKILL)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return 124


sys.exit(main())
