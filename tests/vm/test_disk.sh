#!/bin/bash
# Disks that fail, by the device mapper, under ext4 and xfs: sectors that cannot be read, in the middle of a container
# and in its heads; writes that fail or are dropped with a word of success, from any step of pack --in-place on.
# WFS_POINTS: at how many steps.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. tests/cli/lib.sh
# shellcheck source=tests/vm/disk.sh
. tests/vm/disk.sh
modprobe fuse

"$WFS_PYTHON" tests/vm/model.py "$dir/model"
weights "$dir/b" 1 2
export WFS_FAULTS=$BUILD/vm/faults.so

# places CONTAINER: bytes in the stored form of two blocks, those of layer.3 and layer.20.
places()
{
	"$WFS_PYTHON" - "$1" <<-'END'
		import sys
		sys.path.insert(0, "tests/vectors")
		import wfsfile
		box = wfsfile.Container(open(sys.argv[1], "rb").read())
		for block in (4, 21):
		    print(box.head["payload_off"] + sum(box.lengths[:block]) + 9000)
	END
}
# Blocks that cannot be read: verify lists the tensors, and what is around them is saved and served.
bad_blocks()
{
	local container=$disk/model.wfs first=$((1 << 18)) bad off line
	weightfs pack -q "$dir/model" -o "$container" >/dev/null
	sync
	bad=
	for off in $(places "$container"); do
		bad+=" $(sector "$container" "$off") 1"
	done
	echo 3 >/proc/sys/vm/drop_caches
	# shellcheck disable=SC2086 # two words a sector
	bad_sectors $bad
	expect 1 "block 4" weightfs verify "$container"
	for line in "lost: bytes $((first + 3 * first)) to $((first + 4 * first - 1))" "hit: tensor layer.3 (BF16)" \
		"hit: tensor layer.20 (BF16)"; do
		says "$line"
	done
	! grep -qE 'layer\.(2|4|19|21) ' "$out" || fail "tensors that are whole: $(cat "$out")"
	expect 1 "are lost, the rest is in" weightfs unpack --keep-going "$container" -o "$dir/saved"
	around "$dir/saved.partial"
	rm "$dir"/saved.partial*
	expect 1 "2 of 41 blocks are damaged; restore it" weightfs verify --repair "$container"
	mount_bad
	disk_becomes "$good"
	echo 3 >/proc/sys/vm/drop_caches
	ok weightfs verify "$container"
}
# around FILE: the original, but for two tensors.
around()
{
	"$WFS_PYTHON" - "$1" "$dir/model" <<-'END' || fail "what is around the bad blocks: $1"
		import sys
		size = 1 << 18
		got, want = (open(path, "rb").read() for path in sys.argv[1:3])
		assert len(got) == len(want)
		for i in range(41):
		    a, b = got[i * size:(i + 1) * size], want[i * size:(i + 1) * size]
		    assert a == (bytes(size) if i in (4, 21) else b), i
	END
}
mount_bad()
{
	local mnt=$dir/mnt size=$((1 << 18)) i got
	mkdir -p "$mnt"
	weightfs mount "$disk" "$mnt" -o "log=$dir/log,io_timeout=10" || fail "cannot mount"
	for _ in 1 2; do
		for i in {0..40}; do
			got=0
			dd if="$mnt/model" bs=$size skip="$i" count=1 of="$dir/piece" status=none 2>/dev/null || got=1
			case $i in
			4 | 21) [ $got = 1 ] || fail "block $i, which cannot be read, was served" ;;
			*) [ $got = 0 ] && cmp -s "$dir/piece" <(dd if="$dir/model" bs=$size skip="$i" count=1 status=none) ||
				fail "block $i beside the bad ones" ;;
			esac
		done
		echo 1 >/proc/sys/vm/drop_caches
	done
	[ "$(grep -c 'cannot read model' "$dir/log")" = 1 ] ||
		fail "read errors of one file, and not one line: $(cat "$dir/log")"
	weightfs umount "$mnt" || fail "cannot unmount"
	rm "$dir/log"
}
# The first sector of head A, the last one of head B: all is read by the other; what the disk cannot write stays.
bad_head()
{
	local container=$disk/model.wfs off
	for off in 0 $(($(stat -c %s "$container") - 512)); do
		bad_sectors "$(sector "$container" "$off")" 1
		echo 3 >/proc/sys/vm/drop_caches
		expect 1 "every byte of the original is right" weightfs verify "$container"
		weightfs cat "$container" | cmp -s - "$dir/model" || fail "cat with a bad head at $off"
		echo 3 >/proc/sys/vm/drop_caches
		expect 1 "cannot be written anew: Input/output error" weightfs verify --repair "$container"
		disk_becomes "$good"
		echo 3 >/proc/sys/vm/drop_caches
		ok weightfs verify "$container"
	done
}
# The disk says that it has written and has not, until the container has been synced: what is read back is what it has,
# and the original stays.
dropped_writes()
{
	rm -rf "${disk:?}/tree"
	mkdir "$disk/tree"
	# So that what was there before is neither zeros nor, by chance, the container.
	cp "$dir/b" "$disk/tree/b"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	disk_becomes "$lying"
	printf "%s\\n" ". tests/vm/disk.sh" "disk_becomes \"\$good\"" "touch $dir/healed" >"$dir/heal.sh"
	expect 1 "b: the new container cannot be read back, left as it is" env LD_PRELOAD="$WFS_FAULTS" FAULT_ROOT="$disk" \
		FAULT_CALLS=,forget, FAULT_AT=1 FAULT_ACTION=run FAULT_COMMAND="bash $dir/heal.sh" \
		"$WFS_BIN/weightfs" pack --in-place "$disk/tree"
	[ -e "$dir/healed" ] && cmp -s "$disk/tree/b" "$dir/b" && [ ! -e "$disk/tree/b.wfs" ] || fail "dropped writes"
	rm "$dir/healed"
}
# failing_writes FSTYPE: a disk that refuses or drops writes (bad_disk.py).
failing_writes()
{
	mkdir "$dir/$1"
	"$WFS_PYTHON" tests/vm/bad_disk.py "$1" "$dir/$1" "${WFS_POINTS:-6}"
}
for fstype in ${WFS_FSTYPES:-ext4 xfs}; do
	echo "$fstype"
	fresh_disk "$fstype"
	bad_blocks
	bad_head
	remove_disk
	fresh_disk "$fstype"
	failing_writes "$fstype"
	dropped_writes
	remove_disk
done
