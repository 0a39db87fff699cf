#!/bin/bash
# The daemon's mount is taken away wherever it is by now, and no other mount in its stead.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$dir/store"
echo text >"$dir/store/file"

# ended LOG DAEMON SIGNAL: by a signal, and with it the keeper, who has the last word in the log.
ended()
{
	local keeper
	keeper=$(keeper_of "$2")
	kill "-$3" "$2"
	wait_until "the end of the daemon" gone "$2"
	wait_until "the end of the keeper" keeper_gone "$keeper"
}
keeper_gone()
{
	! grep -q 'State:[[:space:]][RSDT]' "/proc/$1/status" 2>/dev/null
}
no_weightfs_beneath()
{
	! grep -F " $(mount_path "$1")" /proc/self/mountinfo | grep -F ' fuse.weightfs ' || fail "$2 is left"
}

for sig in TERM KILL; do
	# The directory above is renamed, and something else is mounted at the old path.
	mkdir -p "$dir/above"
	mount_logged "$dir/log" "$dir/store" "$dir/above/mnt"
	mv "$dir/above" "$dir/moved"
	mount_store "$dir/store" "$dir/above/mnt"
	ended "$dir/log" "$daemon" $sig
	no_weightfs_beneath "$dir/moved" "SIG$sig: a renamed mount"
	[ "$(cat "$dir/above/mnt/file")" = text ] || fail "SIG$sig: the mount at the old path was taken away"
	unmount "$dir/above/mnt"
	rmdir "$dir/moved/mnt" "$dir/moved"

	# ... or a link to where another mount is takes its place.
	mkdir -p "$dir/above" "$dir/others"
	mount_logged "$dir/log" "$dir/store" "$dir/above/mnt"
	mount_store "$dir/store" "$dir/others/mnt"
	mv "$dir/above" "$dir/moved"
	ln -s others "$dir/above"
	ended "$dir/log" "$daemon" $sig
	no_weightfs_beneath "$dir/moved" "SIG$sig: a mount behind a link"
	[ "$(cat "$dir/others/mnt/file")" = text ] || fail "SIG$sig: the mount that the link led to was taken away"
	unmount "$dir/others/mnt"
	rm "$dir/above"
	rmdir "$dir/moved/mnt" "$dir/moved"

	# Another mount lies over it: that stays, and it is said what to do.
	[ "$(id -u)" = 0 ] || continue
	mount_logged "$dir/log" "$dir/store" "$dir/mnt"
	mount -t tmpfs cover "$dir/mnt"
	ended "$dir/log" "$daemon" $sig
	grep -q "$dir/mnt: .*another mount lies over it; unmount that, then run weightfs umount" "$dir/log" ||
		fail "SIG$sig: a covered mount: $(cat "$dir/log")"
	umount "$dir/mnt" || fail "SIG$sig: the covering mount is gone"
	weightfs umount "$dir/mnt" || fail "SIG$sig: weightfs umount of the mount that was covered"
	! is_mounted "$dir/mnt" || fail "SIG$sig: still mounted"
	# Seen twice, it is still one mount.
	mkdir -p "$dir/twice"
	mount_logged "$dir/log" "$dir/store" "$dir/mnt"
	mount --bind "$dir/mnt" "$dir/twice"
	mounts+=("$dir/twice")
	ended "$dir/log" "$daemon" $sig
	! is_mounted "$dir/mnt" || fail "SIG$sig: with a bind mount of it, it stays"
	umount "$dir/twice"
done
