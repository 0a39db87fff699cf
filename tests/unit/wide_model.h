/* wide_model.h - a naive writer of wide pools and payloads, made from FORMAT.md section 4 alone, for the decoder's
 * tests.
 *
 * As split_model.h, whose words, modes and rest bits it takes; shares no code with the encoder. Pools, segments and
 * their tables are drawn at random.
 */
#ifndef WIDE_MODEL_H
#define WIDE_MODEL_H

#include "split_model.h"
#include "wide.h"

struct wide_model {
	struct model m; /* s, n, raw, mode; comp is the wide payload */
	struct wfs_wide_pool pool;
	struct wfs_wide_groups groups;
	size_t nr_segs;
	u8 *seg;	/* table of each segment */
	u8 *word_table; /* of each word */
	u32 extra_state;
};

/* ---- pools ---- */

static inline bool wide_pools_equal(const struct wfs_wide_pool *a, const struct wfs_wide_pool *b)
{
	return a->nr_tables == b->nr_tables && a->field == b->field && a->ntail == b->ntail && a->base == b->base &&
	       !memcmp(a->tail, b->tail, sizeof(a->tail)) && !memcmp(a->freq, b->freq, sizeof(a->freq));
}

/* Frequencies of some of nr_names names, and mostly of the escape. */
static inline void wide_model_table(uint64_t *rng, unsigned nr_names, u16 freq[WFS_WIDE_NAMES])
{
	unsigned escape = (unsigned)(test_rand_below(rng, 3) ? 1 + test_rand_below(rng, 300) : test_rand_below(rng, 2));
	unsigned nr = (escape ? 1 : 2) + (unsigned)test_rand_below(rng, nr_names - (escape ? 0 : 1));
	unsigned left = 4096 - escape - nr, used = 0;
	u8 name[WFS_WIDE_NAMES];

	memset(freq, 0, WFS_WIDE_NAMES * sizeof(freq[0]));
	freq[WFS_WIDE_ESCAPE] = (u16)escape;
	for (unsigned i = 0; i < nr_names; i++)
		name[i] = (u8)i;
	for (; used < nr; used++) {
		unsigned i = used + (unsigned)test_rand_below(rng, nr_names - used);
		unsigned more = used + 1 < nr ? (unsigned)test_rand_below(rng, left / 3 + 1) : left;
		u8 drawn = name[i];

		name[i] = name[used];
		freq[drawn] = (u16)(1 + more);
		left -= more;
	}
}

static inline void wide_model_pool(uint64_t *rng, unsigned field, unsigned nr_tables, struct wfs_wide_pool *pool)
{
	const unsigned nr_values = 1u << field;
	unsigned ntail = (unsigned)test_rand_below(rng, WFS_MIN(nr_values, 255u) + 1);
	u16 value[1 << WFS_MAX_FIELD];

	memset(pool, 0, sizeof(*pool));
	pool->nr_tables = (u8)nr_tables;
	pool->field = (u8)field;
	pool->ntail = (u8)ntail;
	pool->base = (u16)test_rand_below(rng, nr_values);
	for (unsigned i = 0; i < nr_values; i++)
		value[i] = (u16)i;
	for (unsigned i = 0; i < ntail; i++) {
		unsigned j = i + (unsigned)test_rand_below(rng, nr_values - i);
		u16 v = value[j];

		value[j] = value[i];
		value[i] = v;
		pool->tail[i] = v;
	}
	for (unsigned i = 0; i < nr_tables; i++)
		wide_model_table(rng, WFS_MIN(nr_values, 255u), pool->freq[i]);
}

/* ---- words ---- */

struct wide_model_name {
	u8 name, escape;
};

static inline struct wide_model_name wide_model_name(const struct wfs_wide_pool *pool, unsigned table, unsigned value)
{
	unsigned name = (value - pool->base) & ((1u << pool->field) - 1);

	if (name < WFS_WIDE_ESCAPE && pool->freq[table][name])
		return (struct wide_model_name){(u8)name, 0};
	for (unsigned i = 0; i < pool->ntail; i++) {
		if (pool->tail[i] == value)
			return (struct wide_model_name){WFS_WIDE_ESCAPE, (u8)i};
	}
	return (struct wide_model_name){WFS_WIDE_ESCAPE, 255};
}

/* A name of the table by its frequencies; not the escape. */
static inline unsigned wide_model_draw(uint64_t *rng, const u16 *freq)
{
	for (;;) {
		unsigned slot = (unsigned)test_rand_below(rng, 4096), name = 0;

		while (slot >= freq[name])
			slot -= freq[name++];
		if (name != WFS_WIDE_ESCAPE)
			return name;
	}
}

