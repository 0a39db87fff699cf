/* meta.h - metadata while it is checked: what meta_read.c and meta_coders.c share. Private to them. */
#ifndef WFS_META_H
#define WFS_META_H

#include "container.h"
#include "cursor.h"

#include <stdlib.h>

struct wfs_meta_section {
	const u8 *comp; /* NULL: absent */
	u64 comp_len, raw_len;
	u16 coding;
};

struct wfs_meta {
	struct wfs_reader *reader;
	struct wfs_error *err;
	struct wfs_meta_section section[WFS_NR_SECTION_KINDS];
};

/* One section's raw bytes; owned is NULL when they lie in the metadata itself. */
struct wfs_meta_body {
	const u8 *bytes;
	size_t len;
	u8 *owned;
};

static inline enum wfs_status wfs_meta_bad(const struct wfs_meta *m, const char *reason)
{
	return wfs_fail(m->err, WFS_BAD_DATA, reason);
}

static inline enum wfs_status wfs_meta_no_memory(const struct wfs_meta *m)
{
	return wfs_fail(m->err, WFS_NO_MEMORY, "out of memory for the metadata");
}

/* An array that stays with the reader. Never NULL for nr = 0. */
static inline void *wfs_reader_alloc(struct wfs_reader *r, u64 nr, size_t size)
{
	u64 bytes;
	void *p;

	if (__builtin_mul_overflow(nr, (u64)size, &bytes) || bytes > SIZE_MAX - 1)
		return NULL;
	p = malloc(WFS_MAX((size_t)bytes, (size_t)1));
	if (p)
		r->memory_bytes += bytes;
	return p;
}

/* meta_coders.c: the sections of pools, wide pools, grids and coders, in this order. */
enum wfs_status wfs_meta_parse_pools(struct wfs_meta *m, const struct wfs_meta_body *body);
enum wfs_status wfs_meta_parse_wide_pools(struct wfs_meta *m, const struct wfs_meta_body *body);
enum wfs_status wfs_meta_parse_grids(struct wfs_meta *m, const struct wfs_meta_body *body);
enum wfs_status wfs_meta_parse_coders(struct wfs_meta *m, const struct wfs_meta_body *body);

#endif
