/* grid_detect.c - is a tensor on a grid? Answered from samples; a wrong answer costs size, never words.
 *
 * 16 words that follow each other in a row lie in one tile of nearly every layout in use, and 16 words of ordinary
 * weights fit no list under any scale. So a few such probes reject most tensors. What passes is looked at in full
 * tiles: lists from sparse to dense, tiles from large to small.
 */
#include "plan_grids.h"

#include <stdlib.h>

enum {
	PROBE = WFS_SEARCH_STEP,
	NR_PROBES = 8,
	PROBE_STEP = 256,  /* words from one to the next */
	MIN_DIFFERENT = 3, /* magnitudes in a probe that says something */
	EARLY = 3,	   /* probes after which nothing is hoped for where none has fitted */
	MIN_TILES = 8,	   /* of one size that are looked at; */
	MAX_TILES = 32,	   /* small ones */
	SAMPLE_WORDS = 1 << 16,
	MAX_TILE = 1 << 14, /* words of a tile that are looked at */
	MAX_ROWS = 128,	    /* rows of a tile that are looked at */
	MAX_COLUMN = 512,   /* words of a column that are looked at */
	COLUMNS = PROBE,    /* neighbouring columns that are read together */
};

/* Rows and columns of tiles; 0: all. The last ones are for weights that are stored transposed. */
static const struct {
	u16 rows, cols;
} tile_sizes[] = {{0, 0},  {128, 128}, {64, 64}, {1, 0},   {1, 256}, {1, 128}, {1, 64}, {1, 32},
		  {1, 16}, {0, 1},     {256, 1}, {128, 1}, {64, 1},  {32, 1},  {16, 1}};

/* Lists that between them hold what the others do. */
static const enum wfs_grid_list dense_lists[] = {WFS_LIST_E4M3, WFS_LIST_E5M2, WFS_LIST_INT8, WFS_LIST_NF4,
						 WFS_LIST_FP4};

struct detector {
	const struct wfs_source *source;
	const struct wfs_grid_rules *rules;
	struct wfs_error *err;
	enum wfs_status status;
	u64 off, rows, cols; /* whole rows of the matrix, from off of the file on */
	u64 first_row;	     /* number of the first in the matrix */
	unsigned word;
	unsigned nr_long; /* tiles whose scale is no power of two, since it was last 0 */
	unsigned nr_probes;
	u32 probe[NR_PROBES][PROBE];
	u32 x[MAX_TILE], tile[MAX_TILE];
	u8 raw[MAX_TILE * 4];
};

void wfs_grid_rules_make(enum wfs_grid_output output, enum wfs_cpu cpu, struct wfs_grid_rules *rules_ret)
{
	rules_ret->output = output;
	rules_ret->kernel = wfs_search_kernel_for(cpu);
	for (unsigned list = 0; list < WFS_NR_LISTS; list++)
		for (unsigned op = WFS_GRID_NEAREST; op <= WFS_GRID_TRUNCATE; op++) {
			struct wfs_grid_values values;
			struct wfs_grid grid;

			wfs_grid_of_list(list, op, output, &grid);
			wfs_grid_values_make(&grid, &values);
			(void)wfs_search_rule_make(&values, &rules_ret->rule[list][op]);
		}
}

/* ---- reading ---- */

/* nr words from a row and column on, as numbers. */
static bool read_words(struct detector *d, u64 row, u64 col, size_t nr, u32 *x)
{
	if (d->status == WFS_OK)
		d->status = wfs_source_read(d->source, d->raw, nr * d->word, d->off + (row * d->cols + col) * d->word,
					    d->err);
	if (d->status != WFS_OK)
		return false;
	d->rules->kernel->load(d->rules->output, d->raw, nr, x);
	return true;
}

/* ---- probes ---- */