static inline u64 wide_model_word(uint64_t *rng, const struct wide_model *w, size_t i, unsigned escape_permille)
{
	const struct wfs_split s = w->m.s;
	const u16 *freq = w->pool.freq[w->word_table[i]];
	unsigned rest_bits = 8u * s.word - s.field, mode = w->m.mode[i / WFS_SUPER], sign = mode >> 6;
	u64 field, rest = test_rand(rng) & model_mask(rest_bits);

	field = (wide_model_draw(rng, freq) + w->pool.base) & model_mask(s.field);
	if (freq[WFS_WIDE_ESCAPE] && test_rand_below(rng, 1000) < escape_permille) {
		field = test_rand(rng) & model_mask(s.field);
		if (w->pool.ntail && test_rand_below(rng, 4))
			field = w->pool.tail[test_rand_below(rng, w->pool.ntail)];
	}
	if (mode)
		rest = (rest & ~model_mask((mode & 63) + 1)) | (sign ? sign == 2 : rest & 1);
	return field << rest_bits | rest;
}

/* ---- payload ---- */

/* Names of all rows backwards; fills the states and returns the stream's start. */
static inline u8 *wide_model_code(const struct wide_model *w, const u8 *name, const u8 *table, size_t nr_rows,
				  u32 state[32], u8 *stream)
{
	for (unsigned i = 0; i < 32; i++)
		state[i] = 65536 + (i == 17 ? w->extra_state : 0);
	for (size_t i = 64 * nr_rows; i-- > 0;) {
		const u16 *freq = w->pool.freq[table[i]];
		u64 x = state[i % 32], f = freq[name[i]], start = 0;

		for (unsigned k = 0; k < name[i]; k++)
			start += freq[k];
		if (x >= f << 20) {
			stream -= 2;
			wfs_store16(stream, (u16)x);
			x >>= 16;
		}
		state[i % 32] = (u32)(x / f << 12 | (start + x % f));
	}
	return stream;
}

static inline u8 *wide_model_front(const struct wide_model *w, size_t stream_len, u8 *out)
{
	unsigned bits = 0;
	u8 *header = out, mode = 0;

	while ((w->pool.nr_tables - 1u) >> bits)
		bits++;
	wfs_store24(out, (u32)stream_len);
	wfs_store24(out + 3, (u32)w->m.nr_escapes);
	wfs_store16(out + 6, (u16)w->m.nr_literals);
	header[8] = 0;
	header[9] = (u8)w->groups.nr;
	wfs_store16(out + 10, (u16)w->groups.phase);
	out += 12;
	for (unsigned i = 0; i < w->groups.nr; i++, out += 5) {
		wfs_store24(out, w->groups.group[i].first);
		wfs_store16(out + 3, w->groups.group[i].seg_len);
	}
	memset(out, 0, (w->nr_segs * bits + 7) / 8);
	for (size_t i = 0; i < w->nr_segs * bits; i++)
		out[i / 8] |= (u8)((w->seg[i / bits] >> i % bits & 1) << i % 8);
	out += (w->nr_segs * bits + 7) / 8;
	for (size_t i = 0; i < WFS_CEIL_DIV(w->m.n, WFS_SUPER); i++) {
		if (w->m.mode[i] == mode)
			continue;
		mode = w->m.mode[i];
		wfs_store16(out, (u16)i);
		out[2] = mode;
		out += 3;
		header[8]++;
	}
	return out;
}

/* Names and tables of all positions, escapes and literals. */
static inline u8 *wide_model_names(struct wide_model *w, u8 *name, u8 *table, u8 *escapes, u8 *literals)
{
	const struct wfs_split s = w->m.s;
	size_t n = w->m.n, nr_escapes = 0;

	w->m.nr_literals = 0;
	for (size_t i = 0; i < WFS_CEIL_DIV(n, 64) * 64; i++) {
		size_t word = i / 64 * 64 + wfs_lane_word(s.word, i % 64);
		const u16 *freq = w->pool.freq[table[i] = w->word_table[WFS_MIN(word, n - 1)]];
		struct wide_model_name y = {0, (u8)test_rand(&w->m.pad_rng)};

		for (unsigned k = 1; k < WFS_WIDE_ESCAPE; k++)
			y.name = freq[k] > freq[y.name] ? (u8)k : y.name;
		if (w->m.pad_rng & 1) /* any name will do */
			y.name = freq[WFS_WIDE_ESCAPE] ? WFS_WIDE_ESCAPE : (u8)wide_model_draw(&w->m.pad_rng, freq);
		if (word < n)
			y = wide_model_name(&w->pool, table[i],
					    (unsigned)(model_load(&w->m, word) >> (8 * s.word - s.field)));
		name[i] = y.name;
		if (y.name == WFS_WIDE_ESCAPE)
			escapes[nr_escapes++] = y.escape;
	}
	for (size_t i = 0; i < n; i++) {
		struct wide_model_name y = wide_model_name(&w->pool, w->word_table[i],
							   (unsigned)(model_load(&w->m, i) >> (8 * s.word - s.field)));

		if (y.name != WFS_WIDE_ESCAPE || y.escape != 255)
			continue;
		wfs_store32(literals, (u32)i);
		memcpy(literals + 4, w->m.raw + i * s.word, s.word);
		literals += 4 + s.word;
		w->m.nr_literals++;
	}
	w->m.nr_escapes = nr_escapes;
	CHECK(w->m.nr_literals < 65536);
	return literals;
}

