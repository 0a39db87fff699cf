/* split_decode_avx512vbmi.c - the split decoder for AVX-512 with VBMI and VBMI2: a row is one vector, a table lives in
 * registers. Hot loops: superrow() and decode_supers() with all that they inline.
 *
 * The time of a row is the latency from one L of a strand to its next. So everything that a step needs is looked up by
 * the slot itself, not by the slot's run, and whether a byte is needed is not read off the new state but known from H
 * and the slot (wfs_decode_table.refill). On Zen 5 that takes a row from 36 to 24 cycles, two strands overlapping.
 *
 * Slack: whether a stream ran out is looked at after each unit of 8 rows, of which a strand has 4, each with a load of
 * 64 bytes: WFS_VECTOR_SLACK bytes behind the streams may be read. A payload with fewer goes to the scalar decoder.
 */
#include "split_merge.h"

#ifdef __x86_64__
#include "split_prefetch.h"
#include "split_unit_avx512.h"

/* ---- rANS ---- */

/* What the 256 slots stand for, and the field's bytes by symbol name. */
struct table {
	__m512i run[4], freq[4], rank[4], refill[4];
	__m512i hi, lo;
};
struct strand {
	__m512i l, h;
	const u8 *p;
};

AVX512_INLINE void load_table(struct table *t, const struct wfs_decode_table *d)
{
	static const u8 count[64] = {
		0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
		22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
		44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
	};
	const __m512i freq = load(d->freq), c = load(d->c);

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		const __m512i slot = _mm512_add_epi8(load(count), _mm512_set1_epi8((char)(64 * i)));

		t->run[i] = load(d->run + 64 * i);
		t->freq[i] = _mm512_permutexvar_epi8(t->run[i], freq);
		t->rank[i] = _mm512_sub_epi8(slot, _mm512_permutexvar_epi8(t->run[i], c));
		t->refill[i] = load(d->refill + 64 * i);
	}
	t->hi = load(d->hi);
	t->lo = load(d->lo);
}

/* upper: which slots are 128 and more. */
AVX512_INLINE __m512i look_up(const __m512i table[4], __m512i slot, __mmask64 upper)
{
	const __m512i low = _mm512_permutex2var_epi8(table[0], slot, table[1]);
	const __m512i high = _mm512_permutex2var_epi8(table[2], slot, table[3]);

	return _mm512_mask_mov_epi8(low, upper, high);
}

/* One row of a strand: symbol names in the low 6 bits of each byte, escapes named. */
AVX512_INLINE __m512i next_row(const struct table *t, struct strand *k, const u8 **escape_name)
{
	const __m512i low8 = _mm512_set1_epi16(0x00ff);
	const __m512i odd_to_even = _mm512_set4_epi32(0x000f000d, 0x000b0009, 0x00070005, 0x00030001);
	const __m512i l = k->l, h = k->h;
	const __mmask64 upper = _mm512_movepi8_mask(l);
	const __m512i f = look_up(t->freq, l, upper), rank = look_up(t->rank, l, upper);
	const __mmask64 need = _mm512_cmple_epu8_mask(h, look_up(t->refill, l, upper));
	/* x = f * h + rank, at most 255 * 255 + 254, in 16 bits: even positions and odd ones apart. */
	const __m512i even = _mm512_add_epi16(_mm512_mullo_epi16(_mm512_and_si512(f, low8), _mm512_and_si512(h, low8)),
					      _mm512_and_si512(rank, low8));
	const __m512i odd =
		_mm512_add_epi16(_mm512_mulhi_epu16(_mm512_andnot_si512(low8, f), _mm512_andnot_si512(low8, h)),
				 _mm512_srli_epi16(rank, 8));
	const __m512i new_l = _mm512_ternarylogic_epi64(low8, even, _mm512_slli_epi16(odd, 8), SELECT);
	const __m512i new_h = _mm512_mask_shuffle_epi8(odd, 0x5555555555555555, even, odd_to_even);
	const __m512i run = look_up(t->run, l, upper);
	const __mmask64 escape = _mm512_movepi8_mask(run);
	const __m512i name = _mm512_mask_expand_epi8(run, escape, load(*escape_name));

	k->h = _mm512_mask_mov_epi8(new_h, need, new_l);
	k->l = _mm512_mask_expand_epi8(new_l, need, load(k->p));
	k->p += _mm_popcnt_u64(need);
	*escape_name += _mm_popcnt_u64(escape);
	return name;
}

/* ---- superrows ---- */

/* Loops: of the splits that are frequent, without modes; of any other word and mode. */
enum shape { BF16, F16, F32, E4M3, E5M2, CODES, I8, I16, ANY8, ANY16, ANY32, ANY64, NR_SHAPES };
/* Word bytes, rotation, field, partial bits, byte planes. */
static const struct wfs_split shapes[NR_SHAPES] = {
	[BF16] = {2, 1, 9, 7, 0}, [F16] = {2, 1, 6, 2, 1},   [F32] = {4, 1, 9, 7, 2}, [E4M3] = {1, 1, 5, 3, 0},
	[E5M2] = {1, 1, 6, 2, 0}, [CODES] = {1, 1, 7, 1, 0}, [I8] = {1, 0, 5, 3, 0},  [I16] = {2, 0, 5, 3, 1},
	[ANY8] = {.word = 1},	  [ANY16] = {.word = 2},     [ANY32] = {.word = 4},   [ANY64] = {.word = 8},
};

