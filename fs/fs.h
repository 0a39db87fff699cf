/* fs.h - struct wfsd: everything the daemon knows. There are no globals, but for one that libfuse forces (log.c).
 *
 * The parts and who calls whom (downwards only):
 *
 *     main -> ops -> lookup dir read      ops: one function a FUSE request, one reply each (reply)
 *                    |      |   |
 *                    tree   |   ahead     tree: nodes, what the kernel knows; ahead: decoding before it is asked for,
 *                    |      |   |           where streams says, which tensors helps
 *                    |      |   fetch     fetch: decoding, on several threads
 *                    |      |   |
 *                    |      |   load      load: stored bytes, around the page cache or through it
 *                    |      |   |
 *                    store  |   file      store: paths, versions, heads; file: open files and readers
 *                           |   |
 *                         arena cache     decoded blocks, and all large buffers
 *
 * A mount with -o pubkey shows what signed.c finds in the manifest: store asks it for names; file, fetch and ops
 * whether what they have is what was signed.
 *
 * Threads: libfuse's (they do whole requests), the decode workers, those that decode ahead, the watchdog, the closer of
 * kept files, the statistics server, and the main thread, which waits for signals. No lock is held during a system call
 * on the store, decoding, or a reply.
 */
#ifndef WFSD_FS_H
#define WFSD_FS_H

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "cache.h"
#include "crowd.h"
#include "log.h"
#include "opts.h"
#include "stats.h"
#include "tune.h"
#include "wfs.h"

enum {
	WFSD_MAX_READ = 1 << 20, /* bytes of the largest read request */
	WFSD_MAX_BACKGROUND = 128,
	WFSD_MAX_THREADS = 512, /* of libfuse: more than the background requests, so that others get through */
	WFSD_MAX_STUCK = 64,	/* requests given up whose threads the store still holds: more need not be */
};

/* Whether the store takes O_DIRECT reads, as the first long read found. */
enum wfsd_direct { WFSD_DIRECT_UNTRIED, WFSD_DIRECT_WORKS, WFSD_DIRECT_REFUSED };

struct fuse_session;
struct wfsd_tree;
struct wfsd_files;
struct wfsd_heads;
struct wfsd_fetch;
struct wfsd_stats_server;
struct wfsd_ahead;
struct wfsd_requests;
struct wfsd_signed;

/* Constant once the mount is made, but for the atomic ones, and each pointer's object locks itself. */
struct wfsd {
	const struct wfsd_opts *opts;
	struct wfsd_log log;
	int root_fd;	/* the store, opened before mounting: the mount may cover its path */
	bool openat2;	/* the kernel has that call, and lets us use it */
	pthread_t main; /* its thread, which ends the daemon */
	struct fuse_session *session;
	char *store_path; /* resolved; for messages and statistics */
	char *mount_path; /* resolved */
	enum wfs_cpu cpu; /* never AUTO */
	struct timespec started;
	atomic_uint major, minor; /* of the mount; 0 until it is found, when the first requests may be at work */
	char store_fs[64];	  /* the file system's type, as mount(8) calls it */
	struct wfsd_init init;
	_Atomic(enum wfsd_direct) store_direct;
	struct wfsd_crowd crowd;
	sem_t reads;			  /* bounds the reads at work, and with them pinned memory (read.c) */
	struct wfsd_signed *signed_store; /* NULL: the mount is not signed */
	struct wfsd_tree *tree;
	struct wfsd_files *files;
	struct wfsd_heads *heads;
	struct wfsd_cache *cache;
	struct wfsd_fetch *fetch;
	struct wfsd_stats_server *stats_server;
	struct wfsd_ahead *ahead;
	struct wfsd_requests *requests;
	struct wfsd_stats stats;
};

/* The errno for the kernel (positive). The only map from codec errors. errno_map.c */
int wfsd_errno(const struct wfs_error *err);

/* What whoever runs the mount should do about an error with a file of the store, for the log. buf may hold the result.
 * errno_map.c */
enum { WFSD_REMEDY_BYTES = 1024 };
const char *wfsd_remedy(char buf[WFSD_REMEDY_BYTES], const struct wfsd *d, enum wfs_status status);

#endif
