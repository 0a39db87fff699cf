#!/bin/bash
# run.sh [NAME...]: the tests that take a kernel of their own, each in a virtual machine: nfs server power disk.
#
# What a container's kernel cannot show: two NFS clients, servers that stop, disks of the device mapper that fail or lie,
# power that is lost at any write. Called by `make check-vm`; needs the packages of `tests/deps.sh vm`, and root, to have
# all files of this machine in the other (machine.sh). The kernel is Debian's (6.1 on Debian 12). Emulated, all takes
# some 15 minutes on two cores.
set -u
cd "$(dirname "$0")/../.." || exit 2
BUILD=$(realpath -m "${BUILD:-build}")
export BUILD WFS_BIN=$BUILD WFS_PYTHON=${WFS_PYTHON:-$(tests/venv.sh small)}
[ -n "$WFS_PYTHON" ] || exit 1
mkdir -p "$BUILD/vm"
# The machine sees this one's files read-only.
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o "$BUILD/vm/faults.so" tests/cli/faults.c || exit 1
failed=0
[ $# -gt 0 ] || set -- nfs server power disk
for name in "$@"; do
	echo "vm/$name"
	tests/vm/machine.sh bash "tests/vm/test_$name.sh" || { failed=1; echo "FAIL vm/$name"; }
done
exit "$failed"
