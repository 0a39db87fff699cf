"""bench.py [OPTION...]: measure the read path, every figure beside its references, in one run. `make bench` calls it.

A row is one way to read (rows.py), a setting what is cached and how fast the disk is, a subject who serves the bytes.
In each repeat every row is read from every subject, each time from a new mount, in another order each time.

Status 0: all was measured and every byte was right; 1: not; 2: wrong use. That something is slow is no failure.
"""
import argparse
import contextlib
import datetime
import fcntl
import fnmatch
import importlib.util
import json
import os
import platform
import shutil
import signal
import sys

from corpus import Corpus, check_safetensors
from lab import Failed, Lab, Lmz, Mounted, Plain, Throttle, Weightfs, read_text, run
from plot import draw
from report import Result, Verdict, as_json, print_table, print_verdicts
from rows import COLD, ROWS, THROTTLED, WARM, wanted

USUAL_REPEATS = 5
VARIANTS = ("scalar", "ssse3", "avx2", "avx512vbmi", "neon")
HERE = os.path.dirname(os.path.abspath(__file__))


def say(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, args, lab, corpus):
        self.args = args
        self.lab = lab
        self.corpus = corpus
        self.failures = []

    def command(self, row, setting):
        names = [os.path.join("{root}", name) for name in self.corpus.names(row.part)[:row.files]]
        if row.args[0].endswith(".py"):
            return [sys.executable, os.path.join(HERE, row.args[0]), *names]
        reader_args = list(row.args[1:])
        if self.args.quick and "-n" in reader_args:
            reader_args[reader_args.index("-n") + 1] = "20"
        before = {WARM: ["-W"], THROTTLED: ["-d", self.corpus.path("drain", "file")]}.get(setting, [])
        return [self.lab.cache.reader, row.args[0], *before, *reader_args, *names]

    def measure(self, results):
        """Fills results, repeat after repeat."""
        repeats = max((result.repeats for result in results), default=0)
        for repeat in range(repeats):
            for result in results:
                if repeat < result.repeats:
                    self.measure_once(result, repeat, f"{repeat + 1}/{repeats} {result.setting}/{result.row.name}")

    def measure_once(self, result, repeat, title):
        say(title)
        command = self.command(result.row, result.setting)
        subjects = self.lab.subjects
        first = repeat % len(subjects)
        for subject in subjects[first:] + subjects[:first]:
            runs = result.runs.setdefault(subject.name, [])
            if None in runs:  # it has failed: once is enough
                runs.append(None)
                continue
            try:
                runs.append(self.lab.measure(subject, result.setting, result.row.part, command))
            except Failed as error:
                runs.append(None)
                self.fail(result, f"{subject.name}: {error}")

    def fail(self, result, text):
        self.failures.append(f"{result.setting}/{result.row.name}: {text}")
        say(self.failures[-1])

    def compare_bytes(self, results):
        """What everyone but the null daemon gave must be what lies on the disk."""
        for result in results:
            right = {run["hash"] for run in result.runs.get("plain", []) if run}
            for name, runs in result.runs.items():
                if name != "null" and {run["hash"] for run in runs if run} - right:
                    self.fail(result, f"{name} gave wrong bytes")


# ---- what there is to measure -----------------------------------------------------------------------------------------

def choose_rows(args):
    """(results to fill, reasons why rows are left out)"""
    results, skipped = [], []
    for row in ROWS:
        reason = None
        if row.name == "tensors" and not all(map(importlib.util.find_spec, ("safetensors", "ml_dtypes"))):
            reason = f"{sys.executable} has no safetensors and ml_dtypes"
        for setting in row.settings:
            name = f"{setting}/{row.name}"
            if args.rows and not any(fnmatch.fnmatch(name, p) or row.name == p for p in args.rows):
                continue
            if reason:
                skipped.append((name, reason))
                continue
            usual = max(USUAL_REPEATS, row.least_repeats if setting == COLD else 0)
            results.append(Result(row, setting, args.repeats or usual))
    return results, skipped


