#!/bin/bash
# weightfs doctor: a mount that is as it should be, each thing that can be improved with what helps against it, and
# mounts whose daemon is dead, stopped or somebody else's.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
store=$dir/store mnt="$dir/m'n t"
mkdir "$store" "$mnt"
pack "$a" "$store/model.wfs"
at_end()
{
	[ -z "${daemon-}" ] || gone "$daemon" || kill -KILL "$daemon"
}

# doctor STATUS [ARG...]: its JSON document is in $dir/doctor. What this machine as a whole lacks is not counted.
doctor()
{
	local want=$1
	shift
	expect_status "$want" "${tool:-$WFS_BIN/weightfs}" doctor --json "$mnt" "$@"
	[ ! -s "$dir/err" ] || fail "doctor says: $(cat "$dir/err")"
	mv "$dir/out" "$dir/doctor"
}
# holds PYTHON_EXPRESSION: of the document d, its advice as "what: run" in improve.
holds()
{
	"$WFS_PYTHON" - "$dir/doctor" "$1" <<-'END' || fail "not true of doctor: $1: $(cat "$dir/doctor")"
		import json, sys
		d = json.load(open(sys.argv[1], errors="surrogateescape"))
		improve = [f'{a["what"]}: {a["run"]}' for a in d["improve"] if "huge" not in a["what"]]
		sys.exit(not eval(sys.argv[2]))
	END
}
healthy=0
grep -qF '[never]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null && healthy=1
root=false
[ "$(id -u)" = 0 ] && root=true

expect_status 2 weightfs doctor
expect_status 2 weightfs doctor "$mnt" --nonsense
expect_status 2 weightfs doctor "$dir/nowhere"
expect_status 2 weightfs doctor "$mnt"
[ "$(wc -l <"$dir/err")" = 1 ] && grep -q 'no weightfs is mounted' "$dir/err" || fail "no mount: $(cat "$dir/err")"

if $root; then
	mount_store "$store" "$mnt"
	cmp "$a" "$mnt/model"
	doctor $healthy
	holds 'improve == [] and d["state"] == "serves" and d["reason"] is None and d["mount"].endswith("m\u0027n t")'
	weightfs stats "$mnt" --json >"$dir/stats"
	"$WFS_PYTHON" - "$dir/doctor" "$dir/stats" <<-'END' || fail "doctor and stats differ"
		import json, sys
		doctor, stats = (json.load(open(path)) for path in sys.argv[1:])
		assert doctor["stats"].keys() == stats.keys()
		assert all(doctor["stats"][k] == stats[k] for k in ("reads", "pid", "store", "cpu", "request_sizes"))
	END
	# In words; a path within will do.
	expect_status $healthy weightfs doctor "$mnt/model"
	for text in "nothing to improve" "read-ahead   2048 KiB, wanted 2048" "O_DIRECT reads: " "INIT         FUSE 7." \
		"best here" "cache  " "up to " "0 bad blocks"; do
		[ $healthy = 1 ] || grep -qF -- "$text" "$dir/out" || fail "'$text' is not in: $(cat "$dir/out")"
	done
	# What it says to run helps.
	ahead=/sys/class/bdi/$(mountpoint -d "$mnt")/read_ahead_kb
	echo 128 >"$ahead"
	doctor 1
	holds "improve == ['requests are small and few: the kernel reads ahead 128 KiB, and 2048 are wanted: as root: echo 2048 > $ahead']"
	expect_status 1 weightfs doctor "$mnt"
	bash -c "$(sed -n 's/^ *as root: //p' "$dir/out")"
	doctor $healthy
	holds 'improve == []'
	unmount "$mnt"
	mount_store "$store" "$mnt" -o read_ahead_kb=0
	if [ "$(cat "$ahead")" -lt 1024 ]; then
		doctor 1
		holds 'len(improve) == 1 and "read_ahead_kb=0" in improve[0] and "echo 2048 > " in improve[0]'
	fi
	unmount "$mnt"
fi

