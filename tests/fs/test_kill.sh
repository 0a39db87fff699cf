#!/bin/bash
# The daemon killed under load, WFS_KILLS times (a few by default; some hundreds take minutes): right bytes before, clean
# errors after, no hang, no dead mount, and the next mount works.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store" "$dir/mnt"
files=()
for name in dtype-bf16.safetensors values-rows-of-unlike-scale.safetensors dtype-f16.safetensors; do
	pack "$dir/zoo/$name" "$dir/store/$name.wfs"
	files+=("$dir/zoo/$name")
done
cp "$dir/zoo/text.txt" "$dir/store"
files+=("$dir/zoo/text.txt")
mounts+=("$dir/mnt")
kills=40
is_thread_sanitized && kills=8
seed=${WFS_SEED:-$RANDOM}
"$WFS_PYTHON" "$tests/fs/kill_loop.py" "$WFS_BIN" "$dir/store" "$dir/mnt" "${WFS_KILLS:-$kills}" "$seed" "${files[@]}" ||
	fail "killed under load (WFS_SEED=$seed)"
rm -f "$dir"/sanitizer.* # of SIGSEGV
# Once more, to the end.
mount_store "$dir/store" "$dir/mnt"
for file in "${files[@]}"; do
	cmp "$file" "$dir/mnt/${file##*/}" || fail "the bytes after all kills"
done
unmount "$dir/mnt"
