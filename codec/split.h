/* split.h - the split coding (FORMAT.md section 2): shared shapes of its tables, payloads and kernels. Private.
 *
 * READ ME FIRST. rANS codes a symbol s of frequency f (of 256) by pushing it on a state x like a digit on a number of
 * mixed base: the encoder maps x to (x / f) * 256 + slot, the decoder undoes it: s from the slot x mod 256, then
 * x = f * (x / 256) + rank. States are 16 bits: H = x / 256 and L = x mod 256 = the slot itself, so a state is two
 * bytes and 64 states are two 64-byte vectors. What the encoder pushes last comes out first: the encoder walks rows,
 * strands and positions backwards, the decoder forwards. When x falls below 256 the decoder shifts in one byte.
 *
 *     row 0   row 1   row 2   row 3 ...        a row: 64 words; a position of a row has a state of its own
 *     strand0 strand1 strand0 strand1          two strands = two independent dependency chains of 64 lanes each
 */
#ifndef WFS_SPLIT_H
#define WFS_SPLIT_H

#include "wfs_internal.h"

enum {
	WFS_LANES = 64,
	WFS_STRANDS = 2,
	WFS_SUPER_ROWS = 8,
	WFS_SUPER = WFS_LANES * WFS_SUPER_ROWS, /* words of a superrow */
	WFS_MAX_TABLES = 16,
	WFS_MAX_RUNS = 32,
	WFS_MAX_SYMS = 32, /* symbols of a table, the escape included */
	WFS_MAX_TAIL = 15,
	WFS_MAX_FIELD = 12,
	WFS_MAX_BLOCK = 1 << 20,	     /* raw bytes of a block, and words when w = 1 */
	WFS_MAX_SEGS = WFS_MAX_BLOCK >> 9,   /* segments of a block: seg_log2 >= 9 */
	WFS_MAX_SUPERS = WFS_MAX_BLOCK >> 9, /* superrows of a block */
	WFS_STATE_BYTES = 256,		     /* L0 H0 L1 H1 */
	WFS_CARRIED = 128,		     /* most rest bytes that the states carry */
	WFS_SPLIT_HEADER = 12,		     /* len0 len1 nesc nlit nmode */
};

/* Decoder's names of symbols: 0..31 slot runs, then the tail's nibbles. */
enum { WFS_TAIL_BASE = 32, WFS_LITERAL = WFS_TAIL_BASE + 15 };
/* Biased runs 0..15 are shuffle indices as they are; the others have bit 7 set. */
enum { WFS_BUCKET_BIAS = 0x70 };

/* How a word is cut. partial, planes: rest bits of one unit in the mode they were made for. */
struct wfs_split {
	u8 word;    /* bytes: 1, 2, 4, 8 */
	u8 rot;	    /* 0, 1 */
	u8 field;   /* coded bits */
	u8 partial; /* rest bits mod 8 */
	u8 planes;  /* rest bits / 8 */
};

/* One table as stored (FORMAT.md 2.3), checked. */
struct wfs_table {
	u8 m, ntail, nrun;
	u8 freq[WFS_MAX_SYMS]; /* sum of the symbol's runs */
	u16 val[WFS_MAX_SYMS];
	u16 tail[WFS_MAX_TAIL];
	u8 run_len[WFS_MAX_RUNS], run_sym[WFS_MAX_RUNS];
};
struct wfs_pool {
	u8 nr_tables, seg_log2, field;
	struct wfs_table table[WFS_MAX_TABLES];
};

/* A table made ready for decoding, indexed by slot run. Read-only once made; shared by all threads. */
struct wfs_decode_table {
	_Alignas(64) u8 run[256]; /* slot -> run; bit 7 set on escape slots (look-ups of 6 index bits ignore it) */
	u8 refill[256];		  /* slot -> highest H from which a step falls below 256 and takes a byte */
	u8 freq[64], c[64];	  /* rank = slot - c[run] mod 256 */
	u8 hi[64], lo[64];	  /* field bits in the top byte and in the byte below of a rotated word; 32..46: tail */
	/* 16-slot buckets: the first run + WFS_BUCKET_BIAS, and up to 3 run starts inside as start - 1 - 128 (127:
	 * none) */
	u8 bucket[16];
	int8_t start[3][16];
	u16 tail_top[16]; /* tail value as the top 16 bits of a rotated word */
	u8 escape_run;	  /* + WFS_BUCKET_BIAS */
	u8 nrun;
};
struct wfs_decode_pool {
	u8 nr_tables, seg_log2, field;
	struct wfs_decode_table table[WFS_MAX_TABLES]; /* nr_tables of them are allocated */
};

/* A split payload whose layout has been checked (split_parse.c). Pointers into the payload. */
struct wfs_split_view {
	size_t n; /* words, at least 1 */
	u32 stream_len[WFS_STRANDS], nr_escapes, nr_literals, nr_modes;
	const u8 *states, *stream[WFS_STRANDS], *stream_end[WFS_STRANDS], *escapes, *literals, *rest, *edges;
	size_t rest_len; /* bytes at rest; the carried ones not counted */
	size_t carried;	 /* rest bytes that the final states hold: 0..128 */
	/* Where something will be made of the words at once, later_bytes of each, or NULL: a kernel that waits less for
	 * memory than the maker asks for it. */
	const u8 *later;
	unsigned later_bytes;
	u8 seg[WFS_MAX_SEGS];	 /* table of each segment */
	u8 mode[WFS_MAX_SUPERS]; /* mode of each superrow; filled only when nr_modes > 0 */
};

