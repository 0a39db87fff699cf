/* encode_file.c - encode a whole file: read, hash, encode and write at the same time.
 *
 *     reader ──> ring of windows ──┬─> hasher (SHA-256, in order)   ──┐
 *                                  └─> workers (blocks, any order)  ──┴─> writer (in order, the calling thread)
 *
 * A window is 1 MiB of the file at a multiple of 1 MiB: blocks are cut there whatever their size, so that windows are
 * independent and the result does not depend on which thread takes which. Memory is the ring, the plan's tables and 14
 * bytes a block, 46 with SHA-256. The first failure stops everybody; the writer joins all threads before it returns.
 */
#include "block_choose.h"
#include "checksum.h"
#include "container_write.h"
#include "parallel.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { WINDOW = WFS_MAX_BLOCK, WINDOW_LOG2 = WFS_MAX_BLOCK_LOG2 };
_Static_assert(WINDOW == 1 << WINDOW_LOG2, "blocks never cross a window's border");

struct slot {
	u8 raw[WINDOW], comp[WINDOW];
	u32 comp_len;
	bool encoded; /* protected by encode.lock; for the window that the slot holds now */
};

struct encode {
	const struct wfs_source *source;
	const struct wfs_plan *plan;
	const struct wfs_encode_opts *opts;
	struct wfs_container_writer *writer;
	struct wfs_columns columns; /* every entry is written by the one worker that has its window */
	EVP_MD_CTX *sha256;	    /* the hasher's, after it ended the calling thread's */
	u64 nr_windows;
	struct slot *slot; /* window i is in slot i % nr_slots from when it is read until it is written */
	unsigned nr_slots;

	pthread_mutex_t lock;
	pthread_cond_t can_read, can_use, can_write;
	/* protected by lock: windows 0 .. x - 1 are read, hashed, taken by a worker, written */
	u64 nr_read, nr_hashed, nr_taken, nr_written;
	bool stop;		/* somebody failed or all is done */
	struct wfs_error error; /* the first failure; status WFS_OK: none */
};

/* Ends the whole encoding; only the first failure counts. */
static void fail(struct encode *e, const struct wfs_error *error)
{
	pthread_mutex_lock(&e->lock);
	if (e->error.status == WFS_OK)
		e->error = *error;
	e->stop = true;
	pthread_cond_broadcast(&e->can_read);
	pthread_cond_broadcast(&e->can_use);
	pthread_cond_broadcast(&e->can_write);
	pthread_mutex_unlock(&e->lock);
}

static struct slot *slot_of(struct encode *e, u64 window)
{
	return &e->slot[window % e->nr_slots];
}

static u32 window_len(const struct encode *e, u64 window)
{
	return (u32)WFS_MIN((u64)WINDOW, e->source->raw_len - (window << WINDOW_LOG2));
}

/* ---- reader ---- */

static void *reader_main(void *arg)
{
	struct encode *e = arg;
	struct wfs_error error;

	for (u64 window = 0; window < e->nr_windows; window++) {
		bool stop;

		pthread_mutex_lock(&e->lock);
		while (!e->stop && window >= e->nr_written + e->nr_slots)
			pthread_cond_wait(&e->can_read, &e->lock);
		stop = e->stop;
		slot_of(e, window)->encoded = false;
		pthread_mutex_unlock(&e->lock);
		if (stop)
			break;
		if (wfs_source_read(e->source, slot_of(e, window)->raw, window_len(e, window), window << WINDOW_LOG2,
				    &error) != WFS_OK) {
			fail(e, &error);
			break;
		}
		pthread_mutex_lock(&e->lock);
		e->nr_read = window + 1;
		pthread_cond_broadcast(&e->can_use);
		pthread_mutex_unlock(&e->lock);
	}
	return NULL;
}

/* ---- hasher ---- */

static void *hasher_main(void *arg)
{
	struct encode *e = arg;
	struct wfs_error error;

	for (u64 window = 0; window < e->nr_windows; window++) {
		bool stop;

		pthread_mutex_lock(&e->lock);
		while (!e->stop && window >= e->nr_read)
			pthread_cond_wait(&e->can_use, &e->lock);
		stop = e->stop;
		pthread_mutex_unlock(&e->lock);
		if (stop)
			break;
		if (EVP_DigestUpdate(e->sha256, slot_of(e, window)->raw, window_len(e, window)) != 1) {
			wfs_fail(&error, WFS_NO_MEMORY, "cannot compute SHA-256");
			fail(e, &error);
			break;
		}
		pthread_mutex_lock(&e->lock);
		e->nr_hashed = window + 1;
		pthread_cond_signal(&e->can_write);
		pthread_mutex_unlock(&e->lock);
	}
	return NULL;
}

