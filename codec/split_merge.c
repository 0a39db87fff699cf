/* split_merge.c - rest bits and field values to words, for any split and mode (FORMAT.md 2.1, 2.4, 2.5).
 *
 * The scalar decoder uses this for everything, the vector kernels for last units that are not whole superrows.
 */
#include "split_merge.h"

void wfs_split_scratch_init(struct wfs_scratch *scratch)
{
	for (unsigned m = 0; m < 256; m++) {
		u64 nr = 0, entry = 0;

		for (unsigned i = 0; i < 8; i++)
			entry |= (m >> i & 1 ? nr++ : 0x80) << (8 * i);
		scratch->spread[0][m][0] = entry;
		scratch->spread[0][m][1] = 0x0101010101010101ull * nr;
		scratch->spread[1][m][0] = 0;
		scratch->spread[1][m][1] = entry;
	}
}

/* Partial bits of a unit, one byte a position. */
static void unpack_partial(unsigned partial, const u8 *rest, unsigned rows, u8 *part)
{
	const u64 ones = 0x0101010101010101ull, mask = ones * ((1u << partial) - 1);

	if (!partial) {
		memset(part, 0, (size_t)WFS_LANES * rows);
		return;
	}
	if (rows < WFS_SUPER_ROWS) {
		memcpy(part, rest, (size_t)WFS_LANES * rows);
		return;
	}
	for (unsigned pos = 0; pos < WFS_LANES; pos += 8) {
		for (unsigned j = partial; j < WFS_SUPER_ROWS; j++) {
			u64 row = 0;

			for (unsigned i = 0; i < partial; i++)
				row |= (wfs_load64(rest + WFS_LANES * i + pos) >> j & ones) << i;
			wfs_store64(part + WFS_LANES * j + pos, row);
		}
		for (unsigned i = 0; i < partial; i++)
			wfs_store64(part + WFS_LANES * i + pos, wfs_load64(rest + WFS_LANES * i + pos) & mask);
	}
}

/* What merge_rows needs to know, besides constants. */
struct merge {
	const u16 *top;
	const u8 *part, *plane; /* plane 0; the next ones follow at plane_bytes */
	size_t plane_bytes;
	unsigned rows, mode;
	u8 *raw;
};

/* Rows of words of one type. `rot`, and where speed matters `planes` and `moded`, are constants. The innermost loop
 * runs over the positions whose words are neighbours (lane order). */
#define DEFINE_MERGE(type, word)                                                                                       \
	static WFS_ALWAYS_INLINE void merge_rows_##type(const struct merge *m, const unsigned rot, unsigned planes,    \
							bool moded)                                                    \
	{                                                                                                              \
		enum { BITS = 8 * word, PER = 16 / word };                                                             \
		const unsigned zeros = wfs_mode_zeros(m->mode), sign = wfs_mode_sign(m->mode);                         \
		for (unsigned group = 0; group < m->rows * 4 * word; group++) {                                        \
			unsigned row = group / (4 * word), quarter = group / word % 4, k = group % word;               \
			size_t pos = PER * group, first = WFS_LANES * row + PER * (quarter + 4 * k);                   \
			type out[PER];                                                                                 \
			for (unsigned j = 0; j < PER; j++) {                                                           \
				type v = m->part[pos + j], x = m->top[pos + j];                                        \
				for (unsigned i = 0; i < planes; i++)                                                  \
					v = (type)((u64)v << 8 | m->plane[m->plane_bytes * i + pos + j]);              \
				if (moded)                                                                             \
					v = sign ? (type)((u64)v << (zeros + 1) | (sign == 2))                         \
						 : (type)((u64)(v >> 1) << (zeros + 1) | (v & 1));                     \
				x = (type)(word == 1 ? m->top[pos + j] >> 8 : (u64)x << (BITS - 16 * (word > 1)));     \
				x |= v;                                                                                \
				out[j] = (type)(rot ? x >> 1 | (type)(x << (BITS - 1)) : x);                           \
			}                                                                                              \
			memcpy(m->raw + word * first, out, sizeof(out));                                               \
		}                                                                                                      \
	}
DEFINE_MERGE(u8, 1)
DEFINE_MERGE(u16, 2)
DEFINE_MERGE(u32, 4)
DEFINE_MERGE(u64, 8)

