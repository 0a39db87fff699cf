#!/bin/bash
# info and cat: figures that add up, JSON that parses whatever the names, bytes that are the original's.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
"$WFS_PYTHON" - <<'END'
import json, struct
import numpy as np
rng = np.random.default_rng(1)
def bf16(n):
    return (rng.standard_normal(n, dtype=np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
tensors = [("a.weight", "BF16", [512, 1024], bf16(512 * 1024)), ('quote"\\\n\x01é', "F32", [100, 1000],
    rng.standard_normal(100000, dtype=np.float32).tobytes()), ("zeros", "F32", [300000], bytes(1200000)),
    ("scalar", "I64", [], bytes(8)), ("none", "BF16", [0, 5], b""), ("odd", "NEW9", [3], b"abc")]
header, data = {}, b""
for name, dtype, shape, raw in tensors:
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
open("model", "wb").write(struct.pack("<Q", len(text)) + text + data)
END
touch -d '1955-11-05 06:15:00.123456789Z' model
ok weightfs pack model -o model.wfs
size=$(stat -c %s model) stored=$(stat -c %s model.wfs) sha=$(sha256sum <model | cut -c-64)
ok weightfs info model.wfs
for text in "$size bytes" "$stored bytes" "$sha" 1955-11-05T06:15:00.123456789Z split "bits/weight"; do
	says "$text"
done
ok weightfs info model.wfs --json
json 'd["raw_bytes"] == '"$size"' and d["stored_bytes"] == '"$stored"' and d["sha256"] == "'"$sha"'"'
json 'abs(d["saved_percent"] - 100 * (1 - '"$stored / $size"')) < 0.001 and d["damage"] is None'
json 'd["mtime_nsec"] == 123456789 and d["mtime_sec"] < 0 and d["block_bytes"] == 262144'
# Blocks, constants and copies cover the file; the payload is that of the codings and that of the tensors.
json 'sum(c["raw_bytes"] for c in d["codings"]) + d["constant_bytes"] + d["copied_bytes"] == d["raw_bytes"]'
json 'sum(c["blocks"] for c in d["codings"]) == d["blocks"]'
json '{t["dtype"] for t in d["dtypes"]} == {"BF16", "F32", "I64", "NEW9"} and "tensors" not in d'
json '0 <= sum(c["stored_bytes"] for c in d["codings"]) - sum(t["stored_bytes"] for t in d["dtypes"]) < 4096'
json '[8 < t["bits_per_weight"] < 13 for t in d["dtypes"] if t["dtype"] == "BF16"] == [True]'
ok weightfs info model.wfs --json --tensors
json '[t["name"] for t in d["tensors"]].count("quote\"\\\n\x01é") == 1 and len(d["tensors"]) == 6'
json '[t["shape"] for t in d["tensors"] if t["name"] == "a.weight"] == [[512, 1024]]'
json '[t["raw_bytes"] for t in d["tensors"] if t["name"] == "none"] == [0]'
ok weightfs info model.wfs --tensors
says "512x1024"
[ "$(LC_ALL=C grep -c $'\x01' "$out")" = 0 ] || fail "a control character of a tensor's name reaches the terminal"
ln model.wfs $'c1\xc2\x9b2J.wfs'
ok weightfs info $'c1\xc2\x9b2J.wfs'
says "c1??2J.wfs"
expect 1 "c1??2J: No such file" weightfs info $'c1\xc2\x9b2J'
# Other files: no tensors, empty, names that are no UTF-8.
head -c 100000 /dev/zero >$'\xff"name'
ok weightfs pack $'\xff"name' -o .
ok weightfs info $'\xff"name.wfs' --json
json 'd["path"] == "\udcff\"name.wfs" and d["safetensors"] is False and d["dtypes"] == []'
: >empty
ok weightfs pack empty -o .
ok weightfs info empty.wfs --json
json 'd["raw_bytes"] == 0 and d["blocks"] == 0 and d["saved_percent"] == 0'
ok weightfs info empty.wfs
# A store: sums.
mkdir store
cp model.wfs empty.wfs store
echo text >store/notes
ln -s notes store/link
ok weightfs info store --json
json 'd["containers"] == 2 and d["raw_bytes"] == '"$size"' and d["other_files"] == 1 and d["other_bytes"] == 5'
json 'd["symlinks"] == 1 and d["directories"] == 1 and d["damaged"] == 0'
ok weightfs info store
says "containers   2"
expect 2 "store is a directory" weightfs info --tensors store
# Cut short: what is saved is what the whole container saved, and the damage is a failure.
head -c $((stored / 2)) model.wfs >store/short.wfs
expect 1 "" weightfs info store/short.wfs
says "only $((stored / 2)) bytes of it are here"
says "$stored bytes"
expect 1 "" weightfs info store/short.wfs --json
json 'd["stored_bytes"] == '"$stored"' and abs(d["saved_percent"] - 100 * (1 - '"$stored / $size"')) < 0.001'
expect 1 "short.wfs: the container is cut short" weightfs info store --json
json 'd["containers"] == 2 and d["damaged"] == 1 and d["raw_bytes"] == '"$size"
rm store/short.wfs

# cat: containers, plain files, several, by any number of threads; a reader that goes away.
for option in "-j 1" "-j 4" "--cpu scalar"; do
	# shellcheck disable=SC2086 # words
	weightfs cat $option model.wfs empty.wfs model store/notes | cmp -s - <(cat model model store/notes) || fail "cat $option"
done
weightfs cat model.wfs 2>"$err" | head -c 10 >/dev/null || true
[ ! -s "$err" ] || fail "cat to a closed pipe says: $(cat "$err")"
"$WFS_PYTHON" - "$WFS_BIN/weightfs" <<'END' || fail "cat to a closed pipe with SIGPIPE ignored"
import os, subprocess, sys
read, write = os.pipe()
os.close(read)
run = subprocess.run([sys.argv[1], "cat", "model.wfs"], stdout=write, stderr=subprocess.PIPE, restore_signals=False)
sys.exit(run.returncode != 1 or run.stderr != b"")
END
expect 1 "none: No such file" weightfs cat none model.wfs
cmp -s "$out" model || fail "cat of the rest"

# Output that cannot be written is a failure.
for command in "info model.wfs" "info model.wfs --json" "cat model.wfs" "cat model" "verify model.wfs" --help --version \
	"pack --help" "pack model -n" "pack model -o new.wfs"; do
	status=0
	# shellcheck disable=SC2086 # words
	weightfs $command >/dev/full 2>"$err" || status=$?
	[ $status = 1 ] && grep -q 'cannot write the output: No space left' "$err" || fail "$command to a full device: $(cat "$err")"
	status=0
	# shellcheck disable=SC2086
	weightfs $command >&- 2>"$err" || status=$?
	[ $status = 1 ] && grep -q 'cannot write the output: ' "$err" || fail "$command to nowhere: $status $(cat "$err")"
done
# Whatever is closed, a container gets no stray line.
(weightfs pack model -o closed.wfs <&- >&- 2>&-) || true
ok weightfs verify closed.wfs
