#!/bin/bash
# Threads read in random ways, past and through the page cache, with advice in between: the right bytes from each decoder.
#
# WFS_MIXED_SEED=N: other operations; WFS_MIXED_RUNS=N: so many seeds from there on.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

seed=${WFS_MIXED_SEED:-1} runs=${WFS_MIXED_RUNS:-1}
mib=24 operations=160
! is_sanitized || operations=100
! is_thread_sanitized || mib=8 operations=60
shards "$dir" $mib BF16 F32 F8_E4M3
# Borders at odd places, tensors that are copies or constant, and many blocks of a few hundred bytes.
"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
for name in phase-bf16-1 phase-f64-7 values-tied values-sparse tensors-alternating-dtypes; do
	[ -e "$dir/zoo/$name.safetensors" ] || fail "the zoo has no $name"
	cp -p "$dir/zoo/$name.safetensors" "$dir/src"
	pack "$dir/src/$name.safetensors" "$dir/store/$name.safetensors.wfs"
done
mapfile -t cpus < <(variants)
for ((run = 0; run < runs; run++)); do
	for cpu in "${cpus[@]}"; do
		for cache in 16M 256M; do
			[ $cache != 16M ] || make_cold "$dir"/store/*
			mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o "cpu=$cpu,cache=$cache"
			for file in "$dir"/src/*; do
				bounded 60 mixed_reader $((seed + run)) 8 $operations "$file" "$dir/mnt/${file##*/}"
			done
			errors=$(nr read_errors "$dir/mnt")
			[ "$errors" -eq 0 ] || fail "$errors failed reads, $cpu, cache $cache"
			echo "note: $cpu, cache $cache: decoded $(nr blocks_decoded "$dir/mnt") blocks"
			unmount "$dir/mnt"
		done
	done
done
