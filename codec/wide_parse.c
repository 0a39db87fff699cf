/* wide_parse.c - a wide payload's layout (FORMAT.md 4.2): every rule that can be checked without decoding.
 *
 * As split_parse.c does for the split coding. All counts and lengths are at most 2^24, blocks at most 2^20 words of 8
 * bytes: no sum here can overflow 32 bits.
 */
#include "wide_decode.h"

/* Counts and lengths of the header. */
static const char *parse_header(const u8 *comp, struct wfs_wide_view *v, u32 *stream_len_ret)
{
	const size_t nr_rows = WFS_CEIL_DIV(v->n, WFS_LANES);
	const u32 stream_len = wfs_load24(comp);

	v->nr_escapes = wfs_load24(comp + 3);
	v->nr_literals = wfs_load16(comp + 6);
	v->nr_modes = comp[8];
	v->nr_groups = comp[9];
	v->phase = wfs_load16(comp + 10);
	*stream_len_ret = stream_len;
	if (stream_len & 1 || stream_len > 2 * WFS_LANES * nr_rows || v->nr_escapes > WFS_LANES * nr_rows ||
	    v->nr_literals > v->nr_escapes || !v->nr_groups)
		return "wide header is not valid";
	return NULL;
}

/* Counts the segments of all groups; 0 when the groups are not valid. */
static size_t count_segments(const struct wfs_wide_view *v)
{
	size_t nr_segs = 0, phase = v->phase;

	for (u32 i = 0; i < v->nr_groups; i++, phase = 0) {
		const size_t first = wfs_wide_group_first(v, i), end = wfs_wide_group_first(v, i + 1);
		const size_t seg_len = wfs_wide_group_seg_len(v, i);

		if (first >= end || end > v->n || (!i && first) || seg_len < WFS_WIDE_MIN_SEG || phase >= seg_len)
			return 0;
		nr_segs += WFS_CEIL_DIV(end - first + phase, seg_len);
	}
	return nr_segs;
}

static const char *check_numbers(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool, size_t nr_segs)
{
	const size_t nr_bits = nr_segs * pool->number_bits;

	for (size_t i = 0; i < nr_segs; i++) {
		if (wfs_wide_number(v, pool, i) >= pool->nr_tables)
			return "table number is not valid";
	}
	if (nr_bits & 7 && v->numbers[nr_bits / 8] >> (nr_bits & 7))
		return "unused bits of the table numbers are not zero";
	return NULL;
}

/* Where the pieces lie; their lengths must add up to comp_len. */
static const char *place_pieces(const u8 *comp, size_t comp_len, struct wfs_split s,
				const struct wfs_wide_decode_pool *pool, u32 stream_len, size_t edge_len,
				struct wfs_wide_view *v)
{
	const size_t groups_end = WFS_WIDE_HEADER + WFS_WIDE_GROUP_BYTES * (size_t)v->nr_groups;
	const size_t literal_bytes = (4u + s.word) * v->nr_literals;
	size_t nr_segs, front, last;
	const char *reason;

	if (comp_len < groups_end)
		return "wide payload is cut short";
	v->groups = comp + WFS_WIDE_HEADER;
	v->numbers = comp + groups_end;
	nr_segs = count_segments(v);
	if (!nr_segs)
		return "groups of segments are not valid";
	front = groups_end + WFS_CEIL_DIV(nr_segs * pool->number_bits, (size_t)8);
	v->states = comp + front + 3 * (size_t)v->nr_modes;
	if (comp_len < front + 3 * (size_t)v->nr_modes + WFS_WIDE_STATE_BYTES)
		return "wide payload is cut short";
	reason = check_numbers(v, pool, nr_segs);
	if (!reason)
		reason = wfs_modes_parse(comp + front, v->nr_modes, s, v->n, v->mode);
	if (reason)
		return reason;
	v->rest_len = wfs_rest_bytes(s, v->n, v->nr_modes ? v->mode : NULL, &last);
	v->stream = v->states + WFS_WIDE_STATE_BYTES;
	if ((size_t)(v->stream - comp) + stream_len + v->nr_escapes + literal_bytes + v->rest_len + edge_len !=
	    comp_len)
		return "lengths inside the wide payload do not add up";
	v->stream_end = v->stream + stream_len;
	v->escapes = v->stream_end;
	v->literals = v->escapes + v->nr_escapes;
	v->rest = v->literals + literal_bytes;
	v->edges = v->rest + v->rest_len;
	return wfs_literals_parse(v->literals, v->nr_literals, s.word, v->n);
}

enum wfs_status wfs_wide_parse(const u8 *comp, size_t comp_len, struct wfs_split s,
			       const struct wfs_wide_decode_pool *pool, size_t n, size_t edge_len,
			       struct wfs_wide_view *v, const char **reason_ret)
{
	const char *reason = "wide block has no words";
	u32 stream_len;

	if (n < 1 || n > WFS_MAX_BLOCK)
		goto out;
	reason = "wide payload is cut short";
	if (comp_len < WFS_WIDE_HEADER)
		goto out;
	v->n = n;
	reason = parse_header(comp, v, &stream_len);
	if (!reason)
		reason = place_pieces(comp, comp_len, s, pool, stream_len, edge_len, v);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
