#!/bin/bash
# run-tests.sh [-l] [PATTERN...]: build and run the tests, all or those whose name matches a pattern (units/*, fs/*).
#
# Each test is a function below, with a name and perhaps an argument. It passes with status 0, fails with any other, and
# is skipped with 77, when this machine cannot run it: that is said aloud with the reason and counted. Its output is
# shown when it fails. The last line is "N passed, N failed", with ", N skipped" behind it when there are any.
#
# In the environment: BUILD (where everything is built), WEIGHTFS_VENV (a Python environment to use and complete).
# The tests get WFS_BIN, WFS_TMP, WFS_PYTHON and WFS_CORPORA (tests/fs/lib.sh).
# shellcheck disable=SC2317 # the test functions are called by name
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=$(realpath -m "${BUILD:-build}")
jobs=$(nproc)
limit_seconds=900 # for one test: reached only by one that hangs
export BUILD
export WFS_BIN=$BUILD WFS_TMP=$BUILD/tmp WFS_CORPORA=$BUILD/corpora WFS_PYTHON=${WFS_PYTHON-}
export WFS_RUN=${WFS_RUN-$$}
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 HF_HUB_OFFLINE=1

skip()
{
	echo "SKIP $*"
	exit 77
}

# ---- builds -----------------------------------------------------------------------------------------------------------

