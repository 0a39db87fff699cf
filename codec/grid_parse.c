/* grid_parse.c - grids and the layout of grid payloads (FORMAT.md section 3): every rule that can be checked before the
 * codes are decoded, and the scales.
 *
 * The kernels trust what is checked here: lengths exact, segments valid, tile numbers below the count, scales that keep
 * every product normal.
 */
#include "grid.h"

#include "cursor.h"
#include "split.h"

enum {
	F32_SIGN = 31,
	F32_MANTISSA = 23,
	F32_MIN_NORMAL = 1 << F32_MANTISSA,
	F32_INFINITY = 255 << F32_MANTISSA,
	/* Exponents of 2^-100, the smallest scale, and of 2^100, which is too large. */
	SCALE_MIN_EXPONENT = 127 - 100,
	SCALE_END_EXPONENT = 127 + 100,
};

/* ---- grids ---- */

static bool is_zero_or_normal(u32 bits)
{
	const u32 magnitude = bits & INT32_MAX;

	return !bits || (magnitude >= F32_MIN_NORMAL && magnitude < F32_INFINITY);
}

/* The entries' values, which the entries before `base` are below. */
static const char *check_base(const struct wfs_grid *g)
{
	const bool palette = g->op == WFS_GRID_PALETTE;

	for (unsigned i = 0; i < g->nb; i++) {
		const u32 bits = g->base[i];

		if (palette && wfs_grid_word_bytes(g->output) == 2 && bits > UINT16_MAX)
			return "a word of a palette is too large";
		if (!palette && !is_zero_or_normal(bits))
			return "a value of a grid is not zero or a normal number";
		if (i && (palette ? bits <= g->base[i - 1] : wfs_f32_of_bits(bits) <= wfs_f32_of_bits(g->base[i - 1])))
			return "the values of a grid do not ascend";
	}
	if (!(g->flags & WFS_GRID_SIGNED) && g->base[0])
		return "the first value of a grid is not 0";
	return NULL;
}

enum wfs_status wfs_grid_parse(const u8 *comp, size_t comp_len, struct wfs_grid *grid_ret, size_t *used_ret,
			       const char **reason_ret)
{
	struct wfs_cursor c = wfs_cursor_make(comp, comp_len);
	const u8 *start = wfs_cursor_take(&c, 4), *base;
	struct wfs_grid *g = grid_ret;

	*reason_ret = "a grid is cut short";
	if (!start)
		return WFS_BAD_DATA;
	g->op = start[0];
	g->flags = start[1];
	g->nb = (u16)(start[2] + 1);
	g->output = start[3];
	if (g->op > WFS_GRID_PALETTE || g->flags > (WFS_GRID_NEG1 | WFS_GRID_SIGNED) || g->output > WFS_GRID_F32) {
		*reason_ret = "a grid is of a kind this version does not know";
		return WFS_UNSUPPORTED;
	}
	*reason_ret = "a grid is not valid";
	if (g->flags == (WFS_GRID_NEG1 | WFS_GRID_SIGNED) || (g->op == WFS_GRID_PALETTE && g->flags != WFS_GRID_SIGNED))
		return WFS_BAD_DATA;
	if ((g->op == WFS_GRID_TRUNCATE && g->output != WFS_GRID_BF16) || g->nb < 2 ||
	    (!(g->flags & WFS_GRID_SIGNED) && g->nb > WFS_GRID_MAX_BASE / 2))
		return WFS_BAD_DATA;
	base = wfs_cursor_take(&c, 4u * g->nb);
	*reason_ret = "a grid is cut short";
	if (!base)
		return WFS_BAD_DATA;
	memcpy(g->base, base, 4u * g->nb);
	*reason_ret = check_base(g);
	*used_ret = 4 + 4u * g->nb;
	return *reason_ret ? WFS_BAD_DATA : WFS_OK;
}

