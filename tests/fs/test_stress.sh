#!/bin/bash
# 16 processes of 64 threads fault 1,000 pages a thread in at random over 8 shards: the right bytes, and no hang.
#
# Once, with a cache smaller than the shards; a quarter as many under a sanitizer of addresses, fewer under that of
# threads. WFS_STORM_RUNS=20 asks for twenty runs, each with a seed and a mount of its own and with another size of the
# cache; WFS_STORM_SEED=N for other random places.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

runs=${WFS_STORM_RUNS:-1} seed=${WFS_STORM_SEED:-1}
processes=16 threads=64 faults=1000 mib=32
if is_thread_sanitized; then
	processes=8 threads=32 faults=400 mib=8
elif is_sanitized; then
	processes=8 threads=32 faults=500 mib=16
fi
shards "$dir" $mib BF16 F16 F32 F8_E4M3 BF16 F32 I32 BF16
pairs=()
for file in "$dir"/src/*; do
	pairs+=("$file" "$dir/mnt/${file##*/}")
done
total=$(blocks "$dir"/store/*)
caches=(64M 16M 256M)
for ((run = 0; run < runs; run++)); do
	cache=${caches[run % 3]}
	make_cold "$dir"/store/shard-[1-4].* # half is read from the disk, half from the page cache
	mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o "cache=$cache"
	bounded 240 fault_storm $((seed + run)) $processes $threads $faults "${pairs[@]}"
	decoded=$(nr blocks_decoded "$dir/mnt") errors=$(nr read_errors "$dir/mnt") late=$(nr timeouts "$dir/mnt")
	echo "note: run $run, seed $((seed + run)), cache $cache: $total blocks, decoded $decoded"
	[ "$errors" -eq 0 ] && [ "$late" -eq 0 ] || fail "$errors failed reads, $late timeouts"
	# Else the page cache has answered most faults and little is proven.
	[ "$decoded" -ge "$total" ] || fail "of $total blocks only $decoded were decoded"
	unmount "$dir/mnt"
done
