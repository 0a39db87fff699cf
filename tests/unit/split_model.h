/* split_model.h - a naive writer of split payloads, made from FORMAT.md section 2 alone, for the decoder's tests.
 *
 * It shares no code with the encoder and takes shapes that an encoder would not choose: random tables, random table
 * numbers, modes that change all the time. Words are chosen to fit the modes; everything else is drawn at random.
 */
#ifndef SPLIT_MODEL_H
#define SPLIT_MODEL_H

#include "block.h"
#include "test_util.h"

struct model {
	struct wfs_split s;
	struct wfs_pool pool;
	size_t n;
	u8 *raw;  /* n words */
	u8 *mode; /* of each superrow */
	u8 *seg;  /* table of each segment */
	u8 *comp; /* the payload */
	size_t comp_len;
	size_t nr_escapes, nr_literals;
	/* Break a rule: the last state ends one H higher, a carried byte beyond the rest bits or padding bits are set.
	 */
	u8 extra_state, extra_carried, extra_padding;
	uint64_t pad_rng; /* positions beyond the last word: 0: as writers must, else any symbols, escapes too */
};

/* ---- tables ---- */

/* Cuts 0..255 into nr_runs runs under the bucket rule. */
static inline void model_cut_slots(uint64_t *rng, unsigned nr_runs, u8 *run_len)
{
	bool cut[257] = {[0] = true, [256] = true};
	unsigned in_bucket[16] = {0}, nr = 1, last = 0;

	while (nr < nr_runs) {
		unsigned at = (unsigned)test_rand_below(rng, 256);
		if (cut[at] || (at % 16 && in_bucket[at / 16] == 3))
			continue;
		if (at % 16)
			in_bucket[at / 16]++;
		cut[at] = true;
		nr++;
	}
	nr = 0;
	for (unsigned at = 1; at <= 256; at++) {
		if (!cut[at])
			continue;
		run_len[nr++] = (u8)(at - last);
		last = at;
	}
}

static inline void model_table(uint64_t *rng, unsigned field, struct wfs_table *t)
{
	unsigned nr_values = 1u << field, max_m = WFS_MIN(nr_values + 1, (unsigned)WFS_MAX_SYMS), left;
	u16 value[1 << WFS_MAX_FIELD];

	memset(t, 0, sizeof(*t));
	t->m = (u8)(2 + test_rand_below(rng, max_m - 1));
	t->nrun = (u8)(t->m + test_rand_below(rng, WFS_MIN(2u * t->m - 1, (unsigned)WFS_MAX_RUNS) - t->m + 1u));
	left = nr_values - (t->m - 1u);
	t->ntail = (u8)test_rand_below(rng, WFS_MIN(left, (unsigned)WFS_MAX_TAIL) + 1);
	for (unsigned i = 0; i < nr_values; i++)
		value[i] = (u16)i;
	for (unsigned i = 0; i < t->m - 1u + t->ntail; i++) {
		unsigned j = i + (unsigned)test_rand_below(rng, nr_values - i);
		u16 v = value[j];
		value[j] = value[i];
		value[i] = v;
		if (i < t->m - 1u)
			t->val[i] = v;
		else
			t->tail[i - (t->m - 1u)] = v;
	}
	model_cut_slots(rng, t->nrun, t->run_len);
	/* Every symbol once, then second runs of distinct symbols but the escape; shuffled. */
	for (unsigned i = 0; i < t->nrun; i++)
		t->run_sym[i] = (u8)(i < t->m ? i : i - t->m);
	for (unsigned i = t->nrun; i > 1; i--) {
		unsigned j = (unsigned)test_rand_below(rng, i);
		u8 sym = t->run_sym[j];
		t->run_sym[j] = t->run_sym[i - 1];
		t->run_sym[i - 1] = sym;
	}
	for (unsigned i = 0; i < t->nrun; i++)
		t->freq[t->run_sym[i]] = (u8)(t->freq[t->run_sym[i]] + t->run_len[i]);
}

static inline void model_pool(uint64_t *rng, unsigned field, unsigned nr_tables, unsigned seg_log2,
			      struct wfs_pool *pool)
{
	memset(pool, 0, sizeof(*pool));
	pool->nr_tables = (u8)nr_tables;
	pool->seg_log2 = (u8)seg_log2;
	pool->field = (u8)field;
	for (unsigned i = 0; i < nr_tables; i++)
		model_table(rng, field, &pool->table[i]);
}

/* ---- words ---- */

