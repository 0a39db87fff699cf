/* split_unit_128.h - a superrow's words from its fields and its rest bits (FORMAT.md 2.1, 2.4, 2.5), with vectors of 16
 * bytes: a quarter of a row, 16 positions, from the top bytes of the fields and the bytes below them to words. For
 * every kernel, whatever coded the fields. Private.
 */
#ifndef WFS_SPLIT_UNIT_128_H
#define WFS_SPLIT_UNIT_128_H

#include "vec128.h"

/* ---- rest bits ---- */

VEC_INLINE void unpack_partial_of(const u8 *rest, const unsigned partial, vec part[8][4])
{
	const vec ones = vec_dup((1u << partial) - 1);

	for (unsigned quarter = 0; quarter < 4; quarter++, rest += 16) {
#pragma GCC unroll 7
		for (unsigned i = 0; i < partial; i++)
			part[i][quarter] = vec_and(vec_load(rest + 64 * i), ones);
#pragma GCC unroll 7
		for (unsigned j = partial; j < 8; j++) {
			vec row = vec_zero();

#pragma GCC unroll 7
			for (unsigned i = 0; i < partial; i++) {
				const vec bit = vec_right(2, vec_load(rest + 64 * i), vec_right_by(j - i));

				row = vec_or(row, vec_and(bit, vec_dup(1u << i)));
			}
			part[j][quarter] = row;
		}
	}
}
/* Partial bits of a superrow, rows of four quarters. The shifts of 16-bit words move bits of one byte into the other,
 * but never to a place that is kept. */
static inline VEC_TARGET void unpack_partial(const u8 *rest, unsigned partial, vec part[8][4])
{
	switch (partial) {
	case 1:
		unpack_partial_of(rest, 1, part);
		break;
	case 2:
		unpack_partial_of(rest, 2, part);
		break;
	case 3:
		unpack_partial_of(rest, 3, part);
		break;
	case 4:
		unpack_partial_of(rest, 4, part);
		break;
	case 5:
		unpack_partial_of(rest, 5, part);
		break;
	case 6:
		unpack_partial_of(rest, 6, part);
		break;
	case 7:
		unpack_partial_of(rest, 7, part);
		break;
	default:
		memset(part, 0, 8 * sizeof(part[0]));
	}
}

/* How a superrow is put together. */
struct unit {
	const u8 *rest, *plane; /* plane: the first byte plane */
	unsigned rest_bits, planes;
	bool rot;
	/* Only for unit_moded: v = mantissa bits >> zeros, then the sign bit when it is stored. After the rotation back
	 * the mantissa stands at bit `zeros` and the sign on top: mantissa = v >> skip << up, sign = v << keep (which
	 * gives 0 when the sign is not stored) or the constant. Without rotation v is the low bits as they are. */
	vec turn, skip, up, keep, sign;
	vec part[8][4];
};

VEC_INLINE void unit_start(struct unit *u, struct wfs_split s, unsigned mode, const u8 *rest)
{
	const struct wfs_split in_mode = wfs_split_in_mode(s, mode);
	const unsigned sign = wfs_mode_sign(mode);
	const bool stored = s.rot && !sign;
	_Alignas(16) u8 minus[16] = {0};

	for (unsigned i = s.word - 1u; sign == 2 && i < 16; i += s.word)
		minus[i] = 0x80;
	u->rest = rest;
	u->plane = rest + 64 * in_mode.partial;
	u->rest_bits = wfs_mode_rest_bits(s, mode);
	u->planes = in_mode.planes;
	u->rot = s.rot;
	u->turn = vec_right_by(s.rot);
	u->skip = vec_right_by(stored);
	u->up = vec_left_by(wfs_mode_zeros(mode));
	u->keep = vec_left_by(stored ? 8u * s.word - 1 : 64);
	u->sign = vec_load(minus);
	unpack_partial(rest, in_mode.partial, u->part);
}

/* ---- a quarter of a row ---- */

/* In mode 0, with rotation or of 1 byte. wide: the field has more than 8 bits, and lo counts. raw: of the row. */
VEC_INLINE void unit_plain(const struct unit *u, const unsigned word, const bool wide, unsigned row,
			   const unsigned quarter, vec hi, vec lo, u8 *raw)
{
	const unsigned planes = word - (wide ? 2 : 1);
	const vec part = u->part[row][quarter];
	vec b[8], out[8];

	b[word - 1] = wide ? hi : vec_or(hi, part);
	if (wide)
		b[word - 2] = vec_or(lo, part);
#pragma GCC unroll 8
	for (unsigned i = 0; i < planes; i++)
		b[planes - 1 - i] = vec_load(u->plane + WFS_SUPER * i + 64 * row + 16 * quarter);
	vec_interleave(word, b, out);
#pragma GCC unroll 8
	for (unsigned i = 0; i < word; i++)
		vec_store(raw + 64 * i + 16 * quarter, word > 1 || u->rot ? vec_ror1(word, out[i]) : out[i]);
}

/* Of 2 bytes and more, in any mode. The field has no lowest bit that a rotation could take to the top. */
VEC_INLINE void unit_moded(const struct unit *u, const unsigned word, unsigned row, const unsigned quarter, vec hi,
			   vec lo, u8 *raw)
{
	vec b[8], field_b[8], v[8], field[8];

#pragma GCC unroll 8
	for (unsigned i = 0; i < word; i++)
		b[i] = field_b[i] = vec_zero();
	for (unsigned i = 0; i < u->planes; i++)
		b[u->planes - 1 - i] = vec_load(u->plane + WFS_SUPER * i + 64 * row + 16 * quarter);
	b[u->planes] = u->part[row][quarter];
	field_b[word - 1] = hi;
	field_b[word - 2] = lo;
	vec_interleave(word, b, v);
	vec_interleave(word, field_b, field);
#pragma GCC unroll 8
	for (unsigned i = 0; i < word; i++) {
		const vec mantissa = vec_left(word, vec_right(word, v[i], u->skip), u->up);
		const vec sign = vec_or(vec_left(word, v[i], u->keep), u->sign);

		vec_store(raw + 64 * i + 16 * quarter,
			  vec_or(vec_or(vec_right(word, field[i], u->turn), mantissa), sign));
	}
}

#endif
