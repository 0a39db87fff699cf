"""start_ready.py LOG COMMAND...: start a service, wait until it notifies READY=1, print its process id and leave it.

It speaks the protocol of sd_notify(3). Exits 1 when the service ends first; its output goes to LOG.
"""

import os
import select
import socket
import subprocess
import sys
import tempfile


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(path)
            with open(sys.argv[1], "ab") as log:
                child = subprocess.Popen(
                    sys.argv[2:],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=dict(os.environ, NOTIFY_SOCKET=path),
                    start_new_session=True,
                )
            exited = os.pidfd_open(child.pid)
            while True:
                readable, _, _ = select.select([listener, exited], [], [], 60)
                if listener in readable:
                    if b"READY=1" in listener.recv(4096).split(b"\n"):
                        print(child.pid)
                        return 0
                elif exited in readable:
                    return 1
                elif not readable:
                    child.kill()
                    print("no READY=1 in 60 s", file=sys.stderr)
                    return 1


sys.exit(main())
