#!/bin/bash
# The mount serves the same bytes whichever decoder is forced; a decoder that this machine lacks is refused.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

zoo "$dir/src"
mkdir "$dir/store"
for file in "$dir"/src/{dtype,phase,rows,values,tensors,bf16}-*; do
	[ "$(stat -c %s "$file")" -lt 5000000 ] || continue
	pack "$file" "$dir/store/${file##*/}.wfs"
done
mapfile -t here < <(variants)
for cpu in scalar ssse3 avx2 avx512vbmi neon; do
	if [[ " ${here[*]} " != *" $cpu "* ]]; then
		mkdir -p "$dir/mnt"
		expect_status 2 weightfs mount "$dir/store" "$dir/mnt" -o "cpu=$cpu"
		echo "note: this machine has no $cpu"
		continue
	fi
	mount_store "$dir/store" "$dir/mnt" -o "cpu=$cpu"
	weightfs stats "$dir/mnt" --json | grep -q "\"$cpu\"" || fail "stats do not name $cpu"
	for file in "$dir"/store/*; do
		name=$(basename "$file" .wfs)
		access "$dir/src/$name" "$dir/mnt/$name" read pread-random direct || fail "$name with $cpu"
		access_many "$dir/src/$name" "$dir/mnt/$name" threads-faults || fail "$name with $cpu"
	done
	unmount "$dir/mnt"
done
mkdir -p "$dir/mnt"
expect_status 2 weightfs mount "$dir/store" "$dir/mnt" -o cpu=sse9
