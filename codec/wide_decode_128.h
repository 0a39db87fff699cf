/* wide_decode_128.h - the wide decoder with vectors of 16 bytes (vec128.h): included by the one file of each
 * instruction set, which names it. Hot loop: row() with all that it inlines.
 *
 * Four lanes are a vector. Their slots are looked up one by one, what follows is done for all four. A superrow is first
 * decoded to names, then its fields and rest bits are merged.
 */
#ifndef WFS_WIDE_DECODE_128_H
#define WFS_WIDE_DECODE_128_H

#include "split_unit_128.h"
#include "wide_decode.h"

/* ---- rows ---- */

/* By which of four lanes take bits, lane 0 in bit 0: shuffles that bring the next u16 of the stream to these lanes'
 * lower halves, 0 elsewhere; bytes taken. */
struct refills {
	_Alignas(16) u8 spread[16][16];
	u8 bytes[16];
};

static inline void refills_init(struct refills *refills)
{
	memset(refills->spread, 0x80, sizeof(refills->spread));
	for (unsigned mask = 0; mask < 16; mask++) {
		u8 next = 0;

		for (unsigned lane = 0; lane < 4; lane++) {
			if (!(mask >> lane & 1))
				continue;
			refills->spread[mask][4 * lane] = next++;
			refills->spread[mask][4 * lane + 1] = next++;
		}
		refills->bytes[mask] = next;
	}
}

/* The entries of 4 slots. of: their tables; NULL: all have the table `one`. */
VEC_INLINE vec look_up(const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of, vec slot)
{
	u32 s[4], e[4];

	vec_store(s, slot);
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		const struct wfs_wide_decode_table *table = of ? of[i] : one;

		e[i] = table->entry[table->name[s[i]]];
	}
	return vec_of4(e[0], e[1], e[2], e[3]);
}

VEC_INLINE vec dup32(u32 word)
{
	return vec_of4(word, word, word, word);
}

/* Four positions, which take 8 bytes at most; returns their entries. */
VEC_INLINE vec step(u32 *lane, const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of,
		    const struct refills *refills, const u8 **p)
{
	const vec x = vec_load(lane), slot = vec_and(x, dup32(WFS_WIDE_SLOTS - 1)), entry = look_up(one, of, slot);
	const vec freq = vec_and(vec_right(4, entry, vec_right_by(8)), dup32(0xfff));
	const vec rank = vec_sub32(slot, vec_right(4, entry, vec_right_by(20)));
	const vec moved = vec_add32(vec_mul32(freq, vec_right(4, x, vec_right_by(WFS_WIDE_BITS))), rank);
	const vec need = vec_equal32(vec_right(4, moved, vec_right_by(16)), vec_zero());
	const u32 mask = vec_mask4(need);
	const vec next = vec_shuffle(vec_load8(*p), vec_load(refills->spread[mask]));
	const vec shifted = vec_or(vec_and(vec_left(4, moved, vec_left_by(16)), need), next);

	vec_store(lane, vec_or(shifted, vec_and_not(moved, need)));
	*p += refills->bytes[mask];
	return entry;
}

/* A row: the names of its 64 positions. */
VEC_INLINE void row(struct wfs_wide_state *state, const struct wfs_wide_decode_table *one,
		    const struct wfs_wide_decode_table *const *of, const struct refills *refills, u8 *name)
{
	const u8 *p = state->p;

#pragma GCC unroll 4
	for (unsigned q = 0; q < 4; q++) {
		vec entry[4];

#pragma GCC unroll 4
		for (unsigned i = 0; i < 4; i++) {
			const unsigned at = 16 * q + 4 * i;

			entry[i] = step(state->lane + at % WFS_WIDE_LANES, one, of ? of + at : NULL, refills, &p);
		}
		vec_store(name + 16 * q,
			  vec_even_bytes(vec_low_halves(entry[0], entry[1]), vec_low_halves(entry[2], entry[3])));
	}
	state->p = p;
}

/* ---- fields ---- */

/* Those that 16 names stand for; returns which are escapes. */
VEC_INLINE vec names_to_fields(const struct wfs_wide_decode_pool *pool, vec name, u8 *hi, u8 *lo)
{
	const vec base = dup32(pool->base * 0x10001u), up = vec_left_by(16u - pool->field);
	const vec a = vec_left(2, vec_add32(vec_zip_low(1, name, vec_zero()), base), up);
	const vec b = vec_left(2, vec_add32(vec_zip_high(1, name, vec_zero()), base), up);

	vec_store(hi, vec_odd_bytes(a, b));
	vec_store(lo, vec_even_bytes(a, b));
	return vec_equal(name, vec_dup(WFS_WIDE_ESCAPE));
}

/* The fields of `rows` rows from word `first` on. False: stream or escapes run out. */
static WFS_NOINLINE VEC_TARGET bool decode_fields(struct wfs_wide_walk *walk, struct wfs_wide_state *state,
						  const struct refills *refills, size_t first, unsigned rows,
						  struct wfs_wide_fields *f)
{
	u64 escapes[WFS_SUPER_ROWS];

