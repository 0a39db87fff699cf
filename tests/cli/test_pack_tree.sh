#!/bin/bash
# A tree with everything in it is packed and unpacked: the same tree comes back, and what can be a container is one.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

src=$dir/src store=$dir/store back=$dir/back
mkdir -p "$src/sub/deep/empty" "$src/closed"
weights "$src/model.safetensors" 2
weights "$src/sub/second.safetensors" 9 1 # more than a small file
head -c 300000 /dev/urandom >"$src/noise.bin"
head -c 65535 /dev/zero >"$src/small.bin"
head -c 65536 /dev/zero >"$src/just.bin"
: >"$src/empty.json"
echo '{"a": 1}' >"$src/config.json"
# Sparse: 40 MiB with three pages of data.
truncate -s 40M "$src/sparse.bin"
for at in 0 2000 9999; do
	dd if=/dev/urandom of="$src/sparse.bin" bs=4k count=1 seek=$at conv=notrunc status=none
done
# Links of both kinds.
ln "$src/model.safetensors" "$src/sub/same.safetensors"
ln "$src/config.json" "$src/sub/same.json"
ln "$src/noise.bin" "$src/sub/same.bin"
ln -s ../model.safetensors "$src/sub/link"
ln -s nowhere "$src/dangling"
ln -s sub "$src/dirlink"
# Names: spaces, line ends, bytes that are not UTF-8, the longest ones.
weights "$src/with space"$'\n'"and line.safetensors"
weights "$src/"$'\xff\xfe'"bytes"
long=$(printf 'n%.0s' {1..251})
weights "$src/$long"
weights "$src/${long}long"
# What ends in .wfs: an ordinary small file, an ordinary big one.
echo text >"$src/notes.wfs"
weights "$src/big.wfs"
# Modes.
chmod 400 "$src/model.safetensors"
chmod 751 "$src/sub"
chmod 4711 "$src/just.bin"
chmod 600 "$src/config.json"
chmod 2770 "$src/sub/deep"
weights "$src/closed/a.safetensors"
chmod 500 "$src/closed"
# Times to the nanosecond, before 1970 and far away.
touch -d '2001-02-03 04:05:06.123456789Z' "$src/model.safetensors"
touch -d '1969-07-20 20:17:40.000000001Z' "$src/sub/second.safetensors"
touch -d '2150-01-01 00:00:00.999999999Z' "$src/noise.bin"
touch -h -d '1999-12-31 23:59:59.5Z' "$src/dangling"
touch -d '2010-10-10 10:10:10.10101Z' "$src/sub/deep/empty" "$src/sub/deep" "$src/sub" "$src/closed"
touch -d '2011-11-11 11:11:11.11111Z' "$src"
cp -a "$src" "$dir/kept"

# Two names are too long for the suffix; the one with 251 bytes is not.
expect 0 "not packed: the name is too long" weightfs pack "$src" -o "$store"
for name in model.safetensors sub/second.safetensors just.bin sparse.bin sub/same.safetensors big.wfs "$long" \
	"with space"$'\n'"and line.safetensors" closed/a.safetensors; do
	[ -f "$store/$name.wfs" ] && [ ! -e "$store/$name" ] || fail "not packed: $name"
done
for name in noise.bin small.bin empty.json config.json notes.wfs "${long}long" sub/same.bin; do
	[ -f "$store/$name" ] && [ ! -e "$store/$name.wfs" ] || fail "not copied: $name"
done
[ "$store/model.safetensors.wfs" -ef "$store/sub/same.safetensors.wfs" ] || fail "hard link of a container"
[ "$store/noise.bin" -ef "$store/sub/same.bin" ] || fail "hard link of a copied file"
for name in model.safetensors sub/second.safetensors just.bin; do
	[ "$(stat -c '%a %u %g %y' "$store/$name.wfs")" = "$(stat -c '%a %u %g %y' "$src/$name")" ] ||
		fail "attributes of the container of $name"
done
no_temporaries "$store"
same_tree "$dir/kept" "$src" # packing changes nothing in the source
ok weightfs verify "$store"

ok weightfs unpack "$store" -o "$back"
same_tree "$src" "$back"
[ "$(stat -c %b "$back/sparse.bin")" -lt 10000 ] || fail "the sparse file came back full"
no_temporaries "$back"

# Again: everything is there already, nothing is written anew.
manifest "$store" >"$dir/before"
stat -c '%i %n' "$store"/*.wfs >"$dir/inodes"
expect 0 "too long" weightfs pack "$src" -o "$store" --json
json 'd["totals"]["packed"] == 0 and d["totals"]["copied"] == 0 and d["totals"]["failed"] == 0'
json 'd["totals"]["present"] == 18'
manifest "$store" | diff "$dir/before" - >/dev/null || fail "the second run changed the store"
stat -c '%i %n' "$store"/*.wfs | diff "$dir/inodes" - >/dev/null || fail "the second run wrote containers anew"
ok weightfs unpack "$store" -o "$back" --json
json 'd["totals"]["unpacked"] == 0 and d["totals"]["copied"] == 0 and d["totals"]["present"] == 18'
same_tree "$src" "$back"

# Threads, block sizes and CPU variants do not change what comes back.
for options in "-j 1" "-j 3 --block-size 64k" "--block-size 1M --cpu scalar"; do
	chmod -R u+w "$dir/store2" "$dir/back2" 2>/dev/null || true
	rm -rf "$dir/store2" "$dir/back2"
	# shellcheck disable=SC2086 # options are words
	expect 0 "too long" weightfs pack "$src" -o "$dir/store2" $options
	ok weightfs unpack "$dir/store2" -o "$dir/back2" -j 2
	same_tree "$src" "$dir/back2"
done

# --min-saving, --reflink, --hardlink.
expect 0 "too long" weightfs pack "$src" -o "$dir/store3" --min-saving 90 --hardlink
[ -f "$dir/store3/model.safetensors" ] && [ -f "$dir/store3/sparse.bin.wfs" ] || fail "--min-saving 90"
[ "$dir/store3/noise.bin" -ef "$src/noise.bin" ] || fail "--hardlink"
[ "$dir/store3/sub/same.json" -ef "$src/config.json" ] || fail "--hardlink of a hard link"
# What cannot be removed from beside a link is said; the link itself stands.
mkdir -p "$dir/small" "$dir/store5/a.wfs"
echo text >"$dir/small/a"
expect 1 "cannot remove its other form" weightfs pack "$dir/small" -o "$dir/store5" --hardlink --force
[ "$dir/store5/a" -ef "$dir/small/a" ] || fail "a link beside what cannot go"
expect 0 "too long" weightfs pack "$src" -o "$dir/store4" --reflink
ok weightfs unpack "$dir/store4" -o "$dir/back4" --reflink
same_tree "$dir/kept" "$dir/back4"