build()
{
	make -s -j "$jobs" WERROR=1 "$@"
}
build_gcc()
{
	build CC=gcc tests
}
build_clang()
{
	build CC=clang-14 BUILD="$BUILD/clang" tests
}
build_asan()
{
	build CC=gcc BUILD="$BUILD/asan" SANITIZE=address,undefined CFLAGS='-O1 -g' tests
}
build_tsan()
{
	build CC=gcc BUILD="$BUILD/tsan" SANITIZE=thread CFLAGS='-O1 -g' tests
}
build_asan-clang()
{
	build CC=clang-14 BUILD="$BUILD/asan-clang" SANITIZE=address,undefined CFLAGS='-O1 -g' tests
}
build_tsan-clang()
{
	build CC=clang-14 BUILD="$BUILD/tsan-clang" SANITIZE=thread CFLAGS='-O1 -g' tests
}
# For AArch64 with NEON, to be run by an emulator.
build_neon()
{
	local root
	[ "$(uname -m)" != aarch64 ] || skip "this machine is AArch64: the tests beside these use NEON"
	root=$(tests/arm64.sh) || skip "Debian's AArch64 libraries cannot be had: NEON is not tested"
	build CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar BUILD="$BUILD/neon" LDFLAGS="-L$root/usr/lib/aarch64-linux-gnu" \
		CPPFLAGS="-I$root/usr/include -I$root/usr/include/aarch64-linux-gnu" tests
}
# need VARIANT: see to it that this build is there and fresh; once a run.
need()
{
	case $1 in
	.) return 0 ;;
	esac
	[ -e "$WFS_TMP/.built-$1-$WFS_RUN" ] || { "build_$1" && touch "$WFS_TMP/.built-$1-$WFS_RUN"; }
}
# on VARIANT COMMAND...: run a program of that build.
on()
{
	need "$1" || return 1
	case $1 in
	neon) qemu-aarch64 -L /usr/aarch64-linux-gnu "${@:2}" ;;
	*) "${@:2}" ;;
	esac
}
# The whole codec compiles with one plain command line.
build_plain()
{
	cc -O2 -D_GNU_SOURCE -shared -fPIC -o "$dir/libwfs.so" codec/*.c -lcrypto -llz4 -lpthread
}

# ---- units ------------------------------------------------------------------------------------------------------------

# unit VARIANT NAME: VARIANT is a folder of $BUILD, or . for the plain build.
unit()
{
	on "$1" "$BUILD/$1/tests/unit/$2"
}

# ---- format -----------------------------------------------------------------------------------------------------------

vectors_ok()
{
	on "$1" "$BUILD/$1/tests/tools/check_vector" -v tests/vectors/ok/*.wfs >"$dir/got" || { cat "$dir/got"; return 1; }
	awk '{print "OK", $1, $2}' tests/vectors/ok/SHA256SUMS | diff - "$dir/got"
}
vectors_bad()
{
	on "$1" "$BUILD/$1/tests/tools/check_vector" tests/vectors/bad/*.wfs >"$dir/got" || { cat "$dir/got"; return 1; }
	awk '{print $1, $3}' "$dir/got" | diff tests/vectors/bad/EXPECTED -
}
# A decoder written from FORMAT.md alone reads the golden containers and what the encoder writes.
second_reader()
{
	(cd tests/vectors/ok && "$WFS_PYTHON" ../wfsfile.py ./*.wfs) | sed 's|\./||' | diff tests/vectors/ok/SHA256SUMS - ||
		return 1
	"$WFS_PYTHON" tests/vectors/second_reader.py "$WFS_BIN/weightfs" "$WFS_CORPORA" "$dir"
}
# The same container, byte for byte, from every encoder and any number of threads.
determinism()
{
	: >"$dir/empty"
	"$WFS_BIN/tests/tools/determinism" "$WFS_CORPORA"/*/model.safetensors "$WFS_CORPORA/minilm-f32/tokenizer.json" \
		"$dir/empty"
}
# packs_to FILE CONTAINER PERCENT: packing saves at least so much, everything counted.
packs_to()
{
	"$WFS_BIN/weightfs" pack "$1" -o "$2" >/dev/null || return 1
	"$WFS_PYTHON" - "$@" <<-'END'
		import os, sys
		raw, stored = (os.path.getsize(path) for path in sys.argv[1:3])
		print(sys.argv[1], 100 - 100 * stored / raw)
		sys.exit(100 - 100 * stored / raw < float(sys.argv[3]))
	END
}
# What packing saves on the real models: below these, something was lost. None of them is taken for dequantised.
saved()
{
	local model least
	while read -r model least; do
		packs_to "$WFS_CORPORA/$model/model.safetensors" "$dir/$model.wfs" "$least" || return 1
		if "$WFS_BIN/weightfs" info "$dir/$model.wfs" | grep '^ *grid'; then
			return 1
		fi
	done <<-'END'
		minilm-bf16 33.95
		minilm-f32 18.3
		minilm-f32-from-bf16 66.9
		minilm-f16 15.2
		llama-like-60 34.1
	END
}
# What packing saves on weights that were quantised and made floats again. They come back; some also from every variant.
grids()
{
	local name least deep file
	ln -s "$(realpath "$WFS_CORPORA/minilm-f32")" "$dir/minilm-f32"
	while read -r name least deep; do
		file=$dir/grid-$name/model.safetensors
		"$WFS_PYTHON" tests/corpora.py "$dir" "grid-$name" >/dev/null &&
			packs_to "$file" "$dir/$name.wfs" "$least" &&
			"$WFS_BIN/weightfs" unpack "$dir/$name.wfs" -o "$dir/back" >/dev/null && cmp "$file" "$dir/back" || return 1
		[ -z "$deep" ] || "$WFS_BIN/tests/tools/determinism" "$file" || return 1
		rm -r "$dir/grid-$name" "$dir/$name.wfs" "$dir/back"
	done <<-'END'
		fp8-128x128 58.5
		fp8-128x128-truncated 58.4
		fp8-128x128-ue8m0 58.5
		fp8-128x128-f32 79 every
		fp8-tensor 58.5
		fp8-row 58.5
		fp8-row-f16 58.5
		fp8-1x128 58 every
		fp8-column 58
		fp8uz-row 58.5
		e5m2-row 64.5
		int8-row 54
		int8-row-f32 76.5
		int8-full 53.5
		int8-g128 52
		int4-g128 78
		int4-g32-f16 75 every
		int4-zero-g128 76
		int4-column 77.5
		nf4 73.5
		nf4-f32 86 every
		fp4 75
		nvfp4 70
		mxfp4 74.5
		ternary 97
	END
}
# 1,000 damaged places: on the real model with the best decoder, on a part of it with each and under sanitizers.
damage()
{
	local file=$WFS_CORPORA/minilm-bf16/model.safetensors cpu
	"$WFS_BIN/weightfs" pack "$file" -o "$dir/model.wfs" >/dev/null || return 1
	"$WFS_BIN/tests/tools/damage" "$dir/model.wfs" "$file" 1000 || return 1
	"$WFS_PYTHON" tests/tools/part.py "$WFS_CORPORA/minilm-f32/model.safetensors" "$dir/part" || return 1
	"$WFS_BIN/weightfs" pack "$dir/part" -o "$dir/part.wfs" >/dev/null || return 1
	for cpu in scalar ssse3 avx2 avx512vbmi; do
		has_cpu "$cpu" || continue
		"$WFS_BIN/tests/tools/damage" "$dir/part.wfs" "$dir/part" 1000 "$cpu" || return 1
	done
	need asan && "$BUILD/asan/tests/tools/damage" "$dir/part.wfs" "$dir/part" 200
}
# Every kind of damage to whole containers, the golden ones and one packed here: CASES of each kind and file.
damage_campaign()
{
	need asan || return 1
	head -c 300000 "$WFS_CORPORA/minilm-bf16/model.safetensors" >"$dir/model"
	"$BUILD/asan/tests/tools/damage_campaign" "${CASES:-1}" tests/vectors/ok/*.wfs "$dir/model"
}
# memcheck COMMAND...: no bad access, no use of bytes that were never written, no leak. It hides AVX-512 from programs.
memcheck()
{
	valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible "$@"
}
# The tools on a small store and on the golden containers, good and bad ones; each decoder on damaged containers.
valgrind_tools()
{
	local weightfs=$WFS_BIN/weightfs cpu file status
	mkdir "$dir/store"
	"$WFS_PYTHON" - "$dir/store/model.safetensors" <<-'END' || return 1
		import sys
		import ml_dtypes, numpy as np
		from safetensors.numpy import save_file
		x = np.random.default_rng(1).standard_normal((96, 256)).astype(np.float32)
		save_file({"a": x, "b": x.astype(ml_dtypes.bfloat16), "c": x.astype(np.float16), "z": 0 * x}, sys.argv[1])
	END
	cp "$dir/store/model.safetensors" "$dir/original"
	memcheck "$weightfs" pack --in-place --threads 2 "$dir/store" >/dev/null &&
		memcheck "$weightfs" pack --level max --threads 2 "$dir/original" -o "$dir/max.wfs" >/dev/null &&
		memcheck "$weightfs" info "$dir/store/model.safetensors.wfs" >/dev/null &&
		memcheck "$weightfs" verify "$dir/store" >/dev/null &&
		memcheck "$weightfs" cat "$dir/max.wfs" | cmp - "$dir/original" &&
		memcheck "$weightfs" unpack "$dir/store/model.safetensors.wfs" -o "$dir/back" >/dev/null &&
		cmp "$dir/back" "$dir/original" || return 1
	for file in ok bad; do # some of the good ones have one bad copy of head or metadata
		status=0
		memcheck "$weightfs" verify tests/vectors/"$file"/*.wfs >/dev/null 2>"$dir/said" || status=$?
		[ "$status" = 1 ] || { tail -n 50 "$dir/said"; return 1; }
	done
	for cpu in scalar ssse3 avx2; do
		has_cpu "$cpu" || continue
		for file in "$dir/max.wfs" "$dir/store/model.safetensors.wfs"; do
			memcheck "$WFS_BIN/tests/tools/damage" "$file" "$dir/original" 6 "$cpu" || return 1
		done
	done
}
has_cpu()
{
	case $1 in
	ssse3) grep -qw ssse3 /proc/cpuinfo ;;
	avx2) grep -qw avx2 /proc/cpuinfo ;;
	avx512vbmi) grep -qw avx512_vbmi2 /proc/cpuinfo ;;
	*) true ;;
	esac
}
# The matrices above run every variant this CPU has. One line a variant of x86 that it lacks.
cpu()
{
	has_cpu "$1" || skip "this CPU has no $1: it is tested by other machines only"
}
# Older processors, emulated: the variants found on them, and that SSSE3 takes no instruction that they lack.
cpu_emulated()
{
	local model expected found
	[ "$(uname -m)" = x86_64 ] || skip "this machine is no x86-64"
	"$WFS_PYTHON" tests/tools/part.py "$WFS_CORPORA/minilm-f32/model.safetensors" "$dir/part" || return 1
	while read -r model expected; do
		found=$(qemu-x86_64 -cpu "$model" "$WFS_BIN/weightfs" bench --passes 1 --json "$dir/part" |
			"$WFS_PYTHON" -c 'import json, sys; print(*[v["variant"] for v in json.load(sys.stdin)["decode"]])')
		[ "$found" = "$expected" ] || { echo "$model: '$found', expected '$expected'"; return 1; }
	done <<-'END'
		core2duo scalar
		Nehalem scalar ssse3
		Haswell scalar ssse3 avx2
	END
	qemu-x86_64 -cpu Nehalem "$BUILD/tests/unit/test_split_decode" 300
}
fuzz()
{
	tests/fuzz/run.sh 20 "$1"
}
fuzz_targets()
{
	basename -s .c -a tests/fuzz/fuzz_*.c | cut -c6-
}
# fuzz_replay VARIANT: seeds and corpora without libFuzzer, under gcc's sanitizers or an emulator.
fuzz_replay()
{
	local name
	"$WFS_PYTHON" tests/fuzz/seeds.py "$dir/seeds" && "$WFS_BIN/tests/tools/block_seeds" "$dir/seeds/block" || return 1
	for name in $(fuzz_targets); do
		mkdir -p "$dir/seeds/$name"
		cp -r "tests/fuzz/corpus/$name" "$dir/seeds/$name/kept" 2>/dev/null
		on "$1" "$BUILD/$1/tests/fuzz/fuzz_$name" "$dir/seeds/$name" 2>"$dir/said" ||
			{ tail -n 50 "$dir/said"; return 1; }
	done
}
# AArch64 makes the containers that x86 makes and takes no damaged byte from them.
neon_containers()
{
	local dtype
	for dtype in float8_e4m3fn float16 float32 float64 bfloat16; do
		"$WFS_PYTHON" tests/tools/part.py "$WFS_CORPORA/minilm-f32/model.safetensors" "$dir/part" "$dtype" || return 1
		"$WFS_BIN/weightfs" pack --force "$dir/part" -o "$dir/part.wfs" >/dev/null &&
			on neon "$BUILD/neon/weightfs" pack --force "$dir/part" -o "$dir/neon.wfs" >/dev/null &&
			cmp "$dir/part.wfs" "$dir/neon.wfs" &&
			on neon "$BUILD/neon/weightfs" cat "$dir/part.wfs" | cmp - "$dir/part" || return 1
	done
	on neon "$BUILD/neon/tests/tools/damage" "$dir/part.wfs" "$dir/part" 100 neon
}

# ---- scripts ----------------------------------------------------------------------------------------------------------

# script VARIANT FILE: a test script on that build's programs.
script()
{
	need "$1" && WFS_BIN=$BUILD/$1 bash "$2"
}
mount_script()
{
	[ -c /dev/fuse ] || skip "there is no /dev/fuse: nothing can be mounted here"
	script "$@"
}
loader()
{
	[ -c /dev/fuse ] || skip "there is no /dev/fuse: nothing can be mounted here"
	local free_kib
	mkdir -p "$BUILD"
	free_kib=$(df --output=avail -k "$BUILD" | tail -n 1)
	if [ ! -e "${WEIGHTFS_VENV:-$BUILD/venv}/.loaders" ] && [ "$free_kib" -lt 9000000 ]; then
		skip "torch needs 9 GB of disk, $((free_kib / 1000000)) GB are free"
	fi
	WFS_PYTHON=$(tests/venv.sh loaders) || return 1
	export WFS_PYTHON
	"$WFS_PYTHON" tests/corpora.py "$WFS_CORPORA" minilm-f32 minilm-bf16 gguf >/dev/null || return 1
	WFS_BIN=$BUILD PYTHONPATH=tests/loaders "$WFS_PYTHON" "$1"
}
demo()
{
	[ -c /dev/fuse ] || skip "there is no /dev/fuse: nothing can be mounted here"
	tests/demo/demo.sh
}

# ---- the tree ---------------------------------------------------------------------------------------------------------

lint()
{
	tests/lint/lint.sh "$1"
}
# Installs below a folder, builds a program against what was installed, takes it all away again.
install_tree()
{
	local root=$dir/root
	make -s CC=gcc WERROR=1 DESTDIR="$root" PREFIX=/usr install >/dev/null || return 1
	(cd "$root" && find . -type f -o -type l | sort) >"$dir/list"
	cat "$dir/list"
	local want
	for want in ./usr/bin/weightfs ./usr/sbin/weightfsd ./sbin/mount.weightfs ./usr/lib/libwfs.a ./usr/lib/libwfs.so \
		./usr/include/wfs.h ./usr/lib/pkgconfig/libwfs.pc ./usr/share/man/man1/weightfs.1 \
		./usr/share/man/man5/weightfs.5 ./usr/share/man/man8/weightfsd.8 ./usr/share/man/man8/mount.weightfs.8; do
		grep -qx -- "$want" "$dir/list" || { echo "not installed: $want"; return 1; }
	done
	cat >"$dir/user.c" <<-'END'
		#include <stdio.h>
		#include <wfs.h>
		int main(void) { return puts(wfs_version()) < 0; }
	END
	local flags
	flags=$(PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs libwfs)
	# shellcheck disable=SC2086 # flags are words
	cc -o "$dir/user" "$dir/user.c" $flags || return 1
	LD_LIBRARY_PATH=$root/usr/lib "$dir/user" || return 1
	[ "$("$root/usr/bin/weightfs" --version | grep -c "$(LD_LIBRARY_PATH=$root/usr/lib "$dir/user")")" = 1 ] ||
		{ echo "weightfs --version and wfs_version() differ"; return 1; }
	grep -qx "Version: $("$dir/user" 2>/dev/null || LD_LIBRARY_PATH=$root/usr/lib "$dir/user")" \
		"$root/usr/lib/pkgconfig/libwfs.pc" || { echo "libwfs.pc has another version"; return 1; }
	make -s CC=gcc WERROR=1 DESTDIR="$root" PREFIX=/usr uninstall || return 1
	[ -z "$(find "$root" -type f -o -type l)" ] || { echo "left behind:"; find "$root" -type f -o -type l; return 1; }
}
man_pages()
{
	local page problems
	for page in man/*.[1-9]; do
		problems=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
		[ -z "$problems" ] || { echo "$page: $problems"; return 1; }
		groff -t -man -Tutf8 -ww -z "$page" 2>&1 | grep . && { echo "$page: see above"; return 1; }
	done
	return 0
}
# What FORMAT.md, man pages and README name exists.
documents()
{
	local path
	# shellcheck disable=SC2013 # paths without spaces
	for path in $(grep -ohE '\b(codec|fs|tests|mount-tools|man)/[A-Za-z0-9_.-]+\.(c|h|md|sh|py|[1-9])\b' README.md \
		codec/*.md man/*.[1-9] | sort -u); do
		[ -e "$path" ] || { echo "named but absent: $path"; return 1; }
	done
	# The tests that README.md takes for an example.
	sed -n 's/.*make check TESTS="\([^"]*\)".*/\1/p' README.md | xargs printf '%s\n' >"$dir/examples"
	while read -r path; do
		list_tests | cut -d' ' -f1 | matches "$path" || { echo "no such test: $path"; return 1; }
	done <"$dir/examples"
}
# A pattern that matches nothing is an error, not a run in which nothing failed.
wrong_pattern()
{
	local status=0
	tests/run-tests.sh 'lint/*' 'no/such-test' >"$dir/said" 2>&1 || status=$?
	cat "$dir/said"
	[ "$status" = 2 ] && grep -q "No test matches 'no/such-test'" "$dir/said"
}

