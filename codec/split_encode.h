/* split_encode.h - private to the split encoder: table building, encode pools and the kernels of the CPU variants.
 *
 * The frame (split_encode.c) makes every decision that shapes a payload; a kernel only does the work between decisions.
 * Decisions depend on exact integers, so all kernels give the same bytes. Symbol ids as the encoder uses them: 0..31
 * symbols of the table, WFS_TAIL_BASE + t escapes with nibble t; WFS_LITERAL is the escape whose nibble is 15.
 */
#ifndef WFS_SPLIT_ENCODE_H
#define WFS_SPLIT_ENCODE_H

#include "block.h"
#include "wide.h"

enum {
	WFS_FIELD_VALUES = 1 << WFS_MAX_FIELD,
	WFS_COST_CHUNK = 32, /* field values that costs are grouped by */
	WFS_COST_UNIT = 256, /* parts of a bit that costs count in */
	WFS_ESCAPE_BITS = 4,
	WFS_HISTS = 4, /* partial histograms, so that equal neighbours do not wait for each other */
	WFS_MAX_SEG = 1 << 13,
	WFS_MAX_LITERALS = 0xffff,
	WFS_MAX_MODES = 0xff,
};

/* ---- table_build.c ---- */

/* The best table found for a histogram of 2^field counts, whose sum is below 2^32 and may be 0. Always a table that
 * FORMAT.md 2.3 allows. */
void wfs_table_build(const u32 *hist, struct wfs_split s, struct wfs_table *table_ret);
/* What a word with each field value costs beside its rest bits, in 1/WFS_COST_UNIT bit: 2^field entries, each below
 * 2^15 (at most 8 + 4 + 96 bits). */
void wfs_table_costs(const struct wfs_table *table, struct wfs_split s, u16 *cost_ret);

/* Sum of count * cost over one chunk. Counts and costs are below 2^15 and the sum is below 2^31. */
static WFS_ALWAYS_INLINE u32 wfs_chunk_cost(const u16 *count, const u16 *cost)
{
	int sum = 0;
	for (unsigned i = 0; i < WFS_COST_CHUNK; i++)
		sum += (int16_t)count[i] * (int16_t)cost[i];
	return (u32)sum;
}

/* ---- encode pools ---- */

/* Pushing a symbol of frequency f on a state x < 256 f gives q = x / f and the rank x mod f, together x + q * rest =
 * q << 8 | rank. The rank's slot is base + rank, plus jump when rank >= first (the symbol's second run). recip = 2^24 /
 * f rounded up makes q exactly x * recip >> 24: the product is too large by less than x < 256 f, a share of 2^24
 * smaller than the 1 / f that the fraction of x / f lacks to the next integer, because f^2 < 2^16. */
struct wfs_encode_sym {
	u32 recip;
	u8 rest; /* 256 - f */
	u8 base, first, jump;
};
struct wfs_encode_table {
	/* for vector look-ups by symbol id; recip16 = floor(65536 / f), 65535 for f = 1 */
	_Alignas(64) u8 freq[64], base[64], first[64], jump[64], recip16_lo[64], recip16_hi[64];
	struct wfs_encode_sym sym[64];
	const u8 *map; /* field value -> symbol id */
	u8 escape, padding;
};
struct wfs_encode_pool {
	struct wfs_split s;
	u8 nr_tables, seg_log2;
	u32 nr_chunks;	 /* of WFS_COST_CHUNK values, 2^field rounded up */
	const u16 *cost; /* [nr_chunks][nr_tables][WFS_COST_CHUNK] */
	struct wfs_encode_table table[WFS_MAX_TABLES];
};
enum { WFS_MAP_MIN = 512 }; /* bytes of a map, at least: what vector kernels load */

/* Counts nr field values into hist[0..WFS_HISTS), the first nr_values entries of each, which it clears first. The sum
 * of the four is the histogram. */
static WFS_ALWAYS_INLINE void wfs_hist_count(const u16 *field, size_t nr, size_t nr_values,
					     u16 (*hist)[WFS_FIELD_VALUES])
{
	size_t i = 0;
	for (unsigned k = 0; k < WFS_HISTS; k++)
		memset(hist[k], 0, nr_values * sizeof(hist[k][0]));
	for (; i + WFS_HISTS <= nr; i += WFS_HISTS) {
		u64 four = wfs_load64(field + i);
		hist[0][four & 0xffff]++;
		hist[1][four >> 16 & 0xffff]++;
		hist[2][four >> 32 & 0xffff]++;
		hist[3][four >> 48]++;
	}
	for (; i < nr; i++)
		hist[0][field[i]]++;
}

