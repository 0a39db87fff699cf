/* sniff.h - what unknown bytes look like: the cost of each way to read a sample of them. Private to sniff*.c and
 * plan_sniff.c.
 *
 * A reading is a class of words or records and the place where they start. Its cost is estimated from counts alone:
 * the order-0 entropy of the coded field under the limits that the coding sets to alphabets, and the rest bits that
 * modes leave. Integers only: the same on every machine.
 */
#ifndef WFS_SNIFF_H
#define WFS_SNIFF_H

#include "block.h"
#include "classes.h"

#include <lz4.h>

/* Words or records start at file offsets that are `at` modulo the class's step. Readings are numbered: 0 is no class,
 * LZ4 or stored; those of words, each class and place; those of records in the order of classes and places. */
struct wfs_reading {
	u8 class, at;
};
enum {
	WFS_NO_READING,
	WFS_NR_WORD_READINGS = 27,
	/* lengths of records as in classes.c */
	WFS_NR_READINGS = WFS_NR_WORD_READINGS + 17 + 18 + 20 + 22 + 24 + 34 + 36 + 144,
};
struct wfs_reading wfs_reading_get(unsigned number);

enum {
	WFS_SAMPLE = 4096,		      /* bytes of a sample */
	WFS_MAX_SAMPLE = 2 * WFS_SAMPLE,      /* at most */
	WFS_MIN_SAMPLE = 64,		      /* at least */
	WFS_SNIFF_UNIT = 256,		      /* parts of a bit that costs count in */
	WFS_SNIFF_PLAIN = 8 * WFS_SNIFF_UNIT, /* a stored byte's cost */
	WFS_SNIFF_MIN_GAIN = 32,	      /* a part that a reading has to save */
	WFS_SNIFF_LZ4_BYTES = 64 << 10,	      /* most that wfs_sniff_lz4 takes */
};

/* One thread's working memory. */
struct wfs_sniffer {
	u16 byte_hist[8][256];
	u16 hist[1 << WFS_MAX_FIELD];
	u16 cost[1 << WFS_MAX_FIELD];
	LZ4_stream_t lz4;
	char comp[WFS_SNIFF_LZ4_BYTES];
};
/* NULL: out of memory. Freed with free(). */
struct wfs_sniffer *wfs_sniffer_new(void);

/* Bytes and where they stand in their file. */
struct wfs_sample {
	const u8 *raw;
	size_t len;
	u64 off;
};
/* What a sample of WFS_MIN_SAMPLE..WFS_MAX_SAMPLE bytes costs in every reading, each at most twice the cost of
 * storing it. */
void wfs_sniff_costs(struct wfs_sniffer *sniffer, const struct wfs_sample *sample, u32 *cost_ret);
/* What at most WFS_SNIFF_LZ4_BYTES cost with LZ4 or stored. */
u32 wfs_sniff_lz4(struct wfs_sniffer *sniffer, const u8 *raw, size_t len);
/* What each byte of `part` costs in a reading, if its words are like those of the sample: a word's cost is spread over
 * its bytes. */
void wfs_sniff_bytes(struct wfs_sniffer *sniffer, unsigned reading, const struct wfs_sample *sample,
		     const struct wfs_sample *part, u16 *cost_ret);

/* ---- sniff_records.c ---- */

/* wfs_sniff_costs of the readings of records, beginning with the first of these; each at most the cost of storing.
 * saved: what the best reading as words costs less than that. */
void wfs_sniff_records(struct wfs_sniffer *sniffer, const struct wfs_sample *sample, u64 saved, u32 *cost_ret);
/* wfs_sniff_bytes for one of them. */
void wfs_sniff_record_bytes(struct wfs_sniffer *sniffer, struct wfs_reading reading, const struct wfs_sample *sample,
			    const struct wfs_sample *part, u16 *cost_ret);

/* ---- between them ---- */

/* Cost of nr words whose values are counted in hist (nr_values is a multiple of 4); symbols, tail: room of the table.
 */
u64 wfs_sniff_counts(const u16 *hist, size_t nr_values, u64 nr, unsigned symbols, unsigned tail, unsigned word);
/* sniffer->cost of each byte of a word by its value, from sniffer->hist of nr words of `word` bytes: the value's, and
 * rest_bits beside it. */
void wfs_sniff_value_costs(struct wfs_sniffer *sniffer, size_t nr_values, u64 nr, unsigned rest_bits, unsigned word);

#endif
