#!/bin/bash
# mount.weightfs as mount(8) calls it: options of fstab are taken out, the rest reaches the daemon unchanged.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

helper=$WFS_BIN/mount.weightfs
# The programs look for the daemon beside themselves first: a stand-in there prints what it gets.
mkdir "$dir/bin" "$dir/store" "$dir/mnt"
cp "$helper" "$WFS_BIN/weightfs" "$dir/bin"
cat >"$dir/bin/weightfsd" <<'END'
#!/bin/sh
printf '[%s]' "$@"
echo
exit 7
END
chmod +x "$dir/bin/weightfsd"
# gets TEXT COMMAND...: the stand-in was given these arguments.
gets()
{
	local want=$1 got status=0
	shift
	got=$("$@") || status=$?
	[ "$got" = "$want" ] || fail "$* gives the daemon $got, not $want"
	[ $status = 7 ] || fail "$* loses the daemon's status"
}
helper=$dir/bin/mount.weightfs
gets '[--][/s][/m]' "$helper" /s /m
gets '[--][/s][/m]' "$helper" /s /m -sn -o rw
gets '[--][/s][/m]' "$helper" -o rw,nofail,_netdev,noauto,auto,x-systemd.automount,X-a=b,user,users,defaults,comment=c /s /m
gets '[-o][cache=1G,allow_other][--][/s][/m]' "$helper" /s /m -o ro,nofail,cache=1G -o rw,allow_other,nodev
# shellcheck disable=SC2016 # taken literally
gets '[-o][log=/a b][--][/s p][-m;$(x)]' "$helper" -o 'log=/a b' -- '/s p' '-m;$(x)'
gets '[--][/s][/m]' "$helper" /s /m -N 1 -t weightfs
expect 2 usage "$helper"
expect 2 usage "$helper" /s
expect 2 "too many" "$helper" /s /m /x
expect 2 "option '-q' is unknown or lacks its value: usage" "$helper" -q /s /m
expect 2 "option '-o' is unknown or lacks its value: usage" "$helper" /s /m -o
ok "$helper" --help
says "usage: mount.weightfs STORE MNT"
ok "$helper" --version
says "mount.weightfs $(weightfs --version | cut -d' ' -f2)"
expect 2 remount "$helper" /s /m -o remount,ro
ok "$helper" -f /s /m
[ ! -s "$out" ] || fail "-f ran the daemon"
ok "$helper" -f -v /s /m -o cache=1G,rw
says "weightfsd -o cache=1G -- /s /m"

# The same of the command.
weightfs=$dir/bin/weightfs
gets "[--][$dir/store][$dir/mnt]" "$weightfs" mount "$dir/store" "$dir/mnt"
gets "[-o][cache=1G][-f][-o][ro][--][$dir/store][-m]" "$weightfs" mount -o cache=1G "$dir/store" -f -o ro -- -m
gets '[--stats][--][/m]' "$weightfs" stats /m
gets '[--stats][--json][--][/m]' "$weightfs" stats /m --json
# A daemon that cannot be run.
chmod -x "$dir/bin/weightfsd"
expect 1 "cannot run the daemon" "$weightfs" stats /m
# Beside a dead link in PATH: nowhere.
rm "$dir/bin/weightfsd"
if [ ! -e /usr/local/sbin/weightfsd ] && ! command -v weightfsd >/dev/null; then
	expect 1 "cannot run the daemon" "$helper" /s /m
	# It says where it has looked and what to do.
	for text in "no weightfsd in $dir/bin, " " or PATH" "make install"; do
		grep -qF -- "$text" "$err" || fail "'$text' is not in: $(cat "$err")"
	done
fi
