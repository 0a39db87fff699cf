/* split_unit_avx2.h - a superrow's words from its fields and its rest bits (FORMAT.md 2.1, 2.4, 2.5), with AVX2: a row
 * of fields, two halves of 32 positions each for their top bytes and for the bytes below, to words. For every kernel,
 * whatever coded the fields. Private.
 *
 * unit_*: mode 0, for loops in which the split is a constant. moded_*: any mode, any split.
 */
#ifndef WFS_SPLIT_UNIT_AVX2_H
#define WFS_SPLIT_UNIT_AVX2_H

#include "split.h"

#include <immintrin.h>

#define AVX2_INLINE static WFS_ALWAYS_INLINE WFS_TARGET_AVX2

AVX2_INLINE __m256i load(const void *p)
{
	return _mm256_loadu_si256(p);
}
AVX2_INLINE void store(void *p, __m256i v)
{
	_mm256_storeu_si256(p, v);
}

/* ---- bytes to words ---- */

/* Byte vectors of half a row, least significant first, to its words: vector i belongs to bytes 64 i of the row.
 * Neighbouring words come from interleaving within 128-bit lanes: what the lane order is made for. */
AVX2_INLINE void interleave(const unsigned word, const __m256i *b, __m256i *out)
{
	if (word == 1) {
		out[0] = b[0];
		return;
	}
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		__m256i two[4], four[2][2];

#pragma GCC unroll 4
		for (unsigned k = 0; k < word / 2; k++)
			two[k] = i ? _mm256_unpackhi_epi8(b[2 * k], b[2 * k + 1])
				   : _mm256_unpacklo_epi8(b[2 * k], b[2 * k + 1]);
		if (word == 2)
			out[i] = two[0];
#pragma GCC unroll 2
		for (unsigned k = 0; k < word / 4; k++) {
			four[0][k] = _mm256_unpacklo_epi16(two[2 * k], two[2 * k + 1]);
			four[1][k] = _mm256_unpackhi_epi16(two[2 * k], two[2 * k + 1]);
		}
#pragma GCC unroll 2
		for (unsigned k = 0; word >= 4 && k < 2; k++) {
			if (word == 4) {
				out[2 * i + k] = four[k][0];
			} else {
				out[4 * i + 2 * k] = _mm256_unpacklo_epi32(four[k][0], four[k][1]);
				out[4 * i + 2 * k + 1] = _mm256_unpackhi_epi32(four[k][0], four[k][1]);
			}
		}
	}
}

/* Rotated right by one bit. */
AVX2_INLINE __m256i ror1(const unsigned word, __m256i v)
{
	const __m256i low7 = _mm256_set1_epi8(0x7f);

	if (word == 1)
		return _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(v, 1), low7),
				       _mm256_andnot_si256(low7, _mm256_slli_epi16(v, 7)));
	if (word == 2)
		return _mm256_or_si256(_mm256_srli_epi16(v, 1), _mm256_slli_epi16(v, 15));
	return word == 4 ? _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31))
			 : _mm256_or_si256(_mm256_srli_epi64(v, 1), _mm256_slli_epi64(v, 63));
}

/* Partial bits of a superrow, rows of two halves. */
AVX2_INLINE void unpack_partial(const u8 *rest, const unsigned partial, __m256i part[8][2])
{
	const __m256i mask = _mm256_set1_epi8((char)((1 << partial) - 1));

#pragma GCC unroll 2
	for (unsigned half = 0; half < 2; half++) {
		const u8 *p = rest + 32 * half;

		for (unsigned i = 0; i < partial; i++)
			part[i][half] = _mm256_and_si256(load(p + 64 * i), mask);
		for (unsigned j = partial; j < 8; j++) {
			__m256i row = _mm256_setzero_si256();

			for (unsigned i = 0; i < partial; i++) {
				__m256i bit = _mm256_srl_epi16(load(p + 64 * i), _mm_cvtsi32_si128((int)(j - i)));

				row = _mm256_or_si256(row, _mm256_and_si256(bit, _mm256_set1_epi8((char)(1 << i))));
			}
			part[j][half] = row;
		}
	}
}

