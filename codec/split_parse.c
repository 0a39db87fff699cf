/* split_parse.c - a split payload's layout (FORMAT.md 2.2, 2.5): every rule that can be checked without decoding.
 *
 * The kernels trust the view made here: pointers in order and inside the payload, lengths exact, table numbers, modes
 * and literals valid. What only decoding can show (states, stream ends) is the kernels' to check.
 */
#include "split_prefetch.h"

/* All counts and lengths are at most 2^24, blocks at most 2^20 words of 8 bytes: no sum here can overflow 32 bits. */

const char *wfs_modes_parse(const u8 *changes, size_t nr_changes, struct wfs_split s, size_t n, u8 *mode)
{
	size_t nr_supers = WFS_CEIL_DIV(n, WFS_SUPER), at = 0;
	u8 current = 0;

	if (!nr_changes)
		return NULL;
	if (s.rot != 1 || s.word < 2)
		return "modes in a split that has none";
	for (size_t i = 0; i < nr_changes; i++, changes += 3) {
		size_t super = wfs_load16(changes);

		if (super >= nr_supers || (i && super <= at) || !wfs_mode_valid(s, changes[2]))
			return "mode change is not valid";
		memset(mode + at, current, super - at);
		at = super;
		current = changes[2];
	}
	memset(mode + at, current, nr_supers - at);
	return NULL;
}

size_t wfs_rest_bytes(struct wfs_split s, size_t n, const u8 *mode, size_t *last_ret)
{
	size_t nr_full = WFS_CEIL_DIV(n, WFS_SUPER) - 1, total = 0;

	if (!mode) {
		total = nr_full * wfs_unit_bytes(s, WFS_SUPER_ROWS);
	} else {
		for (size_t i = 0; i < nr_full; i++)
			total += 8u * WFS_SUPER_ROWS * wfs_mode_rest_bits(s, mode[i]);
		s = wfs_split_in_mode(s, mode[nr_full]);
	}
	*last_ret = wfs_unit_bytes(s, wfs_last_rows(n));
	return total + *last_ret;
}

const char *wfs_literals_parse(const u8 *literals, size_t nr, unsigned word, size_t n)
{
	u64 next_min = 0;

	for (size_t i = 0; i < nr; i++, literals += 4 + word) {
		u32 number = wfs_load32(literals);

		if (number < next_min || number >= n)
			return "literal number is not valid";
		next_min = (u64)number + 1;
	}
	return NULL;
}

static const char *parse_segments(const u8 *numbers, const struct wfs_decode_pool *pool, struct wfs_split_view *v)
{
	size_t nr_segs = WFS_CEIL_DIV(v->n, (size_t)1 << pool->seg_log2);

	if (pool->nr_tables == 1) {
		memset(v->seg, 0, nr_segs);
		return NULL;
	}
	for (size_t i = 0; i < nr_segs; i++) {
		v->seg[i] = numbers[i / 2] >> (4 * (i & 1)) & 15;
		if (v->seg[i] >= pool->nr_tables)
			return "table number is not valid";
	}
	if (nr_segs & 1 && numbers[nr_segs / 2] >> 4)
		return "unused table number is not zero";
	return NULL;
}

/* Counts and lengths of the header. */
static const char *parse_header(const u8 *comp, struct wfs_split_view *v)
{
	const size_t max_symbols = WFS_CEIL_DIV(v->n, WFS_LANES) * WFS_LANES;

	v->stream_len[0] = wfs_load24(comp);
	v->stream_len[1] = wfs_load24(comp + 3);
	v->nr_escapes = wfs_load24(comp + 6);
	v->nr_literals = wfs_load16(comp + 9);
	v->nr_modes = comp[11];
	if (v->stream_len[0] > max_symbols || v->stream_len[1] > max_symbols || v->nr_escapes > max_symbols ||
	    v->nr_literals > v->nr_escapes)
		return "split header is not valid";
	return NULL;
}

/* Where the pieces lie; their lengths must add up to comp_len. */
static const char *place_pieces(const u8 *comp, size_t comp_len, struct wfs_split s, const struct wfs_decode_pool *pool,
				size_t edge_len, struct wfs_split_view *v)
{
	const size_t nr_segs = WFS_CEIL_DIV(v->n, (size_t)1 << pool->seg_log2);
	const size_t seg_bytes = pool->nr_tables > 1 ? WFS_CEIL_DIV(nr_segs, 2) : 0;
	const size_t front = WFS_SPLIT_HEADER + seg_bytes + 3 * (size_t)v->nr_modes;
	const size_t escape_bytes = WFS_CEIL_DIV(v->nr_escapes, 2), literal_bytes = (4u + s.word) * v->nr_literals;
	const char *reason;
	size_t last;

	if (comp_len < front)
		return "split payload is cut short";
	reason = wfs_modes_parse(comp + WFS_SPLIT_HEADER + seg_bytes, v->nr_modes, s, v->n, v->mode);
	if (reason)
		return reason;
	v->rest_len = wfs_rest_bytes(s, v->n, v->nr_modes ? v->mode : NULL, &last);
	v->carried = WFS_MIN(last, (size_t)WFS_CARRIED);
	v->rest_len -= v->carried;
	if (front + WFS_STATE_BYTES + v->stream_len[0] + v->stream_len[1] + escape_bytes + literal_bytes + v->rest_len +
		    edge_len !=
	    comp_len)
		return "lengths inside the split payload do not add up";
	v->states = comp + front;
	v->stream[0] = v->states + WFS_STATE_BYTES;
	v->stream_end[0] = v->stream[0] + v->stream_len[0];
	v->stream[1] = v->stream_end[0];
	v->stream_end[1] = v->stream[1] + v->stream_len[1];
	v->escapes = v->stream_end[1];
	v->literals = v->escapes + escape_bytes;
	v->rest = v->literals + literal_bytes;
	v->edges = v->rest + v->rest_len;
	return NULL;
}

enum wfs_status wfs_split_parse(const u8 *comp, size_t comp_len, struct wfs_split s, const struct wfs_decode_pool *pool,
				size_t n, size_t edge_len, struct wfs_split_view *v, const char **reason_ret)
{
	const char *reason = "split block has no words";

	if (n < 1 || n > WFS_MAX_BLOCK)
		goto out;
	reason = "split payload is cut short";
	if (comp_len < WFS_SPLIT_HEADER)
		goto out;
	v->n = n;
	v->later = NULL;
	reason = parse_header(comp, v);
	if (!reason)
		reason = place_pieces(comp, comp_len, s, pool, edge_len, v);
	if (!reason)
		wfs_prefetch_pieces(v);
	if (!reason)
		reason = parse_segments(comp + WFS_SPLIT_HEADER, pool, v);
	if (!reason && v->nr_escapes & 1 && v->escapes[v->nr_escapes / 2] >> 4)
		reason = "unused escape is not zero";
	if (!reason)
		reason = wfs_literals_parse(v->literals, v->nr_literals, s.word, n);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
