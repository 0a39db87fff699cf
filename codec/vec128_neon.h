/* vec128_neon.h - vec128.h for AArch64, where NEON is always there. A mask is dear (a sum across lanes and a move out
 * of the vector registers), so four vectors' masks are taken together.
 */
#ifndef WFS_VEC128_NEON_H
#define WFS_VEC128_NEON_H

#include "split.h"

#include <arm_neon.h>

#define VEC_TARGET
#define VEC_INLINE static WFS_ALWAYS_INLINE VEC_TARGET

typedef uint8x16_t vec;

VEC_INLINE vec vec_load(const void *p)
{
	return vld1q_u8(p);
}
VEC_INLINE vec vec_load8(const void *p)
{
	return vcombine_u8(vld1_u8(p), vdup_n_u8(0));
}
VEC_INLINE void vec_store(void *p, vec v)
{
	vst1q_u8(p, v);
}
VEC_INLINE vec vec_zero(void)
{
	return vdupq_n_u8(0);
}
VEC_INLINE vec vec_dup(unsigned byte)
{
	return vdupq_n_u8((u8)byte);
}
VEC_INLINE vec vec_or(vec a, vec b)
{
	return vorrq_u8(a, b);
}
VEC_INLINE vec vec_and(vec a, vec b)
{
	return vandq_u8(a, b);
}
VEC_INLINE vec vec_and_not(vec a, vec b)
{
	return vbicq_u8(a, b);
}
VEC_INLINE vec vec_xor(vec a, vec b)
{
	return veorq_u8(a, b);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
	return vaddq_u8(a, b);
}
VEC_INLINE vec vec_sub(vec a, vec b)
{
	return vsubq_u8(a, b);
}
VEC_INLINE vec vec_equal(vec a, vec b)
{
	return vceqq_u8(a, b);
}
VEC_INLINE vec vec_above(vec a, vec b)
{
	return vcgtq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b));
}
VEC_INLINE vec vec_high_nibble(vec v)
{
	return vshrq_n_u8(v, 4);
}
VEC_INLINE vec vec_shuffle(vec table, vec i)
{
	return vqtbl1q_u8(table, i);
}

/* ---- tables of 32 ---- */

struct vec_index {
	vec i;
};
VEC_INLINE struct vec_index vec_index_make(vec biased)
{
	return (struct vec_index){vsubq_u8(biased, vdupq_n_u8(WFS_BUCKET_BIAS))};
}
VEC_INLINE vec vec_look_up(const u8 *table, const struct vec_index *i)
{
	return vqtbl2q_u8(vld1q_u8_x2(table), i->i);
}

/* ---- words ---- */

