/* vec128.h - vectors of 16 bytes, for kernels that are the same on x86 with SSSE3 and on AArch64 with NEON. Private.
 *
 * A kernel written with these is a header that one .c file an instruction set includes (split_decode_128.h). All
 * functions are inlined; those that take a `const unsigned word` (1, 2, 4 or 8 bytes) expect a constant. Bytes of a
 * vector have the order of memory, words are little-endian.
 *
 *     vec_load, vec_store           any alignment; vec_load8: 8 bytes, then 0
 *     vec_zero, vec_dup             all bytes the same
 *     vec_or, vec_xor, vec_and, vec_and_not (a & ~b), vec_add, vec_sub, vec_equal (0xff or 0)
 *     vec_above                     signed a > b: 0xff or 0
 *     vec_high_nibble               each byte >> 4
 *     vec_shuffle(table, i)         table[i] for i < 16, 0 for i >= 0x80
 *     vec_index_make, vec_look_up   a table of 32 bytes, indices biased by WFS_BUCKET_BIAS
 *     vec_mul_add                   a * b + c of each byte, low and high bytes of the products apart
 *     vec_zip_low, vec_zip_high     words of the lower or upper half of a and b, by turns
 *     vec_ror1                      words rotated right by one bit
 *     vec_left, vec_right           words shifted by vec_left_by(n), vec_right_by(n); n >= 8 * word gives 0
 *     vec_of4(a, b, c, d)           words of 4 bytes
 *     vec_add32, vec_sub32, vec_mul32, vec_equal32, vec_mul_f32 (binary32 numbers)
 *     vec_low_halves(a, b)          the lower 2 bytes of words of 4 bytes; vec_high_halves: the upper ones
 *     vec_even_bytes(a, b)          the lower bytes of words of 2 bytes; vec_odd_bytes: the upper ones
 *     vec_f16(a, b)                 binary32 numbers to binary16, to nearest even, beyond the range infinity
 *     vec_mask_put, vec_mask_get    top bits of the bytes of four vectors as a u64, vector 0's lowest; vec_mask_one:
 *                                   those of one vector; vec_mask4: top bits of words of 4 bytes
 */
#ifndef WFS_VEC128_H
#define WFS_VEC128_H

#include "split.h"

#ifdef __x86_64__
#include "vec128_ssse3.h"
#elif defined(__aarch64__)
#include "vec128_neon.h"
#endif

/* Byte vectors, least significant first, to words: vector i of `word` holds what position 16 / word * i and the next
 * ones are made of. */
VEC_INLINE void vec_interleave(const unsigned word, const vec *b, vec *out)
{
	vec two[8], four[8];

	if (word == 1) {
		out[0] = b[0];
		return;
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < word / 2; i++) {
		two[2 * i] = vec_zip_low(1, b[2 * i], b[2 * i + 1]);
		two[2 * i + 1] = vec_zip_high(1, b[2 * i], b[2 * i + 1]);
	}
	if (word == 2) {
		out[0] = two[0];
		out[1] = two[1];
		return;
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < word / 2; i++) {
		const unsigned from = i / 2 * 4 + i % 2, to = i / 2 * 4 + i % 2 * 2;

		four[to] = vec_zip_low(2, two[from], two[from + 2]);
		four[to + 1] = vec_zip_high(2, two[from], two[from + 2]);
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		if (word == 4) {
			out[i] = four[i];
		} else {
			out[2 * i] = vec_zip_low(4, four[i], four[i + 4]);
			out[2 * i + 1] = vec_zip_high(4, four[i], four[i + 4]);
		}
	}
}

#endif
