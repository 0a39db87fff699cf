/* grid_encode.c - a block's words to codes, scales and literals (FORMAT.md 3.2).
 *
 * Words are laid out tile after tile, each tile's scales are found (grid_search.h), all tiles agree on how many
 * mantissa bits a scale has, codes are assigned, and what the decoder would make of them is compared with the words:
 * those that differ become literals. So whatever the search does, only the size depends on it.
 */
#include "grid_encode.h"

#include <stdlib.h>

enum {
	MAX_TRIED = 8,	  /* scales of one tile that are tried for the fewest misfits */
	LOST_WORDS = 3,	  /* half of the words that become literals when a tile's scale is too short for it, about */
	BIT_PART = 8,	  /* bits of a byte */
	MISFIT_TILES = 8, /* tiles that may be on no grid, and */
	MISFIT_TILE_PART = 16, /* this part of all */
	LITERAL_PART = 16,     /* of a block's words may be literals */
	MISFIT_PASSES = 8,     /* so often a block's words may be looked at to find misfits, */
	MISFIT_WORK = 1 << 14, /* and so many, however few there are */
};

/* ---- segments ---- */

/* The matrix that the word at raw_off belongs to and how many words of it follow; gaps and what is no word of this size
 * in a matrix: one row. */
static struct wfs_grid_segment segment_at(const struct wfs_geometry *geometry, u64 raw_off, unsigned word, u64 left)
{
	const size_t i = geometry ? wfs_geometry_find(geometry, raw_off) : 0;
	const struct wfs_matrix *m = geometry && i < geometry->nr ? &geometry->matrix[i] : NULL;
	struct wfs_grid_segment s = {0};
	u64 at, n = left, row;

	if (m && m->raw_off <= raw_off) {
		at = raw_off - m->raw_off;
		n = WFS_MIN(WFS_MAX((m->raw_len - at) / word, (u64)1), left);
		if (m->word == word && at % word == 0 && m->cols <= UINT32_MAX && m->tile_cols <= UINT16_MAX &&
		    m->tile_rows <= UINT16_MAX && m->raw_len - at >= word) {
			row = at / word / m->cols;
			s = (struct wfs_grid_segment){
				.cols = (u32)m->cols,
				.col0 = (u32)(at / word % m->cols),
				.tw = (u16)(m->tile_cols < m->cols ? m->tile_cols : 0),
				.th = (u16)m->tile_rows,
				.row0 = (u16)(m->tile_rows ? row % m->tile_rows : 0),
			};
		}
	} else if (m) {
		n = WFS_MIN(WFS_MAX((m->raw_off - raw_off) / word, (u64)1), left);
	}
	s.n = (u32)n;
	if (!s.cols)
		s.cols = s.n;
	/* Few words of high tiles: a scale for each row's part of a tile is less. */
	if (s.th != 1 && wfs_grid_nr_tiles(&s) > WFS_MAX(n / 4, (u64)1)) {
		s.th = 1;
		s.row0 = 0;
	}
	return s;
}

static bool make_segments(const struct wfs_place *place, u64 raw_off, unsigned word, size_t nr_words,
			  struct wfs_grid_buffers *buf)
{
	u64 tiles = 0;

	buf->nr_segments = 0;
	for (u64 done = 0; done < nr_words;) {
		struct wfs_grid_segment s;

		if (!place->segments)
			s = segment_at(place->geometry, raw_off + done * word, word, nr_words - done);
		else if (buf->nr_segments < place->nr_segments)
			s = wfs_grid_segment_load(place->segments + (size_t)WFS_GRID_SEGMENT_BYTES * buf->nr_segments);
		else
			return false;
		if (buf->nr_segments == WFS_GRID_ENCODE_SEGMENTS || !wfs_grid_segment_valid(&s) ||
		    s.n > nr_words - done)
			return false;
		tiles += wfs_grid_nr_tiles(&s);
		if (tiles > WFS_GRID_ENCODE_TILES)
			return false;
		wfs_grid_segment_store(buf->segment + WFS_GRID_SEGMENT_BYTES * buf->nr_segments++, &s);
		done += s.n;
	}
	buf->nr_tiles = (u32)tiles;
	return tiles <= nr_words / 2;
}

