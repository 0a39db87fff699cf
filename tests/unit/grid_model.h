/* grid_model.h - a naive writer of grid payloads, made from FORMAT.md section 3 alone, for the decoder's tests.
 *
 * It shares no code with the codec's grids: tiles are found by row and column of every word, words by exact products
 * and a search for the nearest one. The codes are any bytes that the split model draws, such that name no entry
 * included.
 */
#ifndef GRID_MODEL_H
#define GRID_MODEL_H

#include "grid.h"
#include "split_model.h"

enum { MODEL_MAX_SEGMENTS = 32 };

struct grid_model {
	struct wfs_grid grid;
	unsigned nr_segments, nr_literals, mantissa_bits, scale_bits;
	struct wfs_grid_segment segment[MODEL_MAX_SEGMENTS];
	u32 low;
	size_t nr_tiles, head, tail; /* head, tail: bytes of cut words */
	u32 *packed;		     /* scales as stored */
	struct model codes;
	u8 edges[8];
	size_t raw_len;
	u8 *raw, *comp; /* the block; the payload */
	size_t comp_len;
	size_t scales_off, literals_off; /* in comp */
};

/* ---- words ---- */

static inline double model_double(u32 f32_bits)
{
	float f;

	memcpy(&f, &f32_bits, sizeof(f));
	return f;
}

/* The value of a word of two bytes without its sign; what stands for infinity is the step beyond the largest. */
static inline double model_half_value(bool bf16, u32 word)
{
	const unsigned mantissa = bf16 ? 7 : 10, bias = bf16 ? 127 : 15;
	const unsigned exponent = word >> mantissa, rest = word & ((1u << mantissa) - 1);
	const double steps = exponent ? rest + (1u << mantissa) : rest;
	int scale = (int)WFS_MAX(exponent, 1u) - (int)bias - (int)mantissa;
	double value = steps;

	for (; scale > 0; scale--)
		value *= 2;
	for (; scale < 0; scale++)
		value /= 2;
	return value;
}

/* The word of two bytes nearest to a value that is not negative: the even one of two. The values ascend with the
 * words, up to the one that stands for infinity. */
static inline u32 model_nearest(bool bf16, double value)
{
	u32 low = 0, high = bf16 ? 255 << 7 : 31 << 10; /* low <= value, or high is infinity */
	double below, above;

	if (value >= model_half_value(bf16, high))
		return high;
	while (high - low > 1) {
		const u32 mid = low + (high - low) / 2;

		if (model_half_value(bf16, mid) <= value)
			low = mid;
		else
			high = mid;
	}
	below = value - model_half_value(bf16, low);
	above = model_half_value(bf16, high) - value;
	return below < above || (below == above && !(low & 1)) ? low : high;
}

/* FORMAT.md 3.1 and 3.2: the word of a code. */
static inline u32 model_grid_word(const struct wfs_grid *g, u32 scale, u8 code)
{
	const bool list = g->flags & 2;
	const bool negative = !list && code >> 7;
	unsigned entry = list ? code : (code & 127u) + (g->flags & 1 && negative);
	/* Products of two numbers of 24 bits are exact. */
	volatile float product;
	u32 bits, sign;

	if (g->op == 2)
		return entry < g->nb ? g->base[entry] : 0;
	product = entry < g->nb ? (float)(model_double(g->base[entry]) * model_double(scale)) : 0;
	bits = wfs_f32_bits(product);
	sign = bits >> 31 || negative;
	bits &= INT32_MAX;
	if (g->output == 2)
		return bits | sign << 31;
	if (g->op == 1)
		return bits >> 16 | sign << 15;
	return model_nearest(g->output == 0, model_double(bits)) | sign << 15;
}

/* ---- tiles ---- */

/* Where a word of a segment lies. */
struct model_tile {
	u64 row, col; /* of tiles */
};
static inline struct model_tile model_tile_of(const struct wfs_grid_segment *s, u64 word)
{
	const u64 at = s->col0 + word, row = at / s->cols, col = at % s->cols;

	return (struct model_tile){s->th ? (s->row0 + row) / s->th : 0, s->tw ? col / s->tw : 0};
}
static inline u64 model_tile_number(const struct wfs_grid_segment *s, u64 word)
{
	const u64 across = s->tw ? (s->cols + s->tw - 1u) / s->tw : 1;
	const struct model_tile t = model_tile_of(s, word);

	return t.row * across + t.col - (s->th == 1 ? model_tile_of(s, 0).col : 0);
}
/* All column tiles of the tile rows touched; with tiles of one row, those touched. */
static inline u64 model_nr_tiles(const struct wfs_grid_segment *s)
{
	const u64 across = s->tw ? (s->cols + s->tw - 1u) / s->tw : 1;

	if (s->th == 1)
		return model_tile_number(s, s->n - 1) + 1;
	return (model_tile_of(s, s->n - 1).row + 1) * across;
}

