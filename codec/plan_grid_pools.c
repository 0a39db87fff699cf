/* plan_grid_pools.c - trains the pools of grids' codes: one for each grid of a file, from the codes of whole blocks.
 *
 * Whole blocks, because a tile's codes depend on its largest word. Codes are alike all over a file, whatever the
 * scales: that is what they are made for.
 */
#include "plan_grids.h"
#include "parallel.h"

#include <stdlib.h>

enum {
	MIN_BYTES = 64 << 10, /* of words that are worth a pool */
	MAX_BLOCKS = 96,      /* that are encoded to train from */
	SAMPLE_WORDS = 512,
};

static u64 blocks_of(const struct wfs_span *s, unsigned block_log2)
{
	return ((s->off + s->len - 1) >> block_log2) - (s->off >> block_log2) + 1;
}

struct training {
	const struct wfs_grids *grids;
	struct wfs_planned_grid *plan;
	u16 number; /* as spans name it */
	struct wfs_trainer *split;
	struct wfs_wide_trainer *wide;
	struct wfs_grid_buffers *buf;
	u8 *raw;
	u32 samples; /* wanted of each block */
	u32 nr_blocks, nr_refused;
};

static enum wfs_status no_memory(struct wfs_error *err)
{
	return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the tables");
}

/* One sample from the word at `at` on, or from where its segment begins. */
static void add_sample(struct training *t, u64 raw_off, unsigned word, size_t nr_words, size_t at)
{
	const struct wfs_geometry *geometry = t->grids->geometry;
	const u64 off = raw_off + at * word;
	const struct wfs_matrix *m = &geometry->matrix[wfs_geometry_find(geometry, off)];
	size_t wanted, back;

	if (t->split) {
		wanted = wfs_trainer_wanted(t->split);
		at -= at % wanted;
		wfs_trainer_add(t->split, t->buf->code + at, WFS_MIN(nr_words - at, wanted));
		return;
	}
	wanted = wfs_wide_segment_words(m->cols); /* tensors have matrices */
	back = (size_t)((off - m->raw_off) / word % wanted);
	at -= WFS_MIN(back, at);
	wfs_wide_trainer_add(t->wide, t->buf->code + at, WFS_MIN(nr_words - at, wanted));
}

/* The samples of the block that raw_off lies in, as far as it belongs to the span. */
static enum wfs_status add_block(struct training *t, const struct wfs_span *s, u64 square, struct wfs_error *err)
{
	const unsigned log2 = t->grids->opts->block_log2;
	const u64 start = WFS_MAX(square << log2, s->off), end = WFS_MIN((square + 1) << log2, s->off + s->len);
	const unsigned word = wfs_grid_word_bytes(t->plan->grid.output);
	const struct wfs_block_cut cut =
		wfs_block_cut(word, (unsigned)((s->phase + (start - s->off)) % 8), (size_t)(end - start));
	const struct wfs_place place = {.raw_off = start, .geometry = t->grids->geometry};
	enum wfs_status status = wfs_source_read(t->grids->source, t->raw, (size_t)(end - start), start, err);

	if (status != WFS_OK)
		return status;
	t->nr_blocks++;
	if (!wfs_grid_codes(&t->plan->encoder, t->grids->opts->cpu, &place, cut.head, t->raw + cut.head, cut.nr_words,
			    t->buf)) {
		t->nr_refused++;
		return WFS_OK;
	}
	for (u64 i = 0; i < t->samples; i++) {
		const u64 nr = WFS_CEIL_DIV(cut.nr_words, (size_t)SAMPLE_WORDS);

		if (i < nr)
			add_sample(t, start + cut.head, word, cut.nr_words,
				   (size_t)(i * nr / WFS_MIN(nr, (u64)t->samples)) * SAMPLE_WORDS);
	}
	return WFS_OK;
}

/* Blocks spread evenly over all spans of the grid. */
static enum wfs_status add_blocks(struct training *t, struct wfs_error *err)
{
	const struct wfs_spans *spans = t->grids->spans;
	const unsigned log2 = t->grids->opts->block_log2;
	u64 total = 0, before = 0, wanted, k = 0;
	enum wfs_status status = WFS_OK;

	for (size_t i = 0; i < spans->nr; i++)
		if (spans->span[i].grid == t->number)
			total += blocks_of(&spans->span[i], log2);
	wanted = WFS_MIN(total, (u64)MAX_BLOCKS);
	t->samples = (u32)WFS_CEIL_DIV((u64)WFS_TRAIN_SAMPLES, WFS_MAX(wanted, (u64)1));
	for (size_t i = 0; i < spans->nr; i++) {
		const struct wfs_span *s = &spans->span[i];

		if (s->grid != t->number)
			continue;
		for (; k < wanted && k * total / wanted < before + blocks_of(s, log2) && status == WFS_OK; k++)
			status = add_block(t, s, (s->off >> log2) + (k * total / wanted - before), err);
		before += blocks_of(s, log2);
	}
	return status;
}