static inline u64 model_mask(unsigned bits)
{
	return bits >= 64 ? ~0ull : (1ull << bits) - 1;
}
static inline u64 model_rotate(struct wfs_split s, u64 word)
{
	unsigned bits = 8u * s.word;
	return s.rot ? (word << 1 | word >> (bits - 1)) & model_mask(bits) : word;
}
static inline u64 model_unrotate(struct wfs_split s, u64 word)
{
	unsigned bits = 8u * s.word;
	return s.rot ? word >> 1 | (word & 1) << (bits - 1) : word;
}

/* A rotated word: its field from the table (escape_permille of them not a coded symbol), its rest to fit the mode. */
static inline u64 model_word(uint64_t *rng, const struct model *m, const struct wfs_table *t, unsigned mode,
			     unsigned escape_permille)
{
	unsigned rest_bits = 8u * m->s.word - m->s.field, zeros = mode & 63, sign = mode >> 6;
	u64 field, rest = test_rand(rng) & model_mask(rest_bits);

	if (test_rand_below(rng, 1000) >= escape_permille) {
		unsigned slot = (unsigned)test_rand_below(rng, 256), run = 0;
		while (slot >= t->run_len[run])
			slot -= t->run_len[run++];
		field = t->run_sym[run] == t->m - 1 ? t->val[0] : t->val[t->run_sym[run]];
	} else if (t->ntail && test_rand_below(rng, 4)) {
		field = t->tail[test_rand_below(rng, t->ntail)];
	} else {
		field = test_rand(rng) & model_mask(m->s.field);
	}
	if (mode) {
		u64 sign_bit = sign ? sign == 2 : rest & 1;
		rest = (rest & ~model_mask(zeros + 1)) | sign_bit;
	}
	return field << rest_bits | rest;
}

/* ---- payload ---- */

struct model_sym {
	u8 sym, nibble;
	bool literal;
};

static inline struct model_sym model_name(const struct wfs_table *t, unsigned field)
{
	for (unsigned i = 0; i + 1 < t->m; i++) {
		if (t->val[i] == field)
			return (struct model_sym){(u8)i, 0, false};
	}
	for (unsigned i = 0; i < t->ntail; i++) {
		if (t->tail[i] == field)
			return (struct model_sym){(u8)(t->m - 1), (u8)i, false};
	}
	return (struct model_sym){(u8)(t->m - 1), 15, true};
}

/* The slot of a symbol's rank. */
static inline unsigned model_slot(const struct wfs_table *t, unsigned sym, unsigned rank)
{
	unsigned start = 0;
	for (unsigned i = 0; i < t->nrun; start += t->run_len[i++]) {
		if (t->run_sym[i] != sym)
			continue;
		if (rank < t->run_len[i])
			return start + rank;
		rank -= t->run_len[i];
	}
	CHECK(!"rank within the symbol");
	return 0;
}

static inline u64 model_load(const struct model *m, size_t i)
{
	u64 word = 0;
	memcpy(&word, m->raw + i * m->s.word, m->s.word);
	return model_rotate(m->s, word);
}

/* Stored rest bits of word i (0 beyond the last) in its superrow's mode. */
static inline u64 model_rest(const struct model *m, size_t i)
{
	unsigned mode = m->mode[WFS_MIN(i, m->n - 1) / WFS_SUPER], zeros = mode & 63,
		 rest_bits = 8u * m->s.word - m->s.field;
	u64 rest = i < m->n ? model_load(m, i) & model_mask(rest_bits) : m->extra_padding;

	if (!mode)
		return rest;
	return mode >> 6 ? rest >> 1 >> zeros : rest >> 1 >> zeros << 1 | (rest & 1);
}

/* One unit's rest bits; returns their end. */
static inline u8 *model_pack_unit(const struct model *m, size_t first, unsigned rows, u8 *out)
{
	unsigned mode = m->mode[first / WFS_SUPER], bits = 8u * m->s.word - m->s.field;
	unsigned partial, planes;

	if (mode)
		bits -= (mode & 63) + (mode >> 6 != 0);
	partial = bits % 8;
	planes = bits / 8;
	for (unsigned r = 0; r < rows; r++) {
		for (unsigned p = 0; p < 64; p++) {
			u64 v = model_rest(m, first + 64 * r + wfs_lane_word(m->s.word, p));
			u64 part = v >> (8 * planes);
			u8 *plane = out + 64 * (rows == 8 ? partial : rows * (partial > 0));

			if (rows < 8 && partial)
				out[64 * r + p] = (u8)part;
			else if (r < partial)
				out[64 * r + p] = (u8)((out[64 * r + p] & ~model_mask(partial)) | part);
			else
				for (unsigned i = 0; i < partial; i++)
					out[64 * i + p] = (u8)((out[64 * i + p] & ~(1u << r)) | (part >> i & 1) << r);
			for (unsigned k = 0; k < planes; k++)
				plane[64 * rows * k + 64 * r + p] = (u8)(v >> (8 * (planes - 1 - k)));
		}
	}
	return out + (rows == 8 ? 64 * partial + 512 * planes : 64 * rows * ((partial > 0) + planes));
}

