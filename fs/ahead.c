/* ahead.c - see ahead.h. */
#include "ahead.h"
#include "cache.h"
#include "fetch.h"
#include "file.h"
#include "fs.h"
#include "streams.h"
#include "tensors.h"
#include "tree.h"
#include "tune.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	NR_TASKS = 64,
	PIECE = 1 << 20,	     /* bytes of the original that one thread takes at once */
	MAX_PIECE_BYTES = 2 * PIECE, /* of whole blocks for these: copies may be small parts of large ones */
	MAX_JOBS = 32,
	MAX_EXTENTS = 256, /* of a piece: more are no model, but a reason to leave it alone */
	MIN_READ_AHEAD = 128 << 10,
	ENOUGH_READ_AHEAD = 1 << 20,
	JOIN_SECONDS = 1, /* for threads without work */
	CACHE_SHARE = 4,  /* blocks ahead of their readers take at most this part of the cache */
};

/* ---- the readers of a file ------------------------------------------------------------------------------------- */

struct wfsd_readers {
	pthread_mutex_t lock;
	struct wfsd_streams streams; /* under the lock */
	uint64_t kernel_bytes;	     /* constant: the kernel's read-ahead on this mount */
	uint32_t block_bytes;	     /* constant */
	atomic_bool tensors_wanted;  /* by the first thread that decodes ahead, which reads them */
	_Atomic(struct wfsd_tensors *) tensors;
};

static struct wfsd_readers *readers_of(struct wfsd *d, struct wfsd_file *file)
{
	struct wfsd_readers *r = atomic_load_explicit(&file->readers, memory_order_acquire);

	if (r)
		return r;
	struct wfsd_readers *fresh = calloc(1, sizeof(*fresh));
	struct wfs_info info;
	if (!fresh)
		return NULL;
	pthread_mutex_init(&fresh->lock, NULL);
	wfs_reader_info(file->reader, &info);
	fresh->block_bytes = 1u << info.head.block_log2;
	fresh->kernel_bytes = (uint64_t)wfsd_tune_now(d).read_ahead_kb << 10;
	if (fresh->kernel_bytes < MIN_READ_AHEAD)
		fresh->kernel_bytes = MIN_READ_AHEAD;
	if (atomic_compare_exchange_strong(&file->readers, &r, fresh))
		return fresh;
	wfsd_readers_free(fresh);
	return r;
}

