/* split_decode_scalar.c - the reference decoder of the split coding: every other kernel must give the same bytes or the
 * same refusal.
 *
 * A step is one table look-up by the state's low byte (the slot): frequency, rank and field value come in one u32.
 * Words of a row do not depend on each other but through the stream pointer, which advances without a branch; only
 * where less than a row's worst case of stream is left is every byte checked.
 */
#include "split_merge.h"

/* step[slot] = freq | rank << 8 | field value as the top 16 bits of a word << 16. A field has at most 12 bits, so the
 * lowest of the 16 is free to mark escapes. */
enum { STEP_ESCAPE = 1 << 16, TOP_ESCAPE = 1 };
_Static_assert(16 - WFS_MAX_FIELD >= 1, "no bit left to mark escapes");

static void expand_steps(const struct wfs_decode_table *table, u32 *step)
{
	for (unsigned slot = 0; slot < 256; slot++) {
		unsigned run = table->run[slot] & 0x7f, rank = (u8)(slot - table->c[run]);

		step[slot] = table->freq[run] | rank << 8 | (u32)table->lo[run] << 16 | (u32)table->hi[run] << 24;
		if (run == table->escape_run)
			step[slot] |= STEP_ESCAPE;
	}
}

struct strand {
	u16 state[WFS_LANES];
	const u8 *p, *end;
};

/* One row. Returns false when the stream runs out. *seen collects the step entries used. */
static bool decode_row(struct strand *k, const u32 *step, u16 *top, u32 *seen)
{
	const u8 *p = k->p;
	u32 any = 0;

	if (wfs_likely(k->end - p >= WFS_LANES)) {
		for (unsigned pos = 0; pos < WFS_LANES; pos++) {
			u32 e = step[k->state[pos] & 255], x = (e & 255) * (k->state[pos] >> 8) + (e >> 8 & 255);
			u32 shift = (x < 256) * 8u;

			x = x << shift | (*p & ((1u << shift) - 1));
			p += shift / 8;
			k->state[pos] = (u16)x;
			top[pos] = (u16)(e >> 16);
			any |= e;
		}
	} else {
		for (unsigned pos = 0; pos < WFS_LANES; pos++) {
			u32 e = step[k->state[pos] & 255], x = (e & 255) * (k->state[pos] >> 8) + (e >> 8 & 255);

			if (x < 256) {
				if (p == k->end)
					return false;
				x = x << 8 | *p++;
			}
			k->state[pos] = (u16)x;
			top[pos] = (u16)(e >> 16);
			any |= e;
		}
	}
	k->p = p;
	*seen |= any;
	return true;
}

/* Replace escapes by what the next nibbles name. Returns false when the escapes run out. */
static bool name_escapes(const struct wfs_split_view *v, const struct wfs_decode_table *table, u16 *top, size_t nr,
			 size_t *used)
{
	for (size_t i = 0; i < nr; i++) {
		unsigned t;

		if (!(top[i] & TOP_ESCAPE))
			continue;
		if (*used == v->nr_escapes)
			return false;
		t = wfs_split_escape(v, (*used)++);
		top[i] = table->tail_top[t];
	}
	return true;
}

static bool is_proven(const struct strand *strand, const struct wfs_split_view *v, size_t used)
{
	u32 wrong = 0;

	for (unsigned k = 0; k < WFS_STRANDS; k++) {
		wrong |= strand[k].p != strand[k].end;
		for (unsigned pos = 0; pos < WFS_LANES; pos++)
			wrong |= strand[k].state[pos] >> 8 ^ 1u;
	}
	return !wrong && used == v->nr_escapes;
}

enum wfs_status wfs_split_decode_scalar(const struct wfs_split_view *v, const struct wfs_decode_pool *pool,
					struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
					const char **reason_ret)
{
	const size_t nr_supers = WFS_CEIL_DIV(v->n, WFS_SUPER);
	const u8 *rest = v->rest;
	const char *reason = WFS_SPLIT_UNPROVEN;
	struct strand strand[WFS_STRANDS];
	u8 unit[WFS_UNIT_MAX_BYTES + WFS_CARRIED], final_l[WFS_CARRIED];
	u16 top[WFS_SUPER];
	size_t used = 0;
	u32 expanded = 0; /* tables whose steps are in scratch */

	for (unsigned k = 0; k < WFS_STRANDS; k++) {
		const u8 *l = v->states + 128 * k, *h = l + 64;

		for (unsigned pos = 0; pos < WFS_LANES; pos++)
			strand[k].state[pos] = (u16)(l[pos] | h[pos] << 8);
		strand[k].p = v->stream[k];
		strand[k].end = v->stream_end[k];
	}
	for (size_t super = 0; super < nr_supers; super++) {
		const bool last = super + 1 == nr_supers;
		const unsigned rows = last ? wfs_last_rows(v->n) : WFS_SUPER_ROWS;
		const unsigned nr = v->seg[super * WFS_SUPER >> pool->seg_log2], mode = wfs_split_mode(v, super);
		const struct wfs_decode_table *table = &pool->table[nr];
		u32 *step = scratch->step[nr], seen = 0;

		if (!(expanded >> nr & 1)) {
			expand_steps(table, step);
			expanded |= 1u << nr;
		}
		for (unsigned row = 0; row < rows; row++) {
			if (!decode_row(&strand[row & 1], step, top + WFS_LANES * row, &seen))
				goto out;
		}
		if (seen & STEP_ESCAPE && !name_escapes(v, table, top, (size_t)WFS_LANES * rows, &used))
			goto out;
		if (last) {
			if (!is_proven(strand, v, used))
				goto out;
			for (unsigned i = 0; i < WFS_CARRIED; i++)
				final_l[i] = (u8)strand[i / WFS_LANES].state[i % WFS_LANES];
			reason = wfs_split_last_rest(v, s, final_l, unit);
			if (reason)
				goto out;
			rest = unit;
		}
		wfs_split_merge(s, mode, top, rest, rows, last ? v->n - super * WFS_SUPER : WFS_SUPER,
				raw + super * WFS_SUPER * s.word);
		rest += wfs_unit_bytes(wfs_split_in_mode(s, mode), rows);
	}
	wfs_split_apply_literals(v, s, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
