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

#endif