/* Field symbols of all rows backwards; fills states and the ends of the stream buffers, returns the streams' starts. */
static inline void model_code(struct model *m, const struct model_sym *sym, size_t nr_rows, const u8 *carried,
			      u8 *states, u8 *stream[2])
{
	unsigned x[2][64];

	for (unsigned i = 0; i < 128; i++)
		x[i / 64][i % 64] = (i == 127 ? 256u * m->extra_state : 0) + 256 + carried[i];
	for (size_t r = nr_rows; r-- > 0;) {
		const struct wfs_table *t = &m->pool.table[m->seg[r * 64 >> m->pool.seg_log2]];
		for (unsigned p = 64; p-- > 0;) {
			unsigned *state = &x[r % 2][p], y = sym[r * 64 + p].sym, f = t->freq[y];
			if (*state >= f << 8) {
				*--stream[r % 2] = (u8)*state;
				*state >>= 8;
			}
			*state = *state / f << 8 | model_slot(t, y, *state % f);
		}
	}
	for (unsigned i = 0; i < 128; i++) {
		states[128 * (i / 64) + i % 64] = (u8)x[i / 64][i % 64];
		states[128 * (i / 64) + 64 + i % 64] = (u8)(x[i / 64][i % 64] >> 8);
	}
}

static inline u8 *model_put(u8 *out, const void *bytes, size_t len)
{
	memcpy(out, bytes, len);
	return out + len;
}

/* The payload's front: header, table numbers, mode changes. */
static inline u8 *model_front(const struct model *m, size_t len0, size_t len1, u8 *out)
{
	size_t nr_segs = WFS_CEIL_DIV(m->n, (size_t)1 << m->pool.seg_log2), nr_supers = WFS_CEIL_DIV(m->n, WFS_SUPER);
	u8 *header = out, mode = 0;

	wfs_store24(out, (u32)len0);
	wfs_store24(out + 3, (u32)len1);
	wfs_store24(out + 6, (u32)m->nr_escapes);
	wfs_store16(out + 9, (u16)m->nr_literals);
	header[11] = 0;
	out += 12;
	if (m->pool.nr_tables > 1) {
		for (size_t i = 0; i < nr_segs; i += 2)
			*out++ = (u8)(m->seg[i] | (i + 1 < nr_segs ? m->seg[i + 1] << 4 : 0));
	}
	for (size_t i = 0; i < nr_supers; i++) {
		if (m->mode[i] == mode)
			continue;
		mode = m->mode[i];
		wfs_store16(out, (u16)i);
		out[2] = mode;
		out += 3;
		header[11]++;
	}
	return out;
}

