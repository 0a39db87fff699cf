/* streams.h - finds sequential readers among the reads of a file, and how far to decode ahead of each.
 *
 * A reader is known by where it reads, never by its handle: loaders share one descriptor between threads and processes
 * (diffusers#10280). Several readers a file are followed; requests may come a little out of order, as the kernel's own
 * read-ahead makes them.
 *
 * Decoding ahead begins when a run is longer than anything the kernel reads ahead for one random access. The window
 * doubles whenever the reader had to wait, and halves when blocks were evicted before they were wanted. Two rules bound
 * what is done for nothing: all that is ahead of the readers of a file, and all that ever was left behind unread, is
 * together at most 1/16 of what was asked for and a constant; and a run that began in a tensor ends with it, as those
 * of readers of chosen tensors do, until it has gone past an end once. Where another reader has begun, the work is his.
 *
 * Arithmetic only: no locks, no I/O. The caller locks.
 */
#ifndef WFSD_STREAMS_H
#define WFSD_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WFSD_NR_STREAMS = 16,
	WFSD_FREE_WASTE = 8 << 20, /* bytes that may be ahead before any are earned */
	WFSD_WASTE_SHARE = 16,	   /* and one byte for so many asked for */
};

/* One reader. Offsets and lengths in bytes of the original. */
struct wfsd_stream {
	uint64_t start, next; /* the run: [start, next) was asked for, but for `skipped` bytes of it */
	uint64_t skipped;
	uint64_t missed; /* of these: decoded ahead */
	uint64_t lowest; /* what was asked for below start came late: it does not make the run longer */
	uint64_t ahead;	 /* decoded, or about to be, up to here; <= next: nothing is */
	uint64_t window; /* how far beyond next; 0: the run is still too short */
	uint64_t used;	 /* the file's asks when it was last met; 0: none yet */
};

struct wfsd_streams {
	struct wfsd_stream stream[WFSD_NR_STREAMS];
	uint64_t nr_asks, asked_bytes;
	uint64_t wasted_bytes; /* decoded ahead for readers that went elsewhere */
	uint64_t nr_evicted;   /* as last heard of */
};

/* The tensors that are long enough to matter, by start; they do not overlap. */
struct wfsd_span {
	uint64_t start, end;
};

struct wfsd_ask {
	uint64_t off, len; /* what was read */
	bool late;	   /* and not all of it was ready */
	/* how things stand */
	uint64_t raw_len;      /* of the file */
	uint64_t block_bytes;  /* of the file: gaps below it leave no block out */
	uint64_t kernel_bytes; /* the most that the kernel reads ahead for this kind of read */
	uint64_t room_bytes;   /* the cache has so much room for blocks ahead of their readers, of all files */
	uint64_t nr_evicted;   /* blocks that were evicted before any reader came, of all files since the start */
	const struct wfsd_span *tensors;
	size_t nr_tensors;
};

/* Takes note of a read. Returns how many bytes to decode ahead from *from_ret on, 0 for none. */
uint64_t wfsd_streams_ask(struct wfsd_streams *s, const struct wfsd_ask *ask, uint64_t *from_ret);
/* From where on a part of such a range, [off, end), is still ahead of its reader; `end`: he is past it, or gone. */
uint64_t wfsd_streams_wanted(const struct wfsd_streams *s, uint64_t off, uint64_t end);

#endif