/* ---- workers ---- */

/* Blocks of one coded region inside the window; they go behind the slot's blocks so far. */
static enum wfs_status encode_blocks(struct encode *e, struct wfs_chooser *chooser, struct slot *slot, u64 region,
				     u64 from, u64 end, struct wfs_error *err)
{
	const struct wfs_disk_region *g = &e->plan->region[region];
	unsigned log2 = e->plan->block_log2;
	u64 index = e->plan->first_block[region] + (from >> log2) - (g->start >> log2), next;

	for (; from < end; from = next, index++) {
		const u8 *raw = slot->raw + from % WINDOW;
		struct wfs_choice choice;

		next = WFS_MIN(((from >> log2) + 1) << log2, end);
		choice = wfs_block_choose(chooser, region, from, raw, (u32)(next - from), slot->comp + slot->comp_len);
		slot->comp_len += choice.comp_len;
		e->columns.comp_len[index] = choice.comp_len;
		e->columns.selector[index] = choice.selector;
		e->columns.hash[index] = wfs_hash64(e->opts->cpu, raw, (size_t)(next - from));
		if (e->columns.sha256 &&
		    EVP_Digest(raw, (size_t)(next - from), e->columns.sha256 + index * WFS_SHA256_BYTES, NULL,
			       EVP_sha256(), NULL) != 1)
			return wfs_fail(err, WFS_NO_MEMORY, "cannot compute SHA-256");
	}
	return WFS_OK;
}

/* What the plan says of bytes without blocks must be true of those that were read now. buf: a window. */
static enum wfs_status check_repeat(const struct encode *e, const struct wfs_disk_region *g, const u8 *raw, u64 from,
				    u64 end, u8 *buf, struct wfs_error *err)
{
	size_t len = (size_t)(end - from);
	bool same;

	if (g->kind == WFS_REGION_COPY) {
		enum wfs_status status = wfs_source_read(e->source, buf, len, g->arg + (from - g->start), err);

		if (status != WFS_OK)
			return status;
		same = !memcmp(buf, raw, len);
	} else {
		same = len <= 8 || wfs_is_constant(raw, len);
		for (size_t i = 0; i < WFS_MIN(len, (size_t)8); i++)
			same = same && raw[i] == (u8)(g->arg >> 8 * ((g->phase + (from - g->start) + i) % 8));
	}
	return same ? WFS_OK : wfs_fail(err, WFS_CHANGED, "the source changed while it was read");
}

static enum wfs_status encode_window(struct encode *e, struct wfs_chooser *chooser, u8 *buf, u64 window,
				     struct wfs_error *err)
{
	u64 from = window << WINDOW_LOG2, end = from + window_len(e, window), part_end;
	u64 region = wfs_plan_region_at(e->plan, from);
	struct slot *slot = slot_of(e, window);
	enum wfs_status status = WFS_OK;

	slot->comp_len = 0;
	for (; from < end && status == WFS_OK; from = part_end, region++) {
		const struct wfs_disk_region *g = &e->plan->region[region];

		part_end = WFS_MIN(g->start + g->len, end);
		if (g->kind == WFS_REGION_CODED)
			status = encode_blocks(e, chooser, slot, region, from, part_end, err);
		else
			status = check_repeat(e, g, slot->raw + from % WINDOW, from, part_end, buf, err);
	}
	return status;
}

static void *worker_main(void *arg)
{
	struct encode *e = arg;
	struct wfs_chooser *chooser = wfs_chooser_new(e->plan, e->opts->cpu);
	u8 *buf = malloc(WINDOW);
	struct wfs_error error;

	if (!chooser || !buf) {
		wfs_fail(&error, WFS_NO_MEMORY, "out of memory for encoding");
		fail(e, &error);
		goto out;
	}
	for (;;) {
		u64 window;
		bool stop;

		pthread_mutex_lock(&e->lock);
		while (!e->stop && e->nr_taken < e->nr_windows && e->nr_taken >= e->nr_read)
			pthread_cond_wait(&e->can_use, &e->lock);
		stop = e->stop || e->nr_taken == e->nr_windows;
		window = stop ? 0 : e->nr_taken++;
		pthread_mutex_unlock(&e->lock);
		if (stop)
			break;
		if (encode_window(e, chooser, buf, window, &error) != WFS_OK) {
			fail(e, &error);
			break;
		}
		pthread_mutex_lock(&e->lock);
		slot_of(e, window)->encoded = true;
		pthread_cond_signal(&e->can_write);
		pthread_mutex_unlock(&e->lock);
	}
out:
	free(buf);
	wfs_chooser_free(chooser);
	return NULL;
}

