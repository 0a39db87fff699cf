/* fetch.c - see fetch.h.
 *
 * Jobs whose stored bytes are adjacent are one span. From the disk it is read at once, by the thread that has the
 * request; in the page cache it stays, and each block is copied out just before it is decoded, while it fits the CPU's
 * cache (measured: a tenth faster than all at once). That thread and whoever helps decode. A span's jobs are claimed by
 * an atomic counter; `users`, under the lock, counts the workers that look at it, and the owner, on whose stack it
 * lies, leaves only when there are none.
 *
 * Decoding needs a scratch buffer. There are a few more than processors, and the last one used goes first: it is warm.
 * Nobody holds one while it reads the store.
 */
#include "fetch.h"
#include "file.h"
#include "fs.h"
#include "load.h"
#include "tree.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SCRATCHES_PER_THREAD = 2,
	/* Waking a thread on an idle processor takes up to 50 us, more in a virtual machine; and the one that waits for
	 * its part may wait a time slice where others want that processor, too. */
	WORTH_WAKING_NSEC = 100000,
};

struct scratch {
	struct scratch *next;
	struct wfs_scratch *wfs;
};

struct span {
	struct wfsd *d;
	struct wfsd_file *file;
	const struct wfsd_job *jobs;
	unsigned nr;
	const unsigned char *comp; /* the stored bytes; NULL: each block is still to be loaded */
	uint64_t comp_off;	   /* in the container, of comp[0] */
	atomic_uint next;	   /* the first job that nobody has claimed; may run past nr */
	/* under the lock of struct wfsd_fetch */
	unsigned users;
	bool queued;
	struct span *following;
};

struct wfsd_fetch {
	unsigned nr_threads, nr_scratches;
	pthread_t *threads;
	pthread_mutex_t lock; /* from here */
	pthread_cond_t work;  /* a span was queued, or stop */
	pthread_cond_t left;  /* a worker has left a span */
	struct span *first, **last;
	unsigned nr_idle, nr_started;
	bool stop;
	pthread_mutex_t scratch_lock; /* from here */
	pthread_cond_t scratch_back;
	struct scratch *free_scratches;
	unsigned nr_made, nr_scratch_waiters;
};

/* ---- scratch buffers ------------------------------------------------------------------------------------------- */

static struct scratch *scratch_new(void)
{
	struct scratch *s = calloc(1, sizeof(*s));
	if (s)
		s->wfs = wfs_scratch_new();
	if (!s || s->wfs)
		return s;
	free(s);
	return NULL;
}

/* Waits when all are in use. NULL: there is no memory for one more. */
static struct scratch *scratch_get(struct wfsd_fetch *f)
{
	struct scratch *s = NULL;
	bool make;

	pthread_mutex_lock(&f->scratch_lock);
	for (;;) {
		make = !f->free_scratches && f->nr_made < f->nr_scratches;
		if (make || f->free_scratches)
			break;
		f->nr_scratch_waiters++;
		pthread_cond_wait(&f->scratch_back, &f->scratch_lock);
		f->nr_scratch_waiters--;
	}
	if (make) {
		f->nr_made++;
	} else {
		s = f->free_scratches;
		f->free_scratches = s->next;
	}
	pthread_mutex_unlock(&f->scratch_lock);
	if (!make)
		return s;
	s = scratch_new();
	if (!s) {
		pthread_mutex_lock(&f->scratch_lock);
		f->nr_made--;
		pthread_cond_signal(&f->scratch_back); /* whoever waits may try: perhaps there is none to come back */
		pthread_mutex_unlock(&f->scratch_lock);
	}
	return s;
}

