/* vec128_ssse3.h - vec128.h for x86: SSSE3 for its byte shuffle, POPCNT because all but the first of the processors
 * with SSSE3 have it. SSE4.1 would add a blend that is no faster here than the two or three operations it replaces.
 */
#ifndef WFS_VEC128_SSSE3_H
#define WFS_VEC128_SSSE3_H

#include "split.h"

#include <tmmintrin.h>

#define VEC_TARGET WFS_TARGET_SSSE3
#define VEC_INLINE static WFS_ALWAYS_INLINE VEC_TARGET

typedef __m128i vec;

VEC_INLINE vec vec_load(const void *p)
{
	return _mm_loadu_si128(p);
}
VEC_INLINE vec vec_load8(const void *p)
{
	return _mm_loadl_epi64(p);
}
VEC_INLINE void vec_store(void *p, vec v)
{
	_mm_storeu_si128(p, v);
}
VEC_INLINE vec vec_zero(void)
{
	return _mm_setzero_si128();
}
VEC_INLINE vec vec_dup(unsigned byte)
{
	return _mm_set1_epi8((char)byte);
}
VEC_INLINE vec vec_or(vec a, vec b)
{
	return _mm_or_si128(a, b);
}
VEC_INLINE vec vec_and(vec a, vec b)
{
	return _mm_and_si128(a, b);
}
VEC_INLINE vec vec_and_not(vec a, vec b)
{
	return _mm_andnot_si128(b, a);
}
VEC_INLINE vec vec_xor(vec a, vec b)
{
	return _mm_xor_si128(a, b);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
	return _mm_add_epi8(a, b);
}
VEC_INLINE vec vec_sub(vec a, vec b)
{
	return _mm_sub_epi8(a, b);
}
VEC_INLINE vec vec_equal(vec a, vec b)
{
	return _mm_cmpeq_epi8(a, b);
}
VEC_INLINE vec vec_above(vec a, vec b)
{
	return _mm_cmpgt_epi8(a, b);
}
VEC_INLINE vec vec_high_nibble(vec v)
{
	return _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(0x0f));
}
VEC_INLINE vec vec_shuffle(vec table, vec i)
{
	return _mm_shuffle_epi8(table, i);
}

/* ---- tables of 32 ---- */

/* An index for each half of the table: bit 7 is set where the entry is in the other one. */
struct vec_index {
	vec low, high;
};
VEC_INLINE struct vec_index vec_index_make(vec biased)
{
	return (struct vec_index){biased, _mm_xor_si128(biased, _mm_set1_epi8((char)0x80))};
}
VEC_INLINE vec vec_look_up(const u8 *table, const struct vec_index *i)
{
	return _mm_or_si128(_mm_shuffle_epi8(vec_load(table), i->low), _mm_shuffle_epi8(vec_load(table + 16), i->high));
}

/* ---- words ---- */

VEC_INLINE void vec_mul_add(vec a, vec b, vec c, vec *low, vec *high)
{
	const vec low8 = _mm_set1_epi16(0x00ff);
	const vec a_even = _mm_and_si128(a, low8), b_even = _mm_and_si128(b, low8);
	const vec a_odd = _mm_srli_epi16(a, 8), b_odd = _mm_srli_epi16(b, 8);
	const vec even = _mm_add_epi16(_mm_mullo_epi16(a_even, b_even), _mm_and_si128(c, low8));
	const vec odd = _mm_add_epi16(_mm_mullo_epi16(a_odd, b_odd), _mm_srli_epi16(c, 8));

	*low = _mm_or_si128(_mm_and_si128(even, low8), _mm_slli_epi16(odd, 8));
	*high = _mm_or_si128(_mm_srli_epi16(even, 8), _mm_andnot_si128(low8, odd));
}
VEC_INLINE vec vec_zip_low(const unsigned word, vec a, vec b)
{
	return word == 1 ? _mm_unpacklo_epi8(a, b) : word == 2 ? _mm_unpacklo_epi16(a, b) : _mm_unpacklo_epi32(a, b);
}
VEC_INLINE vec vec_zip_high(const unsigned word, vec a, vec b)
{
	return word == 1 ? _mm_unpackhi_epi8(a, b) : word == 2 ? _mm_unpackhi_epi16(a, b) : _mm_unpackhi_epi32(a, b);
}
VEC_INLINE vec vec_ror1(const unsigned word, vec v)
{
	const vec low7 = _mm_set1_epi8(0x7f);

	if (word == 1)
		return _mm_or_si128(_mm_and_si128(_mm_srli_epi16(v, 1), low7),
				    _mm_andnot_si128(low7, _mm_slli_epi16(v, 7)));
	if (word == 2)
		return _mm_or_si128(_mm_srli_epi16(v, 1), _mm_slli_epi16(v, 15));
	return word == 4 ? _mm_or_si128(_mm_srli_epi32(v, 1), _mm_slli_epi32(v, 31))
			 : _mm_or_si128(_mm_srli_epi64(v, 1), _mm_slli_epi64(v, 63));
}
VEC_INLINE vec vec_left_by(unsigned n)
{
	return _mm_cvtsi32_si128((int)n);
}
VEC_INLINE vec vec_right_by(unsigned n)
{
	return _mm_cvtsi32_si128((int)n);
}
VEC_INLINE vec vec_left(const unsigned word, vec v, vec by)
{
	return word == 2 ? _mm_sll_epi16(v, by) : word == 4 ? _mm_sll_epi32(v, by) : _mm_sll_epi64(v, by);
}
VEC_INLINE vec vec_right(const unsigned word, vec v, vec by)
{
	return word == 2 ? _mm_srl_epi16(v, by) : word == 4 ? _mm_srl_epi32(v, by) : _mm_srl_epi64(v, by);
}

