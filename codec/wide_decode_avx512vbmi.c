/* wide_decode_avx512vbmi.c - the wide decoder for AVX-512 (VBMI and VBMI2, as for the split coding). Hot loop: row()
 * with all that it inlines.
 *
 * 32 states are two vectors. Slots are looked up with plain loads, put together by inserts: gathers are slower on some
 * processors and very slow where microcode guards them. A superrow is first decoded to names, then its fields and rest
 * bits are merged.
 */
#include "wide_decode.h"

#ifdef __x86_64__
#include "split_unit_avx512.h"

enum { QUARTERS = 4, QUARTER = WFS_LANES / QUARTERS };

/* ---- rows ---- */

/* States of the even quarters and of the odd ones, and where the next bits are. */
struct lanes {
	__m512i x[2];
	const u8 *p;
};

/* The entries of 16 slots. of: their tables; NULL: all have the table `one`. */
AVX512_INLINE __m512i look_up(const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of,
			      __m512i slot)
{
	_Alignas(64) u32 s[QUARTER];
	u32 e[QUARTER];
	__m128i four[4];

	_mm512_store_si512(s, slot);
#pragma GCC unroll 16
	for (unsigned i = 0; i < QUARTER; i++) {
		const struct wfs_wide_decode_table *table = of ? of[i] : one;

		e[i] = table->entry[table->name[s[i]]];
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		four[i] = _mm_insert_epi32(
			_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128((int)e[4 * i]), (int)e[4 * i + 1], 1),
					 (int)e[4 * i + 2], 2),
			(int)e[4 * i + 3], 3);
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(four[1], four[0])),
				  _mm256_set_m128i(four[3], four[2]), 1);
}

/* A row: the names of its 64 positions. */
AVX512_INLINE __m512i row(struct lanes *l, const struct wfs_wide_decode_table *one,
			  const struct wfs_wide_decode_table *const *of)
{
	const __m512i low12 = _mm512_set1_epi32(0xfff);
	__m128i name[QUARTERS];

#pragma GCC unroll 4
	for (unsigned q = 0; q < QUARTERS; q++) {
		const __m512i x = l->x[q % 2], slot = _mm512_and_si512(x, low12);
		const __m512i entry = look_up(one, of ? of + QUARTER * q : NULL, slot);
		const __m512i freq = _mm512_and_si512(_mm512_srli_epi32(entry, 8), low12);
		const __m512i rank = _mm512_sub_epi32(slot, _mm512_srli_epi32(entry, 20));
		const __m512i moved =
			_mm512_add_epi32(_mm512_mullo_epi32(freq, _mm512_srli_epi32(x, WFS_WIDE_BITS)), rank);
		const __mmask16 need = _mm512_cmplt_epu32_mask(moved, _mm512_set1_epi32(WFS_WIDE_STATE_MIN));
		const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)l->p));

		l->x[q % 2] = _mm512_mask_or_epi32(moved, need, _mm512_slli_epi32(moved, 16),
						   _mm512_maskz_expand_epi32(need, next));
		l->p += 2 * (unsigned)_mm_popcnt_u32(need);
		name[q] = _mm512_cvtepi32_epi8(entry);
	}
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(name[1], name[0])),
				  _mm256_set_m128i(name[3], name[2]), 1);
}

AVX512_INLINE void lanes_store(const struct lanes *l, struct wfs_wide_state *state)
{
	store(state->lane, l->x[0]);
	store(state->lane + QUARTER, l->x[1]);
	state->p = l->p;
}
AVX512_INLINE struct lanes lanes_load(const struct wfs_wide_state *state)
{
	return (struct lanes){{load(state->lane), load(state->lane + QUARTER)}, state->p};
}

/* ---- fields ---- */

/* Those that a row's names stand for. */
AVX512_INLINE void names_to_fields(const struct wfs_wide_decode_pool *pool, __m512i name, u8 *hi, u8 *lo)
{
	const __m512i zero = _mm512_setzero_si512(), base = _mm512_set1_epi16((short)pool->base);
	const __m128i up = _mm_cvtsi32_si128(16 - pool->field);
	const __m512i a = _mm512_sll_epi16(_mm512_add_epi16(_mm512_unpacklo_epi8(name, zero), base), up);
	const __m512i b = _mm512_sll_epi16(_mm512_add_epi16(_mm512_unpackhi_epi8(name, zero), base), up);
	const __m512i low8 = _mm512_set1_epi16(255);

	store(hi, _mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8)));
	store(lo, _mm512_packus_epi16(_mm512_and_si512(a, low8), _mm512_and_si512(b, low8)));
}

