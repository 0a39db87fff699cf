/* grid_search_avx512.c - finding codes and scales with vectors of 16 words. */
#include "grid_search.h"

#ifdef __x86_64__
#include <float.h>
#include <immintrin.h>

#define TARGET WFS_TARGET_AVX512VBMI
#define OP     static WFS_ALWAYS_INLINE TARGET
enum { LANES = 16 };

typedef __m512i vint;
typedef __m512 vflt;
typedef __mmask16 vmask;

OP vint v_load(const void *p)
{
	return _mm512_loadu_si512(p);
}
OP vint v_load16(const void *p)
{
	return _mm512_cvtepu16_epi32(_mm256_loadu_si256(p));
}
OP void v_store(void *p, vint a)
{
	_mm512_storeu_si512(p, a);
}
OP void v_store_bytes(u8 *p, vint a)
{
	_mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(a));
}
OP vint v_set(u32 a)
{
	return _mm512_set1_epi32((int)a);
}
OP vint v_and(vint a, vint b)
{
	return _mm512_and_si512(a, b);
}
OP vint v_or(vint a, vint b)
{
	return _mm512_or_si512(a, b);
}
OP vint v_add(vint a, vint b)
{
	return _mm512_add_epi32(a, b);
}
OP vint v_add_if(vmask m, vint a, vint b)
{
	return _mm512_mask_add_epi32(a, m, a, b);
}
OP vint v_sub(vint a, vint b)
{
	return _mm512_sub_epi32(a, b);
}
OP vint v_sll(vint a, const unsigned by)
{
	return _mm512_slli_epi32(a, by);
}
OP vint v_srl(vint a, const unsigned by)
{
	return _mm512_srli_epi32(a, by);
}
OP vint v_sll_by(vint a, unsigned by)
{
	return _mm512_sll_epi32(a, _mm_cvtsi32_si128((int)by));
}
OP vint v_srl_by(vint a, unsigned by)
{
	return _mm512_srl_epi32(a, _mm_cvtsi32_si128((int)by));
}
OP vint v_max(vint a, vint b)
{
	return _mm512_max_epi32(a, b);
}
OP vint v_min(vint a, vint b)
{
	return _mm512_min_epi32(a, b);
}
OP vint v_max_unsigned(vint a, vint b)
{
	return _mm512_max_epu32(a, b);
}
OP u32 v_reduce_max(vint a)
{
	return (u32)_mm512_reduce_max_epi32(a);
}
OP u32 v_reduce_min(vint a)
{
	return (u32)_mm512_reduce_min_epi32(a);
}
OP u32 v_reduce_max_unsigned(vint a)
{
	return _mm512_reduce_max_epu32(a);
}
OP vmask v_gt(vint a, vint b)
{
	return _mm512_cmpgt_epi32_mask(a, b);
}
OP vmask v_negative(vint a)
{
	return _mm512_movepi32_mask(a);
}
OP vint v_select(vmask m, vint a, vint b)
{
	return _mm512_mask_blend_epi32(m, b, a);
}
OP vflt f_select(vmask m, vflt a, vflt b)
{
	return _mm512_mask_blend_ps(m, b, a);
}
OP vmask m_and(vmask a, vmask b)
{
	return a & b;
}
OP vmask m_and_not(vmask a, vmask b)
{
	return a & (vmask)~b;
}
OP vmask m_or(vmask a, vmask b)
{
	return a | b;
}
OP bool m_any(vmask a)
{
	return a != 0;
}
OP unsigned m_bits(vmask a)
{
	return a;
}
OP vflt f_set(float a)
{
	return _mm512_set1_ps(a);
}
OP vflt f_add(vflt a, vflt b)
{
	return _mm512_add_ps(a, b);
}
OP vflt f_sub(vflt a, vflt b)
{
	return _mm512_sub_ps(a, b);
}
OP vflt f_mul(vflt a, vflt b)
{
	/* Never contracted with what follows, whatever the compiler's options. */
	return _mm512_mul_round_ps(a, b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
OP vflt f_div(vflt a, vflt b)
{
	return _mm512_div_ps(a, b);
}
OP vflt f_min(vflt a, vflt b)
{
	return _mm512_min_ps(a, b);
}
OP vmask f_ge(vflt a, vflt b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
OP vint f_bits(vflt a)
{
	return _mm512_castps_si512(a);
}
OP vflt f_of_bits(vint a)
{
	return _mm512_castsi512_ps(a);
}
OP vflt f_of_int(vint a)
{
	return _mm512_cvtepi32_ps(a);
}
OP vint v_of_float(vflt a)
{
	return _mm512_cvttps_epi32(a);
}
/* Entry number i - 1 of a table of 8; 0 for i = 0. */
OP vflt f_look_up(const float *positive, const float *opposite, vmask negative, vint i)
{
	const vflt table =
		_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(positive)), _mm256_loadu_ps(opposite), 1);
	const vint at = _mm512_mask_add_epi32(v_sub(i, v_set(1)), negative, i, v_set(7));

	return _mm512_maskz_permutexvar_ps(v_gt(i, v_set(0)), at, table);
}

#include "grid_search_vec.h"

const struct wfs_search_kernel *wfs_search_kernel_avx512_get(void)
{
	static const struct wfs_search_kernel kernel = {load_words, candidate_values, largest_word, narrow_words,
							assign_words};

	return &kernel;
}
#else
const struct wfs_search_kernel *wfs_search_kernel_avx512_get(void)
{
	return NULL;
}
#endif