# ---- list and run -----------------------------------------------------------------------------------------------------

# The others start no thread, so ThreadSanitizer would have nothing to look at.
threaded_units="cache container encode_file example fs_confine plan plan_sniff signable"
# What the daemon does most, for a second opinion: clang's sanitizers know what those of gcc do not, and the other way.
mounts_for_clang="damage kill signed stress stress_mixed"

# Lines NAME FUNCTION ARGUMENT...; what others need is made first.
list_tests()
{
	local file name variant
	for variant in gcc clang asan tsan asan-clang tsan-clang plain; do
		echo "build/$variant build_$variant"
	done
	for name in format layers rules shellcheck symbols tidy; do
		echo "lint/$name lint $name"
	done
	for variant in '' clang asan asan-clang tsan tsan-clang; do
		for file in tests/unit/test_*.c; do
			name=$(basename "$file" .c)
			[[ $variant == tsan* && " $threaded_units " != *" ${name#test_} "* ]] && continue
			[ -e "$file" ] && echo "units${variant:+-$variant}/${name#test_} unit ${variant:-.} $name"
		done
	done
	for name in scalar ssse3 avx2 avx512vbmi; do
		echo "cpu/$name cpu $name"
	done
	echo "cpu/emulated cpu_emulated"
	for variant in '' asan asan-clang; do
		echo "vectors${variant:+-$variant}/ok vectors_ok ${variant:-.}"
		echo "vectors${variant:+-$variant}/bad vectors_bad ${variant:-.}"
	done
	echo "format/second-reader second_reader"
	echo "format/determinism determinism"
	echo "format/saved saved"
	echo "format/grids grids"
	echo "format/damage damage"
	echo "format/damage-campaign damage_campaign"
	echo "valgrind/tools valgrind_tools"
	echo "fuzz/replay fuzz_replay asan"
	for name in $(fuzz_targets); do
		echo "fuzz/$name fuzz $name"
	done
	echo "neon/build build_neon"
	for file in tests/unit/test_*.c; do
		name=$(basename "$file" .c)
		echo "neon/${name#test_} unit neon $name"
	done
	echo "neon/vectors-ok vectors_ok neon"
	echo "neon/vectors-bad vectors_bad neon"
	echo "neon/fuzz-replay fuzz_replay neon"
	echo "neon/containers neon_containers"
	for file in tests/cli/test_*.sh; do
		name=$(basename "$file" .sh)
		[ -e "$file" ] && echo "cli/${name#test_} script . $file"
	done
	for variant in '' asan tsan asan-clang tsan-clang; do
		for file in tests/fs/test_*.sh; do
			name=$(basename "$file" .sh)
			[[ $variant == *-clang && " $mounts_for_clang " != *" ${name#test_} "* ]] && continue
			# Seconds become minutes under a sanitizer for what is large.
			[ -n "$variant" ] && [[ $name == *_big ]] && continue
			[ -e "$file" ] && echo "fs${variant:+-$variant}/${name#test_} mount_script ${variant:-.} $file"
		done
	done
	for file in tests/bench/test_*.sh; do
		name=$(basename "$file" .sh)
		[ -e "$file" ] && echo "bench/${name#test_} mount_script . $file"
	done
	for file in tests/loaders/test_*.py; do
		name=$(basename "$file" .py)
		[ -e "$file" ] && echo "loaders/${name#test_} loader $file"
	done
	echo "demo demo"
	echo "install install_tree"
	echo "documents/man man_pages"
	echo "documents/paths documents"
	echo "wrong-pattern wrong_pattern"
}

