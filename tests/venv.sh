#!/bin/bash
# venv.sh small|loaders: make or complete the tests' Python environment and print its interpreter's path.
#
# small: what the demo, the corpora and the second decoder need. loaders: torch and transformers too, several GB on disk.
# It lies in $WEIGHTFS_VENV, by default $BUILD/venv. Only names are asked for; pip decides where they come from.
set -eu
cd "$(dirname "$0")/.."
venv=${WEIGHTFS_VENV:-${BUILD:-build}/venv}

case ${1-} in
small) packages='numpy ml_dtypes safetensors lz4 xxhash gguf' ;;
loaders) packages='numpy ml_dtypes safetensors lz4 xxhash gguf torch transformers' ;;
*)
	echo "usage: venv.sh small|loaders" >&2
	exit 2
	;;
esac

if [ "$(cat "$venv/.$1" 2>/dev/null)" != "$packages" ]; then
	[ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2
	# shellcheck disable=SC2086 # a list of words
	"$venv/bin/python" -m pip install -q --disable-pip-version-check $packages >&2
	echo "$packages" >"$venv/.$1"
fi
echo "$venv/bin/python"
