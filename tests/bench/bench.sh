#!/bin/bash
# bench.sh [OPTION...]: bench.py with what it needs: a Python environment and, unless --model is given, a model of 713 MB.
#
# `make bench` calls it; BENCH_ARGS are the options (bench.py --help).
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD:-build}")
python=$(BUILD=$build tests/venv.sh small)
model=()
case " $* " in
*' --model'* | *' --list '* | *' --help '* | *' -h '*) ;;
*)
	echo "The model: synthetic BF16 in the shapes of a small Llama" >&2
	model=(--model "$("$python" tests/corpora.py "$build/corpora" llama-like-713)")
	;;
esac
export PYTHONDONTWRITEBYTECODE=1 PATH="$PATH:${python%/*}"
exec "$python" tests/bench/bench.py --build "$build" "${model[@]}" "$@"