static void scratch_put(struct wfsd_fetch *f, struct scratch *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&f->scratch_lock);
	s->next = f->free_scratches;
	f->free_scratches = s;
	if (f->nr_scratch_waiters)
		pthread_cond_signal(&f->scratch_back);
	pthread_mutex_unlock(&f->scratch_lock);
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
	if (bad && file->entry)
		wfsd_count(&d->stats.refused_blocks, 1);
	char *path = wfsd_tree_path(d->tree, file->node), remedy[WFSD_REMEDY_BYTES];
	wfsd_log(&d->log, WFSD_ERROR, "%s %s: block %llu (bytes %llu to %llu of the original): %s: %s; %s",
		 bad ? "bad block in" : "cannot read", path ? path : "?", (unsigned long long)block->index,
		 (unsigned long long)block->raw_off, (unsigned long long)(block->raw_off + block->raw_len - 1),
		 err->reason, strerror(wfsd_errno(err)), wfsd_remedy(remedy, d, err->status));
	free(path);
}

/* Decode one block from comp. 0 or the errno. */
static int decode_block(const struct span *span, const struct wfs_block *block, const void *comp, void *raw)
{
	struct wfsd *d = span->d;
	struct scratch *scratch = scratch_get(d->fetch);
	struct wfs_error err;

	if (!scratch)
		return ENOMEM;
	const uint64_t start = wfsd_now_nsec();
	wfsd_active_begin(&d->crowd);
	enum wfs_status status = wfs_block_decode(span->file->reader, block, comp, raw, scratch->wfs, 0, &err);
	wfsd_active_end(&d->crowd);
	const uint64_t nsec = wfsd_now_nsec() - start;
	scratch_put(d->fetch, scratch);
	wfsd_count(&d->stats.decode_nsec, nsec);
	if (status != WFS_OK) {
		report(d, span->file, block, &err);
		return wfsd_errno(&err);
	}
	wfsd_count(&d->stats.blocks_decoded, 1);
	wfsd_count(&d->stats.bytes_decoded, block->raw_len);
	return 0;
}

/* The block's stored bytes are not loaded with the span's: read them now, and decode them while they are in the CPU's
 * cache. 0 or the errno. */
static int load_and_decode(const struct span *span, const struct wfs_block *block, void *raw)
{
	struct wfsd *d = span->d;
	struct wfsd_loaded loaded;
	struct wfs_error err;

	const uint64_t start = wfsd_now_nsec();
	enum wfs_status status = wfsd_load_block(d, span->file, block, &loaded, &err);
	const uint64_t nsec = wfsd_now_nsec() - start;
	wfsd_count(&d->stats.disk_nsec, nsec);
	if (status != WFS_OK) {
		report(d, span->file, block, &err);
		return wfsd_errno(&err);
	}
	int ret = decode_block(span, block, loaded.comp, raw);
	wfsd_loaded_put(d, &loaded);
	return ret;
}

/* Runs jobs of the span until all are claimed. */
static void span_work(struct span *span)
{
	unsigned i;

	while ((i = atomic_fetch_add_explicit(&span->next, 1, memory_order_relaxed)) < span->nr) {
		const struct wfsd_job *job = &span->jobs[i];
		struct wfs_block block;
		int err;

		wfs_reader_block(span->file->reader, job->block, &block);
		if (wfsd_file_block_is_bad(span->file, job->block))
			err = EIO;
		else if (span->comp)
			err = decode_block(span, &block, span->comp + (block.comp_off - span->comp_off),
					   job->slot->raw);
		else
			err = load_and_decode(span, &block, job->slot->raw);
		wfsd_cache_filled(span->d->cache, job->slot, err);
	}
}

/* ---- workers --------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void span_unqueue(struct wfsd_fetch *f, struct span *b)
{
	struct span **p = &f->first;
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
		struct span *b = f->first;
		if (!b) {
			f->nr_idle++;
			pthread_cond_wait(&f->work, &f->lock);
			f->nr_idle--;
			continue;
		}
		b->users++;
		pthread_mutex_unlock(&f->lock);
		span_work(b);
		pthread_mutex_lock(&f->lock);
		span_unqueue(f, b); /* all its jobs are claimed */
		if (--b->users == 0)
			pthread_cond_broadcast(&f->left);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* What it takes to decode the span, as blocks did so far. */
