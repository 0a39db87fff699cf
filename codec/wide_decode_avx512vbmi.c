/* wide_decode_avx512vbmi.c - the wide decoder for AVX-512 (VBMI and VBMI2, as for the split coding):
 * wide_decode_vec.h. Hot loop: row() with all that it inlines.
 *
 * 32 states are two vectors. Slots are looked up with plain loads, put together by inserts: gathers are slower on some
 * processors and very slow where microcode guards them.
 */
#include "wide_decode.h"

#ifdef __x86_64__
#include "split_unit_avx512.h"

#define TARGET WFS_TARGET_AVX512VBMI

enum { QUARTERS = 4, QUARTER = WFS_LANES / QUARTERS };

/* ---- rows ---- */

/* States of the even quarters and of the odd ones, and where the next bits are. */
struct lanes {
	__m512i x[2];
	const u8 *p;
};

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

struct names {
	__m512i all;
};

AVX512_INLINE struct names names_load(const u8 *name)
{
	return (struct names){load(name)};
}

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

AVX512_INLINE struct names row(struct lanes *l, const struct wfs_scratch *scratch,
			       const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of)
{
	const __m512i low12 = _mm512_set1_epi32(0xfff);
	__m128i name[QUARTERS];

	(void)scratch;
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
	return (struct names){_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(name[1], name[0])),
						 _mm256_set_m128i(name[3], name[2]), 1)};
}

/* ---- fields ---- */

AVX512_INLINE u64 names_to_fields(const struct wfs_wide_decode_pool *pool, struct names names, u8 *hi, u8 *lo)
{
	const __m512i name = names.all;
	const __m512i zero = _mm512_setzero_si512(), base = _mm512_set1_epi16((short)pool->base);
	const __m128i up = _mm_cvtsi32_si128(16 - pool->field);
	const __m512i a = _mm512_sll_epi16(_mm512_add_epi16(_mm512_unpacklo_epi8(name, zero), base), up);
	const __m512i b = _mm512_sll_epi16(_mm512_add_epi16(_mm512_unpackhi_epi8(name, zero), base), up);
	const __m512i low8 = _mm512_set1_epi16(255);

	store(hi, _mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8)));
	store(lo, _mm512_packus_epi16(_mm512_and_si512(a, low8), _mm512_and_si512(b, low8)));
	return _mm512_cmpeq_epi8_mask(name, _mm512_set1_epi8((char)WFS_WIDE_ESCAPE));
}

/* ---- superrows ---- */

AVX512_INLINE void unit_fields(struct unit *u, const struct wfs_split s, const unsigned r,
			       const struct wfs_wide_fields *f, u8 *raw)
{
	unit_row(u, s, r, load(f->hi + WFS_LANES * r), load(f->lo + WFS_LANES * r), raw);
}

AVX512_INLINE void moded_fields(const struct moded *m, const unsigned word, unsigned r, const struct wfs_wide_fields *f,
				u8 *raw)
{
	moded_row(m, word, r, load(f->hi + WFS_LANES * r), load(f->lo + WFS_LANES * r), raw);
}

#include "wide_decode_vec.h"

wfs_wide_decode_fn *wfs_wide_decode_avx512vbmi_get(void)
{
	return decode;
}

#else

wfs_wide_decode_fn *wfs_wide_decode_avx512vbmi_get(void)
{
	return NULL;
}

#endif
