/* plan_sniff.c - finds words in bytes that nobody describes: the stretches of class-less spans where some reading
 * (sniff.h) is clearly cheaper than LZ4 or storing them.
 *
 *     span    |--------------------------------------------------------------|
 *     cells   |              |              |              |                 |   64 KiB
 *     samples |      --      |      --      |      --      |      --         |   4 KiB of each are read
 *     windows |--------|             |---------|                  |----------|   read in full: ends, changes
 *
 * The cheapest sequence of readings, changes included, labels the cells; inside a window it labels pieces of 4 KiB, and
 * the border between two of them is set to a byte. What lies unseen inside a cell costs size only: every block still
 * gets the coding that suits it.
 */
#include "parallel.h"
#include "plan.h"
#include "sniff.h"

#include <fcntl.h>
#include <stdlib.h>

enum {
	CELL = WFS_SNIFF_LZ4_BYTES,
	BATCH_CELLS = 1024, /* sampled at once: bounds memory */
	JOB_CELLS = 16,	    /* of one thread at a time */
	MIN_SPAN = 2048,    /* shorter ones are not looked at */
	SCRAP = 128,	    /* shorter parts are not worth a block */
	MAX_WINDOW = 2 * CELL,
	MAX_PIECES = MAX_WINDOW / WFS_SAMPLE,
	ANY = WFS_NR_READINGS, /* an end whose reading is not known */
	/* A change costs a block's header and metadata; the rest guards
	 * against chance. What a cell costs is counted for its sample. */
	CELL_CHANGE = 3072 / (CELL / WFS_SAMPLE) * WFS_SNIFF_PLAIN,
	PIECE_CHANGE = 384 * WFS_SNIFF_PLAIN,
};

struct mark {
	u64 off;
	u16 reading; /* from off on */
};
struct window {
	u64 off;
	u32 len;
	u16 first, last; /* readings at its ends, or ANY */
	unsigned nr_marks;
	struct mark mark[MAX_PIECES];
};

/* Some cells of a span. */
struct batch {
	const struct wfs_source *source;
	const struct wfs_span *span;
	u64 first_cell;
	size_t nr_cells, nr_windows;
	u16 before; /* reading of the cell before the first one, or ANY */
	u32 (*cost)[WFS_NR_READINGS];
	u16 (*from)[WFS_NR_READINGS];
	u16 *label;
	struct window *window;	 /* BATCH_CELLS + 2 */
	struct wfs_error *error; /* BATCH_CELLS + 2: of the jobs */
};

/* ---- labels ---- */

static unsigned cheapest_of(const u64 *cost)
{
	unsigned best = 0;

	for (unsigned r = 1; r < WFS_NR_READINGS; r++)
		best = cost[r] < cost[best] ? r : best;
	return best;
}

/* The cheapest sequence of readings for nr samples. before: the reading in front of them, last: the last one's, or ANY.
 * from: scratch. */
static void label_samples(const u32 (*cost)[WFS_NR_READINGS], u16 (*from)[WFS_NR_READINGS], size_t nr, u64 change,
			  unsigned before, unsigned last, u16 *label_ret)
{
	u64 sum[WFS_NR_READINGS];
	unsigned r;

	for (r = 0; r < WFS_NR_READINGS; r++)
		sum[r] = before == ANY || before == r ? 0 : change;
	for (size_t i = 0; i < nr; i++) {
		unsigned best = cheapest_of(sum);
		u64 moved = sum[best] + change;

		for (r = 0; r < WFS_NR_READINGS; r++) {
			from[i][r] = (u16)(sum[r] <= moved ? r : best);
			sum[r] = WFS_MIN(sum[r], moved) + cost[i][r];
		}
	}
	r = last == ANY ? cheapest_of(sum) : last;
	for (size_t i = nr; i--;) {
		label_ret[i] = (u16)r;
		r = from[i][r];
	}
}

/* Costs of a sample; what is no class has an advantage. */
static void sample_costs(struct wfs_sniffer *sniffer, const struct wfs_sample *sample, u32 *cost_ret)
{
	wfs_sniff_costs(sniffer, sample, cost_ret);
	for (unsigned r = 1; r < WFS_NR_READINGS; r++)
		cost_ret[r] += (u32)sample->len * (WFS_SNIFF_PLAIN / WFS_SNIFF_MIN_GAIN);
}

