/* plan_grids.c - which tensors of a file are on grids, and which have so few different words that a palette names them
 * all.
 *
 * Grids are told from samples. A palette is counted in full, but a tensor with more words than it can have shows it
 * within its first few hundred.
 */
#include "plan_grids.h"
#include "parallel.h"

#include <stdlib.h>

enum {
	MIN_TENSOR = 8 << 10,	/* bytes; smaller ones are not looked at */
	MIN_PALETTE = 64 << 10, /* bytes of a tensor whose palette is worth its room */
	SAMPLE = 8 << 10,	/* bytes that are looked at before all are read */
	STEP = 1 << 18,
};

struct job {
	size_t span, matrix;
	enum wfs_grid_output output;
	struct wfs_grid_found found;
	struct wfs_word_set *palette; /* NULL: too many words */
	enum wfs_status status;
	struct wfs_error error;
};
struct search {
	struct wfs_grids *grids;
	struct wfs_grid_rules *rules; /* WFS_GRID_OUTPUTS */
	struct job *job;
	size_t nr_jobs;
};

static enum wfs_status no_memory(struct wfs_error *err)
{
	return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
}

/* ---- palettes ---- */

static bool add_words(struct wfs_word_set *set, unsigned word, const u8 *raw, size_t len)
{
	u32 last = word == 2 ? wfs_load16(raw) : wfs_load32(raw);

	if (!wfs_word_set_add(set, last))
		return false;
	for (size_t i = word; i < len; i += word) {
		u32 w = word == 2 ? wfs_load16(raw + i) : wfs_load32(raw + i);

		if (w != last && !wfs_word_set_add(set, w))
			return false;
		last = w;
	}
	return true;
}

/* All words of a span; *set_ret: NULL when they are too many or but one. */
static enum wfs_status palette_find(const struct wfs_source *source, const struct wfs_span *s, unsigned word,
				    struct wfs_word_set **set_ret, struct wfs_error *err)
{
	const u64 head = (word - s->phase % word) % word, end = s->off + head + (s->len - head) / word * word;
	u64 at = s->off + head, len, middle = at + (end - at) / 2 / word * word;
	struct wfs_word_set *set = calloc(1, sizeof(*set));
	u8 *buf = malloc(STEP);
	enum wfs_status status = set && buf ? WFS_OK : no_memory(err);
	bool few = true;

	*set_ret = NULL;
	if (status == WFS_OK)
		status = wfs_source_read(source, buf, SAMPLE, middle, err);
	few = status == WFS_OK && add_words(set, word, buf, SAMPLE);
	for (; status == WFS_OK && few && at < end; at += len) {
		len = WFS_MIN(end - at, (u64)STEP);
		status = wfs_source_read(source, buf, (size_t)len, at, err);
		few = status == WFS_OK && add_words(set, word, buf, (size_t)len);
	}
	if (few && set->nr > 1) {
		*set_ret = set;
		set = NULL;
	}
	free(buf);
	free(set);
	return status;
}

