/* grid_encode.h - words to grid payloads (FORMAT.md 3): lists, and all of a payload but its codes' own coding. Private.
 */
#ifndef WFS_GRID_ENCODE_H
#define WFS_GRID_ENCODE_H

#include "block.h"
#include "grid_search.h"

/* ---- grid_lists.c ---- */

/* In the order in which they should be tried: a word that fits a list fits denser ones, too. */
enum wfs_grid_list {
	WFS_LIST_E2M1,
	WFS_LIST_FP4, /* of bitsandbytes */
	WFS_LIST_NF4,
	WFS_LIST_INT4,
	WFS_LIST_INT5, /* INT4 with a zero point */
	WFS_LIST_E5M2,
	WFS_LIST_E4M3,
	WFS_LIST_INT8,
	WFS_LIST_INT8_FULL, /* with -128 */
	WFS_NR_LISTS,
};
void wfs_grid_of_list(enum wfs_grid_list list, enum wfs_grid_op op, enum wfs_grid_output output,
		      struct wfs_grid *grid_ret);
/* How the split coding should cut a grid's codes. */
struct wfs_split wfs_grid_code_split(const struct wfs_grid *grid);

/* Up to 256 different words. All zero: none. */
struct wfs_word_set {
	unsigned nr;
	u32 word[WFS_GRID_MAX_BASE];
	u16 slot[4 * WFS_GRID_MAX_BASE]; /* number of a word + 1, or 0 */
};
/* The slot where a word is, or would be. */
static inline u32 wfs_word_set_slot(const struct wfs_word_set *set, u32 word)
{
	u32 at = word * 0x9e3779b1u >> 22; /* 2^32 / golden ratio: spreads neighbours */

	while (set->slot[at] && set->word[set->slot[at] - 1] != word)
		at = (at + 1) % WFS_ARRAY_LEN(set->slot);
	return at;
}
/* Number of a word, or 0 when the set lacks it. */
static inline unsigned wfs_word_set_find(const struct wfs_word_set *set, u32 word)
{
	const unsigned there = set->slot[wfs_word_set_slot(set, word)];

	return there ? there - 1 : 0;
}
/* false: a 257th word. */
static inline bool wfs_word_set_add(struct wfs_word_set *set, u32 word)
{
	u16 *slot = &set->slot[wfs_word_set_slot(set, word)];

	if (*slot)
		return true;
	if (set->nr == WFS_GRID_MAX_BASE)
		return false;
	set->word[set->nr] = word;
	*slot = (u16)++set->nr;
	return true;
}

/* ---- grid_encode.c ---- */

/* A grid made ready for encoding. Read-only once made; shared by all threads. */
struct wfs_grid_encoder {
	struct wfs_grid_values values;
	struct wfs_search_rule rule; /* not of palettes */
	struct wfs_word_set palette;
	bool usable; /* false: a list that the search does not know */
};
void wfs_grid_encoder_make(const struct wfs_grid_values *values, struct wfs_grid_encoder *encoder_ret);

struct wfs_grid_tile {
	u32 first, nr; /* its words in x, zeros behind them included */
	struct wfs_scale_range range;
	u32 scale;
	u8 kind; /* enum wfs_tile_kind */
};
enum {
	WFS_GRID_ENCODE_TILES = 1 << 17,
	WFS_GRID_ENCODE_WORDS = 2 * WFS_GRID_MAX_WORDS, /* with the zeros behind tiles */
	WFS_GRID_ENCODE_SEGMENTS = 1 << 13,
	WFS_GRID_MAX_LITERALS = 1 << 15,
};
/* One thread's working memory. */
struct wfs_grid_buffers {
	u32 nr_segments, nr_tiles, nr_runs, nr_literals;
	u32 low;
	u8 mantissa_bits, scale_bits;
	bool straight; /* tiles follow each other like words */
	struct wfs_grid_run run[WFS_GRID_MAX_WORDS];
	u8 segment[WFS_GRID_ENCODE_SEGMENTS * WFS_GRID_SEGMENT_BYTES];
	struct wfs_grid_tile tile[WFS_GRID_ENCODE_TILES];
	float scale[WFS_GRID_ENCODE_TILES + WFS_GRID_SCALE_SLACK];
	u32 literal[WFS_GRID_MAX_LITERALS];
	u8 code[WFS_GRID_MAX_WORDS + WFS_GRID_CODE_SLACK]; /* the result, in the order of words */
	u8 tile_code[WFS_GRID_ENCODE_WORDS];		   /* in the order of x */
	union {
		u32 x[WFS_GRID_MAX_WORDS]; /* numbers in the order of words */
		u8 raw[WFS_MAX_BLOCK];	   /* the words that the codes give */
	} again;
	_Alignas(64) u32 x[WFS_GRID_ENCODE_WORDS]; /* numbers, tile after tile */
};

/* Finds the codes of the nr_words words at raw, which follow the first `head` bytes of the block at `place`, and what
 * belongs to them: buf->code and the numbers in front. false: the words are not on the grid, but for a few. */
bool wfs_grid_codes(const struct wfs_grid_encoder *encoder, enum wfs_cpu cpu, const struct wfs_place *place,
		    size_t head, const u8 *raw, size_t nr_words, struct wfs_grid_buffers *buf);
/* Bytes of a payload in front of the cut words, and what they are. */
size_t wfs_grid_front_bytes(const struct wfs_grid_encoder *encoder, const struct wfs_grid_buffers *buf);
void wfs_grid_front_write(const struct wfs_grid_encoder *encoder, const struct wfs_grid_buffers *buf, const u8 *raw,
			  u8 *out);

#endif