/* The state of a block's decoding. */
struct work {
	const struct wfs_split_view *v;
	const struct wfs_decode_pool *pool;
	struct wfs_split s;
	struct strand k[2];
	const u8 *escape_name, *escape_end; /* in scratch */
	u8 *raw;
};

/* One superrow of a split without modes. */
AVX512_INLINE void superrow(const struct wfs_split s, const struct table *t, struct strand *k, const u8 **escape_name,
			    const u8 *rest, const u8 *ahead, u8 *raw)
{
	struct unit u;

	unit_start(&u, s, rest);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * s.word) {
		const __m512i name = next_row(t, &k[r & 1], escape_name);

		wfs_prefetch_row(r, ahead, s.word, rest, 8 * s.word - s.field, k[r & 1].p);
		unit_row(&u, s, r, _mm512_permutexvar_epi8(name, t->hi), _mm512_permutexvar_epi8(name, t->lo), raw);
	}
}

/* One superrow of any split and mode; word is a constant. */
AVX512_INLINE void superrow_any(const unsigned word, struct wfs_split s, unsigned mode, const struct table *t,
				struct strand *k, const u8 **escape_name, const u8 *rest, const u8 *ahead, u8 *raw)
{
	struct moded m;

	moded_start(&m, s, mode, rest);
#pragma GCC unroll 2
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * word) {
		const __m512i name = next_row(t, &k[r & 1], escape_name);

		wfs_prefetch_row(r, ahead, word, rest, 8 * m.planes + m.partial, k[r & 1].p);
		moded_row(&m, word, r, _mm512_permutexvar_epi8(name, t->hi), _mm512_permutexvar_epi8(name, t->lo), raw);
	}
}

/* All superrows but the last; false when a stream or the escapes run out. */
AVX512_INLINE bool decode_supers(const enum shape shape, struct work *w)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr = (v->n - 1) / WFS_SUPER;
	const unsigned seg_supers_log2 = w->pool->seg_log2 - 9, word = shapes[shape].word;
	const struct wfs_decode_table *d = &w->pool->table[v->seg[0]];
	const u8 *rest = v->rest;
	u8 *raw = w->raw;
	struct strand k[2] = {w->k[0], w->k[1]};
	const u8 *escape_name = w->escape_name;
	struct table t;

	load_table(&t, d);
	for (size_t super = 0; super < nr; super++, raw += WFS_SUPER * word) {
		const struct wfs_decode_table *next = &w->pool->table[v->seg[super >> seg_supers_log2]];
		const u8 *ahead = wfs_prefetch_ahead(raw, nr - super, word);

		if (v->later)
			wfs_prefetch_later(v, super);
		if (next != d) {
			d = next;
			load_table(&t, d);
		}
		if (shape < ANY8) {
			superrow(shapes[shape], &t, k, &escape_name, rest, ahead, raw);
			rest += 8 * WFS_SUPER_ROWS * (8u * word - shapes[shape].field);
		} else {
			const unsigned mode = wfs_split_mode(v, super);

			superrow_any(word, w->s, mode, &t, k, &escape_name, rest, ahead, raw);
			rest += 8 * WFS_SUPER_ROWS * wfs_mode_rest_bits(w->s, mode);
		}
		if (wfs_unlikely(k[0].p > v->stream_end[0] || k[1].p > v->stream_end[1] || escape_name > w->escape_end))
			return false;
	}
	w->k[0] = k[0];
	w->k[1] = k[1];
	w->escape_name = escape_name;
	return true;
}

#define DEFINE_SUPERS(name, shape)                                                                                     \
	static __attribute__((noinline)) WFS_TARGET_AVX512VBMI bool name(struct work *w)                               \
	{                                                                                                              \
		return decode_supers(shape, w);                                                                        \
	}
DEFINE_SUPERS(decode_bf16, BF16)
DEFINE_SUPERS(decode_f16, F16)
DEFINE_SUPERS(decode_f32, F32)
DEFINE_SUPERS(decode_e4m3, E4M3)
DEFINE_SUPERS(decode_e5m2, E5M2)
DEFINE_SUPERS(decode_codes, CODES)
DEFINE_SUPERS(decode_i8, I8)
DEFINE_SUPERS(decode_i16, I16)
DEFINE_SUPERS(decode_any8, ANY8)
DEFINE_SUPERS(decode_any16, ANY16)
DEFINE_SUPERS(decode_any32, ANY32)
DEFINE_SUPERS(decode_any64, ANY64)

