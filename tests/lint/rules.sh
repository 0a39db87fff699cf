#!/bin/bash
# rules.sh [TREE]: rules of the house that a pattern can check: banned functions, file lengths, header comments,
# names of machines.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 1
status=0
# Prints matches of a pattern as FILE:LINE with the reason after them. ban REASON PATTERN FILE...
ban()
{
	local reason=$1 pattern=$2 hits
	shift 2
	hits=$(grep -nHP "$pattern" "$@" /dev/null | grep -vP '^[^:]*:[0-9]+:\s*(\*|/\*|//)') || return 0
	printf '%s\n' "$hits" | sed "s|\$|   <-- $reason|"
	status=1
}
all()
{
	find . -path ./build -prune -o -path ./.git -prune -o -type f \( "$@" \) -print | sort
}

mapfile -t sources < <(all -name '*.[ch]' -o -name '*.cu')
mapfile -t product < <(printf '%s\n' "${sources[@]}" | grep -v '^./tests/')
mapfile -t codec < <(find ./codec -name '*.[ch]')
mapfile -t tree < <(all -not -name '*.wfs' -not -name '*.bin' -not -path './tests/lint/rules.sh')

ban 'unbounded or unsafe' '\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|alloca|tmpnam|mktemp)\s*\(' \
	"${product[@]}"
ban 'a shell is not needed' '\b(system|popen)\s*\(' "${product[@]}"
ban 'the codec does not print or exit' '\b(printf|fprintf|puts|putchar|perror|exit|_exit|abort|assert)\s*\(|\bstd(err|out)\b' \
	"${codec[@]}"
ban 'the codec reads no environment' '\b(secure_)?getenv\s*\(' "${codec[@]}"
ban 'unfinished' '\b(TODO|FIXME|XXX)\b' "${sources[@]}"
ban 'a path of one machine' '(^|[^A-Za-z0-9_.-])/(work|root|home/[a-z]|tmp/wfs)/' "${tree[@]}"

# FILE REASON of the exceptions to 500 lines.
exceptions=''
for file in "${sources[@]}"; do
	lines=$(wc -l <"$file")
	if [[ $file == *.c ]] && [ "$lines" -gt 500 ] && [[ " $exceptions " != *" $file "* ]]; then
		echo "$file: $lines lines, more than 500"
		status=1
	fi
	if ! head -n 1 "$file" | grep -q '^/\*'; then
		echo "$file: begins without a header comment"
		status=1
	fi
done
exit $status
