/* split_decode_128.h - the split decoder with vectors of 16 bytes (vec128.h): included by the one file of each
 * instruction set, which names it.
 *
 * The bucket rule (FORMAT.md 2.3) finds a slot's run with four shuffles of 16 entries and three compares, and what a
 * run means comes from one look-up in 32 entries each. The states of two strands fill all registers there are on x86,
 * so they live in memory, and a row is worked off in quarters of 16 positions.
 *
 * Hot loops: decode_supers() with all that it inlines.
 *
 * Slack: whether a stream ran out is looked at after each unit of 8 rows, of which a strand has 4. They take 4 * 64
 * bytes at most, the last 16 of them by one load, so 256 bytes behind the streams may be read. A payload with fewer
 * goes to the scalar decoder.
 */
#ifndef WFS_SPLIT_DECODE_128_H
#define WFS_SPLIT_DECODE_128_H

#include "split_merge.h"
#include "split_prefetch.h"
#include "split_unit_128.h"

/* ---- rANS ---- */

struct strand {
	vec l[4], h[4];
	const u8 *p;
};

/* A row of a strand at work. */
struct row {
	const struct wfs_decode_table *d;
	const u64 (*spread)[256][2];
	struct strand *k;
	const u8 *p;
	vec escape_run;
	struct vec_mask escapes, need;
};

/* What 16 slots mean: the fields' top bytes and the bytes below them. */
struct quarter {
	struct vec_index run;
	vec hi, lo;
};

/* The runs of 16 slots. bucket[] is biased so that runs 0 to 15 become 0x70 to 0x7f and the others 0x80 and more. */
VEC_INLINE vec find_runs(const struct wfs_decode_table *d, vec l)
{
	const vec bucket = vec_high_nibble(l), biased = vec_xor(l, vec_dup(0x80));
	vec run = vec_shuffle(vec_load(d->bucket), bucket);

#pragma GCC unroll 3
	for (unsigned i = 0; i < 3; i++)
		run = vec_sub(run, vec_above(biased, vec_shuffle(vec_load(d->start[i]), bucket)));
	return run;
}

/* The next stream bytes at the positions whose mask bits are set, 0 elsewhere. */
VEC_INLINE vec take16(const u64 (*spread)[256][2], unsigned mask, const u8 *p)
{
	return vec_shuffle(vec_load(p), vec_add(vec_load(spread[0][mask & 255]), vec_load(spread[1][mask >> 8 & 255])));
}

VEC_INLINE struct row row_start(const struct wfs_decode_table *d, const struct wfs_scratch *scratch, struct strand *k)
{
	return (struct row){.d = d, .spread = scratch->spread, .k = k, .p = k->p, .escape_run = vec_dup(d->escape_run)};
}

/* lo is filled only when asked for: a field of up to 8 bits does not reach it. */
VEC_INLINE struct quarter row_read(struct row *row, const unsigned q, const bool with_lo)
{
	const struct wfs_decode_table *d = row->d;
	const vec run = find_runs(d, row->k->l[q]);
	struct quarter y = {.run = vec_index_make(run)};

	vec_mask_put(&row->escapes, q, vec_equal(run, row->escape_run));
	y.hi = vec_look_up(d->hi, &y.run);
	y.lo = with_lo ? vec_look_up(d->lo, &y.run) : vec_zero();
	return y;
}

/* A quarter's states that fell below 256 take their bytes: those whose high byte is 0. */
VEC_INLINE void refill(const struct row *row, const unsigned q, unsigned mask, const u8 *p)
{
	const vec low = row->k->l[q], high = row->k->h[q], need = vec_equal(high, vec_zero());

	row->k->h[q] = vec_or(high, vec_and(low, need));
	row->k->l[q] = vec_or(vec_and_not(low, need), take16(row->spread, mask, p));
}

/* A quarter's states moved on: x = f * h + rank, at most 255 * 255 + 254. */
VEC_INLINE void row_step(struct row *row, const unsigned q, const struct quarter *y)
{
	struct strand *k = row->k;
	const vec f = vec_look_up(row->d->freq, &y->run), rank = vec_sub(k->l[q], vec_look_up(row->d->c, &y->run));

	vec_mul_add(f, k->h[q], rank, &k->l[q], &k->h[q]);
	vec_mask_put(&row->need, q, vec_equal(k->h[q], vec_zero()));
	if (!VEC_MASK_BY_ROW) {
		const u32 mask = vec_mask_one(&row->need, q);

		refill(row, q, mask, row->p);
		row->p += __builtin_popcount(mask);
	}
}

/* Byte i: how many bits are set in bytes 0 to i. */
static inline u64 running_counts(u64 bits)
{
	bits -= bits >> 1 & 0x5555555555555555;
	bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return bits * 0x0101010101010101;
}

