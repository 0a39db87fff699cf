/* split_unit_avx512.h - a superrow's words from its fields and its rest bits (FORMAT.md 2.1, 2.4, 2.5), with AVX-512
 * and VBMI2: a row of fields, one vector for their top bytes and one for the bytes below, to `word` vectors of words.
 * For every kernel, whatever coded the fields. Private.
 *
 * unit_*: mode 0, for loops in which the split is a constant. moded_*: any mode, any split.
 */
#ifndef WFS_SPLIT_UNIT_AVX512_H
#define WFS_SPLIT_UNIT_AVX512_H

#include "split.h"

#include <immintrin.h>

#define AVX512_INLINE static WFS_ALWAYS_INLINE WFS_TARGET_AVX512VBMI

/* Truth tables of vpternlog: a ? b : c and a | (b & c) and a | b | c. */
enum { SELECT = 0xca, OR_AND = 0xf8, OR3 = 0xfe };

AVX512_INLINE __m512i load(const void *p)
{
	return _mm512_loadu_si512(p);
}
AVX512_INLINE void store(void *p, __m512i v)
{
	_mm512_storeu_si512(p, v);
}

/* ---- bytes to words ---- */

/* Byte vectors of a row, least significant first, to its words in order. Neighbouring words come from interleaving
 * within 128-bit lanes: what the lane order is made for. */
AVX512_INLINE void interleave(const unsigned word, const __m512i *b, __m512i *out)
{
	if (word == 1) {
		out[0] = b[0];
		return;
	}
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		__m512i two[4], four[2][2];

#pragma GCC unroll 4
		for (unsigned k = 0; k < word / 2; k++)
			two[k] = i ? _mm512_unpackhi_epi8(b[2 * k], b[2 * k + 1])
				   : _mm512_unpacklo_epi8(b[2 * k], b[2 * k + 1]);
		if (word == 2)
			out[i] = two[0];
#pragma GCC unroll 2
		for (unsigned k = 0; k < word / 4; k++) {
			four[0][k] = _mm512_unpacklo_epi16(two[2 * k], two[2 * k + 1]);
			four[1][k] = _mm512_unpackhi_epi16(two[2 * k], two[2 * k + 1]);
		}
#pragma GCC unroll 2
		for (unsigned k = 0; word >= 4 && k < 2; k++) {
			if (word == 4) {
				out[2 * i + k] = four[k][0];
			} else {
				out[4 * i + 2 * k] = _mm512_unpacklo_epi32(four[k][0], four[k][1]);
				out[4 * i + 2 * k + 1] = _mm512_unpackhi_epi32(four[k][0], four[k][1]);
			}
		}
	}
}

/* Rotated right by one bit. */
AVX512_INLINE __m512i ror1(const unsigned word, __m512i v)
{
	if (word == 1)
		return _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x7f), _mm512_srli_epi16(v, 1),
						 _mm512_slli_epi16(v, 7), SELECT);
	if (word == 2)
		return _mm512_shrdi_epi16(v, v, 1);
	return word == 4 ? _mm512_ror_epi32(v, 1) : _mm512_ror_epi64(v, 1);
}

/* Partial bits of a superrow, row by row. */
AVX512_INLINE void unpack_partial(const u8 *rest, const unsigned partial, __m512i part[8])
{
	const __m512i mask = _mm512_set1_epi8((char)((1 << partial) - 1));

	for (unsigned i = 0; i < partial; i++)
		part[i] = _mm512_and_si512(load(rest + 64 * i), mask);
	for (unsigned j = partial; j < 8; j++) {
		part[j] = _mm512_setzero_si512();
		for (unsigned i = 0; i < partial; i++) {
			const __m512i bit = _mm512_srl_epi16(load(rest + 64 * i), _mm_cvtsi32_si128((int)(j - i)));

			part[j] = _mm512_ternarylogic_epi64(part[j], bit, _mm512_set1_epi8((char)(1 << i)), OR_AND);
		}
	}
}

/* ---- mode 0 ---- */

/* The rest bits of a superrow. part: partial bits of the rows that have no vector of their own, moved together (see
 * gather_partial); where they are 7, those of row 7, which grow at the top of the bytes, one bit with each row. */
struct unit {
	const u8 *rest, *plane;
	__m512i part[4];
};

/* Bit j of vector i is bit i of row j. Shifted right by partial - 1 - i, the bits of row j stand side by side, from bit
 * j - partial + 1 on. Rows that lie `partial` apart do not overlap and share a vector. */
AVX512_INLINE void gather_partial(const u8 *rest, const unsigned partial, __m512i part[4])
{
#pragma GCC unroll 4
	for (unsigned k = 0; k < WFS_MIN(partial, 8 - partial); k++) {
		part[k] = load(rest + 64 * (partial - 1));
#pragma GCC unroll 6
		for (unsigned i = 0; i < partial - 1; i++) {
			const __m512i moved = _mm512_srli_epi16(load(rest + 64 * i), partial - 1 - i);
			unsigned bits = 0;

#pragma GCC unroll 8
			for (unsigned j = partial + k; j < 8; j += partial)
				bits |= 1u << (j - partial + 1 + i);
			part[k] = _mm512_ternarylogic_epi64(_mm512_set1_epi8((char)bits), moved, part[k], SELECT);
		}
	}
}

