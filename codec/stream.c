/* stream.c - decode a range of a container in order on several threads.
 *
 * Workers decode windows (1 MiB of the original at multiples of 1 MiB: blocks are cut there, so no block is decoded
 * twice) into a ring; the calling thread hands them to the sink in order. After a failure the sink has got everything
 * before the window that failed.
 */
#include "container.h"
#include "parallel.h"

#include <pthread.h>
#include <stdlib.h>

enum { WINDOW = WFS_MAX_BLOCK, WINDOW_LOG2 = WFS_MAX_BLOCK_LOG2 };

struct slot {
	u8 raw[WINDOW];
	/* protected by stream.lock; for the window that the slot holds now */
	bool done;
	enum wfs_status status;
	struct wfs_error error;
};

struct stream {
	const struct wfs_reader *reader;
	u64 off, end;
	u64 first_window, nr_windows;
	struct slot *slot; /* window i (from 0) is in slot i % nr_slots from when it is taken until the sink has it */
	unsigned nr_slots;

	pthread_mutex_t lock;
	pthread_cond_t can_take, can_sink;
	/* protected by lock: windows 0 .. x - 1 are taken by a worker, given to the sink */
	u64 nr_taken, nr_sunk;
	bool stop;
};

static u64 window_start(const struct stream *s, u64 window)
{
	return WFS_MAX(s->off, (s->first_window + window) << WINDOW_LOG2);
}

static size_t window_len(const struct stream *s, u64 window)
{
	return (size_t)(WFS_MIN(s->end, (s->first_window + window + 1) << WINDOW_LOG2) - window_start(s, window));
}

static void *worker_main(void *arg)
{
	struct stream *s = arg;
	struct wfs_scratch *scratch = wfs_scratch_new();
	struct wfs_read_buffers *buffers = wfs_read_buffers_new();

	for (;;) {
		struct wfs_error error = {0};
		enum wfs_status status;
		struct slot *slot;
		u64 window;
		bool stop;

		pthread_mutex_lock(&s->lock);
		while (!s->stop && s->nr_taken < s->nr_windows && s->nr_taken >= s->nr_sunk + s->nr_slots)
			pthread_cond_wait(&s->can_take, &s->lock);
		stop = s->stop || s->nr_taken == s->nr_windows;
		window = stop ? 0 : s->nr_taken++;
		slot = &s->slot[window % s->nr_slots];
		pthread_mutex_unlock(&s->lock);
		if (stop)
			break;
		if (scratch && buffers)
			status = wfs_reader_read_with(s->reader, window_start(s, window), slot->raw,
						      window_len(s, window), scratch, buffers, &error);
		else
			status = wfs_fail(&error, WFS_NO_MEMORY, "out of memory for decoding");
		pthread_mutex_lock(&s->lock);
		slot->status = status;
		slot->error = error;
		slot->done = true;
		pthread_cond_signal(&s->can_sink);
		pthread_mutex_unlock(&s->lock);
	}
	free(buffers);
	wfs_scratch_free(scratch);
	return NULL;
}

static enum wfs_status sink_windows(struct stream *s, wfs_sink_fn sink, void *ctx, struct wfs_error *err)
{
	enum wfs_status status = WFS_OK;

	for (u64 window = 0; window < s->nr_windows && status == WFS_OK; window++) {
		struct slot *slot = &s->slot[window % s->nr_slots];

		pthread_mutex_lock(&s->lock);
		while (!slot->done)
			pthread_cond_wait(&s->can_sink, &s->lock);
		status = slot->status;
		if (status != WFS_OK && err)
			*err = slot->error;
		pthread_mutex_unlock(&s->lock);
		if (status == WFS_OK && sink(ctx, slot->raw, window_len(s, window)))
			status = wfs_fail(err, WFS_CANCELLED, "cancelled");
		pthread_mutex_lock(&s->lock);
		slot->done = false;
		s->nr_sunk = window + 1;
		pthread_cond_signal(&s->can_take);
		pthread_mutex_unlock(&s->lock);
	}
	return status;
}

static enum wfs_status run_pipeline(struct stream *s, unsigned nr_workers, wfs_sink_fn sink, void *ctx,
				    struct wfs_error *err)
{
	pthread_t thread[WFS_MAX_THREADS];
	enum wfs_status status;
	int sys_errno = 0;
	unsigned nr = 0;

	while (nr < nr_workers && !(sys_errno = pthread_create(&thread[nr], NULL, worker_main, s)))
		nr++;
	status = nr ? sink_windows(s, sink, ctx, err) : wfs_fail_io(err, sys_errno, "cannot start a thread");
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->can_take);
	pthread_mutex_unlock(&s->lock);
	while (nr)
		pthread_join(thread[--nr], NULL);
	return status;
}

enum wfs_status wfs_reader_stream(const struct wfs_reader *reader, uint64_t off, uint64_t len, unsigned nr_threads,
				  wfs_sink_fn sink, void *ctx, struct wfs_error *err)
{
	struct stream s = {.reader = reader, .off = off, .end = off + len, .first_window = off >> WINDOW_LOG2};
	unsigned nr_workers;
	enum wfs_status status;

	if (off > reader->head.raw_len || len > reader->head.raw_len - off)
		return wfs_fail(err, WFS_BAD_ARGUMENT, "the range ends behind the original's end");
	if (!len)
		return WFS_OK;
	s.nr_windows = ((s.end - 1) >> WINDOW_LOG2) - s.first_window + 1;
	nr_workers = (unsigned)WFS_MIN((u64)wfs_thread_count(nr_threads), s.nr_windows);
	s.nr_slots = (unsigned)WFS_MIN((u64)nr_workers * 2 + 2, s.nr_windows);
	s.slot = malloc(s.nr_slots * sizeof(*s.slot));
	if (!s.slot)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for decoding");
	for (unsigned i = 0; i < s.nr_slots; i++)
		s.slot[i].done = false;
	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.can_take, NULL);
	pthread_cond_init(&s.can_sink, NULL);
	status = run_pipeline(&s, nr_workers, sink, ctx, err);
	pthread_cond_destroy(&s.can_sink);
	pthread_cond_destroy(&s.can_take);
	pthread_mutex_destroy(&s.lock);
	free(s.slot);
	return status;
}
