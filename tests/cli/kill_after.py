"""kill_after.py SECONDS COMMAND...: start it, and kill it with SIGKILL after so long unless it has ended by then.

The moment only chooses where the program is caught: what must hold afterwards holds at every one."""
import subprocess
import sys

process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    process.wait(timeout=float(sys.argv[1]))
except subprocess.TimeoutExpired:
    process.kill()
    process.wait()
