/* wide_decode.h - what the decoders of the wide coding share: segments of a payload, rows near the end of the stream,
 * the end of a block. Private to wide_parse.c and wide_decode_*.c.
 */
#ifndef WFS_WIDE_DECODE_H
#define WFS_WIDE_DECODE_H

#include "split_merge.h"
#include "wide.h"

/* ---- segments ---- */

/* The first word of group i; of the one behind the last: n. */
static inline size_t wfs_wide_group_first(const struct wfs_wide_view *v, u32 i)
{
	return i < v->nr_groups ? wfs_load24(v->groups + WFS_WIDE_GROUP_BYTES * i) : v->n;
}
static inline size_t wfs_wide_group_seg_len(const struct wfs_wide_view *v, u32 i)
{
	return wfs_load16(v->groups + WFS_WIDE_GROUP_BYTES * i + 3);
}

/* The table number of segment i. The states follow the numbers, so two bytes can always be read. */
static inline unsigned wfs_wide_number(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool, size_t i)
{
	const size_t bit = i * pool->number_bits;

	return wfs_load16(v->numbers + bit / 8) >> (bit & 7) & ((1u << pool->number_bits) - 1);
}

/* Walks over the segments of a checked payload. */
struct wfs_wide_cursor {
	size_t end; /* of the current segment */
	unsigned table;
	u32 group;
	size_t group_end, seg_len, number; /* number: of the next segment */
};

static inline void wfs_wide_cursor_next(struct wfs_wide_cursor *c, const struct wfs_wide_view *v,
					const struct wfs_wide_decode_pool *pool)
{
	if (c->end == c->group_end) {
		c->group++;
		c->group_end = wfs_wide_group_first(v, c->group + 1);
		c->seg_len = wfs_wide_group_seg_len(v, c->group);
	}
	c->end = WFS_MIN(c->end + c->seg_len, c->group_end);
	c->table = wfs_wide_number(v, pool, c->number++);
}

static inline struct wfs_wide_cursor wfs_wide_cursor_start(const struct wfs_wide_view *v,
							   const struct wfs_wide_decode_pool *pool)
{
	struct wfs_wide_cursor c = {
		.group_end = wfs_wide_group_first(v, 1),
		.seg_len = wfs_wide_group_seg_len(v, 0),
		.number = 1,
		.table = wfs_wide_number(v, pool, 0),
	};

	c.end = WFS_MIN(c.seg_len - v->phase, c.group_end);
	return c;
}

/* ---- rows and blocks: wide_decode_scalar.c ---- */

/* Bytes that a row takes from the stream at most. */
enum { WFS_WIDE_ROW_BYTES = 2 * WFS_LANES };

/* Where the decoding of a block stands. */
struct wfs_wide_state {
	const u8 *p;		  /* in the stream */
	u32 lane[WFS_WIDE_LANES]; /* states */
};

/* The tables of the positions of a row that begins at word `first`; the cursor moves to the segment of its last. */
void wfs_wide_row_tables(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool, struct wfs_split s,
			 size_t first, struct wfs_wide_cursor *c, const struct wfs_wide_decode_table *of[WFS_LANES]);

/* One row that may lie at the end of the stream. of: table of each position. False: the stream runs out. */
bool wfs_wide_row_careful(struct wfs_wide_state *state, const u8 *stream_end,
			  const struct wfs_wide_decode_table *const of[WFS_LANES], u8 name[WFS_LANES]);

/* Whether all states are where the encoder started, stream and escapes used up. */
bool wfs_wide_is_proven(const struct wfs_wide_state *state, const struct wfs_wide_view *v, size_t used_escapes);

#endif