VEC_INLINE void vec_mul_add(vec a, vec b, vec c, vec *low, vec *high)
{
	const uint16x8_t first = vaddw_u8(vmull_u8(vget_low_u8(a), vget_low_u8(b)), vget_low_u8(c));
	const uint16x8_t second = vaddw_high_u8(vmull_high_u8(a, b), c);

	*low = vuzp1q_u8(vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
	*high = vuzp2q_u8(vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
}
VEC_INLINE vec vec_zip_low(const unsigned word, vec a, vec b)
{
	if (word == 1)
		return vzip1q_u8(a, b);
	if (word == 2)
		return vreinterpretq_u8_u16(vzip1q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
	return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
VEC_INLINE vec vec_zip_high(const unsigned word, vec a, vec b)
{
	if (word == 1)
		return vzip2q_u8(a, b);
	if (word == 2)
		return vreinterpretq_u8_u16(vzip2q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
	return vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
VEC_INLINE vec vec_ror1(const unsigned word, vec v)
{
	const uint16x8_t v16 = vreinterpretq_u16_u8(v);
	const uint32x4_t v32 = vreinterpretq_u32_u8(v);
	const uint64x2_t v64 = vreinterpretq_u64_u8(v);

	if (word == 1)
		return vsliq_n_u8(vshrq_n_u8(v, 1), v, 7);
	if (word == 2)
		return vreinterpretq_u8_u16(vsliq_n_u16(vshrq_n_u16(v16, 1), v16, 15));
	return word == 4 ? vreinterpretq_u8_u32(vsliq_n_u32(vshrq_n_u32(v32, 1), v32, 31))
			 : vreinterpretq_u8_u64(vsliq_n_u64(vshrq_n_u64(v64, 1), v64, 63));
}
/* Shifts by the lowest byte of each word, as a signed number: to the left, or to the right when it is negative. */
VEC_INLINE vec vec_left_by(unsigned n)
{
	return vdupq_n_u8((u8)n);
}
VEC_INLINE vec vec_right_by(unsigned n)
{
	return vdupq_n_u8((u8)(0 - n));
}
VEC_INLINE vec vec_left(const unsigned word, vec v, vec by)
{
	if (word == 2)
		return vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(v), vreinterpretq_s16_u8(by)));
	return word == 4 ? vreinterpretq_u8_u32(vshlq_u32(vreinterpretq_u32_u8(v), vreinterpretq_s32_u8(by)))
			 : vreinterpretq_u8_u64(vshlq_u64(vreinterpretq_u64_u8(v), vreinterpretq_s64_u8(by)));
}
VEC_INLINE vec vec_right(const unsigned word, vec v, vec by)
{
	return vec_left(word, v, by);
}

/* ---- words of 4 bytes ---- */

VEC_INLINE vec vec_of4(u32 a, u32 b, u32 c, u32 d)
{
	const uint32x4_t v = {a, b, c, d};

	return vreinterpretq_u8_u32(v);
}
VEC_INLINE vec vec_add32(vec a, vec b)
{
	return vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
VEC_INLINE vec vec_sub32(vec a, vec b)
{
	return vreinterpretq_u8_u32(vsubq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
VEC_INLINE vec vec_mul32(vec a, vec b)
{
	return vreinterpretq_u8_u32(vmulq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
VEC_INLINE vec vec_equal32(vec a, vec b)
{
	return vreinterpretq_u8_u32(vceqq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
VEC_INLINE vec vec_mul_f32(vec a, vec b)
{
	return vreinterpretq_u8_f32(vmulq_f32(vreinterpretq_f32_u8(a), vreinterpretq_f32_u8(b)));
}
VEC_INLINE vec vec_high_halves(vec a, vec b)
{
	return vreinterpretq_u8_u16(vuzp2q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}
VEC_INLINE vec vec_low_halves(vec a, vec b)
{
	return vreinterpretq_u8_u16(vuzp1q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}
VEC_INLINE vec vec_odd_bytes(vec a, vec b)
{
	return vuzp2q_u8(a, b);
}
VEC_INLINE vec vec_even_bytes(vec a, vec b)
{
	return vuzp1q_u8(a, b);
}
VEC_INLINE vec vec_f16(vec a, vec b)
{
	const float16x4_t low = vcvt_f16_f32(vreinterpretq_f32_u8(a));

	return vreinterpretq_u8_f16(vcvt_high_f16_f32(low, vreinterpretq_f32_u8(b)));
}

/* ---- masks ---- */

enum { VEC_MASK_BY_ROW = 1 };
struct vec_mask {
	vec of[4];
};
VEC_INLINE void vec_mask_put(struct vec_mask *m, const unsigned i, vec v)
{
	m->of[i] = v;
}
VEC_INLINE u64 vec_mask_get(const struct vec_mask *m)
{
	const vec bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
	const vec first = vpaddq_u8(vandq_u8(m->of[0], bit), vandq_u8(m->of[1], bit));
	const vec second = vpaddq_u8(vandq_u8(m->of[2], bit), vandq_u8(m->of[3], bit));
	const vec eighths = vpaddq_u8(first, second);

	return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(eighths, eighths)), 0);
}
VEC_INLINE u32 vec_mask_one(const struct vec_mask *m, const unsigned i)
{
	return (u32)(vec_mask_get(m) >> 16 * i & 0xffff);
}
VEC_INLINE u32 vec_mask4(vec v)
{
	static const u32 bit[4] = {1, 2, 4, 8};

	return vaddvq_u32(vandq_u32(vreinterpretq_u32_u8(v), vld1q_u32(bit)));
}

#endif