/* ---- tiles ---- */

/* The runs of words in one tile, and where each tile's words will lie: behind those of the tiles before, zeros up to a
 * multiple of WFS_SEARCH_STEP included. */
static bool make_runs(struct wfs_grid_buffers *buf)
{
	struct wfs_grid_tile *tile = buf->tile;
	u32 nr = 0, last = UINT32_MAX;

	memset(buf->tile, 0, buf->nr_tiles * sizeof(*buf->tile));
	buf->nr_runs = 0;
	buf->straight = true;
	for (u32 i = 0; i < buf->nr_segments; i++) {
		const u8 *p = buf->segment + (size_t)WFS_GRID_SEGMENT_BYTES * i;
		const struct wfs_grid_segment s = wfs_grid_segment_load(p);
		struct wfs_grid_walk walk = wfs_grid_walk_start(&s);
		struct wfs_grid_run run;

		while (wfs_grid_walk_next(&walk, &run)) {
			run.tile += (u32)(tile - buf->tile);
			buf->straight &= run.tile == last + 1 && run.nr_words % WFS_SEARCH_STEP == 0;
			last = run.tile;
			buf->tile[run.tile].nr += run.nr_words;
			buf->run[buf->nr_runs++] = run;
		}
		tile += wfs_grid_nr_tiles(&s);
	}
	for (u32 t = 0; t < buf->nr_tiles; t++) {
		buf->tile[t].first = nr;
		nr += WFS_CEIL_DIV(buf->tile[t].nr, (u32)WFS_SEARCH_STEP) * WFS_SEARCH_STEP;
		if (nr > WFS_GRID_ENCODE_WORDS)
			return false;
	}
	return true;
}

/* Words to numbers, tile after tile. */
static void lay_out(const struct wfs_search_kernel *kernel, unsigned output, const u8 *raw, size_t nr_words,
		    struct wfs_grid_buffers *buf)
{
	const u32 *from = buf->again.x;

	kernel->load(output, raw, nr_words, buf->straight ? buf->x : buf->again.x);
	if (buf->straight)
		return;
	for (u32 t = 0; t < buf->nr_tiles; t++)
		buf->tile[t].nr = 0;
	for (u32 i = 0; i < buf->nr_runs; i++) {
		const struct wfs_grid_run run = buf->run[i];
		struct wfs_grid_tile *tile = &buf->tile[run.tile];

		memcpy(buf->x + tile->first + tile->nr, from, run.nr_words * sizeof(*from));
		tile->nr += run.nr_words;
		from += run.nr_words;
	}
	for (u32 t = 0; t < buf->nr_tiles; t++) {
		struct wfs_grid_tile *tile = &buf->tile[t];

		while (tile->nr % WFS_SEARCH_STEP)
			buf->x[tile->first + tile->nr++] = 0;
	}
}

static bool search_tiles(const struct wfs_search_rule *rule, const struct wfs_search_kernel *kernel, size_t nr_words,
			 struct wfs_grid_buffers *buf)
{
	struct wfs_search search = {
		.rule = rule,
		.kernel = kernel,
		.misfit_work = MISFIT_PASSES * (u64)nr_words + MISFIT_WORK,
	};
	u32 misfits = 0;

	for (u32 t = 0; t < buf->nr_tiles; t++) {
		struct wfs_grid_tile *tile = &buf->tile[t];

		tile->kind = (u8)wfs_tile_search(&search, buf->x + tile->first, tile->nr, &tile->range);
		misfits += tile->kind == WFS_TILE_MISFIT;
		if (misfits > MISFIT_TILES + buf->nr_tiles / MISFIT_TILE_PART)
			return false;
	}
	return true;
}

/* ---- scales ---- */

static unsigned bits_of(u32 v)
{
	return v ? 32 - (unsigned)__builtin_clz(v) : 0;
}

/* About how many words of a tile become literals when its scale is not in its range: those of one or two values. F32
 * words hardly leave a choice. */
static u32 words_lost(const struct wfs_search_rule *rule, const struct wfs_grid_tile *tile)
{
	if (rule->output == WFS_GRID_F32)
		return tile->nr;
	return 2 + 2 * tile->nr / WFS_MAX(rule->nr_values[0], rule->nr_values[1]);
}