/* ---- writer ---- */

static void write_windows(struct encode *e)
{
	struct wfs_error error;

	for (u64 window = 0; window < e->nr_windows; window++) {
		const struct slot *slot = slot_of(e, window);
		u64 raw_done = (window << WINDOW_LOG2) + window_len(e, window);
		bool stop;

		pthread_mutex_lock(&e->lock);
		while (!e->stop && (window >= e->nr_hashed || !slot->encoded))
			pthread_cond_wait(&e->can_write, &e->lock);
		stop = e->stop;
		pthread_mutex_unlock(&e->lock);
		if (stop)
			break;
		if (wfs_container_append(e->writer, slot->comp, slot->comp_len, &error) != WFS_OK) {
			fail(e, &error);
			break;
		}
		pthread_mutex_lock(&e->lock);
		e->nr_written = window + 1;
		pthread_cond_signal(&e->can_read);
		pthread_mutex_unlock(&e->lock);
		if (e->opts->progress && e->opts->progress(e->opts->ctx, raw_done, e->writer->payload_len)) {
			wfs_fail(&error, WFS_CANCELLED, "cancelled");
			fail(e, &error);
			break;
		}
	}
}

/* Runs all threads until the payload is written or somebody failed. */
static enum wfs_status run_pipeline(struct encode *e, unsigned nr_workers, struct wfs_error *err)
{
	pthread_t thread[WFS_MAX_THREADS + 2];
	unsigned nr = 0, wanted = nr_workers + 2;
	struct wfs_error error;

	for (; nr < wanted; nr++) {
		void *(*entry)(void *) = nr == 0 ? reader_main : nr == 1 ? hasher_main : worker_main;
		int sys_errno = pthread_create(&thread[nr], NULL, entry, e);

		if (sys_errno && nr > 2) /* fewer workers do as well */
			break;
		if (sys_errno) {
			wfs_fail_io(&error, sys_errno, "cannot start a thread");
			fail(e, &error);
			break;
		}
	}
	write_windows(e);
	while (nr)
		pthread_join(thread[--nr], NULL);
	if (e->error.status != WFS_OK && err)
		*err = e->error;
	return e->error.status;
}

/* ---- the whole ---- */

enum wfs_status wfs_encode_begin(int src_fd, struct wfs_encode_opts *opts, struct wfs_source *source_ret,
				 struct wfs_error *err)
{
	struct stat st;

	if (!opts->block_log2)
		opts->block_log2 = opts->level == WFS_LEVEL_MAX ? WFS_MAX_BLOCK_LOG2 : WFS_DEFAULT_BLOCK_LOG2;
	if (opts->block_log2 < WFS_MIN_BLOCK_LOG2 || opts->block_log2 > WFS_MAX_BLOCK_LOG2 ||
	    opts->mtime_nsec > WFS_MAX_NSEC || (unsigned)opts->level >= WFS_NR_LEVELS)
		return wfs_fail(err, WFS_BAD_ARGUMENT, "an option is out of range");
	if ((unsigned)opts->cpu >= WFS_NR_CPUS || !wfs_cpu_supported(opts->cpu))
		return wfs_fail(err, WFS_BAD_ARGUMENT, "this machine cannot run that CPU variant");
	opts->cpu = opts->cpu == WFS_CPU_AUTO ? wfs_cpu_best() : opts->cpu;
	if (fstat(src_fd, &st))
		return wfs_fail_io(err, errno, "cannot stat the source");
	if (!S_ISREG(st.st_mode) || (u64)st.st_size > WFS_MAX_RAW_LEN)
		return wfs_fail(err, WFS_BAD_ARGUMENT, "the source is not a regular file");
	*source_ret = (struct wfs_source){src_fd,	  (u64)st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
					  opts->progress, opts->ctx};
	return WFS_OK;
}