/* ---- cells ---- */

/* Whole pages, so that no more is read than is looked at. */
static u64 sample_off(const struct wfs_span *span, u64 cell)
{
	return (span->off + cell * CELL + CELL / 2) / WFS_SAMPLE * WFS_SAMPLE;
}

/* Matches reach far: LZ4 that finds some in the sample, but loses there, is judged by the whole cell. */
static bool may_be_better(const u32 *cost)
{
	u32 least = cost[0];

	for (unsigned r = 1; r < WFS_NR_READINGS; r++)
		least = WFS_MIN(least, cost[r]);
	return least < cost[0] && cost[0] < WFS_SAMPLE * (WFS_SNIFF_PLAIN - WFS_SNIFF_PLAIN / WFS_SNIFF_MIN_GAIN);
}

static enum wfs_status judge_lz4(const struct batch *b, struct wfs_sniffer *sniffer, u64 cell, u8 *raw, u32 *cost,
				 struct wfs_error *err)
{
	enum wfs_status status = wfs_source_read(b->source, raw, CELL, b->span->off + cell * CELL, err);

	if (status == WFS_OK)
		*cost = wfs_sniff_lz4(sniffer, raw, CELL) / (CELL / WFS_SAMPLE);
	return status;
}

static void sample_cells(void *ctx, size_t job)
{
	const struct batch *b = ctx;
	size_t end = WFS_MIN((job + 1) * JOB_CELLS, b->nr_cells);
	struct wfs_sniffer *sniffer = wfs_sniffer_new();
	struct wfs_error *err = &b->error[job];
	u8 *raw = malloc(CELL);
	enum wfs_status status = sniffer && raw ? WFS_OK : wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");

	for (size_t i = job * JOB_CELLS; i < end && status == WFS_OK; i++) {
		struct wfs_sample sample = {raw, WFS_SAMPLE, sample_off(b->span, b->first_cell + i)};

		status = wfs_source_read(b->source, raw, WFS_SAMPLE, sample.off, err);
		if (status != WFS_OK)
			break;
		sample_costs(sniffer, &sample, b->cost[i]);
		if (may_be_better(b->cost[i]))
			status = judge_lz4(b, sniffer, b->first_cell + i, raw, &b->cost[i][0], err);
	}
	free(raw);
	free(sniffer);
}

/* ---- windows ---- */

static struct wfs_sample piece_of(const struct window *w, const u8 *raw, unsigned nr, unsigned first, unsigned last)
{
	u32 from = first * WFS_SAMPLE, to = last + 1 == nr ? w->len : (last + 1) * WFS_SAMPLE;

	return (struct wfs_sample){raw + from, to - from, w->off + from};
}

/* Where pieces i and i + 1 change readings. The pieces beyond them tell what the readings' words are like, for they
 * have no other words among them. cost: scratch for both. */
static u64 find_border(struct wfs_sniffer *sniffer, const struct window *w, const u8 *raw, unsigned nr,
		       const u16 *label, unsigned i, u16 (*cost)[2 * WFS_MAX_SAMPLE])
{
	unsigned left = i && label[i - 1] == label[i] ? i - 1 : i;
	unsigned right = i + 2 < nr && label[i + 2] == label[i + 1] ? i + 2 : i + 1;
	struct wfs_sample part = piece_of(w, raw, nr, i, i + 1), sample = piece_of(w, raw, nr, left, left);
	int64_t sum = 0, least = 0;
	size_t border = 0;

	wfs_sniff_bytes(sniffer, label[i], &sample, &part, cost[0]);
	sample = piece_of(w, raw, nr, right, right);
	wfs_sniff_bytes(sniffer, label[i + 1], &sample, &part, cost[1]);
	for (size_t k = 0; k < part.len; k++) {
		sum += (int64_t)cost[0][k] - cost[1][k];
		if (sum < least) {
			least = sum;
			border = k + 1;
		}
	}
	return part.off + border;
}