static uint64_t expected_nsec(const struct span *span)
{
	const struct wfsd_stats *stats = &span->d->stats;
	uint64_t bytes = atomic_load_explicit(&stats->bytes_decoded, memory_order_relaxed);
	uint64_t nsec = atomic_load_explicit(&stats->decode_nsec, memory_order_relaxed), raw_len = 0;

	for (unsigned i = 0; i < span->nr; i++)
		raw_len += span->jobs[i].slot->raw_len;
	return bytes ? (uint64_t)((double)nsec / (double)bytes * (double)raw_len) : 0;
}

/* Offers the span to as many workers as there are idle processors and jobs to spare. False: to nobody. */
static bool offer(struct wfsd_fetch *f, struct span *span)
{
	unsigned active = atomic_load_explicit(&span->d->crowd.nr_active, memory_order_relaxed) + 1, nr;

	if (span->nr < 2 || active >= f->nr_threads || wfsd_is_crowded(&span->d->crowd) ||
	    expected_nsec(span) < WORTH_WAKING_NSEC)
		return false;
	nr = f->nr_threads - active < span->nr - 1 ? f->nr_threads - active : span->nr - 1;
	pthread_mutex_lock(&f->lock);
	if (f->nr_idle) {
		span->queued = true;
		*f->last = span;
		f->last = &span->following;
		for (unsigned i = 0; i < nr && i < f->nr_idle; i++)
			pthread_cond_signal(&f->work);
	}
	bool offered = span->queued;
	pthread_mutex_unlock(&f->lock);
	return offered;
}

