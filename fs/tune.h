/* tune.h - the kernel's side of a mount: how much it reads ahead, how many requests it sends at once and how large they
 * are decides the speed of a reader more than the daemon does.
 */
#ifndef WFSD_TUNE_H
#define WFSD_TUNE_H

#include <stdatomic.h>

struct fuse_conn_info;
struct wfsd;

/* What can be changed while the mount serves. 0: unknown, or as a wish: leave it. */
struct wfsd_kernel {
	unsigned read_ahead_kb;
	unsigned max_background;       /* requests that nobody waits for, sent at once */
	unsigned congestion_threshold; /* of these, until the kernel reads ahead no further */
};

/* What INIT, the first request of a mount, agreed on. Written when it is answered, before the mount serves. */
struct wfsd_init {
	atomic_uint protocol_minor; /* the kernel speaks 7.x */
	atomic_uint max_read_bytes, max_pages;
	atomic_uint max_readahead_bytes; /* of the kernel's own accord */
};

/* Answer INIT: take part in what it decides, and note it. */
void wfsd_tune_init(struct wfsd *d, struct fuse_conn_info *conn);
/* What we wish for. */
struct wfsd_kernel wfsd_tune_wanted(const struct wfsd *d);
/* What the kernel has now. max_background and congestion_threshold are known only where fusectl is mounted. */
struct wfsd_kernel wfsd_tune_now(const struct wfsd *d);
/* Bring the mount, which serves, to what we wish for. Where that fails, one log line says what to run. */
void wfsd_tune(const struct wfsd *d);

#endif