AVX512_INLINE void unit_start(struct unit *u, const struct wfs_split s, const u8 *rest)
{
	u->rest = rest;
	u->plane = rest + 64 * s.partial;
	if (s.partial == 7)
		u->part[0] = _mm512_setzero_si512();
	else if (s.partial)
		gather_partial(rest, s.partial, u->part);
}

/* Row r's partial bits; the bits above them are others'. */
AVX512_INLINE __m512i unit_partial(struct unit *u, const unsigned partial, const unsigned r)
{
	const __m512i own = load(u->rest + 64 * WFS_MIN(r, partial - 1)), low7 = _mm512_set1_epi8(0x7f);

	if (partial == 7) {
		const __m512i grown = _mm512_srli_epi16(u->part[0], 1);

		u->part[0] = _mm512_ternarylogic_epi64(low7, grown, own, SELECT);
		return r < 7 ? own : grown;
	}
	return r < partial ? own : _mm512_srli_epi16(u->part[(r - partial) % partial], r - partial + 1);
}

/* Row r's words to raw; rows in order. s and r are constants. lo counts only in fields of more than 8 bits. */
AVX512_INLINE void unit_row(struct unit *u, const struct wfs_split s, const unsigned r, __m512i hi, __m512i lo, u8 *raw)
{
	const unsigned in_field = s.field > 8 ? 2 : 1; /* bytes that field and partial bits take */
	__m512i b[8], out[8];

	b[s.word - 1] = hi;
	if (in_field == 2)
		b[s.word - 2] = lo;
	if (s.partial)
		b[s.word - in_field] =
			_mm512_ternarylogic_epi64(b[s.word - in_field], unit_partial(u, s.partial, r),
						  _mm512_set1_epi8((char)((1 << s.partial) - 1)), OR_AND);
#pragma GCC unroll 8
	for (unsigned i = 0; i < s.word - in_field; i++)
		b[s.word - in_field - 1 - i] = load(u->plane + WFS_SUPER * i + 64 * r);
	interleave(s.word, b, out);
#pragma GCC unroll 8
	for (unsigned i = 0; i < s.word; i++)
		store(raw + 64 * i, s.rot ? ror1(s.word, out[i]) : out[i]);
}

/* ---- any mode ---- */

/* How a superrow is put together: v = mantissa bits >> zeros, then the sign bit when it is stored. After the rotation
 * back the mantissa stands at bit `zeros` and the sign on top: mantissa = v >> skip << up, sign = v << keep (which
 * gives 0 when the sign is not stored) or the constant. Without rotation v is the low bits as they are. */
struct moded {
	unsigned partial, planes;
	bool rot;
	__m128i turn, skip, up, keep;
	__m512i sign;
	const u8 *plane;
	__m512i part[8];
};

AVX512_INLINE void moded_start(struct moded *m, struct wfs_split s, unsigned mode, const u8 *rest)
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
	m->sign = _mm512_setzero_si512();
	if (sign == 2)
		m->sign = s.word == 2	? _mm512_set1_epi16(INT16_MIN)
			  : s.word == 4 ? _mm512_set1_epi32(INT32_MIN)
					: _mm512_set1_epi64(INT64_MIN);
	m->plane = rest + 64 * in_mode.partial;
	unpack_partial(rest, in_mode.partial, m->part);
}

/* A word of 2 bytes and more from its field, which has no lowest bit that a rotation could take to the top, and v. */
AVX512_INLINE __m512i moded_word(const struct moded *m, const unsigned word, __m512i field, __m512i v)
{
	__m512i mantissa, sign;

	if (word == 2) {
		field = _mm512_srl_epi16(field, m->turn);
		mantissa = _mm512_sll_epi16(_mm512_srl_epi16(v, m->skip), m->up);
		sign = _mm512_sll_epi16(v, m->keep);
	} else if (word == 4) {
		field = _mm512_srl_epi32(field, m->turn);
		mantissa = _mm512_sll_epi32(_mm512_srl_epi32(v, m->skip), m->up);
		sign = _mm512_sll_epi32(v, m->keep);
	} else {
		field = _mm512_srl_epi64(field, m->turn);
		mantissa = _mm512_sll_epi64(_mm512_srl_epi64(v, m->skip), m->up);
		sign = _mm512_sll_epi64(v, m->keep);
	}
	return _mm512_ternarylogic_epi64(field, mantissa, _mm512_or_si512(sign, m->sign), OR3);
}

/* Row r's words to raw. word is a constant. lo is 0 in fields of up to 8 bits. */
AVX512_INLINE void moded_row(const struct moded *m, const unsigned word, unsigned r, __m512i hi, __m512i lo, u8 *raw)
{
	__m512i b[8], field_b[8], v[8], field[8];

#pragma GCC unroll 8
	for (unsigned i = 0; i < word; i++)
		b[i] = field_b[i] = _mm512_setzero_si512();
	for (unsigned i = 0; i < m->planes; i++)
		b[m->planes - 1 - i] = load(m->plane + WFS_SUPER * i + 64 * r);
	b[m->planes] = m->part[r];
	if (word == 1) {
		const __m512i x = _mm512_or_si512(hi, b[0]);

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

#endif
