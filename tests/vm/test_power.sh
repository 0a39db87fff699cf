#!/bin/bash
# The power is cut at any write of pack --in-place and unpack --in-place (power.py). WFS_POINTS: at how many of each.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. tests/cli/lib.sh

modprobe -a dm-log-writes dm-snapshot loop
"$WFS_PYTHON" -c '
import sys
sys.path.insert(0, "tests/cli")
import faults
faults.make_trees(sys.argv[1])' "$dir"
for fstype in ${WFS_FSTYPES:-ext4 xfs btrfs}; do
	"$WFS_PYTHON" tests/vm/power.py "$fstype" "$dir/src" "$dir/whole" "$dir" "${WFS_POINTS:-16}" pack -q --in-place &&
		"$WFS_PYTHON" tests/vm/power.py "$fstype" "$dir/whole" "$dir/src" "$dir" "${WFS_POINTS:-16}" unpack -q --in-place ||
		fail "$fstype: see above"
done
