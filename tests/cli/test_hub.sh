#!/bin/bash
# The Hugging Face cache: snapshots are links, blobs carry their SHA-256 as name.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"

hub=$dir/hub repo=$dir/hub/models--org--name
mkdir -p "$repo/blobs" "$repo/snapshots/0123abcd/sub" "$repo/refs"
echo 0123abcd >"$repo/refs/main"
weights "$dir/model" 3
weight_blob=$(sha256sum <"$dir/model" | cut -c-64)
mv "$dir/model" "$repo/blobs/$weight_blob"
echo '{}' >"$dir/config"
config_blob=$( (printf 'blob 3\0'; cat "$dir/config") | sha1sum | cut -c-40)
mv "$dir/config" "$repo/blobs/$config_blob"
ln -s "../../blobs/$weight_blob" "$repo/snapshots/0123abcd/model.safetensors"
ln -s "../../blobs/$config_blob" "$repo/snapshots/0123abcd/config.json"
ln -s "../../../blobs/$config_blob" "$repo/snapshots/0123abcd/sub/config.json"
cp -a "$hub" "$dir/kept"

# The links alone: word of where the files are, nothing done.
for where in "$repo/snapshots/0123abcd" "$repo/snapshots"; do
	expect 1 "pack $repo" weightfs pack "$where" -o "$dir/store"
	[ ! -e "$dir/store" ] || fail "a failed pack leaves an empty directory"
	expect 1 "pack $repo" weightfs pack --in-place "$where"
done
mkdir "$dir/broken"
ln -s /nowhere/at/all "$dir/broken/link"
expect 1 "broken symbolic links" weightfs pack "$dir/broken" -o "$dir/store"
[ ! -e "$dir/store" ] || fail "a failed pack leaves an empty directory"
# One that was there before stays.
mkdir "$dir/empty"
expect 1 "broken symbolic links" weightfs pack "$dir/broken" -o "$dir/empty"
[ -d "$dir/empty" ] || fail "a failed pack removes somebody else's directory"
same_tree "$dir/kept" "$hub"
# One link names its file.
ok weightfs pack "$repo/snapshots/0123abcd/model.safetensors" -o "$dir"
weightfs cat "$dir/model.safetensors.wfs" | cmp -s - "$repo/blobs/$weight_blob" || fail "a file by its link"
expect 1 "blobs/$weight_blob" weightfs pack --in-place "$repo/snapshots/0123abcd/model.safetensors"

ok weightfs pack --in-place "$hub"
[ -f "$repo/blobs/$weight_blob.wfs" ] && [ ! -e "$repo/blobs/$weight_blob" ] || fail "the blob was not packed"
[ -z "$(find "$repo/snapshots" ! -type d ! -type l)" ] || fail "something foreign in snapshots"
ok weightfs verify "$hub"
ok weightfs unpack --in-place "$hub"
same_tree "$dir/kept" "$hub"
ok weightfs pack "$hub" -o "$dir/store"
ok weightfs unpack "$dir/store" -o "$dir/back"
same_tree "$dir/kept" "$dir/back"

# Damaged downloads are not made to look whole: packed ones, copied ones.
"$WFS_PYTHON" "$tests/cli/flip.py" "$repo/blobs/$weight_blob" 100000
small=$(sha256sum </dev/null | cut -c-64)
echo "not nothing" >"$repo/blobs/$small"
for where in "-o $dir/store2" --in-place; do
	status=0
	# shellcheck disable=SC2086 # words
	weightfs pack "$hub" $where >"$out" 2>"$err" || status=$?
	[ $status = 1 ] && grep -q "$weight_blob: its name is a SHA-256" "$err" || fail "a damaged blob: $(cat "$err")"
	[ ! -e "$dir/store2/models--org--name/blobs/$weight_blob.wfs" ] || fail "a damaged blob was packed"
	[ -f "$repo/blobs/$weight_blob" ] || fail "a damaged blob is gone"
done
[ ! -e "$dir/store2/models--org--name/blobs/$small" ] || fail "a damaged small blob was copied"
[ -f "$dir/store2/models--org--name/blobs/$config_blob" ] || fail "the others go on"
# A mixture of files and links that lead out: packed, with a word.
mkdir "$dir/mix"
weights "$dir/mix/a"
ln -s ../hub "$dir/mix/out"
ln -s sub/../a "$dir/mix/in"
expect 0 "1 symbolic link leads out of it (out -> ../hub" weightfs pack "$dir/mix" -o "$dir/mixed"
