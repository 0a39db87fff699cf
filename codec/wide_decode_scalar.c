/* wide_decode_scalar.c - the reference decoder of the wide coding: every other kernel must give the same bytes or the
 * same refusal.
 *
 * A step is one look-up by the state's low 12 bits. Positions depend on each other only through the stream pointer,
 * which advances without a branch; near the end of the stream every u16 is checked.
 */
#include "wide_decode.h"

/* Keeps the compiler from looking through v. Without it gcc turns the choice below into a branch, which the processor
 * would guess wrong every other time. */
#define HIDE(v) __asm__("" : "+r"(v))

/* The state of a lane moved on by a slot's entry, before it takes bits: at most 4095 * (2^20 - 1) + 4094. */
static WFS_ALWAYS_INLINE u32 step(u32 x, u32 entry)
{
	return (entry >> 8 & 0xfff) * (x >> WFS_WIDE_BITS) + (entry >> 20);
}

bool wfs_wide_row_careful(struct wfs_wide_state *state, const struct wfs_wide_view *v,
			  const struct wfs_wide_decode_pool *pool, const u32 offset[WFS_LANES], u8 name[WFS_LANES])
{
	for (unsigned pos = 0; pos < WFS_LANES; pos++) {
		u32 *lane = &state->lane[pos % WFS_WIDE_LANES];
		const u32 entry = pool->slot[0][offset[pos] + *lane % WFS_WIDE_SLOTS];
		u32 x = step(*lane, entry);

		if (x < WFS_WIDE_STATE_MIN) {
			if (state->p == v->stream_end)
				return false;
			x = x << 16 | wfs_load16(state->p);
			state->p += 2;
		}
		*lane = x;
		name[pos] = (u8)entry;
	}
	return true;
}

/* A row of one table, with WFS_WIDE_ROW_BYTES of stream left. */
static void row_ample(struct wfs_wide_state *state, const u32 *slot, u8 name[WFS_LANES])
{
	const u8 *p = state->p;

	for (unsigned pos = 0; pos < WFS_LANES; pos++) {
		u32 *lane = &state->lane[pos % WFS_WIDE_LANES];
		const u32 entry = slot[*lane % WFS_WIDE_SLOTS];
		const u32 x = step(*lane, entry);
		u32 refilled = x << 16 | wfs_load16(p);

		HIDE(refilled);
		p += x < WFS_WIDE_STATE_MIN ? 2 : 0;
		*lane = x < WFS_WIDE_STATE_MIN ? refilled : x;
		name[pos] = (u8)entry;
	}
	state->p = p;
}

bool wfs_wide_is_proven(const struct wfs_wide_state *state, const struct wfs_wide_view *v, size_t used_escapes)
{
	u32 wrong = 0;

	for (unsigned i = 0; i < WFS_WIDE_LANES; i++)
		wrong |= state->lane[i] ^ WFS_WIDE_STATE_MIN;
	return !wrong && state->p == v->stream_end && used_escapes == v->nr_escapes;
}

/* The tables of the positions of a row that begins at word `first`; the cursor moves to the segment of its last. */
static void row_offsets(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool, struct wfs_split s,
			size_t first, struct wfs_wide_cursor *c, u32 offset[WFS_LANES])
{
	u32 of_word[WFS_LANES];

	for (unsigned i = 0; i < WFS_LANES; i++) {
		if (first + i == c->end && c->end < v->n)
			wfs_wide_cursor_next(c, v, pool);
		of_word[i] = c->table * WFS_WIDE_SLOTS;
	}
	for (unsigned pos = 0; pos < WFS_LANES; pos++)
		offset[pos] = of_word[wfs_lane_word(s.word, pos)];
}

/* Names to field values as the top 16 bits of rotated words. False: the escapes run out. */
static bool name_fields(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool, const u8 *name,
			size_t nr, u16 *top, size_t *used)
{
	const unsigned up = 16u - pool->field;

	for (size_t i = 0; i < nr; i++)
		top[i] = (u16)((pool->base + name[i]) << up);
	for (size_t i = 0; i < nr; i += 8) {
		/* A byte of all ones, and perhaps some above it, give a high bit. */
		const u64 full = ~wfs_load64(name + i);

		if (!((full - 0x0101010101010101ull) & ~full & 0x8080808080808080ull))
			continue;
		for (size_t k = i; k < i + 8; k++) {
			if (name[k] != WFS_WIDE_ESCAPE)
				continue;
			if (*used == v->nr_escapes)
				return false;
			top[k] = pool->tail_top[v->escapes[(*used)++]];
		}
	}
	return true;
}

enum wfs_status wfs_wide_decode_scalar(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool,
				       struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
				       const char **reason_ret)
{
	const size_t last = (v->n - 1) / WFS_SUPER;
	struct wfs_wide_cursor cursor = wfs_wide_cursor_start(v, pool);
	struct wfs_wide_state state = {.p = v->stream};
	const char *reason = WFS_SPLIT_UNPROVEN;
	const u8 *rest = v->rest;
	u8 name[WFS_SUPER];
	u16 top[WFS_SUPER];
	size_t used = 0;

	(void)scratch;
	memcpy(state.lane, v->states, sizeof(state.lane));
	for (size_t super = 0; super <= last; super++) {
		const unsigned rows = super == last ? wfs_last_rows(v->n) : WFS_SUPER_ROWS;
		const unsigned mode = v->nr_modes ? v->mode[super] : 0;

		for (unsigned row = 0; row < rows; row++) {
			const size_t first = super * WFS_SUPER + row * WFS_LANES;
			u32 offset[WFS_LANES];

			if (first == cursor.end)
				wfs_wide_cursor_next(&cursor, v, pool);
			if (cursor.end - first >= WFS_LANES && v->stream_end - state.p >= WFS_WIDE_ROW_BYTES) {
				row_ample(&state, pool->slot[cursor.table], name + WFS_LANES * row);
				continue;
			}
			row_offsets(v, pool, s, first, &cursor, offset);
			if (!wfs_wide_row_careful(&state, v, pool, offset, name + WFS_LANES * row))
				goto out;
		}
		if (!name_fields(v, pool, name, (size_t)WFS_LANES * rows, top, &used))
			goto out;
		if (super < last)
			wfs_split_merge(s, mode, top, rest, rows, WFS_SUPER, raw + super * WFS_SUPER * s.word);
		else if (wfs_wide_is_proven(&state, v, used))
			reason = wfs_words_finish(s, mode, v->n, top, rest, v->literals, v->nr_literals, raw);
		rest += wfs_unit_bytes(wfs_split_in_mode(s, mode), rows);
	}
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
