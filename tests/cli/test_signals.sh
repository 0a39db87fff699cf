#!/bin/bash
# SIGINT, SIGTERM and SIGHUP during pack and unpack: temporaries go, originals stay, the caller sees the signal.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

mkdir "$dir/tree" "$dir/out"
weights "$dir/tree/big" 96
ok weightfs pack "$dir/tree/big" -o "$dir/big.wfs"

# interrupted SIGNAL NUMBER COMMAND...: started in a shell that does not ignore SIGINT, as one in the background would; the
# signal is sent when the temporary is there.
interrupted()
{
	"$WFS_PYTHON" - "$dir" "$@" <<-'END' >"$out" 2>"$err"
		import glob, json, signal, subprocess, sys
		where, name, command = sys.argv[1], sys.argv[2], sys.argv[3:]
		signal.signal(signal.SIGINT, signal.default_int_handler)
		process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		while process.poll() is None and not glob.glob(where + "/*/.*.weightfs-*.tmp"):
		    pass
		process.send_signal(getattr(signal, name))
		said, errors = process.communicate()
		if process.returncode != -getattr(signal, name):
		    sys.exit(f"status {process.returncode}: {errors.decode()}")
		if b"stopped: interrupted" not in errors:
		    sys.exit(f"says: {errors.decode()}")
		if "--json" in command and json.loads(said)["stopped"] is None:
		    sys.exit(f"JSON: {said.decode()}")
	END
}
for signal in SIGINT SIGTERM SIGHUP; do
	for command in "pack $dir/tree --in-place" "pack $dir/tree -o $dir/out" "pack $dir/tree/big -o $dir/out --json" \
		"unpack $dir/big.wfs -o $dir/out"; do
		# shellcheck disable=SC2086 # words
		interrupted $signal "$WFS_BIN/weightfs" ${command} -j 1 --cpu scalar || fail "$signal, $command: $(cat "$err")"
		no_temporaries "$dir"
		[ -e "$dir/tree/big" ] && [ ! -e "$dir/tree/big.wfs" ] || fail "$signal, $command: the original"
		[ -z "$(ls "$dir/out")" ] || fail "$signal, $command: half a result"
	done
done
# Ignored signals are ignored, as nohup wants it.
"$WFS_PYTHON" - "$dir" "$WFS_BIN/weightfs" pack "$dir/tree" -o "$dir/out" -j 1 --cpu scalar <<-'END' || fail "an ignored signal"
	import glob, signal, subprocess, sys
	where, command = sys.argv[1], sys.argv[2:]
	signal.signal(signal.SIGHUP, signal.SIG_IGN)
	process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
	while process.poll() is None and not glob.glob(where + "/*/.*.weightfs-*.tmp"):
	    pass
	process.send_signal(signal.SIGHUP)
	sys.exit(process.wait())
END
ok weightfs verify "$dir/out"
# Whoever reads the report may go away: the work is done all the same.
rm -rf "$dir/out"
status=0
"$WFS_PYTHON" - "$WFS_BIN/weightfs" pack "$dir/tree" -o "$dir/out" --json <<-'END' 2>"$err" || status=$?
	import os, subprocess, sys
	read, write = os.pipe()
	os.close(read)
	sys.exit(subprocess.run(sys.argv[1:], stdout=write).returncode)
END
[ $status = 1 ] && [ ! -s "$err" ] || fail "a closed pipe: status $status, $(cat "$err")"
ok weightfs verify "$dir/out/big.wfs"
