#!/bin/bash
# verify and scrub of a store that is mounted: by its own path, by the mount's, beneath a mount that covers it.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/cli/weights.py" "$dir/model" 1
mkdir -p "$dir/store/sub" "$dir/tree"
pack "$dir/model" "$dir/store/model.wfs"
cp "$dir/store/model.wfs" "$dir/store/sub/second.wfs"
cp "$dir/model" "$dir/store/plain"

# told STATUS TEXT COMMAND...: the exit status, and the text on either output.
told()
{
	local text=$2
	expect_status "$1" "${@:3}"
	grep -qF -- "$text" "$dir/out" "$dir/err" || fail "'$text' is not in: $(cat "$dir/out" "$dir/err")"
}
sound()
{
	told 0 "2 of 2 containers are whole" weightfs verify "$1"
	told 0 "$dir/store/model.wfs: ok" weightfs verify "$1" --fast
	told 0 "1 of 1 container is whole" weightfs verify "$1/sub"
	told 0 "$dir/store/sub/second.wfs: ok" weightfs verify "$1/sub/second"
	told 0 "2 of 2 containers are whole" weightfs scrub "$1" --rate 100M
	told 1 "$1/plain: is not a weightfs container" weightfs verify "$1/plain"
}
mount_store "$dir/store" "$dir/mnt"
exec 7<"$dir/mnt/model"
sound "$dir/mnt"
told 0 "2 of 2 containers are whole" weightfs verify "$dir/store"
# Both at once are looked at once.
told 0 "2 of 2 containers are whole" weightfs verify "$dir/store" "$dir/mnt"
# What is damaged is found through the mount, and mended beneath it, while it serves.
"$WFS_PYTHON" "$tests/cli/flip.py" "$dir/store/model.wfs" 50 -5000
told 1 "$dir/store/model.wfs: degraded" weightfs verify "$dir/mnt"
told 0 "$dir/store/model.wfs: repaired" weightfs verify --repair "$dir/mnt"
cmp -s "$dir/store/model.wfs" "$dir/store/sub/second.wfs" || fail "badly mended"
cmp -s "$dir/mnt/model" "$dir/model" || fail "what the mount shows after the repair"
cmp -s /proc/self/fd/7 "$dir/model" || fail "what an open file shows after the repair"
exec 7<&-
unmount "$dir/mnt"

# The mount covers its store, by itself and as a part of a tree.
mv "$dir/store" "$dir/tree/store"
ln -s tree/store "$dir/store"
mount_store "$dir/tree/store" "$dir/tree/store"
told 0 "2 of 2 containers are whole" weightfs verify "$dir/tree/store"
told 0 "1 of 1 container is whole" weightfs verify "$dir/store/sub/second"
pack "$dir/model" "$dir/tree/beside.wfs"
# It takes no right to look into other processes: the daemon hands its store over.
told 0 "3 of 3 containers are whole" setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace "$WFS_BIN/weightfs" verify "$dir/tree"
told 0 "3 of 3 containers are whole" weightfs verify "$dir/tree"
unmount "$dir/tree/store"
told 0 "3 of 3 containers are whole" weightfs verify "$dir/tree"

# A user's own mount: to him, and to nobody else.
# shellcheck source=tests/fs/user.sh
. "$tests/fs/user.sh"
cp -r "$dir/tree/store" "$dir/theirs"
chown -R 65534:65534 "$dir/theirs"
mounts+=("$dir/theirs")
as 65534 "$WFS_BIN/weightfs" mount "$dir/theirs" "$dir/theirs" || fail "mount by a user"
told 0 "2 of 2 containers are whole" as 65534 "$WFS_BIN/weightfs" verify "$dir/theirs"
told 0 "1 of 1 container is whole" as 65534 "$WFS_BIN/weightfs" scrub "$dir/theirs/sub"
expect_status 1 as 65533 "$WFS_BIN/weightfs" verify "$dir/theirs"
expect_status 1 as 65533 "$WFS_BIN/weightfsd" --store "$dir/theirs"
expect_status 1 as 65534 "$WFS_BIN/weightfsd" --store "$dir/theirs"
grep -q "to standard output: " "$dir/err" || fail "a stdout that is no socket: $(cat "$dir/err")"
as 65534 "$WFS_BIN/weightfs" umount "$dir/theirs" || fail "umount by a user"
