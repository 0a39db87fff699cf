#!/bin/bash
# A file server that goes away, takes files away beneath their readers, or does not trust root: pack, verify and a mount
# whose store lies on it end with the right error in bounded time, and nobody hangs who cannot be killed.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. tests/cli/lib.sh
# shellcheck source=tests/vm/nfs.sh
. tests/vm/nfs.sh
modprobe fuse
PATH=$WFS_BIN:$PATH
export WFS_FAULTS=$BUILD/vm/faults.so
serve ext4
client 1
weights "$dir/model" 8 1
weights "$dir/other" 8 2
mkdir "$served/store"
weightfs pack -q "$dir/model" -o "$served/store/model.wfs"
weightfs pack -q "$dir/other" -o "$served/store/other.wfs"
mnt=$dir/mnt
mkdir "$mnt"

# ends SECONDS WHAT COMMAND...: within that time; its status in $status.
ends()
{
	local within=$1 what=$2 start=$SECONDS
	shift 2
	status=0
	timeout -k 1 "$((within + 20))" "$@" >"$out" 2>"$err" || status=$?
	echo "  $what: status $status after $((SECONDS - start)) s: $(head -c 300 "$err")"
	[ $((SECONDS - start)) -le "$within" ] || fail "$what took $((SECONDS - start)) s: $(cat "$err")"
}
# gone PID SECONDS WHAT
gone()
{
	local end=$((SECONDS + $2))
	while [ -e "/proc/$1" ] && ! grep -q ') Z' "/proc/$1/stat" 2>/dev/null; do
		[ "$SECONDS" -le "$end" ] || fail "$3 is still there: $(cat "/proc/$1/stat" "/proc/$1/stack")"
		sleep 0.2
	done
}
daemon_pid()
{
	weightfs stats "$mnt" --json | sed -n 's/.*"pid":\([0-9]*\).*/\1/p'
}
whole()
{
	cmp -s "$1/model" "$dir/model" && cmp -s "$1/other" "$dir/other" || fail "not the originals: $2"
}

# The server cannot be reached any more, while readers are at work.
unreachable()
{
	local pid reader
	echo "unreachable: $1"
	attach 1 /mnt/client "$1"
	weightfs mount /mnt/client/store "$mnt" -o "io_timeout=4,log=$dir/log" || fail "cannot mount"
	pid=$(daemon_pid)
	cmp -s "$mnt/model" "$dir/model" || fail "a store on NFS"
	exec 7<"$mnt/other"
	ip link set to1 down
	ends 20 "a read" dd if="$mnt/other" of=/dev/null bs=64k
	[ "$status" = 1 ] && grep -q 'Input/output error' "$err" || fail "a read of a server that is gone: $(cat "$err")"
	ends 20 "a read of an open file" dd of=/dev/null bs=64k <&7
	[ "$status" = 1 ] || fail "a read of an open file"
	dd if="$mnt/other" of=/dev/null bs=64k 2>/dev/null &
	reader=$!
	sleep 0.5
	kill -KILL "$reader"
	gone "$reader" 10 "a killed reader"
	ends 20 "statistics" weightfs stats "$mnt"
	exec 7<&-
	kill -TERM "$pid"
	gone "$pid" 20 "the daemon, after SIGTERM,"
	! grep -q "fuse.weightfs" /proc/mounts || fail "the mount outlived its daemon"
	case $1 in
	*soft*)
		ends 60 "verify" weightfs verify -q /mnt/client/store
		[ "$status" = 1 ] && [ -s "$err" ] || fail "verify of a server that is gone"
		;;
	*)
		weightfs verify -q /mnt/client/store 2>/dev/null &
		reader=$!
		sleep 1
		kill -KILL "$reader"
		gone "$reader" 10 "a killed verify"
		;;
	esac

	ip link set to1 up
	ends 90 "the server is back" sh -c "cat /mnt/client/store/*.wfs | wc -c"
	weightfs mount /mnt/client/store "$mnt" || fail "cannot mount again"
	whole "$mnt" "after the server came back"
	weightfs umount "$mnt"
	umount /mnt/client
	rm "$dir/log"
}