/* ---- scratch ---- */

/* The wide encoder's: its segments (wide_encode.c). */
struct wfs_encode_wide_buffers {
	u32 seg_end[WFS_WIDE_MAX_SEGS]; /* words */
	u8 seg[WFS_WIDE_MAX_SEGS];	/* table, and whether it has escapes */
};

/* Sizes: a row is padded to 64 words, and a last unit of up to 7 rows is not bit-packed: at most 7 * 64 * 8 bytes more
 * than its words. */
struct wfs_encode_buffers {
	_Alignas(64) u16 field[WFS_MAX_SEG];
	u16 hist[WFS_HISTS][WFS_FIELD_VALUES];
	u8 mode[WFS_MAX_SUPERS];
	u8 mode_list[3 * WFS_MAX_MODES];
	u8 seg[WFS_MAX_SEGS];
	struct wfs_encode_wide_buffers wide;
	u8 sym[WFS_MAX_BLOCK + WFS_LANES];    /* symbol ids, row after row, position order */
	u8 nibble[WFS_MAX_BLOCK + WFS_LANES]; /* escapes, one a byte */
	union {				      /* filled from the end */
		u8 stream[WFS_STRANDS][WFS_MAX_BLOCK / 2 + 2 * WFS_LANES]; /* WFS_LANES of slack in front */
		u8 wide_stream[WFS_MAX_BLOCK + 4 * WFS_LANES];
	};
	u8 rest[WFS_MAX_BLOCK + 7 * WFS_LANES * 8 + WFS_LANES];
	u32 literal[WFS_MAX_LITERALS]; /* word numbers */
};

/* ---- kernels ---- */

struct wfs_encode_kernel {
	/* Field values of nr_supers superrows. Their order within a row is the kernel's own business. */
	void (*fields)(struct wfs_split s, const u8 *raw, size_t nr_supers, u16 *field);
	/* The table with the least cost for nr field values (of a segment), the lowest number of equals. */
	unsigned (*choose)(const struct wfs_encode_pool *pool, const u16 *field, size_t nr,
			   u16 (*hist)[WFS_FIELD_VALUES]);
	/* One superrow: 512 symbol ids from the words (or their field values) and the rest bits; returns their end. */
	u8 *(*superrow)(struct wfs_split s, const struct wfs_encode_table *table, unsigned mode, const u8 *raw,
			const u16 *field, u8 *sym, u8 *rest);
	/* Escapes among nr_rows rows of symbol ids, as nibbles in bytes; returns how many. Up to 63 bytes of garbage
	 * may follow them. */
	size_t (*escapes)(const u8 *sym, size_t nr_rows, u8 *nibble);
	/* All rows backwards from states 256 + carried[128]. end[k]: where strand k's stream ends; becomes its start.
	 * Up to WFS_LANES bytes in front of a stream may be overwritten. */
	void (*pass)(const struct wfs_encode_pool *pool, const u8 *sym, size_t nr_rows, const u8 *seg,
		     const u8 *carried, u8 *states, u8 **end);
};

extern const struct wfs_encode_kernel wfs_encode_kernel_scalar;
/* NULL when this build has no such kernel. The CPU must support it. */
const struct wfs_encode_kernel *wfs_encode_kernel_avx2_get(void);
const struct wfs_encode_kernel *wfs_encode_kernel_avx512vbmi_get(void);

/* What the kernels share with the scalar one for the shapes they do not cover. */
void wfs_encode_fields_scalar(struct wfs_split s, const u8 *raw, size_t nr_words, u16 *field);
/* One unit of `rows` rows; words from nr_words on count as zero. */
u8 *wfs_encode_unit_scalar(struct wfs_split s, const struct wfs_encode_table *table, unsigned mode, const u8 *raw,
			   size_t nr_words, unsigned rows, u8 *sym, u8 *rest);

/* ---- split_encode.c ---- */

/* Fills buf->mode for every superrow and buf->mode_list with the changes; returns how many. */
unsigned wfs_modes_find(struct wfs_split s, const u8 *raw, size_t nr_words, struct wfs_encode_buffers *buf);

/* Words of a block -> payload without the bytes of cut words. comp has room for room bytes. Returns the payload's
 * bytes, or SIZE_MAX when it is not smaller than room or the coding cannot express it. */
size_t wfs_split_encode(const struct wfs_encode_pool *pool, const struct wfs_encode_kernel *kernel, const u8 *raw,
			size_t nr_words, u8 *comp, size_t room, struct wfs_encode_buffers *buf);

#endif