/* How many mantissa bits the scales have: as few as all tiles get by with, or fewer where the literals of some tiles
 * cost less than a bit for each. */
static unsigned choose_mantissa(const struct wfs_search_rule *rule, const struct wfs_grid_buffers *buf)
{
	const unsigned literal_bits = 8 * (4 + wfs_grid_word_bytes(rule->output));
	u64 lost[WFS_MANTISSA_BITS + 1] = {0}, lost_above = 0, least = UINT64_MAX, cost;
	u32 lowest = UINT32_MAX, highest = 0;
	unsigned best = 0;

	for (u32 t = 0; t < buf->nr_tiles; t++) {
		const struct wfs_grid_tile *tile = &buf->tile[t];

		if (tile->kind != WFS_TILE_FITS)
			continue;
		lost[wfs_scale_bits(&tile->range)] += words_lost(rule, tile);
		lowest = WFS_MIN(lowest, tile->range.low);
		highest = WFS_MAX(highest, tile->range.high);
	}
	for (unsigned m = WFS_MANTISSA_BITS + 1; m-- > 0; lost_above += lost[m]) {
		const unsigned up = WFS_MANTISSA_BITS - m;

		cost = (u64)buf->nr_tiles * bits_of(lowest < highest ? (highest >> up) - (lowest >> up) : 0) +
		       lost_above * literal_bits;
		if (cost <= least) {
			least = cost;
			best = m;
		}
	}
	return best;
}

/* A tile's scale among those of so many mantissa bits, and its words' codes: the one next to the middle of its range,
 * or another when words do not fit it. */
static void choose_scale(const struct wfs_search_rule *rule, const struct wfs_search_kernel *kernel, unsigned mantissa,
			 struct wfs_grid_buffers *buf, struct wfs_grid_tile *tile)
{
	const u32 step = 1u << (WFS_MANTISSA_BITS - mantissa), *x = buf->x + tile->first;
	const u32 middle = tile->range.low + (tile->range.high - tile->range.low) / 2;
	u8 *code = buf->tile_code + tile->first;
	u32 first = (tile->range.low + step - 1) / step * step, last = tile->range.high / step * step, nr;
	size_t least, misfits;

	if (first > last) { /* none inside: those next to the range */
		first = last;
		last += step;
	}
	first = first < rule->valid.low ? first + step : first;
	last = last > rule->valid.high ? last - step : last;
	if (first > last) {
		tile->kind = WFS_TILE_MISFIT;
		return;
	}
	tile->scale = WFS_MIN(WFS_MAX(middle / step * step, first), last);
	least = kernel->assign(rule, x, tile->nr, tile->scale, code);
	if (!least || first == last)
		return;
	nr = (last - first) / step + 1;
	for (u32 i = 0, tried = WFS_MIN(nr, (u32)MAX_TRIED); i < tried && least; i++) {
		const u32 scale = first + (u32)((u64)(nr - 1) * i / (tried - 1)) * step;

		misfits = kernel->assign(rule, x, tile->nr, scale, code);
		if (misfits < least) {
			least = misfits;
			tile->scale = scale;
		}
	}
	(void)kernel->assign(rule, x, tile->nr, tile->scale, code);
}

/* The scales as they are stored; tiles without one get the smallest. */
static void set_scales(unsigned mantissa, struct wfs_grid_buffers *buf, u32 least)
{
	const unsigned up = WFS_MANTISSA_BITS - mantissa;
	u32 lowest = UINT32_MAX, highest = 0;

	for (u32 t = 0; t < buf->nr_tiles; t++) {
		if (buf->tile[t].kind != WFS_TILE_FITS)
			continue;
		lowest = WFS_MIN(lowest, buf->tile[t].scale);
		highest = WFS_MAX(highest, buf->tile[t].scale);
	}
	if (lowest > highest)
		lowest = highest = WFS_CEIL_DIV(least, 1u << up) << up;
	for (u32 t = 0; t < buf->nr_tiles; t++) {
		struct wfs_grid_tile *tile = &buf->tile[t];

		if (tile->kind != WFS_TILE_FITS)
			tile->scale = lowest;
		buf->scale[t] = wfs_f32_of_bits(tile->scale);
	}
	buf->mantissa_bits = (u8)mantissa;
	buf->low = lowest >> up;
	buf->scale_bits = (u8)bits_of((highest >> up) - buf->low);
}

