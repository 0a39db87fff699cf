/* plan_pools.c - which pools there are, which words each is trained from, and whether each pays.
 *
 * One pool serves about 256 MiB of one class, whatever regions these bytes lie in: measured on whole models, one pool
 * for 45 to 80 MB was better than one a tensor. A big file has at most MAX_POOLS_PER_CLASS of a class, so that the
 * tables ready for encoding stay small whatever the file's size.
 */
#include "parallel.h"
#include "plan_grids.h"

#include <fcntl.h>
#include <stdlib.h>

enum {
	POOL_BYTES = 256 << 20,
	MAX_POOLS_PER_CLASS = 64,
	CUT_ALIGN = WFS_MAX_BLOCK,   /* pools change where blocks are cut anyway */
	TRIAL_MAX_BYTES = 256 << 10, /* pools of less data have to prove themselves */
	PREFETCH_STEP = 128 << 10,
	SAMPLE_WORDS = 512,	   /* one is taken from each so many words, if the trainer takes them all */
	RECORDS_SAMPLE = 64 << 10, /* bytes of records that are taken together, so that parts are segments */
};

_Static_assert((WFS_NR_CLASSES - 1) * MAX_POOLS_PER_CLASS + WFS_MAX_PLANNED_GRIDS <= WFS_MAX_POOLS,
	       "readers accept every plan");
_Static_assert(WFS_MAX_WIDE_GRIDS + WFS_NR_CLASSES - 1 <= WFS_MAX_WIDE_POOLS, "each class gets a wide pool");

struct class_state {
	u64 total, part, done; /* bytes of the class; of each of its pools; so far */
	unsigned nr, current;  /* pools; the one that takes the next bytes */
	u32 pool;	       /* its number when open */
	bool open;
};

static enum wfs_status no_memory(struct wfs_error *err)
{
	return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the tables");
}

static void pool_free(struct wfs_pool_plan *p)
{
	wfs_encode_pool_free(p->encode_pool);
	wfs_wide_encode_pool_free(p->wide_encode_pool);
	p->encode_pool = NULL;
	p->wide_encode_pool = NULL;
}

struct wfs_coder wfs_pool_coder(const struct wfs_pool_plan *p)
{
	const struct wfs_records *records = wfs_class_records(p->class);
	struct wfs_coder coder = {
		.coding = records   ? WFS_RECORDS
			  : p->wide ? WFS_WIDE
				    : WFS_SPLIT,
		.word = (u8)wfs_class_step(p->class),
		.rot = p->split.rot,
		.field = p->split.field,
	};

	if (records)
		memcpy(coder.border, records->border, sizeof(coder.border));
	return coder;
}

/* Whether the wide coding serves a class: always where only bytes as a whole mean something, everything at level max.
 */
static bool is_wide(const struct wfs_pools *pools, unsigned class)
{
	return class >= WFS_CLASS_BYTES || (class != WFS_CLASS_NONE && pools->opts->level == WFS_LEVEL_MAX);
}

/* ---- assigning ---- */

static bool is_served(const struct wfs_pools *pools, const struct wfs_span *s)
{
	return s->class && (!s->grid || pools->serve_grids[s->class]);
}

/* Classes of which all words are on grids, but for some blocks. */
static void find_served(struct wfs_pools *pools)
{
	bool plain[WFS_NR_CLASSES] = {false};

	for (size_t i = 0; i < pools->spans->nr; i++)
		plain[pools->spans->span[i].class] |= !pools->spans->span[i].grid;
	for (u32 i = 0; i < pools->grids->nr; i++)
		if (pools->grids->plan[i].refuses && !plain[pools->grids->plan[i].class])
			pools->serve_grids[pools->grids->plan[i].class] = true;
}

static unsigned nr_wide_grids(const struct wfs_grids *grids)
{
	unsigned nr = 0;

	for (u32 i = 0; i < grids->nr; i++)
		nr += grids->plan[i].wide;
	return nr;
}

