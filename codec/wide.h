/* wide.h - the wide coding (FORMAT.md section 4): shared shapes of its pools, payloads and kernels. Private.
 *
 * The same rANS as in split.h, in another size: states of 32 bits, slots of 12, refilled by 16 bits; 32 lanes take the
 * positions of a row in two steps. Symbols are named by a byte: field value - base of the pool, modulo 2^field; 255 is
 * the escape. Words, rest bits and modes are those of the split coding.
 */
#ifndef WFS_WIDE_H
#define WFS_WIDE_H

#include "geometry.h"
#include "split.h"

enum {
	WFS_WIDE_LANES = 32,
	WFS_WIDE_MAX_TABLES = 32,
	WFS_WIDE_BITS = 12,
	WFS_WIDE_SLOTS = 1 << WFS_WIDE_BITS,
	WFS_WIDE_ESCAPE = 255, /* the escape's name; names of values are below */
	WFS_WIDE_NAMES = 256,
	WFS_WIDE_MAX_TAIL = 255,
	WFS_WIDE_LITERAL = 255, /* the escape byte that names no value of the tail */
	WFS_WIDE_HEADER = 12,
	WFS_WIDE_POOL_HEADER = 6,
	WFS_WIDE_STATE_BYTES = 4 * WFS_WIDE_LANES,
	WFS_WIDE_STATE_MIN = 1 << 16, /* states below take 16 bits; where the encoder starts */
	WFS_WIDE_MAX_GROUPS = 255,
	WFS_WIDE_GROUP_BYTES = 5,
	WFS_WIDE_MIN_SEG = 64,
	WFS_WIDE_MAX_SEG = 0xffff,
	/* segments of a block: each group may have one that is cut short at either end */
	WFS_WIDE_MAX_SEGS = WFS_MAX_BLOCK / WFS_WIDE_MIN_SEG + 2 * WFS_WIDE_MAX_GROUPS,
};

/* ---- pools: wide_pool.c ---- */

/* A pool as stored (FORMAT.md 4.1), checked. */
struct wfs_wide_pool {
	u8 nr_tables, field, ntail;
	u16 base;		     /* field value of name 0 */
	u16 tail[WFS_WIDE_MAX_TAIL]; /* field values that escapes name */
	/* slots of each name, the escape's last; they sum up to 4096, none has them all */
	u16 freq[WFS_WIDE_MAX_TABLES][WFS_WIDE_NAMES];
};

/* A table made ready for decoding: what slots stand for, and of each name: name | frequency << 8 | first slot << 20.
 * Two look-ups in 5 KiB are faster than one in 16, of which the first cache level holds but two. */
struct wfs_wide_decode_table {
	_Alignas(64) u8 name[WFS_WIDE_SLOTS];
	u32 entry[WFS_WIDE_NAMES];
};

/* A pool made ready for decoding. Read-only once made; shared by all threads. */
struct wfs_wide_decode_pool {
	u8 nr_tables, field, number_bits; /* of a table number in a payload */
	u16 base;
	u16 tail_top[WFS_WIDE_NAMES];	      /* by escape byte: the value as the top 16 bits of a rotated word */
	struct wfs_wide_decode_table table[]; /* nr_tables */
};

/* Bits of a table number in a payload. */
static inline unsigned wfs_wide_number_bits(unsigned nr_tables)
{
	return nr_tables > 1 ? 32 - (unsigned)__builtin_clz(nr_tables - 1) : 0;
}

/* parse: comp bytes -> checked pool, *used_ret bytes eaten. write: returns bytes; out has room for
 * WFS_WIDE_POOL_MAX_BYTES. decode_pool_new: the caller frees with free(); NULL: out of memory. */
enum {
	WFS_WIDE_POOL_MAX_BYTES =
		6 + 2 * WFS_WIDE_MAX_TAIL + WFS_WIDE_MAX_TABLES * (2 + WFS_WIDE_NAMES + WFS_WIDE_SLOTS / 128)
};
enum wfs_status wfs_wide_pool_parse(const u8 *comp, size_t comp_len, struct wfs_wide_pool *pool_ret, size_t *used_ret,
				    const char **reason_ret);
size_t wfs_wide_pool_write(const struct wfs_wide_pool *pool, u8 *out);
struct wfs_wide_decode_pool *wfs_wide_decode_pool_new(const struct wfs_wide_pool *pool);
/* Its size. */
static inline size_t wfs_wide_decode_pool_bytes(unsigned nr_tables)
{
	return sizeof(struct wfs_wide_decode_pool) + nr_tables * sizeof(struct wfs_wide_decode_table);
}

