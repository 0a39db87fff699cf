/* wide_train.c - trains a wide pool: k-means of segments where distance is coding cost, as in train.c; how many bits
 * the field has and how many tables there are is found by trying. Integer arithmetic and total orders only, so that the
 * same segments give the same pool on every machine.
 *
 * Histograms are kept for the widest field; those of narrower fields are sums of neighbours. Up to 8 chunks of 32 names
 * bound the work for whatever data: 0.3 s for 6,000 segments.
 */
#include "wide_train.h"

#include <stdlib.h>

enum {
	MORE_FIELD = 3, /* bits beyond the base's field that are tried */
	MAX_CHUNKS = WFS_FIELD_VALUES / WFS_COST_CHUNK,
	TRIAL_ROUNDS = 3, /* to compare fields */
	TABLE_ROUNDS = 8,
	COPIES = 2, /* of the pools in a container */
};

/* A pool and what all segments cost with it, in 1 / WFS_COST_UNIT bit. */
struct trained {
	struct wfs_wide_pool pool;
	struct wfs_split s;
	u64 cost;
};

struct wfs_wide_trainer *wfs_wide_trainer_new(struct wfs_split base, u64 nr_words)
{
	const size_t bytes = WFS_CEIL_DIV(sizeof(struct wfs_wide_trainer), (size_t)64) * 64;
	struct wfs_wide_trainer *t = aligned_alloc(64, bytes);
	unsigned field = WFS_MIN(base.field + MORE_FIELD, WFS_MIN(8 * base.word - 1, WFS_MAX_FIELD));

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->base = base;
	t->nr_all_words = nr_words;
	t->widest = wfs_split_make(base.word, base.rot, base.word == 1 ? 8 : field);
	return t;
}

void wfs_wide_trainer_free(struct wfs_wide_trainer *t)
{
	if (!t)
		return;
	free(t->chunk);
	free(t->segment);
	free(t);
}

static bool chunks_reserve(struct wfs_wide_trainer *t)
{
	const size_t need = (size_t)t->first[t->nr_segs] + MAX_CHUNKS;

	if (need <= t->chunk_room)
		return true;
	const size_t room = need + need / 2;
	struct wfs_wide_chunk *grown = realloc(t->chunk, room * sizeof(*grown));

	if (!grown)
		return false;
	t->chunk = grown;
	t->chunk_room = room;
	return true;
}

void wfs_wide_trainer_add(struct wfs_wide_trainer *t, const u8 *raw, size_t nr_words)
{
	const u32 nr_chunks = WFS_CEIL_DIV(1u << t->widest.field, (u32)WFS_COST_CHUNK);

	if (!nr_words || nr_words > WFS_WIDE_TRAIN_WORDS || t->nr_segs == WFS_WIDE_TRAIN_SEGMENTS || t->no_memory)
		return;
	if (!chunks_reserve(t)) {
		t->no_memory = true;
		return;
	}
	wfs_encode_fields_scalar(t->widest, raw, nr_words, t->field);
	memset(t->hist, 0, nr_chunks * WFS_COST_CHUNK * sizeof(t->hist[0]));
	for (size_t i = 0; i < nr_words; i++)
		t->hist[t->field[i]]++;
	u32 last = t->first[t->nr_segs];
	for (u32 c = 0; c < nr_chunks; c++) {
		const u16 *count = t->hist + c * WFS_COST_CHUNK;
		u32 any = 0;

		for (unsigned i = 0; i < WFS_COST_CHUNK; i++)
			any |= count[i];
		if (!any)
			continue;
		memcpy(t->chunk[last].count, count, sizeof(t->chunk[last].count));
		t->chunk[last++].at = (u16)c;
	}
	t->first[++t->nr_segs] = last;
	t->nr_words += nr_words;
}

/* ---- fields ---- */

/* A value of the widest field in the field that is tried. */
static unsigned value_in(const struct wfs_wide_trainer *t, unsigned value)
{
	/* Whole bytes are not rotated. */
	if (t->s.field == 8 * t->s.word)
		return t->widest.rot ? (value >> 1 | value << 7) & 255 : value;
	return value >> (t->widest.field - t->s.field);
}

/* The 255 values one after another, modulo their number, that are the most words. */
static unsigned window_find(const u64 *total, unsigned nr_values)
{
	u64 inside = 0, most;
	unsigned best = 0;

	if (nr_values <= WFS_WIDE_ESCAPE)
		return 0;
	for (unsigned v = 0; v < WFS_WIDE_ESCAPE; v++)
		inside += total[v];
	most = inside;
	for (unsigned v = 1; v < nr_values; v++) {
		inside += total[(v + WFS_WIDE_ESCAPE - 1) % nr_values] - total[v - 1];
		if (inside > most) {
			most = inside;
			best = v;
		}
	}
	return best;
}

