/* manifest_check.c - whether what lies in the store is what a manifest's entry says. */
#include "container.h"
#include "manifest_text.h"

enum wfs_status wfs_manifest_check_container(const struct wfs_manifest_entry *entry, const struct wfs_reader *reader,
					     struct wfs_error *err)
{
	if (entry->kind != WFS_MANIFEST_CONTAINER || !reader->block_sha256)
		return wfs_fail(err, WFS_BAD_ARGUMENT, "the container was not opened for a check by a manifest");
	if (reader->head.raw_len != entry->size || memcmp(reader->head.sha256, entry->sha256, WFS_DIGEST_BYTES))
		return wfs_fail(err, WFS_BAD_CHECKSUM, "the container holds another file than the signed one");
	if (memcmp(reader->meta_sha256, entry->meta_sha256, WFS_DIGEST_BYTES))
		return wfs_fail(err, WFS_BAD_CHECKSUM, "the container's metadata is not the signed one");
	return WFS_OK;
}

size_t wfs_manifest_piece_len(const struct wfs_manifest_entry *entry, uint64_t index)
{
	return (size_t)WFS_MIN(entry->size - index * WFS_MANIFEST_PIECE_BYTES, (u64)WFS_MANIFEST_PIECE_BYTES);
}

enum wfs_status wfs_manifest_check_piece(const struct wfs_manifest_entry *entry, uint64_t index, const void *bytes,
					 struct wfs_error *err)
{
	u8 digest[WFS_DIGEST_BYTES];

	if (!wfs_digest(bytes, wfs_manifest_piece_len(entry, index), digest))
		return wfs_fail_block(err, WFS_NO_MEMORY, index, "cannot compute SHA-256");
	if (memcmp(digest, entry->piece + index * WFS_DIGEST_BYTES, WFS_DIGEST_BYTES))
		return wfs_fail_block(err, WFS_BAD_CHECKSUM, index, "the bytes are not the signed ones");
	return WFS_OK;
}
