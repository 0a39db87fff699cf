#!/bin/bash
# estimate: every scheme agrees with a count made in Python, and weightfs with what pack makes; nothing is written.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
mkdir models
"$WFS_PYTHON" "$tests/cli/make_estimate.py" models
cp -a models .models

# counted FILE...: the JSON of the last expect is true of them.
counted()
{
	"$WFS_PYTHON" "$tests/cli/check_estimate.py" "$out" "$@" >.wrong 2>&1 || fail "$*: $(head -n 20 .wrong)"
	rm .wrong
}
# packed_size FILE OPTION...: what pack really makes of it.
packed_size()
{
	local file=$1
	shift
	weightfs pack "$file" -o "$WFS_TMP/$test_name.$$.wfs" -q "$@"
	stat -c %s "$WFS_TMP/$test_name.$$.wfs"
	rm "$WFS_TMP/$test_name.$$.wfs"
}
# Rows add up: what a scheme does not take is counted as it is.
adds_up()
{
	json 'all(sum(d["raw_bytes"] if d["schemes"][s] is None else d["schemes"][s]["bytes"] for d in d["dtypes"] + [d["other"]])
		== v["bytes"] for s, v in d["total"]["schemes"].items() if v)'
	json 'sum(r["raw_bytes"] for r in d["dtypes"] + [d["other"]]) == d["total"]["raw_bytes"]'
	json 'all(abs(v["saved_percent"] - 100 * (1 - v["bytes"] / r["raw_bytes"])) < 0.001 and
		(not r["weights"] or abs(v["bits_per_weight"] - 8 * v["bytes"] / r["weights"]) < 0.001)
		for r in d["dtypes"] + [d["total"]] if r["raw_bytes"] for v in r["schemes"].values() if v)'
}

for file in models/{every,deep,large,odd} "$WFS_CORPORA"/minilm-{bf16,f16,f32}/model.safetensors; do
	ok weightfs estimate "$file" --json
	counted "$file"
	adds_up
	json 'd["total"]["schemes"]["weightfs"]["bytes"] == '"$(packed_size "$file")"
done
ok weightfs estimate models/odd --json
json '{d["dtype"]: d["tensors"] for d in d["dtypes"]} == {"BF16": 1, "F32": 1, "I8": 2}'
ok weightfs estimate models/every --json
json 'len(d["dtypes"]) == 24 and d["dtypes"][0]["raw_bytes"] == max(d["raw_bytes"] for d in d["dtypes"])'
json 'd["command"] == "estimate" and d["path"] == "models/every" and d["level"] == "default" and d["sample_bytes"] is None'
# Neither threads nor variants change a figure.
same='d["total"]["schemes"] == '"$("$WFS_PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"]["schemes"])' "$out")"
for option in "-j 1" "-j 7" "--cpu scalar"; do
	# shellcheck disable=SC2086 # words
	ok weightfs estimate models/every --json $option
	json "$same"
done
for level in fast default max; do
	ok weightfs estimate models/every --level $level --json
	json 'd["level"] == "'$level'" and d["total"]["schemes"]["weightfs"]["bytes"] == '"$(packed_size models/every --level $level)"
done

# Files that are no models: weightfs alone takes them.
for file in text random empty; do
	ok weightfs estimate models/$file --json
	json 'd["dtypes"] == [] and d["other"]["raw_bytes"] == '"$(stat -c %s models/$file)"
	json 'd["total"]["schemes"]["k15"]["bytes"] == d["other"]["raw_bytes"] and d["other"]["schemes"]["k15"] is None'
	json 'd["total"]["schemes"]["weightfs"]["bytes"] == '"$(packed_size models/$file)"
	ok weightfs estimate models/$file
	says "no safetensors tensors"
	! grep -q 'bound\|Split12\|zstd' "$out" || fail "schemes that need tensors are shown without any: $(cat "$out")"
	[ "$(grep -c '^  weightfs ' "$out")" = 1 ] || fail "not one line of weightfs: $(cat "$out")"
done
ok weightfs estimate models/every
for text in BF16: F8_E5M2FNUZ: "bound: exponent and mantissa" Split12 K15 DFloat11 ZipNN bits/weight "in all"; do
	says "$text"
done

# A tree gives what packing it gives: small files and those that do not gain are only copied, hard links count once.
mkdir tree tree/sub
cp models/{every,text,random,odd,empty} tree/sub
ln tree/sub/every tree/again
ln -s sub/every tree/link
head -c 60000 models/text >tree/small
weightfs pack models/odd -o tree/odd.wfs -q
weightfs pack tree -o packed --json >.packed
ok weightfs estimate tree --json
adds_up
json 'd["total"]["files"] == 7 and d["total"]["containers"] == 1 and d["total"]["failed"] == 0'
want=$("$WFS_PYTHON" -c 'import json; print(json.load(open(".packed"))["totals"]["stored_bytes"])')
json 'd["total"]["schemes"]["weightfs"]["bytes"] == '"$want"
ok weightfs estimate tree
says "1 weightfs container taken as it is"
# Where nothing is read there is neither a table nor a speed.
mkdir nothing
ok weightfs estimate nothing
says "nothing to estimate: no file"
cp tree/odd.wfs nothing
ok weightfs estimate nothing
says "nothing to estimate: no file but weightfs containers"
! grep -q 'B/s\|%' "$out" || fail "figures of nothing: $(cat "$out")"
rm -r nothing
expect 1 "name its original" weightfs estimate tree/odd.wfs
# The files of a tree are those of their own, and what no scheme takes.
rm -r tree/odd.wfs tree/sub/{text,random,empty} tree/small packed .packed
ok weightfs estimate tree --json
counted tree/sub/every tree/sub/odd
rm -r tree

