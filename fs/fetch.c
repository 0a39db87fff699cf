/* fetch.c - see fetch.h.
 *
 * A batch lies on the stack of the thread that owns it. Its jobs are claimed by an atomic counter; `users`, under the
 * lock, counts the workers that look at it, and the owner leaves only when there are none.
 *
 * A job holds a decoder (scratch and room for one stored block) while it reads and decodes. There are more decoders
 * than processors, so that several reads of a slow disk are under way; the last one used goes first: it is warm.
 */
#include "fetch.h"
#include "file.h"
#include "fs.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCK = 1 << 20, MIN_DECODERS = 16, DECODERS_PER_THREAD = 2 };

struct decoder {
	struct decoder *next;
	struct wfs_scratch *scratch;
	unsigned char *comp; /* MAX_BLOCK bytes */
};

struct batch {
	struct wfsd *d;
	struct wfsd_file *file;
	const struct wfsd_job *jobs;
	unsigned nr;
	atomic_uint next; /* the first job that nobody has claimed; may run past nr */
	/* under the lock of struct wfsd_fetch */
	unsigned users;
	bool queued;
	struct batch *following;
};

struct wfsd_fetch {
	unsigned nr_threads, nr_decoders;
	pthread_t *threads;
	atomic_uint nr_active; /* threads that run jobs: helpers are called only for idle processors */
	pthread_mutex_t lock;  /* from here */
	pthread_cond_t work;   /* a batch was queued, or stop */
	pthread_cond_t left;   /* a worker has left a batch */
	struct batch *first, **last;
	unsigned nr_idle, nr_started;
	bool stop;
	pthread_mutex_t decoder_lock; /* from here */
	pthread_cond_t decoder_back;
	struct decoder *free_decoders;
	unsigned nr_made, nr_decoder_waiters;
};

/* ---- decoders -------------------------------------------------------------------------------------------------- */

static void decoder_free(struct decoder *dec)
{
	if (!dec)
		return;
	wfs_scratch_free(dec->scratch);
	free(dec->comp);
	free(dec);
}

static struct decoder *decoder_new(void)
{
	struct decoder *dec = calloc(1, sizeof(*dec));
	if (!dec)
		return NULL;
	dec->scratch = wfs_scratch_new();
	dec->comp = malloc(MAX_BLOCK);
	if (dec->scratch && dec->comp)
		return dec;
	decoder_free(dec);
	return NULL;
}

/* Waits for a decoder when all are in use. NULL: there is no memory for one more. */
static struct decoder *decoder_get(struct wfsd_fetch *f)
{
	struct decoder *dec = NULL;
	bool make;

	pthread_mutex_lock(&f->decoder_lock);
	for (;;) {
		make = !f->free_decoders && f->nr_made < f->nr_decoders;
		if (make || f->free_decoders)
			break;
		f->nr_decoder_waiters++;
		pthread_cond_wait(&f->decoder_back, &f->decoder_lock);
		f->nr_decoder_waiters--;
	}
	if (make) {
		f->nr_made++;
	} else {
		dec = f->free_decoders;
		f->free_decoders = dec->next;
	}
	pthread_mutex_unlock(&f->decoder_lock);
	if (!make)
		return dec;
	dec = decoder_new();
	if (!dec) {
		pthread_mutex_lock(&f->decoder_lock);
		f->nr_made--;
		pthread_cond_signal(&f->decoder_back); /* whoever waits may try: perhaps there is none to come back */
		pthread_mutex_unlock(&f->decoder_lock);
	}
	return dec;
}

static void decoder_put(struct wfsd_fetch *f, struct decoder *dec)
{
	if (!dec)
		return;
	pthread_mutex_lock(&f->decoder_lock);
	dec->next = f->free_decoders;
	f->free_decoders = dec;
	if (f->nr_decoder_waiters)
		pthread_cond_signal(&f->decoder_back);
	pthread_mutex_unlock(&f->decoder_lock);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

static void report(struct wfsd *d, struct wfsd_file *file, const struct wfs_block *block, const struct wfs_error *err)
{
	bool bad = err->status == WFS_BAD_DATA || err->status == WFS_BAD_CHECKSUM || err->status == WFS_BUG;

	if (bad ? !wfsd_file_mark_bad(file, block->index)
		: atomic_exchange_explicit(&file->node->io_logged, true, memory_order_relaxed))
		return;
	if (bad)
		wfsd_count(&d->stats.bad_blocks, 1);
	char *path = wfsd_tree_path(d->tree, file->node);
	wfsd_log(&d->log, WFSD_ERROR, "%s %s: block %llu (bytes %llu to %llu of the original): %s: %s",
		 bad ? "bad block in" : "cannot read", path ? path : "?", (unsigned long long)block->index,
		 (unsigned long long)block->raw_off, (unsigned long long)(block->raw_off + block->raw_len - 1),
		 err->reason, strerror(wfsd_errno(err)));
	free(path);
}

static uint64_t nsec_between(const struct timespec *a, const struct timespec *b)
{
	return (uint64_t)((b->tv_sec - a->tv_sec) * INT64_C(1000000000) + (b->tv_nsec - a->tv_nsec));
}

/* Read and decode one block. 0 or the errno. */
static int decode_block(struct wfsd *d, struct wfsd_file *file, const struct wfsd_job *job, struct decoder *dec)
{
	struct timespec start, loaded, decoded;
	struct wfs_block block;
	struct wfs_error err;

	if (!dec)
		return ENOMEM;
	wfs_reader_block(file->reader, job->block, &block);
	if (wfsd_file_block_is_bad(file, job->block))
		return EIO;
	clock_gettime(CLOCK_MONOTONIC, &start);
	enum wfs_status status = wfs_block_load(file->reader, &block, &block, dec->comp, &err);
	clock_gettime(CLOCK_MONOTONIC, &loaded);
	wfsd_count(&d->stats.disk_nsec, nsec_between(&start, &loaded));
	if (status == WFS_OK) {
		wfsd_count(&d->stats.comp_bytes_read, block.comp_len);
		status = wfs_block_decode(file->reader, &block, dec->comp, job->slot->raw, dec->scratch, 0, &err);
		clock_gettime(CLOCK_MONOTONIC, &decoded);
		wfsd_count(&d->stats.decode_nsec, nsec_between(&loaded, &decoded));
	}
	if (status != WFS_OK) {
		report(d, file, &block, &err);
		return wfsd_errno(&err);
	}
	wfsd_count(&d->stats.blocks_decoded, 1);
	wfsd_count(&d->stats.bytes_decoded, block.raw_len);
	return 0;
}

/* Runs jobs of the batch until all are claimed. */
static void batch_work(struct batch *b)
{
	struct wfsd *d = b->d;
	unsigned i;

	atomic_fetch_add_explicit(&d->fetch->nr_active, 1, memory_order_relaxed);
	while ((i = atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed)) < b->nr) {
		struct decoder *dec = decoder_get(d->fetch);
		int err = decode_block(d, b->file, &b->jobs[i], dec);
		decoder_put(d->fetch, dec);
		wfsd_cache_filled(d->cache, b->jobs[i].slot, err);
	}
	atomic_fetch_sub_explicit(&d->fetch->nr_active, 1, memory_order_relaxed);
}

