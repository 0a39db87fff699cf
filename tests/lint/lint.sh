#!/bin/bash
# lint.sh [NAME...]: run the checks of source text, all or those named. Status 1 when one fails.
# shellcheck disable=SC2317 # the functions are called by constructed names
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}
jobs=$(nproc)

mapfile -t sources < <(find codec fs mount-tools gpu tests -name '*.[ch]' 2>/dev/null | sort)
mapfile -t units < <(printf '%s\n' "${sources[@]}" | grep '\.c$')
mapfile -t scripts < <(find tests tools man .ci -name '*.sh' 2>/dev/null; echo .ci/run)
flags=(-std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Icodec -I. -Ifs -Itests -DFUSE_USE_VERSION=314
	-DBINDIR='"/bin"' -DSBINDIR='"/sbin"')
read -ra fuse < <(pkg-config --cflags fuse3)
flags+=("${fuse[@]}")

# Left out: opinions (easily-swappable, sizeof of a pointer, !strcmp, suffixes in lower case); Annex K, which glibc lacks;
# narrowing in masks, which is meant; macro arguments that are types; bytes copied without a terminator; FUSE's handles,
# which are integers; what gcc warns about. Of the analyzer those that see neither across files nor through list links:
# the sanitizer runs take their place.
tidy_checks='-*,bugprone-*,clang-analyzer-*,cert-*,performance-*,portability-*,misc-redundant-expression,
misc-unused-parameters,readability-misleading-indentation,readability-function-size,
-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,-bugprone-reserved-identifier,
-bugprone-macro-parentheses,-bugprone-not-null-terminated-result,-bugprone-sizeof-expression,
-bugprone-suspicious-string-compare,-bugprone-implicit-widening-of-multiplication-result,
-bugprone-misplaced-widening-cast,-bugprone-assignment-in-if-condition,-performance-no-int-to-ptr,
-clang-analyzer-security.insecureAPI.*,-clang-analyzer-optin.performance.Padding,
-clang-analyzer-core.UndefinedBinaryOperatorResult,-clang-analyzer-core.CallAndMessage,-clang-analyzer-unix.Malloc,
-cert-dcl16-c,-cert-dcl37-c,-cert-dcl51-cpp,-cert-err33-c,-cert-err34-c,-cert-msc30-c,-cert-msc32-c,-cert-msc50-cpp,
-cert-msc51-cpp'

lint_format()
{
	clang-format-14 --dry-run -Werror "${sources[@]}"
}
# tidy CHECKS FILE...
tidy()
{
	local checks=$1
	shift
	printf '%s\0' "$@" | xargs -0 -I{} -P "$jobs" clang-tidy-14 --quiet --warnings-as-errors='*' \
		--checks="$(tr -d '\n' <<<"$checks")" \
		--config='{CheckOptions: [{key: readability-function-size.LineThreshold, value: "60"},
		{key: readability-function-size.StatementThreshold, value: "100000"}]}' {} -- "${flags[@]}" \
		2> >(grep -v 'warnings\? generated' >&2)
}
# The tests' own checks end the program, which the analyzer does not see.
lint_tidy()
{
	mapfile -t product < <(printf '%s\n' "${units[@]}" | grep -v '^tests/')
	mapfile -t tests < <(printf '%s\n' "${units[@]}" | grep '^tests/')
	tidy "$tidy_checks" "${product[@]}" && tidy "$tidy_checks,-clang-analyzer-*,-cert-*" "${tests[@]}"
}
lint_shellcheck()
{
	# SC2015: `a && b || fail` is meant: fail does not return. SC1091: lib.sh lies beside the script.
	shellcheck -x -e SC2015,SC1091 "${scripts[@]}"
}
lint_layers()
{
	tests/lint/layers.sh
}
lint_rules()
{
	tests/lint/rules.sh
}
lint_symbols()
{
	make -s -j "$jobs" libs && tests/lint/symbols.sh "$BUILD"
}

status=0
[ $# -gt 0 ] || set -- format layers rules shellcheck symbols tidy
for name; do
	if "lint_$name"; then
		echo "lint $name: ok"
	else
		echo "lint $name: FAILED"
		status=1
	fi
done
exit $status