/* Superrow loop of a block. */
static bool (*choose(struct wfs_split s, bool moded))(struct work *)
{
	static bool (*const fn[NR_SHAPES])(struct work *) = {
		[BF16] = decode_bf16, [F16] = decode_f16,     [F32] = decode_f32,     [E4M3] = decode_e4m3,
		[E5M2] = decode_e5m2, [CODES] = decode_codes, [I8] = decode_i8,	      [I16] = decode_i16,
		[ANY8] = decode_any8, [ANY16] = decode_any16, [ANY32] = decode_any32, [ANY64] = decode_any64,
	};

	for (unsigned i = moded ? ANY8 : 0; i < NR_SHAPES; i++) {
		const struct wfs_split c = shapes[i];

		if (s.word == c.word && (i >= ANY8 || (s.rot == c.rot && s.field == c.field)))
			return fn[i];
	}
	return NULL; /* not reached: there are no other words */
}

/* ---- blocks ---- */

/* The block's escapes as symbol names; what a vector may take beyond them is zero. */
static WFS_TARGET_AVX512VBMI void expand_escapes(const struct wfs_split_view *v, u8 *name)
{
	const __m512i low4 = _mm512_set1_epi16(0x0f0f), tail = _mm512_set1_epi8(WFS_TAIL_BASE);
	const size_t nr_bytes = WFS_CEIL_DIV(v->nr_escapes, 2);

	for (size_t i = 0; i < nr_bytes; i += 32) {
		const __mmask32 in = _bzhi_u32(~0u, (u32)WFS_MIN(nr_bytes - i, (size_t)32));
		const __m512i pair = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(in, v->escapes + i));
		const __m512i nibbles = _mm512_and_si512(_mm512_or_si512(pair, _mm512_slli_epi16(pair, 4)), low4);

		store(name + 2 * i, _mm512_or_si512(nibbles, tail));
	}
	memset(name + v->nr_escapes, 0, 2 * WFS_VECTOR_SLACK);
}

/* The last unit's rows; true when states, streams and escapes end as they must. */
static WFS_TARGET_AVX512VBMI bool decode_last(struct work *w, u16 *top, u8 *final_l)
{
	const __m512i one = _mm512_set1_epi8(1);
	struct strand k[2] = {w->k[0], w->k[1]};
	const u8 *escape_name = w->escape_name;
	struct table t;

	load_table(&t, &w->pool->table[w->v->seg[(w->v->n - 1) >> w->pool->seg_log2]]);
	for (unsigned r = 0; r < wfs_last_rows(w->v->n); r++, top += WFS_LANES) {
		const __m512i name = next_row(&t, &k[r & 1], &escape_name);
		const __m512i hi = _mm512_permutexvar_epi8(name, t.hi), lo = _mm512_permutexvar_epi8(name, t.lo);
		const __m512i hi_a = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(hi));
		const __m512i lo_a = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(lo));
		const __m512i hi_b = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(hi, 1));
		const __m512i lo_b = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(lo, 1));

		store(top, _mm512_or_si512(lo_a, _mm512_slli_epi16(hi_a, 8)));
		store(top + 32, _mm512_or_si512(lo_b, _mm512_slli_epi16(hi_b, 8)));
	}
	store(final_l, k[0].l);
	store(final_l + 64, k[1].l);
	return !(_mm512_cmpneq_epi8_mask(k[0].h, one) | _mm512_cmpneq_epi8_mask(k[1].h, one)) &&
	       k[0].p == w->v->stream_end[0] && k[1].p == w->v->stream_end[1] && escape_name == w->escape_end;
}

static WFS_TARGET_AVX512VBMI enum wfs_status decode_avx512vbmi(const struct wfs_split_view *v,
							       const struct wfs_decode_pool *pool, struct wfs_split s,
							       u8 *raw, struct wfs_scratch *scratch,
							       const char **reason_ret)
{
	bool (*const supers)(struct work *) = choose(s, v->nr_modes);
	struct work w = {.v = v, .pool = pool, .s = s, .raw = raw};
	const char *reason = WFS_SPLIT_UNPROVEN;
	u16 top[WFS_SUPER];
	u8 final_l[WFS_CARRIED];

	if (v->edges - v->escapes < WFS_VECTOR_SLACK)
		return wfs_split_decode_scalar(v, pool, s, raw, scratch, reason_ret);
	wfs_prefetch_start(v, s, raw);
	for (unsigned i = 0; i < WFS_STRANDS; i++) {
		const u8 *states = v->states + 128 * i;

		w.k[i] = (struct strand){load(states), load(states + 64), v->stream[i]};
	}
	expand_escapes(v, scratch->escape);
	w.escape_name = scratch->escape;
	w.escape_end = scratch->escape + v->nr_escapes;
	if (supers(&w) && decode_last(&w, top, final_l))
		reason = wfs_split_finish(v, s, top, final_l, raw);
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

wfs_split_decode_fn *wfs_split_decode_avx512vbmi_get(void)
{
	return decode_avx512vbmi;
}

#else

wfs_split_decode_fn *wfs_split_decode_avx512vbmi_get(void)
{
	return NULL;
}

#endif