/* Appends len bytes of s from `from` on to the state's pool, opening it when these are its first. */
static bool assign(struct wfs_pools *pools, struct wfs_spans *out, struct class_state *c, const struct wfs_span *s,
		   u64 from, u64 len)
{
	struct wfs_span part = *s;
	struct wfs_pool_plan *p;

	part.off += from;
	part.len = len;
	part.phase = (u8)((s->phase + from) % wfs_class_step(s->class));
	if (!c->open) {
		c->pool = pools->nr++;
		pools->plan[c->pool] = (struct wfs_pool_plan){.class = s->class, .first_span = out->nr};
		c->open = true;
	}
	part.pool = c->pool;
	p = &pools->plan[c->pool];
	p->last_span = out->nr;
	p->data_len += len;
	return wfs_spans_push(out, &part);
}

static bool assign_span(struct wfs_pools *pools, struct wfs_spans *out, struct class_state *c, const struct wfs_span *s)
{
	u64 from = 0;

	while (c->current + 1 < c->nr && c->done + (s->len - from) > (c->current + 1) * c->part) {
		u64 border = s->off + from + ((c->current + 1) * c->part - c->done);
		u64 cut = border / CUT_ALIGN * CUT_ALIGN;

		if (cut > s->off + from) {
			u64 len = cut - (s->off + from);

			if (!assign(pools, out, c, s, from, len))
				return false;
			from += len;
			c->done += len;
		}
		c->current++;
		c->open = false;
	}
	c->done += s->len - from;
	return assign(pools, out, c, s, from, s->len - from);
}

static enum wfs_status assign_all(struct wfs_pools *pools, struct wfs_error *err)
{
	struct class_state class[WFS_NR_CLASSES] = {0};
	struct wfs_spans out = {0};
	const unsigned most_wide = WFS_MAX_WIDE_POOLS - nr_wide_grids(pools->grids);
	unsigned nr = 0, nr_wide = 0;
	bool good = true;

	for (size_t i = 0; i < pools->spans->nr; i++)
		if (is_served(pools, &pools->spans->span[i]))
			class[pools->spans->span[i].class].total += pools->spans->span[i].len;
	for (unsigned k = WFS_CLASS_NONE + 1; k < WFS_NR_CLASSES; k++)
		nr_wide += is_wide(pools, k) && class[k].total;
	nr_wide = WFS_MAX(nr_wide, 1u);
	for (unsigned k = WFS_CLASS_NONE + 1; k < WFS_NR_CLASSES; k++) {
		u64 wanted = (class[k].total + POOL_BYTES / 2) / POOL_BYTES;
		u64 most = is_wide(pools, k) ? most_wide / nr_wide : MAX_POOLS_PER_CLASS;

		class[k].nr = (unsigned)WFS_MIN(WFS_MAX(wanted, 1), most);
		class[k].part = WFS_CEIL_DIV(class[k].total, (u64) class[k].nr);
		nr += class[k].nr;
	}
	pools->plan = calloc(nr, sizeof(*pools->plan));
	good = pools->plan != NULL;
	for (size_t i = 0; i < pools->spans->nr && good; i++) {
		struct wfs_span *s = &pools->spans->span[i];

		s->pool = WFS_NO_POOL;
		good = is_served(pools, s) ? assign_span(pools, &out, &class[s->class], s) : wfs_spans_push(&out, s);
	}
	if (good) {
		struct wfs_spans old = *pools->spans;

		*pools->spans = out;
		out = old;
	}
	wfs_spans_free(&out);
	return good ? WFS_OK : no_memory(err);
}

/* ---- training ---- */

static bool serves(const struct wfs_pools *pools, const struct wfs_pool_plan *p, const struct wfs_span *s)
{
	return s->class == p->class && s->pool == (u32)(p - pools->plan);
}

/* Whole words or records. */
static u64 span_words(const struct wfs_span *s)
{
	unsigned word = wfs_class_step(s->class), head = (word - s->phase) % word;

	return s->len > head ? (s->len - head) / word : 0;
}

/* Words or records that a sample stands for. */
static u64 sample_step(enum wfs_class class)
{
	return wfs_class_records(class) ? RECORDS_SAMPLE / wfs_class_step(class) : SAMPLE_WORDS;
}

/* Samples that a trainer takes. */
static u64 samples_wanted(enum wfs_class class)
{
	/* Each part of records has segments of its own, the last one short. */
	const unsigned segments = RECORDS_SAMPLE / wfs_wide_segment_words(0) + WFS_MAX_BORDERS + 1;

	return wfs_class_records(class) ? WFS_WIDE_TRAIN_SEGMENTS / segments : WFS_TRAIN_SAMPLES;
}

