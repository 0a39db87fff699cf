/* grid_rows.h - what the vector kernels of grids share. They walk through a segment in pieces of rows, as long as they
 * can be, in which all tiles but the first and the last have the same number of words and consecutive scales. Private
 * to the kernels.
 *
 * Where rows do not matter the whole segment is one piece: tiles as wide as the matrix, and tiles of one row that fill
 * rows without a rest.
 */
#ifndef WFS_GRID_ROWS_H
#define WFS_GRID_ROWS_H

#include "grid.h"

/* What becomes of a value: multiplied by a scale and rounded, or the word itself, of 2 or 4 bytes. */
enum wfs_grid_target { BF16_NEAREST, BF16_TRUNCATED, F16, F32, WORDS2, WORDS4, NR_TARGETS };

static inline enum wfs_grid_target wfs_grid_target(const struct wfs_grid_values *g)
{
	if (g->op == WFS_GRID_PALETTE)
		return g->output == WFS_GRID_F32 ? WORDS4 : WORDS2;
	if (g->output == WFS_GRID_BF16)
		return g->op == WFS_GRID_TRUNCATE ? BF16_TRUNCATED : BF16_NEAREST;
	return g->output == WFS_GRID_F16 ? F16 : F32;
}

struct wfs_grid_rows {
	const float *scale;
	u64 left;	  /* words to go */
	u64 cols, tw;	  /* of a row and of a tile; more than the segment has: all */
	u64 col;	  /* of the next word */
	u32 across;	  /* tiles side by side */
	u32 th, tile_row; /* rows of a tile, 0 all; row within the tile */
	bool inside;	  /* the current row of tiles has begun */
	u32 first;	  /* tile at the start of the row, modulo 2^32: before the first one touched when th = 1 */
};
struct wfs_grid_piece {
	const float *scale; /* of the first tile */
	u64 tw;
	u32 nr_words;
	u32 at;	   /* number of the first tile in its row of tiles */
	u64 skip;  /* words of the first tile that lie before the piece */
	u64 words; /* where the piece is the first one in its row of tiles: words of the segment in that, else 0 */
};

/* Those of segment i. *scale: of its first tile; moved on to the next segment's. */
static inline struct wfs_grid_rows wfs_grid_rows_start(const struct wfs_grid_view *v, u32 i, const float **scale)
{
	const struct wfs_grid_segment s = wfs_grid_segment_load(v->segments + WFS_GRID_SEGMENT_BYTES * (size_t)i);
	struct wfs_grid_rows r = {
		.scale = *scale,
		.left = s.n,
		.cols = s.cols,
		.tw = s.tw ? s.tw : s.cols,
		.col = s.col0,
		.across = (u32)wfs_grid_tile_cols(&s),
		.th = s.th,
		.tile_row = s.row0,
	};

	*scale += wfs_grid_nr_tiles(&s);
	if (r.across == 1) {
		r.col += (u64)r.tile_row * r.cols;
		r.tw = r.th ? r.th * r.cols : UINT64_MAX;
		r.cols = UINT64_MAX;
	} else if (r.th == 1 && r.cols % r.tw == 0) {
		r.col %= r.tw;
		r.cols = UINT64_MAX;
	} else if (r.th == 1) {
		r.first = 0 - (u32)(r.col / r.tw);
	}
	return r;
}

/* The next piece; false when there is none. */
static inline bool wfs_grid_rows_next(struct wfs_grid_rows *r, struct wfs_grid_piece *p)
{
	const u64 at = r->col / r->tw, nr = WFS_MIN(r->left, r->cols - r->col);

	if (!r->left)
		return false;
	*p = (struct wfs_grid_piece){
		.scale = r->scale + (u32)(r->first + at),
		.tw = r->tw,
		.nr_words = (u32)nr,
		.at = (u32)at,
		.skip = r->col - at * r->tw,
	};
	if (!r->inside)
		p->words = r->th && r->cols <= UINT32_MAX ? WFS_MIN(r->left, (r->th - r->tile_row) * r->cols - r->col)
							  : r->left;
	r->inside = true;
	r->left -= nr;
	r->col = 0;
	if (r->th && ++r->tile_row == r->th) {
		r->tile_row = 0;
		r->inside = false;
		r->first += r->across;
	}
	return true;
}

#endif