static WFS_ALWAYS_INLINE void merge_unit(const struct merge *m, const unsigned rot, unsigned word, unsigned planes)
{
	switch (word) {
	case 1: /* no modes, and all rest bits are partial ones */
		merge_rows_u8(m, rot, 0, false);
		break;
	case 2:
		if (m->mode)
			merge_rows_u16(m, rot, planes, true);
		else if (planes == 0)
			merge_rows_u16(m, rot, 0, false);
		else
			merge_rows_u16(m, rot, 1, false);
		break;
	case 4:
		if (m->mode)
			merge_rows_u32(m, rot, planes, true);
		else if (planes == 2)
			merge_rows_u32(m, rot, 2, false);
		else
			merge_rows_u32(m, rot, 3, false);
		break;
	default:
		merge_rows_u64(m, rot, planes, m->mode);
	}
}

void wfs_split_merge(struct wfs_split s, unsigned mode, const u16 *top, const u8 *rest, unsigned rows, size_t nr_words,
		     u8 *raw)
{
	const struct wfs_split in_mode = wfs_split_in_mode(s, mode);
	const bool whole = nr_words == (size_t)WFS_LANES * rows;
	const size_t part_bytes = WFS_LANES * (rows == WFS_SUPER_ROWS ? in_mode.partial : rows * !!in_mode.partial);
	u8 part[WFS_SUPER], words[WFS_SUPER * 8];
	struct merge m = {
		.top = top,
		.part = part,
		.plane = rest + part_bytes,
		.plane_bytes = (size_t)WFS_LANES * rows,
		.rows = rows,
		.mode = mode,
		.raw = whole ? raw : words,
	};

	unpack_partial(in_mode.partial, rest, rows, part);
	if (s.rot)
		merge_unit(&m, 1, s.word, in_mode.planes);
	else
		merge_unit(&m, 0, s.word, in_mode.planes);
	if (!whole)
		memcpy(raw, words, nr_words * s.word);
}

/* Padding of the last unit: positions beyond the last word and, in unpacked partial bytes, the bits above the partial
 * ones. s: in the unit's mode. */
static bool padding_is_zero(struct wfs_split s, const u8 *unit, unsigned rows, size_t nr_words)
{
	const bool packed = rows == WFS_SUPER_ROWS;
	const unsigned nr_vectors = packed ? s.partial : !!s.partial;
	const size_t stride = WFS_LANES * (packed ? 1u : rows), last_row = (size_t)WFS_LANES * (rows - 1);
	const u8 *plane = unit + (packed ? 64u * s.partial : stride * nr_vectors);
	const unsigned nr_in_row = (unsigned)(nr_words - last_row);
	u8 any = 0;

	if (!packed && s.partial) {
		for (size_t i = 0; i < stride; i++)
			any |= unit[i] >> s.partial;
	}
	for (unsigned pos = 0; pos < WFS_LANES && nr_in_row < WFS_LANES; pos++) {
		if (wfs_lane_word(s.word, pos) < nr_in_row)
			continue;
		/* Bit 7 of vector i is partial bit i of row 7: a packed last row never has a vector of its own. */
		for (unsigned i = 0; i < nr_vectors; i++)
			any |= packed ? unit[WFS_LANES * i + pos] & 0x80 : unit[last_row + pos];
		for (unsigned k = 0; k < s.planes; k++)
			any |= plane[(size_t)WFS_LANES * rows * k + last_row + pos];
	}
	return !any;
}

const char *wfs_words_finish(struct wfs_split s, unsigned mode, size_t n, const u16 *top, const u8 *unit,
			     const u8 *literals, size_t nr_literals, u8 *raw)
{
	const size_t first = (n - 1) / WFS_SUPER * WFS_SUPER;
	const unsigned rows = wfs_last_rows(n);

	if (!padding_is_zero(wfs_split_in_mode(s, mode), unit, rows, n - first))
		return "padding bits are not zero";
	wfs_split_merge(s, mode, top, unit, rows, n - first, raw + first * s.word);
	for (size_t i = 0; i < nr_literals; i++, literals += 4 + s.word)
		memcpy(raw + (size_t)wfs_load32(literals) * s.word, literals + 4, s.word);
	return NULL;
}

const char *wfs_split_finish(const struct wfs_split_view *v, struct wfs_split s, const u16 *top,
			     const u8 final_l[WFS_CARRIED], u8 *raw)
{
	const unsigned mode = wfs_split_mode(v, (v->n - 1) / WFS_SUPER);
	const size_t stored = wfs_unit_bytes(wfs_split_in_mode(s, mode), wfs_last_rows(v->n)) - v->carried;
	u8 unit[WFS_UNIT_MAX_BYTES], unused = 0;

	for (size_t i = v->carried; i < WFS_CARRIED; i++)
		unused |= final_l[i];
	if (unused)
		return "unused carried bytes are not zero";
	memcpy(unit, v->rest + v->rest_len - stored, stored);
	memcpy(unit + stored, final_l, v->carried);
	return wfs_words_finish(s, mode, v->n, top, unit, v->literals, v->nr_literals, raw);
}
