"""mounted.py - what the loader tests share: real models, packed and mounted by the commands under test.

Environment: WFS_BIN (weightfs and weightfsd), WFS_TMP (a directory on a real disk), WFS_CORPORA (a folder a model, made
by tests/corpora.py). A test is a program: silent or notes, status 0; else a traceback, status 1. Status 77: skipped.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["WFS_BIN"])
CORPORA = pathlib.Path(os.environ.get("WFS_CORPORA", "/nonexistent"))


def weightfs(*args, **kwargs):
    done = subprocess.run([BIN / "weightfs", *args], capture_output=True, text=True, check=False, **kwargs)
    if done.returncode:
        sys.exit(f"FAIL weightfs {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def skip(why):
    print("SKIP", why)
    sys.exit(77)


def need(*modules):
    """Import each module or skip the test."""
    for name in modules:
        try:
            __import__(name)
        except ImportError as e:
            skip(f"no {name} here: {e}")


def corpus(name):
    folder = CORPORA / name
    if not (folder / "model.safetensors").exists():
        skip(f"no model {name} in WFS_CORPORA={CORPORA}")
    return folder


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(dir=os.environ["WFS_TMP"], prefix="loaders.") as folder:
        yield pathlib.Path(folder)


@contextlib.contextmanager
def mounted(source, *options):
    """Packs source (a folder) and yields the mount point that shows it."""
    with scratch() as top:
        weightfs("pack", source, "-o", top / "store")
        with mounted_store(top / "store", top / "mnt", *options) as mnt:
            yield mnt


@contextlib.contextmanager
def mounted_store(store, mnt, *options):
    mnt.mkdir(exist_ok=True)
    weightfs("mount", store, mnt, *options)
    try:
        mounts = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8")
        assert f" {mnt.resolve()} fuse.weightfs " in mounts, "the mount command is done but nothing is mounted"
        yield mnt
    finally:
        # A test that fails may hold files open: its own failure is the one to report.
        if subprocess.run([BIN / "weightfs", "umount", mnt], capture_output=True, check=False).returncode:
            subprocess.run(["umount", "-l", mnt], check=False)


def copy_of(name, target):
    """A model folder of one's own, to add files to."""
    shutil.copytree(corpus(name), target)
    return target
