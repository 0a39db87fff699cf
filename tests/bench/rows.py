"""rows.py - the rows of the benchmark: ways to read, and what is wanted of them. Used by bench.py."""

COLD, MEMORY, THROTTLED, WARM = "cold", "memory", "throttled", "warm"
SETTINGS = {
    COLD: "nothing is cached",
    MEMORY: "the store is in the page cache, the mount is new; plain: the file is in the page cache",
    THROTTLED: "nothing is cached, and the disk gives reader and daemon together {rate} MB/s",
    WARM: "the second reading through a mount",
}

GBPS, P50, P99, MS = "GB/s", "p50 us", "p99 us", "ms"
FIELD = {GBPS: ("gbps", 1), P50: ("p50_us", 1), P99: ("p99_us", 1), MS: ("seconds", 1000)}


def value(unit, run):
    field, factor = FIELD[unit]
    return run[field] * factor


def speed_ratio(unit, mine, other):
    """How many times as fast: of latencies the inverse quotient, so that more is always better."""
    return mine / other if unit == GBPS else other / mine


class Row:
    """args: of the reader, or the name of a script here; of the corpus' part `part` the first `files` files are read.
    units: what is shown of a run. least_repeats: how often it is read in the cold, where the disk makes figures
    scatter."""

    def __init__(self, name, title, args, settings, part="model", files=None, units=(GBPS,), least_repeats=1):
        self.name = name
        self.title = title
        self.args = args.split()
        self.settings = settings
        self.part = part
        self.files = files
        self.units = units
        self.least_repeats = least_repeats


ROWS = [
    Row("read-1m", "read, 1 MiB a call", "seq -b 1M", (COLD, MEMORY, THROTTLED), least_repeats=9),
    Row("read-16m", "read, 16 MiB a call", "seq -b 16M", (COLD, MEMORY), least_repeats=9),
    Row("mmap", "mmap, page by page", "mmap", (COLD, MEMORY, THROTTLED), least_repeats=9),
    Row("direct", "O_DIRECT, 16 MiB", "direct -b 16M", (COLD, MEMORY), least_repeats=9),
    Row("tensors", "safetensors get_tensor", "get_tensor.py", (COLD, MEMORY)),
    Row("threads-1", "1 thread, 16 MiB", "threads -w 1 -b 16M", (COLD, MEMORY)),
    Row("threads-8", "8 threads, 1 descriptor", "threads -w 8 -b 16M", (COLD, MEMORY)),
    Row("procs-4", "1 file, 4 processes, sum", "procs -w 4", (COLD, MEMORY)),
    Row("files-1", "16 files, 1 reader", "seq -b 1M", (COLD, MEMORY), part="shards"),
    Row("files-4", "4 files, 4 readers", "files -b 1M", (COLD, MEMORY), part="shards", files=4),
    Row("files-16", "16 files, 16 readers", "files -b 1M", (COLD, MEMORY), part="shards"),
    Row("random-128k", "random 128 KiB", "random -b 128K -n 500", (COLD, MEMORY), units=(P50, P99)),
    Row("random-4k", "random 4 KiB", "random -b 4K -n 1000", (COLD, MEMORY), units=(P50, P99)),
    Row("faults", "MADV_RANDOM faults", "faults -n 1000", (COLD, MEMORY), units=(P50, P99)),
    Row("strided", "2 of every 16 KiB, mapped", "strided -s 16K -b 2K", (COLD, MEMORY)),
    Row("open", "open, 500,000 blocks", "open", (COLD, MEMORY), part="blocks", units=(MS,)),
    Row("reread", "read, 1 MiB a call", "seq -b 1M", (WARM,)),
    Row("reread-mmap", "mmap, page by page", "mmap", (WARM,)),
]
ONE_READER = ("read-1m", "read-16m", "mmap", "direct")
AVX512, AVX2 = "avx512vbmi", "avx2"


class Wanted:
    """At least `least` times `other`: another subject in the same row, or the same subject in another row. Or, where
    `most` is given, a figure of at most that."""

    def __init__(self, setting, row, unit=GBPS, subject="weightfs", other=None, other_row=None, least=None, most=None):
        self.setting = setting
        self.row = row
        self.unit = unit
        self.subject = subject
        self.other = other
        self.other_row = other_row
        self.least = least
        self.most = most


def against_transport(subject, variant):
    """With the store in memory, beside the null daemon."""
    limits = {AVX512: (0.85, 0.85, 0.70, 0.65), AVX2: (0.60, 0.60, 0.50, 0.50)}.get(variant, ())
    return [Wanted(MEMORY, row, subject=subject, other="null", least=least)
            for row, least in zip(ONE_READER, limits)]


def wanted(variants):
    """What is wanted where the subjects decode with these variants, a dictionary."""
    found = [Wanted(THROTTLED, row, other="plain", least=1.40) for row in ("read-1m", "mmap")]
    for subject, variant in variants.items():
        found += against_transport(subject, variant)
    found += [Wanted(COLD, row, other="plain", least=1.0) for row in ONE_READER]
    for row in ROWS:
        for setting in row.settings:
            least = 0.95 if setting == WARM else 5.0 if setting == MEMORY and row.name in ONE_READER else 1.0
            found += [Wanted(setting, row.name, unit, other="lmz", least=least) for unit in row.units]
    for setting in (COLD, MEMORY):
        found += [Wanted(setting, "threads-8", other_row="threads-1", least=1.0),
                  Wanted(setting, "files-4", other_row="files-1", least=1.0),
                  Wanted(setting, "files-16", other_row="files-1", least=1.0)]
    if variants.get("weightfs") == AVX512:
        found.append(Wanted(MEMORY, "random-4k", P50, most=300))
    found.append(Wanted(COLD, "random-128k", P50, other="plain", least=1 / 1.5))
    return found
