/* load.h - reads the stored bytes of blocks that follow each other in a container.
 *
 * Two ways lead to them. Around the page cache (O_DIRECT), when they are not in it: the kernel keeps the decoded pages
 * of the mount, so stored ones beside them would be kept twice (Alluxio#14485), and a disk gives one direct read sooner
 * than it fills the page cache (measured: a block in 0.14 ms against 0.24, streams up to twice as fast). Through it,
 * where they stay, when they are there already, and for single blocks that come back: random reads of a model larger
 * than our cache meet each block many times.
 */
#ifndef WFSD_LOAD_H
#define WFSD_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits.h"
#include "wfs.h"

struct wfsd;
struct wfsd_file;

/* The stored bytes of a span may be so many, which is at least one block. */
enum { WFSD_LOAD_MAX = (2 << 20) - 2 * 4096 };

/* Of a file: how to read around the page cache. Found out when it is first wanted. */
struct wfsd_bypass {
	atomic_int fd;	     /* WFSD_BYPASS_UNKNOWN, WFSD_BYPASS_NONE, or ours to close */
	_Atomic(void *) map; /* never touched, only asked which of its pages are in memory; NULL: none */
	atomic_int told;     /* whether the kernel tells us: 0 not asked yet, 1 yes, -1 no */
	wfsd_bits met;	     /* the blocks that were read singly */
	atomic_bool on_disk; /* the last span asked for was not in the page cache, or nobody knows */
};
enum { WFSD_BYPASS_UNKNOWN = -1, WFSD_BYPASS_NONE = -2 };
void wfsd_bypass_close(struct wfsd_file *file);

/* Stored bytes in a buffer of the cache's memory. */
struct wfsd_loaded {
	void *buf;
	size_t buf_len;
	const unsigned char *comp; /* the first block's first byte */
};
void wfsd_loaded_put(struct wfsd *d, struct wfsd_loaded *loaded);

/* Reads one block through the page cache. On success the caller gives the bytes back. Any thread, like the next. */
enum wfs_status wfsd_load_block(struct wfsd *d, struct wfsd_file *file, const struct wfs_block *block,
				struct wfsd_loaded *loaded_ret, struct wfs_error *err);
/* Reads blocks first..last, whose stored bytes are adjacent and at most WFSD_LOAD_MAX together, around the page cache,
 * if they are not in it and a single block is not better put there. stream: they are part of a longer read. False: take
 * them one by one through it; that will tell the reason if they cannot be read. */
bool wfsd_load_span(struct wfsd *d, struct wfsd_file *file, const struct wfs_block *first, const struct wfs_block *last,
		    bool stream, struct wfsd_loaded *loaded_ret);

#endif
