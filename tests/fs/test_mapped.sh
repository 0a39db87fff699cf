#!/bin/bash
# Mappings outlive descriptors, listings and forks: a container, a plain file, and both while others come and go.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
pack "$a" "$dir/store/model.wfs"
pack "$dir/zoo/dtype-bf16.safetensors" "$dir/store/other.wfs"
cp "$a" "$dir/store/plain"
mount_store "$dir/store" "$dir/mnt" -o cache=16M
for name in model plain; do
	"$WFS_PYTHON" "$tests/fs/mapped.py" "$dir/mnt/$name" "$a" || fail "$name"
done
unmount "$dir/mnt"