/* Size and modification time tell that somebody else wrote to the source. */
static enum wfs_status source_unchanged(const struct wfs_source *source, struct wfs_error *err)
{
	struct stat st;

	if (fstat(source->fd, &st))
		return wfs_fail_io(err, errno, "cannot stat the source");
	if ((u64)st.st_size != source->raw_len || st.st_mtim.tv_sec != source->mtime_sec ||
	    st.st_mtim.tv_nsec != source->mtime_nsec)
		return wfs_fail(err, WFS_CHANGED, "the source changed while it was read");
	return WFS_OK;
}

static enum wfs_status check_destination(int dst_fd, struct wfs_error *err)
{
	struct stat st;

	if (fstat(dst_fd, &st))
		return wfs_fail_io(err, errno, "cannot stat the container");
	if (!S_ISREG(st.st_mode) || st.st_size)
		return wfs_fail(err, WFS_BAD_ARGUMENT, "the container to write is not an empty file");
	return WFS_OK;
}

static enum wfs_status encode_all(struct encode *e, struct wfs_encode_result *result, struct wfs_error *err)
{
	unsigned nr_workers = wfs_thread_count(e->opts->nr_threads);
	enum wfs_status status;

	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->can_read, NULL);
	pthread_cond_init(&e->can_use, NULL);
	pthread_cond_init(&e->can_write, NULL);
	e->nr_windows = WFS_CEIL_DIV(e->source->raw_len, (u64)WINDOW);
	nr_workers = (unsigned)WFS_MIN((u64)nr_workers, WFS_MAX(e->nr_windows, 1));
	/* Two windows a worker, and some for reader, hasher and writer to work on. */
	e->nr_slots = (unsigned)WFS_MIN((u64)nr_workers * 2 + 4, WFS_MAX(e->nr_windows, 1));
	e->slot = malloc(e->nr_slots * sizeof(*e->slot));
	e->sha256 = EVP_MD_CTX_new();
	if (!wfs_columns_new(&e->columns, e->plan->nr_blocks, e->opts->block_sha256) || !e->slot || !e->sha256 ||
	    EVP_DigestInit_ex(e->sha256, EVP_sha256(), NULL) != 1)
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for encoding");
	else
		status = run_pipeline(e, nr_workers, err);
	if (status == WFS_OK && EVP_DigestFinal_ex(e->sha256, result->sha256, NULL) != 1)
		status = wfs_fail(err, WFS_NO_MEMORY, "cannot compute SHA-256");
	free(e->slot);
	EVP_MD_CTX_free(e->sha256);
	pthread_cond_destroy(&e->can_write);
	pthread_cond_destroy(&e->can_use);
	pthread_cond_destroy(&e->can_read);
	pthread_mutex_destroy(&e->lock);
	return status;
}

enum wfs_status wfs_encode_file(int src_fd, int dst_fd, const struct wfs_encode_opts *opts,
				struct wfs_encode_result *result_ret, struct wfs_error *err)
{
	struct wfs_encode_opts o = opts ? *opts : (struct wfs_encode_opts){0};
	struct wfs_encode_result result = {0};
	struct wfs_source source = {.fd = src_fd};
	struct wfs_container_writer writer;
	struct wfs_plan *plan = NULL;
	struct encode e = {.source = &source, .opts = &o, .writer = &writer};
	enum wfs_status status = wfs_encode_begin(src_fd, &o, &source, err);

	if (status == WFS_OK)
		status = check_destination(dst_fd, err);
	if (status == WFS_OK)
		status = wfs_plan_new(&source, &o, &plan, err);
	if (status == WFS_OK)
		status = wfs_container_start(&writer, dst_fd, plan, o.block_sha256, err);
	if (status != WFS_OK)
		goto out;
	e.plan = plan;
	status = encode_all(&e, &result, err);
	if (status == WFS_OK)
		status = source_unchanged(&source, err);
	if (status == WFS_OK)
		status = wfs_container_finish(&writer, &e.columns, &o, result.sha256, &result.file_len, err);
	if (status == WFS_OK) {
		result.raw_len = source.raw_len;
		result.nr_blocks = plan->nr_blocks;
		result.nr_regions = plan->nr_regions;
		*result_ret = result;
	}
out:
	wfs_columns_free(&e.columns);
	wfs_plan_free(plan);
	return status;
}