static enum wfs_status window_mark(const struct wfs_source *source, struct window *w, struct wfs_sniffer *sniffer,
				   u8 *raw, u16 (*border_cost)[2 * WFS_MAX_SAMPLE], struct wfs_error *err)
{
	unsigned nr = WFS_MAX(w->len / WFS_SAMPLE, 1u);
	u16 label[MAX_PIECES], from[MAX_PIECES][WFS_NR_READINGS];
	u32 cost[MAX_PIECES][WFS_NR_READINGS];
	enum wfs_status status = wfs_source_read(source, raw, w->len, w->off, err);

	if (status != WFS_OK)
		return status;
	for (unsigned i = 0; i < nr; i++) {
		struct wfs_sample piece = piece_of(w, raw, nr, i, i);

		sample_costs(sniffer, &piece, cost[i]);
	}
	label_samples(cost, from, nr, PIECE_CHANGE, w->first, w->last, label);
	w->mark[0] = (struct mark){w->off, label[0]};
	w->nr_marks = 1;
	for (unsigned i = 0; i + 1 < nr; i++)
		if (label[i] != label[i + 1])
			w->mark[w->nr_marks++] =
				(struct mark){find_border(sniffer, w, raw, nr, label, i, border_cost), label[i + 1]};
	return WFS_OK;
}

static void mark_window(void *ctx, size_t index)
{
	const struct batch *b = ctx;
	struct wfs_sniffer *sniffer = wfs_sniffer_new();
	u16(*border_cost)[2 * WFS_MAX_SAMPLE] = malloc(2 * sizeof(*border_cost));
	u8 *raw = malloc(MAX_WINDOW);

	if (sniffer && raw && border_cost)
		window_mark(b->source, &b->window[index], sniffer, raw, border_cost, &b->error[index]);
	else
		wfs_fail(&b->error[index], WFS_NO_MEMORY, "out of memory for the plan");
	free(raw);
	free(border_cost);
	free(sniffer);
}

static void add_window(struct batch *b, u64 off, u64 end, unsigned first, unsigned last)
{
	b->window[b->nr_windows++] =
		(struct window){.off = off, .len = (u32)(end - off), .first = (u16)first, .last = (u16)last};
}

/* is_last: no cell of the span follows. */
static void add_windows(struct batch *b, bool is_last)
{
	const struct wfs_span *span = b->span;
	u64 cell = b->first_cell;
	unsigned before = b->before;

	b->nr_windows = 0;
	for (size_t i = 0; i < b->nr_cells; i++, cell++) {
		if (before != b->label[i])
			add_window(b, cell ? sample_off(span, cell - 1) : span->off,
				   sample_off(span, cell) + WFS_SAMPLE, before, b->label[i]);
		before = b->label[i];
	}
	if (is_last)
		add_window(b, sample_off(span, cell - 1), span->off + span->len, before, ANY);
}

/* ---- spans ---- */

/* Appends bytes from..to-1 of the span, read in one way. A scrap goes with the part before. */
static bool push_part(struct wfs_spans *out, const struct wfs_span *span, u64 from, u64 to, unsigned reading)
{
	struct wfs_reading way = wfs_reading_get(reading);
	unsigned step = wfs_class_step(way.class);
	struct wfs_span part = {
		.off = from,
		.len = to - from,
		.kind = WFS_REGION_CODED,
		.class = way.class,
		.phase = (u8)((from + step - way.at) % step),
		.tensor = span->tensor && from == span->off && to == span->off + span->len,
	};

	if (part.len < SCRAP && from > span->off && out->nr) {
		out->span[out->nr - 1].len += part.len;
		return true;
	}
	return wfs_spans_push(out, &part);
}

/* Cuts the span along the windows' marks as far as they reach. *open: the part that was begun last. */
static bool push_marked(struct wfs_spans *out, const struct batch *b, struct mark *open)
{
	for (size_t i = 0; i < b->nr_windows; i++)
		for (unsigned k = 0; k < b->window[i].nr_marks; k++) {
			struct mark next = b->window[i].mark[k];

			if (next.reading == open->reading)
				continue;
			/* Windows that are neighbours overlap. */
			next.off = WFS_MAX(next.off, open->off);
			if (next.off - b->span->off < SCRAP)
				next.off = b->span->off;
			else if (!push_part(out, b->span, open->off, next.off, open->reading))
				return false;
			*open = next;
		}
	return true;
}

