/* fetch.h - reads and decodes the blocks of a request, on several threads when there are several.
 *
 * Blocks that lie side by side in the container are read at once. The thread that has the request works itself; idle
 * workers help to decode. So one block costs no hand-over, and a machine that is busy with many requests decodes each
 * on its own thread, without waking anybody.
 */
#ifndef WFSD_FETCH_H
#define WFSD_FETCH_H

#include <stdint.h>

struct wfsd;
struct wfsd_file;
struct wfsd_slot;

/* A block to decode into a slot for which the cache said WFSD_FILL. */
struct wfsd_job {
	uint64_t block;
	struct wfsd_slot *slot;
};

struct wfsd_fetch;
/* NULL: no memory or no threads. */
struct wfsd_fetch *wfsd_fetch_new(unsigned nr_threads);
/* No job may be left. fetch may be NULL. */
void wfsd_fetch_free(struct wfsd_fetch *fetch);

/* Fills all slots, with the block or with its error, and returns then. asked_bytes: of the read that waits for them, in
 * the crowd (crowd.h); 0: none does yet, they are decoded ahead. */
void wfsd_fetch_run(struct wfsd *d, struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr,
		    uint64_t asked_bytes);

#endif
