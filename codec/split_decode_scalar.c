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
		if (table->run[slot] & 0x80)
			step[slot] |= STEP_ESCAPE;
	}
}

/* State x of a position: byte 0 is L, byte 1 is H. */
struct strand {
	u8 state[WFS_LANES][2];
	const u8 *p, *end;
};

/* Keeps the compiler from looking through v. Without it gcc turns the choice below into a branch, which the processor
 * would guess wrong every third time: four times slower. */
#define HIDE(v) __asm__("" : "+r"(v))

/* One row. Returns false when the stream runs out. */
static bool decode_row(struct strand *k, const u32 *step, u16 *top)
{
	const bool ample = k->end - k->p >= WFS_LANES;
	const u8 *p = k->p;

	for (unsigned pos = 0; ample && pos < WFS_LANES; pos++) {
		const u32 e = step[k->state[pos][0]];
		const u32 x = (u32)(u8)e * k->state[pos][1] + (u8)(e >> 8);
		u32 refilled = x << 8 | *p;

		HIDE(refilled);
		p += x < 256;
		wfs_store16(k->state[pos], (u16)(x < 256 ? refilled : x));
		top[pos] = (u16)(e >> 16);
	}
	for (unsigned pos = 0; !ample && pos < WFS_LANES; pos++) {
		const u32 e = step[k->state[pos][0]];
		u32 x = (u32)(u8)e * k->state[pos][1] + (u8)(e >> 8);

		if (x < 256) {
			if (p == k->end)
				return false;
			x = x << 8 | *p++;
		}
		wfs_store16(k->state[pos], (u16)x);
		top[pos] = (u16)(e >> 16);
	}
	k->p = p;
	return true;
}

/* Replace escapes by what the next nibbles name. Returns false when the escapes run out. */
static bool name_escapes(const struct wfs_split_view *v, const struct wfs_decode_table *table, u16 *top, size_t nr,
			 size_t *used)
{
	const u64 marks = 0x0001000100010001ull * TOP_ESCAPE;

	for (size_t i = 0; i < nr; i += 4) {
		u64 found = wfs_load64(top + i) & marks;

		for (; found; found &= found - 1) {
			if (*used == v->nr_escapes)
				return false;
			top[i + (unsigned)__builtin_ctzll(found) / 16] = table->tail_top[wfs_split_escape(v, *used)];
			++*used;
		}
	}
	return true;
}

static bool is_proven(const struct strand *strand, const struct wfs_split_view *v, size_t used)
{
	u32 wrong = 0;

	for (unsigned k = 0; k < WFS_STRANDS; k++) {
		wrong |= strand[k].p != strand[k].end;
		for (unsigned pos = 0; pos < WFS_LANES; pos++)
			wrong |= strand[k].state[pos][1] ^ 1u;
	}
	return !wrong && used == v->nr_escapes;
}

enum wfs_status wfs_split_decode_scalar(const struct wfs_split_view *v, const struct wfs_decode_pool *pool,
					struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
					const char **reason_ret)
{
	const size_t last = (v->n - 1) / WFS_SUPER;
	const u8 *rest = v->rest;
	const char *reason = WFS_SPLIT_UNPROVEN;
	struct strand strand[WFS_STRANDS];
	u8 final_l[WFS_CARRIED];
	u16 top[WFS_SUPER];
	size_t used = 0;
	u32 expanded = 0; /* tables whose steps are in scratch */

	for (unsigned k = 0; k < WFS_STRANDS; k++) {
		for (unsigned pos = 0; pos < WFS_LANES; pos++) {
			strand[k].state[pos][0] = v->states[128 * k + pos];
			strand[k].state[pos][1] = v->states[128 * k + 64 + pos];
		}
		strand[k].p = v->stream[k];
		strand[k].end = v->stream_end[k];
	}
	for (size_t super = 0; super <= last; super++) {
		const unsigned rows = super == last ? wfs_last_rows(v->n) : WFS_SUPER_ROWS;
		const unsigned nr = v->seg[super * WFS_SUPER >> pool->seg_log2], mode = wfs_split_mode(v, super);
		const struct wfs_decode_table *table = &pool->table[nr];
		u32 *step = scratch->step[nr];

		if (!(expanded >> nr & 1)) {
			expand_steps(table, step);
			expanded |= 1u << nr;
		}
		for (unsigned row = 0; row < rows; row++) {
			if (!decode_row(&strand[row & 1], step, top + WFS_LANES * row))
				goto out;
		}
		if (!name_escapes(v, table, top, (size_t)WFS_LANES * rows, &used))
			goto out;
		if (super == last)
			break; /* its rest bits are in the final states */
		wfs_split_merge(s, mode, top, rest, rows, WFS_SUPER, raw + super * WFS_SUPER * s.word);
		rest += wfs_unit_bytes(wfs_split_in_mode(s, mode), rows);
	}
	if (!is_proven(strand, v, used))
		goto out;
	for (unsigned i = 0; i < WFS_CARRIED; i++)
		final_l[i] = strand[i / WFS_LANES].state[i % WFS_LANES][0];
	reason = wfs_split_finish(v, s, top, final_l, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