/* Let the disk begin with all of a batch at once: blocks that follow each other lie side by side. */
static void announce(const struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr)
{
	for (unsigned i = 0, end; i < nr; i = end) {
		struct wfs_block first, last;
		for (end = i + 1; end < nr && jobs[end].block == jobs[end - 1].block + 1; end++)
			;
		wfs_reader_block(file->reader, jobs[i].block, &first);
		wfs_reader_block(file->reader, jobs[end - 1].block, &last);
		posix_fadvise(file->fd, (off_t)first.comp_off, (off_t)(last.comp_off + last.comp_len - first.comp_off),
			      POSIX_FADV_WILLNEED);
	}
}

/* ---- workers --------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void batch_unqueue(struct wfsd_fetch *f, struct batch *b)
{
	struct batch **p = &f->first;
	if (!b->queued)
		return;
	while (*p != b)
		p = &(*p)->following;
	*p = b->following;
	if (f->last == &b->following)
		f->last = p;
	b->queued = false;
}

static void *worker(void *arg)
{
	struct wfsd_fetch *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		struct batch *b = f->first;
		if (!b) {
			f->nr_idle++;
			pthread_cond_wait(&f->work, &f->lock);
			f->nr_idle--;
			continue;
		}
		b->users++;
		pthread_mutex_unlock(&f->lock);
		batch_work(b);
		pthread_mutex_lock(&f->lock);
		batch_unqueue(f, b); /* all its jobs are claimed */
		if (--b->users == 0)
			pthread_cond_broadcast(&f->left);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* Offers the batch to as many workers as there are idle processors and jobs to spare. */
static void offer(struct wfsd_fetch *f, struct batch *b)
{
	unsigned active = atomic_load_explicit(&f->nr_active, memory_order_relaxed) + 1, nr;

	if (b->nr < 2 || active >= f->nr_threads)
		return;
	nr = f->nr_threads - active < b->nr - 1 ? f->nr_threads - active : b->nr - 1;
	pthread_mutex_lock(&f->lock);
	if (f->nr_idle) {
		b->queued = true;
		*f->last = b;
		f->last = &b->following;
		for (unsigned i = 0; i < nr && i < f->nr_idle; i++)
			pthread_cond_signal(&f->work);
	}
	pthread_mutex_unlock(&f->lock);
}

void wfsd_fetch_run(struct wfsd *d, struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr)
{
	struct wfsd_fetch *f = d->fetch;
	struct batch b = {.d = d, .file = file, .jobs = jobs, .nr = nr};

	if (nr > 1) {
		announce(file, jobs, nr);
		offer(f, &b);
	}
	batch_work(&b);
	if (nr < 2)
		return;
	pthread_mutex_lock(&f->lock);
	batch_unqueue(f, &b);
	while (b.users)
		pthread_cond_wait(&f->left, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

/* ---- begin and end --------------------------------------------------------------------------------------------- */

struct wfsd_fetch *wfsd_fetch_new(unsigned nr_threads)
{
	struct wfsd_fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->last = &f->first;
	f->nr_threads = nr_threads;
	f->nr_decoders = DECODERS_PER_THREAD * nr_threads;
	if (f->nr_decoders < MIN_DECODERS)
		f->nr_decoders = MIN_DECODERS;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->left, NULL);
	pthread_mutex_init(&f->decoder_lock, NULL);
	pthread_cond_init(&f->decoder_back, NULL);
	f->threads = calloc(nr_threads, sizeof(*f->threads));
	while (f->threads && f->nr_started < nr_threads) {
		if (pthread_create(&f->threads[f->nr_started], NULL, worker, f))
			break;
		f->nr_started++;
	}
	if (f->nr_started < nr_threads) {
		wfsd_fetch_free(f);
		return NULL;
	}
	return f;
}

void wfsd_fetch_free(struct wfsd_fetch *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->nr_started; i++)
		pthread_join(f->threads[i], NULL);
	while (f->free_decoders) {
		struct decoder *dec = f->free_decoders;
		f->free_decoders = dec->next;
		decoder_free(dec);
	}
	free(f->threads);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->left);
	pthread_mutex_destroy(&f->decoder_lock);
	pthread_cond_destroy(&f->decoder_back);
	free(f);
}
