#!/bin/bash
# Two NFS clients, each a machine to the server, and the same tree: pack and unpack at once, runs that are killed.
# WFS_ROUNDS: how many pairs of runs.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. tests/cli/lib.sh
# shellcheck source=tests/vm/nfs.sh
. tests/vm/nfs.sh

export WFS_FAULTS=$BUILD/vm/faults.so
serve ext4
client 1
client 2
for version in 4.2 3; do
	case $version in
	3)
		for mnt in /mnt/here3 /mnt/there3; do
			mkdir "$mnt"
			mount -t nfs -o vers=3,nosharecache "127.0.0.1:$served" "$mnt"
		done
		here=/mnt/here3 there=/mnt/there3
		;;
	*)
		here=/mnt/here there=/mnt/there
		attach 1 "$here" "vers=$version"
		attach 2 "$there" "vers=$version"
		;;
	esac
	mkdir "$dir/trees-$version"
	echo "NFS $version:"
	"$WFS_PYTHON" tests/vm/two_clients.py "$served" "$here" "$there" "$dir/trees-$version" "${WFS_ROUNDS:-12}" ||
		fail "NFS $version: see above"
	left=$(find "$served" -name '.nfs*')
	[ -z "$left" ] || fail "left behind: $left"
done