/* Go on with a field of s: all segments' names. Clusters stay. */
static void field_try(struct wfs_wide_trainer *t, struct wfs_split s)
{
	const unsigned nr_values = 1u << s.field;

	t->s = s;
	memset(t->total, 0, sizeof(t->total));
	for (u32 c = 0; c < t->first[t->nr_segs]; c++)
		for (unsigned i = 0; i < WFS_COST_CHUNK; i++)
			if (t->chunk[c].count[i])
				t->total[value_in(t, t->chunk[c].at * WFS_COST_CHUNK + i)] += t->chunk[c].count[i];
	t->base_value = window_find(t->total, nr_values);
	for (u32 i = 0; i < t->nr_segs; i++) {
		struct wfs_wide_segment *seg = &t->segment[i];

		memset(seg->count, 0, sizeof(seg->count));
		seg->chunks = 0;
		for (u32 c = t->first[i]; c < t->first[i + 1]; c++)
			for (unsigned k = 0; k < WFS_COST_CHUNK; k++) {
				const unsigned value = value_in(t, t->chunk[c].at * WFS_COST_CHUNK + k);
				const unsigned name = (value - t->base_value) & (nr_values - 1);
				const unsigned in = WFS_MIN(name, (unsigned)WFS_WIDE_ESCAPE);

				if (!t->chunk[c].count[k])
					continue;
				seg->count[in] = (u16)(seg->count[in] + t->chunk[c].count[k]);
				seg->chunks |= (u8)(1 << in / WFS_COST_CHUNK);
			}
	}
}

/* ---- tables ---- */

/* How many words are escapes of each value, with the pool's tables. lacked: values that some table does not name. */
static void escapes_count(const struct wfs_wide_trainer *t, const struct wfs_wide_pool *pool, u64 *escapes,
			  bool *lacked)
{
	const unsigned nr_values = 1u << pool->field;

	for (unsigned v = 0; v < nr_values; v++) {
		const unsigned name = (v - pool->base) & (nr_values - 1);

		lacked[v] = !v; /* zeros are met sooner or later */
		escapes[v] = name >= WFS_WIDE_ESCAPE ? t->total[v] : 0;
		for (unsigned k = 0; name < WFS_WIDE_ESCAPE && k < pool->nr_tables; k++)
			if (!pool->freq[k][name]) {
				escapes[v] += t->sum[k][name];
				lacked[v] = true;
			}
	}
}

/* The tail of a pool: the values that are escapes most often, then, if there are words that were not seen, those that
 * may become escapes there, equals by value. Returns the bits of literals among the values that no table names. */
static u64 tail_make(const struct wfs_wide_trainer *t, struct wfs_wide_pool *pool)
{
	const unsigned nr_values = 1u << pool->field;
	const bool is_sample = t->nr_words < t->nr_all_words;
	u64 escapes[WFS_FIELD_VALUES], order[WFS_FIELD_VALUES], literals = 0;
	bool lacked[WFS_FIELD_VALUES];
	unsigned nr = 0;

	escapes_count(t, pool, escapes, lacked);
	for (unsigned v = 0; v < nr_values; v++)
		if (escapes[v] || (is_sample && lacked[v])) {
			const u64 weight = escapes[v] ? escapes[v] << 26 : t->total[v]; /* below 2^52: 6,000 * 8,192 */

			order[nr++] = (((u64)1 << 52) - 1 - weight) << WFS_MAX_FIELD | v;
		}
	qsort(order, nr, sizeof(order[0]), wfs_u64_compare);
	pool->ntail = (u8)WFS_MIN(nr, (unsigned)WFS_WIDE_MAX_TAIL);
	for (unsigned i = 0; i < nr; i++) {
		const unsigned v = order[i] & (WFS_FIELD_VALUES - 1), name = (v - pool->base) & (nr_values - 1);

		if (i < pool->ntail)
			pool->tail[i] = (u16)v;
		else if (name >= WFS_WIDE_ESCAPE)
			literals += escapes[v] * 8 * (4u + t->s.word);
	}
	return literals;
}