static int u32_compare(const void *a, const void *b)
{
	const u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static void palette_grid(const struct wfs_word_set *set, enum wfs_grid_output output, struct wfs_grid *grid_ret)
{
	*grid_ret = (struct wfs_grid){
		.op = WFS_GRID_PALETTE, .flags = WFS_GRID_SIGNED, .output = (u8)output, .nb = (u16)set->nr};
	memcpy(grid_ret->base, set->word, set->nr * sizeof(set->word[0]));
	qsort(grid_ret->base, grid_ret->nb, sizeof(grid_ret->base[0]), u32_compare);
}

/* ---- tensors ---- */

static bool output_of(unsigned class, enum wfs_grid_output *output_ret)
{
	switch (class) {
	case WFS_CLASS_BF16:
		*output_ret = WFS_GRID_BF16;
		return true;
	case WFS_CLASS_F16:
		*output_ret = WFS_GRID_F16;
		return true;
	case WFS_CLASS_F32:
		*output_ret = WFS_GRID_F32;
		return true;
	default:
		return false;
	}
}

static void look(void *ctx, size_t index)
{
	const struct search *q = ctx;
	struct job *job = &q->job[index];
	const struct wfs_span *s = &q->grids->spans->span[job->span];
	const struct wfs_matrix *m = &q->grids->geometry->matrix[job->matrix];

	job->status =
		wfs_grid_detect(q->grids->source, &q->rules[job->output], m, s->off, s->len, &job->found, &job->error);
	if (job->status == WFS_OK && !job->found.found && s->len >= MIN_PALETTE)
		job->status = palette_find(q->grids->source, s, m->word, &job->palette, &job->error);
}

/* The spans that may be on a grid. false: out of memory. */
static bool list_jobs(struct search *q)
{
	const struct wfs_spans *spans = q->grids->spans;
	const struct wfs_geometry *geometry = q->grids->geometry;

	q->job = calloc(spans->nr + 1, sizeof(*q->job));
	for (size_t i = 0; q->job && i < spans->nr; i++) {
		const struct wfs_span *s = &spans->span[i];
		const size_t m = wfs_geometry_find(geometry, s->off);
		enum wfs_grid_output output;

		if (s->kind != WFS_REGION_CODED || s->len < MIN_TENSOR || !output_of(s->class, &output) ||
		    m == geometry->nr || geometry->matrix[m].raw_off > s->off ||
		    geometry->matrix[m].word != wfs_grid_word_bytes(output))
			continue;
		q->job[q->nr_jobs++] = (struct job){.span = i, .matrix = m, .output = output};
	}
	return q->job;
}

static bool grids_equal(const struct wfs_grid *a, const struct wfs_grid *b)
{
	return a->op == b->op && a->flags == b->flags && a->output == b->output && a->nb == b->nb &&
	       !memcmp(a->base, b->base, a->nb * sizeof(a->base[0]));
}

/* The number of a grid, which is added when it is new; -1: no room. */
static int grid_number(struct wfs_grids *grids, const struct wfs_grid *grid, size_t max)
{
	for (u32 i = 0; i < grids->nr; i++)
		if (grids_equal(&grids->plan[i].grid, grid))
			return (int)i;
	if (grids->nr == max)
		return -1;
	grids->plan[grids->nr].grid = *grid;
	return (int)grids->nr++;
}

/* Gives a job's span its grid. Tiles belong to a matrix: the first of its spans decides. */
static void name_grid(struct wfs_grids *grids, const struct job *job, size_t max)
{
	struct wfs_matrix *m = &grids->geometry->matrix[job->matrix];
	struct wfs_grid grid;
	int number;

	if (job->found.found) {
		wfs_grid_of_list(job->found.list, job->found.op, job->output, &grid);
		if (!m->tile_rows && !m->tile_cols) {
			m->tile_rows = job->found.tile_rows;
			m->tile_cols = job->found.tile_cols;
		}
	} else if (job->palette) {
		palette_grid(job->palette, job->output, &grid);
	} else {
		return;
	}
	number = grid_number(grids, &grid, max);
	if (number < 0)
		return;
	grids->spans->span[job->span].grid = (u16)(number + 1);
	grids->plan[number].class = grids->spans->span[job->span].class;
}

enum wfs_status wfs_grids_find(struct wfs_grids *grids, struct wfs_error *err)
{
	const size_t max = WFS_MAX_PLANNED_GRIDS;
	struct search q = {.grids = grids, .rules = calloc(WFS_GRID_OUTPUTS, sizeof(*q.rules))};
	enum wfs_status status = WFS_OK;

	if (grids->opts->level == WFS_LEVEL_FAST) {
		free(q.rules);
		return WFS_OK;
	}
	grids->plan = calloc(max, sizeof(*grids->plan));
	if (!q.rules || !grids->plan || !list_jobs(&q)) {
		status = no_memory(err);
		goto out;
	}
	for (unsigned output = 0; q.nr_jobs && output < WFS_GRID_OUTPUTS; output++)
		wfs_grid_rules_make(output, grids->opts->cpu, &q.rules[output]);
	wfs_parallel_for(wfs_thread_count(grids->opts->nr_threads), q.nr_jobs, look, &q);
	for (size_t i = 0; i < q.nr_jobs && status == WFS_OK; i++) {
		status = q.job[i].status;
		if (status != WFS_OK && err)
			*err = q.job[i].error;
		else
			name_grid(grids, &q.job[i], max);
	}
	if (status == WFS_OK)
		status = wfs_source_go_on(grids->source, err);
out:
	for (size_t i = 0; q.job && i < q.nr_jobs; i++)
		free(q.job[i].palette);
	free(q.job);
	free(q.rules);
	return status;
}
