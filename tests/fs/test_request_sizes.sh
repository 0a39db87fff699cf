#!/bin/bash
# Root's mount raises the kernel's read-ahead: a plain sequential reader and a mapping arrive in large requests.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "only root may raise the read-ahead"
[ -w /sys/class/bdi ] || [ -d /sys/class/bdi ] || skip "no /sys/class/bdi here"
mkdir "$dir/store"
"$WFS_PYTHON" -c '
import random, sys
sys.stdout.buffer.write(random.Random(1).randbytes(24 << 20) + b"text " * (8 << 20))' >"$dir/big.bin"
pack "$dir/big.bin" "$dir/store/big.bin.wfs"

bdi()
{
	"$WFS_PYTHON" -c 'import os, sys; d = os.stat(sys.argv[1]).st_dev; print(f"{os.major(d)}:{os.minor(d)}")' "$dir/mnt"
}
# share LIMIT: percent of the bytes asked for in requests of more than LIMIT bytes.
share()
{
	weightfs stats "$dir/mnt" --json | "$WFS_PYTHON" -c '
import json, sys
sizes = [(s["up_to"] or 1 << 20, s["reads"]) for s in json.load(sys.stdin)["request_sizes"]]
print(100 * sum(n * r for n, r in sizes if n > int(sys.argv[1])) // max(1, sum(n * r for n, r in sizes)))' "$1"
}
for way in read mmap; do
	mount_store "$dir/store" "$dir/mnt"
	[ "$(cat "/sys/class/bdi/$(bdi)/read_ahead_kb")" = 2048 ] || fail "read_ahead_kb is not 2048"
	if [ $way = read ]; then
		dd if="$dir/mnt/big.bin" bs=64k status=none | cmp - "$dir/big.bin" || fail "the bytes"
	else
		access "$dir/big.bin" "$dir/mnt/big.bin" mmap-shared
	fi
	got=$(share $((128 << 10)))
	[ "$got" -ge 80 ] || fail "$got % of the bytes by $way in requests above 128 KiB: $(weightfs stats "$dir/mnt" --json)"
	unmount "$dir/mnt"
done
mount_store "$dir/store" "$dir/mnt" -o read_ahead_kb=512
[ "$(cat "/sys/class/bdi/$(bdi)/read_ahead_kb")" = 512 ] || fail "read_ahead_kb=512 is not set"
unmount "$dir/mnt"
