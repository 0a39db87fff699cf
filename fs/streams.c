/* streams.c - see streams.h. */
#include "streams.h"

enum {
	SLACK_REQUESTS = 4,	   /* so many requests may come before an earlier one, */
	SLACK_REQUEST = 128 << 10, /* short ones counted as of this size, the kernel's own */
	STEP = 1 << 20,		   /* what is decoded ahead at once, and the first window */
	MAX_WINDOW = 32 << 20,
	STALE_ASKS = 512, /* a reader not met for so many reads of the file may be forgotten */
};

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t ahead_of(const struct wfsd_stream *st)
{
	return st->ahead > st->next ? st->ahead - st->next : 0;
}

static void stream_begin(struct wfsd_streams *s, struct wfsd_stream *st, const struct wfsd_ask *ask)
{
	s->wasted_bytes += ahead_of(st) + st->missed;
	*st = (struct wfsd_stream){.start = ask->off, .next = ask->off, .lowest = ask->off};
}

/* How far from its place in the row a request may come. */
static uint64_t slack_of(const struct wfsd_ask *ask)
{
	return SLACK_REQUESTS * (ask->len > SLACK_REQUEST ? ask->len : SLACK_REQUEST);
}

/* The stream whose next read this may be, the nearest of them; NULL: none. */
static struct wfsd_stream *stream_find(struct wfsd_streams *s, const struct wfsd_ask *ask)
{
	uint64_t nearest = slack_of(ask) + 1;
	struct wfsd_stream *found = NULL;

	for (struct wfsd_stream *st = s->stream; st < s->stream + WFSD_NR_STREAMS; st++) {
		uint64_t distance = ask->off > st->next ? ask->off - st->next : st->next - ask->off;
		if (st->used && distance < nearest) {
			nearest = distance;
			found = st;
		}
	}
	return found;
}

/* The one to forget: unused, else the longest not met of those that never proved themselves or are stale, else of all.
 */
static struct wfsd_stream *stream_victim(struct wfsd_streams *s)
{
	struct wfsd_stream *oldest = s->stream, *weak = NULL;

	for (struct wfsd_stream *st = s->stream; st < s->stream + WFSD_NR_STREAMS; st++) {
		if (st->used < oldest->used)
			oldest = st;
		if ((!st->window || s->nr_asks - st->used > STALE_ASKS) && (!weak || st->used < weak->used))
			weak = st;
	}
	return weak ? weak : oldest;
}

/* What a run may leave out: a sequential reader's requests that are still to come, and a little. */
static uint64_t run_gaps(const struct wfsd_stream *st)
{
	return (st->next - st->start) / 4;
}

/* Adds the read to the run. False: too much was left out for a sequential reader. */
static bool run_extend(struct wfsd_stream *st, const struct wfsd_ask *ask)
{
	const uint64_t end = ask->off + ask->len;

	if (ask->off >= st->next + ask->block_bytes) {
		st->skipped += ask->off - st->next;
		st->missed += min(ask->off - st->next, ahead_of(st));
	} else if (ask->off < st->next) {
		const uint64_t filled = min(st->skipped, min(ask->len, st->next - ask->off));
		st->skipped -= filled;
		st->missed -= min(st->missed, filled);
	}
	if (end > st->next)
		st->next = end;
	st->lowest = min(st->lowest, ask->off);
	return st->skipped <= run_gaps(st) + slack_of(ask);
}

/* The end of the tensor that the run is in, when it began there; else of the file. A run that the kernel began a little
 * early, reading around a fault, counts as begun there, too. */
static uint64_t run_limit(const struct wfsd_stream *st, const struct wfsd_ask *ask)
{
	size_t low = 0, high = ask->nr_tensors;

	while (low < high) { /* the first that ends behind the last byte asked for */
		size_t mid = low + (high - low) / 2;
		if (ask->tensors[mid].end < st->next)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == ask->nr_tensors || ask->tensors[low].start >= st->next ||
	    st->start + ask->kernel_bytes < ask->tensors[low].start)
		return ask->raw_len;
	return ask->tensors[low].end;
}

/* Where the next reader from there on began: what follows was asked for already. */
static uint64_t others_begin(const struct wfsd_streams *s, uint64_t from)
{
	uint64_t begin = UINT64_MAX;

	for (const struct wfsd_stream *st = s->stream; st < s->stream + WFSD_NR_STREAMS; st++)
		if (st->used && st->lowest >= from)
			begin = min(begin, st->lowest);
	return begin;
}

static void window_adapt(struct wfsd_streams *s, struct wfsd_stream *st, const struct wfsd_ask *ask)
{
	if (ask->nr_evicted != s->nr_evicted) {
		s->nr_evicted = ask->nr_evicted;
		for (struct wfsd_stream *i = s->stream; i < s->stream + WFSD_NR_STREAMS; i++)
			if (i->window > STEP)
				i->window /= 2;
	} else if (!st->window) {
		st->window = STEP;
	} else if (ask->late && st->ahead >= ask->off && st->window < MAX_WINDOW) {
		st->window *= 2;
	}
}

/* How far ahead of this stream the file's credit, of which each stream has its share, and the cache let it be. */
static uint64_t window_allowed(const struct wfsd_streams *s, const struct wfsd_stream *st, const struct wfsd_ask *ask)
{
	uint64_t credit = WFSD_FREE_WASTE + s->asked_bytes / WFSD_WASTE_SHARE, others = 0, nr = 1;

	credit -= min(credit, s->wasted_bytes);
	for (const struct wfsd_stream *i = s->stream; i < s->stream + WFSD_NR_STREAMS; i++) {
		credit -= min(credit, i->missed);
		if (i != st && i->window) {
			others += ahead_of(i);
			nr++;
		}
	}
	credit = min(credit / nr, credit - min(credit, others));
	return min(min(st->window, credit), ahead_of(st) + ask->room_bytes);
}

uint64_t wfsd_streams_ask(struct wfsd_streams *s, const struct wfsd_ask *ask, uint64_t *from_ret)
{
	struct wfsd_stream *st = stream_find(s, ask);

	s->nr_asks++;
	s->asked_bytes += ask->len;
	if (!st) {
		st = stream_victim(s);
		stream_begin(s, st, ask);
	}
	st->used = s->nr_asks;
	if (!run_extend(st, ask)) {
		stream_begin(s, st, ask);
		st->next += ask->len;
		st->used = s->nr_asks;
	}
	if (st->next - st->start <= ask->kernel_bytes || st->skipped > run_gaps(st))
		return 0;
	window_adapt(s, st, ask);

	const uint64_t from = st->ahead > st->next ? st->ahead : st->next;
	const uint64_t limit = min(run_limit(st, ask), others_begin(s, from));
	const uint64_t to = min(limit, st->next + window_allowed(s, st, ask));
	/* In steps, but for the rest before the end. */
	if (to <= from || (to - from < STEP && to != limit))
		return 0;
	st->ahead = to;
	*from_ret = from;
	return to - from;
}

uint64_t wfsd_streams_wanted(const struct wfsd_streams *s, uint64_t off, uint64_t end)
{
	for (const struct wfsd_stream *st = s->stream; st < s->stream + WFSD_NR_STREAMS; st++)
		if (st->next < end && end <= st->ahead)
			return off > st->next ? off : st->next;
	return end;
}