# A file that its sample covers is counted exactly. A sample is no smaller than pack's.
figures()
{
	"$WFS_PYTHON" -c 'import json, sys
d = json.load(open(sys.argv[1])); print({k: d[k] for k in ("dtypes", "other", "total")})' "$out"
}
"$WFS_PYTHON" "$tests/cli/weights.py" big 24
ok weightfs estimate big --json
exact=$(figures)
for sample in 1M 4G; do
	ok weightfs estimate big --sample $sample --json
	json '{k: d[k] for k in ("dtypes", "other", "total")} == '"$exact"' and d["estimated"] is False'
done
ok weightfs estimate big --sample 1M
! grep -q "estimated" "$out" || fail "exact figures are called estimated"
# Without the library the rest is there.
mkdir nolib
echo nothing >nolib/libzstd.so.1
ok env LD_LIBRARY_PATH="$dir/nolib" "$WFS_BIN/weightfs" estimate big --json
json 'd["zstd"] is None and d["total"]["schemes"]["zipnn_zstd"] is None and d["total"]["schemes"]["k15"]'
counted big
ok env LD_LIBRARY_PATH="$dir/nolib" "$WFS_BIN/weightfs" estimate big
says "libzstd is not installed"
# Memory does not grow with the file; the container in memory is gone as soon as it is made.
"$WFS_PYTHON" "$tests/cli/weights.py" big 256
read -r resident file < <("$WFS_PYTHON" "$tests/cli/watch_estimate.py" "$WFS_BIN/weightfs" big .exact)
[ "$file" -gt 0 ] && [ "$file" -lt 33554432 ] || fail "the container in memory takes $file bytes"
limit=$((64 * 1048576 + 16 * 1048576 * $(nproc)))
[ "$resident" -lt $limit ] || fail "$resident bytes of memory, more than $limit"
# Samples: said, near the truth, the counts exact.
exact=$("$WFS_PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"]["schemes"])' .exact)
ok weightfs estimate big --sample 4M --json
json 'd["sample_bytes"] == 128 << 20 and d["estimated"] is True'
json 'all(d["total"]["schemes"][s] == v for s, v in '"$exact"'.items() if s not in ("weightfs", "zipnn_zstd"))'
json 'all(0 < abs(d["total"]["schemes"][s]["bytes"] / '"$exact"'[s]["bytes"] - 1) < 0.003 for s in ("weightfs", "zipnn_zstd"))'
json 'd["dtypes"][0]["schemes"]["weightfs"] is None and d["dtypes"][0]["schemes"]["zipnn_zstd"]'
ok weightfs estimate big --sample 4M
says "tried on about 134 MB of each larger file"
[ -z "$(grep -A1 '^other bytes' "$out" | tail -n 1)" ] || fail "a table without a row: $(cat "$out")"
rm -r big nolib .exact

# A mounted store shows plain files: the figures are those of the originals.
if [ -w /dev/fuse ]; then
	mkdir original store mnt
	cp models/{every,odd,text} original
	ok weightfs estimate original --json
	same='{k: d[k] for k in ("dtypes", "other", "total")} == '$(figures)
	weightfs pack original -o store -q
	weightfs mount store mnt
	trap 'weightfs umount -l "$dir/mnt" 2>/dev/null; cleanup' EXIT
	ok weightfs estimate mnt --json
	json "$same"
	weightfs umount mnt
	trap cleanup EXIT
	rm -r original store mnt
fi

# What cannot be estimated.
expect 1 "models/none: No such file" weightfs estimate models/none
expect 1 "neither a file nor a directory" weightfs estimate /dev/null
mkdir -p hub/blobs hub/snapshots/1 broken
cp models/odd hub/blobs/abc
ln -s ../../blobs/abc hub/snapshots/1/model.safetensors
ln -s /nowhere broken/link
expect 1 "elsewhere: name $dir/hub" weightfs estimate hub/snapshots/1
expect 1 "broken symbolic links" weightfs estimate broken
ok weightfs estimate hub/snapshots/1/model.safetensors --json
json 'd["total"]["files"] == 1'
ok weightfs estimate hub --json
json 'd["total"]["files"] == 1'
rm -r hub broken
mkdir none
ok weightfs estimate none --json
json 'd["total"]["files"] == 0 and d["total"]["raw_bytes"] == 0'
rmdir none
for sample in 0 1 x 2T; do
	expect 2 "is not a size" weightfs estimate models --sample $sample
done
expect 2 "is not a level" weightfs estimate models --level best

same_tree models .models
[ "$(ls)" = models ] || fail "left behind: $(ls)"