static enum wfs_status make_pool(struct training *t, struct wfs_error *err)
{
	struct wfs_planned_grid *p = t->plan;
	enum wfs_status status = add_blocks(t, err);

	if (status != WFS_OK)
		return status;
	p->refuses = t->nr_refused > 0;
	p->pays = 2 * t->nr_refused < t->nr_blocks;
	if (p->wide) {
		if (wfs_wide_trainer_finish(t->wide, &p->wide_pool, &p->split) != WFS_OK)
			return no_memory(err);
		p->wide_encode_pool = wfs_wide_encode_pool_new(&p->wide_pool, p->split);
		return p->wide_encode_pool ? WFS_OK : no_memory(err);
	}
	if (wfs_trainer_finish(t->split, 9, &p->pool) != WFS_OK)
		return no_memory(err);
	p->encode_pool = wfs_encode_pool_new(&p->pool, p->split);
	return p->encode_pool ? WFS_OK : no_memory(err);
}

static void train(void *ctx, size_t index)
{
	const struct wfs_grids *grids = ctx;
	struct wfs_planned_grid *p = &grids->plan[index];
	struct training t = {.grids = grids, .plan = p, .number = (u16)(index + 1)};
	struct wfs_grid_values values;

	p->status = WFS_OK;
	if (p->data_len < MIN_BYTES)
		return;
	wfs_grid_values_make(&p->grid, &values);
	wfs_grid_encoder_make(&values, &p->encoder);
	p->split = wfs_grid_code_split(&p->grid);
	if (p->wide)
		t.wide = wfs_wide_trainer_new(p->split, p->data_len / wfs_grid_word_bytes(p->grid.output));
	else
		t.split = wfs_trainer_new(p->split);
	t.buf = aligned_alloc(64, WFS_CEIL_DIV(sizeof(*t.buf), (size_t)64) * 64);
	t.raw = malloc((size_t)1 << grids->opts->block_log2);
	p->status = (t.wide || t.split) && t.buf && t.raw ? make_pool(&t, &p->error) : no_memory(&p->error);
	free(t.raw);
	free(t.buf);
	wfs_trainer_free(t.split);
	wfs_wide_trainer_free(t.wide);
}

static void planned_free(struct wfs_planned_grid *p)
{
	wfs_encode_pool_free(p->encode_pool);
	wfs_wide_encode_pool_free(p->wide_encode_pool);
	p->encode_pool = NULL;
	p->wide_encode_pool = NULL;
}

/* Drops the grids that do not pay and numbers the others anew. */
static void keep_paying(struct wfs_grids *grids, u16 *number)
{
	u16 nr = 0;

	for (u32 i = 0; i < grids->nr; i++) {
		struct wfs_planned_grid *p = &grids->plan[i];

		if (!p->pays) {
			planned_free(p);
			continue;
		}
		number[i + 1] = ++nr;
		if (nr != i + 1) {
			grids->plan[nr - 1] = *p;
			p->encode_pool = NULL;
			p->wide_encode_pool = NULL;
		}
	}
	grids->nr = nr;
	for (size_t i = 0; i < grids->spans->nr; i++)
		grids->spans->span[i].grid = number[grids->spans->span[i].grid];
}

enum wfs_status wfs_grids_train(struct wfs_grids *grids, struct wfs_error *err)
{
	u16 *number = calloc((size_t)grids->nr + 1, sizeof(*number));
	enum wfs_status status = number ? WFS_OK : no_memory(err);

	for (size_t i = 0; status == WFS_OK && i < grids->spans->nr; i++) {
		const struct wfs_span *s = &grids->spans->span[i];

		if (s->grid)
			grids->plan[s->grid - 1].data_len += s->len;
	}
	for (u32 i = 0; i < grids->nr; i++)
		grids->plan[i].wide = grids->opts->level == WFS_LEVEL_MAX && i < WFS_MAX_WIDE_GRIDS;
	if (status == WFS_OK)
		wfs_parallel_for(wfs_thread_count(grids->opts->nr_threads), grids->nr, train, grids);
	for (u32 i = 0; status == WFS_OK && i < grids->nr; i++) {
		status = grids->plan[i].status;
		if (status != WFS_OK && err)
			*err = grids->plan[i].error;
	}
	if (status == WFS_OK)
		keep_paying(grids, number);
	free(number);
	return status;
}

void wfs_grids_free(struct wfs_grids *grids)
{
	for (u32 i = 0; grids->plan && i < grids->nr; i++)
		planned_free(&grids->plan[i]);
	free(grids->plan);
}