	for (unsigned r = 0; r < rows; r++, first += WFS_LANES) {
		const struct wfs_wide_decode_table *one = wfs_wide_walk_row(walk, first);
		_Alignas(16) u8 name[WFS_LANES];
		struct vec_mask mask;

		if (wfs_unlikely(walk->v->stream_end - state->p < WFS_WIDE_ROW_BYTES)) {
			if (!wfs_wide_row_careful(walk, one, state, name))
				return false;
		} else if (wfs_likely(one)) {
			row(state, one, NULL, refills, name);
		} else {
			row(state, NULL, walk->of, refills, name);
		}
#pragma GCC unroll 4
		for (unsigned q = 0; q < 4; q++) {
			const unsigned at = WFS_LANES * r + 16 * q;

			vec_mask_put(&mask, q,
				     names_to_fields(walk->pool, vec_load(name + 16 * q), f->hi + at, f->lo + at));
		}
		escapes[r] = vec_mask_get(&mask);
	}
	for (unsigned r = 0; r < rows; r++)
		if (wfs_unlikely(escapes[r]) && !wfs_wide_name_escapes(walk, escapes[r], r, f))
			return false;
	return true;
}

/* ---- superrows ---- */

/* plain: unit_plain will do. wide: fields of more than 8 bits. */
VEC_INLINE void merge(const struct unit *u, const unsigned word, const bool wide, const bool plain,
		      const struct wfs_wide_fields *f, u8 *raw)
{
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * word) {
#pragma GCC unroll 4
		for (unsigned q = 0; q < 4; q++) {
			const vec hi = vec_load(f->hi + WFS_LANES * r + 16 * q);
			const vec lo = vec_load(f->lo + WFS_LANES * r + 16 * q);

			if (plain)
				unit_plain(u, word, wide, r, q, hi, lo, raw);
			else
				unit_moded(u, word, r, q, hi, lo, raw);
		}
	}
}

typedef void merge_fn(const struct unit *u, const struct wfs_wide_fields *f, u8 *raw);

#define DEFINE_MERGE(name, word, wide, plain)                                                                          \
	static WFS_NOINLINE VEC_TARGET void name(const struct unit *u, const struct wfs_wide_fields *f, u8 *raw)       \
	{                                                                                                              \
		merge(u, word, wide, plain, f, raw);                                                                   \
	}
DEFINE_MERGE(merge_1, 1, false, true)
DEFINE_MERGE(merge_2, 2, false, true)
DEFINE_MERGE(merge_4, 4, false, true)
DEFINE_MERGE(merge_8, 8, false, true)
DEFINE_MERGE(merge_2_wide, 2, true, true)
DEFINE_MERGE(merge_4_wide, 4, true, true)
DEFINE_MERGE(merge_8_wide, 8, true, true)
DEFINE_MERGE(merge_2_moded, 2, true, false)
DEFINE_MERGE(merge_4_moded, 4, true, false)
DEFINE_MERGE(merge_8_moded, 8, true, false)

static merge_fn *choose(struct wfs_split s, unsigned mode)
{
	/* By the logarithm of a word's bytes: plain ones, those with wide fields, and any in any mode. */
	static merge_fn *const fn[4][3] = {
		{merge_1, NULL, NULL},
		{merge_2, merge_2_wide, merge_2_moded},
		{merge_4, merge_4_wide, merge_4_moded},
		{merge_8, merge_8_wide, merge_8_moded},
	};
	const unsigned which = s.word > 1 && (mode || !s.rot) ? 2 : s.field > 8;

	return fn[__builtin_ctz(s.word)][which];
}

/* ---- blocks ---- */

static VEC_TARGET enum wfs_status decode_128(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool,
					     struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
					     const char **reason_ret)
{
	const size_t last = (v->n - 1) / WFS_SUPER;
	struct wfs_wide_walk walk = wfs_wide_walk_start(v, pool, s);
	struct wfs_wide_state state = {.p = v->stream};
	const char *reason = WFS_SPLIT_UNPROVEN;
	const u8 *rest = v->rest;
	struct refills refills;
	struct wfs_wide_fields f;
	struct unit u;

	(void)scratch;
	refills_init(&refills);
	memcpy(state.lane, v->states, sizeof(state.lane));
	for (size_t super = 0; super < last; super++) {
		const unsigned mode = v->nr_modes ? v->mode[super] : 0;

		if (!decode_fields(&walk, &state, &refills, super * WFS_SUPER, WFS_SUPER_ROWS, &f))
			goto out;
		unit_start(&u, s, mode, rest);
		choose(s, mode)(&u, &f, raw + super * WFS_SUPER * s.word);
		rest += 8 * WFS_SUPER_ROWS * u.rest_bits;
	}
	if (decode_fields(&walk, &state, &refills, last * WFS_SUPER, wfs_last_rows(v->n), &f))
		reason = wfs_wide_finish(&walk, &state, s, &f, rest, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

#endif
