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
	-DBINDIR='"/bin"' -DSBINDIR='"/sbin"' -DWEIGHTFSD_DIR='"/sbin"' -DWEIGHTFSD_VERSION='"1"')
read -ra fuse < <(pkg-config --cflags fuse3)
flags+=("${fuse[@]}")

# Left out, with the reason: opinions (easily-swappable, magic numbers, identifier length), the bounds-checked libc of
# Annex K that glibc lacks (DeprecatedOrUnsafeBufferHandling), signedness and narrowing that the code does on purpose
# in masks, parentheses around macro arguments that are types or literals, bytes copied
# without a terminator, and duplicates of gcc's warnings.
tidy_checks='-*,bugprone-*,clang-analyzer-*,cert-*,performance-*,portability-*,misc-redundant-expression,
misc-unused-parameters,readability-misleading-indentation,readability-function-size,readability-redundant-*,
-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,-bugprone-reserved-identifier,
-bugprone-macro-parentheses,-bugprone-not-null-terminated-result,-bugprone-implicit-widening-of-multiplication-result,-bugprone-assignment-in-if-condition,
-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,-clang-analyzer-optin.performance.Padding,
-cert-dcl37-c,-cert-dcl51-cpp,-cert-err33-c,-cert-msc30-c,-cert-msc32-c,-cert-msc50-cpp,-cert-msc51-cpp'

lint_format()
{
	clang-format-14 --dry-run -Werror "${sources[@]}"
}
lint_tidy()
{
	printf '%s\0' "${units[@]}" | xargs -0 -I{} -P "$jobs" clang-tidy-14 --quiet --warnings-as-errors='*' \
		--checks="$(tr -d '\n' <<<"$tidy_checks")" \
		--config='{CheckOptions: [{key: readability-function-size.LineThreshold, value: "70"},
		{key: readability-function-size.StatementThreshold, value: "100000"}]}' {} -- "${flags[@]}"
}
# cppcheck's uninitvar does not see what is filled through a pointer in a macro; the analyzer of clang-tidy does.
lint_cppcheck()
{
	cppcheck -q -j "$jobs" --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
		--suppress=missingIncludeSystem --suppress=uninitvar --library=posix --platform=unix64 \
		-D__BYTE_ORDER__=1 -D__ORDER_LITTLE_ENDIAN__=1 "${flags[@]:1:4}" codec fs mount-tools
}
lint_shellcheck()
{
	shellcheck -x "${scripts[@]}"
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
[ $# -gt 0 ] || set -- format layers rules shellcheck symbols cppcheck tidy
for name; do
	if "lint_$name"; then
		echo "lint $name: ok"
	else
		echo "lint $name: FAILED"
		status=1
	fi
done
exit $status