/* Takes the offer back and waits for those who took it. */
static void retract(struct wfsd_fetch *f, struct span *span)
{
	pthread_mutex_lock(&f->lock);
	span_unqueue(f, span);
	while (span->users)
		pthread_cond_wait(&f->left, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

/* ---- spans ----------------------------------------------------------------------------------------------------- */

/* How many of the jobs, which begin with block `first`, lie side by side. *last_ret: the block of the last of these. */
static unsigned span_count(const struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr,
			   const struct wfs_block *first, struct wfs_block *last_ret)
{
	unsigned n = 1;

	*last_ret = *first;
	for (; n < nr; n++) {
		struct wfs_block block;
		wfs_reader_block(file->reader, jobs[n].block, &block);
		if (block.comp_off != last_ret->comp_off + last_ret->comp_len ||
		    block.comp_off + block.comp_len - first->comp_off > WFSD_LOAD_MAX)
			break;
		*last_ret = block;
	}
	return n;
}

/* Reads the stored bytes of the whole span at once if that is worth it, then decodes its blocks. */
static void span_run(struct wfsd_fetch *f, struct span *span, const struct wfs_block *first,
		     const struct wfs_block *last, uint64_t asked_bytes)
{
	struct wfsd_loaded loaded;

	const uint64_t start = wfsd_now_nsec();
	/* Who waits for the disk leaves the processors to others, and the disk has room for more. */
	wfsd_crowd_leave(&span->d->crowd, asked_bytes);
	bool at_once = wfsd_load_span(span->d, span->file, first, last, !asked_bytes, &loaded);
	wfsd_crowd_enter(&span->d->crowd, asked_bytes);
	if (at_once) {
		span->comp = loaded.comp;
		span->comp_off = first->comp_off;
	}
	const uint64_t nsec = wfsd_now_nsec() - start;
	wfsd_count(&span->d->stats.disk_nsec, nsec);
	bool offered = offer(f, span);
	span_work(span);
	if (offered)
		retract(f, span);
	if (span->comp)
		wfsd_loaded_put(span->d, &loaded);
}

static void blocks_run(struct wfsd *d, struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr,
		       uint64_t asked_bytes)
{
	for (unsigned n; nr; jobs += n, nr -= n) {
		struct wfs_block first, last;

		wfs_reader_block(file->reader, jobs[0].block, &first);
		n = span_count(file, jobs, nr, &first, &last);
		struct span span = {.d = d, .file = file, .jobs = jobs, .nr = n};
		span_run(d->fetch, &span, &first, &last, asked_bytes);
	}
}

/* ---- pieces of plain files in a signed mount ------------------------------------------------------------------- */

static enum wfs_status piece_read(const struct wfsd_file *file, const struct wfs_block *piece, unsigned char *raw,
				  struct wfs_error *err)
{
	for (uint32_t done = 0; done < piece->raw_len;) {
		ssize_t n = pread(file->fd, raw + done, piece->raw_len - done, (off_t)(piece->raw_off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			*err = (struct wfs_error){WFS_IO, errno, piece->index, "cannot read the file"};
		else if (!n)
			*err = (struct wfs_error){WFS_BAD_DATA, 0, piece->index, "the file ends before the signed one"};
		if (n <= 0)
			return err->status;
		done += (uint32_t)n;
	}
	return WFS_OK;
}

/* Reads the piece and proves it, in memory that is ours: what is written to the file meanwhile changes nothing. 0 or
 * the errno. */
static int piece_fill(struct wfsd *d, struct wfsd_file *file, uint64_t index, unsigned char *raw, uint64_t asked_bytes)
{
	const struct wfs_block piece = {.index = index,
					.raw_off = index * WFS_MANIFEST_PIECE_BYTES,
					.raw_len = (uint32_t)wfs_manifest_piece_len(file->entry, index)};
	const uint64_t start = wfsd_now_nsec();
	struct wfs_error err;

	wfsd_crowd_leave(&d->crowd, asked_bytes);
	enum wfs_status status = piece_read(file, &piece, raw, &err);
	wfsd_crowd_enter(&d->crowd, asked_bytes);
	wfsd_count(&d->stats.disk_nsec, wfsd_now_nsec() - start);
	if (status == WFS_OK) {
		wfsd_active_begin(&d->crowd);
		status = wfs_manifest_check_piece(file->entry, index, raw, &err);
		wfsd_active_end(&d->crowd);
	}
	if (status == WFS_OK)
		return 0;
	report(d, file, &piece, &err);
	return wfsd_errno(&err);
}

static void pieces_run(struct wfsd *d, struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr,
		       uint64_t asked_bytes)
{
	for (unsigned i = 0; i < nr; i++) {
		bool bad = wfsd_file_block_is_bad(file, jobs[i].block);
		int err = bad ? EIO : piece_fill(d, file, jobs[i].block, jobs[i].slot->raw, asked_bytes);
		wfsd_cache_filled(d->cache, jobs[i].slot, err);
	}
}

void wfsd_fetch_run(struct wfsd *d, struct wfsd_file *file, const struct wfsd_job *jobs, unsigned nr,
		    uint64_t asked_bytes)
{
	if (file->reader)
		blocks_run(d, file, jobs, nr, asked_bytes);
	else
		pieces_run(d, file, jobs, nr, asked_bytes);
}

/* ---- begin and end --------------------------------------------------------------------------------------------- */

struct wfsd_fetch *wfsd_fetch_new(unsigned nr_threads)
{
	struct wfsd_fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->last = &f->first;
	f->nr_threads = nr_threads;
	f->nr_scratches = SCRATCHES_PER_THREAD * nr_threads;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->left, NULL);
	pthread_mutex_init(&f->scratch_lock, NULL);
	pthread_cond_init(&f->scratch_back, NULL);
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
	while (f->free_scratches) {
		struct scratch *s = f->free_scratches;
		f->free_scratches = s->next;
		wfs_scratch_free(s->wfs);
		free(s);
	}
	free(f->threads);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->left);
	pthread_mutex_destroy(&f->scratch_lock);
	pthread_cond_destroy(&f->scratch_back);
	free(f);
}