/* Words that a sample wants, and where it starts: at or before `at`, not before `start`. */
struct sample_place {
	u64 at;
	unsigned nr_words;
};

/* For the split coding: where a segment of a block will begin. Blocks are cut at multiples of their size in the file,
 * wherever rows begin. */
static struct sample_place split_sample(const struct wfs_trainer *trainer, unsigned word, u64 start, u64 at)
{
	unsigned wanted = wfs_trainer_wanted(trainer);
	u64 back = (at - at % word) % ((u64)wanted * word);

	return (struct sample_place){at - WFS_MIN(back, at - start), wanted};
}

/* For the wide coding: a segment along the rows of the matrix that lies there. */
static struct sample_place wide_sample(const struct wfs_geometry *geometry, unsigned word, u64 start, u64 at)
{
	const struct wfs_matrix *m = &geometry->matrix[wfs_geometry_find(geometry, at)];
	bool inside = m < geometry->matrix + geometry->nr && m->raw_off <= at && m->word == word;
	unsigned wanted = wfs_wide_segment_words(inside ? m->cols : 0);
	u64 back = inside ? (at - m->raw_off) % ((u64)wanted * word) : 0;

	return (struct sample_place){at - WFS_MIN(back, at - start) / word * word, wanted};
}

/* Of one of them. */
struct trainers {
	struct wfs_trainer *split;
	struct wfs_wide_trainer *wide;
};

/* Sample number index of a span of records: what the segments of a block are like. */
static enum wfs_status add_records(const struct wfs_pools *pools, struct wfs_wide_trainer *trainer,
				   const struct wfs_span *s, u64 index, struct wfs_error *err)
{
	const struct wfs_records *r = wfs_class_records(s->class);
	const u64 first = index * sample_step(s->class),
		  at = s->off + (r->bytes - s->phase) % r->bytes + first * r->bytes;
	const size_t nr = (size_t)WFS_MIN(span_words(s) - first, sample_step(s->class));
	u8 raw[RECORDS_SAMPLE], part[RECORDS_SAMPLE];
	struct wfs_wide_groups groups;
	enum wfs_status status = wfs_source_read(pools->source, raw, nr * r->bytes, at, err);

	if (status != WFS_OK)
		return status;
	wfs_records_gather(r, raw, nr, part);
	wfs_records_groups(r, nr, &groups);
	for (unsigned g = 0; g < groups.nr; g++) {
		const size_t end = g + 1 < groups.nr ? groups.group[g + 1].first : nr * r->bytes;

		for (size_t k = groups.group[g].first, len; k < end; k += len) {
			len = WFS_MIN(end - k, (size_t)groups.group[g].seg_len);
			wfs_wide_trainer_add(trainer, part + k, len);
		}
	}
	return WFS_OK;
}

/* Sample number index of a span of words. */
static enum wfs_status add_sample(const struct wfs_pools *pools, struct trainers *trainers, const struct wfs_span *s,
				  u64 index, struct wfs_error *err)
{
	const unsigned word = wfs_class_split(s->class).word;
	const u64 start = s->off + (word - s->phase) % word, at = start + index * SAMPLE_WORDS * word;
	struct sample_place place = trainers->wide ? wide_sample(pools->geometry, word, start, at)
						   : split_sample(trainers->split, word, start, at);
	u64 nr = WFS_MIN(span_words(s) - (place.at - start) / word, (u64)place.nr_words);
	u8 raw[WFS_MAX((int)WFS_TRAIN_WORDS, (int)WFS_WIDE_TRAIN_WORDS) * 8];
	enum wfs_status status = wfs_source_read(pools->source, raw, (size_t)(nr * word), place.at, err);

	if (status == WFS_OK && trainers->wide)
		wfs_wide_trainer_add(trainers->wide, raw, (size_t)nr);
	else if (status == WFS_OK)
		wfs_trainer_add(trainers->split, raw, (size_t)nr);
	return status;
}

/* Ask for a span's bytes in order before samples of it are read here and there: one sequential pass instead of
 * thousands of round trips to a slow or distant disk, and encoding finds them in the page cache. The kernel reads only
 * so much a request. A hint: its failure changes nothing. */
static void prefetch(const struct wfs_source *source, const struct wfs_span *s)
{
	for (u64 at = 0; at < s->len; at += PREFETCH_STEP)
		(void)posix_fadvise(source->fd, (off_t)(s->off + at), (off_t)WFS_MIN((u64)PREFETCH_STEP, s->len - at),
				    POSIX_FADV_WILLNEED);
}

