/* reply.h - a request at work, and its one reply.
 *
 * A reader of a FUSE file cannot be killed while the daemon holds its request. So a request that the store does not let
 * us finish within io_timeout is answered EIO by the watchdog; the thread that is stuck with it goes on when the store
 * does, and its own reply then goes nowhere. Whoever takes the fuse_req_t out of struct wfsd_request replies.
 *
 * After a failed read the kernel asks once more, page by page. So that nobody waits twice, a file of which a read was
 * given up is remembered as hanging: until that read comes back from the store, but no longer than io_timeout.
 *
 * When WFSD_MAX_STUCK threads hang so, the store is asked no more by requests for names and attributes, which fail at
 * once, until some of them are back: or the last thread would hang, too, and nobody could be told anything.
 *
 * A reply function returns true when the kernel has taken the reply. When not (the watchdog was faster, or the caller
 * was interrupted), what the reply would have handed to the kernel, a lookup or a handle, must be undone.
 */
#ifndef WFSD_REPLY_H
#define WFSD_REPLY_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

struct wfsd;
struct wfsd_file;

struct wfsd_request {
	struct wfsd *d;
	struct wfsd_file *file; /* that is read, held by its thread; or NULL */
	fuse_req_t req;		/* NULL: answered */
	int64_t start_nsec;	/* from here: of the watchdog */
	struct wfsd_request *older, *newer;
};

/* The watchdog also sends WFSD_SIGNAL_ENDED to the main thread when the session ends while requests that were given up
 * hang in the store: libfuse's loop waits for their threads. */
struct wfsd_requests;
/* timeout: seconds, 0: no watchdog. Starts the watchdog's thread. NULL: no memory or no thread. */
struct wfsd_requests *wfsd_requests_new(struct wfsd *d, unsigned timeout);
/* No request may be at work. */
void wfsd_requests_free(struct wfsd_requests *requests);

/* Every operation begins with this and ends in exactly one of those below. */
void wfsd_begin(struct wfsd *d, struct wfsd_request *r, fuse_req_t req);
/* The same for a read of the file, which the caller must hold until it has replied. */
void wfsd_begin_read(struct wfsd *d, struct wfsd_request *r, fuse_req_t req, struct wfsd_file *file);
/* Whether the store hangs for this file: then a read of it shall fail at once. */
bool wfsd_file_hangs(const struct wfsd_file *file);
/* Whether so many requests hang in the store that it shall not be asked. */
bool wfsd_store_hangs(const struct wfsd *d);

bool wfsd_reply_err(struct wfsd_request *r, int err); /* 0: success without data */
bool wfsd_reply_entry(struct wfsd_request *r, const struct fuse_entry_param *entry);
bool wfsd_reply_attr(struct wfsd_request *r, const struct stat *st, double timeout);
bool wfsd_reply_open(struct wfsd_request *r, const struct fuse_file_info *fi);
bool wfsd_reply_readlink(struct wfsd_request *r, const char *target);
bool wfsd_reply_statfs(struct wfsd_request *r, const struct statvfs *st);
bool wfsd_reply_buf(struct wfsd_request *r, const void *buf, size_t len);
bool wfsd_reply_iov(struct wfsd_request *r, const struct iovec *iov, int nr);

#endif
