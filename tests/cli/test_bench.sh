#!/bin/bash
# bench: the figures are there, of a container and of a plain file; how high they are is not asked.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

cd "$dir"
weights model 4
ok weightfs pack model -o model.wfs
for file in model.wfs model; do
	ok weightfs bench "$file" --passes 2 --json
	json 'set(d) == {"memcpy_gbps", "decode", "encode", "saved_percent"} and d["memcpy_gbps"] > 0'
	json '[v["variant"] for v in d["decode"]][0] == "scalar" and {v["variant"] for v in d["decode"]} <= {"scalar", "ssse3", "avx2", "avx512vbmi", "neon"}'
	json '[v["variant"] for v in d["decode"]] == [v["variant"] for v in d["encode"]]'
	json 'all(v["gbps"] > 0 and v["checked_gbps"] > 0 and len(v) == 3 for v in d["decode"])'
	json 'all(v["gbps"] > 0 and len(v) == 2 for v in d["encode"])'
	json '20 < d["saved_percent"] < 45'
done
ok weightfs bench model.wfs --passes 1 --cpu scalar --json
json 'len(d["decode"]) == 1'
ok weightfs bench model.wfs --passes 1 --sample 1M
says memcpy
says scalar
# A tiny file takes more as a container: that is said in bytes, not as thousands of percent less than nothing.
head -c 100 model >tiny
ok weightfs bench tiny --passes 1
says "more than the original"
rm tiny
# Nothing is left, and a damaged container gives no figures.
[ "$(find . -type f ! -name '.out' ! -name '.err' | wc -l)" = 2 ] || fail "left behind: $(ls)"
"$WFS_PYTHON" "$tests/cli/flip.py" model.wfs 1000000
expect 1 "block" weightfs bench model.wfs --passes 1
