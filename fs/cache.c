/* cache.c - see cache.h.
 *
 * Locks: a shard's lock covers its hash chains, pins and states; the cache's lock covers the queues and the arena. A
 * hit takes the shard's lock alone. Order: cache, then shard.
 */
#include "cache.h"
#include "arena.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
	NR_SHARDS = 64,
	SPENT_KEEP_BYTES = 8 << 20, /* fits most last-level caches beside what the kernel copies */
};

struct shard {
	alignas(64) pthread_mutex_t lock;
	pthread_cond_t filled;
	uint32_t nr_waiting;
	uint64_t hits, misses, waits;
	struct wfsd_slot **bucket;
};

struct wfsd_slot_queue {
	struct wfsd_slot *oldest, *newest;
	size_t nr, bytes;
};

struct wfsd_cache {
	struct shard shard[NR_SHARDS];
	size_t nr_buckets; /* of each shard, a power of two */
	size_t cap_bytes;
	_Atomic uint64_t ahead_bytes, ahead_used, ahead_wasted, ahead_wasted_bytes, ahead_evicted;
	pthread_mutex_t lock; /* from here */
	struct wfsd_arena *arena;
	struct wfsd_slot_queue kept, spent, ahead; /* ahead: claimed ones, until they are spent or old */
	uint64_t evictions, overflow_bytes, filled_bytes;
};

static uint64_t slot_hash(uint64_t file, uint64_t block)
{
	uint64_t h = (file * 0x9e3779b97f4a7c15 + block) * 0xd6e8feb86659fd93;
	return h ^ h >> 32;
}

struct wfsd_cache *wfsd_cache_new(size_t cap_bytes)
{
	struct wfsd_cache *c = aligned_alloc(alignof(struct shard), sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct wfsd_cache){.cap_bytes = cap_bytes, .nr_buckets = 8};
	/* One bucket for each 64 KiB, the smallest regular block. */
	while (c->nr_buckets * NR_SHARDS < cap_bytes >> 16)
		c->nr_buckets *= 2;
	pthread_mutex_init(&c->lock, NULL);
	for (int i = 0; i < NR_SHARDS; i++) {
		pthread_mutex_init(&c->shard[i].lock, NULL);
		pthread_cond_init(&c->shard[i].filled, NULL);
	}
	struct wfsd_slot **buckets = calloc(NR_SHARDS * c->nr_buckets, sizeof(*buckets));
	c->arena = wfsd_arena_new(cap_bytes);
	c->shard[0].bucket = buckets; /* so that it is freed */
	if (!buckets || !c->arena) {
		wfsd_cache_free(c);
		return NULL;
	}
	for (int i = 0; i < NR_SHARDS; i++)
		c->shard[i].bucket = buckets + (size_t)i * c->nr_buckets;
	return c;
}

size_t wfsd_cache_bytes(uint32_t raw_len)
{
	return wfsd_arena_round(raw_len);
}

static void queue_add(struct wfsd_cache *c, struct wfsd_slot_queue *q, struct wfsd_slot *slot)
{
	slot->queued_at = c->filled_bytes;
	slot->queue = q;
	slot->newer = NULL;
	slot->older = q->newest;
	if (q->newest)
		q->newest->newer = slot;
	else
		q->oldest = slot;
	q->newest = slot;
	q->nr++;
	q->bytes += wfsd_cache_bytes(slot->raw_len);
}

static void queue_remove(struct wfsd_slot *slot)
{
	struct wfsd_slot_queue *q = slot->queue;
	*(slot->older ? &slot->older->newer : &q->oldest) = slot->newer;
	*(slot->newer ? &slot->newer->older : &q->newest) = slot->older;
	q->nr--;
	q->bytes -= wfsd_cache_bytes(slot->raw_len);
	slot->queue = NULL;
}

static struct shard *shard_of(struct wfsd_cache *c, uint64_t file, uint64_t block)
{
	return &c->shard[slot_hash(file, block) % NR_SHARDS];
}

/* The place in the chain that points to the slot, or to NULL. */
static struct wfsd_slot **chain_find(struct wfsd_cache *c, struct shard *s, uint64_t file, uint64_t block)
{
	struct wfsd_slot **p = &s->bucket[slot_hash(file, block) / NR_SHARDS & (c->nr_buckets - 1)];
	while (*p && ((*p)->file != file || (*p)->block != block))
		p = &(*p)->chain;
	return p;
}

