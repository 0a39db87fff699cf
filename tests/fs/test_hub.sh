#!/bin/bash
# A Hugging Face cache: packed in place, mounted over the same path, links and blob names work; undone, all is as before.
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

"$WFS_PYTHON" "$tests/zoo/zoo.py" "$dir/zoo"
hub=$dir/hub
commit=0123456789abcdef0123456789abcdef01234567
# add REPO PATH FILE: as huggingface_hub lays it out; large files are named by SHA-256, others by git's SHA-1.
add()
{
	local repo=$hub/models--$1 path=$2 file=$3 etag up
	etag=$(sha256sum "$file" | cut -d' ' -f1)
	if [ "$(stat -c %s "$file")" -lt 65536 ]; then
		etag=$({
			printf 'blob %d\0' "$(stat -c %s "$file")"
			cat "$file"
		} | sha1sum | cut -d' ' -f1)
	fi
	mkdir -p "$repo/blobs" "$repo/refs" "$(dirname "$repo/snapshots/$commit/$path")"
	printf %s $commit >"$repo/refs/main"
	cp -p "$file" "$repo/blobs/$etag"
	up=$(dirname "$path" | sed 's|^\.$||; s|[^/][^/]*|..|g; s|$|/|; s|^/$||')
	ln -sfn "$up../../blobs/$etag" "$repo/snapshots/$commit/$path"
}
add org--one model.safetensors "$dir/zoo/values-tied.safetensors"
add org--one config.json "$dir/zoo/config.json"
add org--one sub/folder/weights.safetensors "$dir/zoo/dtype-bf16.safetensors"
add org--two model-00001-of-00002.safetensors "$dir/zoo/dtype-f32.safetensors"
add org--two model-00002-of-00002.safetensors "$dir/zoo/dtype-f16.safetensors"
add org--two random.bin "$dir/zoo/random-1048576.bin"
mkdir -p "$hub/.locks/models--org--one"
touch "$hub/.locks/models--org--one/x.lock" "$hub/version.txt"
cp -a "$hub" "$dir/before"
(cd "$hub" && find . -path '*snapshots*' -type l -exec test -e {} \; -print | wc -l | grep -qx 6) ||
	fail "this test built a broken cache"

weightfs pack --in-place "$hub" >/dev/null || fail "pack --in-place"
[ "$(find "$hub" -name '*.wfs' -path '*/blobs/*' | wc -l)" -ge 4 ] || fail "blobs did not become containers"
[ -z "$(find "$hub" -name '*.wfs' -path '*/snapshots/*')" ] || fail "something foreign in snapshots/"
mount_store "$hub" "$hub"
same_tree "$dir/before" "$hub"
for blob in "$hub"/models--*/blobs/*; do
	name=$(basename "$blob")
	[ ${#name} -ne 64 ] || [ "$(sha256sum "$blob" | cut -d' ' -f1)" = "$name" ] || fail "blob $name"
done
link=$hub/models--org--one/snapshots/$commit/sub/folder/weights.safetensors
access "$dir/zoo/dtype-bf16.safetensors" "$(realpath "$link")" || fail "the blob"
cmp "$dir/zoo/dtype-bf16.safetensors" "$link" || fail "through the link"
[ "$(realpath "$link")" = "$(realpath "$hub")/models--org--one/blobs/$(sha256sum "$link" | cut -d' ' -f1)" ] ||
	fail "realpath of a snapshot link"
unmount "$hub"

weightfs unpack "$hub" -o "$dir/after" >/dev/null || fail "unpack"
same_tree "$dir/before" "$dir/after"
