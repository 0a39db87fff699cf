/* plan.c - from a file to its regions: spans along the tensors, repeats taken out, neighbours joined, pools assigned.
 *
 * A file that is not safetensors is one span of no class. Overlapping tensors: the first one by offset wins.
 */
#include "plan_grids.h"
#include "file_io.h"
#include "parallel.h"

#include <stdlib.h>

enum {
	/* A small stranger between words of one class costs up to 5 bytes a word as escapes and literals; a region of
	 * its own cuts a block in two (some 250 bytes of header and states) and adds a block (some 50 bytes of metadata
	 * in both copies). */
	ABSORB_BYTES = 256,
};

/* ---- the source ---- */

enum wfs_status wfs_source_read(const struct wfs_source *source, void *buf, size_t len, u64 off, struct wfs_error *err)
{
	size_t got;
	int sys_errno = wfs_pread_full(source->fd, buf, len, off, &got);

	if (sys_errno)
		return wfs_fail_io(err, sys_errno, "cannot read the source");
	if (got < len)
		return wfs_fail(err, WFS_CHANGED, "the source became shorter while it was read");
	return WFS_OK;
}

enum wfs_status wfs_source_go_on(const struct wfs_source *source, struct wfs_error *err)
{
	if (source->progress && source->progress(source->ctx, 0, 0))
		return wfs_fail(err, WFS_CANCELLED, "cancelled");
	return WFS_OK;
}

/* ---- spans ---- */

bool wfs_spans_push(struct wfs_spans *spans, const struct wfs_span *span)
{
	if (spans->nr == spans->room) {
		size_t room = WFS_MAX((size_t)64, spans->room * 2);
		struct wfs_span *grown = realloc(spans->span, room * sizeof(*grown));

		if (!grown)
			return false;
		spans->span = grown;
		spans->room = room;
	}
	spans->span[spans->nr++] = *span;
	return true;
}

void wfs_spans_free(struct wfs_spans *spans)
{
	free(spans->span);
	*spans = (struct wfs_spans){0};
}

static bool push_gap(struct wfs_spans *spans, u64 off, u64 end)
{
	struct wfs_span gap = {.off = off, .len = end - off, .kind = WFS_REGION_CODED};

	return off == end || wfs_spans_push(spans, &gap);
}

static bool spans_from_tensors(struct wfs_spans *spans, const struct wfs_tensors *tensors, u64 raw_len)
{
	u64 at = 0;

	for (size_t i = 0; i < tensors->nr; i++) {
		const struct wfs_tensor *t = &tensors->tensor[i];
		u64 end = t->raw_off + t->raw_len, start = WFS_MAX(at, t->raw_off);
		enum wfs_class class = wfs_class_of_dtype(t->dtype);
		struct wfs_span span = {
			.off = start,
			.len = end - start,
			.kind = WFS_REGION_CODED,
			.class = (u8) class,
			.phase = (u8)((start - t->raw_off) % wfs_class_step(class)),
			.tensor = start == t->raw_off,
		};

		if (end <= at || t->raw_off > raw_len || t->raw_len > raw_len - t->raw_off)
			continue;
		if (!push_gap(spans, at, start) || !wfs_spans_push(spans, &span))
			return false;
		at = end;
	}
	return push_gap(spans, at, raw_len);
}

static enum wfs_status scan_pread(void *ctx, void *buf, size_t len, uint64_t off)
{
	return wfs_source_read(ctx, buf, len, off, NULL);
}

/* The spans of a file, and its matrices. */
static enum wfs_status spans_from_file(struct wfs_spans *spans, struct wfs_geometry *geometry,
				       const struct wfs_source *source, struct wfs_error *err)
{
	struct wfs_tensors none = {0}, *tensors = NULL;
	struct wfs_source ctx = *source;
	struct wfs_error scan_error;
	enum wfs_status status = wfs_safetensors_scan(scan_pread, &ctx, source->raw_len, &tensors, &scan_error);

	if (status != WFS_OK && status != WFS_NOT_CONTAINER) {
		if (err)
			*err = scan_error;
		return status;
	}
	status = WFS_OK;
	if (!spans_from_tensors(spans, tensors ? tensors : &none, source->raw_len) ||
	    !wfs_geometry_make(tensors ? tensors : &none, source->raw_len, geometry))
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	wfs_tensors_free(tensors);
	return status;
}

