#!/bin/bash
# Every level gives the file back; max saves more than default, and that more than fast; blocks as large as the man page says.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
weights model 12
for level in fast default max; do
	ok weightfs pack model --level $level -o $level.wfs
	weightfs cat $level.wfs | cmp -s - model || fail "what was packed at level $level"
	ok weightfs verify $level.wfs
done
size()
{
	stat -c %s "$1.wfs"
}
[ "$(size max)" -lt "$(size default)" ] && [ "$(size default)" -lt "$(size fast)" ] ||
	fail "sizes: fast $(size fast), default $(size default), max $(size max)"
ok weightfs pack model -o usual.wfs
cmp -s usual.wfs default.wfs || fail "the default is another level"
ok weightfs info max.wfs --json
json 'd["block_bytes"] == 1 << 20 and d["pools"] == 1 and d["codings"][-1]["coding"] == "wide"'
ok weightfs info default.wfs --json
json 'd["block_bytes"] == 1 << 18'
# Fast does not look for weights that were dequantised, nor for few values.
"$WFS_PYTHON" -c '
import json, random, struct
words = b"".join(random.Random(1).choices([b"\x80\x3f", b"\x81\xbf", b"\x03\x40", b"\x47\x40", b"\x11\x3e"], k=400000))
header = json.dumps({"w": {"dtype": "BF16", "shape": [len(words) // 2], "data_offsets": [0, len(words)]}}).encode()
open("few", "wb").write(struct.pack("<Q", len(header)) + header + words)'
for level in fast default max; do
	ok weightfs pack few --level $level -o few-$level.wfs
	weightfs cat few-$level.wfs | cmp -s - few || fail "few values at level $level"
done
ok weightfs info few-default.wfs --json
json 'any("grid" in c["coding"] for c in d["codings"])'
ok weightfs info few-fast.wfs --json
json 'not any("grid" in c["coding"] for c in d["codings"])'
ok weightfs pack model --level max --block-size 64k -o small.wfs
ok weightfs info small.wfs --json
json 'd["block_bytes"] == 1 << 16'
weightfs cat small.wfs | cmp -s - model || fail "small blocks at level max"
for level in best MAX '' 3; do
	expect 2 "is not a level" weightfs pack model --level "$level" -o no.wfs
done
[ ! -e no.wfs ] || fail "a wrong level made a file"
