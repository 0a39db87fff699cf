"""bench.py [OPTION...]: measure the read path, every figure beside its references, in one run. `make bench` calls it.

Status 0: all was measured and every byte was right; 1: not; 2: wrong use. Speed itself never fails.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import signal
import statistics
import sys

from corpus import Corpus, check_safetensors
from lab import COLD, MEMORY, SETTINGS, THROTTLED, WARM, Failed, Lab, Lmz, Mounted, Plain, Throttle, Weightfs, run
from rows import ROWS


def say(text):
    print(text, file=sys.stderr, flush=True)


class Result:
    """Of one row in one setting: figures by subject, in the order of the repeats; None where a subject took no part."""

    def __init__(self, row, setting):
        self.row = row
        self.setting = setting
        self.runs = {}

    def median(self, subject):
        return statistics.median(self.row.value(run) for run in self.runs[subject] if run)

    def ratio(self, subject, other):
        """The median of the ratios of runs of the same repeat."""
        pairs = zip(self.runs[subject], self.runs[other])
        return statistics.median(self.row.ratio(self.row.value(a), self.row.value(b)) for a, b in pairs if a and b)


class Bench:
    def __init__(self, args, lab, corpus):
        self.args = args
        self.lab = lab
        self.corpus = corpus
        self.reader = os.path.join(args.build, "tests/bench/reader")
        self.wrong = []

    def command(self, row, setting):
        names = self.corpus.names(row.part)[:row.files]
        warm = ["-W"] if setting == WARM else []
        return [self.reader, row.args[0], *warm, *row.args[1:], *(os.path.join("{root}", name) for name in names)]

    def measure(self, row, setting):
        result = Result(row, setting)
        command = self.command(row, setting)
        for repeat in range(self.args.repeats):
            first = repeat % len(self.lab.subjects)
            for subject in self.lab.subjects[first:] + self.lab.subjects[:first]:
                runs = result.runs.setdefault(subject.name, [])
                runs.append(self.lab.measure(subject, setting, row.part, command))
        self.check(result)
        return result

    def check(self, result):
        right = result.runs["plain"][0]["hash"]
        for name, runs in result.runs.items():
            if name != "null" and any(run and run["hash"] != right for run in runs):
                self.wrong.append(f"{result.setting}/{result.row.name}: {name} gave wrong bytes")


def print_results(results):
    for setting, text in SETTINGS.items():
        chosen = [result for result in results if result.setting == setting]
        if not chosen:
            continue
        print(f"\n{setting}: {text}")
        for result in chosen:
            line = f"  {result.row.title:24} {result.row.unit:7}"
            for name in result.runs:
                line += f" {name} {result.median(name):.2f}"
                for other in ("plain", "null"):
                    if other in result.runs and name not in ("plain", other):
                        line += f" (/{other} {result.ratio(name, other):.2f})"
            print(line)


def parse_args():
    parser = argparse.ArgumentParser(prog="make bench BENCH_ARGS=...", description="Measure the read path.")
    parser.add_argument("--build", required=True, metavar="DIR", help="where weightfs and the tools are built")
    parser.add_argument("--work", metavar="DIR", help="for the corpus and the mounts (BUILD/bench)")
    parser.add_argument("--model", required=True, metavar="FILE", help="a safetensors file")
    parser.add_argument("--rows", metavar="PATTERN", action="append", help="only these, such as memory/* or */mmap")
    parser.add_argument("--subjects", metavar="NAME,...", default="plain,null,weightfs,avx2")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--throttle", type=int, default=400, metavar="MB/S")
    parser.add_argument("--lmz", metavar="PATH", help="lmz, to be measured beside")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def wanted_rows(args):
    for row in ROWS:
        for setting in row.settings:
            name = f"{setting}/{row.name}"
            if not args.rows or any(fnmatch.fnmatch(name, p) or row.name == p for p in args.rows):
                yield row, setting


def make_subjects(args, corpus):
    build, mnt = args.build, lambda name: os.path.join(args.work, "mnt", name)
    weightfs = os.path.join(build, "weightfs")
    makers = {
        "plain": lambda: Plain("plain", corpus.path("plain")),
        "null": lambda: Mounted("null", corpus.path("store"), mnt("null"), os.path.join(build, "tests/bench/null_daemon")),
        "weightfs": lambda: Weightfs("weightfs", corpus.path("store"), mnt("weightfs"), weightfs, "auto"),
        "lmz": lambda: Lmz("lmz", corpus.path("lmz"), mnt("lmz"), args.lmz),
    }
    subjects = []
    for name in args.subjects.split(","):
        if name in makers:
            subjects.append(makers[name]())
        else:
            subjects.append(Weightfs(name, corpus.path("store"), mnt(name), weightfs, name))
    return subjects


def match_read_ahead(subjects, part):
    """The null daemon's mounts get the read-ahead that weightfsd chose for its own."""
    weightfs = next(subject for subject in subjects if isinstance(subject, Weightfs))
    try:
        weightfs.mount(part, None)
        with open(weightfs.bdi_file(), encoding="ascii") as f:
            kb = int(f.read())
    finally:
        weightfs.unmount()
    for subject in subjects:
        if subject.name == "null":
            subject.read_ahead_kb = kb
    return kb


def main():
    args = parse_args()
    args.work = os.path.abspath(args.work or os.path.join(args.build, "bench"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows = list(wanted_rows(args))
    check_safetensors(args.model)
    corpus = Corpus(args.work, args.model, os.path.join(args.build, "weightfs"), args.lmz, 500_000)
    corpus.make(sorted({row.part for row, _ in rows}), say)
    subjects = make_subjects(args, corpus)
    throttle = None
    if any(setting == THROTTLED for _, setting in rows):
        throttle = Throttle(args.work, args.throttle * 1_000_000)
    lab = Lab(os.path.join(args.build, "tests/bench/reader"), subjects, throttle)
    with contextlib.closing(lab):
        match_read_ahead(subjects, rows[0][0].part)
        bench = Bench(args, lab, corpus)
        results = []
        for row, setting in rows:
            say(f"{setting}/{row.name}")
            results.append(bench.measure(row, setting))
    print_results(results)
    for text in bench.wrong:
        say(text)
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        say(f"bench: {error}")
        sys.exit(1)