static bool says_something(const u32 *x)
{
	u32 seen[MIN_DIFFERENT];
	unsigned nr = 0;

	for (unsigned i = 0; i < PROBE && nr < MIN_DIFFERENT; i++) {
		u32 m = x[i] & 0x7fffffff;
		unsigned k = 0;

		while (k < nr && seen[k] != m)
			k++;
		if (m && k == nr)
			seen[nr++] = m;
	}
	return nr == MIN_DIFFERENT;
}

/* Words that follow each other in rows near the middle. */
static bool probe_rows(struct detector *d)
{
	const u64 row = d->rows / 2, left = (d->rows - row) * d->cols;
	const size_t nr = (size_t)WFS_MIN(left, (u64)NR_PROBES * PROBE_STEP);

	d->nr_probes = 0;
	if (d->cols < PROBE || !read_words(d, row, 0, nr, d->x))
		return false;
	for (size_t at = 0; at + PROBE <= nr; at += PROBE_STEP) {
		u64 col = at % d->cols / PROBE * PROBE;
		size_t from = at - at % d->cols + (size_t)WFS_MIN(col, d->cols - PROBE);

		if (from + PROBE <= nr && says_something(d->x + from))
			memcpy(d->probe[d->nr_probes++], d->x + from, sizeof(d->probe[0]));
	}
	return true;
}

/* Neighbouring columns near the middle, from nr rows. */
static bool read_columns(struct detector *d, u64 row, u64 rows_apart, u64 col, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		u32 x[COLUMNS];

		if (!read_words(d, row + i * rows_apart, col, COLUMNS, x))
			return false;
		for (unsigned k = 0; k < COLUMNS; k++)
			d->tile[k * nr + i] = x[k];
	}
	return true;
}

static bool probe_columns(struct detector *d)
{
	d->nr_probes = 0;
	if (d->rows < PROBE || d->cols < COLUMNS)
		return false;
	if (!read_columns(d, (d->rows - PROBE) / 2 / PROBE * PROBE, 1, (d->cols - COLUMNS) / 2, PROBE))
		return false;
	for (unsigned k = 0; k < COLUMNS && d->nr_probes < NR_PROBES; k++)
		if (says_something(d->tile + k * PROBE))
			memcpy(d->probe[d->nr_probes++], d->tile + k * PROBE, sizeof(d->probe[0]));
	return true;
}

static bool fits(struct detector *d, const struct wfs_search_rule *rule, u32 *x, size_t nr)
{
	struct wfs_search search = {.rule = rule, .kernel = d->rules->kernel};
	struct wfs_scale_range range;
	enum wfs_tile_kind kind = wfs_tile_search(&search, x, nr, &range);

	d->nr_long += kind == WFS_TILE_FITS && wfs_scale_bits(&range);
	return kind != WFS_TILE_MISFIT;
}

static bool enough(unsigned fitting, unsigned nr)
{
	return 4 * fitting >= 3 * nr;
}

/* Whether most of the probes fit a list; after some, whether any does. */
static bool probes_fit(struct detector *d, const struct wfs_search_rule *rule)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < d->nr_probes; i++) {
		if (i == EARLY && !nr)
			return false;
		nr += fits(d, rule, d->probe[i], PROBE);
	}
	return d->nr_probes && enough(nr, d->nr_probes);
}

static unsigned nr_ops(const struct detector *d)
{
	return d->rules->output == WFS_GRID_BF16 ? 2 : 1;
}

static bool any_fits(struct detector *d)
{
	for (unsigned i = 0; i < WFS_ARRAY_LEN(dense_lists); i++)
		for (unsigned op = 0; op < nr_ops(d); op++)
			if (probes_fit(d, &d->rules->rule[dense_lists[i]][op]))
				return true;
	return false;
}

/* ---- tiles ---- */

/* Number i of nr_places places spread over nr. */
static u64 spread(u64 nr, unsigned i, unsigned nr_places)
{
	return nr_places > 1 ? (nr - 1) * i / (nr_places - 1) : 0;
}