# Chosen at the mount.
mount_store "$store" "$mnt" -o cpu=scalar,threads=1
weightfs stats "$mnt" --json >"$dir/stats"
doctor 1
holds '(d["stats"]["cpu_best"] == "scalar") != any("decodes with scalar" in i and "cpu=auto" in i for i in improve)'
holds '(d["stats"]["processors"] == 1) != any("-o threads=%d" % d["stats"]["processors"] in i for i in improve)'
unmount "$mnt"

# Damage: which command names it, also where the store lies beneath the mount.
mkdir "$dir/damaged"
cp -p "$store/model.wfs" "$dir/damaged"
"$WFS_PYTHON" "$tests/cli/flip.py" "$dir/damaged/model.wfs" 100000
mount_store "$dir/damaged" "$mnt"
expect_status 1 cat "$mnt/model"
doctor 1
holds 'any(i.startswith("damage was found: 1 block, and 0 files as a whole") and i.endswith(": weightfs verify '"$dir/damaged"'") for i in improve)'
unmount "$mnt"
mount_store "$dir/damaged" "$dir/damaged"
expect_status 1 cat "$dir/damaged/model"
mnt=$dir/damaged doctor 1
holds 'any(i.endswith(": weightfs verify '"$dir/damaged"'") for i in improve)'
expect_status 1 weightfs verify "$dir/damaged"
grep -q 'model.wfs: damaged: block' "$dir/err" || fail "what doctor says to run does not help: $(cat "$dir/err")"
unmount "$dir/damaged"

# What does not happen at will: a stand-in for the daemon, which the command looks for beside itself, says that it has.
mkdir "$dir/bin"
cp "$WFS_BIN/weightfs" "$dir/bin"
cat >"$dir/bin/weightfsd" <<-END
	#!/bin/sh
	[ "\$*" = "--stats --json -- $mnt" ] || exit 7
	cat "$dir/said"
END
chmod +x "$dir/bin/weightfsd"
mount_store "$store" "$mnt"
weightfs stats "$mnt" --json >"$dir/stats"
# says 'KEY=VALUE, ...': the true document with these values.
says()
{
	"$WFS_PYTHON" - "$dir/stats" "$1" >"$dir/said" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		for key in ("read_ahead_kb", "max_background", "congestion_threshold"):
		    d[key] = d[key + "_wanted"]
		d.update(eval(f"dict({sys.argv[2]})"))
		print(json.dumps(d))
	END
}
tool=$dir/bin/weightfs
says ''
doctor $healthy
holds 'improve == []'
minor=$(mountpoint -d "$mnt")
minor=${minor#*:}
says 'max_background=12, congestion_threshold=9'
doctor 1
holds "improve[0].endswith('12 requests at once, and 128 are wanted: as root: echo 128 > /sys/fs/fuse/connections/$minor/max_background')"
holds "improve[1].endswith('9 requests are out, and 96 are wanted: as root: echo 96 > /sys/fs/fuse/connections/$minor/congestion_threshold')"
says 'max_background=None, congestion_threshold=None'
doctor $healthy
holds 'improve == []'
says 'max_pages=32'
doctor 1
holds 'len(improve) == 1 and "at most 128 KiB" in improve[0]'
says 'timeouts=3'
doctor 1
holds 'len(improve) == 1 and "3 requests failed" in improve[0] and "io_timeout=" in improve[0]'
says 'cache_overflow_bytes=4096'
doctor 1
holds 'len(improve) == 1 and "-o cache=512M" in improve[0]'
says 'bytes_decoded=40 << 30, bytes_served=1 << 30, cache_bytes=250 << 20'
doctor 1
holds 'len(improve) == 1 and "again and again" in improve[0] and "-o cache=512M" in improve[0]'
# Much decoded for little, as random reads do; but the cache has room.
says 'bytes_decoded=40 << 30, bytes_served=1 << 30, cache_bytes=100 << 20'
doctor $healthy
says 'ahead_blocks=5000, ahead_used=4000, ahead_wasted=900'
doctor 1
holds 'len(improve) == 1 and "900 of 5000 blocks" in improve[0] and "-o cache=512M" in improve[0]'
says 'ahead_blocks=5000, ahead_used=4900, ahead_wasted=100'
doctor $healthy
expect_status $healthy "$tool" doctor "$mnt"
grep -q 'ahead  *5000 blocks decoded ahead, 4900 used, 100 wasted' "$dir/out" || fail "decode-ahead: $(cat "$dir/out")"
# One of a kind, and more or none.
says 'threads=1, processors=1, max_background=1, reads=1, cache_hits=1, cache_misses=1, cache_evictions=0, bad_blocks=1, timeouts=1'
doctor 1
holds 'any("1 request failed" in i for i in improve) and any("sends 1 request at once" in i for i in improve)'
expect_status 1 "$tool" doctor "$mnt"
for text in '; 1 thread on 1 processor$' '1 request, wanted' '  1 read, ' ', 1 hit, 1 miss, 0 evictions, ' \
	' 1 bad block, 0 bad containers, 1 timeout$'; do
	grep -q -- "$text" "$dir/out" || fail "'$text' is not in: $(cat "$dir/out")"
done
# Another user's daemon may say what commands a terminal, in JSON's own way.
says 'cpu="\x1b]2;cpu\x07", cpu_best="\x9bbest", version="\x1b]2;version\x07", store="\x1b]2;store\x07", store_fs="\x1b]2;fs\x07"'
expect_status 1 "$tool" doctor "$mnt"
! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]\|\xc2[\x80-\x9f]' "$dir/out" || fail "a terminal is commanded: $(cat -v "$dir/out")"
grep -q 'decoder  *?]2;cpu?, best here ??best;' "$dir/out" || fail "$(cat -v "$dir/out")"
says 'version="0.0.1"'
doctor 1
holds 'improve[0].startswith("the daemon is weightfs 0.0.1")'
says 'bad_files=1, store="/a b\"\\\u00e9\udcff\n\x27/;c"'
doctor 1
holds '__import__("shlex").split(improve[0].split("weightfs verify ")[1]) == [d["stats"]["store"]]'
# A document that is none, or another's.
for text in '' '{' '{}x' '[1,]' '{"a":01}' '{"a" 1}' '"\u12"' "$(printf '[%.0s' {1..100})" "$(head -c 400 "$dir/stats")"; do
	printf %s "$text" >"$dir/said"
	doctor 1
	holds 'd["state"] == "closed" and d["stats"] is None and "makes no sense" in d["reason"]'
