#!/bin/bash
# A real file system on a disk that fails: bytes that cannot be read, writes that are lost, bytes that change between the
# write and the proof, no room. The originals stay, the reason is said, and with a good disk the same command finishes.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root for a loop device"
command -v mkfs.ext4 losetup filefrag >/dev/null || skip "mkfs.ext4, losetup or filefrag is missing"
disk=$dir/disk backing=$dir/backing image=$dir/backing/image
mkdir "$disk" "$backing" "$dir/src"
cleanup_disk()
{
	local ended=$?
	set +e
	umount -l "$disk" 2>/dev/null
	umount -l "$backing" 2>/dev/null
	(exit "$ended")
	cleanup
}
trap cleanup_disk EXIT
mount -t tmpfs -o size=100m tmpfs "$backing" 2>/dev/null || skip "cannot mount a file system here"
truncate -s 64M "$image"
mkfs.ext4 -q -F -b 4096 -O ^resize_inode,^has_journal -E lazy_itable_init=0,nodiscard "$image"
mount -o loop,nodiscard "$image" "$disk" 2>/dev/null || skip "there is no loop device"
weights "$dir/src/a" 12 1
weights "$dir/src/b" 1 2
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o "$dir/faults.so" "$tests/cli/faults.c"

fill()
{
	rm -rf "${disk:?}"/*
	cp -a "$dir/src/." "$disk"
	sync -f "$disk"
}
# last_byte FILE: where on the disk its last block ends. Needs no page of it.
last_byte()
{
	filefrag -e "$1" | awk '/^ *[0-9]+:/ {gsub(/[.:]/, " "); end = $5} END {print (end + 1) * 4096}'
}
# forget FILE: its pages are read from the disk next time.
forget()
{
	dd if="$1" iflag=nocache count=0 status=none
}
finishes()
{
	ok weightfs pack --in-place "$disk"
	ok weightfs verify "$disk"
	for name in a b; do
		[ ! -e "$disk/$name" ] && weightfs cat "$disk/$name.wfs" | cmp -s - "$dir/src/$name" || fail "$1: $name"
	done
	no_temporaries "$disk"
}

# The end of a cannot be read: it stays; then it can. b would be written behind the cut and make the disk longer.
fill
rm "$disk/b"
cut=$(($(last_byte "$disk/a") - 1000000))
tail -c "+$((cut + 1))" "$image" >"$dir/tail"
forget "$disk/a"
truncate -s "$cut" "$image"
expect 1 "Input/output error" weightfs pack --in-place "$disk"
[ -e "$disk/a" ] && [ ! -e "$disk/a.wfs" ] || fail "a cut disk"
no_temporaries "$disk"
dd if="$dir/tail" of="$image" bs=1M seek="$cut" oflag=seek_bytes conv=notrunc status=none
# The kernel may have kept zeros for what it could not read.
forget "$disk/a"
cp -a "$dir/src/b" "$disk"
finishes "a disk that was cut"

# Bytes change on the disk after they were written and before they are read back: seen, for nothing comes from memory.
# flip COMMAND...: the first time a file was written and forgotten, its last whole block on the disk gets another byte.
flip()
{
	local command=("$@")
	cat >"$dir/flip.sh" <<-END
		for file in $disk/.*.weightfs-*.tmp $disk/$target; do
			[ -s "\$file" ] || continue
			end=\$(filefrag -e "\$file" | awk '/^ *[0-9]+:/ {gsub(/[.:]/, " "); end = \$5} END {print (end + 1) * 4096}')
			printf '\\377\\000\\377' | dd of=$image bs=1 seek=\$((end - 300000)) conv=notrunc status=none
			touch $dir/flipped
			exit
		done
	END
	rm -f "$dir/flipped"
	LD_PRELOAD=$dir/faults.so FAULT_ROOT=$disk FAULT_CALLS=,forget, FAULT_AT=1 FAULT_ACTION=run \
		FAULT_COMMAND="sh $dir/flip.sh" "${command[@]}"
}
fill
rm "$disk/b"
target=none
expect 1 "a: the new container cannot be read back, left as it is: block" \
	flip "$WFS_BIN/weightfs" pack --in-place "$disk/a"
[ -e "$dir/flipped" ] && [ ! -e "$disk/a.wfs" ] && cmp -s "$disk/a" "$dir/src/a" || fail "a flipped byte of a container"
no_temporaries "$disk"
ok weightfs pack --in-place "$disk"
cp -a "$disk/a.wfs" "$dir/a.wfs"
expect 1 "a.wfs: the new file does not read back as it was written: left as it is" \
	flip "$WFS_BIN/weightfs" unpack --in-place "$disk/a.wfs"
[ -e "$dir/flipped" ] && [ ! -e "$disk/a" ] && cmp -s "$disk/a.wfs" "$dir/a.wfs" || fail "a flipped byte of an original"
# The container of a killed run, good in memory and bad on the disk, costs no original.
cp -a "$dir/src/a" "$disk/a"
sync -f "$disk"
cat "$disk/a.wfs" >"$dir/warm"
target=a.wfs
expect 1 "a: a.wfs is there already and is not the same" flip "$WFS_BIN/weightfs" pack --in-place "$disk/a"
[ -e "$dir/flipped" ] && cmp -s "$disk/a" "$dir/src/a" || fail "a container that is bad on the disk"

# Writes that the disk refuses: its backing is full.
fill
rm -rf "$disk/b"
fstrim "$disk" 2>/dev/null || true
mount -o remount,size=$(($(du -k "$image" | cut -f1) + 1500))k "$backing"
status=0
weightfs pack --in-place "$disk/a" >"$out" 2>"$err" || status=$?
[ $status = 1 ] && grep -qE 'Input/output error|No space left|Read-only' "$err" || fail "lost writes: $status $(cat "$err")"
cmp -s "$disk/a" "$dir/src/a" && [ ! -e "$disk/a.wfs" ] || fail "lost writes: the original"
umount "$disk"
mount -o remount,size=100m "$backing"
mount -o loop,nodiscard "$image" "$disk"
cp -a "$dir/src/b" "$disk"
finishes "after lost writes"

# No room: a real file system, whose blocks are given out late.
fill
head -c $((($(df --output=avail -k "$disk" | tail -n 1) - 3000) * 1024)) /dev/zero >"$disk/ballast"
status=0
weightfs pack --in-place "$disk" >"$out" 2>"$err" || status=$?
[ $status = 1 ] && grep -q 'No space left on device' "$err" || fail "a full disk: $status $(cat "$err")"
[ -e "$disk/b.wfs" ] && cmp -s "$disk/a" "$dir/src/a" || fail "a full disk: the original"
no_temporaries "$disk"
rm "$disk/ballast"
finishes "a disk that was full"
