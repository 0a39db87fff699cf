#!/bin/bash
# kill -9 at 30 moments of pack --in-place, and as many of unpack --in-place: each time every file is there, as it was or as
# a container that is whole; the next run finishes and leaves no temporary; nothing is lost over many kills in a row.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

mkdir -p "$dir/src/sub"
weights "$dir/src/a" 1 1
weights "$dir/src/b" 2 2
weights "$dir/src/sub/c" 9 3 # more than a small file
weights "$dir/src/sub/d" 1 4
ln "$dir/src/a" "$dir/src/sub/a-too"
echo small >"$dir/src/small"
names=(a b sub/c sub/d sub/a-too)
cp -a "$dir/src" "$dir/whole"
ok weightfs pack --in-place "$dir/whole"

# Every file is there: the original, or a container whose bytes are the original's.
nothing_lost()
{
	local tree=$1 name
	for name in "${names[@]}"; do
		if [ -e "$tree/$name" ]; then
			cmp -s "$tree/$name" "$dir/src/$name" || fail "$2: $name is not the original"
		else
			[ -e "$tree/$name.wfs" ] || fail "$2: $name is lost"
		fi
		if [ -e "$tree/$name.wfs" ]; then
			weightfs cat "$tree/$name.wfs" | cmp -s - "$dir/src/$name" || fail "$2: $name.wfs is not whole"
		fi
	done
	cmp -s "$tree/small" "$dir/src/small" || fail "$2: small"
}

# seconds COMMAND...: how long it takes, to choose moments.
seconds()
{
	local start=$EPOCHREALTIME
	"$@" >/dev/null
	"$WFS_PYTHON" -c "print($EPOCHREALTIME - $start)"
}

# kills PACK_OR_UNPACK BEFORE AFTER: trees of before and after.
kills()
{
	local command=$1 before=$2 after=$3 i moment whole
	cp -a "$before" "$dir/tree"
	whole=$(seconds weightfs "$command" --in-place "$dir/tree")
	for i in {0..29}; do
		rm -rf "$dir/tree"
		cp -a "$before" "$dir/tree"
		moment=$("$WFS_PYTHON" -c "print($whole * $i / 30)")
		"$WFS_PYTHON" "$tests/cli/kill_after.py" "$moment" "$WFS_BIN/weightfs" "$command" --in-place "$dir/tree"
		nothing_lost "$dir/tree" "$command killed after $moment s"
		ok weightfs "$command" --in-place "$dir/tree"
		nothing_lost "$dir/tree" "$command after a kill at $moment s"
		no_temporaries "$dir/tree"
		# Only times of directories may differ: a killed run cannot set them.
		diff <(manifest "$after" | grep -v "^b'[^']*' 0o4") <(manifest "$dir/tree" | grep -v "^b'[^']*' 0o4") \
			>"$dir/.diff" || fail "$command after a kill at $moment s: $(head -n 5 "$dir/.diff")"
	done
	# Many kills of one tree: it gets there in the end.
	rm -rf "$dir/tree"
	cp -a "$before" "$dir/tree"
	for i in {1..20}; do
		moment=$("$WFS_PYTHON" -c "print($whole * $i / 20)")
		"$WFS_PYTHON" "$tests/cli/kill_after.py" "$moment" "$WFS_BIN/weightfs" "$command" --in-place "$dir/tree"
		nothing_lost "$dir/tree" "$command killed again and again"
	done
	ok weightfs "$command" --in-place "$dir/tree"
	nothing_lost "$dir/tree" "$command in the end"
	no_temporaries "$dir/tree"
	rm -rf "$dir/tree"
}
kills pack "$dir/src" "$dir/whole"
kills unpack "$dir/whole" "$dir/src"

# The same from tree to tree: the store never holds a half container, and a second run completes it.
whole=$(seconds weightfs pack "$dir/src" -o "$dir/store")
for i in {0..9}; do
	rm -rf "$dir/store"
	moment=$("$WFS_PYTHON" -c "print($whole * $i / 10)")
	"$WFS_PYTHON" "$tests/cli/kill_after.py" "$moment" "$WFS_BIN/weightfs" pack "$dir/src" -o "$dir/store"
	if [ -d "$dir/store" ]; then
		# Killed before the first container: said, and no failure.
		none=
		[ -n "$(find "$dir/store" -name "*.wfs")" ] || none="no container was found"
		expect 0 "$none" weightfs verify "$dir/store"
	fi
	ok weightfs pack "$dir/src" -o "$dir/store"
	no_temporaries "$dir/store"
	rm -rf "$dir/back"
	ok weightfs unpack "$dir/store" -o "$dir/back"
	same_tree "$dir/src" "$dir/back"
done
