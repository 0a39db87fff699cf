#!/bin/bash
# The kernel's side of a mount: what the daemon sets is in force and in the statistics; without the right to set it, one
# line of the log says what to run, and that helps.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/fs/controls.sh
. "$tests/fs/controls.sh"

mkdir "$dir/store" "$dir/mnt"
"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
pack "$a" "$dir/store/model.wfs"

# stats_are PYTHON_EXPRESSION: of the document d.
stats_are()
{
	weightfs stats "$dir/mnt" --json >"$dir/stats" || fail "stats"
	"$WFS_PYTHON" -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' \
		"$dir/stats" "$1" || fail "not true of the statistics: $1: $(cat "$dir/stats")"
}
# Sets $ahead (a file) and $control (a folder) for the mount.
find_settings()
{
	local device
	device=$(awk -v mnt="$dir/mnt" '$5 == mnt { print $3 }' /proc/self/mountinfo)
	ahead=/sys/class/bdi/$device/read_ahead_kb control=$controls/${device#*:}
}

# Root: all is set, nothing to say.
mount_logged "$dir/log" "$dir/store" "$dir/mnt"
find_settings
[ "$(cat "$ahead")" = 2048 ] || fail "read_ahead_kb is $(cat "$ahead")"
[ "$(cat "$control/max_background")" -ge 64 ] || fail "max_background is $(cat "$control/max_background")"
[ "$(cat "$control/congestion_threshold")" -ge 64 ] || fail "congestion_threshold"
grep -q 'run as root' "$dir/log" && fail "root is told what to run: $(cat "$dir/log")"
stats_are 'd["read_ahead_kb"] == d["read_ahead_kb_wanted"] == 2048'
stats_are "d['max_background'] == d['max_background_wanted'] == $(cat "$control/max_background")"
stats_are "d['congestion_threshold'] == d['congestion_threshold_wanted'] == $(cat "$control/congestion_threshold")"
stats_are 'd["max_read_bytes"] == 1 << 20 and d["max_pages"] == 256 and d["fuse_protocol_minor"] >= 28'
stats_are 'd["max_readahead_bytes"] >= 4096 and d["store_direct"] == "untried" and d["store_fs"]'
cmp "$a" "$dir/mnt/model" || fail "the bytes"
stats_are 'd["store_direct"] in ("works", "refused")'
# What somebody changes afterwards is shown as it is.
echo 256 >"$ahead"
echo 70 >"$control/max_background"
echo 69 >"$control/congestion_threshold"
stats_are '(d["read_ahead_kb"], d["max_background"], d["congestion_threshold"]) == (256, 70, 69)'
unmount "$dir/mnt"

# Less than the kernel would read ahead takes no rights: INIT asks for it.
mount_store "$dir/store" "$dir/mnt" -o read_ahead_kb=64
find_settings
[ "$(cat "$ahead")" = 64 ] || fail "read_ahead_kb=64: $(cat "$ahead")"
stats_are 'd["max_readahead_bytes"] == 65536 and d["read_ahead_kb"] == d["read_ahead_kb_wanted"] == 64'
unmount "$dir/mnt"
# 0: as the kernel has it.
mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o read_ahead_kb=0
stats_are 'd["read_ahead_kb_wanted"] == 0 and d["read_ahead_kb"] * 1024 == d["max_readahead_bytes"]'
grep -q 'run as root' "$dir/log" && fail "read_ahead_kb=0 is complained about: $(cat "$dir/log")"
unmount "$dir/mnt"

# Without the files of fusectl: unknown, and nothing lacks.
if [ -n "${WFS_TEST_UNSHARED-}" ] && umount $controls 2>/dev/null; then
	mount_logged "$dir/log" "$dir/store" "$dir/mnt"
	stats_are 'd["max_background"] is None and d["congestion_threshold"] is None'
	grep -q 'run as root' "$dir/log" && fail "unknown values are complained about: $(cat "$dir/log")"
	weightfs stats "$dir/mnt" | grep -q unknown || fail "the table does not say unknown"
	unmount "$dir/mnt"
	mount -t fusectl none $controls
fi

# A user may not raise them, and the kernel caps what INIT asks for: one line, which root can run as it stands.
# shellcheck source=tests/fs/user.sh
. "$tests/fs/user.sh"
cap=/sys/module/fuse/parameters/max_user_bgreq
if [ -w $cap ]; then
	old=$(cat $cap)
	at_end()
	{
		echo "$old" >$cap
	}
	echo 40 >$cap
fi
chown 65534:65534 "$dir/mnt"
touch "$dir/user.log"
chown 65534 "$dir/user.log"
mounts+=("$dir/mnt")
as 65534 "$WFS_BIN/weightfs" mount "$dir/store" "$dir/mnt" -o "log=$dir/user.log" 2>"$dir/said" ||
	fail "mount by a user: $(cat "$dir/said")"
find_settings
[ "$(grep -hc 'run as root' "$dir/said")" = 1 ] || fail "not one line that says what to run: $(cat "$dir/said")"
commands=$(sed -n 's/.*run as root: //p' "$dir/said")
stats_are 'd["read_ahead_kb"] < d["read_ahead_kb_wanted"]'
[ ! -w $cap ] || stats_are 'd["max_background"] == 40'
bash -c "$commands" || fail "the line's commands: $commands"
stats_are 'all(d[k] >= d[k + "_wanted"] for k in ("read_ahead_kb", "max_background", "congestion_threshold"))'
as 65534 cmp "$a" "$dir/mnt/model" || fail "the user's bytes"
as 65534 "$WFS_BIN/weightfs" umount "$dir/mnt" || fail "umount by the user"
