#!/bin/bash
# A block is decoded once, however many want it: 4 KiB faults at random, many threads, many descriptors, many processes.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
for name in values-tied dtype-f32 values-rows-of-unlike-scale; do
	pack "$dir/zoo/$name.safetensors" "$dir/store/$name.wfs"
done
decoded()
{
	weightfs stats "$dir/mnt" --json |
		"$WFS_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["blocks_decoded"])'
}
nr_blocks()
{
	weightfs info "$dir/store/$1.wfs" --json | "$WFS_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["blocks"])'
}
for name in values-tied dtype-f32 values-rows-of-unlike-scale; do
	blocks=$(nr_blocks "$name")
	for way in random-faults threads; do
		mount_store "$dir/store" "$dir/mnt" -o cache=64M
		if [ $way = threads ]; then
			access_many "$dir/zoo/$name.safetensors" "$dir/mnt/$name" threads-many-fds threads-faults forks
		else
			"$WFS_PYTHON" - "$dir/mnt/$name" <<'END'
import mmap, random, sys
with open(sys.argv[1], "rb") as f:
    view = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
view.madvise(mmap.MADV_RANDOM)
pages = list(range(0, len(view), 4096))
random.Random(1).shuffle(pages)
print("note: sum", sum(view[p] for p in pages))
END
		fi
		got=$(decoded)
		[ "$got" -le "$blocks" ] || fail "$name has $blocks blocks, $way decoded $got"
		[ "$got" -gt 0 ] || fail "nothing was decoded"
		unmount "$dir/mnt"
	done
done
