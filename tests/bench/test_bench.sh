#!/bin/bash
# test_bench: every row is measured or named with the reason why not, wrong bytes are noticed, and nothing is left behind
# whether the run ends by itself or is interrupted. How fast anything is is not asked.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/../fs/lib.sh"

model=$WFS_CORPORA/minilm-bf16/model.safetensors
[ -e "$model" ] || skip "there is no $model"

bench=("$WFS_PYTHON" "$tests/bench/bench.py" --build "$WFS_BIN" --work "$dir/bench" --model "$model" --quick)

# Neither a mount nor a cgroup of a run, dead or alive.
nothing_left()
{
	if grep -F " $(mount_path "$dir")/" /proc/self/mounts; then
		fail "left mounted, see above"
	fi
	local group
	for group in /sys/fs/cgroup/weightfs-bench-"$1" /sys/fs/cgroup/*/weightfs-bench-"$1"; do
		[ ! -e "$group" ] || fail "left behind: $group"
	done
}

"${bench[@]}" --list >"$dir/list"
"${bench[@]}" --json "$dir/json" --svg "$dir/svg" >"$dir/table" 2>"$dir/log" ||
	fail "status $?: $(tail -n 5 "$dir/table" "$dir/log")"
nothing_left '*'
"$WFS_PYTHON" - "$dir" <<'END' || fail "the report is not whole: $(cat "$dir/table")"
import json, sys, xml.dom.minidom
folder = sys.argv[1]
doc = json.load(open(f"{folder}/json"))
skipped = {item["what"] for item in doc["skipped"]}
measured = {f"{row['setting']}/{row['row']}" for row in doc["rows"]}
listed = {line.split()[0] for line in open(f"{folder}/list")}
assert listed and listed == measured | (skipped & listed), listed ^ (measured | skipped)
assert all(item["reason"] for item in doc["skipped"])
assert {"plain", "null", "weightfs"} <= set(doc["subjects"])
assert skipped | set(doc["subjects"]) >= {"avx2", "lmz"}
for row in doc["rows"]:
    assert set(row["subjects"]) == set(doc["subjects"]), row
    for name, figures in row["subjects"].items():
        assert figures["median"] > 0 and len(figures["values"]) == 1, row
        assert name == "plain" or figures["ratios"]["plain"] > 0, row
assert doc["in_memory"]["memcpy_gbps"] > 0 and doc["failures"] == []
assert any(w["found"] is not None for w in doc["wanted"])
table = open(f"{folder}/table").read()
assert all(row["title"] in table for row in doc["rows"]) and all(what in table for what in skipped)
texts = [node.firstChild.data for node in xml.dom.minidom.parse(f"{folder}/svg").getElementsByTagName("text")]
assert "weightfs" in texts and "mmap, page by page" in texts
END

# One byte of the plain file is another one now: all that is decoded differs from it.
"$WFS_PYTHON" - "$dir/bench/plain/model/model.safetensors" <<'END'
import os, sys
st = os.stat(sys.argv[1])
with open(sys.argv[1], "r+b") as f:
    f.seek(st.st_size // 2)
    byte = f.read(1)[0]
    f.seek(st.st_size // 2)
    f.write(bytes([byte ^ 1]))
os.utime(sys.argv[1], ns=(st.st_atime_ns, st.st_mtime_ns))
END
expect_status 1 "${bench[@]}" --rows 'memory/read-1m' --rows 'memory/direct' --rows 'memory/procs-4'
for row in read-1m direct procs-4; do
	grep -q "FAILED memory/$row: weightfs gave wrong bytes" "$dir/out" || fail "wrong bytes in $row are not noticed"
done
if grep "FAILED.*null" "$dir/out"; then
	fail "the null daemon's bytes are compared"
fi

expect_status 2 "${bench[@]}" --rows no/such
expect_status 2 "${bench[@]}" --nonsense
expect_status 2 "${bench[@]}" --repeats 0
expect_status 2 "${bench[@]}" --cpu avx2,mmx
grep -q "nothing is called 'mmx'" "$dir/err" || fail "an unknown variant: $(cat "$dir/err")"
expect_status 2 "${bench[@]}" --subjects null,weightsf
grep -q "nothing is called 'weightsf'" "$dir/err" || fail "an unknown subject: $(cat "$dir/err")"

# Interrupted while something is mounted.
for signal in INT TERM; do
	"${bench[@]}" --repeats 1000 --rows 'throttled/*' --rows 'cold/*' >"$dir/out" 2>"$dir/log" &
	pid=$!
	wait_until "the second repeat" grep -q '^2/1000' "$dir/log"
	kill -"$signal" "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" -ne 0 ] || fail "status 0 after SIG$signal"
	nothing_left "$pid"
done