/* Returns which positions are escapes. */
VEC_INLINE u64 row_end(struct row *row)
{
	if (VEC_MASK_BY_ROW) {
		const u64 need = vec_mask_get(&row->need), upto = running_counts(need);

#pragma GCC unroll 4
		for (unsigned q = 0; q < 4; q++)
			refill(row, q, (unsigned)(need >> 16 * q), row->p + (q ? upto >> (16 * q - 8) & 255 : 0));
		row->p += upto >> 56;
	}
	row->k->p = row->p;
	return vec_mask_get(&row->escapes);
}

/* ---- superrows ---- */

/* The state of a block's decoding. */
struct work {
	const struct wfs_split_view *v;
	const struct wfs_decode_pool *pool;
	struct wfs_split s;
	struct wfs_scratch *scratch;
	u8 *raw;
	struct strand k[2];
};

/* One superrow. plain: unit_plain will do. wide: fields of more than 8 bits. ahead: output to ask for. */
VEC_INLINE void superrow(struct work *w, const unsigned word, const bool wide, const bool plain,
			 const struct wfs_decode_table *d, const struct unit *u, const u8 *ahead, u64 *escape_mask,
			 u8 *raw)
{
#pragma GCC unroll 2
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * word) {
		struct row row = row_start(d, w->scratch, &w->k[r & 1]);

		wfs_prefetch_row(r, ahead, word, u->rest, u->rest_bits, row.p);
#pragma GCC unroll 4
		for (unsigned q = 0; q < 4; q++) {
			const struct quarter y = row_read(&row, q, wide);

			if (plain)
				unit_plain(u, word, wide, r, q, y.hi, y.lo, raw);
			else
				unit_moded(u, word, r, q, y.hi, y.lo, raw);
			row_step(&row, q, &y);
		}
		escape_mask[r] = row_end(&row);
	}
}

static WFS_NOINLINE VEC_TARGET void superrow_moded(struct work *w, const struct wfs_decode_table *d,
						   const struct unit *u, const u8 *ahead, u64 *escape_mask, u8 *raw)
{
	if (w->s.word == 2)
		superrow(w, 2, true, false, d, u, ahead, escape_mask, raw);
	else if (w->s.word == 4)
		superrow(w, 4, true, false, d, u, ahead, escape_mask, raw);
	else
		superrow(w, 8, true, false, d, u, ahead, escape_mask, raw);
}

/* All superrows but the last; false when a stream runs out. */
VEC_INLINE bool decode_supers(struct work *w, const unsigned word, const bool wide)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr = (v->n - 1) / WFS_SUPER;
	const unsigned seg_supers_log2 = w->pool->seg_log2 - 9;
	const u8 *rest = v->rest;
	u8 *raw = w->raw;
	struct unit u;

	for (size_t super = 0; super < nr; super++, raw += WFS_SUPER * word) {
		const struct wfs_decode_table *d = &w->pool->table[v->seg[super >> seg_supers_log2]];
		const unsigned mode = wfs_split_mode(v, super);
		const u8 *ahead = wfs_prefetch_ahead(raw, nr - super, word);
		u64 *escape_mask = w->scratch->escape_mask + super * WFS_SUPER_ROWS;

		unit_start(&u, w->s, mode, rest);
		rest += 8 * WFS_SUPER_ROWS * u.rest_bits;
		if (word > 1 && wfs_unlikely(mode || !w->s.rot))
			superrow_moded(w, d, &u, ahead, escape_mask, raw);
		else
			superrow(w, word, wide, true, d, &u, ahead, escape_mask, raw);
		if (wfs_unlikely(w->k[0].p > v->stream_end[0] || w->k[1].p > v->stream_end[1]))
			return false;
	}
	return true;
}

#define DEFINE_SUPERS(name, word, wide)                                                                                \
	static WFS_NOINLINE VEC_TARGET bool name(struct work *w)                                                       \
	{                                                                                                              \
		return decode_supers(w, word, wide);                                                                   \
	}
DEFINE_SUPERS(decode_1, 1, false)
DEFINE_SUPERS(decode_2, 2, false)
DEFINE_SUPERS(decode_4, 4, false)
DEFINE_SUPERS(decode_8, 8, false)
DEFINE_SUPERS(decode_2_wide, 2, true)
DEFINE_SUPERS(decode_4_wide, 4, true)
DEFINE_SUPERS(decode_8_wide, 8, true)

static bool decode_first_supers(struct work *w)
{
	const bool wide = w->s.field > 8;

	switch (w->s.word) {
	case 1:
		return decode_1(w);
	case 2:
		return wide ? decode_2_wide(w) : decode_2(w);
	case 4:
		return wide ? decode_4_wide(w) : decode_4(w);
	default:
		return wide ? decode_8_wide(w) : decode_8(w);
	}
}

/* ---- escapes ---- */

/* Put the field of an escape into its word, where the field's bits are still 0. top: the field as the top 16 bits of a
 * rotated word; it never reaches the lowest bit, which the rotation back would take to the top. */
static WFS_ALWAYS_INLINE void put_field(u8 *at, const unsigned word, unsigned rot, u64 top)
{
	if (word == 1)
		*at |= (u8)(top >> (8 + rot));
	else if (word == 2)
		wfs_store16(at, (u16)(wfs_load16(at) | top >> rot));
	else if (word == 4)
		wfs_store32(at, wfs_load32(at) | (u32)(top << 16 >> rot));
	else
		wfs_store64(at, wfs_load64(at) | top << 48 >> rot);
}

