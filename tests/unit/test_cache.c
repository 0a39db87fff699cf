/* test_cache.c - the block cache and its arena: single flight, the cap, pins, eviction order, errors, blocks decoded
 * ahead, many threads. */
#include "test_util.h"

#include "arena.h"
#include "cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* ---- arena ---- */

/* Random sizes in random order: buffers never overlap, lie inside, and everything comes back as one. */
static void test_arena(void)
{
	enum { NR = 2000, TOTAL = 16 * MIB };
	static struct {
		unsigned char *buf;
		size_t len;
		unsigned char mark;
	} held[NR];
	struct wfsd_arena *a = wfsd_arena_new(TOTAL);
	uint64_t seed = 1;
	size_t used = 0;

	CHECK(a);
	for (unsigned round = 0; round < 20000; round++) {
		unsigned i = (unsigned)test_rand_below(&seed, NR);
		if (held[i].buf) {
			for (size_t k = 0; k < held[i].len; k += 509)
				CHECK(held[i].buf[k] == held[i].mark);
			CHECK(held[i].buf[held[i].len - 1] == held[i].mark);
			wfsd_arena_put(a, held[i].buf, held[i].len);
			used -= wfsd_arena_round(held[i].len);
			held[i].buf = NULL;
		} else {
			size_t len = 1 + test_rand_below(&seed, (uint64_t)1 << (10 + test_rand_below(&seed, 12)));
			held[i].buf = wfsd_arena_get(a, len);
			if (held[i].buf) {
				CHECK(wfsd_arena_owns(a, held[i].buf) && wfsd_arena_owns(a, held[i].buf + len - 1));
				held[i].len = len;
				held[i].mark = (unsigned char)(i * 7 + round);
				memset(held[i].buf, held[i].mark, len);
				used += wfsd_arena_round(len);
			}
		}
		CHECK(wfsd_arena_used(a) == used && used <= TOTAL);
	}
	for (unsigned i = 0; i < NR; i++)
		if (held[i].buf)
			wfsd_arena_put(a, held[i].buf, held[i].len);
	CHECK(wfsd_arena_used(a) == 0);
	for (unsigned i = 0; i < TOTAL / WFSD_ARENA_MAX; i++)
		CHECK(wfsd_arena_get(a, WFSD_ARENA_MAX));
	CHECK(!wfsd_arena_get(a, 1));
	wfsd_arena_free(a);
	PASS("arena: buffers never overlap, and all free memory joins again");
}

/* ---- one thread ---- */

static struct wfsd_slot *must_get(struct wfsd_cache *c, uint64_t file, uint64_t block, uint32_t len,
				  enum wfsd_cache_answer want)
{
	struct wfsd_slot *slot = NULL;
	enum wfsd_cache_answer got = wfsd_cache_get(c, file, block, len, &slot);
	CHECK_MSG(got == want, "file %d block %d: answer %d, not %d", (int)file, (int)block, got, want);
	return slot;
}

/* Get a block whose bytes are `mark`, filling it if need be; whether it was a hit. */
static bool touch(struct wfsd_cache *c, uint64_t block, uint32_t len, uint32_t served)
{
	struct wfsd_slot *slot;
	enum wfsd_cache_answer answer = wfsd_cache_get(c, 1, block, len, &slot);
	CHECK(answer == WFSD_HIT || answer == WFSD_FILL);
	if (answer == WFSD_FILL) {
		memset(slot->raw, (int)(block & 0xff), len);
		wfsd_cache_filled(c, slot, 0);
	}
	CHECK(slot->raw[0] == (block & 0xff) && slot->raw[len - 1] == (block & 0xff));
	wfsd_cache_put(c, slot, served);
	return answer == WFSD_HIT;
}

static void test_hit_and_error(void)
{
	struct wfsd_cache *c = wfsd_cache_new(16 * MIB);
	struct wfsd_cache_stats stats;

	CHECK(c);
	CHECK(!touch(c, 7, 256 * KIB, 1));
	CHECK(touch(c, 7, 256 * KIB, 1));
	/* The same block number of another file is another block. */
	struct wfsd_slot *other = must_get(c, 2, 7, 256 * KIB, WFSD_FILL);
	struct wfsd_slot *waiting = must_get(c, 2, 7, 256 * KIB, WFSD_WAIT);
	CHECK(other == waiting);
	/* An error reaches those who wait, and is not kept for those who come later. */
	wfsd_cache_filled(c, other, EIO);
	CHECK(wfsd_cache_wait(c, waiting) == EIO);
	struct wfsd_slot *again = must_get(c, 2, 7, 256 * KIB, WFSD_FILL);
	wfsd_cache_put(c, other, 0);
	wfsd_cache_put(c, waiting, 0);
	wfsd_cache_filled(c, again, 0);
	CHECK(wfsd_cache_wait(c, again) == 0);
	wfsd_cache_put(c, again, 0);
	wfsd_cache_stats(c, &stats);
	CHECK(stats.hits == 1 && stats.misses == 3 && stats.waits == 1);
	CHECK(stats.used_bytes == 512 * KIB && stats.overflow_bytes == 0 && stats.cap_bytes == 16 * MIB);
	CHECK(!touch(c, 9, 300000, 1));
	wfsd_cache_stats(c, &stats);
	CHECK(wfsd_cache_bytes(300000) == 512 * KIB && stats.used_bytes == 1024 * KIB);
	wfsd_cache_free(c);
	PASS("cache: hits, and errors that are shared but not kept");
}

