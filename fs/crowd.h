/* crowd.h - whether the reads that are out already keep the processors busy.
 *
 * O_DIRECT reads of many MiB and several readers bring many reads at once, each on a thread of its own. Then it only
 * costs to wake helpers or to decode ahead (measured: up to a quarter). A reader that waits for every answer before it
 * asks again needs both.
 */
#ifndef WFSD_CROWD_H
#define WFSD_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
	WFSD_CROWD_BYTES = 512 << 10, /* of reads at work, a processor: more are a crowd */
	WFSD_CROWD_NSEC = 2000000,    /* and so long after, since bursts have gaps */
};

/* Any thread, without locks. */
struct wfsd_crowd {
	uint64_t limit_bytes;	    /* constant */
	_Atomic uint64_t bytes;	    /* of the reads at work */
	_Atomic uint64_t seen_nsec; /* when there was last a crowd; CLOCK_MONOTONIC */
	atomic_uint nr_active;	    /* threads that decode or reply just now */
};

static inline uint64_t wfsd_now_nsec(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void wfsd_crowd_enter(struct wfsd_crowd *c, uint64_t bytes)
{
	if (atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed) + bytes > c->limit_bytes)
		atomic_store_explicit(&c->seen_nsec, wfsd_now_nsec(), memory_order_relaxed);
}

static inline void wfsd_crowd_leave(struct wfsd_crowd *c, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&c->bytes, bytes, memory_order_relaxed);
}

static inline bool wfsd_is_crowded(const struct wfsd_crowd *c)
{
	/* Not a difference: another thread may have seen one after we looked at the clock. */
	return wfsd_now_nsec() < atomic_load_explicit(&c->seen_nsec, memory_order_relaxed) + WFSD_CROWD_NSEC;
}

static inline void wfsd_active_begin(struct wfsd_crowd *c)
{
	atomic_fetch_add_explicit(&c->nr_active, 1, memory_order_relaxed);
}

static inline void wfsd_active_end(struct wfsd_crowd *c)
{
	atomic_fetch_sub_explicit(&c->nr_active, 1, memory_order_relaxed);
}

#endif
