/* cache.h - decoded blocks, one copy each, under a byte cap.
 *
 * A slot is one block of one file version. Whoever asks for a block first fills it, everyone else waits for that
 * (single flight); a pin keeps the slot and its bytes in place:
 *
 *            get: FILL                 filled(0)                no pins: evicted when room is needed
 *   (none) ------------> FILLING -------------------> READY ---------------------------------> (none)
 *                           |
 *                           | filled(error): those who wait get the error, the next get tries anew
 *                           +-----------------------> FAILED, gone with the last pin
 *
 * Queues decide what goes first. A block whose bytes were all handed out is "spent": the kernel's page cache has them
 * now. Spent blocks beyond a few MiB are the first to go, so that a sequential reader works in a few buffers that stay
 * in the CPU's cache and does not push out blocks that small reads come back to. A spent block that is asked for again
 * before its turn is kept like the others (least recently used last). Blocks decoded ahead go after these, but when as
 * much as the cap was filled and still nobody came, their reader is gone, and they go at once.
 *
 * The cache knows neither FUSE nor the codec. Any thread may call anything; nothing here does I/O. The cap is kept
 * unless every buffer is pinned at once: callers bound the number of their pins (read.c).
 */
#ifndef WFSD_CACHE_H
#define WFSD_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wfsd_cache;

enum wfsd_slot_state { WFSD_FILLING, WFSD_READY, WFSD_FAILED };

struct wfsd_slot {
	uint64_t file, block; /* constant, as are the next three */
	unsigned char *raw;
	uint32_t raw_len;
	bool claimed;		 /* ahead of readers */
	_Atomic uint32_t served; /* bytes handed out so far, at most UINT32_MAX */
	atomic_bool used_again;	 /* since it entered its queue */
	struct wfsd_slot *chain; /* all from here to err: under the shard's lock */
	uint32_t pins;
	enum wfsd_slot_state state;
	bool ahead; /* claimed, and no reader has come yet */
	int err;
	struct wfsd_slot *older, *newer; /* from here: under the cache's lock */
	struct wfsd_slot_queue *queue;	 /* NULL: not READY yet, or leaving */
	uint64_t queued_at;		 /* what had been filled when it entered its queue, in bytes */
};

/* cap_bytes: at least 8 MiB. NULL: out of memory. */
struct wfsd_cache *wfsd_cache_new(size_t cap_bytes);
/* Nothing may be pinned. cache may be NULL. */
void wfsd_cache_free(struct wfsd_cache *cache);

enum wfsd_cache_answer {
	WFSD_HIT,	/* slot->raw holds the block */
	WFSD_FILL,	/* the caller must write slot->raw and call wfsd_cache_filled */
	WFSD_WAIT,	/* somebody else is filling it: wfsd_cache_wait */
	WFSD_NO_MEMORY, /* no slot */
};

/* What a block of raw_len bytes takes of the cap. */
size_t wfsd_cache_bytes(uint32_t raw_len);
/* Pins the slot of a block of raw_len bytes (1..1 MiB). A caller that got WFSD_FILL must not wait for any other slot
 * before it has filled this one, or two callers may wait for each other. */
enum wfsd_cache_answer wfsd_cache_get(struct wfsd_cache *cache, uint64_t file, uint64_t block, uint32_t raw_len,
				      struct wfsd_slot **slot_ret);
/* The same for somebody who decodes ahead: true is WFSD_FILL; false: the block is there or comes, or there is no
 * memory, and nothing is pinned. */
bool wfsd_cache_claim(struct wfsd_cache *cache, uint64_t file, uint64_t block, uint32_t raw_len,
		      struct wfsd_slot **slot_ret);
/* err: 0 when slot->raw is right, else the errno that all who wait shall get. The pin stays. */
void wfsd_cache_filled(struct wfsd_cache *cache, struct wfsd_slot *slot, int err);
/* Returns when the slot is filled: 0 or the errno. */
int wfsd_cache_wait(struct wfsd_cache *cache, struct wfsd_slot *slot);
/* Gives the pin back. served: bytes of the block that went to a reader. */
void wfsd_cache_put(struct wfsd_cache *cache, struct wfsd_slot *slot, uint32_t served);

/* A buffer of len bytes (1..2 MiB) of the cache's memory for other use, within the cap. NULL: out of memory. */
void *wfsd_cache_buffer_get(struct wfsd_cache *cache, size_t len);
void wfsd_cache_buffer_put(struct wfsd_cache *cache, void *buf, size_t len);

struct wfsd_cache_stats {
	uint64_t hits, misses, waits, evictions;
	uint64_t used_bytes, cap_bytes, overflow_bytes; /* overflow: above the cap */
};
/* Of the claimed blocks: what they hold of the cap before a reader comes; how many of them one came for; how many went
 * without, and what they held; and how many of these because others needed the room. Cheap. */
struct wfsd_cache_ahead {
	uint64_t bytes, used, wasted, wasted_bytes, evicted;
};
void wfsd_cache_ahead(struct wfsd_cache *cache, struct wfsd_cache_ahead *ahead_ret);
void wfsd_cache_stats(struct wfsd_cache *cache, struct wfsd_cache_stats *stats_ret);

#endif