/* ---- codes ---- */

/* The codes of tiles in the order of words. */
static void sort_codes(struct wfs_grid_buffers *buf)
{
	u8 *code = buf->code;

	for (u32 t = 0; t < buf->nr_tiles; t++)
		buf->tile[t].nr = 0;
	for (u32 i = 0; i < buf->nr_runs; i++) {
		const struct wfs_grid_run run = buf->run[i];
		struct wfs_grid_tile *tile = &buf->tile[run.tile];

		memcpy(code, buf->tile_code + tile->first + tile->nr, run.nr_words);
		tile->nr += run.nr_words;
		code += run.nr_words;
	}
}

static bool find_codes(const struct wfs_search_rule *rule, const struct wfs_search_kernel *kernel, const u8 *raw,
		       size_t nr_words, struct wfs_grid_buffers *buf)
{
	unsigned mantissa;

	if (!make_runs(buf))
		return false;
	lay_out(kernel, rule->output, raw, nr_words, buf);
	if (!search_tiles(rule, kernel, nr_words, buf))
		return false;
	mantissa = choose_mantissa(rule, buf);
	for (u32 t = 0; t < buf->nr_tiles; t++)
		if (buf->tile[t].kind == WFS_TILE_FITS)
			choose_scale(rule, kernel, mantissa, buf, &buf->tile[t]);
	set_scales(mantissa, buf, rule->valid.low);
	for (u32 t = 0; t < buf->nr_tiles; t++) {
		const struct wfs_grid_tile *tile = &buf->tile[t];
		u8 *code = buf->tile_code + tile->first;

		if (tile->kind == WFS_TILE_ZERO)
			(void)kernel->assign(rule, buf->x + tile->first, tile->nr, tile->scale, code);
		else if (tile->kind == WFS_TILE_MISFIT)
			memset(code, rule->zero[0], tile->nr);
	}
	if (buf->straight)
		memcpy(buf->code, buf->tile_code, nr_words);
	else
		sort_codes(buf);
	return true;
}

/* Compares the words with those that the decoder will make; what differs becomes a literal. */
static bool find_literals(const struct wfs_grid_encoder *encoder, enum wfs_cpu cpu, const u8 *raw, size_t nr_words,
			  struct wfs_grid_buffers *buf)
{
	enum { PIECE = 512 };
	const unsigned word = wfs_grid_word_bytes(encoder->values.output);
	const size_t most = WFS_MIN(nr_words / LITERAL_PART, (size_t)WFS_GRID_MAX_LITERALS);
	const struct wfs_grid_view view = {.n = (u32)nr_words,
					   .nr_segments = buf->nr_segments,
					   .nr_tiles = buf->nr_tiles,
					   .segments = buf->segment};

	wfs_kernels_for(cpu).grid(&view, &encoder->values, buf->code, buf->scale, buf->again.raw);
	buf->nr_literals = 0;
	for (size_t at = 0; at < nr_words; at += PIECE) {
		const size_t nr = WFS_MIN(nr_words - at, (size_t)PIECE);

		if (!memcmp(raw + at * word, buf->again.raw + at * word, nr * word))
			continue;
		for (size_t i = at; i < at + nr; i++) {
			if (!memcmp(raw + i * word, buf->again.raw + i * word, word))
				continue;
			if (buf->nr_literals == most)
				return false;
			buf->literal[buf->nr_literals++] = (u32)i;
			buf->code[i] = encoder->rule.zero[0];
		}
	}
	return true;
}

void wfs_grid_encoder_make(const struct wfs_grid_values *values, struct wfs_grid_encoder *encoder_ret)
{
	*encoder_ret = (struct wfs_grid_encoder){.values = *values, .usable = true};
	if (values->op != WFS_GRID_PALETTE) {
		encoder_ret->usable = wfs_search_rule_make(values, &encoder_ret->rule);
		return;
	}
	/* The words differ, so each gets its code as number; but for 0, which codes behind the last stand for. */
	for (unsigned code = 0; code < WFS_ARRAY_LEN(values->value); code++)
		(void)wfs_word_set_add(&encoder_ret->palette, values->value[code]);
}