static inline void wide_model_encode(struct wide_model *w)
{
	size_t n = w->m.n, nr_rows = WFS_CEIL_DIV(n, 64), cap = 64 * nr_rows, nr_units = WFS_CEIL_DIV(n, WFS_SUPER);
	u8 *name = malloc(cap), *table = malloc(cap), *escapes = malloc(cap), *literals = malloc(12 * cap);
	u8 *stream = malloc(2 * cap), *rest = calloc(nr_units * 512 + 512, 8), *rest_end = rest, *start, *literals_end;
	u32 state[32];
	u8 *out;

	literals_end = wide_model_names(w, name, table, escapes, literals);
	start = wide_model_code(w, name, table, nr_rows, state, stream + 2 * cap);
	for (size_t u = 0; u < nr_units; u++)
		rest_end = model_pack_unit(&w->m, u * WFS_SUPER, u + 1 < nr_units ? 8 : (unsigned)(nr_rows - 8 * u),
					   rest_end);
	free(w->m.comp);
	w->m.comp = malloc(12 + 5 * 255 + w->nr_segs + 3 * 255 + 128 + 2 * cap + cap + 12 * cap +
			   (size_t)(rest_end - rest) + 64);
	out = wide_model_front(w, (size_t)(stream + 2 * cap - start), w->m.comp);
	out = model_put(out, state, 128);
	out = model_put(out, start, (size_t)(stream + 2 * cap - start));
	out = model_put(out, escapes, w->m.nr_escapes);
	out = model_put(out, literals, (size_t)(literals_end - literals));
	out = model_put(out, rest, (size_t)(rest_end - rest));
	w->m.comp_len = (size_t)(out - w->m.comp);
	free(name);
	free(table);
	free(escapes);
	free(literals);
	free(stream);
	free(rest);
}

/* ---- whole cases ---- */

/* Groups drawn at random; the table of every segment and word. */
static inline void wide_model_groups(uint64_t *rng, struct wide_model *w)
{
	size_t n = w->m.n, nr = 0;

	w->groups.nr = 0;
	for (size_t first = 0; first < n && w->groups.nr < 255;) {
		unsigned i = w->groups.nr++;

		w->groups.group[i].first = (u32)first;
		w->groups.group[i].seg_len = (u16)(64 + test_rand_below(rng, test_rand_below(rng, 2) ? 100 : 2000));
		first += 1 + test_rand_below(rng, test_rand_below(rng, 2) ? 100 : n);
	}
	w->groups.phase = (unsigned)(test_rand_below(rng, 2) ? test_rand_below(rng, w->groups.group[0].seg_len) : 0);
	w->seg = malloc(n + 1);
	w->word_table = malloc(n);
	for (unsigned i = 0; i < w->groups.nr; i++) {
		size_t end = i + 1 < w->groups.nr ? w->groups.group[i + 1].first : n;
		size_t first = w->groups.group[i].first, phase = i ? 0 : w->groups.phase;

		for (size_t k = first; k < end; k++) {
			if (k == first || (k - first + phase) % w->groups.group[i].seg_len == 0)
				w->seg[nr++] = (u8)test_rand_below(rng, w->pool.nr_tables);
			w->word_table[k] = w->seg[nr - 1];
		}
	}
	w->nr_segs = nr;
}

static inline struct wide_model wide_model_new(uint64_t *rng, struct wfs_split s, size_t n, unsigned nr_tables,
					       bool modes, unsigned escape_permille)
{
	struct wide_model w = {.m = {.s = s, .n = n, .pad_rng = test_rand(rng) | 2}};
	size_t nr_supers = WFS_CEIL_DIV(n, WFS_SUPER), changes = 0;

	wide_model_pool(rng, s.field, nr_tables, &w.pool);
	wide_model_groups(rng, &w);
	w.m.raw = malloc(n * s.word);
	w.m.mode = calloc(nr_supers, 1);
	for (size_t i = 0; modes && i < nr_supers; i++) {
		bool change = changes < 250 && test_rand_below(rng, 2);

		w.m.mode[i] = change ? (u8)(test_rand_below(rng, 4) ? model_mode(rng, s) : 0) : i ? w.m.mode[i - 1] : 0;
		changes += change;
	}
	for (size_t i = 0; i < n; i++) {
		u64 word = model_unrotate(s, wide_model_word(rng, &w, i, escape_permille));

		memcpy(w.m.raw + i * s.word, &word, s.word);
	}
	wide_model_encode(&w);
	return w;
}

static inline void wide_model_free(struct wide_model *w)
{
	free(w->seg);
	free(w->word_table);
	free(w->m.raw);
	free(w->m.mode);
	free(w->m.comp);
}

#endif
