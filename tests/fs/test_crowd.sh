#!/bin/bash
# Many processes and threads fault and read at random in several files at once: nothing hangs, every byte is right.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
names=(values-tied dtype-f32 values-rows-of-unlike-scale tensors-fp8-and-scales)
for name in "${names[@]}"; do
	pack "$dir/zoo/$name.safetensors" "$dir/store/$name.wfs"
done
# A cache smaller than what is read at once, one decoding thread, then many.
for options in cache=16M,threads=1 cache=16M,threads=8 entry_timeout=0; do
	mount_store "$dir/store" "$dir/mnt" -o "$options"
	pids=()
	for name in "${names[@]}" "${names[@]}" "${names[@]}"; do
		access_many "$dir/zoo/$name.safetensors" "$dir/mnt/$name" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "a reader in the crowd ($options)"
	done
	unmount "$dir/mnt"
done
