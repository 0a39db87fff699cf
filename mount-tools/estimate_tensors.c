/* estimate_tensors.c - reads the tensors of a file once and sums up what the schemes make of them.
 *
 * Tensors below 64 MiB are taken side by side, one thread each, larger ones one after another by all threads, stretch
 * by stretch. Memory is one histogram, one stretch and one zstd context a thread, whatever the file.
 */
#include "estimate.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Whole chunks of zstd's. */
enum { STRETCH = 1 << 20, SHARED_FROM = 64 << 20 };

struct worker {
	struct histogram *h;
	struct zstd_worker *zstd;
	uint8_t *buf; /* a stretch */
	struct counts counts;
};

/* What zstd made of those stretches that it got. */
struct tried {
	uint64_t raw_bytes, comp_bytes;
};

struct run {
	const struct source *source;
	const struct estimate_opts *opts;
	struct worker *worker;
	atomic_size_t next_tensor;
	const struct tensor *shared; /* the large one that all work on, and its next stretch */
	atomic_uint_fast64_t next_stretch;
	struct histogram *merged;
	pthread_mutex_t lock;
	/* protected by lock */
	struct tried merged_tried;
	struct sums *sums;
	struct wfs_error error; /* the first; WFS_OK: none */
};

static void fail(struct run *r, enum wfs_status status, int sys_errno, const char *reason)
{
	pthread_mutex_lock(&r->lock);
	if (r->error.status == WFS_OK)
		r->error = (struct wfs_error){status, sys_errno, WFS_NO_BLOCK, reason};
	pthread_mutex_unlock(&r->lock);
}

static bool failed(struct run *r)
{
	pthread_mutex_lock(&r->lock);
	bool failed = r->error.status != WFS_OK;
	pthread_mutex_unlock(&r->lock);
	return failed;
}

static uint64_t nr_stretches(const struct tensor *t)
{
	return (t->raw_len + STRETCH - 1) / STRETCH;
}

/* Of nr stretches of a tensor zstd gets its part of the sample, one at least, from the middles of equal parts: the
 * beginning of a tensor may be unlike the rest, as the unused rows of an embedding are. */
static bool is_tried(const struct run *r, uint64_t nr, uint64_t index)
{
	const uint64_t raw_len = r->source->raw_len;
	unsigned __int128 wanted;
	if (!estimate_samples(r->opts, raw_len))
		return true;
	wanted = ((unsigned __int128)nr * r->opts->sample_bytes + raw_len - 1) / raw_len;
	return (2 * (index + 1) * wanted + nr) / (2 * nr) > (2 * index * wanted + nr) / (2 * nr);
}

/* Read and count a stretch. false: failed. */
static bool take_stretch(struct run *r, struct worker *w, const struct tensor *t, uint64_t index, struct tried *tried)
{
	uint64_t off = index * STRETCH;
	size_t len = (size_t)MIN(t->raw_len - off, (uint64_t)STRETCH);
	ssize_t got = pread_full(r->source->fd, w->buf, len, (off_t)(t->raw_off + off));
	if (got < 0 || (size_t)got < len) {
		fail(r, got < 0 ? WFS_IO : WFS_CHANGED, got < 0 ? errno : 0,
		     got < 0 ? "cannot read" : "the file became shorter while it was read");
		return false;
	}
	histogram_add(w->h, t->dtype, w->buf, len / t->dtype->word_bytes);
	if (w->zstd && is_tried(r, nr_stretches(t), index)) {
		tried->raw_bytes += len;
		tried->comp_bytes += zstd_stretch_bytes(w->zstd, t->dtype, w->buf, len);
	}
	progress_add(r->opts->progress, len);
	return true;
}

/* The counts of a tensor are complete: add what the schemes make of it. */
static void add_tensor(struct run *r, const struct tensor *t, const struct counts *c, const struct tried *tried)
{
	struct sums *sums = &r->sums[t->dtype - dtypes];
	uint64_t bytes[NR_SCHEMES];
	schemes_of_counts(t->dtype, c, t->raw_len, t->nr_rows, bytes);
	bytes[SCHEME_ZSTD] = ZSTD_TENSOR_BYTES;
	if (tried->raw_bytes)
		bytes[SCHEME_ZSTD] += (uint64_t)((unsigned __int128)tried->comp_bytes * t->raw_len / tried->raw_bytes);
	bytes[SCHEME_ZSTD] = coded_or_raw(bytes[SCHEME_ZSTD], t->raw_len);
	bytes[SCHEME_WEIGHTFS] = 0;
	pthread_mutex_lock(&r->lock);
	sums->nr_tensors++;
	sums->nr_weights += t->nr_weights;
	sums->raw_bytes += t->raw_len;
	for (enum scheme s = 0; s < NR_SCHEMES; s++)
		sums->bytes[s] += bytes[s];
	pthread_mutex_unlock(&r->lock);
}

