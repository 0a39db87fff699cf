/* wide_decode_scalar.c - the reference decoder of the wide coding: every other kernel must give the same bytes or the
 * same refusal.
 *
 * A step is two look-ups, by the state's low 12 bits and by the name found there. Positions depend on each other only
 * through the stream pointer, which advances without a branch; near the end of the stream every u16 is checked.
 */
#include "wide_decode.h"

/* The state of a lane moved on by the entry of its slot, before it takes bits: at most 4095 * (2^20 - 1) + 4094. */
static WFS_ALWAYS_INLINE u32 step(u32 x, u32 entry)
{
	return (entry >> 8 & 0xfff) * (x >> WFS_WIDE_BITS) + x % WFS_WIDE_SLOTS - (entry >> 20);
}

bool wfs_wide_row_careful(struct wfs_wide_state *state, const u8 *stream_end,
			  const struct wfs_wide_decode_table *const of[WFS_LANES], u8 name[WFS_LANES])
{
	for (unsigned pos = 0; pos < WFS_LANES; pos++) {
		u32 *lane = &state->lane[pos % WFS_WIDE_LANES];
		u32 x;

		name[pos] = of[pos]->name[*lane % WFS_WIDE_SLOTS];
		x = step(*lane, of[pos]->entry[name[pos]]);
		if (x < WFS_WIDE_STATE_MIN) {
			if (state->p == stream_end)
				return false;
			x = x << 16 | wfs_load16(state->p);
			state->p += 2;
		}
		*lane = x;
	}
	return true;
}

/* A row with WFS_WIDE_ROW_BYTES of stream left. one: its only table; NULL: of[] has them. */
static WFS_ALWAYS_INLINE void row_ample(struct wfs_wide_state *state, const struct wfs_wide_decode_table *one,
					const struct wfs_wide_decode_table *const *of, u8 name[WFS_LANES])
{
	const u8 *p = state->p;

	for (unsigned pos = 0; pos < WFS_LANES; pos++) {
		const struct wfs_wide_decode_table *table = one ? one : of[pos];
		u32 *lane = &state->lane[pos % WFS_WIDE_LANES];
		const u8 found = table->name[*lane % WFS_WIDE_SLOTS];
		const u32 x = step(*lane, table->entry[found]);
		/* All ones when the state is too small. As a choice it would become a branch, guessed wrong every third
		 * time. */
		const u32 need = (u32)(((u64)x - WFS_WIDE_STATE_MIN) >> 32);

		*lane = x ^ ((x ^ (x << 16 | wfs_load16(p))) & need);
		p += need & 2;
		name[pos] = found;
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

void wfs_wide_row_tables(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool, struct wfs_split s,
			 size_t first, struct wfs_wide_cursor *c, const struct wfs_wide_decode_table *of[WFS_LANES])
{
	const struct wfs_wide_decode_table *of_word[WFS_LANES];

	for (unsigned i = 0; i < WFS_LANES; i++) {
		if (first + i == c->end && c->end < v->n)
			wfs_wide_cursor_next(c, v, pool);
		of_word[i] = &pool->table[c->table];
	}
	for (unsigned pos = 0; pos < WFS_LANES; pos++)
		of[pos] = of_word[wfs_lane_word(s.word, pos)];
}

/* The names of a row that begins at word `first`. False: the stream runs out. */
static bool decode_row(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool, struct wfs_split s,
		       size_t first, struct wfs_wide_cursor *c, struct wfs_wide_state *state, u8 name[WFS_LANES])
{
	const bool ample = v->stream_end - state->p >= WFS_WIDE_ROW_BYTES;
	const struct wfs_wide_decode_table *of[WFS_LANES];

	if (first == c->end)
		wfs_wide_cursor_next(c, v, pool);
	if (ample && c->end - first >= WFS_LANES) {
		row_ample(state, &pool->table[c->table], NULL, name);
		return true;
	}
	wfs_wide_row_tables(v, pool, s, first, c, of);
	if (!ample)
		return wfs_wide_row_careful(state, v->stream_end, of, name);
	row_ample(state, NULL, of, name);
	return true;
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
			const size_t at = WFS_LANES * row;

			if (!decode_row(v, pool, s, super * WFS_SUPER + at, &cursor, &state, name + at))
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
