/* container_write.h - the container around blocks that are already encoded. Private. */
#ifndef WFS_CONTAINER_WRITE_H
#define WFS_CONTAINER_WRITE_H

#include "plan.h"

/* What the metadata says of every block. */
struct wfs_columns {
	u32 *comp_len;
	u16 *selector;
	u64 *hash;
	u8 *sha256; /* NULL: not wanted */
};
/* sha256: with that column. false: out of memory; free in any case. */
bool wfs_columns_new(struct wfs_columns *columns, u64 nr_blocks, bool sha256);
void wfs_columns_free(struct wfs_columns *columns);

/* A container being written: payload first, the rest around it at the end. */
struct wfs_container_writer {
	int fd;
	const struct wfs_plan *plan;
	u64 payload_off, payload_len;
};
/* Reserves room for copy A of the metadata, with the column of SHA-256 or without. */
enum wfs_status wfs_container_start(struct wfs_container_writer *w, int fd, const struct wfs_plan *plan, bool sha256,
				    struct wfs_error *err);
/* Appends stored bytes of the next blocks. */
enum wfs_status wfs_container_append(struct wfs_container_writer *w, const void *comp, size_t comp_len,
				     struct wfs_error *err);
/* Writes metadata, head and tail around the payload. meta: the room before it, zeros behind its meta_len bytes. Of d
 * the caller sets what is not of the file's own making: raw_len, mtime, block_log2, meta_len, sha256. */
enum wfs_status wfs_container_frame(const struct wfs_container_writer *w, struct wfs_disk_head *d, const u8 *meta,
				    struct wfs_error *err);
/* The same for a container that was encoded. */
enum wfs_status wfs_container_finish(struct wfs_container_writer *w, const struct wfs_columns *columns,
				     const struct wfs_encode_opts *opts, const u8 sha256[WFS_SHA256_BYTES],
				     u64 *file_len_ret, struct wfs_error *err);

/* Bytes of the metadata when the columns do not compress: the most that it can need. */
enum wfs_status wfs_meta_bound(const struct wfs_plan *plan, bool sha256, u64 *meta_len_ret, struct wfs_error *err);

#endif
