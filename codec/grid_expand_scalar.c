/* grid_expand_scalar.c - the reference expansion of codes to words (FORMAT.md 3.2): every kernel gives the same words.
 */
#include "grid.h"

/* Words of one tile. Long runs look up the words of all 256 codes. */
static u8 *expand_run(const struct wfs_grid_values *g, float scale, const u8 *codes, size_t nr, u8 *raw)
{
	enum { WORTH_A_TABLE = 1024 };
	const unsigned word = wfs_grid_word_bytes(g->output);
	const bool tabled = nr >= WORTH_A_TABLE;
	u32 table[256];

	for (unsigned c = 0; tabled && c < 256; c++)
		table[c] = wfs_grid_word(g, scale, (u8)c);
	for (size_t i = 0; i < nr; i++, raw += word) {
		const u32 w = tabled ? table[codes[i]] : wfs_grid_word(g, scale, codes[i]);

		if (word == 2)
			wfs_store16(raw, (u16)w);
		else
			wfs_store32(raw, w);
	}
	return raw;
}

void wfs_grid_expand_scalar(const struct wfs_grid_view *v, const struct wfs_grid_values *g, const u8 *codes,
			    const float *scale, u8 *raw)
{
	if (g->op == WFS_GRID_PALETTE) {
		expand_run(g, 1, codes, v->n, raw);
		return;
	}
	for (u32 i = 0; i < v->nr_segments; i++) {
		const struct wfs_grid_segment s =
			wfs_grid_segment_load(v->segments + WFS_GRID_SEGMENT_BYTES * (size_t)i);
		struct wfs_grid_walk walk = wfs_grid_walk_start(&s);
		struct wfs_grid_run run;

		while (wfs_grid_walk_next(&walk, &run)) {
			raw = expand_run(g, scale[run.tile], codes, run.nr_words, raw);
			codes += run.nr_words;
		}
		scale += wfs_grid_nr_tiles(&s);
	}
}
