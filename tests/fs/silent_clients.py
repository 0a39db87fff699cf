"""silent_clients.py SOCKET NUMBER COMMAND...: run a command while so many clients are connected that say nothing.

As many again ask for the store and never read the answer.
"""

import select
import socket
import subprocess
import sys


def main():
    number, clients = int(sys.argv[2]), []
    for asks in (True, False):
        for _ in range(number):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.setblocking(False)
            try:
                client.connect(sys.argv[1])
                if asks:
                    client.send(b"store\n")
                    select.select([client], [], [], 60)
            except BlockingIOError:  # its queue is full
                pass
            clients.append(client)
    return subprocess.run(sys.argv[3:], timeout=60).returncode


sys.exit(main())
