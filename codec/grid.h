/* grid.h - the grid coding (FORMAT.md section 3): lists of values, scales of tiles, and payloads. Private.
 *
 * A block of codes (one byte each, coded as words of one byte) and, for each tile of a matrix, a scale: the words are
 * round(value[code] * scale). A palette (op 2) has no scales. Floating point here is one multiplication of two normal
 * numbers whose product is normal, or 0: the same on every machine that rounds to nearest.
 */
#ifndef WFS_GRID_H
#define WFS_GRID_H

#include "wfs_internal.h"

enum {
	WFS_GRID_MAX_BASE = 256,
	WFS_GRID_MAX_BYTES = 4 + 4 * WFS_GRID_MAX_BASE, /* of a grid as stored */
	WFS_GRID_MAX_WORDS = 1 << 19,			/* of a block: words have 2 or 4 bytes */
	WFS_GRID_MAX_TILES = WFS_GRID_MAX_WORDS / 2,
	WFS_GRID_HEADER = 12,
	WFS_GRID_SEGMENT_BYTES = 24,
	WFS_GRID_MAX_MANTISSA = 23,
	WFS_GRID_MAX_SCALE_BITS = 31,
	WFS_GRID_MIN_CODES = 64, /* bytes of the codes' payload, which has states of 128 and more */
};
enum wfs_grid_op { WFS_GRID_NEAREST = 0, WFS_GRID_TRUNCATE = 1, WFS_GRID_PALETTE = 2 };
enum wfs_grid_flag { WFS_GRID_NEG1 = 1, WFS_GRID_SIGNED = 2 };
enum wfs_grid_output { WFS_GRID_BF16 = 0, WFS_GRID_F16 = 1, WFS_GRID_F32 = 2 };

/* A grid as stored (FORMAT.md 3.1). */
struct wfs_grid {
	u8 op, flags, output;
	u16 nb;
	u32 base[WFS_GRID_MAX_BASE]; /* nb of them: bits of a binary32 number, or words */
};

static inline unsigned wfs_grid_word_bytes(enum wfs_grid_output output)
{
	return output == WFS_GRID_F32 ? 4 : 2;
}

/* comp bytes -> checked grid, *used_ret bytes eaten. BAD_DATA or UNSUPPORTED with *reason_ret. */
enum wfs_status wfs_grid_parse(const u8 *comp, size_t comp_len, struct wfs_grid *grid_ret, size_t *used_ret,
			       const char **reason_ret);
/* Returns bytes; out has room for WFS_GRID_MAX_BYTES. */
size_t wfs_grid_write(const struct wfs_grid *grid, u8 *out);

/* A grid made ready: what each code stands for. Read-only once made. */
struct wfs_grid_values {
	u8 op, flags, output;
	u32 min_abs, max_abs; /* bits of the smallest and largest magnitude but 0 */
	u32 value[256];	      /* bits of a binary32 number with its sign, or a word; 0 what no entry stands for */
};
void wfs_grid_values_make(const struct wfs_grid *grid, struct wfs_grid_values *values_ret);

/* ---- one word ---- */

