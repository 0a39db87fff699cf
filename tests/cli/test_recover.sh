#!/bin/bash
# What is left of damaged containers: unpack --keep-going, its list, cat; and a campaign of damage in every part.
# WFS_CAMPAIGN=10000 makes it a long one, WFS_SEED another one.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
mkdir campaign
"$WFS_PYTHON" "$tests/cli/campaign.py" "$WFS_BIN/weightfs" campaign "${WFS_CAMPAIGN:-750}" "${WFS_SEED:-1}" >"$out" 2>&1 ||
	fail "the campaign: $(tail -n 15 "$out")"
[ -z "${WFS_CAMPAIGN-}" ] || cat "$out"
rm -r campaign

# A model of many tensors, one tied to another, zeros, and damage in known places.
"$WFS_PYTHON" - model <<'END'
import json, struct, sys
import numpy as np
rng = np.random.default_rng(5)
def bf16(nr):
    return ((rng.standard_normal(nr, dtype=np.float32) * 0.02).view(np.uint32) >> 16).astype("<u2").tobytes()
tied = bf16(131072)
parts = [("first", tied)] + [(f"layer.{i}", bf16(16384)) for i in range(40)] + [("zeros", bytes(262144)), ("tied", tied)]
header, off = {}, 0
for name, data in parts:
    header[name] = {"dtype": "BF16", "shape": [len(data) // 2], "data_offsets": [off, off + len(data)]}
    off += len(data)
text = json.dumps(header).encode()
text += b" " * (65536 - 8 - len(text))  # the header has a block of its own
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in parts))
END
mkdir -p store/sub
weightfs pack model -o store/model.wfs --block-size 64k >/dev/null
cp model store/plain
touch -d 2020-01-01 model
weightfs pack model -o store/sub/good.wfs --block-size 64k >/dev/null
# damaged FILE RAW_OFFSET...: the blocks that hold these bytes of the original.
damaged()
{
	"$WFS_PYTHON" - "$tests/vectors" "$@" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import wfsfile
		data = bytearray(open(sys.argv[2], "rb").read())
		box = wfsfile.Container(bytes(data))
		for off in map(int, sys.argv[3:]):
		    i = next(i for i, (_, at, n) in enumerate(box.cuts) if at <= off < at + n)
		    data[box.head["payload_off"] + sum(box.lengths[:i]) + 400] ^= 4
		open(sys.argv[2], "wb").write(data)
	END
}
cp -p store/model.wfs keep.wfs
damaged store/model.wfs 70000 $((65536 + 262144 + 100)) $((65536 + 262144 + 65536 + 100))
expect 1 "3 of" weightfs verify store/model.wfs
for line in "lost: bytes 65536 to 131071" "lost: bytes 327680 to 458751" "hit: tensor first (BF16): 65536 of 262144 bytes" \
	"hit: tensor layer.0 (BF16): 32768 of 32768" "hit: tensor layer.3 (BF16)" "hit: tensor tied (BF16): 65536 of 262144"; do
	says "  $line"
done
! grep -qE 'layer\.4|zeros' "$out" || fail "tensors that are whole: $(cat "$out")"
expect 1 "3 of" weightfs verify --fast --json store/model.wfs
json 'd["files"][0]["nr_lost_tensors"] == 6 and d["files"][0]["lost_bytes"] == 4 * 65536'
json '[t["name"] for t in d["files"][0]["lost_tensors"]] == ["first"] + [f"layer.{i}" for i in range(4)] + ["tied"]'

# A damaged container does not stop the others; the partial file says what it is and what is missing.
expect 1 "262144 of 2162688 bytes are lost, the rest is in model.partial, and model.partial.json lists what is missing" \
	weightfs unpack --keep-going store -o out1