static void take_tensor(struct run *r, struct worker *w, const struct tensor *t)
{
	struct tried tried = {0};
	uint64_t nr = nr_stretches(t);
	for (uint64_t i = 0; i < nr; i++)
		if (!take_stretch(r, w, t, i, &tried))
			return;
	histogram_reduce(w->h, t->dtype, t->raw_len / t->dtype->word_bytes, nr <= 1 ? w->buf : NULL, &w->counts);
	add_tensor(r, t, &w->counts, &tried);
}

static bool is_shared(const struct tensor *t)
{
	return t->raw_len >= SHARED_FROM;
}

/* Tensors of one's own. */
static void own_worker(void *ctx, size_t index)
{
	struct run *r = ctx;
	size_t i;
	while ((i = atomic_fetch_add(&r->next_tensor, 1)) < r->source->nr_tensors && !failed(r))
		if (!is_shared(&r->source->tensor[i]))
			take_tensor(r, &r->worker[index], &r->source->tensor[i]);
}

/* Stretches of the shared one. */
static void shared_worker(void *ctx, size_t index)
{
	struct run *r = ctx;
	struct worker *w = &r->worker[index];
	struct tried tried = {0};
	uint64_t i, nr = nr_stretches(r->shared);
	while ((i = atomic_fetch_add(&r->next_stretch, 1)) < nr && !failed(r))
		if (!take_stretch(r, w, r->shared, i, &tried))
			return;
	pthread_mutex_lock(&r->lock);
	histogram_merge(r->merged, w->h);
	r->merged_tried.raw_bytes += tried.raw_bytes;
	r->merged_tried.comp_bytes += tried.comp_bytes;
	pthread_mutex_unlock(&r->lock);
	memset(w->h, 0, sizeof(*w->h));
}

static void take_shared(struct run *r, const struct tensor *t)
{
	struct counts *c = &r->worker[0].counts;
	r->shared = t;
	atomic_store(&r->next_stretch, 0);
	r->merged_tried = (struct tried){0};
	parallel_for(r->opts->nr_threads, r->opts->nr_threads, shared_worker, r);
	if (failed(r))
		return;
	histogram_reduce(r->merged, t->dtype, t->raw_len / t->dtype->word_bytes, NULL, c);
	add_tensor(r, t, c, &r->merged_tried);
}

static void run(struct run *r)
{
	r->worker = xcalloc(r->opts->nr_threads, sizeof(*r->worker));
	r->merged = xcalloc(1, sizeof(*r->merged));
	for (unsigned i = 0; i < r->opts->nr_threads; i++) {
		r->worker[i].h = xcalloc(1, sizeof(*r->worker[i].h));
		r->worker[i].buf = xcalloc(1, STRETCH);
		r->worker[i].zstd = zstd_worker_new(r->opts->zstd);
	}
	parallel_for(r->opts->nr_threads, r->opts->nr_threads, own_worker, r);
	for (size_t i = 0; i < r->source->nr_tensors && !failed(r); i++)
		if (is_shared(&r->source->tensor[i]))
			take_shared(r, &r->source->tensor[i]);
	for (unsigned i = 0; i < r->opts->nr_threads; i++) {
		free(r->worker[i].h);
		free(r->worker[i].buf);
		zstd_worker_free(r->worker[i].zstd);
	}
	free(r->worker);
	free(r->merged);
}

bool estimate_tensors(const struct source *s, const struct estimate_opts *opts, struct sums sums[NR_DTYPES],
		      struct wfs_error *err_ret)
{
	struct run r = {.source = s, .opts = opts, .sums = sums, .lock = PTHREAD_MUTEX_INITIALIZER};
	memset(sums, 0, NR_DTYPES * sizeof(*sums));
	if (s->nr_tensors)
		run(&r);
	pthread_mutex_destroy(&r.lock);
	*err_ret = r.error;
	return r.error.status == WFS_OK;
}