/* Row 7 of a plane of 7 partial bits: bit 7 of vector i is its bit i. */
AVX2_INLINE __m256i unpack_row7(const u8 *rest)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i row = zero;

#pragma GCC unroll 7
	for (unsigned i = 7; i-- > 0;)
		row = _mm256_sub_epi8(_mm256_add_epi8(row, row), _mm256_cmpgt_epi8(zero, load(rest + 64 * i)));
	return row;
}

/* ---- mode 0 ---- */

/* The rest bits of a superrow. part: partial bits of the rows that have no vector of their own, of two halves. */
struct unit {
	const u8 *rest, *plane;
	__m256i part[2][8];
};

/* Bit j of vector i is bit i of row j. Shifted right by partial - 1 - i, the bits of row j stand side by side, from bit
 * j - partial + 1 on. Rows that lie `partial` apart do not overlap and are moved together. */
AVX2_INLINE void unpack_packed(const u8 *rest, const unsigned partial, __m256i part[8])
{
#pragma GCC unroll 4
	for (unsigned k = 0; k < WFS_MIN(partial, 8 - partial); k++) {
		__m256i moved = _mm256_setzero_si256();

#pragma GCC unroll 7
		for (unsigned i = 0; i < partial; i++) {
			const __m256i bits = _mm256_srli_epi16(load(rest + 64 * i), partial - 1 - i);
			unsigned mask = 0;

#pragma GCC unroll 8
			for (unsigned j = partial + k; j < 8; j += partial)
				mask |= 1u << (j - partial + 1 + i);
			moved = _mm256_or_si256(moved, _mm256_and_si256(bits, _mm256_set1_epi8((char)mask)));
		}
#pragma GCC unroll 8
		for (unsigned j = partial + k; j < 8; j += partial)
			part[j] = _mm256_and_si256(_mm256_srli_epi16(moved, j - partial + 1),
						   _mm256_set1_epi8((char)((1 << partial) - 1)));
	}
}

AVX2_INLINE void unit_start(struct unit *u, const struct wfs_split s, const u8 *rest)
{
	u->rest = rest;
	u->plane = rest + 64 * s.partial;
#pragma GCC unroll 2
	for (unsigned half = 0; half < 2; half++) {
		if (s.partial == 7)
			u->part[half][7] = unpack_row7(rest + 32 * half);
		else if (s.partial)
			unpack_packed(rest + 32 * half, s.partial, u->part[half]);
	}
}

/* Row r's words to raw. s and r are constants. lo counts only in fields of more than 8 bits. */
AVX2_INLINE void unit_row(const struct unit *u, const struct wfs_split s, const unsigned r, const __m256i hi[2],
			  const __m256i lo[2], u8 *raw)
{
	const unsigned in_field = s.field > 8 ? 2 : 1; /* bytes that field and partial bits take */

#pragma GCC unroll 2
	for (unsigned half = 0; half < 2; half++) {
		const unsigned at = 64 * r + 32 * half;
		__m256i b[8], out[8];

		b[s.word - 1] = hi[half];
		if (in_field == 2)
			b[s.word - 2] = lo[half];
		if (s.partial) {
			const __m256i mask = _mm256_set1_epi8((char)((1 << s.partial) - 1));
			const __m256i part =
				r < s.partial ? _mm256_and_si256(load(u->rest + at), mask) : u->part[half][r];

			b[s.word - in_field] = _mm256_or_si256(b[s.word - in_field], part);
		}
#pragma GCC unroll 8
		for (unsigned i = 0; i < s.word - in_field; i++)
			b[s.word - in_field - 1 - i] = load(u->plane + WFS_SUPER * i + at);
		interleave(s.word, b, out);
#pragma GCC unroll 8
		for (unsigned i = 0; i < s.word; i++)
			store(raw + 64 * i + 32 * half, s.rot ? ror1(s.word, out[i]) : out[i]);
	}
}

/* ---- any mode ---- */

/* How a superrow is put together: v = mantissa bits >> zeros, then the sign bit when it is stored. After the rotation
 * back the mantissa stands at bit `zeros` and the sign on top: mantissa = v >> skip << up, sign = v << keep (which
 * gives 0 when the sign is not stored) or the constant. Without rotation v is the low bits as they are. */