def make_subjects(args, corpus, supported):
    """(subjects, reasons why some are left out). supported: the CPU variants there are."""
    def mounted(kind, name, tree, program, *more):
        return kind(name, corpus.path(tree), os.path.join(args.work, "mnt", name), program, *more)

    weightfs = os.path.join(args.build, "weightfs")
    subjects = [Plain("plain", corpus.path("plain")),
                mounted(Mounted, "null", "store", os.path.join(args.build, "tests/bench/null_daemon")),
                mounted(Weightfs, "weightfs", "store", weightfs, "auto")]
    skipped = []
    for variant in args.cpu.split(","):
        if variant in supported:
            subjects.append(mounted(Weightfs, variant, "store", weightfs, variant))
        elif variant:
            skipped.append((variant, "this CPU lacks it"))
    if args.lmz:
        subjects.append(mounted(Lmz, "lmz", "lmz", args.lmz))
    else:
        skipped.append(("lmz", "it is not installed (pip install lmzip; --lmz PATH)"))
    if not args.subjects:
        return subjects, skipped
    chosen = {"plain", *args.subjects.split(",")}
    return ([subject for subject in subjects if subject.name in chosen],
            [(subject.name, "not asked for") for subject in subjects if subject.name not in chosen] + skipped)


def memory_speeds(weightfs, path):
    """memcpy and decoding, in memory, on one core."""
    return json.loads(run([weightfs, "bench", path, "--json", "--passes", "3", "--sample", "256M"]))


def make_throttle(args, results):
    """(the throttle or None, reasons); takes rows that need it out of results when there is none."""
    needing = [result for result in results if result.setting == THROTTLED]
    if not needing:
        return None, []
    try:
        return Throttle(args.work, args.throttle * 1_000_000), []
    except (Failed, OSError) as error:
        for result in needing:
            results.remove(result)
        return None, [(f"{THROTTLED}/{result.row.name}", str(error)) for result in needing]


def learn_from_mounts(subjects, part):
    """Mounts each weightfs once; the null daemon's mounts get the kernel's settings of the first. ({name: CPU variant},
    settings)"""
    variants, settings = {}, {}
    for subject in subjects:
        if isinstance(subject, Weightfs):
            try:
                subject.mount(part, None)
                variants[subject.name] = subject.stats["cpu"]
                settings = settings or subject.kernel_settings()
            finally:
                subject.unmount()
    for subject in subjects:
        if subject.name == "null":
            subject.settings = settings
    return variants, settings


def describe_machine(work):
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        cpu = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    kind = run(["stat", "-f", "-c", "%T", work]).strip()
    return {"cpu": cpu, "processors": os.cpu_count(), "kernel": platform.release(), "file_system": kind,
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "date": datetime.date.today().isoformat()}


# ---- the run ----------------------------------------------------------------------------------------------------------

def print_head(doc):
    machine, speeds, sizes = doc["machine"], doc["in_memory"], doc["model"]
    print(f"{machine['processors']} x {machine['cpu']}, Linux {machine['kernel']}, {machine['file_system']}, "
          f"{machine['date']}")
    print(f"{sizes['name']}: {sizes['raw_bytes'] / 1e6:.0f} MB, packed {sizes['stored_bytes'] / 1e6:.0f} MB; "
          f"weightfs decodes by {doc['variants'].get('weightfs', 'nothing')}; "
          + ", ".join(f"{kind} {value}" for kind, value in doc["kernel"].items()))
    print(f"in memory, one core, GB/s: memcpy {speeds['memcpy_gbps']:.1f}, decoding with hash "
          + ", ".join(f"{v['variant']} {v['checked_gbps']:.1f}" for v in speeds["decode"]))
    print("Figures are medians of alternating runs; a ratio is the median of the ratios within a repeat, "
          "more is faster.")


def measure_all(args, stack):
    """The whole run; returns the exit status."""
    results, skipped = choose_rows(args)
    if not results:
        say("bench: no such row; --list names them")
        return 2
    check_safetensors(args.model)
    corpus = Corpus(args.work, args.model, os.path.join(args.build, "weightfs"), args.lmz,
                    2000 if args.quick else 500_000)
    corpus.make({result.row.part: None for result in results} | {"model": None}, say)
    speeds = memory_speeds(os.path.join(args.build, "weightfs"), corpus.packed_model())
    subjects, more = make_subjects(args, corpus, {v["variant"] for v in speeds["decode"]})
    skipped += more
    throttle, more = make_throttle(args, results)
    skipped += more
    if throttle:
        stack.enter_context(contextlib.closing(throttle))
    programs = [os.path.join(args.build, name) for name in ("weightfsd", "tests/bench/null_daemon")]
    lab = Lab(os.path.join(args.build, "tests/bench/reader"), programs, subjects, throttle)
    stack.enter_context(contextlib.closing(lab))
    variants, settings = learn_from_mounts(subjects, "model")
    raw, stored = corpus.sizes("model")
    doc = {"machine": describe_machine(args.work), "variants": variants, "kernel": settings,
           "model": {"name": args.model_name, "raw_bytes": raw, "stored_bytes": stored},
           "in_memory": speeds,
           "throttle_mbps": args.throttle, "subjects": [s.name for s in subjects]}
    bench = Bench(args, lab, corpus)
    bench.measure(results)
    bench.compare_bytes(results)
    verdicts = [Verdict(w, results) for w in wanted(variants)]
    doc |= as_json(results, verdicts)
    doc["skipped"] = [{"what": what, "reason": reason} for what, reason in skipped]
    doc["failures"] = bench.failures
    write_out(args, doc, results, verdicts)
    return 1 if bench.failures else 0


