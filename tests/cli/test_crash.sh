#!/bin/bash
# pack, unpack and sign disturbed at every step they take (crash.py): kill -9, power failure, errors of the disk, a full disk, a
# source that changes. WFS_CRASH_POINTS: how many steps of each kind, 0 for every one; by default what takes seconds.
# Arguments: only these scenarios.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

# Where the user that some runs become can read.
chmod 755 "$dir"
cp "$WFS_BIN/weightfs" "$dir"
export WFS_BIN=$dir
export WFS_FAULTS=$dir/faults.so
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o "$WFS_FAULTS" "$tests/cli/faults.c"
mkdir "$dir/trees"
"$WFS_PYTHON" "$tests/cli/crash.py" "$dir/trees" "${WFS_CRASH_POINTS-3}" "$@" || fail "see above"
