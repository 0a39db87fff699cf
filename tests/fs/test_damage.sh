#!/bin/bash
# Damaged containers: EIO for what is touched and only that, said once in the log; single copies lost are survived.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/good" "$dir/store"
original=$dir/zoo/values-rows-of-unlike-scale.safetensors
pack "$original" "$dir/good/model.wfs"
"$WFS_PYTHON" "$tests/fs/damage.py" make "$dir/good/model.wfs" "$dir/store"
mount_store "$dir/store" "$dir/mnt" -o "log=$dir/log"
"$WFS_PYTHON" "$tests/fs/damage.py" check "$dir/store" "$dir/mnt" "$original" || fail "what the mount shows of damage"

lines()
{
	grep -cF -- "$1" "$dir/log" || true
}
cat "$dir/mnt/flip-payload" >/dev/null 2>&1 && fail "a damaged file reads without an error"
[ "$(lines flip-payload)" = 1 ] || fail "$(lines flip-payload) log lines for one bad block: $(cat "$dir/log")"
# It names the block, and so does verify.
block=$("$WFS_PYTHON" - "$tests/vectors" "$dir/good/model.wfs" <<-'END'
	import itertools, sys
	sys.path.insert(0, sys.argv[1])
	import wfsfile
	box = wfsfile.Container(open(sys.argv[2], "rb").read())
	flipped = box.head["payload_len"] // 2
	print(sum(end <= flipped for end in itertools.accumulate(box.lengths)))
END
)
[ "$(lines "flip-payload.wfs: block $block (")" = 1 ] || fail "the log does not name block $block: $(cat "$dir/log")"
# It says when that was, and what to do.
[ "$(grep -cvE '^20[0-9]{2}-[0-1][0-9]-[0-3][0-9]T[0-2][0-9](:[0-5][0-9]){2}Z weightfsd: ' "$dir/log")" = 0 ] ||
	fail "a line of the log without the time: $(cat "$dir/log")"
for name in flip-payload both-metadata both-heads-but-magic; do
	grep -F "$name.wfs: " "$dir/log" | grep -qF "; run weightfs verify $dir/store, and restore this file" ||
		fail "the log does not say what to do about $name: $(cat "$dir/log")"
done
expect_status 1 weightfs verify "$dir/store/flip-payload.wfs"
grep -q "flip-payload.wfs: damaged: block $block (" "$dir/err" || fail "verify does not name block $block: $(cat "$dir/err")"
[ "$(lines both-heads-but-magic)" = 1 ] || fail "$(lines both-heads-but-magic) log lines for a container without a head"
bad=$(weightfs stats "$dir/mnt" --json | "$WFS_PYTHON" -c '
import json, sys
def find(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "bad_blocks":
                yield value
            yield from find(value)
print(sum(find(json.load(sys.stdin))))')
[ "$bad" -ge 2 ] || fail "stats count $bad bad blocks"
# verify names the file and fails; the undamaged and the survivors pass.
for name in flip-payload two-flips cut-in-payload both-metadata both-heads-but-magic; do
	expect_status 1 weightfs verify "$dir/store/$name.wfs"
	grep -qF "$name" "$dir/err" || grep -qF "$name" "$dir/out" || fail "verify does not name $name"
	expect_status 1 weightfs unpack "$dir/store/$name.wfs" -o "$dir/unpacked"
	[ ! -e "$dir/unpacked" ] || fail "unpack leaves a file behind for $name"
done
expect_status 0 weightfs verify "$dir/store/good.wfs"
# Mending the store is enough: no remount.
cp -p "$dir/good/model.wfs" "$dir/mended"
mv "$dir/mended" "$dir/store/flip-payload.wfs"
wait_until "the mended container" cmp -s "$original" "$dir/mnt/flip-payload"
# A log that has reached a limit of file sizes holds up nothing.
unmount "$dir/mnt"
(ulimit -f 1 && "$WFS_BIN/weightfsd" "$dir/store" "$dir/mnt" -o "log=$dir/limited") || fail "cannot mount with a limit of file sizes"
mounts+=("$dir/mnt")
for name in flip-payload both-heads-but-magic both-heads longer cut-in-head empty zeros two-flips first-byte; do
	cat "$dir/mnt/$name" >/dev/null 2>&1 || true
done
[ "$(stat -c %s "$dir/limited")" = 1024 ] || fail "the log did not reach its limit"
cmp "$original" "$dir/mnt/flip-payload" || fail "a log that is full ends the daemon"
