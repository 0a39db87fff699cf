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

bool wfs_wide_row_careful(const struct wfs_wide_walk *walk, const struct wfs_wide_decode_table *one,
			  struct wfs_wide_state *state, u8 name[WFS_LANES])
{
	for (unsigned pos = 0; pos < WFS_LANES; pos++) {
		const struct wfs_wide_decode_table *table = one ? one : walk->of[pos];
		u32 *lane = &state->lane[pos % WFS_WIDE_LANES];
		u32 x;

		name[pos] = table->name[*lane % WFS_WIDE_SLOTS];
		x = step(*lane, table->entry[name[pos]]);
		if (x < WFS_WIDE_STATE_MIN) {
			if (state->p == walk->v->stream_end)
				return false;
			x = x << 16 | wfs_load16(state->p);
			state->p += 2;
		}
		*lane = x;
	}
	return true;
}

/* A row with WFS_WIDE_ROW_BYTES of stream left. one: its only table; NULL: of[] has them. */
static WFS_ALWAYS_INLINE void row_ample(const struct wfs_wide_decode_table *one,
					const struct wfs_wide_decode_table *const *of, struct wfs_wide_state *state,
					u8 name[WFS_LANES])
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

/* The names of the row that begins at word `first`. False: the stream runs out. */
static bool decode_row(struct wfs_wide_walk *walk, size_t first, struct wfs_wide_state *state, u8 name[WFS_LANES])
{
	const struct wfs_wide_decode_table *one = wfs_wide_walk_row(walk, first);

	if (walk->v->stream_end - state->p < WFS_WIDE_ROW_BYTES)
		return wfs_wide_row_careful(walk, one, state, name);
	if (one)
		row_ample(one, NULL, state, name);
	else
		row_ample(NULL, walk->of, state, name);
	return true;
}

/* ---- what kernels share ---- */

struct wfs_wide_walk wfs_wide_walk_start(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool,
					 struct wfs_split s)
{
	struct wfs_wide_walk walk = {.v = v, .pool = pool, .cursor = wfs_wide_cursor_start(v, pool)};

	for (unsigned pos = 0; pos < WFS_LANES; pos++)
		walk.lane_word[pos] = (u8)wfs_lane_word(s.word, pos);
	return walk;
}

void wfs_wide_walk_mixed(struct wfs_wide_walk *walk, size_t first)
{
	const size_t end = WFS_MIN(first + WFS_LANES, walk->v->n);
	const struct wfs_wide_decode_table *of_word[WFS_LANES];

	for (size_t from = 0;;) {
		const size_t to = walk->cursor.end >= end ? WFS_LANES : walk->cursor.end - first;

		for (; from < to; from++)
			of_word[from] = &walk->pool->table[walk->cursor.table];
		if (to == WFS_LANES)
			break;
		wfs_wide_cursor_next(&walk->cursor, walk->v, walk->pool);
	}
	for (unsigned pos = 0; pos < WFS_LANES; pos++)
		walk->of[pos] = of_word[walk->lane_word[pos]];
}

/* Whether all states are where the encoder started, stream and escapes used up. */
static bool is_proven(const struct wfs_wide_walk *walk, const struct wfs_wide_state *state)
{
	u32 wrong = 0;

	for (unsigned i = 0; i < WFS_WIDE_LANES; i++)
		wrong |= state->lane[i] ^ WFS_WIDE_STATE_MIN;
	return !wrong && state->p == walk->v->stream_end && walk->used_escapes == walk->v->nr_escapes;
}

const char *wfs_wide_finish(const struct wfs_wide_walk *walk, const struct wfs_wide_state *state, struct wfs_split s,
			    const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)
{
	const struct wfs_wide_view *v = walk->v;
	u16 top[WFS_SUPER];

	if (!is_proven(walk, state))
		return WFS_SPLIT_UNPROVEN;
	for (unsigned i = 0; i < WFS_LANES * wfs_last_rows(v->n); i++)
		top[i] = (u16)(f->hi[i] << 8 | f->lo[i]);
	return wfs_words_finish(s, v->nr_modes ? v->mode[(v->n - 1) / WFS_SUPER] : 0, v->n, top, rest, v->literals,
				v->nr_literals, raw);
}

/* ---- the scalar kernel ---- */

/* Names of whole rows to field values as the top 16 bits of rotated words. False: the escapes run out. */
static bool name_fields(struct wfs_wide_walk *walk, const u8 *name, size_t nr, u16 *top)
{
	const unsigned up = 16u - walk->pool->field, base = walk->pool->base;
	const u64 ones = 0x0101010101010101, high = 0x8080808080808080;

	for (size_t i = 0; i < nr; i++)
		top[i] = (u16)((base + name[i]) << up);
	for (size_t i = 0; i < nr; i += 8) {
		/* Names of 255 are zero bytes now: they borrow from above. */
		const u64 inverted = ~wfs_load64(name + i);

		if (wfs_likely(!((inverted - ones) & ~inverted & high)))
			continue;
		for (size_t k = i; k < i + 8; k++) {
			if (name[k] != WFS_WIDE_ESCAPE)
				continue;
			if (walk->used_escapes == walk->v->nr_escapes)
				return false;
			top[k] = walk->pool->tail_top[walk->v->escapes[walk->used_escapes++]];
		}
	}
	return true;
}

enum wfs_status wfs_wide_decode_scalar(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool,
				       struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
				       const char **reason_ret)
{
	const size_t last = (v->n - 1) / WFS_SUPER;
	struct wfs_wide_walk walk = wfs_wide_walk_start(v, pool, s);
	struct wfs_wide_state state = {.p = v->stream};
	const char *reason = WFS_SPLIT_UNPROVEN;
	const u8 *rest = v->rest;
	u8 name[WFS_SUPER];
	u16 top[WFS_SUPER];

	(void)scratch;
	memcpy(state.lane, v->states, sizeof(state.lane));
	for (size_t super = 0; super <= last; super++) {
		const unsigned rows = super == last ? wfs_last_rows(v->n) : WFS_SUPER_ROWS;
		const unsigned mode = v->nr_modes ? v->mode[super] : 0;

		for (unsigned at = 0; at < WFS_LANES * rows; at += WFS_LANES)
			if (!decode_row(&walk, super * WFS_SUPER + at, &state, name + at))
				goto out;
		if (!name_fields(&walk, name, (size_t)WFS_LANES * rows, top))
			goto out;
		if (super < last)
			wfs_split_merge(s, mode, top, rest, rows, WFS_SUPER, raw + super * WFS_SUPER * s.word);
		else if (is_proven(&walk, &state))
			reason = wfs_words_finish(s, mode, v->n, top, rest, v->literals, v->nr_literals, raw);
		rest += wfs_unit_bytes(wfs_split_in_mode(s, mode), rows);
	}
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