static void test_cap(void)
{
	enum { CAP = 16 * MIB };
	struct wfsd_cache *c = wfsd_cache_new(CAP);
	struct wfsd_cache_stats stats;
	uint64_t seed = 3;

	for (unsigned i = 0; i < 4000; i++) {
		touch(c, test_rand_below(&seed, 500) << 5 | i % 5, (uint32_t)(8 * KIB) << 2 * (i % 5) >> (i % 5 == 4),
		      1);
		wfsd_cache_stats(c, &stats);
		CHECK(stats.used_bytes <= CAP && stats.overflow_bytes == 0);
	}
	CHECK(stats.evictions > 100);
	wfsd_cache_free(c);
	PASS("cache: mixed sizes stay under the cap");
}

static void test_pins(void)
{
	enum { NR = 16 };
	struct wfsd_cache *c = wfsd_cache_new(NR * MIB);
	struct wfsd_slot *held[NR + 1];
	struct wfsd_cache_stats stats;

	for (unsigned i = 0; i <= NR; i++) { /* the last one does not fit: it is served from above the cap */
		held[i] = must_get(c, 1, i, MIB, WFSD_FILL);
		memset(held[i]->raw, (int)i, MIB);
		wfsd_cache_filled(c, held[i], 0);
	}
	wfsd_cache_stats(c, &stats);
	CHECK(stats.used_bytes == NR * MIB && stats.overflow_bytes == MIB && stats.evictions == 0);
	for (unsigned i = 0; i <= NR; i++) {
		CHECK(held[i]->raw[0] == i && held[i]->raw[MIB - 1] == i);
		wfsd_cache_put(c, held[i], 1);
	}
	for (unsigned i = 100; i < 140; i++)
		touch(c, i, MIB, 1);
	wfsd_cache_stats(c, &stats);
	CHECK(stats.overflow_bytes == 0);
	void *buf = wfsd_cache_buffer_get(c, 2 * MIB);
	CHECK(buf);
	memset(buf, 1, 2 * MIB);
	wfsd_cache_stats(c, &stats);
	CHECK(stats.used_bytes <= NR * MIB && stats.overflow_bytes == 0);
	wfsd_cache_buffer_put(c, buf, 2 * MIB);
	wfsd_cache_free(c);
	PASS("cache: pinned blocks stay, and what goes above the cap comes back");
}

/* A long sequential reader must not push out blocks that small reads come back to; it works in a few buffers. */
static void test_spent_first(void)
{
	enum { LEN = 256 * KIB };
	struct wfsd_cache *c = wfsd_cache_new(64 * MIB);
	struct wfsd_cache_stats stats;

	for (unsigned i = 0; i < 100; i++)
		CHECK(!touch(c, i, LEN, 4 * KIB)); /* 25 MiB, read in part */
	for (unsigned i = 1000; i < 3000; i++)
		CHECK(!touch(c, i, LEN, LEN)); /* 500 MiB, read as a whole */
	for (unsigned i = 0; i < 100; i++)
		CHECK(touch(c, i, LEN, 4 * KIB));
	wfsd_cache_stats(c, &stats);
	CHECK(stats.used_bytes < 40 * MIB);
	/* Read as a whole in two halves counts as well, and what is read again in time stays. */
	CHECK(!touch(c, 5000, LEN, LEN / 2) && touch(c, 5000, LEN, LEN / 2) && touch(c, 5000, LEN, LEN));
	for (unsigned i = 6000; i < 6100; i++)
		touch(c, i, LEN, LEN);
	CHECK(touch(c, 5000, LEN, 1));
	CHECK(!touch(c, 2990, LEN, 1));
	wfsd_cache_free(c);
	PASS("cache: what was handed out whole goes first, what is used again stays");
}