# A file is taken away on the server while it is read here: NFS 3 knows no open files.
stale()
{
	echo "stale"
	mkdir -p /mnt/client
	mount -t nfs -o vers=3,actimeo=1 "127.0.0.1:$served" /mnt/client
	cp "$served/store/other.wfs" "$dir/other.wfs"
	weightfs mount /mnt/client/store "$mnt" -o "io_timeout=4,log=$dir/log" || fail "cannot mount"
	exec 7<"$mnt/other"
	rm "$served/store/other.wfs"
	echo 3 >/proc/sys/vm/drop_caches
	ends 20 "a read of what is gone" dd of=/dev/null bs=64k <&7
	[ "$status" = 1 ] && grep -qE 'Stale|Input/output' "$err" || fail "a stale file"
	exec 7<&-
	cmp -s "$mnt/model" "$dir/model" || fail "a file beside the stale one"
	cp "$dir/other.wfs" "$served/store/other.wfs"
	sleep 2.5
	whole "$mnt" "a new file after a stale one"

	weightfs umount "$mnt"
	# pack is stopped before the proof; then its original is replaced on the server.
	mkdir "$served/tree"
	for what in original temporary; do
		cp "$dir/model" "$served/tree/model"
		case $what in
		original) command="cp $dir/other $served/new; mv $served/new $served/tree/model" ;;
		*) command="rm $served/tree/.model*.tmp" ;;
		esac
		ends 60 "pack whose $what goes" env LD_PRELOAD="$WFS_FAULTS" FAULT_ROOT=/mnt/client/tree \
			FAULT_CALLS=,forget, FAULT_AT=1 FAULT_ACTION=run FAULT_COMMAND="$command" \
			"$WFS_BIN/weightfs" pack --in-place /mnt/client/tree
		[ "$status" = 1 ] && [ ! -e "$served/tree/model.wfs" ] || fail "pack whose $what goes: $(ls -A "$served/tree")"
		[ $what = temporary ] || cmp -s "$served/tree/model" "$dir/other" || fail "the new original"
	done
	cmp -s "$served/tree/model" "$dir/model" || fail "the original"
	no_temporaries "$served/tree"
	# All that is exported is taken away.
	exportfs -u "*:$served"
	exportfs -f
	ends 60 "verify without the export" weightfs verify -q /mnt/client/store
	[ "$status" = 1 ] && [ -s "$err" ] || fail "verify without the export"
	ends 60 "pack without the export" weightfs pack -q --in-place /mnt/client/tree
	[ "$status" != 0 ] && [ -s "$err" ] || fail "pack without the export"
	exportfs -o rw,async,no_subtree_check,fsid=0,no_root_squash "*:$served"
	umount -l /mnt/client
	cmp -s "$served/tree/model" "$dir/model" || fail "the original after the export was gone"
	rm -r "$served/tree" "$dir/log"
}

# Root is nobody on the server: files of others stay as they are, nobody's are packed.
squashed()
{
	echo "root_squash"
	exportfs -u "*:$served"
	exportfs -o rw,async,no_subtree_check,fsid=0,root_squash "*:$served"
	attach 1 /mnt/client vers=4.2
	mkdir -m 777 "$served/tree"
	cp "$dir/model" "$served/tree/theirs"
	cp "$dir/other" "$served/tree/nobodys"
	chown 1000:1000 "$served/tree/theirs"
	chown 65534:65534 "$served/tree/nobodys"
	ends 60 "pack of another's file" weightfs pack -q --in-place /mnt/client/tree
	[ "$status" = 1 ] && grep -q "theirs: .*run this as the owner of the files" "$err" || fail "another's file: $(cat "$err")"
	cmp -s "$served/tree/theirs" "$dir/model" && [ -e "$served/tree/nobodys.wfs" ] && [ ! -e "$served/tree/theirs.wfs" ] ||
		fail "root_squash: $(ls -lA "$served/tree")"
	no_temporaries "$served/tree"
	chmod 600 "$served/tree/theirs"
	ends 60 "pack of what cannot be read" weightfs pack -q --in-place /mnt/client/tree
	[ "$status" = 1 ] && grep -q "Permission denied" "$err" || fail "a file that cannot be read"
	umount /mnt/client
	rm -r "$served/tree"
}
stale
squashed
exportfs -u "*:$served"
exportfs -o rw,async,no_subtree_check,fsid=0,no_root_squash "*:$served"
unreachable vers=4.2,hard
unreachable vers=4.2,soft,timeo=20,retrans=1
