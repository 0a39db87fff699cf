"""sign_races.py DIR WEIGHTFS: sign a store of one container with two names, linked.wfs of DIR, and stand still while it
is written anew; then somebody else renames other.wfs onto one of the names, or holds the lock that pack and unpack take.
Nothing of theirs may be lost, and nothing may be signed."""
import fcntl
import glob
import os
import shutil
import signal
import struct
import subprocess
import sys

where, weightfs = sys.argv[1:]
store = where + "/races"
TRIES = 20
F_OFD_SETLK = 37
ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def content(path):
    with open(path, "rb") as f:
        return f.read()


def original(name):
    return subprocess.run([weightfs, "cat", store + "/" + name], capture_output=True).stdout


def lock_name(name):
    """That of the lock of a name and its other form (mount-tools/safe_file.c)."""
    value = 0xCBF29CE484222325
    for byte in os.fsencode(name):
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    chars = ""
    for _ in range(6):
        chars += ALPHABET[value % len(ALPHABET)]
        value //= len(ALPHABET)
    return f".{name}.weightfs-{chars}.tmp"


def caught(meanwhile):
    """Sign with meanwhile() called while the new container has its temporary name: the status and the messages."""
    for _ in range(TRIES):
        shutil.rmtree(store, ignore_errors=True)
        os.mkdir(store)
        shutil.copy2(where + "/linked.wfs", store + "/a.wfs")
        os.link(store + "/a.wfs", store + "/b.wfs")
        sign = subprocess.Popen([weightfs, "sign", store, "--key", where + "/key.pem", "-j", "1", "--cpu", "scalar"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while sign.poll() is None and not glob.glob(store + "/.a.wfs.weightfs-*.tmp"):
            pass
        sign.send_signal(signal.SIGSTOP)
        # None of its names is replaced yet.
        early = bool(glob.glob(store + "/.a.wfs.weightfs-*.tmp")) and os.path.samefile(store + "/a.wfs", store + "/b.wfs")
        held = meanwhile() if early else None
        sign.send_signal(signal.SIGCONT)
        errors = sign.communicate()[1].decode()
        if held:
            os.unlink(held.name)
            held.close()
        if early:
            return sign.returncode, errors
    sys.exit("sign was never seen at work")


def refused(what, meanwhile, text):
    status, errors = caught(meanwhile)
    if status != 1 or text not in errors:
        sys.exit(f"{what}: status {status}: {errors}")
    if os.path.exists(store + "/.weightfs-manifest"):
        sys.exit(f"{what}: signed")
    if glob.glob(store + "/.*.tmp"):
        sys.exit(f"{what}: left {os.listdir(store)}")


def rename_onto(name):
    def do():
        shutil.copy2(where + "/other.wfs", where + "/moving")
        os.rename(where + "/moving", store + "/" + name)

    return do


def touch():
    stat = os.stat(store + "/b.wfs")
    os.utime(store + "/b.wfs", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1000))


def hold(name):
    def do():
        held = open(store + "/" + lock_name(name), "w")
        fcntl.fcntl(held, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        return held

    return do


for name, other in ("a.wfs", "b.wfs"), ("b.wfs", "a.wfs"):
    refused(f"a new {name}", rename_onto(name), "changed or was replaced meanwhile")
    if content(store + "/" + name) != content(where + "/other.wfs"):
        sys.exit(f"{name} of somebody else is lost")
    if original(other) != content(where + "/linked"):
        sys.exit(f"{other} is another")
refused("another time", touch, "changed or was replaced meanwhile")
for name in "a", "b":
    refused(f"{name} held", hold(name), "another weightfs is at work on it")
    for path in "a.wfs", "b.wfs":
        if original(path) != content(where + "/linked"):
            sys.exit(f"{path} is another")
status, errors = caught(lambda: None)
if status or not os.path.samefile(store + "/a.wfs", store + "/b.wfs"):
    sys.exit(f"undisturbed: status {status}: {errors}")
