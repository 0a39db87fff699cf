"""rows.py - the rows of the benchmark and what is wanted of them. Used by bench.py."""
from lab import COLD, MEMORY, THROTTLED, WARM

GBPS, P50, MS = "GB/s", "p50 us", "ms"


class Row:
    """One way to read one part of the corpus.

    args: of the reader; files: how many of the part's files are read. unit: what is compared.
    """

    def __init__(self, name, title, args, settings, part="model", files=None, unit=GBPS):
        self.name = name
        self.title = title
        self.args = args.split()
        self.settings = settings
        self.part = part
        self.files = files
        self.unit = unit

    def value(self, result):
        """The figure of one result."""
        return {GBPS: result["gbps"], P50: result.get("p50_us"), MS: result["seconds"] * 1e3}[self.unit]

    def ratio(self, mine, other):
        """How many times as fast; for latencies the inverse quotient."""
        return mine / other if self.unit == GBPS else other / mine


ROWS = [
    Row("read-1m", "read, 1 MiB a call", "seq -b 1M", (COLD, MEMORY, THROTTLED)),
    Row("read-16m", "read, 16 MiB a call", "seq -b 16M", (COLD, MEMORY)),
    Row("mmap", "mmap, in order", "mmap", (COLD, MEMORY, THROTTLED)),
    Row("direct", "O_DIRECT, 16 MiB a call", "direct -b 16M", (COLD, MEMORY)),
]
