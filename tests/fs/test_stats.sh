#!/bin/bash
# weightfs stats: one JSON document whose counters follow what was read.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
pack "$a" "$dir/store/model.wfs"
mount_store "$dir/store" "$dir/mnt"
weightfs stats "$dir/mnt" --json >"$dir/before"
exec 5<"$dir/mnt/model"
cmp "$a" - <&5
weightfs stats "$dir/mnt" --json >"$dir/after"
exec 5<&-
weightfs stats "$dir/mnt" >"$dir/text"
[ -s "$dir/text" ] || fail "stats without --json prints nothing"
"$WFS_PYTHON" - "$dir/before" "$dir/after" "$(stat -c %s "$a")" <<'END' || fail "the counters"
import json, sys
before, after = (json.load(open(p)) for p in sys.argv[1:3])
size = int(sys.argv[3])

def flat(node, prefix=""):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from flat(value, f"{prefix}{key}.")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from flat(value, f"{prefix}{i}.")
    else:
        yield prefix[:-1], node

before, after = dict(flat(before)), dict(flat(after))
assert before.keys() == after.keys(), set(before) ^ set(after)
grown = {k: after[k] - before[k] for k in after if isinstance(after[k], (int, float)) and not isinstance(after[k], bool)}
print("note:", grown)
# By the names that weightfsd(8) promises.
assert grown["bytes_decoded"] >= size and grown["blocks_decoded"] >= 1, "what was decoded"
assert grown["bytes_served"] >= size and grown["reads"] >= 1 and grown["read_errors"] == 0, "what was served"
assert 0 < grown["stored_bytes_read"] < size and grown["cache_misses"] == grown["blocks_decoded"], "what was read"
assert grown["opens"] == 1 and after["open_files"] >= 1 and after["plain_reads"] == 0, "what was opened"
assert after["cpu"] in ("scalar", "ssse3", "avx2", "avx512vbmi", "neon"), "the CPU variant"
assert after["bad_blocks"] == after["bad_files"] == after["timeouts"] == 0, "damage in a good store"
END
# The manual explains each.
for name in $("$WFS_PYTHON" -c 'import json, sys; print(*json.load(open(sys.argv[1])))' "$dir/after"); do
	grep -qE "^\.B.*\b$name\b" "$tests/../man/weightfsd.8" || fail "weightfsd(8) does not explain $name"
done
# Read again: from the page cache or the block cache, not decoded again without need.
cmp "$a" "$dir/mnt/model"
# Four clients at once.
for _ in 1 2 3 4; do
	weightfs stats "$dir/mnt" --json | "$WFS_PYTHON" -c 'import json, sys; json.load(sys.stdin)' &
done
wait
unmount "$dir/mnt"
# Paths with bytes that are not UTF-8, and some that JSON escapes.
store=$dir/$'st\xff\xc3re "\\\t\xc3\xa9\xed\xa0\x80'
mv "$dir/store" "$store"
mount_store "$store" "$dir/mnt"
weightfs stats "$dir/mnt" --json >"$dir/paths"
"$WFS_PYTHON" - "$dir/paths" "$store" <<'END' || fail "a path that is not UTF-8"
import json, os, sys
text = open(sys.argv[1], "rb").read().decode("utf-8", "strict")
assert json.loads(text)["store"].encode("utf-8", "surrogateescape") == os.fsencode(sys.argv[2]), text
END
unmount "$dir/mnt"