static WFS_ALWAYS_INLINE size_t name_escapes_of(const unsigned word, const struct work *w)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr_rows = (v->n - 1) / WFS_SUPER * WFS_SUPER_ROWS;
	const u64 *mask = w->scratch->escape_mask;
	size_t used = 0;

	for (size_t first = 0; first < nr_rows; first += WFS_SUPER_ROWS) {
		const size_t at = first * WFS_LANES;
		const u16 *tail_top = w->pool->table[v->seg[at >> w->pool->seg_log2]].tail_top;
		unsigned rows = 0;

		for (unsigned r = 0; r < WFS_SUPER_ROWS; r++)
			rows |= (unsigned)(mask[first + r] != 0) << r;
		for (; rows; rows &= rows - 1) {
			const unsigned r = (unsigned)__builtin_ctz(rows);

			for (u64 which = mask[first + r]; which; which &= which - 1, used++) {
				const unsigned pos = (unsigned)__builtin_ctzll(which);
				const size_t number = at + WFS_LANES * r + wfs_lane_word(word, pos);

				if (used == v->nr_escapes)
					return SIZE_MAX;
				put_field(w->raw + word * number, word, w->s.rot, tail_top[wfs_split_escape(v, used)]);
			}
		}
	}
	return used;
}

/* Name the escapes of all superrows but the last: within the loops even a well predicted branch on them costs more than
 * everything that is done here. Returns how many there are, or SIZE_MAX when they run out. */
static size_t name_escapes(const struct work *w)
{
	switch (w->s.word) {
	case 1:
		return name_escapes_of(1, w);
	case 2:
		return name_escapes_of(2, w);
	case 4:
		return name_escapes_of(4, w);
	default:
		return name_escapes_of(8, w);
	}
}

/* ---- blocks ---- */

/* The last unit's rows; true when states, streams and escapes end as they must. used: escapes before them. */
static VEC_TARGET bool decode_last(struct work *w, size_t used, u16 *top, u8 *final_l)
{
	const struct wfs_split_view *v = w->v;
	const struct wfs_decode_table *d = &w->pool->table[v->seg[(v->n - 1) >> w->pool->seg_log2]];
	u8 final_h[WFS_CARRIED], wrong = 0;

	for (unsigned r = 0; r < wfs_last_rows(v->n); r++, top += WFS_LANES) {
		struct row row = row_start(d, w->scratch, &w->k[r & 1]);

#pragma GCC unroll 4
		for (unsigned q = 0; q < 4; q++) {
			const struct quarter y = row_read(&row, q, true);

			vec_store(top + 16 * q, vec_zip_low(1, y.lo, y.hi));
			vec_store(top + 16 * q + 8, vec_zip_high(1, y.lo, y.hi));
			row_step(&row, q, &y);
		}
		for (u64 which = row_end(&row); which; which &= which - 1, used++) {
			if (used == v->nr_escapes)
				return false;
			top[__builtin_ctzll(which)] = d->tail_top[wfs_split_escape(v, used)];
		}
	}
	for (unsigned i = 0; i < 8; i++) {
		vec_store(final_l + 16 * i, w->k[i / 4].l[i % 4]);
		vec_store(final_h + 16 * i, w->k[i / 4].h[i % 4]);
	}
	for (unsigned i = 0; i < WFS_CARRIED; i++)
		wrong |= final_h[i] ^ 1;
	return !wrong && w->k[0].p == v->stream_end[0] && w->k[1].p == v->stream_end[1] && used == v->nr_escapes;
}

static VEC_TARGET enum wfs_status decode_128(const struct wfs_split_view *v, const struct wfs_decode_pool *pool,
					     struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
					     const char **reason_ret)
{
	struct work w = {.v = v, .pool = pool, .s = s, .scratch = scratch, .raw = raw};
	const char *reason = WFS_SPLIT_UNPROVEN;
	u16 top[WFS_SUPER];
	u8 final_l[WFS_CARRIED];
	size_t used;

	if (v->edges - v->escapes < WFS_VECTOR_SLACK)
		return wfs_split_decode_scalar(v, pool, s, raw, scratch, reason_ret);
	wfs_prefetch_start(v, s, raw);
	for (unsigned i = 0; i < WFS_STRANDS; i++) {
		for (unsigned q = 0; q < 4; q++) {
			w.k[i].l[q] = vec_load(v->states + 128 * i + 16 * q);
			w.k[i].h[q] = vec_load(v->states + 128 * i + 64 + 16 * q);
		}
		w.k[i].p = v->stream[i];
	}
	if (!decode_first_supers(&w))
		goto out;
	used = name_escapes(&w);
	if (used <= v->nr_escapes && decode_last(&w, used, top, final_l))
		reason = wfs_split_finish(v, s, top, final_l, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

#endif