/* ---- decode: wide_parse.c, wide_decode_*.c ---- */

/* A wide payload whose layout has been checked. Pointers into the payload. */
struct wfs_wide_view {
	size_t n; /* words, at least 1 */
	u32 nr_escapes, nr_literals, nr_modes, nr_groups, phase;
	const u8 *groups, *numbers, *states, *stream, *stream_end, *escapes, *literals, *rest, *edges;
	size_t rest_len;
	u8 mode[WFS_MAX_SUPERS]; /* mode of each superrow; filled only when nr_modes > 0 */
};

/* Check a payload's layout against every rule of FORMAT.md 4.2 and fill the view. edge_len: bytes of cut words expected
 * at the end. */
enum wfs_status wfs_wide_parse(const u8 *comp, size_t comp_len, struct wfs_split s,
			       const struct wfs_wide_decode_pool *pool, size_t n, size_t edge_len,
			       struct wfs_wide_view *v, const char **reason_ret);

/* One decoder; as wfs_split_decode_fn. */
typedef enum wfs_status wfs_wide_decode_fn(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool,
					   struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
					   const char **reason_ret);
wfs_wide_decode_fn wfs_wide_decode_scalar;
/* NULL when this build has no such kernel. The CPU must support it. */
wfs_wide_decode_fn *wfs_wide_decode_ssse3_get(void);
wfs_wide_decode_fn *wfs_wide_decode_avx2_get(void);
wfs_wide_decode_fn *wfs_wide_decode_avx512vbmi_get(void);
wfs_wide_decode_fn *wfs_wide_decode_neon_get(void);

/* ---- encode: wide_train.c, wide_encode*.c ---- */

/* Words of a segment in a matrix of cols columns: segments follow rows. cols = 0: no matrix. */
unsigned wfs_wide_segment_words(u64 cols);

/* How a block's words are cut in segments (FORMAT.md 4.2). */
struct wfs_wide_groups {
	unsigned nr, phase;
	struct {
		u32 first;
		u16 seg_len;
	} group[WFS_WIDE_MAX_GROUPS];
};
/* The cut for nr_words words of `word` bytes in the file, the first of them at raw_off. geometry: the file's matrices,
 * or NULL. */
void wfs_wide_groups_find(const struct wfs_geometry *geometry, u64 raw_off, unsigned word, size_t nr_words,
			  struct wfs_wide_groups *groups_ret);

/* Trains a pool from segments of words. Chooses how many bits the field has, too: at least those of `base`. nr_words:
 * how many words the pool is for, of which those added are a sample. Integer arithmetic only: the same pool on every
 * machine. One thread. NULL: out of memory. */
struct wfs_wide_trainer;
enum { WFS_WIDE_TRAIN_SEGMENTS = 6000, /* segments worth adding; more are ignored */ WFS_WIDE_TRAIN_WORDS = 8192 };
struct wfs_wide_trainer *wfs_wide_trainer_new(struct wfs_split base, u64 nr_words);
/* Adds one segment: nr_words <= WFS_WIDE_TRAIN_WORDS whole words at raw (any alignment). */
void wfs_wide_trainer_add(struct wfs_wide_trainer *t, const u8 *raw, size_t nr_words);
/* Makes the pool and the split it is for. Nothing added: a pool of one valid table. WFS_NO_MEMORY. */
enum wfs_status wfs_wide_trainer_finish(struct wfs_wide_trainer *t, struct wfs_wide_pool *pool_ret,
					struct wfs_split *split_ret);
void wfs_wide_trainer_free(struct wfs_wide_trainer *t);

/* A pool made ready for encoding words of a split. Read-only once made; shared by all threads. NULL: out of memory. */
struct wfs_wide_encode_pool;
struct wfs_wide_encode_pool *wfs_wide_encode_pool_new(const struct wfs_wide_pool *pool, struct wfs_split s);
void wfs_wide_encode_pool_free(struct wfs_wide_encode_pool *pool);

/* Words of a block -> payload without the bytes of cut words; as wfs_split_encode. */
struct wfs_encode_kernel;
struct wfs_encode_buffers;
size_t wfs_wide_encode(const struct wfs_wide_encode_pool *pool, const struct wfs_encode_kernel *kernel,
		       const struct wfs_wide_groups *groups, const u8 *raw, size_t nr_words, u8 *comp, size_t room,
		       struct wfs_encode_buffers *buf);

#endif
