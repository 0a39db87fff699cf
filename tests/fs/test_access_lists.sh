#!/bin/bash
# POSIX access control lists: the tools keep them; where they cannot be kept, and in a mount that lets others in, nobody
# gets what the list denies.
# shellcheck source=tests/fs/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root to become other users and to mount a file system without lists"
acl()
{
	"$WFS_PYTHON" "$tests/access_list.py" "$@"
}
# mode PATH WANTED LIST: its bits, and its list on one line.
is()
{
	[ "$(stat -c %a "$1")" = "$2" ] && [ "$(acl "$1" | paste -sd ' ')" = "$3" ] ||
		fail "$1: $(stat -c %a "$1"), $(acl "$1" | paste -sd ' '), not $2, $3"
}
mkdir "$dir/src" "$dir/src/sub"
for name in listed sub/denied plain; do
	seq 30000 >"$dir/src/$name"
done
echo small >"$dir/src/small"
# The group bits of a file with a list are its mask, which says nothing of what the group itself may do.
list="u::6 u:1234:6 g::0 m::6 o::0"
# shellcheck disable=SC2086 # its parts
for name in listed small; do
	acl "$dir/src/$name" $list 2>/dev/null || skip "the file system of the tests has no access control lists"
done
is "$dir/src/listed" 660 "$list"
deny="u::6 u:1235:0 g::4 m::4 o::4"
# shellcheck disable=SC2086
acl "$dir/src/sub/denied" $deny
dir_list="u::7 u:1234:5 g::0 m::5 o::0"
# shellcheck disable=SC2086
acl "$dir/src/sub" $dir_list
chmod 640 "$dir/src/plain"

# pack, unpack and sign keep them, and take none over from the directory.
mkdir "$dir/into"
acl -d "$dir/into" u::7 u:1236:7 g::7 m::7 o::0
weightfs pack -q "$dir/src" -o "$dir/into/store" || fail "pack"
weightfs unpack -q "$dir/into/store" -o "$dir/into/back" || fail "unpack"
cp -a "$dir/src" "$dir/in-place"
weightfs pack -q --in-place "$dir/in-place" || fail "pack --in-place"
openssl genpkey -algorithm ed25519 -out "$dir/key" 2>/dev/null
weightfs sign "$dir/in-place" --key "$dir/key" >/dev/null || fail "sign"
for store in into/store in-place; do
	is "$dir/$store/listed.wfs" 660 "$list"
	is "$dir/$store/small" 660 "$list"
	is "$dir/$store/sub/denied.wfs" 644 "$deny"
	is "$dir/$store/sub" 750 "$dir_list"
	is "$dir/$store/plain.wfs" 640 ""
done
weightfs unpack -q --in-place "$dir/in-place" || fail "unpack --in-place"
for tree in into/back in-place; do
	is "$dir/$tree/listed" 660 "$list"
	is "$dir/$tree/sub/denied" 644 "$deny"
	is "$dir/$tree/plain" 640 ""
done

# Where there are none, the bits give what the list gives to everyone it names, at most.
mkdir "$dir/without"
at_end()
{
	umount "$dir/without"
}
mount -t ramfs ramfs "$dir/without"
weightfs pack -q "$dir/src" -o "$dir/without/store" || fail "pack to where there are no lists"
[ "$(stat -c %a "$dir/without/store/listed.wfs" "$dir/without/store/sub/denied.wfs" "$dir/without/store/sub" \
	"$dir/without/store/plain.wfs" | paste -sd ' ')" = "600 600 700 640" ] ||
	fail "modes without lists: $(stat -c '%n %a' "$dir"/without/store/*)"

# A mount shows the bits to its own user, and to others what they may use.
mount_store "$dir/into/store" "$dir/mnt"
[ "$(stat -c %a "$dir/mnt/listed")" = 660 ] || fail "the mode in a mount for one user"
unmount "$dir/mnt"
mount_store "$dir/into/store" "$dir/mnt" -o allow_other
for name in listed:600 small:600 sub:700 sub/denied:600 plain:640; do
	[ "$(stat -c %a "$dir/mnt/${name%:*}")" = "${name#*:}" ] || fail "${name%:*} in a mount for others: $(stat -c %a "$dir/mnt/${name%:*}")"
done
# Asked for anew, of a file that is closed and of one that is open.
for name in listed small; do
	[ "$(stat --cached=never -c %a "$dir/mnt/$name")" = 600 ] || fail "the mode of $name, asked for again"
	exec 5<"$dir/mnt/$name"
	[ "$(stat -L --cached=never -c %a /proc/self/fd/5)" = 600 ] || fail "the mode of $name while it is open"
	exec 5<&-
done
chmod 755 "$dir"
expect_status 1 setpriv --reuid 65534 --regid 0 --clear-groups cat "$dir/mnt/listed"
grep -q "Permission denied" "$dir/err" || fail "another reason: $(cat "$dir/err")"
setpriv --reuid 65534 --regid 0 --clear-groups cat "$dir/mnt/plain" | cmp - "$dir/src/plain" || fail "one whom the bits let in"