/* ---- words of 4 bytes ---- */

VEC_INLINE vec vec_of4(u32 a, u32 b, u32 c, u32 d)
{
	return _mm_unpacklo_epi64(_mm_unpacklo_epi32(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b)),
				  _mm_unpacklo_epi32(_mm_cvtsi32_si128((int)c), _mm_cvtsi32_si128((int)d)));
}
VEC_INLINE vec vec_add32(vec a, vec b)
{
	return _mm_add_epi32(a, b);
}
VEC_INLINE vec vec_sub32(vec a, vec b)
{
	return _mm_sub_epi32(a, b);
}
VEC_INLINE vec vec_mul32(vec a, vec b)
{
	const vec even = _mm_mul_epu32(a, b), odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));

	return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));
}
VEC_INLINE vec vec_equal32(vec a, vec b)
{
	return _mm_cmpeq_epi32(a, b);
}
VEC_INLINE vec vec_mul_f32(vec a, vec b)
{
	return _mm_castps_si128(_mm_mul_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)));
}
VEC_INLINE vec vec_high_halves(vec a, vec b)
{
	return _mm_packs_epi32(_mm_srai_epi32(a, 16), _mm_srai_epi32(b, 16));
}
VEC_INLINE vec vec_low_halves(vec a, vec b)
{
	return vec_high_halves(_mm_slli_epi32(a, 16), _mm_slli_epi32(b, 16));
}
VEC_INLINE vec vec_odd_bytes(vec a, vec b)
{
	return _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
}
VEC_INLINE vec vec_even_bytes(vec a, vec b)
{
	const vec low8 = _mm_set1_epi16(0x00ff);

	return _mm_packus_epi16(_mm_and_si128(a, low8), _mm_and_si128(b, low8));
}
/* a where the mask's bits are 0, b where they are 1. */
VEC_INLINE vec vec_pick(vec a, vec b, vec mask)
{
	return _mm_or_si128(_mm_andnot_si128(mask, a), _mm_and_si128(mask, b));
}
/* Four binary16 numbers in the lower halves. Normal ones are rounded as integers, a carry doing what it must. Below
 * 2^-14 adding 1/2 rounds: its unit in the last place is the smallest binary16 number. */
VEC_INLINE vec vec_f16_of4(vec f)
{
	const vec infinity = _mm_set1_epi32(0x7c00), half = _mm_set1_epi32(0x3f000000);
	const vec magnitude = _mm_and_si128(f, _mm_set1_epi32(INT32_MAX));
	const vec odd = _mm_and_si128(_mm_srli_epi32(magnitude, 13), _mm_set1_epi32(1));
	const vec rounded = _mm_add_epi32(_mm_add_epi32(magnitude, odd), _mm_set1_epi32(0xfff - (112 << 23)));
	const vec small = _mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(magnitude), _mm_castsi128_ps(half)));
	vec h = _mm_srli_epi32(rounded, 13);

	h = vec_pick(h, infinity, _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x477fefff)));
	h = vec_pick(h, _mm_sub_epi32(small, half), _mm_cmplt_epi32(magnitude, _mm_set1_epi32(113 << 23)));
	return _mm_or_si128(h, _mm_slli_epi32(_mm_srli_epi32(f, 31), 15));
}
VEC_INLINE vec vec_f16(vec a, vec b)
{
	return vec_low_halves(vec_f16_of4(a), vec_f16_of4(b));
}

/* ---- masks ---- */

/* A vector's mask is one operation: each is taken at once. */
enum { VEC_MASK_BY_ROW = 0 };
struct vec_mask {
	u32 of[4];
};
VEC_INLINE void vec_mask_put(struct vec_mask *m, const unsigned i, vec v)
{
	m->of[i] = (u32)_mm_movemask_epi8(v);
}
VEC_INLINE u32 vec_mask_one(const struct vec_mask *m, const unsigned i)
{
	return m->of[i];
}
VEC_INLINE u64 vec_mask_get(const struct vec_mask *m)
{
	return m->of[0] | m->of[1] << 16 | (u64)(m->of[2] | m->of[3] << 16) << 32;
}
VEC_INLINE u32 vec_mask4(vec v)
{
	return (u32)_mm_movemask_ps(_mm_castsi128_ps(v));
}

#endif
