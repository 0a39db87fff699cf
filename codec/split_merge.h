/* split_merge.h - what all decoders of the split coding share: scratch memory, putting rest bits and field together,
 * and the end of a payload. Private to the kernels and block_decode.c.
 */
#ifndef WFS_SPLIT_MERGE_H
#define WFS_SPLIT_MERGE_H

#include "grid.h"
#include "split.h"

enum {
	/* Most rest bytes of a unit: 63 bits of 512 words, or a byte a plane of 7 rows. */
	WFS_UNIT_MAX_BYTES = 64 * 63,
	/* What a vector kernel may read behind the streams, and, twice that, behind the escapes in scratch. It looks
	 * after each unit of 8 rows whether they ran out: 4 rows of 64 bytes of a stream, and a load of 64. */
	WFS_VECTOR_SLACK = 5 * 64,
};

/* One thread's memory for decoding. */
struct wfs_scratch {
	union {
		/* the block's escapes as symbol names WFS_TAIL_BASE + nibble */
		_Alignas(64) u8 escape[WFS_MAX_BLOCK + 2 * WFS_VECTOR_SLACK];
		/* of the tiles of a grid, once its codes are decoded */
		float scale[WFS_GRID_MAX_TILES + WFS_GRID_SCALE_SLACK];
		/* records in part order, which the wide coding has decoded */
		u8 part[WFS_MAX_BLOCK];
	};
	/* the codes of a grid */
	_Alignas(64) u8 code[WFS_GRID_MAX_WORDS + WFS_GRID_CODE_SLACK];
	/* which positions of a row are escapes */
	_Alignas(64) u64 escape_mask[WFS_MAX_BLOCK / WFS_LANES];
	/* Shuffles that spread the next bytes of a stream over 16 positions: spread[0][m] + spread[1][n], bytewise, for
	 * the positions set in the masks m (0 to 7) and n (8 to 15). A position that is not set gets 0x80 or more. */
	_Alignas(64) u64 spread[2][256][2];
	/* the scalar decoder's table a slot (split_decode_scalar.c) */
	u32 step[WFS_MAX_TABLES][256];
};

void wfs_split_scratch_init(struct wfs_scratch *scratch);

/* The one reason for everything that only decoding can show: states, streams or escapes end elsewhere than they must.
 * Vector kernels see these at the end only, so they are not told apart. */
#define WFS_SPLIT_UNPROVEN "coded words do not end in their proof"

/* Words of one unit: top[position of row 0, 1, ...] is the field as the top 16 bits of a rotated word, rest the unit's
 * rest bytes. Writes nr_words words (the unit's first) at raw. */
void wfs_split_merge(struct wfs_split s, unsigned mode, const u16 *top, const u8 *rest, unsigned rows, size_t nr_words,
		     u8 *raw);

/* The end of a block of n words, whatever coded their fields: the last unit's words, from their fields and their rest
 * bytes; then the literals. raw: of the block. Returns NULL, or why the block is refused. */
const char *wfs_words_finish(struct wfs_split s, unsigned mode, size_t n, const u16 *top, const u8 *unit,
			     const u8 *literals, size_t nr_literals, u8 *raw);

/* The same for a split payload, some of whose rest bytes are in the final states' L bytes (strand 0, strand 1). */
const char *wfs_split_finish(const struct wfs_split_view *v, struct wfs_split s, const u16 *top,
			     const u8 final_l[WFS_CARRIED], u8 *raw);

/* The mode of a superrow. */
static inline unsigned wfs_split_mode(const struct wfs_split_view *v, size_t super)
{
	return v->nr_modes ? v->mode[super] : 0;
}

/* Escape number i. */
static inline unsigned wfs_split_escape(const struct wfs_split_view *v, size_t i)
{
	return v->escapes[i / 2] >> (4 * (i & 1)) & 15;
}

#endif
