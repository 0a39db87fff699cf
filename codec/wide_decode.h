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

/* States, and where the next bits are. */
struct wfs_wide_state {
	const u8 *p;
	u32 lane[WFS_WIDE_LANES];
};

/* A walk over the rows of a block: their tables, their escapes. */
struct wfs_wide_walk {
	const struct wfs_wide_view *v;
	const struct wfs_wide_decode_pool *pool;
	struct wfs_wide_cursor cursor;
	size_t used_escapes;
	u8 lane_word[WFS_LANES];
	const struct wfs_wide_decode_table *of[WFS_LANES]; /* table of each position of a row that has several */
};
struct wfs_wide_walk wfs_wide_walk_start(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool,
					 struct wfs_split s);

/* Fills walk->of for the row that begins at word `first` and goes on to the segment of its last word. */
void wfs_wide_walk_mixed(struct wfs_wide_walk *walk, size_t first);

/* The table of the row that begins at word `first`, rows in order; NULL: walk->of has those of its positions. */
static WFS_ALWAYS_INLINE const struct wfs_wide_decode_table *wfs_wide_walk_row(struct wfs_wide_walk *walk, size_t first)
{
	if (first == walk->cursor.end)
		wfs_wide_cursor_next(&walk->cursor, walk->v, walk->pool);
	if (wfs_likely(walk->cursor.end >= WFS_MIN(first + WFS_LANES, walk->v->n)))
		return &walk->pool->table[walk->cursor.table];
	wfs_wide_walk_mixed(walk, first);
	return NULL;
}

/* One row that may lie at the end of the stream: the names of its positions. one: its only table, or NULL: walk->of.
 * False: the stream runs out. */
bool wfs_wide_row_careful(const struct wfs_wide_walk *walk, const struct wfs_wide_decode_table *one,
			  struct wfs_wide_state *state, u8 name[WFS_LANES]);

/* The fields of a unit, row after row: the top bytes of rotated words, and the bytes below. */
struct wfs_wide_fields {
	_Alignas(64) u8 hi[WFS_SUPER], lo[WFS_SUPER];
};

/* Names the escapes of row r, whose positions these bits are. False: the escapes run out. */
static inline bool wfs_wide_name_escapes(struct wfs_wide_walk *walk, u64 escapes, unsigned r, struct wfs_wide_fields *f)
{
	for (; escapes; escapes &= escapes - 1) {
		const unsigned at = WFS_LANES * r + (unsigned)__builtin_ctzll(escapes);

		if (walk->used_escapes == walk->v->nr_escapes)
			return false;
		const unsigned top = walk->pool->tail_top[walk->v->escapes[walk->used_escapes++]];

		f->hi[at] = (u8)(top >> 8);
		f->lo[at] = (u8)top;
	}
	return true;
}

/* The end of a block whose fields are decoded, those of the last unit in *f: the proof, the last unit's words, the
 * literals. rest: that unit's; raw: of the block. Returns NULL, or why the block is refused. */
const char *wfs_wide_finish(const struct wfs_wide_walk *walk, const struct wfs_wide_state *state, struct wfs_split s,
			    const struct wfs_wide_fields *f, const u8 *rest, u8 *raw);

#endif