/* The pool of the clusters as they are, and what the segments cost with it, each with its best table. */
static void pool_make(struct wfs_wide_trainer *t, unsigned nr_tables, struct trained *made)
{
	struct wfs_wide_pool *pool = &made->pool;
	u8 stored[WFS_WIDE_POOL_MAX_BYTES], escape[WFS_FIELD_VALUES];
	u64 bits;

	memset(pool, 0, sizeof(*pool));
	pool->nr_tables = (u8)nr_tables;
	pool->field = t->s.field;
	pool->base = (u16)t->base_value;
	made->s = t->s;
	for (unsigned k = 0; k < nr_tables; k++)
		wfs_wide_table_build(t->sum[k], pool->freq[k]);
	/* The sample pays its share of the pool. */
	bits = (u64)(8 * COPIES) * wfs_wide_pool_write(pool, stored) * t->nr_words / WFS_MAX(t->nr_all_words, 1u);
	bits += tail_make(t, pool) + t->nr_words * (8u * t->s.word - t->s.field) +
		(u64)t->nr_segs * wfs_wide_number_bits(nr_tables);
	wfs_wide_escapes_fill(pool, escape);
	for (unsigned k = 0; k < nr_tables; k++)
		wfs_wide_table_costs(pool, k, t->s.word, escape, t->cost[k]);
	made->cost = bits * WFS_COST_UNIT + wfs_wide_clusters_assign(t, nr_tables);
}

/* k-means with the tables that the clusters get, as long as they become better; returns the clusters left. What is
 * better than *best goes there. */
static unsigned tables_settle(struct wfs_wide_trainer *t, unsigned nr_clusters, unsigned rounds, struct trained *best)
{
	unsigned nr = wfs_wide_clusters_sum(t, nr_clusters);
	u64 before = UINT64_MAX;

	for (unsigned round = 0; round < rounds; round++) {
		struct trained made;

		pool_make(t, nr, &made);
		if (made.cost >= before)
			break;
		before = made.cost;
		if (made.cost < best->cost)
			*best = made;
		nr = wfs_wide_clusters_sum(t, nr);
	}
	return nr;
}

/* ---- the whole ---- */

/* Tries a field with the clusters of a start, which stay the same for the next field. */
static void field_compare(struct wfs_wide_trainer *t, struct wfs_split s, const u8 *start, unsigned nr_clusters,
			  struct trained *best)
{
	for (u32 i = 0; i < t->nr_segs; i++)
		t->segment[i].cluster = start[i];
	field_try(t, s);
	tables_settle(t, nr_clusters, TRIAL_ROUNDS, best);
}

/* Goes on with the field of the least cost for these clusters. */
static void field_choose(struct wfs_wide_trainer *t, unsigned nr_clusters, struct trained *best)
{
	const struct wfs_split base = t->base;
	const unsigned most = base.word == 1 ? 7 : t->widest.field;
	u8 start[WFS_WIDE_TRAIN_SEGMENTS] = {0};

	for (u32 i = 0; i < t->nr_segs; i++)
		start[i] = t->segment[i].cluster;
	for (unsigned field = base.field; field <= WFS_MIN(base.field + (unsigned)MORE_FIELD, most); field++)
		field_compare(t, wfs_split_make(base.word, base.rot, field), start, nr_clusters, best);
	if (base.word == 1)
		field_compare(t, wfs_split_make(1, 0, 8), start, nr_clusters, best);
	field_try(t, best->s);
	for (u32 i = 0; i < t->nr_segs; i++)
		t->segment[i].cluster = start[i];
}

static bool pool_train(struct wfs_wide_trainer *t, struct trained *best)
{
	unsigned nr = WFS_MIN(t->nr_segs, (u32)WFS_WIDE_MAX_CLUSTERS);

	field_try(t, t->base); /* in which most values have names */
	if (!wfs_wide_clusters_start(t, nr))
		return false;
	nr = wfs_wide_clusters_settle(t, nr);
	nr = wfs_wide_clusters_settle(t, wfs_wide_clusters_join(t, nr, WFS_WIDE_MAX_TABLES));
	field_choose(t, nr, best);
	/* Half the tables as long as that pays. */
	for (;;) {
		const u64 before = best->cost;

		nr = tables_settle(t, nr, TABLE_ROUNDS, best);
		if (nr == 1 || (nr < WFS_WIDE_MAX_TABLES / 2 && best->cost == before))
			break;
		nr = wfs_wide_clusters_join(t, nr, (1u << wfs_wide_number_bits(nr)) / 2);
	}
	return true;
}

enum wfs_status wfs_wide_trainer_finish(struct wfs_wide_trainer *t, struct wfs_wide_pool *pool_ret,
					struct wfs_split *split_ret)
{
	struct trained best = {.cost = UINT64_MAX};

	if (t->no_memory)
		return WFS_NO_MEMORY;
	t->segment = malloc(WFS_MAX(t->nr_segs, 1u) * sizeof(*t->segment));
	if (!t->segment)
		return WFS_NO_MEMORY;
	if (!t->nr_segs) {
		t->s = t->base;
		pool_make(t, 1, &best);
	} else if (!pool_train(t, &best)) {
		return WFS_NO_MEMORY;
	}
	*pool_ret = best.pool;
	*split_ret = best.s;
	return WFS_OK;
}