done
for text in '{}' '[]' '17' ' { "reads" : [ { } , [ ] , -1.5e+3 , true , null , "\u00e9\n" ] , "timeouts":"x" } '; do
	printf %s "$text" >"$dir/said"
	expect_status 1 "$tool" doctor "$mnt"
done
tool=
unmount "$mnt"

# Daemons that do not answer: dead, and stopped.
mount_logged "$dir/log" "$store" "$mnt"
kill -STOP "$daemon"
doctor 1
holds 'd["state"] == "silent" and d["stats"] is None and len(improve) == 1 and "kill -CONT '"$daemon"'" in improve[0]'
kill_both "$daemon"
doctor 1
holds 'd["state"] == "dead" and len(improve) == 1 and "weightfs mount STORE" in improve[0]'
expect_status 1 weightfs doctor "$mnt"
grep -q 'its daemon is gone' "$dir/out" || fail "a dead mount: $(cat "$dir/out")"
expect_status 1 weightfs stats "$mnt"
grep -q 'weightfs mount STORE' "$dir/err" || fail "stats of a dead mount: $(cat "$dir/err")"
mount_store "$store" "$mnt"
$root || exit 0
doctor $healthy

# Somebody else's: who may ask is said.
setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null || exit 0
chmod 755 "$dir"
setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$WFS_BIN/weightfs" || exit 0
expect_status 1 setpriv --reuid=65534 --regid=65534 --clear-groups "$WFS_BIN/weightfs" doctor "$mnt"
grep -q 'sudo weightfs doctor' "$dir/out" || fail "a stranger's mount: $(cat "$dir/out")"
expect_status 1 setpriv --reuid=65534 --regid=65534 --clear-groups "$WFS_BIN/weightfs" stats "$mnt"
grep -q 'sudo weightfs doctor' "$dir/err" || fail "stats of a stranger's mount: $(cat "$dir/err")"
