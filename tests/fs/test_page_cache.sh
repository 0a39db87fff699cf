#!/bin/bash
# Nothing is kept twice: what a stream reads of a cold store, and a block that is read once, goes around the page cache;
# a block that comes back is put there, and what lies there is read from there.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

# resident FILE: bytes of it in the page cache.
resident()
{
	"$WFS_PYTHON" - "$1" <<'END'
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
size = os.path.getsize(sys.argv[1])
with open(sys.argv[1], "r+b") as f, mmap.mmap(f.fileno(), size) as m:
    pages = (ctypes.c_ubyte * ((size + 4095) // 4096))()
    at = ctypes.addressof(ctypes.c_char.from_buffer(m))
    if libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), pages):
        sys.exit(os.strerror(ctypes.get_errno()))
print(4096 * sum(page & 1 for page in pages))
END
}

shards "$dir" 64 BF16
model=$(basename "$dir"/src/*)
store=$dir/store/$model.wfs
stored=$(stat -c %s "$store")
mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o cache=16M
dd if=/dev/null of="$dir/direct" bs=4096 count=1 oflag=direct status=none 2>/dev/null || { echo "SKIP no O_DIRECT here"; exit 77; }

# The same of a store that is another user's, whose files the kernel tells us nothing about.
if [ "$(id -u)" -eq 0 ]; then
	make_cold "$store"
	chown 1234 "$store"
	cmp "$dir/src/$model" "$dir/mnt/$model" || fail "another user's"
	[ "$(nr direct_bytes_read "$dir/mnt")" -gt $((stored / 2)) ] || fail "another user's is not read around the page cache"
	unmount "$dir/mnt"
	chown 0 "$store"
	mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o cache=16M
fi

make_cold "$store"
[ "$(resident "$store")" -lt $((stored / 10)) ] || { echo "SKIP nothing can be dropped from the page cache here"; exit 77; }
cmp "$dir/src/$model" "$dir/mnt/$model" || fail "the stream"
[ "$(resident "$store")" -lt $((stored / 10)) ] || fail "a stream left $(resident "$store") of $stored bytes in the page cache"
[ "$(nr direct_bytes_read "$dir/mnt")" -gt $((stored / 2)) ] || fail "not read around the page cache"

# One block, then so many others that the daemon's cache forgets it, then the same: now it stays.
read_4k()
{
	dd if="$dir/mnt/$model" bs=4096 skip="$1" count=1 iflag=direct status=none
}
before=$(resident "$store")
for round in 1 2; do
	for i in {0..230}; do
		block=$((20 + i * 97 % 231)) # in no order
		read_4k $((block * 64 + round)) >"$dir/page"
		cmp -s "$dir/page" <(dd if="$dir/src/$model" bs=4096 skip=$((block * 64 + round)) count=1 status=none) ||
			fail "block $block"
	done
	left[round]=$(($(resident "$store") - before))
done
[ "${left[1]}" -lt $((stored / 10)) ] || fail "blocks read once are kept: ${left[1]} of $stored bytes"
[ "${left[2]}" -gt $((stored / 2)) ] || fail "blocks that come back are not kept: ${left[2]} of $stored bytes"

# What is in the page cache is read from there.
around=$(nr direct_bytes_read "$dir/mnt")
cat "$store" >/dev/null
unmount "$dir/mnt"
mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o cache=16M
cmp "$dir/src/$model" "$dir/mnt/$model" || fail "from the page cache"
[ "$(nr direct_bytes_read "$dir/mnt")" = 0 ] || fail "read around the page cache what was in it"
[ "$around" -gt 0 ]
