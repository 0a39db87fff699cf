/* block.h - one block's payload: decode (block_decode.c) and encode (block_encode.c) whatever its coding. Private.
 *
 * Nothing here knows files, regions or threads: the container code (reader.c, encode_file.c) hands over coder, pool and
 * bytes. The hash of the decoded bytes is checked by wfs_block_decode in reader.c, in one place for every variant.
 */
#ifndef WFS_BLOCK_H
#define WFS_BLOCK_H

#include "geometry.h"
#include "grid.h"
#include "records.h"
#include "split.h"
#include "wide.h"

/* FORMAT.md 1.4, checked. */
struct wfs_coder {
	u8 coding, word, rot, field;
	u16 pool, grid;
	u8 border[WFS_MAX_BORDERS];
};
/* What it decodes with: a pool, a wide pool, a grid. */
static inline bool wfs_coding_is_split(unsigned coding)
{
	return coding == WFS_SPLIT || coding == WFS_GRID;
}
static inline bool wfs_coding_is_wide(unsigned coding)
{
	return coding == WFS_WIDE || coding == WFS_GRID_WIDE || coding == WFS_RECORDS;
}
static inline bool wfs_coding_is_grid(unsigned coding)
{
	return coding == WFS_GRID || coding == WFS_GRID_WIDE;
}
/* The split of the words that its pool codes: codes and the bytes of records are words of one byte. */
static inline struct wfs_split wfs_coder_split(const struct wfs_coder *coder)
{
	const bool bytes = wfs_coding_is_grid(coder->coding) || coder->coding == WFS_RECORDS;

	return wfs_split_make(bytes ? 1 : coder->word, coder->rot, coder->field);
}
/* The records of a coder of records. */
static inline struct wfs_records wfs_coder_records(const struct wfs_coder *coder)
{
	struct wfs_records r = {.bytes = coder->word};

	memcpy(r.border, coder->border, sizeof(r.border));
	return r;
}

/* Bytes of the words cut by a block's borders (FORMAT.md 1.5). phase: place of the block's first byte in its word. */
struct wfs_block_cut {
	size_t head, nr_words, tail;
};
static inline struct wfs_block_cut wfs_block_cut(unsigned word, unsigned phase, size_t raw_len)
{
	unsigned q = phase % word;
	size_t head = WFS_MIN((size_t)((word - q) % word), raw_len);
	size_t nr_words = (raw_len - head) / word;
	return (struct wfs_block_cut){head, nr_words, raw_len - head - nr_words * word};
}

/* ---- decode: block_decode.c ---- */

/* The decoders of one CPU variant. */
struct wfs_kernels {
	wfs_split_decode_fn *split;
	wfs_wide_decode_fn *wide;
	wfs_grid_unpack_fn *grid_scales;
	wfs_grid_expand_fn *grid;
};
/* Those of a variant that this machine supports; where it has none of its own, the scalar one. */
struct wfs_kernels wfs_kernels_for(enum wfs_cpu cpu);

/* What a coder decodes with, ready made; NULL what it does not need. */
struct wfs_decode_tables {
	const struct wfs_decode_pool *split;
	const struct wfs_wide_decode_pool *wide;
	const struct wfs_grid_values *grid;
};

/* comp[0..comp_len) -> raw[0..raw_len), or a refusal with *reason_ret. scratch: the calling thread's. Reads and writes
 * nothing outside the two ranges. */
enum wfs_status wfs_payload_decode(const struct wfs_coder *coder, const struct wfs_decode_tables *tables,
				   const struct wfs_kernels *kernels, unsigned phase, const u8 *comp, size_t comp_len,
				   u8 *raw, size_t raw_len, struct wfs_scratch *scratch, const char **reason_ret);

/* ---- encode: train.c, split_encode*.c, block_encode.c ---- */

/* Trains a pool of tables from segments of words of one split. Integer arithmetic only: the same pool on every machine.
 * One thread. */
struct wfs_trainer;
enum {
	WFS_TRAIN_SAMPLES = 6000, /* worth adding; more are ignored */
	WFS_TRAIN_WORDS = 2048,	  /* of a sample, at most: the longest segments that are considered */
};
struct wfs_trainer *wfs_trainer_new(struct wfs_split s);
/* Words that the next sample should have, WFS_TRAIN_WORDS or fewer. */
unsigned wfs_trainer_wanted(const struct wfs_trainer *t);
/* Adds one sample: nr_words <= WFS_TRAIN_WORDS consecutive whole words at raw (any alignment). */
void wfs_trainer_add(struct wfs_trainer *t, const u8 *raw, size_t nr_words);
/* Makes the pool, with segments of 2^min_seg_log2 words or more, 9..11. Nothing added: a pool of one valid table.
 * WFS_NO_MEMORY. */
enum wfs_status wfs_trainer_finish(struct wfs_trainer *t, unsigned min_seg_log2, struct wfs_pool *pool_ret);
void wfs_trainer_free(struct wfs_trainer *t);

/* A pool made ready for encoding. Read-only once made; shared by all threads. */
struct wfs_encode_pool;
struct wfs_encode_pool *wfs_encode_pool_new(const struct wfs_pool *pool, struct wfs_split s);
void wfs_encode_pool_free(struct wfs_encode_pool *pool);

/* One thread's working memory for encoding. */
struct wfs_encode_scratch;
struct wfs_encode_scratch *wfs_encode_scratch_new(void);
void wfs_encode_scratch_free(struct wfs_encode_scratch *scratch);

/* Where a block lies. */
struct wfs_place {
	u64 raw_off;			     /* of its first byte in the file */
	u64 phase;			     /* bytes since a word began, of whatever coder */
	const struct wfs_geometry *geometry; /* the file's matrices, or NULL */
	/* Segments of a grid payload as they were stored once, instead of those that follow from the geometry; or NULL.
	 */
	const u8 *segments;
	u32 nr_segments;
};

/* What a coder encodes with, ready made; NULL what it does not need. */
struct wfs_grid_encoder;
struct wfs_encode_tables {
	const struct wfs_grid_encoder *grid;
	const struct wfs_encode_pool *split;
	const struct wfs_wide_encode_pool *wide;
};

/* Encode with exactly this coder. comp has room for raw_len bytes. Returns the payload's bytes, < raw_len, or raw_len
 * when the coding cannot express the block or does not make it smaller (comp is then undefined). cpu: not AUTO; every
 * one gives the same bytes. */
size_t wfs_payload_encode(const struct wfs_coder *coder, const struct wfs_encode_tables *tables, enum wfs_cpu cpu,
			  const struct wfs_place *place, const u8 *raw, size_t raw_len, u8 *comp,
			  struct wfs_encode_scratch *scratch);

/* True when raw repeats its first 8 bytes (shorter: always false below 8 bytes). */
bool wfs_is_constant(const u8 *raw, size_t raw_len);

#endif