/* Adds samples spread evenly over all data of the pool, as many as the trainer takes. */
static enum wfs_status add_samples(const struct wfs_pools *pools, const struct wfs_pool_plan *p,
				   struct trainers *trainers, struct wfs_error *err)
{
	u64 total = 0, before = 0, wanted, k = 0;
	enum wfs_status status = WFS_OK;

	for (size_t i = p->first_span; i <= p->last_span; i++)
		if (serves(pools, p, &pools->spans->span[i])) {
			total += WFS_CEIL_DIV(span_words(&pools->spans->span[i]), sample_step(p->class));
			prefetch(pools->source, &pools->spans->span[i]);
		}
	wanted = WFS_MIN(total, samples_wanted(p->class));
	for (size_t i = p->first_span; i <= p->last_span; i++) {
		const struct wfs_span *s = &pools->spans->span[i];
		u64 nr = WFS_CEIL_DIV(span_words(s), sample_step(p->class));

		if (!serves(pools, p, s))
			continue;
		/* Sample k of the pool is number k * total / wanted of all; total * 6,000 fits 64 bits up to 2^62
		 * bytes. */
		for (; k < wanted && k * total / wanted < before + nr && status == WFS_OK; k++)
			status = wfs_class_records(p->class)
					 ? add_records(pools, trainers->wide, s, k * total / wanted - before, err)
					 : add_sample(pools, trainers, s, k * total / wanted - before, err);
		before += nr;
	}
	return status;
}

/* ---- does it pay? ---- */

/* Bytes that the pool saves on the blocks of one span against LZ4 or storing them. buf holds three blocks. */
static enum wfs_status span_gain(const struct wfs_pools *pools, const struct wfs_pool_plan *p, const struct wfs_span *s,
				 u8 *buf, struct wfs_encode_scratch *scratch, u64 *gain, struct wfs_error *err)
{
	const struct wfs_coder lz4 = {.coding = WFS_LZ4, .word = 1};
	const struct wfs_coder coder = wfs_pool_coder(p);
	const struct wfs_encode_tables tables = {.split = p->encode_pool, .wide = p->wide_encode_pool};
	u64 block = (u64)1 << pools->opts->block_log2, len;
	struct wfs_place place;

	for (u64 at = s->off; at < s->off + s->len; at += len) {
		enum wfs_status status;
		size_t plain, coded;

		len = WFS_MIN((at / block + 1) * block, s->off + s->len) - at;
		status = wfs_source_read(pools->source, buf, (size_t)len, at, err);
		if (status != WFS_OK)
			return status;
		place = (struct wfs_place){
			.raw_off = at, .phase = s->phase + (at - s->off), .geometry = pools->geometry};
		plain = wfs_payload_encode(&lz4, &tables, pools->opts->cpu, &place, buf, (size_t)len, buf + block,
					   scratch);
		coded = wfs_payload_encode(&coder, &tables, pools->opts->cpu, &place, buf, (size_t)len, buf + block,
					   scratch);
		*gain += coded < plain ? plain - coded : 0;
	}
	return WFS_OK;
}

static enum wfs_status try_pool(const struct wfs_pools *pools, struct wfs_pool_plan *p, struct wfs_error *err)
{
	struct wfs_encode_scratch *scratch = wfs_encode_scratch_new();
	u8 *buf = malloc((size_t)2 << pools->opts->block_log2),
	   bytes[WFS_MAX((int)WFS_POOL_MAX_BYTES, (int)WFS_WIDE_POOL_MAX_BYTES)];
	enum wfs_status status = scratch && buf ? WFS_OK : no_memory(err);
	u64 gain = 0, cost = sizeof(struct wfs_disk_coder);

	for (size_t i = p->first_span; i <= p->last_span && status == WFS_OK; i++)
		if (serves(pools, p, &pools->spans->span[i]))
			status = span_gain(pools, p, &pools->spans->span[i], buf, scratch, &gain, err);
	cost += p->wide ? wfs_wide_pool_write(&p->wide_pool, bytes) : wfs_pool_write(&p->pool, bytes);
	p->pays = gain > 2 * cost; /* the metadata is stored twice */
	free(buf);
	wfs_encode_scratch_free(scratch);
	return status;
}