size_t wfs_grid_write(const struct wfs_grid *grid, u8 *out)
{
	out[0] = grid->op;
	out[1] = grid->flags;
	out[2] = (u8)(grid->nb - 1);
	out[3] = grid->output;
	memcpy(out + 4, grid->base, 4u * grid->nb);
	return 4 + 4u * grid->nb;
}

void wfs_grid_values_make(const struct wfs_grid *grid, struct wfs_grid_values *values_ret)
{
	struct wfs_grid_values *v = values_ret;

	*v = (struct wfs_grid_values){.op = grid->op, .flags = grid->flags, .output = grid->output};
	if (grid->flags & WFS_GRID_SIGNED) {
		memcpy(v->value, grid->base, 4u * grid->nb);
	} else {
		const unsigned skip = grid->flags & WFS_GRID_NEG1;

		memcpy(v->value, grid->base, 4u * grid->nb);
		memcpy(v->value + 128, grid->base + skip, 4u * (grid->nb - skip));
		for (unsigned code = 128; code < 256; code++)
			v->value[code] |= 1u << F32_SIGN;
	}
	v->min_abs = UINT32_MAX;
	for (unsigned i = 0; i < grid->nb; i++) {
		const u32 magnitude = grid->base[i] & INT32_MAX;

		v->max_abs = WFS_MAX(v->max_abs, magnitude);
		if (magnitude)
			v->min_abs = WFS_MIN(v->min_abs, magnitude);
	}
}

/* Products of two binary32 numbers are exact in binary64. */
static double magnitude_of(u32 bits)
{
	return (double)wfs_f32_of_bits(bits);
}

bool wfs_grid_scale_valid(const struct wfs_grid_values *g, u32 scale_bits)
{
	return scale_bits >= (u32)SCALE_MIN_EXPONENT << F32_MANTISSA &&
	       scale_bits < (u32)SCALE_END_EXPONENT << F32_MANTISSA &&
	       magnitude_of(scale_bits) * magnitude_of(g->min_abs) >= 0x1p-126 &&
	       magnitude_of(scale_bits) * magnitude_of(g->max_abs) < 0x1p127;
}

/* ---- payloads ---- */

/* Segments, and the tiles that they have. */
static const char *parse_segments(struct wfs_grid_view *v)
{
	u64 words = 0, tiles = 0;

	for (u32 i = 0; i < v->nr_segments; i++) {
		const u8 *p = v->segments + (size_t)WFS_GRID_SEGMENT_BYTES * i;
		const struct wfs_grid_segment s = wfs_grid_segment_load(p);

		if (!wfs_grid_segment_valid(&s) || wfs_load16(p + 18) || wfs_load32(p + 20))
			return "a segment of a grid is not valid";
		words += s.n;
		/* Compared each time: neither sum can overflow. */
		if (words > v->n)
			return "the segments of a grid do not cover its words";
		tiles += wfs_grid_nr_tiles(&s);
		if (tiles > WFS_CEIL_DIV(v->n, 2u))
			return "a grid has too many tiles";
	}
	if (words != v->n)
		return "the segments of a grid do not cover its words";
	v->nr_tiles = (u32)tiles;
	return NULL;
}

/* The fields before the segments. */
static const char *parse_header(const u8 *header, bool palette, struct wfs_grid_view *v)
{
	v->mantissa_bits = header[0];
	v->scale_bits = header[1];
	v->nr_segments = wfs_load16(header + 2);
	v->low = wfs_load32(header + 4);
	v->nr_literals = wfs_load16(header + 8);
	if (wfs_load16(header + 10) || v->mantissa_bits > WFS_GRID_MAX_MANTISSA ||
	    v->scale_bits > WFS_GRID_MAX_SCALE_BITS)
		return "grid header is not valid";
	if (palette ? v->mantissa_bits || v->scale_bits || v->nr_segments || v->low : !v->nr_segments)
		return "grid header is not valid";
	return NULL;
}

