/* container_write.h - the container around blocks that are already encoded. Private. */
#ifndef WFS_CONTAINER_WRITE_H
#define WFS_CONTAINER_WRITE_H

#include "plan.h"

/* What the metadata says of every block. */
struct wfs_columns {
	u32 *comp_len;
	u16 *selector;
	u64 *hash;
};
/* false: out of memory; free in any case. */
bool wfs_columns_new(struct wfs_columns *columns, u64 nr_blocks);
void wfs_columns_free(struct wfs_columns *columns);

/* A container being written: payload first, the rest around it at the end. */
struct wfs_container_writer {
	int fd;
	const struct wfs_plan *plan;
	u64 payload_off, payload_len;
};
/* Reserves room for copy A of the metadata. */
enum wfs_status wfs_container_start(struct wfs_container_writer *w, int fd, const struct wfs_plan *plan,
				    struct wfs_error *err);
/* Appends stored bytes of the next blocks. */
enum wfs_status wfs_container_append(struct wfs_container_writer *w, const void *comp, size_t comp_len,
				     struct wfs_error *err);
/* Writes metadata, head and tail. */
enum wfs_status wfs_container_finish(struct wfs_container_writer *w, const struct wfs_columns *columns,
				     const struct wfs_encode_opts *opts, const u8 sha256[WFS_SHA256_BYTES],
				     u64 *file_len_ret, struct wfs_error *err);

/* Bytes of the metadata when the columns do not compress: the most that it can need. */
enum wfs_status wfs_meta_bound(const struct wfs_plan *plan, u64 *meta_len_ret, struct wfs_error *err);

#endif