cmp -s out1/sub/good model && cmp -s out1/plain model && [ ! -e out1/model ] || fail "the others"
check_partial()
{
	"$WFS_PYTHON" - "$1" model <<-'END' || fail "$1"
		import json, sys
		told, got = json.load(open(sys.argv[1] + ".json")), open(sys.argv[1], "rb").read()
		want = bytearray(open(sys.argv[2], "rb").read())
		for r in told["lost_ranges"]:
		    want[r["offset"] : r["offset"] + r["bytes"]] = bytes(r["bytes"])
		assert got == want and told["raw_bytes"] == len(want) and told["lost_bytes"] > 0
	END
}
check_partial out1/model.partial
[ "$(stat -c %Y out1/model.partial)" = "$(stat -c %Y keep.wfs)" ] || fail "time of the partial file"
no_temporaries out1
# What is there already stays without --force.
echo mine >out1/model.partial
expect 1 "is damaged, and model.partial is there already (--force replaces it)" weightfs unpack --keep-going store -o out1
[ "$(cat out1/model.partial)" = mine ] || fail "a file that was there was replaced"
expect 1 "the rest is in model.partial" weightfs unpack --keep-going --force store -o out1
check_partial out1/model.partial
# Nor does it ever take the place of what the source has under that name.
echo "of the source" >store/model.partial
expect 1 "is there already in the source" weightfs unpack --keep-going --force store -o out2
[ "$(cat out2/model.partial)" = "of the source" ] && [ ! -e out2/model.partial.json ] || fail "a file of the source was replaced"
rm store/model.partial
# One file, to a name of one's own; nothing without the option, nothing in place, nothing of whole ones.
expect 1 "the rest is in own.partial" weightfs unpack --keep-going store/model.wfs -o own
check_partial own.partial
[ ! -e own ] || fail "a name that promises the whole"
expect 1 "block" weightfs unpack store/model.wfs -o other
[ ! -e other ] && [ ! -e other.partial ] || fail "saved without --keep-going"
expect 2 "--keep-going needs -o" weightfs unpack --keep-going --in-place store
ok weightfs unpack --keep-going store/sub -o out3
cmp -s out3/good model && [ "$(ls out3)" = good ] || fail "a whole container and --keep-going"
# After it was restored from elsewhere the same command finishes.
cp -p keep.wfs store/model.wfs
ok weightfs unpack --keep-going store -o out1
cmp -s out1/model model || fail "after the repair"

# cat stops before it, and says where and what to do.
damaged store/model.wfs 500000
expect 1 "cat: store/model.wfs: block" weightfs cat store/model.wfs
grep -q 'bytes 458752 to 524287.*weightfs unpack --keep-going' "$err" || fail "$(cat "$err")"
[ "$(stat -c %s "$out")" -le 458752 ] && cmp -s -n "$(stat -c %s "$out")" "$out" model || fail "what cat wrote"

# The header of the original lost: the ranges are known, the tensors are not.
cp keep.wfs store/model.wfs
damaged store/model.wfs 100
expect 1 "block 0 (bytes 0 to" weightfs verify store/model.wfs
says "hit: the header that names the tensors is lost too"
expect 1 "block 0" weightfs verify store/model.wfs --json
json 'd["files"][0]["tensor_names"] == "header lost" and d["files"][0]["lost_tensors"] == []'
expect 1 "the rest is in h.partial" weightfs unpack --keep-going store/model.wfs -o h
check_partial h.partial

# Lists are bounded, and say so: every second block of many.
weights many 8 3
weightfs pack many -o many.wfs --block-size 64k >/dev/null
# shellcheck disable=SC2046 # numbers
damaged many.wfs $(seq 65636 131072 8000000)
expect 1 "block" weightfs verify many.wfs
says "  lost: 45 more ranges, 4.00 MB in all (--json lists more)"
[ "$(grep -c 'lost: bytes' "$out")" = 16 ] || fail "$(cat "$out")"
expect 1 "block" weightfs verify many.wfs --json
json 'd["files"][0]["nr_lost_ranges"] == len(d["files"][0]["lost_ranges"]) == d["files"][0]["damaged_blocks"]'

# Both copies of the metadata gone, or both heads: nothing can be saved, and that is said.
size=$(stat -c %s keep.wfs)
for flips in "4200 $((size - 4150))" "50 $((size - 50))"; do
	cp keep.wfs bad.wfs
	# shellcheck disable=SC2086 # numbers
	"$WFS_PYTHON" "$tests/cli/flip.py" bad.wfs $flips
	for command in "verify" "cat" "unpack --keep-going -o gone"; do
		# shellcheck disable=SC2086 # words
		expect 1 "nothing of it can be read: restore it from elsewhere" weightfs $command bad.wfs
	done
	[ ! -e gone ] && [ ! -e gone.partial ] || fail "something was made of nothing"
done
