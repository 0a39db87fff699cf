#!/bin/bash
# Every kind of write to containers, plain files, directories and new names is refused with EROFS; nothing changes.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir -p "$dir/src/folder"
cp -p "$dir"/zoo/{dtype-bf16.safetensors,text.txt,config.json} "$dir/src"
cp -p "$dir/zoo/config.json" "$dir/src/folder"
ln -s config.json "$dir/src/link"
weightfs pack "$dir/src" -o "$dir/store" >/dev/null
cp -a "$dir/store" "$dir/before"
mount_store "$dir/store" "$dir/mnt"
"$WFS_PYTHON" "$tests/fs/read_only.py" "$dir/mnt" || fail "a write is not refused as it should be"
same_tree "$dir/before" "$dir/store"
same_tree "$dir/src" "$dir/mnt"