/* Words of one tile, or part of a large one, followed by zeros; returns how many, 0 after a failure. */
static size_t read_tile(struct detector *d, u64 tile_rows, u64 tile_cols, u64 row, u64 col)
{
	const u64 rows = WFS_MIN(tile_rows, d->rows - row), cols = WFS_MIN(tile_cols, d->cols - col);
	const size_t nr_rows = (size_t)WFS_MIN(rows, (u64)MAX_ROWS);
	const size_t nr_cols = (size_t)WFS_MIN(cols, MAX_TILE / WFS_MAX(nr_rows, (size_t)1));
	size_t nr = 0;

	for (size_t i = 0; i < nr_rows; i++, nr += nr_cols)
		if (!read_words(d, row + i * rows / nr_rows, col, nr_cols, d->tile + nr))
			return 0;
	while (nr % WFS_SEARCH_STEP)
		d->tile[nr++] = 0;
	return nr;
}

/* Whole tiles of so many rows, one below the other, and the rows before the first. */
struct tile_rows {
	u64 rows, skip, nr;
};
static struct tile_rows rows_of_tiles(const struct detector *d, u64 rows)
{
	struct tile_rows r = {.rows = rows};

	if (!rows || (rows > d->rows && !d->first_row)) {
		r.rows = d->rows;
		r.nr = 1;
	} else {
		r.skip = (rows - d->first_row % rows) % rows;
		r.nr = d->rows > r.skip ? (d->rows - r.skip) / rows : 0;
	}
	return r;
}

/* How many of the tiles looked at fit, and of how many. */
struct fitting {
	unsigned nr, of;
};

/* Few of them fit: not worth looking on. */
static bool hopeless(const struct fitting *f)
{
	return f->of >= EARLY && 2 * f->nr < f->of;
}

static struct fitting tiles_fit(struct detector *d, const struct wfs_search_rule *rule, u64 tile_rows, u64 tile_cols)
{
	const struct tile_rows r = rows_of_tiles(d, tile_rows);
	const u64 cols = WFS_MAX(tile_cols ? WFS_MIN(tile_cols, d->cols) : d->cols, (u64)1);
	const u64 across = WFS_MAX(WFS_CEIL_DIV(d->cols, cols), (u64)1);
	const u64 wanted =
		WFS_MIN(WFS_MAX(SAMPLE_WORDS / WFS_MAX(r.rows * cols, (u64)1), (u64)MIN_TILES), (u64)MAX_TILES);
	const unsigned nr_tiles = (unsigned)WFS_MIN(across * r.nr, wanted);
	struct fitting f = {0};

	while (f.of < nr_tiles && !hopeless(&f)) {
		const u64 t = spread(across * r.nr, f.of, nr_tiles);
		const size_t nr = read_tile(d, r.rows, cols, r.skip + t / across * r.rows, t % across * cols);

		if (!nr)
			break;
		f.nr += fits(d, rule, d->tile, nr);
		f.of++;
	}
	return f;
}

/* The same for tiles of one column. */
static struct fitting columns_fit(struct detector *d, const struct wfs_search_rule *rule, u64 tile_rows)
{
	const struct tile_rows r = rows_of_tiles(d, tile_rows);
	const size_t nr = (size_t)WFS_MIN(r.rows, (u64)MAX_COLUMN) / PROBE * PROBE;
	struct fitting f = {0};

	if (!nr)
		return f;
	for (unsigned i = 0; i < MIN_TILES && r.nr && d->cols >= COLUMNS && !hopeless(&f); i++) {
		const u64 row = r.skip + spread(r.nr, i, MIN_TILES) * r.rows;

		if (!read_columns(d, row, r.rows / nr, spread(d->cols - COLUMNS + 1, i, MIN_TILES), nr))
			break;
		for (unsigned k = 0; k < COLUMNS; k++)
			f.nr += fits(d, rule, d->tile + k * nr, nr);
		f.of += COLUMNS;
	}
	return f;
}

/* ---- the choice ---- */

/* About what a word costs, in tenths of a bit: with each list, a tile's scale, and as part of a tile that does not fit.
 * Short lists cost the same words the same: their codes are coded whole. */
