# shellcheck shell=bash disable=SC2154 # of lib.sh
# user.sh - what tests that mount as an ordinary user share; sourced after lib.sh. Ends the test with skip where that
# cannot be tried. Runs the test once more in a mount namespace of its own when /dev/fuse is closed to others.
[ "$(id -u)" = 0 ] || skip "needs root to become other users"
command -v setpriv fusermount3 unshare >/dev/null || skip "needs setpriv, fusermount3 and unshare"
# Where only root may open /dev/fuse (udev opens it to all), give it its usual mode in a mount namespace of our own.
if [ "$(stat -L -c %a /dev/fuse)" != 666 ] && [ -z "${WFS_TEST_UNSHARED-}" ]; then
	unshare --mount --propagation private true 2>/dev/null ||
		skip "only root may open /dev/fuse, and no mount namespace to change that can be made here"
	WFS_TEST_UNSHARED=1 unshare --mount --propagation private bash "$0"
	exit
fi
if [ -n "${WFS_TEST_UNSHARED-}" ]; then
	mknod -m 666 "$dir/fuse" c 10 229 || skip "cannot make a device here"
	mount --bind "$dir/fuse" /dev/fuse || skip "cannot mount a device here"
fi

# as UID COMMAND...
as()
{
	local uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups -- env HOME="$dir" "$@"
}

chmod 755 "$dir"
as 65534 test -x "$WFS_BIN/weightfs" || skip "another user cannot reach $WFS_BIN"
as 65534 test -r "$dir" || skip "another user cannot reach $WFS_TMP"
[ -u "$(readlink -f "$(command -v fusermount3)")" ] || skip "fusermount3 is not setuid here"