/* The fields of `rows` rows from word `first` on. False: stream or escapes run out. */
static __attribute__((noinline)) WFS_TARGET_AVX512VBMI bool decode_fields(struct wfs_wide_walk *walk,
									  struct wfs_wide_state *state, size_t first,
									  unsigned rows, struct wfs_wide_fields *f)
{
	const __m512i escape = _mm512_set1_epi8((char)WFS_WIDE_ESCAPE);
	struct lanes l = lanes_load(state);
	__mmask64 escapes[WFS_SUPER_ROWS];

	for (unsigned r = 0; r < rows; r++, first += WFS_LANES) {
		const struct wfs_wide_decode_table *one = wfs_wide_walk_row(walk, first);
		u8 careful[WFS_LANES];
		__m512i name;

		if (wfs_unlikely(walk->v->stream_end - l.p < WFS_WIDE_ROW_BYTES)) {
			lanes_store(&l, state);
			if (!wfs_wide_row_careful(walk, one, state, careful))
				return false;
			l = lanes_load(state);
			name = load(careful);
		} else if (wfs_likely(one)) {
			name = row(&l, one, NULL);
		} else {
			name = row(&l, NULL, walk->of);
		}
		names_to_fields(walk->pool, name, f->hi + WFS_LANES * r, f->lo + WFS_LANES * r);
		escapes[r] = _mm512_cmpeq_epi8_mask(name, escape);
	}
	lanes_store(&l, state);
	for (unsigned r = 0; r < rows; r++)
		if (wfs_unlikely(escapes[r]) && !wfs_wide_name_escapes(walk, escapes[r], r, f))
			return false;
	return true;
}

/* ---- superrows ---- */

/* A superrow in mode 0 of a split that is a constant. */
AVX512_INLINE void merge(const struct wfs_split s, const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)
{
	struct unit u;

	unit_start(&u, s, rest);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * s.word)
		unit_row(&u, s, r, load(f->hi + WFS_LANES * r), load(f->lo + WFS_LANES * r), raw);
}

/* Any superrow of words of a size that is a constant. */
AVX512_INLINE void merge_any(struct wfs_split s, const unsigned word, unsigned mode, const struct wfs_wide_fields *f,
			     const u8 *rest, u8 *raw)
{
	struct moded m;

	moded_start(&m, s, mode, rest);
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * word)
		moded_row(&m, word, r, load(f->hi + WFS_LANES * r), load(f->lo + WFS_LANES * r), raw);
}

static __attribute__((noinline)) WFS_TARGET_AVX512VBMI void
merge_moded(struct wfs_split s, unsigned mode, const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)
{
	switch (s.word) {
	case 1:
		merge_any(s, 1, mode, f, rest, raw);
		break;
	case 2:
		merge_any(s, 2, mode, f, rest, raw);
		break;
	case 4:
		merge_any(s, 4, mode, f, rest, raw);
		break;
	default:
		merge_any(s, 8, mode, f, rest, raw);
	}
}

#define DEFINE_MERGE(word, rot, field)                                                                                 \
	static __attribute__((noinline)) WFS_TARGET_AVX512VBMI void merge_##word##_##rot##_##field(                    \
		const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)                                              \
	{                                                                                                              \
		merge(WFS_WIDE_SPLIT(word, rot, field), f, rest, raw);                                                 \
	}
WFS_WIDE_SHAPES(DEFINE_MERGE)

static wfs_wide_merge_fn *choose(struct wfs_split s)
{
	WFS_WIDE_SHAPES(WFS_WIDE_CHOOSE)
	return NULL;
}

/* ---- blocks ---- */

static WFS_TARGET_AVX512VBMI enum wfs_status decode_avx512vbmi(const struct wfs_wide_view *v,
							       const struct wfs_wide_decode_pool *pool,
							       struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
							       const char **reason_ret)
{
	const size_t last = (v->n - 1) / WFS_SUPER;
	struct wfs_wide_walk walk = wfs_wide_walk_start(v, pool, s);
	struct wfs_wide_state state = {.p = v->stream};
	wfs_wide_merge_fn *const merge_plain = choose(s);
	const char *reason = WFS_SPLIT_UNPROVEN;
	const u8 *rest = v->rest;
	struct wfs_wide_fields f;

	(void)scratch;
	memcpy(state.lane, v->states, sizeof(state.lane));
	for (size_t super = 0; super < last; super++) {
		const unsigned mode = v->nr_modes ? v->mode[super] : 0;
		u8 *out = raw + super * WFS_SUPER * s.word;

		if (!decode_fields(&walk, &state, super * WFS_SUPER, WFS_SUPER_ROWS, &f))
			goto out;
		if (merge_plain && !mode)
			merge_plain(&f, rest, out);
		else
			merge_moded(s, mode, &f, rest, out);
		rest += 8 * WFS_SUPER_ROWS * wfs_mode_rest_bits(s, mode);
	}
	if (decode_fields(&walk, &state, last * WFS_SUPER, wfs_last_rows(v->n), &f))
		reason = wfs_wide_finish(&walk, &state, s, &f, rest, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

wfs_wide_decode_fn *wfs_wide_decode_avx512vbmi_get(void)
{
	return decode_avx512vbmi;
}

#else

wfs_wide_decode_fn *wfs_wide_decode_avx512vbmi_get(void)
{
	return NULL;
}

#endif