static const u8 list_cost[WFS_NR_LISTS] = {
	[WFS_LIST_E2M1] = 30, [WFS_LIST_FP4] = 31,  [WFS_LIST_NF4] = 32,
	[WFS_LIST_INT4] = 30, [WFS_LIST_INT5] = 31, [WFS_LIST_E5M2] = 56,
	[WFS_LIST_E4M3] = 65, [WFS_LIST_INT8] = 73, [WFS_LIST_INT8_FULL] = 74,
};
enum { SCALE_COST = 120, MISFIT_COST = 300, MAX_COST = 95 };

/* Eight-bit floats under powers of two are words with zeros at the bottom: the split coding sees that. */
static bool better_plain(const struct detector *d, enum wfs_grid_list list)
{
	return (list == WFS_LIST_E4M3 || list == WFS_LIST_E5M2) && !d->nr_long;
}

/* The cheapest tiles for a list; what is found becomes *found where it is cheaper than *cost. */
static void sizes_try(struct detector *d, enum wfs_grid_list list, enum wfs_grid_op op, bool columns,
		      struct wfs_grid_found *found, u64 *cost)
{
	const struct wfs_search_rule *rule = &d->rules->rule[list][op];

	for (unsigned i = 0; i < WFS_ARRAY_LEN(tile_sizes) && d->status == WFS_OK; i++) {
		const u64 rows = tile_sizes[i].rows, cols = tile_sizes[i].cols;
		struct fitting f;
		u64 this_cost;

		if (columns != (cols == 1) || (rows == 1 && cols >= d->cols) || (columns && rows > d->rows))
			continue;
		d->nr_long = 0;
		f = columns ? columns_fit(d, rule, rows) : tiles_fit(d, rule, rows, cols);
		if (!f.of || hopeless(&f))
			continue;
		this_cost = list_cost[list] + MISFIT_COST * (f.of - f.nr) / f.of +
			    SCALE_COST / ((rows ? rows : d->rows) * (cols ? cols : d->cols));
		if (this_cost < *cost && !better_plain(d, list)) {
			*cost = this_cost;
			*found = (struct wfs_grid_found){true, list, op, tile_sizes[i].rows, tile_sizes[i].cols};
		}
		if (f.nr == f.of)
			return; /* smaller tiles have more scales */
	}
}

static void lists_try(struct detector *d, bool columns, struct wfs_grid_found *found)
{
	u64 cost = MAX_COST;

	for (unsigned list = 0; list < WFS_NR_LISTS && d->status == WFS_OK; list++)
		for (unsigned op = 0; op < nr_ops(d); op++)
			if (list_cost[list] < cost && probes_fit(d, &d->rules->rule[list][op]))
				sizes_try(d, list, op, columns, found, &cost);
}

enum wfs_status wfs_grid_detect(const struct wfs_source *source, const struct wfs_grid_rules *rules,
				const struct wfs_matrix *matrix, u64 off, u64 len, struct wfs_grid_found *found_ret,
				struct wfs_error *err)
{
	const u64 row_bytes = matrix->cols * matrix->word;
	const u64 skipped = off > matrix->raw_off ? off - matrix->raw_off : 0;
	struct detector *d;
	enum wfs_status status;

	*found_ret = (struct wfs_grid_found){0};
	d = malloc(sizeof(*d));
	if (!d)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	d->source = source;
	d->rules = rules;
	d->err = err;
	d->status = WFS_OK;
	d->word = matrix->word;
	d->cols = matrix->cols;
	d->first_row = WFS_CEIL_DIV(skipped, row_bytes);
	d->off = matrix->raw_off + d->first_row * row_bytes;
	d->rows = d->off < off + len ? (off + len - d->off) / row_bytes : 0;
	if (d->rows) {
		if (probe_rows(d) && any_fits(d))
			lists_try(d, false, found_ret);
		else if (probe_columns(d) && any_fits(d))
			lists_try(d, true, found_ret);
	}
	status = d->status;
	free(d);
	return status;
}
