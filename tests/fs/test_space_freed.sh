#!/bin/bash
# A container that was read and is then removed or replaced in the store gives its space back: the daemon lets go of it.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
a=$dir/zoo/values-tied.safetensors b=$dir/zoo/dtype-f32.safetensors
mkdir "$dir/store"
for name in removed replaced unseen; do
	pack "$a" "$dir/store/$name.wfs"
done
pack "$b" "$dir/new.wfs"
mount_logged "$dir/log" "$dir/store" "$dir/mnt"

holds_deleted()
{
	[ -n "$(find "/proc/$daemon/fd" -lname "*/store/$1.wfs (deleted)")" ]
}
let_go()
{
	! holds_deleted "$1"
}
let_go_after_lookup()
{
	stat "$dir/mnt/$1" >/dev/null 2>&1 || true
	let_go "$1"
}
for name in removed replaced unseen; do
	exec 5<"$dir/mnt/$name"
	cmp "$a" - <&5 || fail "$name before it goes"
	if [ $name = replaced ]; then
		mv "$dir/new.wfs" "$dir/store/$name.wfs"
	else
		rm "$dir/store/$name.wfs"
	fi
	holds_deleted "$name" || fail "an open file is not held: what follows proves nothing"
	exec 5<&-
done
wait_until "the end of a removed container" let_go_after_lookup removed
wait_until "the end of a replaced container" let_go_after_lookup replaced
# Nobody asks for the third one any more.
wait_until "the end of a removed container that nobody looks up" let_go unseen
cmp "$b" "$dir/mnt/replaced" || fail "the container in the replaced one's place"
unmount "$dir/mnt"
