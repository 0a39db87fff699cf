/* stats.h - counters, and the document made of them.
 *
 * One table (stats.c) gives both the JSON document and the text for people. Counters only grow; any thread adds.
 */
#ifndef WFSD_STATS_H
#define WFSD_STATS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum { WFSD_NR_SIZES = 10 }; /* requests up to 4 KiB, 8 KiB, ... 1 MiB, and larger ones */

struct wfsd_stats {
	_Atomic uint64_t reads, read_errors, bytes_served;
	_Atomic uint64_t plain_reads, plain_bytes; /* of these, from files that are passed through */
	_Atomic uint64_t sizes[WFSD_NR_SIZES];
	_Atomic uint64_t blocks_decoded, bytes_decoded, comp_bytes_read;
	_Atomic uint64_t direct_bytes_read; /* of comp_bytes_read: around the page cache */
	_Atomic uint64_t ahead_blocks;	    /* of the blocks to decode: taken up before they were asked for */
	_Atomic uint64_t decode_nsec, disk_nsec;
	_Atomic uint64_t bad_blocks, bad_files, timeouts;
	_Atomic uint64_t refused_blocks, refused_files; /* signed mount: not as they were signed */
	_Atomic uint64_t opens, lookups, heads_read;
	_Atomic uint64_t open_handles, open_files; /* gauges: they fall, too */
};

static inline void wfsd_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}
static inline void wfsd_uncount(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_sub_explicit(counter, n, memory_order_relaxed);
}
/* Count a read request of this size. */
void wfsd_count_size(struct wfsd_stats *stats, uint64_t size);

struct wfsd;
/* Writes one JSON object and a newline, or a table for people. */
void wfsd_stats_print(struct wfsd *d, FILE *out, int json);

#endif