static enum wfs_status train_split(const struct wfs_pools *pools, struct wfs_pool_plan *p, struct wfs_error *err)
{
	/* Long segments are quickly given their tables. */
	const unsigned min_seg_log2 = pools->opts->level == WFS_LEVEL_FAST ? 11 : 9;
	struct trainers trainers = {.split = wfs_trainer_new(p->split)};
	enum wfs_status status = trainers.split ? add_samples(pools, p, &trainers, err) : no_memory(err);

	if (status == WFS_OK && wfs_trainer_finish(trainers.split, min_seg_log2, &p->pool) != WFS_OK)
		status = no_memory(err);
	wfs_trainer_free(trainers.split);
	if (status != WFS_OK)
		return status;
	p->encode_pool = wfs_encode_pool_new(&p->pool, p->split);
	return p->encode_pool ? WFS_OK : no_memory(err);
}

static enum wfs_status train_wide(const struct wfs_pools *pools, struct wfs_pool_plan *p, struct wfs_error *err)
{
	struct trainers trainers = {.wide = wfs_wide_trainer_new(p->split, p->data_len / p->split.word)};
	enum wfs_status status = trainers.wide ? add_samples(pools, p, &trainers, err) : no_memory(err);

	if (status == WFS_OK && wfs_wide_trainer_finish(trainers.wide, &p->wide_pool, &p->split) != WFS_OK)
		status = no_memory(err);
	wfs_wide_trainer_free(trainers.wide);
	if (status != WFS_OK)
		return status;
	p->wide_encode_pool = wfs_wide_encode_pool_new(&p->wide_pool, p->split);
	return p->wide_encode_pool ? WFS_OK : no_memory(err);
}

static void make_pool(void *ctx, size_t index)
{
	const struct wfs_pools *pools = ctx;
	struct wfs_pool_plan *p = &pools->plan[index];

	p->split = wfs_class_split(p->class);
	p->wide = is_wide(pools, p->class);
	p->pays = true;
	p->status = p->wide ? train_wide(pools, p, &p->error) : train_split(pools, p, &p->error);
	if (p->status == WFS_OK && p->data_len < TRIAL_MAX_BYTES)
		p->status = try_pool(pools, p, &p->error);
}

enum wfs_status wfs_pools_make(struct wfs_pools *pools, struct wfs_error *err)
{
	enum wfs_status status;
	u32 *number = NULL, nr = 0;

	find_served(pools);
	status = assign_all(pools, err);
	if (status != WFS_OK || !pools->nr)
		return status;
	wfs_parallel_for(wfs_thread_count(pools->opts->nr_threads), pools->nr, make_pool, pools);
	number = calloc(pools->nr, sizeof(*number));
	if (!number)
		return no_memory(err);
	for (u32 i = 0; i < pools->nr && status == WFS_OK; i++) {
		status = pools->plan[i].status;
		if (status != WFS_OK && err)
			*err = pools->plan[i].error;
		if (pools->plan[i].pays)
			number[i] = nr++;
	}
	for (size_t i = 0; i < pools->spans->nr && status == WFS_OK; i++) {
		struct wfs_span *s = &pools->spans->span[i];

		if (s->pool == WFS_NO_POOL)
			continue;
		if (pools->plan[s->pool].pays) {
			s->pool = number[s->pool];
			continue;
		}
		s->pool = WFS_NO_POOL;
		if (!s->grid) {
			s->class = WFS_CLASS_NONE;
			s->phase = 0;
		}
	}
	/* Close the gaps; what does not pay is freed at the end of the list. */
	for (u32 i = 0; i < pools->nr && status == WFS_OK; i++) {
		if (pools->plan[i].pays && number[i] != i) {
			struct wfs_pool_plan moved = pools->plan[i];

			pools->plan[i] = pools->plan[number[i]];
			pools->plan[number[i]] = moved;
		}
	}
	if (status == WFS_OK) {
		for (u32 i = nr; i < pools->nr; i++)
			pool_free(&pools->plan[i]);
		pools->nr = nr;
	}
	free(number);
	return status;
}

void wfs_pools_free(struct wfs_pools *pools)
{
	for (u32 i = 0; pools->plan && i < pools->nr; i++)
		pool_free(&pools->plan[i]);
	free(pools->plan);
}