static inline float wfs_f32_of_bits(u32 bits)
{
	float f;
	memcpy(&f, &bits, sizeof(f));
	return f;
}
static inline u32 wfs_f32_bits(float f)
{
	u32 bits;
	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* A finite binary32 number to BF16, to nearest, even on a tie. */
static inline u16 wfs_bf16_nearest(u32 bits)
{
	return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A finite binary32 number to binary16, to nearest, even on a tie; beyond its range infinity. */
static inline u16 wfs_f16_nearest(u32 bits)
{
	const u32 exponent = bits >> 23 & 255, mantissa = (bits & 0x7fffff) | 0x800000;
	/* A step of the result is 2^shift steps of the mantissa: 2^13, more where it is subnormal; from 2^25 on all is
	 * 0. */
	const u32 subnormal = exponent < 113 ? 113 - exponent : 0, shift = 13 + WFS_MIN(subnormal, 12u);
	const u32 rounded = (mantissa + (1u << (shift - 1)) - 1 + (mantissa >> shift & 1)) >> shift;
	/* The leading one of a normal result adds 1 to the exponent below; a carry does what it must. */
	const u32 magnitude = rounded + (exponent < 113 ? 0 : (exponent - 113) << 10);

	return (u16)((bits >> 16 & 0x8000) | WFS_MIN(magnitude, 0x7c00u));
}

/* The word that a product stands for. */
static inline u32 wfs_grid_round(enum wfs_grid_op op, enum wfs_grid_output output, u32 product)
{
	if (output == WFS_GRID_F32)
		return product;
	if (output == WFS_GRID_F16)
		return wfs_f16_nearest(product);
	return op == WFS_GRID_TRUNCATE ? product >> 16 : wfs_bf16_nearest(product);
}

/* The word of a code in a tile: the reference. scale: of a tile that passes wfs_grid_scale_valid; not used by op 2. */
static inline u32 wfs_grid_word(const struct wfs_grid_values *g, float scale, u8 code)
{
	if (g->op == WFS_GRID_PALETTE)
		return g->value[code];
	return wfs_grid_round(g->op, g->output, wfs_f32_bits(wfs_f32_of_bits(g->value[code]) * scale));
}

/* Whether a scale keeps every product normal (FORMAT.md 3.2, Reader). */
bool wfs_grid_scale_valid(const struct wfs_grid_values *g, u32 scale_bits);

/* ---- segments and tiles ---- */

/* n words of a matrix of cols columns, from column col0 of row row0 of a tile of th rows and tw columns (0: all). */
struct wfs_grid_segment {
	u32 n, cols, col0;
	u16 tw, th, row0;
};

static inline struct wfs_grid_segment wfs_grid_segment_load(const u8 *p)
{
	return (struct wfs_grid_segment){
		.n = wfs_load32(p),
		.cols = wfs_load32(p + 4),
		.col0 = wfs_load32(p + 8),
		.tw = wfs_load16(p + 12),
		.th = wfs_load16(p + 14),
		.row0 = wfs_load16(p + 16),
	};
}
static inline void wfs_grid_segment_store(u8 *p, const struct wfs_grid_segment *s)
{
	wfs_store32(p, s->n);
	wfs_store32(p + 4, s->cols);
	wfs_store32(p + 8, s->col0);
	wfs_store16(p + 12, s->tw);
	wfs_store16(p + 14, s->th);
	wfs_store16(p + 16, s->row0);
	memset(p + 18, 0, 6);
}
/* The rules for one segment. */
static inline bool wfs_grid_segment_valid(const struct wfs_grid_segment *s)
{
	return s->n && s->cols && s->col0 < s->cols && s->tw <= s->cols && (s->th ? s->row0 < s->th : !s->row0);
}
/* Tiles side by side in a row of the matrix. */
static inline u64 wfs_grid_tile_cols(const struct wfs_grid_segment *s)
{
	return s->tw ? WFS_CEIL_DIV((u64)s->cols, s->tw) : 1;
}
/* Tiles of a valid segment. */
static inline u64 wfs_grid_nr_tiles(const struct wfs_grid_segment *s)
{
	const u64 across = wfs_grid_tile_cols(s), end = (u64)s->col0 + s->n - 1, last_row = end / s->cols;

	if (s->th == 1)
		return last_row * across + (s->tw ? end % s->cols / s->tw - s->col0 / s->tw : 0) + 1;
	return (s->th ? (s->row0 + last_row) / s->th + 1 : 1) * across;
}

/* Walks through the words of one valid segment: runs of words that lie in one tile, as long as they can be. tile counts
 * from the segment's first. */
struct wfs_grid_walk {
	u64 left;	   /* words to go */
	u32 across, at;	   /* tiles side by side; the current one of them */
	u32 row_tile;	   /* number of the first of them, modulo 2^32: before the first one touched when th = 1 */
	u32 cols, tw, th;  /* tw, th: all columns, 0 all rows */
	u32 col, tile_col; /* column of the next word, and within its tile */
	u32 tile_row;	   /* row within the tile */
};
struct wfs_grid_run {
	u32 nr_words, tile;
};
static inline struct wfs_grid_walk wfs_grid_walk_start(const struct wfs_grid_segment *s)
{
	const u32 tw = s->tw ? s->tw : s->cols, at = s->col0 / tw;

	return (struct wfs_grid_walk){
		.left = s->n,
		.across = (u32)wfs_grid_tile_cols(s),
		.at = at,
		.row_tile = s->th == 1 ? 0 - at : 0,
		.cols = s->cols,
		.tw = tw,
		.th = s->th,
		.col = s->col0,
		.tile_col = s->col0 - at * tw,
		.tile_row = s->row0,
	};
}
/* The next run; false when there is none. */
static inline bool wfs_grid_walk_next(struct wfs_grid_walk *w, struct wfs_grid_run *run)
{
	u64 nr = WFS_MIN(w->tw - w->tile_col, w->cols - w->col);
	bool row_ends = nr == w->cols - w->col;

	if (!w->left)
		return false;
	/* A tile as wide as the matrix goes on in the rows below. */
	if (w->across == 1)
		nr = w->th ? nr + (u64)(w->th - 1 - w->tile_row) * w->cols : w->left;
	nr = WFS_MIN(nr, w->left);
	*run = (struct wfs_grid_run){(u32)nr, w->row_tile + w->at};
	w->left -= nr;
	w->col += (u32)nr;
	w->tile_col = 0;
	w->at++;
	if (row_ends) {
		w->col = 0;
		w->at = 0;
		if (w->across == 1 || (w->th && ++w->tile_row == w->th)) {
			w->tile_row = 0;
			w->row_tile += w->across;
		}
	}
	return true;
}

/* ---- payloads ---- */

/* A payload whose layout has been checked. Pointers into the payload. The codes are not looked at yet. */
struct wfs_grid_view {
	u32 n, nr_segments, nr_tiles, nr_literals;
	u32 low;
	u8 mantissa_bits, scale_bits;
	const u8 *segments, *scales, *literals, *edges, *codes;
	size_t codes_len;
};
/* n: words of the block; edge_len: bytes of cut words. Checks all of FORMAT.md 3.2 but the scales' ranges and what the
 * codes' payload has rules of its own for. */
enum wfs_status wfs_grid_parse_payload(const u8 *comp, size_t comp_len, const struct wfs_grid_values *g, size_t n,
				       size_t edge_len, struct wfs_grid_view *view_ret, const char **reason_ret);
/* Unpacks the scales of all tiles: (low + packed) << (23 - mantissa_bits), cut to 32 bits, to scale[0..nr_tiles) as
 * binary32 numbers; gives the lowest and highest low + packed. Every sum fits 32 bits. nr_tiles is at least 1. May read
 * WFS_GRID_MIN_CODES bytes behind the packed scales and write WFS_GRID_SCALE_SLACK scales behind the last. */
typedef void wfs_grid_unpack_fn(const struct wfs_grid_view *v, float *scale, u32 *lowest_ret, u32 *highest_ret);
wfs_grid_unpack_fn wfs_grid_unpack_scalar;
/* NULL when this build has no such kernel. The CPU must support it. */
wfs_grid_unpack_fn *wfs_grid_unpack_avx512_get(void);

/* The scales of all tiles, checked. NULL, or why they are refused. */
const char *wfs_grid_scales(const struct wfs_grid_view *v, const struct wfs_grid_values *g, wfs_grid_unpack_fn *unpack,
			    float *scale);

/* Words of v->n codes at raw (any alignment). scale: of all tiles, valid. Literals are left to the caller. May read up
 * to WFS_GRID_CODE_SLACK bytes behind the codes and WFS_GRID_SCALE_SLACK scales behind the last. */
typedef void wfs_grid_expand_fn(const struct wfs_grid_view *v, const struct wfs_grid_values *g, const u8 *codes,
				const float *scale, u8 *raw);
enum { WFS_GRID_CODE_SLACK = 64, WFS_GRID_SCALE_SLACK = 64 };
wfs_grid_expand_fn wfs_grid_expand_scalar;
/* NULL when this build has no such kernel. The CPU must support it. */
wfs_grid_expand_fn *wfs_grid_expand_ssse3_get(void);
wfs_grid_expand_fn *wfs_grid_expand_avx2_get(void);
wfs_grid_expand_fn *wfs_grid_expand_avx512_get(void);
wfs_grid_expand_fn *wfs_grid_expand_neon_get(void);

#endif
