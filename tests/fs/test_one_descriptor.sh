#!/bin/bash
# Eight threads on one descriptor, and eight that fault in one mapping, are served side by side: the store is asked for
# all of it at once. Meanwhile, with every thread that decodes waiting, names, attributes and lists are answered.
# shellcheck source=tests/fs/load.sh
. "$(dirname "$0")/load.sh"

# shellcheck source=tests/fs/slow.sh
. "$tests/fs/slow.sh"
mkdir "$dir/files" "$dir/slow"
shards "$dir" 8 BF16
model=$(basename "$dir"/src/*)
mv "$dir/store/$model.wfs" "$dir/files/"
echo text >"$dir/files/plain"
mkfifo "$dir/say" "$dir/hear"
slow_store "$dir/files" "$dir/slow" "$dir/hang"

for how in pread mmap; do
	mount_logged "$dir/log" "$dir/slow" "$dir/mnt" -o io_timeout=0,threads=2
	cat "$dir/mnt/plain" >/dev/null
	stat "$dir/mnt/$model" >/dev/null
	exec 5<"$dir/mnt/$model" # its head is read
	rm -f "$dir/hang.held"
	touch "$dir/hang"
	"$WFS_PYTHON" "$tests/fs/one_descriptor.py" "$dir/mnt/$model" "$dir/src/$model" "$dir/hang.held" $how <"$dir/say" >"$dir/hear" &
	reader=$!
	exec 6>"$dir/say" 7<"$dir/hear"
	read -r -t "$deadline_seconds" word <&7 || fail "$how: the store is asked for $(cat "$dir/hang.held") of 8 blocks at once"
	[ "$word" = waiting ] || fail "$how: $word"
	for command in "stat $dir/mnt/$model" "stat $dir/mnt/plain" "ls -l $dir/mnt" "stat -f $dir/mnt" "test -e $dir/mnt/none" \
		"weightfs stats $dir/mnt"; do
		status=0
		# shellcheck disable=SC2086 # words
		PATH=$WFS_BIN:$PATH timeout "$deadline_seconds" $command >/dev/null || status=$?
		[ $status -ne 124 ] || fail "$how: not answered while all that decode wait: $command"
	done
	rm "$dir/hang"
	echo go >&6
	read -r -t "$deadline_seconds" word <&7 || fail "$how: no bytes once the store answers"
	[ "$word" = right ] || fail "$how: $word"
	exec 5<&- 6>&- 7<&-
	wait "$reader" || fail "$how: the reader fails"
	unmount "$dir/mnt"
done