struct moded {
	unsigned partial, planes;
	bool rot;
	__m128i turn, skip, up, keep;
	__m256i sign;
	const u8 *plane;
	__m256i part[8][2];
};

AVX2_INLINE void moded_start(struct moded *m, struct wfs_split s, unsigned mode, const u8 *rest)
{
	const struct wfs_split in_mode = wfs_split_in_mode(s, mode);
	const unsigned sign = wfs_mode_sign(mode), bits = 8u * s.word;
	const bool stored = s.rot && !sign;

	m->partial = in_mode.partial;
	m->planes = in_mode.planes;
	m->rot = s.rot;
	m->turn = _mm_cvtsi32_si128(s.rot);
	m->skip = _mm_cvtsi32_si128(stored);
	m->up = _mm_cvtsi32_si128((int)wfs_mode_zeros(mode));
	m->keep = _mm_cvtsi32_si128(stored ? (int)bits - 1 : 64);
	m->sign = _mm256_setzero_si256();
	if (sign == 2)
		m->sign = s.word == 2	? _mm256_set1_epi16(INT16_MIN)
			  : s.word == 4 ? _mm256_set1_epi32(INT32_MIN)
					: _mm256_set1_epi64x(INT64_MIN);
	m->plane = rest + 64 * in_mode.partial;
	unpack_partial(rest, in_mode.partial, m->part);
}

/* A word of 2 bytes and more from its field, which has no lowest bit that a rotation could take to the top, and v. */
AVX2_INLINE __m256i moded_word(const struct moded *m, const unsigned word, __m256i field, __m256i v)
{
	__m256i mantissa, sign;

	if (word == 2) {
		field = _mm256_srl_epi16(field, m->turn);
		mantissa = _mm256_sll_epi16(_mm256_srl_epi16(v, m->skip), m->up);
		sign = _mm256_sll_epi16(v, m->keep);
	} else if (word == 4) {
		field = _mm256_srl_epi32(field, m->turn);
		mantissa = _mm256_sll_epi32(_mm256_srl_epi32(v, m->skip), m->up);
		sign = _mm256_sll_epi32(v, m->keep);
	} else {
		field = _mm256_srl_epi64(field, m->turn);
		mantissa = _mm256_sll_epi64(_mm256_srl_epi64(v, m->skip), m->up);
		sign = _mm256_sll_epi64(v, m->keep);
	}
	return _mm256_or_si256(_mm256_or_si256(field, mantissa), _mm256_or_si256(sign, m->sign));
}

/* Half of row r to raw. word is a constant. lo is 0 in fields of up to 8 bits. */
AVX2_INLINE void moded_half(const struct moded *m, const unsigned word, unsigned r, unsigned half, __m256i hi,
			    __m256i lo, u8 *raw)
{
	__m256i b[8], field_b[8], v[8], field[8];

#pragma GCC unroll 8
	for (unsigned i = 0; i < word; i++)
		b[i] = field_b[i] = _mm256_setzero_si256();
	for (unsigned i = 0; i < m->planes; i++)
		b[m->planes - 1 - i] = load(m->plane + WFS_SUPER * i + 64 * r + 32 * half);
	b[m->planes] = m->part[r][half];
	if (word == 1) {
		const __m256i x = _mm256_or_si256(hi, b[0]);

		store(raw, m->rot ? ror1(1, x) : x);
		return;
	}
	field_b[word - 1] = hi;
	field_b[word - 2] = lo;
	interleave(word, b, v);
	interleave(word, field_b, field);
#pragma GCC unroll 8
	for (unsigned i = 0; i < word; i++)
		store(raw + 64 * i, moded_word(m, word, field[i], v[i]));
}

AVX2_INLINE void moded_row(const struct moded *m, const unsigned word, unsigned r, const __m256i hi[2],
			   const __m256i lo[2], u8 *raw)
{
	moded_half(m, word, r, 0, hi[0], lo[0], raw);
	moded_half(m, word, r, 1, hi[1], lo[1], raw + 32);
}

#endif