/* ---- payload ---- */

static inline void model_put_bits(u8 *out, u64 at, u32 value, unsigned bits)
{
	for (unsigned i = 0; i < bits; i++, at++)
		out[at / 8] = (u8)(out[at / 8] | (value >> i & 1) << at % 8);
}

/* The words of all codes but literals. */
static inline void model_grid_words(const struct grid_model *m, u8 *raw)
{
	const unsigned word = m->grid.output == 2 ? 4 : 2;
	size_t first = 0, first_tile = 0;

	for (size_t i = 0; m->grid.op == 2 && i < m->codes.n; i++) {
		const u32 w = model_grid_word(&m->grid, 0, m->codes.raw[i]);

		memcpy(raw + word * i, &w, word);
	}
	for (unsigned k = 0; k < m->nr_segments; k++) {
		const struct wfs_grid_segment *s = &m->segment[k];

		for (size_t i = 0; i < s->n; i++) {
			const u32 packed = m->packed[first_tile + model_tile_number(s, i)];
			const u32 scale = (m->low + packed) << (23 - m->mantissa_bits);
			const u32 w = model_grid_word(&m->grid, scale, m->codes.raw[first + i]);

			memcpy(raw + word * (first + i), &w, word);
		}
		first += s->n;
		first_tile += model_nr_tiles(s);
	}
}

static inline u8 *model_grid_header(const struct grid_model *m, u8 *out)
{
	out[0] = (u8)m->mantissa_bits;
	out[1] = (u8)m->scale_bits;
	wfs_store16(out + 2, (u16)m->nr_segments);
	wfs_store32(out + 4, m->low);
	wfs_store16(out + 8, (u16)m->nr_literals);
	wfs_store16(out + 10, 0);
	out += 12;
	for (unsigned i = 0; i < m->nr_segments; i++, out += 24) {
		const struct wfs_grid_segment *s = &m->segment[i];
		const u32 fields[] = {s->n, s->cols, s->col0};
		const u16 more[] = {s->tw, s->th, s->row0, 0, 0, 0};

		memcpy(out, fields, 12);
		memcpy(out + 12, more, 12);
	}
	return out;
}

/* The block and its payload. The words of literals are random. */
static inline void grid_model_encode(struct grid_model *m, uint64_t *rng)
{
	const unsigned word = m->grid.output == 2 ? 4 : 2;
	const size_t n = m->codes.n, scale_bytes = (m->nr_tiles * m->scale_bits + 7) / 8;
	u8 *out, *raw;

	m->raw_len = m->head + n * word + m->tail;
	m->raw = malloc(m->raw_len);
	m->comp = calloc(12 + 24 * m->nr_segments + scale_bytes + (4 + word) * (size_t)m->nr_literals +
				 sizeof(m->edges) + m->codes.comp_len,
			 1);
	CHECK(m->raw && m->comp);
	test_rand_fill(rng, m->edges, sizeof(m->edges));
	raw = model_put(m->raw, m->edges, m->head);
	memcpy(raw + n * word, m->edges + m->head, m->tail);
	model_grid_words(m, raw);
	out = model_grid_header(m, m->comp);
	m->scales_off = (size_t)(out - m->comp);
	for (size_t i = 0; i < m->nr_tiles; i++)
		model_put_bits(out, i * m->scale_bits, m->packed[i], m->scale_bits);
	out += scale_bytes;
	m->literals_off = (size_t)(out - m->comp);
	for (unsigned i = 0; i < m->nr_literals; i++) {
		/* One in each of as many parts of the block. */
		const size_t part = n / m->nr_literals, number = part * i + test_rand_below(rng, part);

		test_rand_fill(rng, raw + number * word, word);
		wfs_store32(out, (u32)number);
		out = model_put(out + 4, raw + number * word, word);
	}
	out = model_put(out, m->edges, m->head + m->tail);
	out = model_put(out, m->codes.comp, m->codes.comp_len);
	m->comp_len = (size_t)(out - m->comp);
}

