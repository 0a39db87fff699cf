#!/bin/bash
# 500 containers open and mapped at once: the daemon stays within its cache, a constant, and 16 bytes a block.
# The constant and why: memory.py.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

nr_files=250 cache_mib=32 limits=
is_sanitized && limits=--no-limits # it has its own memory
! is_thread_sanitized || nr_files=50
# Half are models, streamed through; half are text of many small blocks, read here and there.
"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir -p "$dir/originals" "$dir/packed" "$dir/store/models" "$dir/store/texts"
mv "$dir/zoo/dtype-bf16.safetensors" "$dir/originals/model-0"
mv "$dir/zoo/dtype-f32.safetensors" "$dir/originals/model-1"
mv "$dir/zoo/dtype-f16.safetensors" "$dir/originals/model-2"
"$WFS_PYTHON" -c '
import sys
for i in range(2048):
    line = b"block %05d\n" % i
    sys.stdout.buffer.write((line * (65536 // len(line) + 1))[:65536])' >"$dir/originals/text"
for file in "$dir"/originals/*; do
	weightfs pack -q --block-size 64k "$file" -o "$dir/packed/${file##*/}.wfs" || fail "cannot pack ${file##*/}"
done
for ((i = 0; i < nr_files; i++)); do
	cp "$dir/packed/model-$((i % 3)).wfs" "$dir/store/models/$i.wfs"
	cp "$dir/packed/text.wfs" "$dir/store/texts/$i.wfs"
done
text_blocks=$((nr_files * $(blocks "$dir/packed/text.wfs")))
[ "$text_blocks" -ge $((2000 * nr_files)) ] || fail "the texts have only $text_blocks blocks"
model_blocks=$((nr_files * $(blocks "$dir"/packed/model-*) / 3))
for options in cache=${cache_mib}M cache=${cache_mib}M,read_ahead_kb=128,threads=8; do
	mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o "$options"
	"$WFS_PYTHON" "$tests/fs/bounded.py" 300 "$daemon" "$WFS_PYTHON" "$tests/fs/memory.py" "$daemon" $cache_mib \
		"$dir/mnt" "$dir/originals" $model_blocks $text_blocks $limits || fail "$options"
	unmount "$dir/mnt"
done