def write_out(args, doc, results, verdicts):
    shown = [] if args.quick else verdicts  # one repeat tells nothing
    print_head(doc)
    print_table(results, doc["subjects"], shown, args.throttle)
    print_verdicts(shown)
    for item in doc["skipped"]:
        print(f"not measured: {item['what']}: {item['reason']}")
    for text in doc["failures"]:
        print(f"FAILED {text}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(doc, f, indent=1)
            f.write("\n")
    if args.svg:
        with open(args.svg, "w", encoding="utf-8") as f:
            f.write(draw(doc))


def check_names(parser, option, text, known):
    """A misspelt name would measure nothing and say nothing."""
    for name in text.split(","):
        if name and name not in known:
            parser.error(f"{option}: nothing is called '{name}': use {', '.join(filter(None, known))}")


def parse_args():
    parser = argparse.ArgumentParser(prog="make bench BENCH_ARGS=...", description="Measure the read path.",
                                     allow_abbrev=False)
    parser.add_argument("--build", metavar="DIR", default="build", help="where weightfs and the tools are built")
    parser.add_argument("--work", metavar="DIR", help="for corpus and mounts, on the disk to measure (BUILD/bench)")
    parser.add_argument("--model", metavar="PATH", help="a safetensors file, or a folder: its largest (synthetic BF16)")
    parser.add_argument("--rows", metavar="PATTERN", action="append", help="only these, such as 'memory/*' or mmap")
    parser.add_argument("--subjects", metavar="NAME,...", help="only these, beside the plain file")
    parser.add_argument("--list", action="store_true", help="name the rows and leave")
    parser.add_argument("--repeats", type=int, metavar="N", help="5; of the first rows in the cold 9")
    parser.add_argument("--quick", action="store_true", help="one repeat of few operations: no figures to show around")
    parser.add_argument("--cpu", default="avx2", metavar="NAME,...", help="variants to force, beside the best (avx2)")
    parser.add_argument("--throttle", type=int, default=400, metavar="MB/S", help="of the throttled disk (400)")
    parser.add_argument("--lmz", metavar="PATH", default=shutil.which("lmz"), help="measured beside, when there is one")
    parser.add_argument("--json", metavar="FILE", help="also write every figure")
    parser.add_argument("--svg", metavar="FILE", help="also draw a plot")
    args = parser.parse_args()
    if args.repeats is None and args.quick:
        args.repeats = 1
    check_names(parser, "--cpu", args.cpu, VARIANTS)
    if args.subjects:
        check_names(parser, "--subjects", args.subjects, ("plain", "null", "weightfs", "lmz", *args.cpu.split(",")))
    if args.throttle < 1 or args.repeats is not None and args.repeats < 1:
        parser.error("--repeats and --throttle take 1 or more")
    args.build = os.path.abspath(args.build)
    args.work = os.path.abspath(args.work or os.path.join(args.build, "bench"))
    if not args.list:
        choose_model(parser, args)
    return args


def choose_model(parser, args):
    if not args.model:
        parser.error("--model is needed (make bench gives one)")
    if os.path.isdir(args.model):
        found = [os.path.join(args.model, name) for name in os.listdir(args.model) if name.endswith(".safetensors")]
        if not found:
            parser.error(f"{args.model}: no .safetensors file")
        args.model = max(found, key=os.path.getsize)
    if not os.path.isfile(args.model):
        parser.error(f"{args.model}: no such file")
    args.model_name = os.path.join(*os.path.abspath(args.model).split(os.sep)[-2:])


def interrupted(number, _):
    """Only once: a second signal must not stop the cleaning up."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    say(f"bench: {signal.Signals(number).name}: cleaning up")
    sys.exit(1)


def main():
    args = parse_args()
    if args.list:
        for row in ROWS:
            for setting in row.settings:
                print(f"{setting + '/' + row.name:24} {row.title}")
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    os.makedirs(args.work, exist_ok=True)
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(open(os.path.join(args.work, "lock"), "w", encoding="ascii"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return measure_all(args, stack)
        except BlockingIOError:
            say(f"bench: another one is running in {args.work}")
        except (Failed, OSError) as error:
            say(f"bench: {error}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
