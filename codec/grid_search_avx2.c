/* grid_search_avx2.c - finding codes and scales with vectors of 8 words. */
#include "grid_search.h"

#ifdef __x86_64__
#include <float.h>
#include <immintrin.h>

#define TARGET WFS_TARGET_AVX2
#define OP     static WFS_ALWAYS_INLINE TARGET
enum { LANES = 8 };

typedef __m256i vint;
typedef __m256 vflt;
typedef __m256i vmask; /* all bits of a lane, or none */

OP vint v_load(const void *p)
{
	return _mm256_loadu_si256(p);
}
OP vint v_load16(const void *p)
{
	return _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
}
OP void v_store(void *p, vint a)
{
	_mm256_storeu_si256(p, a);
}
OP void v_store_bytes(u8 *p, vint a)
{
	const vint first = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
					    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	const vint bytes = _mm256_shuffle_epi8(a, first);

	wfs_store32(p, (u32)_mm256_extract_epi32(bytes, 0));
	wfs_store32(p + 4, (u32)_mm256_extract_epi32(bytes, 4));
}
OP vint v_set(u32 a)
{
	return _mm256_set1_epi32((int)a);
}
OP vint v_and(vint a, vint b)
{
	return _mm256_and_si256(a, b);
}
OP vint v_or(vint a, vint b)
{
	return _mm256_or_si256(a, b);
}
OP vint v_add(vint a, vint b)
{
	return _mm256_add_epi32(a, b);
}
OP vint v_add_if(vmask m, vint a, vint b)
{
	return _mm256_add_epi32(a, _mm256_and_si256(m, b));
}
OP vint v_sub(vint a, vint b)
{
	return _mm256_sub_epi32(a, b);
}
OP vint v_sll(vint a, const unsigned by)
{
	return _mm256_slli_epi32(a, (int)by);
}
OP vint v_srl(vint a, const unsigned by)
{
	return _mm256_srli_epi32(a, (int)by);
}
OP vint v_sll_by(vint a, unsigned by)
{
	return _mm256_sll_epi32(a, _mm_cvtsi32_si128((int)by));
}
OP vint v_srl_by(vint a, unsigned by)
{
	return _mm256_srl_epi32(a, _mm_cvtsi32_si128((int)by));
}
OP vint v_max(vint a, vint b)
{
	return _mm256_max_epi32(a, b);
}
OP vint v_min(vint a, vint b)
{
	return _mm256_min_epi32(a, b);
}
OP vint v_max_unsigned(vint a, vint b)
{
	return _mm256_max_epu32(a, b);
}
OP u32 v_reduce_max(vint a)
{
	__m128i half = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));

	half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
	return (u32)_mm_cvtsi128_si32(_mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
}
OP u32 v_reduce_min(vint a)
{
	__m128i half = _mm_min_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));

	half = _mm_min_epi32(half, _mm_shuffle_epi32(half, 0x4e));
	return (u32)_mm_cvtsi128_si32(_mm_min_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
}
OP u32 v_reduce_max_unsigned(vint a)
{
	__m128i half = _mm_max_epu32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));

	half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
	return (u32)_mm_cvtsi128_si32(_mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1)));
}
OP vmask v_gt(vint a, vint b)
{
	return _mm256_cmpgt_epi32(a, b);
}
OP vmask v_negative(vint a)
{
	return _mm256_srai_epi32(a, 31);
}
OP vint v_select(vmask m, vint a, vint b)
{
	return _mm256_blendv_epi8(b, a, m);
}
OP vflt f_select(vmask m, vflt a, vflt b)
{
	return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m));
}
OP vmask m_and(vmask a, vmask b)
{
	return _mm256_and_si256(a, b);
}
OP vmask m_and_not(vmask a, vmask b)
{
	return _mm256_andnot_si256(b, a);
}
OP vmask m_or(vmask a, vmask b)
{
	return _mm256_or_si256(a, b);
}
OP bool m_any(vmask a)
{
	return !_mm256_testz_si256(a, a);
}
OP unsigned m_bits(vmask a)
{
	return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(a));
}
OP vflt f_set(float a)
{
	return _mm256_set1_ps(a);
}
OP vflt f_add(vflt a, vflt b)
{
	return _mm256_add_ps(a, b);
}
OP vflt f_sub(vflt a, vflt b)
{
	return _mm256_sub_ps(a, b);
}
OP vflt f_mul(vflt a, vflt b)
{
	return _mm256_mul_ps(a, b);
}
OP vflt f_div(vflt a, vflt b)
{
	return _mm256_div_ps(a, b);
}
OP vflt f_min(vflt a, vflt b)
{
	return _mm256_min_ps(a, b);
}
OP vmask f_ge(vflt a, vflt b)
{
	return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GE_OQ));
}
OP vint f_bits(vflt a)
{
	return _mm256_castps_si256(a);
}
OP vflt f_of_bits(vint a)
{
	return _mm256_castsi256_ps(a);
}
OP vflt f_of_int(vint a)
{
	return _mm256_cvtepi32_ps(a);
}
OP vint v_of_float(vflt a)
{
	return _mm256_cvttps_epi32(a);
}
/* Entry number i - 1 of a table of 8; 0 for i = 0. */
OP vflt f_look_up(const float *positive, const float *opposite, vmask negative, vint i)
{
	const vint at = v_sub(i, v_set(1));
	const vflt value = f_select(negative, _mm256_permutevar8x32_ps(_mm256_loadu_ps(opposite), at),
				    _mm256_permutevar8x32_ps(_mm256_loadu_ps(positive), at));

	return _mm256_and_ps(value, _mm256_castsi256_ps(v_gt(i, v_set(0))));
}

#include "grid_search_vec.h"

const struct wfs_search_kernel *wfs_search_kernel_avx2_get(void)
{
	static const struct wfs_search_kernel kernel = {load_words, candidate_values, largest_word, narrow_words,
							assign_words};

	return &kernel;
}
#else
const struct wfs_search_kernel *wfs_search_kernel_avx2_get(void)
{
	return NULL;
}
#endif