/* Words that the palette lacks get any code. */
static void palette_codes(const struct wfs_grid_encoder *encoder, const u8 *raw, size_t nr_words, u8 *code)
{
	if (encoder->values.output == WFS_GRID_F32)
		for (size_t i = 0; i < nr_words; i++)
			code[i] = (u8)wfs_word_set_find(&encoder->palette, wfs_load32(raw + 4 * i));
	else
		for (size_t i = 0; i < nr_words; i++)
			code[i] = (u8)wfs_word_set_find(&encoder->palette, wfs_load16(raw + 2 * i));
}

bool wfs_grid_codes(const struct wfs_grid_encoder *encoder, enum wfs_cpu cpu, const struct wfs_place *place,
		    size_t head, const u8 *raw, size_t nr_words, struct wfs_grid_buffers *buf)
{
	const unsigned word = wfs_grid_word_bytes(encoder->values.output);

	if (!encoder->usable || !nr_words || nr_words > WFS_GRID_MAX_WORDS)
		return false;
	if (encoder->values.op == WFS_GRID_PALETTE) {
		buf->nr_segments = buf->nr_tiles = buf->low = 0;
		buf->mantissa_bits = buf->scale_bits = 0;
		palette_codes(encoder, raw, nr_words, buf->code);
	} else if (!make_segments(place, place->raw_off + head, word, nr_words, buf) ||
		   !find_codes(&encoder->rule, wfs_search_kernel_for(cpu), raw, nr_words, buf)) {
		return false;
	}
	return find_literals(encoder, cpu, raw, nr_words, buf);
}

/* ---- payloads ---- */

static size_t scales_bytes(const struct wfs_grid_buffers *buf)
{
	return WFS_CEIL_DIV((size_t)buf->nr_tiles * buf->scale_bits, (size_t)8);
}

size_t wfs_grid_front_bytes(const struct wfs_grid_encoder *encoder, const struct wfs_grid_buffers *buf)
{
	return WFS_GRID_HEADER + (size_t)WFS_GRID_SEGMENT_BYTES * buf->nr_segments + scales_bytes(buf) +
	       (4 + wfs_grid_word_bytes(encoder->values.output)) * (size_t)buf->nr_literals;
}

static u8 *write_scales(const struct wfs_grid_buffers *buf, u8 *out)
{
	const unsigned up = WFS_MANTISSA_BITS - buf->mantissa_bits;
	u64 pending = 0;
	unsigned nr_pending = 0;

	for (u32 t = 0; t < buf->nr_tiles; t++) {
		pending |= (u64)((buf->tile[t].scale >> up) - buf->low) << nr_pending;
		for (nr_pending += buf->scale_bits; nr_pending >= 8; nr_pending -= 8, pending >>= 8)
			*out++ = (u8)pending;
	}
	if (nr_pending)
		*out++ = (u8)pending;
	return out;
}

void wfs_grid_front_write(const struct wfs_grid_encoder *encoder, const struct wfs_grid_buffers *buf, const u8 *raw,
			  u8 *out)
{
	const unsigned word = wfs_grid_word_bytes(encoder->values.output);

	out[0] = buf->mantissa_bits;
	out[1] = buf->scale_bits;
	wfs_store16(out + 2, (u16)buf->nr_segments);
	wfs_store32(out + 4, buf->low);
	wfs_store16(out + 8, (u16)buf->nr_literals);
	wfs_store16(out + 10, 0);
	out += WFS_GRID_HEADER;
	memcpy(out, buf->segment, (size_t)WFS_GRID_SEGMENT_BYTES * buf->nr_segments);
	out = write_scales(buf, out + (size_t)WFS_GRID_SEGMENT_BYTES * buf->nr_segments);
	for (u32 i = 0; i < buf->nr_literals; i++, out += 4 + word) {
		wfs_store32(out, buf->literal[i]);
		memcpy(out + 4, raw + (size_t)buf->literal[i] * word, word);
	}
}