/* ---- ahead of readers ---- */

/* Decode a block ahead; false: it is there. */
static bool claim(struct wfsd_cache *c, uint64_t block, uint32_t len)
{
	struct wfsd_slot *slot;

	if (!wfsd_cache_claim(c, 1, block, len, &slot))
		return false;
	memset(slot->raw, (int)(block & 0xff), len);
	wfsd_cache_filled(c, slot, 0);
	wfsd_cache_put(c, slot, 0);
	return true;
}

static void check_ahead(struct wfsd_cache *c, uint64_t bytes, uint64_t used, uint64_t wasted, uint64_t evicted)
{
	struct wfsd_cache_ahead a;

	wfsd_cache_ahead(c, &a);
	CHECK_MSG(a.bytes == bytes && a.used == used && a.wasted == wasted && a.evicted == evicted,
		  "ahead %d bytes, used %d, wasted %d, evicted %d", (int)a.bytes, (int)a.used, (int)a.wasted,
		  (int)a.evicted);
}

static void test_claim(void)
{
	struct wfsd_cache *c = wfsd_cache_new(16 * MIB);
	struct wfsd_cache_stats stats;
	struct wfsd_slot *slot, *reader, *late;

	/* Once only, and it is a hit for the first reader, who counts once. */
	CHECK(claim(c, 1, 200 * KIB) && !claim(c, 1, 200 * KIB));
	check_ahead(c, 256 * KIB, 0, 0, 0);
	CHECK(touch(c, 1, 200 * KIB, 1) && touch(c, 1, 200 * KIB, 1));
	check_ahead(c, 0, 1, 0, 0);
	/* What a reader has or is about to have is left to him. */
	reader = must_get(c, 1, 2, MIB, WFSD_FILL);
	CHECK(!wfsd_cache_claim(c, 1, 2, MIB, &slot));
	wfsd_cache_filled(c, reader, 0);
	CHECK(!wfsd_cache_claim(c, 1, 2, MIB, &slot));
	wfsd_cache_put(c, reader, 1);
	check_ahead(c, 0, 1, 0, 0);
	/* A reader who comes before it is filled waits; an error is his, too, and the next one tries anew. */
	CHECK(wfsd_cache_claim(c, 1, 3, MIB, &slot));
	check_ahead(c, MIB, 1, 0, 0);
	late = must_get(c, 1, 3, MIB, WFSD_WAIT);
	check_ahead(c, 0, 2, 0, 0);
	CHECK(late == slot);
	wfsd_cache_filled(c, slot, EIO);
	CHECK(wfsd_cache_wait(c, late) == EIO);
	wfsd_cache_put(c, slot, 0);
	wfsd_cache_put(c, late, 0);
	check_ahead(c, 0, 2, 0, 0);
	/* An error that nobody waits for: it is gone with the claim. */
	CHECK(wfsd_cache_claim(c, 1, 3, MIB, &slot));
	wfsd_cache_filled(c, slot, EIO);
	wfsd_cache_put(c, slot, 0);
	check_ahead(c, 0, 2, 1, 0);
	CHECK(!touch(c, 3, MIB, 1));
	wfsd_cache_stats(c, &stats);
	CHECK(stats.misses == 5 && stats.hits == 2 && stats.waits == 1 && stats.overflow_bytes == 0);
	CHECK(stats.used_bytes == 2 * MIB + 256 * KIB);
	CHECK(claim(c, 4, MIB)); /* freed unread */
	wfsd_cache_free(c);
	PASS("cache: a block decoded ahead is decoded once and counted once");
}

static void test_claim_order(void)
{
	enum { CAP = 16 * MIB, NR = 4 };
	struct wfsd_cache *c = wfsd_cache_new(CAP);
	struct wfsd_cache_stats stats;

	/* Blocks ahead of a reader outlive those that were read in part or as a whole. */
	for (unsigned i = 0; i < NR; i++)
		CHECK(claim(c, i, MIB));
	for (unsigned i = 100; i < 112; i++)
		CHECK(!touch(c, i, MIB, i % 2 ? MIB : 1));
	CHECK(claim(c, 10, MIB)); /* there is no room, and nothing older than the four is left untouched */
	for (unsigned i = 0; i < NR; i++)
		CHECK(touch(c, i, MIB, MIB));
	check_ahead(c, MIB, NR, 0, 0);
	/* When a whole cap was filled since, their reader is gone, though there was no need of their room. */
	for (unsigned i = 1000; i < 1040; i++)
		CHECK(!touch(c, i, MIB, MIB));
	check_ahead(c, 0, NR, 1, 0);
	wfsd_cache_stats(c, &stats);
	CHECK(stats.used_bytes < CAP && stats.overflow_bytes == 0);
	/* Nothing but blocks ahead of readers: the oldest goes, and that is told. */
	for (unsigned i = 0; i <= CAP / MIB; i++)
		CHECK(claim(c, 2000 + i, MIB));
	check_ahead(c, CAP, NR, 2, 1);
	CHECK(!touch(c, 2000, MIB, 1));
	check_ahead(c, CAP - MIB, NR, 3, 2);
	wfsd_cache_free(c);
	PASS("cache: blocks ahead of their reader go last, and at once when he is gone");
}

