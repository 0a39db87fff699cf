/* load.h - reads the stored bytes of blocks that follow each other in a container.
 *
 * Two ways lead to them. Through the page cache, where they stay: for single blocks, to which random reads come back.
 * Around it (O_DIRECT): for stretches of a stream that are not there yet. The kernel keeps the decoded pages of the
 * mount, so stored ones beside them would be kept twice (Alluxio#14485); and a disk gives one direct read of a MiB
 * faster than the page cache's read-ahead takes it in.
 */
#ifndef WFSD_LOAD_H
#define WFSD_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wfs.h"

struct wfsd;
struct wfsd_file;

/* The stored bytes of a span may be so many, which is at least one block. */
enum { WFSD_LOAD_MAX = (2 << 20) - 2 * 4096 };

/* Of a file: how to read around the page cache. Found out when it is first wanted. */
struct wfsd_bypass {
	atomic_int fd;	     /* WFSD_BYPASS_UNKNOWN, WFSD_BYPASS_NONE, or ours to close */
	_Atomic(void *) map; /* never touched, only asked which of its pages are in memory; NULL: none */
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
 * if they are not in it. False: take them one by one through it; that will tell the reason if they cannot be read. */
bool wfsd_load_span(struct wfsd *d, struct wfsd_file *file, const struct wfs_block *first, const struct wfs_block *last,
		    struct wfsd_loaded *loaded_ret);

#endif