/* One decoder. Gives v->n words at raw (any alignment) or refuses; the same on every input for every kernel. Literals
 * are applied. v must come from wfs_split_parse. Does not allocate, lock, print or touch errno. */
struct wfs_scratch;
typedef enum wfs_status wfs_split_decode_fn(const struct wfs_split_view *v, const struct wfs_decode_pool *pool,
					    struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
					    const char **reason_ret);

/* Lane order (FORMAT.md 2.1): the word of a row that stands at a position. */
static inline unsigned wfs_lane_word(unsigned word_bytes, unsigned pos)
{
	unsigned per = 16 / word_bytes, quarter = pos >> 4, j = pos & 15;
	return per * quarter + j % per + 4 * per * (j / per);
}

/* ---- splits and modes ---- */

static inline struct wfs_split wfs_split_make(unsigned word, unsigned rot, unsigned field)
{
	unsigned rest = 8 * word - field;
	return (struct wfs_split){(u8)word, (u8)rot, (u8)field, (u8)(rest & 7), (u8)(rest >> 3)};
}
static inline unsigned wfs_mode_zeros(unsigned mode)
{
	return mode & 63;
}
static inline unsigned wfs_mode_sign(unsigned mode)
{
	return mode >> 6;
}
/* Rest bits a word in a mode. */
static inline unsigned wfs_mode_rest_bits(struct wfs_split s, unsigned mode)
{
	return 8u * s.word - s.field - wfs_mode_zeros(mode) - (wfs_mode_sign(mode) != 0);
}
static inline bool wfs_mode_valid(struct wfs_split s, unsigned mode)
{
	return wfs_mode_sign(mode) != 3 && wfs_mode_zeros(mode) <= 8u * s.word - s.field - 1u &&
	       (!mode || (s.rot == 1 && s.word >= 2));
}
/* The packing (partial, planes) of a superrow in a mode. */
static inline struct wfs_split wfs_split_in_mode(struct wfs_split s, unsigned mode)
{
	unsigned rest = wfs_mode_rest_bits(s, mode);
	s.partial = (u8)(rest & 7);
	s.planes = (u8)(rest >> 3);
	return s;
}
/* Rest bytes of a unit of `rows` rows; s in the unit's mode. */
static inline size_t wfs_unit_bytes(struct wfs_split s, unsigned rows)
{
	if (rows == WFS_SUPER_ROWS)
		return 64u * s.partial + (size_t)WFS_SUPER * s.planes;
	return (size_t)rows * WFS_LANES * ((s.partial != 0) + s.planes);
}
/* Rows of the last unit of n >= 1 words. */
static inline unsigned wfs_last_rows(size_t n)
{
	return (unsigned)(((n - 1) % WFS_SUPER) / WFS_LANES + 1);
}

/* table.c: pools. parse: comp bytes -> checked pool, *used_ret bytes eaten. write: returns bytes; out has room for
 * WFS_POOL_MAX_BYTES. expand: makes a decode pool (caller frees with free()); NULL: out of memory. */
enum { WFS_POOL_MAX_BYTES = 4 + WFS_MAX_TABLES * (4 + 2 * (WFS_MAX_SYMS - 1 + WFS_MAX_TAIL) + 2 * WFS_MAX_RUNS) };
enum wfs_status wfs_pool_parse(const u8 *comp, size_t comp_len, struct wfs_pool *pool_ret, size_t *used_ret,
			       const char **reason_ret);
size_t wfs_pool_write(const struct wfs_pool *pool, u8 *out);
struct wfs_decode_pool *wfs_decode_pool_new(const struct wfs_pool *pool);

/* split_parse.c: check a payload's layout against every rule of FORMAT.md 2.2 and 2.5 and fill the view. edge_len:
 * bytes of cut words expected at the end. */
enum wfs_status wfs_split_parse(const u8 *comp, size_t comp_len, struct wfs_split s, const struct wfs_decode_pool *pool,
				size_t n, size_t edge_len, struct wfs_split_view *v, const char **reason_ret);

/* What payloads of other codings have in common with the split coding's. Modes of all superrows of n words from a list
 * of changes (none: mode is not filled); literals in order and below n: NULL, or why they are refused. */
const char *wfs_modes_parse(const u8 *changes, size_t nr_changes, struct wfs_split s, size_t n, u8 *mode);
const char *wfs_literals_parse(const u8 *literals, size_t nr, unsigned word, size_t n);
/* Rest bytes of n words, and of them the last unit's. mode: of each superrow, or NULL. */
size_t wfs_rest_bytes(struct wfs_split s, size_t n, const u8 *mode, size_t *last_ret);

/* split_decode_*.c */
wfs_split_decode_fn wfs_split_decode_scalar;
/* NULL when this build has no such kernel. The CPU must support it. */
wfs_split_decode_fn *wfs_split_decode_ssse3_get(void);
wfs_split_decode_fn *wfs_split_decode_avx2_get(void);
wfs_split_decode_fn *wfs_split_decode_avx512vbmi_get(void);
wfs_split_decode_fn *wfs_split_decode_neon_get(void);

#endif