/* ---- many threads ---- */

enum { NR_THREADS = 16, NR_BLOCKS = 250, NR_ROUNDS = 3000 };

struct crowd {
	struct wfsd_cache *c;
	atomic_uint filling[NR_BLOCKS]; /* how many threads fill this block right now: never two */
	atomic_uint fills;
};

static uint32_t block_len(unsigned block)
{
	return (uint32_t)(8 * KIB) << block % 6;
}

static void fill_or_fail(struct crowd *crowd, struct wfsd_slot *slot, unsigned block, bool fail)
{
	CHECK(atomic_fetch_add(&crowd->filling[block], 1) == 0);
	memset(slot->raw, fail ? 0xee : (int)block, block_len(block));
	atomic_fetch_add(&crowd->fills, 1);
	atomic_fetch_sub(&crowd->filling[block], 1);
	wfsd_cache_filled(crowd->c, slot, fail ? EIO : 0);
}

static void *one_of_many(void *arg)
{
	struct crowd *crowd = arg;
	static atomic_uint number;
	uint64_t seed = 11 + atomic_fetch_add(&number, 1);

	for (unsigned round = 0; round < NR_ROUNDS; round++) {
		/* Two blocks at once, as read.c does: what is ours first, then what is others'. */
		unsigned block[2] = {(unsigned)test_rand_below(&seed, NR_BLOCKS), 0};
		enum wfsd_cache_answer answer[2];
		struct wfsd_slot *slot[2];
		bool fail = test_rand_below(&seed, 16) == 0;

		block[1] = (block[0] + 1 + (unsigned)test_rand_below(&seed, NR_BLOCKS - 1)) % NR_BLOCKS;
		if (round % 4 == 0 && wfsd_cache_claim(crowd->c, 9, block[1], block_len(block[1]), &slot[1])) {
			fill_or_fail(crowd, slot[1], block[1], fail);
			wfsd_cache_put(crowd->c, slot[1], 0);
		}
		for (int i = 0; i < 2; i++)
			answer[i] = wfsd_cache_get(crowd->c, 9, block[i], block_len(block[i]), &slot[i]);
		for (int i = 0; i < 2; i++)
			if (answer[i] == WFSD_FILL)
				fill_or_fail(crowd, slot[i], block[i], fail);
		for (int i = 0; i < 2; i++) {
			int err = answer[i] == WFSD_HIT ? 0 : wfsd_cache_wait(crowd->c, slot[i]);
			CHECK(err == 0 || err == EIO);
			for (uint32_t k = 0; !err && k < block_len(block[i]); k += 4001)
				CHECK(slot[i]->raw[k] == block[i]);
			wfsd_cache_put(crowd->c, slot[i], err ? 0 : (uint32_t)test_rand_below(&seed, MIB));
		}
	}
	return NULL;
}

static void test_threads(void)
{
	struct crowd crowd = {.c = wfsd_cache_new(16 * MIB)};
	pthread_t threads[NR_THREADS];
	struct wfsd_cache_stats stats;
	struct wfsd_cache_ahead ahead;

	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, one_of_many, &crowd));
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	wfsd_cache_stats(crowd.c, &stats);
	CHECK(stats.misses == atomic_load(&crowd.fills));
	wfsd_cache_ahead(crowd.c, &ahead);
	CHECK(ahead.used > 0 && ahead.wasted > 0 && ahead.bytes <= stats.used_bytes);
	CHECK(stats.hits + stats.waits <= 2u * NR_THREADS * NR_ROUNDS);
	CHECK(stats.hits + stats.misses + stats.waits >= 2u * NR_THREADS * NR_ROUNDS);
	CHECK(stats.evictions > 0);
	wfsd_cache_free(crowd.c);
	PASS("cache: 16 threads, never two that fill one block, never a wrong byte");
}

int main(void)
{
	test_arena();
	test_hit_and_error();
	test_cap();
	test_pins();
	test_spent_first();
	test_claim();
	test_claim_order();
	test_threads();
	return 0;
}
