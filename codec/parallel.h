/* parallel.h - how many threads, and independent jobs on several of them. Private. */
#ifndef WFS_PARALLEL_H
#define WFS_PARALLEL_H

#include "wfs_internal.h"

enum { WFS_MAX_THREADS = 256 };

/* Threads to use when the caller asks for nr_threads: 0 means one for each processor this process may run on. */
unsigned wfs_thread_count(unsigned nr_threads);

/* Calls job(ctx, 0 .. nr_jobs - 1), each once, in any order, on up to nr_threads threads (the calling one included),
 * and returns when all are done. When threads cannot be started, fewer do the work. */
void wfs_parallel_for(unsigned nr_threads, size_t nr_jobs, void (*job)(void *ctx, size_t index), void *ctx);

#endif
