#!/bin/bash
# Locks are the kernel's own; ioctl, extended attributes and file handles are declined politely.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
pack "$dir/zoo/dtype-bf16.safetensors" "$dir/store/model.safetensors.wfs"
cp -p "$dir/zoo/config.json" "$dir/store"
mount_store "$dir/store" "$dir/mnt"
for name in model.safetensors config.json; do
	"$WFS_PYTHON" "$tests/fs/answers.py" "$dir/mnt/$name" || fail "$name"
	flock -n -s "$dir/mnt/$name" true || fail "flock of $name"
done
[ -z "$(getfattr -d -m - "$dir/mnt/model.safetensors" 2>/dev/null)" ] || fail "extended attributes out of nowhere"
