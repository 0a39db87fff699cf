/* sniff.h - what unknown bytes look like: the cost of each way to read a sample of them. Private to sniff.c and
 * plan_sniff.c.
 *
 * A reading is a class of words and the place where they start. Its cost is estimated from counts alone: the order-0
 * entropy of the coded field under the limits that the split coding sets to alphabets, and the rest bits that modes
 * leave. Integers only: the same on every machine.
 */
#ifndef WFS_SNIFF_H
#define WFS_SNIFF_H

#include "classes.h"

#include <lz4.h>

/* Words start at file offsets that are `at` modulo the class's word. Reading 0 is no class: LZ4 or stored. */
struct wfs_reading {
	u8 class, at;
};
enum { WFS_NR_READINGS = 27 };
extern const struct wfs_reading wfs_reading[WFS_NR_READINGS];

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

#endif
