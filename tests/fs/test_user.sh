#!/bin/bash
# An ordinary user mounts and unmounts; others and root stay out unless allowed; owners and modes keep their meaning.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fs/user.sh
. "$tests/fs/user.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store" "$dir/mnt"
a=$dir/zoo/dtype-bf16.safetensors
pack "$a" "$dir/store/model.wfs"
pack "$a" "$dir/store/secret.wfs"
pack "$a" "$dir/store/theirs.wfs"
chmod 600 "$dir/store/secret.wfs"
chmod 600 "$dir/store/theirs.wfs"
chown 1234:1234 "$dir/store/theirs.wfs"
chown 65534:65534 "$dir/mnt"
mounts+=("$dir/mnt")

as 65534 "$WFS_BIN/weightfs" mount "$dir/store" "$dir/mnt" 2>"$dir/said" || fail "mount by a user: $(cat "$dir/said")"
as 65534 cmp "$a" "$dir/mnt/model" || fail "the user's own mount"
expect_status 1 as 65534 cat "$dir/mnt/secret"
expect_status 1 cat "$dir/mnt/model"
grep -q 'Permission denied' "$dir/err" || fail "root gets another answer than EACCES: $(cat "$dir/err")"
expect_status 1 as 1234 cat "$dir/mnt/model"
as 65534 "$WFS_BIN/weightfs" stats "$dir/mnt" >/dev/null || fail "stats of one's own mount"
expect_status 1 as 1234 "$WFS_BIN/weightfs" stats "$dir/mnt"
as 65534 "$WFS_BIN/weightfs" umount "$dir/mnt" || fail "umount by the user"
is_mounted "$dir/mnt" && fail "still mounted after umount by the user"

if ! grep -q '^user_allow_other' /etc/fuse.conf 2>/dev/null; then
	expect_status 1 as 65534 "$WFS_BIN/weightfs" mount "$dir/store" "$dir/mnt" -o allow_other
	grep -q user_allow_other "$dir/err" || fail "allow_other is refused without naming user_allow_other: $(cat "$dir/err")"
fi

# Root's mount for all: the containers' modes and owners decide.
mount_store "$dir/store" "$dir/mnt" -o allow_other
as 65534 cmp "$a" "$dir/mnt/model" || fail "allow_other"
expect_status 1 as 65534 cat "$dir/mnt/secret"
as 1234 cmp "$a" "$dir/mnt/theirs" || fail "the owner's file"
expect_status 1 as 65534 cat "$dir/mnt/theirs"
expect_status 1 as 65534 touch "$dir/mnt/new"
unmount "$dir/mnt"
