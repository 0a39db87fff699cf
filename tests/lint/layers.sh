#!/bin/bash
# layers.sh [TREE]: who may include whom. tests -> all; fs -> gpu -> codec; mount-tools -> gpu -> codec.
#
# codec and gpu show those above them their public headers only. An include is judged by the folder in which its file
# lies, so a folder added later fails here until its rule is written down.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 1
public='codec/wfs.h codec/access_list.h codec/manifest.h codec/printable.h codec/temporary.h gpu/wfs_gpu.h'
status=0

# allowed FOLDER FILE: may a file of FOLDER include FILE?
allowed()
{
	case $1 in
	codec) [[ $2 == codec/* ]] ;;
	gpu) [[ $2 == gpu/* || $2 == codec/wfs.h ]] ;;
	fs | mount-tools) [[ $2 == "$1"/* || " $public " == *" $2 "* ]] ;;
	tests) true ;;
	*) false ;;
	esac
}

# Where the quoted include NAME of FILE is found: beside it, or by the Makefile's -I (codec; for tests . and fs too).
resolve()
{
	local dir
	for dir in "$(dirname "$1")" codec gpu . fs tests; do
		if [ -e "$dir/$2" ]; then
			realpath --relative-to=. "$dir/$2"
			return
		fi
	done
	echo "$2"
}

nr=0
for file in $(find . -path ./build -prune -o -path ./.git -prune -o \( -name '*.[ch]' -o -name '*.cu' \) -print | sort); do
	file=${file#./}
	nr=$((nr + 1))
	while read -r name; do
		target=$(resolve "$file" "$name")
		if ! allowed "${file%%/*}" "$target"; then
			echo "$file: may not include $target"
			status=1
		fi
	done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file")
	# Libraries: FUSE is the daemon's business, CUDA the gpu folder's.
	case $file in
	fs/* | tests/*) ;;
	*) grep -Hn 'include.*<fuse' "$file" && status=1 ;;
	esac
	case $file in
	gpu/* | tests/*) ;;
	*) grep -Hn 'include.*<cuda' "$file" && status=1 ;;
	esac
done
if [ $nr -eq 0 ]; then
	echo "layers.sh: no source files found" && exit 1
fi
exit $status
