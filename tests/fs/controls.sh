# shellcheck shell=bash
# controls.sh - sourced after lib.sh: the test runs as root, and in a mount namespace of its own where that can be had,
# with the control files of FUSE at $controls.
[ "$(id -u)" = 0 ] || skip "needs root"
if [ -z "${WFS_TEST_UNSHARED-}" ] && unshare --mount --propagation private true 2>/dev/null; then
	WFS_TEST_UNSHARED=1 unshare --mount --propagation private bash "$0"
	exit
fi
controls=/sys/fs/fuse/connections
if [ -n "${WFS_TEST_UNSHARED-}" ] && [ "$(stat -f -c %T $controls)" != fusectl ]; then
	mount -t fusectl none $controls || skip "cannot mount fusectl"
fi
[ "$(stat -f -c %T $controls)" = fusectl ] || skip "no fusectl is mounted, and no mount namespace can be made here"
