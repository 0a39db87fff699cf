#!/bin/bash
# run.sh SECONDS [TARGET...]: build the fuzz targets with clang, ASan and UBSan, and run each for SECONDS.
#
# They start from the corpora kept beside this script (keep.sh renews them) and from seeds that are made anew.
# What libFuzzer finds is kept in $BUILD/fuzz/corpus and built upon the next time; an input that breaks a target is
# left in $BUILD/fuzz as TARGET-crash-*.
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
shift
export BUILD=${BUILD:-build}
fuzz=$BUILD/fuzz
# shellcheck disable=SC2046 # a word each
[ $# -gt 0 ] || set -- $(basename -s .c -a tests/fuzz/fuzz_*.c | cut -c6-)

python=$(tests/venv.sh small)
"$python" tests/fuzz/seeds.py "$fuzz/seeds"
targets=()
for name; do
	targets+=("$fuzz/tests/fuzz/fuzz_$name")
done
make -s -j "$(nproc)" BUILD="$fuzz" CC=clang-14 FUZZ=1 CFLAGS='-O1 -g' \
	SANITIZE=address,undefined,fuzzer-no-link "${targets[@]}" "$fuzz/tests/tools/block_seeds"
"$fuzz/tests/tools/block_seeds" "$fuzz/seeds/block"

for name; do
	mkdir -p "$fuzz/corpus/$name" "$fuzz/seeds/$name"
	corpora=("$fuzz/corpus/$name" "$fuzz/seeds/$name")
	[ ! -d "tests/fuzz/corpus/$name" ] || corpora+=("tests/fuzz/corpus/$name")
	quiet=0
	[ "$name" != opts ] || quiet=2 # its standard error, but for the fuzzer's own: a message for every refusal
	echo "fuzz_$name, $seconds s"
	"$fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -max_len=200000 \
		-print_final_stats=1 -verbosity=1 -close_fd_mask=$quiet -artifact_prefix="$fuzz/fuzz_$name-" \
		"${corpora[@]}" >"$fuzz/$name.log" 2>&1 || {
		tail -n 60 "$fuzz/$name.log"
		exit 1
	}
	grep -E 'number_of_executed_units|^Done' "$fuzz/$name.log" | sed 's/^/  /'
done