/* ---- whole cases ---- */

/* Entries in ascending order. wide: so far apart that their products reach from far below to far beyond the range of
 * binary16; else integers of a few bits, whose products are often half-way between words. */
static inline struct wfs_grid model_grid(uint64_t *rng, unsigned op, unsigned flags, unsigned output, unsigned nb,
					 bool wide)
{
	struct wfs_grid g = {.op = (u8)op, .flags = (u8)flags, .output = (u8)output, .nb = (u16)nb};
	const int zero = flags & 2 ? (int)(nb / 2) : 0;
	const unsigned step = 1 + (unsigned)test_rand_below(rng, 3);

	for (int i = 0; i < (int)nb; i++) {
		const int k = i - zero;
		/* 2^(k / 2), a little more each time. */
		double value =
			(1 + 1e-3 * (abs(k) % 2 * 400 + (int)test_rand_below(rng, 10))) * (double)k / (abs(k) | !k);

		for (int e = 0; e < abs(k) / 2; e++)
			value *= 2;
		if (!wide)
			value = k * (int)step;
		else
			value /= 1 << 24;
		g.base[i] = wfs_f32_bits((float)value);
		if (op == 2)
			g.base[i] =
				(u32)((output == 2 ? UINT32_MAX : 0xffffu) / nb * (u32)i + test_rand_below(rng, 100));
	}
	return g;
}

/* A block of n words: nr_segments of one shape, of which all but the first begin at a tile's first word. Where they
 * would have more tiles than the format allows each is one tile. */
static inline struct grid_model grid_model_new(uint64_t *rng, const struct wfs_grid *grid, size_t n,
					       unsigned nr_segments, const struct wfs_grid_segment *shape,
					       unsigned nr_literals)
{
	static const u8 fields[] = {5, 7, 4, 6};
	const struct wfs_split s = wfs_split_make(1, test_rand_below(rng, 4) > 0, fields[test_rand_below(rng, 4)]);
	struct grid_model m = {.grid = *grid, .nr_literals = nr_literals};
	size_t left = n;

	m.head = test_rand_below(rng, grid->output == 2 ? 4 : 2);
	m.tail = test_rand_below(rng, grid->output == 2 ? 4 : 2);
	m.codes = model_new(rng, s, n, 1 + (unsigned)test_rand_below(rng, 3), 9, false, 100);
	m.nr_segments = grid->op == 2 ? 0 : nr_segments;
	for (unsigned i = 0; i < m.nr_segments; i++) {
		struct wfs_grid_segment *g = &m.segment[i];
		const unsigned more = m.nr_segments - 1 - i;

		*g = *shape;
		g->n = (u32)(more ? 1 + test_rand_below(rng, WFS_MIN(left - more, 2 * n / nr_segments)) : left);
		if (i)
			g->col0 = g->row0 = 0;
		left -= g->n;
		m.nr_tiles += model_nr_tiles(g);
	}
	for (unsigned i = 0; m.nr_tiles > (n + 1) / 2 && i < m.nr_segments; i++) {
		struct wfs_grid_segment *g = &m.segment[i];

		g->tw = g->th = g->row0 = 0;
		if (i + 1 == m.nr_segments)
			m.nr_tiles = m.nr_segments;
	}
	CHECK(m.nr_tiles <= (n + 1) / 2);
	if (grid->op != 2) {
		m.mantissa_bits = (unsigned)test_rand_below(rng, 24);
		m.scale_bits = (unsigned)test_rand_below(rng, m.mantissa_bits + 4);
		m.low = 118u << m.mantissa_bits | (u32)(test_rand(rng) & model_mask(m.mantissa_bits));
	}
	m.packed = malloc(4 * m.nr_tiles + 4);
	CHECK(m.packed);
	for (size_t i = 0; i < m.nr_tiles; i++)
		m.packed[i] = (u32)(test_rand(rng) & model_mask(m.scale_bits));
	grid_model_encode(&m, rng);
	return m;
}

static inline void grid_model_free(struct grid_model *m)
{
	model_free(&m->codes);
	free(m->packed);
	free(m->raw);
	free(m->comp);
}

/* Place of the block's first byte in its word, by the cut in front. */
static inline unsigned phase_of(const struct grid_model *m)
{
	const unsigned word = m->grid.output == WFS_GRID_F32 ? 4 : 2;

	return (unsigned)(word - m->head) % word;
}

#endif