static enum wfs_status run_jobs(struct batch *b, unsigned nr_threads, size_t nr, void (*job)(void *ctx, size_t index),
				struct wfs_error *err)
{
	memset(b->error, 0, nr * sizeof(*b->error));
	wfs_parallel_for(nr_threads, nr, job, b);
	for (size_t i = 0; i < nr; i++) {
		if (b->error[i].status != WFS_OK) {
			if (err)
				*err = b->error[i];
			return b->error[i].status;
		}
	}
	return WFS_OK;
}

/* Many small reads at once instead of one after another: for slow and distant disks. A hint. */
static void prefetch(const struct batch *b)
{
	for (size_t i = 0; i < b->nr_cells; i++)
		(void)posix_fadvise(b->source->fd, (off_t)sample_off(b->span, b->first_cell + i), WFS_SAMPLE,
				    POSIX_FADV_WILLNEED);
}

static enum wfs_status label_batch(struct batch *b, unsigned nr_threads, bool is_last, struct wfs_error *err)
{
	enum wfs_status status;

	prefetch(b);
	status = run_jobs(b, nr_threads, WFS_CEIL_DIV(b->nr_cells, (size_t)JOB_CELLS), sample_cells, err);
	if (status != WFS_OK)
		return status;
	label_samples(b->cost, b->from, b->nr_cells, CELL_CHANGE, b->before, ANY, b->label);
	add_windows(b, is_last);
	b->before = b->label[b->nr_cells - 1];
	return WFS_OK;
}

static enum wfs_status sniff_span(struct batch *b, unsigned nr_threads, struct wfs_spans *out, struct wfs_error *err)
{
	const struct wfs_span *span = b->span;
	u64 nr = span->len / CELL, end = span->off + span->len;
	struct mark open = {span->off, 0};
	enum wfs_status status = WFS_OK;

	b->before = ANY;
	b->first_cell = 0;
	do {
		b->nr_cells = (size_t)WFS_MIN(nr - b->first_cell, (u64)BATCH_CELLS);
		if (nr < 2) {
			b->nr_windows = 0;
			add_window(b, span->off, end, ANY, ANY);
		} else {
			status = label_batch(b, nr_threads, b->first_cell + b->nr_cells == nr, err);
		}
		if (status == WFS_OK)
			status = run_jobs(b, nr_threads, b->nr_windows, mark_window, err);
		if (status == WFS_OK)
			status = wfs_source_go_on(b->source, err);
		if (status == WFS_OK && !push_marked(out, b, &open))
			status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
		b->first_cell += b->nr_cells;
	} while (b->first_cell < nr && status == WFS_OK);
	if (status == WFS_OK && !push_part(out, span, open.off, end, open.reading))
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	return status;
}

enum wfs_status wfs_spans_sniff(const struct wfs_source *source, unsigned nr_threads, struct wfs_spans *spans,
				struct wfs_error *err)
{
	struct wfs_spans out = {0};
	struct batch b = {
		.source = source,
		.cost = malloc(BATCH_CELLS * sizeof(*b.cost)),
		.from = malloc(BATCH_CELLS * sizeof(*b.from)),
		.label = malloc(BATCH_CELLS * sizeof(*b.label)),
		.window = malloc((BATCH_CELLS + 2) * sizeof(*b.window)),
		.error = malloc((BATCH_CELLS + 2) * sizeof(*b.error)),
	};
	enum wfs_status status = WFS_OK;

	if (!b.cost || !b.from || !b.label || !b.window || !b.error)
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	for (size_t i = 0; i < spans->nr && status == WFS_OK; i++) {
		b.span = &spans->span[i];
		if (b.span->kind == WFS_REGION_CODED && !b.span->class && b.span->len >= MIN_SPAN)
			status = sniff_span(&b, nr_threads, &out, err);
		else if (!wfs_spans_push(&out, b.span))
			status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	}
	if (status == WFS_OK) {
		struct wfs_spans old = *spans;

		*spans = out;
		out = old;
	}
	wfs_spans_free(&out);
	free(b.error);
	free(b.window);
	free(b.label);
	free(b.from);
	free(b.cost);
	return status;
}