static const char *parse(const u8 *comp, size_t comp_len, const struct wfs_grid_values *g, size_t n, size_t edge_len,
			 struct wfs_grid_view *v)
{
	const char *const cut_short = "grid payload is cut short";
	const unsigned word = wfs_grid_word_bytes(g->output);
	const bool palette = g->op == WFS_GRID_PALETTE;
	struct wfs_cursor c = wfs_cursor_make(comp, comp_len);
	const u8 *header = wfs_cursor_take(&c, WFS_GRID_HEADER);
	const char *reason;

	if (n < 1 || n > WFS_GRID_MAX_WORDS)
		return "grid block has no words";
	if (!header)
		return cut_short;
	*v = (struct wfs_grid_view){.n = (u32)n};
	reason = parse_header(header, palette, v);
	if (reason)
		return reason;
	v->segments = wfs_cursor_take(&c, (u64)WFS_GRID_SEGMENT_BYTES * v->nr_segments);
	if (!v->segments)
		return cut_short;
	reason = palette ? NULL : parse_segments(v);
	if (reason)
		return reason;
	v->scales = wfs_cursor_take(&c, WFS_CEIL_DIV((u64)v->nr_tiles * v->scale_bits, 8u));
	v->literals = wfs_cursor_take(&c, (u64)(4 + word) * v->nr_literals);
	v->edges = wfs_cursor_take(&c, edge_len);
	if (!v->scales || !v->literals || !v->edges || c.left < WFS_GRID_MIN_CODES)
		return cut_short;
	v->codes = c.at;
	v->codes_len = c.left;
	return wfs_literals_parse(v->literals, v->nr_literals, word, n);
}

enum wfs_status wfs_grid_parse_payload(const u8 *comp, size_t comp_len, const struct wfs_grid_values *g, size_t n,
				       size_t edge_len, struct wfs_grid_view *view_ret, const char **reason_ret)
{
	const char *reason = parse(comp, comp_len, g, n, edge_len, view_ret);

	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

/* ---- scales ---- */

void wfs_grid_unpack_scalar(const struct wfs_grid_view *v, float *scale, u32 *lowest_ret, u32 *highest_ret)
{
	const u32 mask = (1u << v->scale_bits) - 1;
	u32 lowest = UINT32_MAX, highest = 0;

	/* What a load may take beyond the scales is inside the payload: the codes are behind them. */
	for (size_t i = 0, at = 0; i < v->nr_tiles; i++, at += v->scale_bits) {
		const u32 sum = v->low + ((u32)(wfs_load64(v->scales + at / 8) >> at % 8) & mask);

		lowest = WFS_MIN(lowest, sum);
		highest = WFS_MAX(highest, sum);
		scale[i] = wfs_f32_of_bits(sum << (F32_MANTISSA - v->mantissa_bits));
	}
	*lowest_ret = lowest;
	*highest_ret = highest;
}

const char *wfs_grid_scales(const struct wfs_grid_view *v, const struct wfs_grid_values *g, wfs_grid_unpack_fn *unpack,
			    float *scale)
{
	static const char *const invalid = "a scale of a grid is not valid";
	const size_t nr_bits = (size_t)v->nr_tiles * v->scale_bits;
	const unsigned up = F32_MANTISSA - v->mantissa_bits;
	const u32 end = (u32)SCALE_END_EXPONENT << v->mantissa_bits;
	u32 lowest, highest;

	if (!v->nr_tiles)
		return NULL;
	if (nr_bits % 8 && v->scales[nr_bits / 8] >> nr_bits % 8)
		return "unused bits of scales are not zero";
	/* Below this no packed scale of 31 bits can make the sum overflow. */
	if (v->low >= end)
		return invalid;
	unpack(v, scale, &lowest, &highest);
	if (highest >= end || !wfs_grid_scale_valid(g, lowest << up) || !wfs_grid_scale_valid(g, highest << up))
		return invalid;
	return NULL;
}