/* Gives memory back. Under the cache's lock. */
static void memory_put(struct wfsd_cache *c, void *buf, size_t len)
{
	if (wfsd_arena_owns(c->arena, buf)) {
		wfsd_arena_put(c->arena, buf, len);
	} else {
		munmap(buf, wfsd_arena_round(len));
		c->overflow_bytes -= wfsd_arena_round(len);
	}
}

/* A claimed slot has its first reader, or will never have one. Under the shard's lock, or when nobody finds the slot.
 */
static void ahead_ends(struct wfsd_cache *c, struct wfsd_slot *slot, bool used)
{
	const uint64_t bytes = wfsd_cache_bytes(slot->raw_len);

	slot->ahead = false;
	atomic_fetch_sub_explicit(&c->ahead_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(used ? &c->ahead_used : &c->ahead_wasted, 1, memory_order_relaxed);
	if (!used)
		atomic_fetch_add_explicit(&c->ahead_wasted_bytes, bytes, memory_order_relaxed);
}

static void slot_free(struct wfsd_cache *c, struct wfsd_slot *slot)
{
	if (slot->ahead)
		ahead_ends(c, slot, false);
	memory_put(c, slot->raw, slot->raw_len);
	free(slot);
}

/* Drops the oldest slot of a queue, or moves it to the newest end: a pinned one of this queue, one that was used again
 * of the kept one. True: dropped. Under the cache's lock; the queue is not empty. */
static bool evict_oldest(struct wfsd_cache *c, struct wfsd_slot_queue *q)
{
	struct wfsd_slot *slot = q->oldest;
	struct shard *s = shard_of(c, slot->file, slot->block);
	struct wfsd_slot_queue *to = NULL;

	pthread_mutex_lock(&s->lock);
	if (atomic_exchange_explicit(&slot->used_again, false, memory_order_relaxed))
		to = &c->kept;
	else if (slot->pins)
		to = q;
	else
		*chain_find(c, s, slot->file, slot->block) = slot->chain;
	pthread_mutex_unlock(&s->lock);
	queue_remove(slot);
	if (to) {
		queue_add(c, to, slot);
		return false;
	}
	slot_free(c, slot);
	c->evictions++;
	return true;
}

/* Drops one slot of a queue; twice round finds one if there is one. Under the cache's lock. */
static bool evict_one(struct wfsd_cache *c, struct wfsd_slot_queue *q)
{
	for (size_t left = 2 * q->nr; left && q->oldest; left--)
		if (evict_oldest(c, q))
			return true;
	return false;
}

/* The same for want of room, where it is a pity. Under the cache's lock. */
static bool evict_ahead(struct wfsd_cache *c)
{
	const bool dropped = evict_one(c, &c->ahead);

	if (dropped)
		atomic_fetch_add_explicit(&c->ahead_evicted, 1, memory_order_relaxed);
	return dropped;
}

/* Drops claimed slots for which no reader will come any more: else they would hold for good the room that there is for
 * decoding ahead. Under the cache's lock. */
static void drop_abandoned(struct wfsd_cache *c)
{
	while (c->ahead.oldest && c->filled_bytes - c->ahead.oldest->queued_at > c->cap_bytes)
		evict_oldest(c, &c->ahead);
}

void *wfsd_cache_buffer_get(struct wfsd_cache *c, size_t len)
{
	void *buf;

	pthread_mutex_lock(&c->lock);
	drop_abandoned(c);
	while (c->spent.bytes > SPENT_KEEP_BYTES && evict_one(c, &c->spent))
		;
	while (!(buf = wfsd_arena_get(c->arena, len)) &&
	       (evict_one(c, &c->spent) || evict_one(c, &c->kept) || evict_ahead(c)))
		;
	if (!buf)
		c->overflow_bytes += wfsd_arena_round(len);
	pthread_mutex_unlock(&c->lock);
	if (buf)
		return buf;
	buf = mmap(NULL, wfsd_arena_round(len), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf != MAP_FAILED)
		return buf;
	pthread_mutex_lock(&c->lock);
	c->overflow_bytes -= wfsd_arena_round(len);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void wfsd_cache_buffer_put(struct wfsd_cache *c, void *buf, size_t len)
{
	pthread_mutex_lock(&c->lock);
	memory_put(c, buf, len);
	pthread_mutex_unlock(&c->lock);
}

static struct wfsd_slot *slot_new(struct wfsd_cache *c, uint64_t file, uint64_t block, uint32_t raw_len)
{
	struct wfsd_slot *slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->raw = wfsd_cache_buffer_get(c, raw_len);
	if (!slot->raw) {
		free(slot);
		return NULL;
	}
	slot->file = file;
	slot->block = block;
	slot->raw_len = raw_len;
	slot->pins = 1;
	return slot;
}

/* Frees a slot that nobody has seen. */
static void slot_drop(struct wfsd_cache *c, struct wfsd_slot *slot)
{
	wfsd_cache_buffer_put(c, slot->raw, slot->raw_len);
	free(slot);
}

/* Pins the slot if it is there. Under the shard's lock. */
static enum wfsd_cache_answer slot_pin(struct wfsd_cache *c, struct shard *s, struct wfsd_slot *slot)
{
	slot->pins++;
	if (slot->ahead)
		ahead_ends(c, slot, true);
	atomic_store_explicit(&slot->used_again, true, memory_order_relaxed);
	*(slot->state == WFSD_READY ? &s->hits : &s->waits) += 1;
	return slot->state == WFSD_READY ? WFSD_HIT : WFSD_WAIT;
}

enum wfsd_cache_answer wfsd_cache_get(struct wfsd_cache *c, uint64_t file, uint64_t block, uint32_t raw_len,
				      struct wfsd_slot **slot_ret)
{
	struct shard *s = shard_of(c, file, block);
	enum wfsd_cache_answer answer = WFSD_FILL;
	struct wfsd_slot *fresh, **p;

	pthread_mutex_lock(&s->lock);
	p = chain_find(c, s, file, block);
	if (*p) {
		*slot_ret = *p;
		answer = slot_pin(c, s, *p);
	}
	pthread_mutex_unlock(&s->lock);
	if (answer != WFSD_FILL)
		return answer;

	fresh = slot_new(c, file, block, raw_len);
	if (!fresh)
		return WFSD_NO_MEMORY;
	pthread_mutex_lock(&s->lock);
	p = chain_find(c, s, file, block);
	if (*p) { /* another thread was faster */
		*slot_ret = *p;
		answer = slot_pin(c, s, *p);
	} else {
		*slot_ret = *p = fresh;
		s->misses++;
	}
	pthread_mutex_unlock(&s->lock);
	if (answer != WFSD_FILL)
		slot_drop(c, fresh);
	return answer;
}

bool wfsd_cache_claim(struct wfsd_cache *c, uint64_t file, uint64_t block, uint32_t raw_len,
		      struct wfsd_slot **slot_ret)
{
	struct shard *s = shard_of(c, file, block);
	struct wfsd_slot *fresh, **p;
	bool there;

	pthread_mutex_lock(&s->lock);
	there = *chain_find(c, s, file, block);
	pthread_mutex_unlock(&s->lock);
	fresh = there ? NULL : slot_new(c, file, block, raw_len);
	if (!fresh)
		return false;
	pthread_mutex_lock(&s->lock);
	p = chain_find(c, s, file, block);
	there = *p;
	if (!there) {
		*slot_ret = *p = fresh;
		fresh->claimed = fresh->ahead = true;
		s->misses++;
		atomic_fetch_add_explicit(&c->ahead_bytes, wfsd_cache_bytes(raw_len), memory_order_relaxed);
	}
	pthread_mutex_unlock(&s->lock);
	if (there)
		slot_drop(c, fresh);
	return !there;
}

void wfsd_cache_filled(struct wfsd_cache *c, struct wfsd_slot *slot, int err)
{
	struct shard *s = shard_of(c, slot->file, slot->block);

	if (!err) {
		pthread_mutex_lock(&c->lock);
		c->filled_bytes += wfsd_cache_bytes(slot->raw_len);
		queue_add(c, slot->claimed ? &c->ahead : &c->kept, slot);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_lock(&s->lock);
	slot->err = err;
	slot->state = err ? WFSD_FAILED : WFSD_READY;
	if (err)
		*chain_find(c, s, slot->file, slot->block) = slot->chain;
	if (s->nr_waiting)
		pthread_cond_broadcast(&s->filled);
	pthread_mutex_unlock(&s->lock);
}

int wfsd_cache_wait(struct wfsd_cache *c, struct wfsd_slot *slot)
{
	struct shard *s = shard_of(c, slot->file, slot->block);

	pthread_mutex_lock(&s->lock);
	s->nr_waiting++;
	while (slot->state == WFSD_FILLING)
		pthread_cond_wait(&s->filled, &s->lock);
	s->nr_waiting--;
	int err = slot->err;
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* All its bytes went out: from now on it is among the first to go. The caller's pin keeps it alive. */
static void slot_spent(struct wfsd_cache *c, struct wfsd_slot *slot)
{
	pthread_mutex_lock(&c->lock);
	if (slot->queue) {
		queue_remove(slot);
		queue_add(c, &c->spent, slot);
		atomic_store_explicit(&slot->used_again, false, memory_order_relaxed);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Gives back the pin of a slot above the cap: with the last one it goes at once, not when others need the room. */
static void put_overflow(struct wfsd_cache *c, struct wfsd_slot *slot)
{
	struct shard *s = shard_of(c, slot->file, slot->block);
	bool dead;

	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&s->lock);
	dead = --slot->pins == 0;
	if (dead && slot->state == WFSD_READY)
		*chain_find(c, s, slot->file, slot->block) = slot->chain;
	pthread_mutex_unlock(&s->lock);
	if (dead && slot->queue)
		queue_remove(slot);
	if (dead)
		slot_free(c, slot);
	pthread_mutex_unlock(&c->lock);
}

void wfsd_cache_put(struct wfsd_cache *c, struct wfsd_slot *slot, uint32_t served)
{
	struct shard *s = shard_of(c, slot->file, slot->block);
	bool dead;

	if (served) {
		uint32_t before = atomic_fetch_add_explicit(&slot->served, served, memory_order_relaxed);
		if (before < slot->raw_len && before + served >= slot->raw_len)
			slot_spent(c, slot);
	}
	if (!wfsd_arena_owns(c->arena, slot->raw)) {
		put_overflow(c, slot);
		return;
	}
	pthread_mutex_lock(&s->lock);
	dead = --slot->pins == 0 && slot->state == WFSD_FAILED;
	pthread_mutex_unlock(&s->lock);
	if (dead) {
		pthread_mutex_lock(&c->lock);
		slot_free(c, slot);
		pthread_mutex_unlock(&c->lock);
	}
}

void wfsd_cache_ahead(struct wfsd_cache *c, struct wfsd_cache_ahead *ahead_ret)
{
	*ahead_ret = (struct wfsd_cache_ahead){
		.bytes = atomic_load_explicit(&c->ahead_bytes, memory_order_relaxed),
		.used = atomic_load_explicit(&c->ahead_used, memory_order_relaxed),
		.wasted = atomic_load_explicit(&c->ahead_wasted, memory_order_relaxed),
		.wasted_bytes = atomic_load_explicit(&c->ahead_wasted_bytes, memory_order_relaxed),
		.evicted = atomic_load_explicit(&c->ahead_evicted, memory_order_relaxed),
	};
}

void wfsd_cache_stats(struct wfsd_cache *c, struct wfsd_cache_stats *stats_ret)
{
	*stats_ret = (struct wfsd_cache_stats){.cap_bytes = c->cap_bytes};
	for (int i = 0; i < NR_SHARDS; i++) {
		struct shard *s = &c->shard[i];
		pthread_mutex_lock(&s->lock);
		stats_ret->hits += s->hits;
		stats_ret->misses += s->misses;
		stats_ret->waits += s->waits;
		pthread_mutex_unlock(&s->lock);
	}
	pthread_mutex_lock(&c->lock);
	stats_ret->used_bytes = wfsd_arena_used(c->arena);
	stats_ret->evictions = c->evictions;
	stats_ret->overflow_bytes = c->overflow_bytes;
	pthread_mutex_unlock(&c->lock);
}

void wfsd_cache_free(struct wfsd_cache *c)
{
	if (!c)
		return;
	struct wfsd_slot_queue *const queues[] = {&c->kept, &c->spent, &c->ahead};
	for (int i = 0; i < 3; i++)
		while (queues[i]->oldest) {
			struct wfsd_slot *slot = queues[i]->oldest;
			queue_remove(slot);
			slot_free(c, slot);
		}
	wfsd_arena_free(c->arena);
	free(c->shard[0].bucket);
	for (int i = 0; i < NR_SHARDS; i++) {
		pthread_mutex_destroy(&c->shard[i].lock);
		pthread_cond_destroy(&c->shard[i].filled);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}
