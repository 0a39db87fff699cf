#!/bin/bash
# A daemon without memory (no more address space, no more data), and files that are cut while they are open: an error where there must
# be one, right bytes everywhere else, one word in the log, and all is well once the cause is gone.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
mkdir "$dir/store" "$dir/mnt"
a=$dir/zoo/values-rows-of-unlike-scale.safetensors
for i in {0..9}; do
	cat "$a" >"$dir/zoo/m$i"
	pack "$dir/zoo/m$i" "$dir/store/m$i.wfs"
done
cp "$dir/zoo/text.txt" "$dir/store/plain"

# Sanitizers take address space by the terabyte, and end a program that gets none.
if ! is_sanitized; then
	mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o cache=16M
	"$WFS_PYTHON" - "$daemon" "$dir/mnt" "$a" <<-'END' || fail "without memory"
		import errno, os, resource, sys, threading
		pid, mnt, original = int(sys.argv[1]), sys.argv[2], sys.argv[3]
		want = open(original, "rb").read()
		def size():
		    return int(open(f"/proc/{pid}/statm").read().split()[0]) * 4096
		counts = {"right": 0, "ENOMEM": 0, "other": []}
		def look(i):
		    try:
		        with open(f"{mnt}/m{i}", "rb") as f:
		            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
		            got = f.read()
		        if got == want:
		            counts["right"] += 1
		        else:
		            counts["other"].append("wrong bytes")
		        os.listdir(mnt)
		    except OSError as e:
		        if e.errno in (errno.ENOMEM, errno.EIO):
		            counts["ENOMEM"] += 1
		        else:
		            counts["other"].append(str(e))
		limits = resource.RLIMIT_AS, resource.RLIMIT_DATA
		for room in (-size(), 0, 1 << 16, 1 << 20, 8 << 20):
		    resource.prlimit(pid, limits[0], (size() + room, resource.RLIM_INFINITY))
		    resource.prlimit(pid, limits[1], (max(room, 0), resource.RLIM_INFINITY))
		    for _ in range(3):
		        threads = [threading.Thread(target=look, args=(i,)) for i in range(10)]
		        for t in threads: t.start()
		        for t in threads: t.join()
		for limit in limits:
		    resource.prlimit(pid, limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
		print(counts)
		if counts["other"]:
		    sys.exit(1)
		for i in range(10):
		    if open(f"{mnt}/m{i}", "rb").read() != want:
		        sys.exit("after the limit is gone")
	END
	gone "$daemon" && fail "the daemon died for want of memory"
	# It has nearly all it needs from the start; that the limit was felt shows in what libfuse says of new threads.
	grep -q 'error creating thread' "$dir/log" || fail "the daemon did not feel the limit"
	unmount "$dir/mnt"
fi

# A container and a plain file are cut to half while they are open.
mount_logged "$dir/log" "$dir/store" "$dir/mnt" -o cache=16M
exec 5<"$dir/mnt/m0" 6<"$dir/mnt/plain"
head -c 100 <&5 | cmp -n 100 - "$a" || fail "before it is cut"
truncate -s $(($(stat -c %s "$dir/store/m0.wfs") / 2)) "$dir/store/m0.wfs"
truncate -s 1000 "$dir/store/plain"
"$WFS_PYTHON" - "$a" <<'END' || fail "a container that was cut"
import errno, os, sys
want = open(sys.argv[1], "rb").read()
right = refused = 0
for _ in range(3):
    for at in range(0, len(want), 65536):
        try:
            got = os.pread(5, 65536, at)
        except OSError as e:
            assert e.errno == errno.EIO, e
            refused += 1
        else:
            assert got == want[at : at + 65536], at
            right += 1
print(right, "right,", refused, "refused")
assert right and refused
END
[ "$(head -c 5000 <&6 | wc -c)" -le 5000 ] || fail "a plain file that was cut"
exec 5<&- 6<&-
lines=$(grep -c 'm0' "$dir/log") || fail "nothing is said of a container that was cut"
[ "$lines" -le $(($(stat -c %s "$a") / 65536 + 2)) ] || fail "$lines lines about one container"
[ "$(grep 'm0' "$dir/log" | sort | uniq -d | wc -l)" = 0 ] || fail "said twice: $(cat "$dir/log")"
cmp "$a" "$dir/mnt/m1" || fail "another file"
# Put right again, by another file: shown at once.
cp "$dir/store/m1.wfs" "$dir/store/.m0"
mv "$dir/store/.m0" "$dir/store/m0.wfs"
wait_until "the file that was put right" cmp -s "$a" "$dir/mnt/m0"
unmount "$dir/mnt"
