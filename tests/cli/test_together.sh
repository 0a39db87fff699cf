#!/bin/bash
# Several runs of pack, unpack and sign over one tree at once, stopped and killed at any step (together.py). WFS_TOGETHER_ROUNDS:
# how many pairs, and a quarter of that of the rest.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

export WFS_FAULTS=$dir/faults.so
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o "$WFS_FAULTS" "$tests/cli/faults.c"
mkdir "$dir/trees"
"$WFS_PYTHON" "$tests/cli/together.py" "$dir/trees" "${WFS_TOGETHER_ROUNDS-16}" ${WFS_TOGETHER_SEED+"$WFS_TOGETHER_SEED"} ||
	fail "see above"
