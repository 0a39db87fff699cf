#!/bin/bash
# keep.sh [TARGET...]: after run.sh, put what its corpora reach beyond the seeds into tests/fuzz/corpus, minimised.
#
# Of each target the smallest inputs, up to LIMIT bytes together: they are replayed by every run of the tests. Fewer of
# roundtrip, which takes a second for some when it is emulated.
set -eu
cd "$(dirname "$0")/../.."
fuzz=${BUILD:-build}/fuzz
limit=250000
# shellcheck disable=SC2046 # a word each
[ $# -gt 0 ] || set -- $(basename -s .c -a tests/fuzz/fuzz_*.c | cut -c6-)

for name; do
	kept=tests/fuzz/corpus/$name
	merged=$(mktemp -d "$fuzz/merged-$name-XXXXXX")
	mkdir -p "$kept" "$fuzz/seeds/$name"
	cp -r "$fuzz/seeds/$name/." "$merged"
	find "$merged" -type f -printf '%f\n' | sort >"$merged.seeds"
	"$fuzz/tests/fuzz/fuzz_$name" -merge=1 -close_fd_mask=2 -max_len=200000 "$merged" "$kept" "$fuzz/corpus/$name" >/dev/null
	rm -r "$kept"
	mkdir "$kept"
	size=0 nr=0 most=400
	[ "$name" != roundtrip ] || most=40
	while read -r bytes input; do
		size=$((size + bytes)) nr=$((nr + 1))
		[ "$size" -le "$limit" ] && [ "$nr" -le "$most" ] || break
		cp "$merged/$input" "$kept/${input:0:16}"
	done < <(find "$merged" -type f -printf '%s %f\n' | awk 'NR == FNR {seed[$1]; next} !($2 in seed)' "$merged.seeds" - |
		sort -n)
	rm -r "$merged" "$merged.seeds"
	echo "$name: $(find "$kept" -type f | wc -l) inputs, $(du -sb "$kept" | cut -f1) bytes"
done