# matches PATTERN: whether one of the names on standard input does.
matches()
{
	local name
	while read -r name; do
		# shellcheck disable=SC2053 # a pattern
		[[ $name == $1 || $name == $1/* ]] && return 0
	done
	return 1
}

wanted()
{
	local pattern
	[ ${#patterns[@]} -eq 0 ] && return 0
	for pattern in "${patterns[@]}"; do
		matches "$pattern" <<<"$1" && return 0
	done
	return 1
}

# In a subshell with a folder of its own, killed with all it started when it takes too long.
run_one()
{
	dir=$(mktemp -d "$WFS_TMP/XXXXXX")
	trap 'rm -rf "$dir"' EXIT
	# Also what a daemon says that has no terminal any more, and at its end.
	local said=$dir/sanitizer status
	export ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$said UBSAN_OPTIONS=$UBSAN_OPTIONS:log_path=$said
	export TSAN_OPTIONS=$TSAN_OPTIONS:log_path=$said
	("$@")
	status=$?
	# Mere warnings, as of a missing symbolizer, count for nothing.
	if grep -qsE 'ERROR:|SUMMARY:|runtime error' "$said".*; then
		cat "$said".*
		status=1
	fi
	return "$status"
}

# Unmount and remove what a test that was killed has left.
sweep()
{
	local mnt
	while read -r _ mnt _; do
		[[ $mnt == "$WFS_TMP"/* ]] && { umount -l "$mnt" 2>/dev/null || fusermount3 -uzq "$mnt"; }
	done </proc/self/mounts
	rm -rf "$WFS_TMP"
	mkdir -p "$WFS_TMP"
}

# A function, so that the script may be edited while it runs.
main()
{
	patterns=()
	for argument; do
		case $argument in
		-l)
			list_tests | cut -d' ' -f1
			exit 0
			;;
		--one) # run-tests.sh --one FUNCTION ARGUMENT...
			shift
			run_one "$@"
			exit
			;;
		*) patterns+=("$argument") ;;
		esac
	done

	# A misspelt one must not look like a run in which nothing failed.
	names=$(list_tests | cut -d' ' -f1)
	for pattern in "${patterns[@]}"; do
		matches "$pattern" <<<"$names" || { echo "No test matches '$pattern': tests/run-tests.sh -l lists them."; exit 2; }
	done

	mkdir -p "$BUILD/logs"
	exec 9>"$BUILD/run-tests.lock"
	flock -n 9 || { echo "Tests are running in $BUILD already."; exit 2; }
	sweep
	start=$SECONDS
	echo "Building, and making the test data"
	if ! build_gcc; then
		echo "The build failed."
		echo "0 passed, 1 failed"
		exit 1
	fi
	if ! WFS_PYTHON=$(tests/venv.sh small) ||
		! "$WFS_PYTHON" tests/corpora.py "$WFS_CORPORA" minilm-f32 minilm-bf16 minilm-f16 minilm-f32-from-bf16 \
			llama-like-60 >/dev/null; then
		echo "The test data could not be made."
		echo "0 passed, 1 failed"
		exit 1
	fi
	export WFS_PYTHON

	# The sanitizers of gcc 12 and clang 14 lose their way when the kernel randomises more address bits than they know.
	local fixed=()
	if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ] && setarch -R true 2>/dev/null; then
		fixed=(setarch -R)
	fi
	passed=0 failed=0 skipped=0 failures=
	while read -r name command; do
		wanted "$name" || continue
		log=$BUILD/logs/${name//\//-}.log
		begin=$(date +%s%N)
		# shellcheck disable=SC2086 # a function and its arguments
		timeout -k 20 "$limit_seconds" "${fixed[@]}" "$0" --one $command >"$log" 2>&1 </dev/null 9>&-
		status=$?
		took=$((($(date +%s%N) - begin) / 100000000))
		took=$((took / 10)).$((took % 10))
		case $status in
		0)
			passed=$((passed + 1))
			printf 'ok   %7s s  %s\n' "$took" "$name"
			sed -n 's/^NOT TRIED /    not tried: /p' "$log"
			;;
		77)
			skipped=$((skipped + 1))
			printf 'SKIPPED        %s: %s\n' "$name" "$(grep '^SKIP' "$log" | tail -n 1 | cut -c6-)"
			;;
		*)
			failed=$((failed + 1))
			failures="$failures $name"
			printf 'FAIL %7s s  %s (status %s)\n' "$took" "$name" "$status"
			tail -n 100 "$log" | sed 's/^/    /'
			[ $status -lt 124 ] || sweep
			;;
		esac
	done < <(list_tests)

	echo "The tests took $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s."
	[ -z "$failures" ] || echo "Failed:$failures"
	echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
	[ $failed -eq 0 ] && [ $passed -gt 0 ]
}
main "$@"; exit