void wfsd_readers_free(struct wfsd_readers *r)
{
	if (!r)
		return;
	free(r->tensors);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* ---- what is to do --------------------------------------------------------------------------------------------- */

/* raw[off, end) of a file, on which it holds a reference. */
struct task {
	struct wfsd_file *file;
	uint64_t off, end;
};

struct wfsd_ahead {
	struct wfsd *d;
	pthread_t *threads;
	unsigned nr_started;
	pthread_mutex_t lock; /* from here */
	pthread_cond_t work;  /* there is a task, or stop */
	struct task task[NR_TASKS];
	unsigned first, nr;
	uint64_t todo_bytes; /* of all tasks */
	bool stop;
};

/* How much more may be decoded ahead now: nothing where requests come early enough (kernel_leads) and need not wait for
 * the disk. There it would only move the work to another processor's cache. */
static uint64_t room(struct wfsd *d, const struct wfsd_file *file, bool kernel_leads,
		     const struct wfsd_cache_ahead *cache)
{
	struct wfsd_ahead *a = d->ahead;
	/* What one file may waste (streams.h) all of them may, too: many short reads of many files add up. */
	const uint64_t served = atomic_load_explicit(&d->stats.bytes_served, memory_order_relaxed);
	const uint64_t credit = WFSD_FREE_WASTE + served / WFSD_WASTE_SHARE;
	const uint64_t share = d->opts->cache_bytes / CACHE_SHARE;

	if (wfsd_is_crowded(&d->crowd) ||
	    (kernel_leads && !atomic_load_explicit(&file->bypass.on_disk, memory_order_relaxed)))
		return 0;
	pthread_mutex_lock(&a->lock);
	const uint64_t ahead = cache->bytes + a->todo_bytes;
	const bool full = a->nr == NR_TASKS;
	pthread_mutex_unlock(&a->lock);
	const uint64_t spent = ahead + cache->wasted_bytes;
	if (full || ahead >= share || spent >= credit)
		return 0;
	return share - ahead < credit - spent ? share - ahead : credit - spent;
}

static void task_add(struct wfsd_ahead *a, struct wfsd_file *file, uint64_t off, uint64_t len)
{
	pthread_mutex_lock(&a->lock);
	if (a->nr < NR_TASKS && !a->stop) {
		wfsd_file_ref(file);
		a->task[(a->first + a->nr++) % NR_TASKS] = (struct task){file, off, off + len};
		a->todo_bytes += len;
		pthread_cond_signal(&a->work);
	}
	pthread_mutex_unlock(&a->lock);
}

void wfsd_ahead_note(struct wfsd *d, struct wfsd_file *file, uint64_t off, size_t len, bool o_direct, bool late)
{
	struct wfsd_readers *r = readers_of(d, file);
	struct wfsd_cache_ahead cache;
	uint64_t from;

	if (!r)
		return;
	wfsd_cache_ahead(d->cache, &cache);
	const struct wfsd_tensors *tensors = atomic_load_explicit(&r->tensors, memory_order_acquire);
	const struct wfsd_ask ask = {
		.off = off,
		.len = len,
		.late = late,
		.raw_len = file->raw_len,
		.block_bytes = r->block_bytes,
		/* Read-ahead comes in two windows, one of them asked for while the other is read. */
		.kernel_bytes = 2 * (o_direct ? len : r->kernel_bytes),
		.room_bytes = room(d, file, !o_direct && r->kernel_bytes >= ENOUGH_READ_AHEAD, &cache),
		.nr_evicted = cache.evicted,
		.tensors = tensors ? tensors->span : NULL,
		.nr_tensors = tensors ? tensors->nr : 0,
	};
	pthread_mutex_lock(&r->lock);
	uint64_t ahead = wfsd_streams_ask(&r->streams, &ask, &from);
	pthread_mutex_unlock(&r->lock);
	if (ahead)
		task_add(d->ahead, file, from, ahead);
}

/* ---- doing it -------------------------------------------------------------------------------------------------- */

/* Decodes those of the jobs' blocks that nobody else has, and leaves them in the cache. */
static void run(struct wfsd *d, struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr)
{
	if (!nr)
		return;
	wfsd_fetch_run(d, file, jobs, nr, 0);
	for (unsigned i = 0; i < nr; i++)
		wfsd_cache_put(d->cache, jobs[i].slot, 0);
}

static void decode_piece(struct wfsd *d, struct wfsd_file *file, uint64_t off, uint64_t end)
{
	struct wfsd_readers *r = atomic_load_explicit(&file->readers, memory_order_acquire);
	struct wfsd_job jobs[MAX_JOBS];
	uint64_t bytes = 0;
	unsigned nr = 0;

	pthread_mutex_lock(&r->lock);
	off = wfsd_streams_wanted(&r->streams, off, end);
	pthread_mutex_unlock(&r->lock);
	for (unsigned i = 0; off < end && i < MAX_EXTENTS && bytes < MAX_PIECE_BYTES; i++) {
		struct wfs_extent extent;
		struct wfs_block block;

		wfs_reader_extent(file->reader, off, &extent);
		off += extent.len;
		if (extent.block == WFS_NO_BLOCK || wfsd_file_block_is_bad(file, extent.block))
			continue;
		wfs_reader_block(file->reader, extent.block, &block);
		jobs[nr].block = extent.block;
		if (!wfsd_cache_claim(d->cache, file->node->id, extent.block, block.raw_len, &jobs[nr].slot))
			continue;
		wfsd_count(&d->stats.ahead_blocks, 1);
		bytes += wfsd_cache_bytes(block.raw_len);
		if (++nr == MAX_JOBS) {
			run(d, file, jobs, nr);
			nr = 0;
		}
	}
	run(d, file, jobs, nr);
}

static void learn_tensors(struct wfsd_file *file)
{
	struct wfsd_readers *r = atomic_load_explicit(&file->readers, memory_order_acquire);

	if (!atomic_exchange(&r->tensors_wanted, true))
		atomic_store_explicit(&r->tensors, wfsd_tensors_read(file), memory_order_release);
}

static void task_drop(struct wfsd_ahead *a)
{
	a->todo_bytes -= a->task[a->first].end - a->task[a->first].off;
	a->first = (a->first + 1) % NR_TASKS;
	a->nr--;
}

/* Takes a piece of the first task. Under the lock, with at least one task. */
static struct task piece_take(struct wfsd_ahead *a)
{
	struct task *t = &a->task[a->first], piece = *t;

	if (t->end - t->off <= PIECE) {
		task_drop(a); /* its reference is now the piece's */
		return piece;
	}
	piece.end = piece.off + PIECE;
	t->off += PIECE;
	a->todo_bytes -= PIECE;
	wfsd_file_ref(piece.file);
	return piece;
}

static void *worker(void *arg)
{
	struct wfsd_ahead *a = arg;

	pthread_mutex_lock(&a->lock);
	for (;;) {
		while (!a->nr && !a->stop)
			pthread_cond_wait(&a->work, &a->lock);
		if (a->stop)
			break;
		struct task piece = piece_take(a);
		if (a->nr)
			pthread_cond_signal(&a->work);
		pthread_mutex_unlock(&a->lock);
		decode_piece(a->d, piece.file, piece.off, piece.end);
		learn_tensors(piece.file);
		wfsd_file_put(a->d, piece.file);
		pthread_mutex_lock(&a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct wfsd_ahead *wfsd_ahead_new(struct wfsd *d, unsigned nr_threads)
{
	struct wfsd_ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->work, NULL);
	a->d = d;
	a->threads = calloc(nr_threads, sizeof(*a->threads));
	while (a->threads && a->nr_started < nr_threads) {
		if (pthread_create(&a->threads[a->nr_started], NULL, worker, a))
			break;
		a->nr_started++;
	}
	if (a->nr_started == nr_threads)
		return a;
	wfsd_ahead_free(d, a);
	return NULL;
}

bool wfsd_ahead_stop(struct wfsd *d, struct wfsd_ahead *a, unsigned seconds)
{
	struct timespec until;

	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	for (; a->nr_started; a->nr_started--)
		if (pthread_timedjoin_np(a->threads[a->nr_started - 1], NULL, &until))
			return false;
	while (a->nr) {
		wfsd_file_put(d, a->task[a->first].file);
		task_drop(a);
	}
	return true;
}

void wfsd_ahead_free(struct wfsd *d, struct wfsd_ahead *a)
{
	if (!a)
		return;
	wfsd_ahead_stop(d, a, JOIN_SECONDS);
	free(a->threads);
	pthread_cond_destroy(&a->work);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
