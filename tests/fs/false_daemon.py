"""false_daemon.py UID SOCKET KIND DIRECTORY: answer at SOCKET in the place of a weightfs daemon, badly; in the background; print its process id.

Says that DIRECTORY is the store, with bytes that command a terminal, and when asked for it gives a descriptor that took
no right to read (path), a file (file), two descriptors (two), or nothing; or it never stops talking (endless).
"""

import array
import os
import socket
import sys
import time


def answer(client, kind, directory):
    command = client.recv(16)
    if kind == "endless":
        while True:
            client.sendall(b" " * 65536)
    if command == b"store\n":
        fds = {
            "path": lambda: [os.open(directory, os.O_PATH)],
            "file": lambda: [os.open("/proc/self/stat", os.O_RDONLY)],
            "two": lambda: [os.open("/", os.O_RDONLY), os.open("/", os.O_RDONLY)],
            "nothing": lambda: [],
        }[kind]()
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        client.sendmsg([b"f"], control)
    elif command == b"json\n":
        client.sendall(b'{"store": "%s"}' % directory.encode())
    else:
        # The last byte of one answer and the first of the next are a control character of C1.
        client.sendall(b"\x1b]2;title\x07 store\xc2")
        time.sleep(0.5)
        client.sendall(b"\x9b2J \xc2")
        time.sleep(0.5)
        client.sendall(b"\xa7\n")


def main():
    uid, path, kind, directory = sys.argv[1:]
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(8)
        child = os.fork()
        if child:
            print(child)
            return
        os.setsid()
        for fd in (1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
        while True:
            client, _ = listener.accept()
            with client:
                try:
                    answer(client, kind, directory)
                except OSError:
                    pass


main()