/* ---- joining ---- */

/* Whether b's words go on where a's (long enough) left off; `between` bytes lie between them. */
static bool words_go_on(const struct wfs_span *a, const struct wfs_span *b, u64 between)
{
	unsigned word = wfs_class_step(a->class);

	return a->class == b->class && a->grid == b->grid && (a->phase + a->len + between) % word == b->phase;
}

static u64 rotate_right(u64 v, unsigned bits)
{
	return bits ? v >> bits | v << (64 - bits) : v;
}

static bool joins(const struct wfs_span *a, const struct wfs_span *b)
{
	if (a->kind != b->kind || a->kind == WFS_REGION_COPY)
		return false;
	if (a->kind == WFS_REGION_CONSTANT)
		return b->arg == rotate_right(a->arg, 8 * (a->len % 8));
	return a->pool == b->pool && words_go_on(a, b, 0);
}

/* Joins neighbours that are alike, in place. */
static void spans_join(struct wfs_spans *spans)
{
	size_t out = 0;

	for (size_t i = 0; i < spans->nr; i++) {
		struct wfs_span *last = out ? &spans->span[out - 1] : NULL;

		if (last && joins(last, &spans->span[i]))
			last->len += spans->span[i].len;
		else
			spans->span[out++] = spans->span[i];
	}
	spans->nr = out;
}

static bool is_small(const struct wfs_span *s)
{
	return s->kind == WFS_REGION_CODED && s->len <= ABSORB_BYTES;
}

/* Takes small strangers into the words around them, or leaves all of a group of them to LZ4, in place. Without this a
 * file of 100,000 matrices with a few bytes between each two would have 200,000 regions. */
static void spans_absorb(struct wfs_spans *spans)
{
	struct wfs_span *s = spans->span;
	size_t out = 0, next;

	for (size_t i = 0; i < spans->nr; i = next) {
		u64 small_len = 0;

		for (next = i; next < spans->nr && is_small(&s[next]); next++)
			small_len += s[next].len;
		if (next == i) {
			s[out++] = s[next++];
		} else if (small_len <= ABSORB_BYTES && out && next < spans->nr &&
			   s[out - 1].kind == WFS_REGION_CODED && s[next].kind == WFS_REGION_CODED &&
			   words_go_on(&s[out - 1], &s[next], small_len)) {
			s[out - 1].len += small_len + s[next++].len;
		} else {
			s[out] = s[i];
			s[out].len = small_len;
			s[out].class = WFS_CLASS_NONE;
			s[out].grid = 0;
			s[out++].phase = 0;
		}
	}
	spans->nr = out;
}

/* ---- the plan ---- */

