"""watch_estimate.py WEIGHTFS FILE OUT: what estimate takes of memory: prints bytes of the program and of its memory file.

Its JSON goes to OUT. The file in memory is looked at through the program's own descriptors as long as it runs.
"""
import os
import resource
import subprocess
import sys

with open(sys.argv[3], "wb") as out:
    run = subprocess.Popen([sys.argv[1], "estimate", sys.argv[2], "--json"], stdout=out)
most = 0
while run.poll() is None:
    try:
        for fd in os.listdir(f"/proc/{run.pid}/fd"):
            path = f"/proc/{run.pid}/fd/{fd}"
            if "memfd:weightfs-estimate" in os.readlink(path):
                most = max(most, os.stat(path).st_blocks * 512)
    except OSError:  # closed or ended meanwhile
        pass
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, most)
sys.exit(run.returncode)