static inline void model_encode(struct model *m)
{
	size_t nr_rows = WFS_CEIL_DIV(m->n, 64), nr_units = WFS_CEIL_DIV(m->n, WFS_SUPER), nr = 0;
	size_t cap = nr_rows * 64;
	struct model_sym *sym = calloc(cap, sizeof(*sym));
	u8 *nibbles = calloc(cap + 1, 1), *literals = malloc(cap * 12), *rest = calloc(nr_units * 512 + 512, 8);
	u8 *stream_buf[2] = {malloc(cap), malloc(cap)}, *stream[2] = {stream_buf[0] + cap, stream_buf[1] + cap};
	u8 *rest_end = rest, *last_unit = rest, *lit = literals, carried[128] = {0}, states[256], *out;
	size_t nr_carried;

	m->nr_literals = 0;
	for (size_t r = 0; r < nr_rows; r++) {
		const struct wfs_table *t = &m->pool.table[m->seg[r * 64 >> m->pool.seg_log2]];
		unsigned best = 0;
		for (unsigned i = 1; i + 1 < t->m; i++)
			best = t->freq[i] > t->freq[best] ? i : best;
		for (unsigned p = 0; p < 64; p++) {
			size_t i = 64 * r + wfs_lane_word(m->s.word, p);
			struct model_sym *y = &sym[64 * r + p];

			*y = (struct model_sym){(u8)best, 0, false};
			if (m->pad_rng)
				*y = (struct model_sym){(u8)test_rand_below(&m->pad_rng, t->m),
							(u8)test_rand_below(&m->pad_rng, 16), false};
			if (i < m->n)
				*y = model_name(t, (unsigned)(model_load(m, i) >> (8 * m->s.word - m->s.field)));
			if (y->sym == t->m - 1) {
				nibbles[nr / 2] |= (u8)(y->nibble << (4 * (nr & 1)));
				nr++;
			}
		}
		for (unsigned i = 0; i < 64 && 64 * r + i < m->n; i++) {
			if (!model_name(t, (unsigned)(model_load(m, 64 * r + i) >> (8 * m->s.word - m->s.field)))
				     .literal)
				continue;
			wfs_store32(lit, (u32)(64 * r + i));
			memcpy(lit + 4, m->raw + (64 * r + i) * m->s.word, m->s.word);
			lit += 4 + m->s.word;
			m->nr_literals++;
		}
	}
	CHECK(m->nr_literals < 65536);
	m->nr_escapes = nr;
	for (size_t u = 0; u < nr_units; u++) {
		last_unit = rest_end;
		rest_end =
			model_pack_unit(m, u * WFS_SUPER, u + 1 < nr_units ? 8 : (unsigned)(nr_rows - 8 * u), rest_end);
	}
	nr_carried = WFS_MIN((size_t)(rest_end - last_unit), (size_t)128);
	rest_end -= nr_carried;
	memcpy(carried, rest_end, nr_carried);
	if (m->extra_carried)
		carried[127] = 1;
	model_code(m, sym, nr_rows, carried, states, stream);
	m->comp = malloc(12 + m->n / 512 + 1 + 3 * 255 + 256 + 2 * cap + nr + (size_t)(lit - literals) +
			 (size_t)(rest_end - rest) + 64);
	out = model_front(m, (size_t)(stream_buf[0] + cap - stream[0]), (size_t)(stream_buf[1] + cap - stream[1]),
			  m->comp);
	out = model_put(out, states, 256);
	out = model_put(out, stream[0], (size_t)(stream_buf[0] + cap - stream[0]));
	out = model_put(out, stream[1], (size_t)(stream_buf[1] + cap - stream[1]));
	out = model_put(out, nibbles, (nr + 1) / 2);
	out = model_put(out, literals, (size_t)(lit - literals));
	out = model_put(out, rest, (size_t)(rest_end - rest));
	m->comp_len = (size_t)(out - m->comp);
	free(sym);
	free(nibbles);
	free(literals);
	free(rest);
	free(stream_buf[0]);
	free(stream_buf[1]);
}

/* ---- whole cases ---- */

/* A random mode of a split; 0 where it has none. */
static inline unsigned model_mode(uint64_t *rng, struct wfs_split s)
{
	unsigned rest_bits = 8u * s.word - s.field;

	if (s.rot != 1 || s.word < 2)
		return 0;
	return (unsigned)(test_rand_below(rng, rest_bits) | test_rand_below(rng, 3) << 6);
}

static inline struct model model_new(uint64_t *rng, struct wfs_split s, size_t n, unsigned nr_tables, unsigned seg_log2,
				     bool modes, unsigned escape_permille)
{
	size_t nr_supers = WFS_CEIL_DIV(n, WFS_SUPER), nr_segs = WFS_CEIL_DIV(n, (size_t)1 << seg_log2), changes = 0;
	struct model m = {.s = s, .n = n, .pad_rng = test_rand_below(rng, 2) ? test_rand(rng) | 1 : 0};

	model_pool(rng, s.field, nr_tables, seg_log2, &m.pool);
	m.raw = malloc(n * s.word);
	m.mode = calloc(nr_supers, 1);
	m.seg = malloc(nr_segs);
	for (size_t i = 0; i < nr_segs; i++)
		m.seg[i] = (u8)test_rand_below(rng, nr_tables);
	for (size_t i = 0; modes && i < nr_supers; i++) {
		bool change = changes < 250 && test_rand_below(rng, 2);
		m.mode[i] = change ? (u8)(test_rand_below(rng, 4) ? model_mode(rng, s) : 0) : i ? m.mode[i - 1] : 0;
		changes += change;
	}
	for (size_t i = 0; i < n; i++) {
		u64 word = model_word(rng, &m, &m.pool.table[m.seg[i >> seg_log2]], m.mode[i / WFS_SUPER],
				      escape_permille);
		word = model_unrotate(s, word);
		memcpy(m.raw + i * s.word, &word, s.word);
	}
	model_encode(&m);
	return m;
}

static inline void model_free(struct model *m)
{
	free(m->raw);
	free(m->mode);
	free(m->seg);
	free(m->comp);
}

#endif