u64 wfs_plan_region_at(const struct wfs_plan *plan, u64 raw_off)
{
	u64 low = 0, high = plan->nr_regions;

	while (high - low > 1) {
		u64 mid = low + (high - low) / 2;

		if (plan->region[mid].start <= raw_off)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* grid_groups: number of the first grid's group. */
static bool plan_set_regions(struct wfs_plan *plan, const struct wfs_spans *spans, u32 grid_groups)
{
	plan->nr_regions = spans->nr;
	plan->region = calloc(spans->nr + 1, sizeof(*plan->region));
	plan->first_block = calloc(spans->nr + 1, sizeof(*plan->first_block));
	plan->region_group = calloc(spans->nr + 1, sizeof(*plan->region_group));
	if (!plan->region || !plan->first_block || !plan->region_group)
		return false;
	for (size_t i = 0; i < spans->nr; i++) {
		const struct wfs_span *s = &spans->span[i];
		bool coded = s->kind == WFS_REGION_CODED;
		u32 group = !coded || !s->class ? 0 : s->grid ? grid_groups + s->grid - 1 : 1 + s->pool;

		plan->region_group[i] = group;
		plan->region[i] = (struct wfs_disk_region){
			.start = s->off,
			.len = s->len,
			.kind = s->kind,
			.phase = coded ? s->phase : 0,
			.coder = !coded	 ? 0
				 : group ? plan->group[group].coder[0]
					 : WFS_CODER_LZ4,
			.arg = s->arg,
		};
		plan->first_block[i] = plan->nr_blocks;
		if (coded)
			plan->nr_blocks +=
				((s->off + s->len - 1) >> plan->block_log2) - (s->off >> plan->block_log2) + 1;
	}
	plan->first_block[spans->nr] = plan->nr_blocks;
	return true;
}

static u16 add_coder(struct wfs_plan *plan, struct wfs_coder coder)
{
	plan->coder[plan->nr_coders] = coder;
	return (u16)plan->nr_coders++;
}

/* Their numbers; take the encode pools over. */
static u16 add_pool(struct wfs_plan *plan, const struct wfs_pool *pool, struct wfs_encode_pool **encode_pool)
{
	plan->pool[plan->nr_pools] = *pool;
	plan->encode_pool[plan->nr_pools] = *encode_pool;
	*encode_pool = NULL;
	return (u16)plan->nr_pools++;
}

static u16 add_wide_pool(struct wfs_plan *plan, const struct wfs_wide_pool *pool,
			 struct wfs_wide_encode_pool **encode_pool)
{
	plan->wide_pool[plan->nr_wide_pools] = *pool;
	plan->wide_encode_pool[plan->nr_wide_pools] = *encode_pool;
	*encode_pool = NULL;
	return (u16)plan->nr_wide_pools++;
}

static u16 add_plain_coder(struct wfs_plan *plan, struct wfs_pool_plan *p)
{
	struct wfs_coder coder = wfs_pool_coder(p);

	coder.pool = p->wide ? add_wide_pool(plan, &p->wide_pool, &p->wide_encode_pool)
			     : add_pool(plan, &p->pool, &p->encode_pool);
	return add_coder(plan, coder);
}

static u16 add_grid_coder(struct wfs_plan *plan, struct wfs_planned_grid *p)
{
	struct wfs_coder coder = {.coding = p->wide ? WFS_GRID_WIDE : WFS_GRID,
				  .word = (u8)wfs_grid_word_bytes(p->grid.output),
				  .rot = p->split.rot,
				  .field = p->split.field,
				  .grid = (u16)plan->nr_grids};

	plan->grid[plan->nr_grids] = p->grid;
	plan->grid_encoder[plan->nr_grids++] = p->encoder;
	coder.pool = p->wide ? add_wide_pool(plan, &p->wide_pool, &p->wide_encode_pool)
			     : add_pool(plan, &p->pool, &p->encode_pool);
	return add_coder(plan, coder);
}

/* Groups, coders and pools from the pools made: group 1 + i is pool plan i's, those behind them are the grids'. Blocks
 * that are not on their grid get the first pool of their class. */
static bool plan_set_coders(struct wfs_plan *plan, struct wfs_pools *pools, struct wfs_grids *grids)
{
	const size_t nr = 1 + (size_t)pools->nr + grids->nr;

	plan->group = calloc(nr, sizeof(*plan->group));
	plan->coder = calloc(WFS_NR_FIXED_CODERS + nr * WFS_GROUP_CODERS, sizeof(*plan->coder));
	plan->pool = calloc(nr, sizeof(*plan->pool));
	plan->encode_pool = calloc(nr, sizeof(struct wfs_encode_pool *));
	plan->wide_pool = calloc(nr, sizeof(*plan->wide_pool));
	plan->wide_encode_pool = calloc(nr, sizeof(struct wfs_wide_encode_pool *));
	plan->grid = calloc(grids->nr + 1, sizeof(*plan->grid));
	plan->grid_encoder = calloc(grids->nr + 1, sizeof(*plan->grid_encoder));
	if (!plan->group || !plan->coder || !plan->pool || !plan->encode_pool || !plan->wide_pool ||
	    !plan->wide_encode_pool || !plan->grid || !plan->grid_encoder)
		return false;
	plan->coder[WFS_CODER_STORED] = (struct wfs_coder){.coding = WFS_STORED, .word = 1};
	plan->coder[WFS_CODER_LZ4] = (struct wfs_coder){.coding = WFS_LZ4, .word = 1};
	plan->coder[WFS_CODER_CONSTANT] = (struct wfs_coder){.coding = WFS_CONSTANT, .word = 8};
	plan->nr_coders = WFS_NR_FIXED_CODERS;
	plan->nr_groups = (u32)nr;
	for (u32 i = 0; i < pools->nr; i++) {
		struct wfs_group *group = &plan->group[1 + i];

		group->coder[group->nr_coders++] = add_plain_coder(plan, &pools->plan[i]);
	}
	for (u32 i = 0; i < grids->nr; i++) {
		struct wfs_group *group = &plan->group[1 + pools->nr + i];
		u32 plain = 0;

		group->coder[group->nr_coders++] = add_grid_coder(plan, &grids->plan[i]);
		while (plain < pools->nr && pools->plan[plain].class != grids->plan[i].class)
			plain++;
		if (plain < pools->nr)
			group->coder[group->nr_coders++] = plan->group[1 + plain].coder[0];
	}
	return true;
}

/* More regions than a container can have (a header of millions of tensors, none like its neighbour): one region. More
 * repeats: the rest of them is coded like bytes of no kind. */
static bool spans_limit(struct wfs_spans *spans, u64 raw_len)
{
	size_t nr_repeats = 0;

	for (size_t i = 0; i < spans->nr; i++) {
		struct wfs_span *s = &spans->span[i];

		if (s->kind != WFS_REGION_CODED && ++nr_repeats > WFS_MAX_REPEATS)
			*s = (struct wfs_span){.off = s->off, .len = s->len, .kind = WFS_REGION_CODED};
	}
	if (nr_repeats > WFS_MAX_REPEATS)
		spans_join(spans);
	if (spans->nr <= WFS_MAX_REGIONS / 2)
		return true;
	spans->nr = 0;
	return push_gap(spans, 0, raw_len);
}

enum wfs_status wfs_plan_new(const struct wfs_source *source, const struct wfs_encode_opts *opts,
			     struct wfs_plan **plan_ret, struct wfs_error *err)
{
	struct wfs_spans spans = {0};
	struct wfs_plan *plan = calloc(1, sizeof(*plan));
	struct wfs_geometry *geometry = plan ? &plan->geometry : NULL;
	struct wfs_grids grids = {.source = source, .opts = opts, .geometry = geometry, .spans = &spans};
	struct wfs_pools pools = {
		.source = source, .opts = opts, .geometry = geometry, .grids = &grids, .spans = &spans};
	enum wfs_status status = plan ? WFS_OK : wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");

	if (status == WFS_OK)
		status = spans_from_file(&spans, &plan->geometry, source, err);
	if (status == WFS_OK)
		status = wfs_spans_find_copies(source, &spans, err);
	if (status == WFS_OK)
		status = wfs_spans_find_constants(source, &spans, err);
	if (status == WFS_OK)
		status = wfs_grids_find(&grids, err);
	if (status != WFS_OK)
		goto out;
	spans_join(&spans);
	status = wfs_spans_sniff(source, wfs_thread_count(opts->nr_threads), &spans, err);
	if (status != WFS_OK)
		goto out;
	spans_absorb(&spans);
	spans_join(&spans);
	if (!spans_limit(&spans, source->raw_len)) {
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
		goto out;
	}
	status = wfs_grids_train(&grids, err);
	if (status == WFS_OK)
		status = wfs_pools_make(&pools, err);
	if (status != WFS_OK)
		goto out;
	spans_join(&spans); /* those of pools that did not pay */
	plan->level = opts->level;
	plan->raw_len = source->raw_len;
	plan->block_log2 = opts->block_log2;
	if (plan_set_coders(plan, &pools, &grids) && plan_set_regions(plan, &spans, 1 + pools.nr)) {
		*plan_ret = plan;
		plan = NULL;
	} else {
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	}
out:
	wfs_plan_free(plan);
	wfs_pools_free(&pools);
	wfs_grids_free(&grids);
	wfs_spans_free(&spans);
	return status;
}

void wfs_plan_free(struct wfs_plan *plan)
{
	if (!plan)
		return;
	for (u32 i = 0; i < plan->nr_pools; i++)
		wfs_encode_pool_free(plan->encode_pool[i]);
	for (u32 i = 0; i < plan->nr_wide_pools; i++)
		wfs_wide_encode_pool_free(plan->wide_encode_pool[i]);
	free(plan->grid_encoder);
	free(plan->grid);
	free(plan->wide_encode_pool);
	free(plan->wide_pool);
	free(plan->encode_pool);
	free(plan->pool);
	free(plan->coder);
	free(plan->group);
	free(plan->region_group);
	free(plan->first_block);
	free(plan->region);
	free(plan->geometry.matrix);
	free(plan);
}
