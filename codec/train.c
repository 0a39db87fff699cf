/* train.c - trains a pool of tables: k-means of pieces of 512 words where distance is coding cost. Integer arithmetic
 * and total orders only, so that the same samples give the same pool on every machine.
 *
 * Segments of unlike scale (rows of an embedding, say) deserve unlike tables; a segment names its table with 4 bits.
 * The first rounds use ideal code lengths, which lead to good clusters quickly; the last ones the tables themselves.
 * How long segments should be is then read off what the pieces of some longer samples cost when they share a table: the
 * others are wanted as one piece, because the tables become better the more places they are learnt from.
 */
#include "split_encode.h"
#include "log2_fixed.h"

#include <stdlib.h>

enum {
	PIECE_LOG2 = 9,
	PIECE_WORDS = 1 << PIECE_LOG2,
	SAMPLE_PIECES = WFS_TRAIN_WORDS / PIECE_WORDS,
	LONG_EVERY = 16, /* samples: one is wanted long */
	MAX_PIECES = WFS_TRAIN_SAMPLES * SAMPLE_PIECES,
	MAX_SEG_LOG2 = 11,
	USUAL_SEG_LOG2 = 10,
	ID_BITS = 4,
	MAX_CHUNKS = WFS_FIELD_VALUES / WFS_COST_CHUNK,
	IDEAL_ROUNDS = 30, /* at most; 6 lose 0.03 points of a BF16 file, 100 gain nothing */
	TABLE_ROUNDS = 10,
	MAX_WORK = 1 << 24, /* chunk costs of either loop: 0.05 s; only data with very wide fields reaches it */
	SMOOTHING = 64,	    /* counts are scaled by this, then 1 is added */
};

/* The nonzero part of a piece's histogram: counts of the values 32 * at .. 32 * at + 31. */
struct chunk {
	u16 count[WFS_COST_CHUNK];
	u16 at;
};

struct wfs_trainer {
	struct wfs_split s;
	bool no_memory;
	u32 nr_samples, nr_pieces;
	u32 sample_first[WFS_TRAIN_SAMPLES + 1]; /* a sample's pieces */
	u32 first[MAX_PIECES + 1];		 /* a piece's chunks: first[i] .. first[i + 1] - 1 */
	u32 key[MAX_PIECES];			 /* mean field value, 4 fraction bits */
	u8 cluster[MAX_PIECES];
	struct chunk *chunk;
	size_t chunk_room;
	u16 field[PIECE_WORDS];
	u16 hist[WFS_FIELD_VALUES];
	u32 sum[WFS_MAX_TABLES][WFS_FIELD_VALUES]; /* histograms of the clusters */
	u16 cost[WFS_MAX_TABLES][WFS_FIELD_VALUES];
};

struct wfs_trainer *wfs_trainer_new(struct wfs_split s)
{
	struct wfs_trainer *t = calloc(1, sizeof(*t));
	if (t)
		t->s = s;
	return t;
}

void wfs_trainer_free(struct wfs_trainer *t)
{
	if (!t)
		return;
	free(t->chunk);
	free(t);
}

static bool chunks_reserve(struct wfs_trainer *t)
{
	size_t need = (size_t)t->first[t->nr_pieces] + MAX_CHUNKS;
	if (need <= t->chunk_room)
		return true;
	size_t room = need + need / 2;
	struct chunk *grown = realloc(t->chunk, room * sizeof(*grown));
	if (!grown)
		return false;
	t->chunk = grown;
	t->chunk_room = room;
	return true;
}

static void add_piece(struct wfs_trainer *t, const u8 *raw, size_t nr_words)
{
	u32 nr_chunks = WFS_CEIL_DIV(1u << t->s.field, (u32)WFS_COST_CHUNK), sum = 0;

	wfs_encode_fields_scalar(t->s, raw, nr_words, t->field);
	memset(t->hist, 0, nr_chunks * WFS_COST_CHUNK * sizeof(t->hist[0]));
	for (size_t i = 0; i < nr_words; i++) {
		t->hist[t->field[i]]++;
		sum += t->field[i];
	}
	u32 last = t->first[t->nr_pieces];
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
	t->key[t->nr_pieces] = (u32)(sum * 16 / nr_words);
	t->first[++t->nr_pieces] = last;
}

unsigned wfs_trainer_wanted(const struct wfs_trainer *t)
{
	return t->nr_samples % LONG_EVERY ? PIECE_WORDS : WFS_TRAIN_WORDS;
}

void wfs_trainer_add(struct wfs_trainer *t, const u8 *raw, size_t nr_words)
{
	if (!nr_words || nr_words > WFS_TRAIN_WORDS || t->nr_samples == WFS_TRAIN_SAMPLES || t->no_memory)
		return;
	for (size_t at = 0; at < nr_words; at += PIECE_WORDS) {
		if (!chunks_reserve(t)) {
			t->no_memory = true;
			return;
		}
		add_piece(t, raw + at * t->s.word, WFS_MIN(nr_words - at, (size_t)PIECE_WORDS));
	}
	t->sample_first[++t->nr_samples] = t->nr_pieces;
}

static int u64_compare(const void *a, const void *b)
{
	u64 x = wfs_load64(a), y = wfs_load64(b);
	return (x > y) - (x < y);
}

/* The start: pieces ordered by their mean, cut in nr_clusters equal parts. */
static bool clusters_start(struct wfs_trainer *t, unsigned nr_clusters)
{
	u64 *order = malloc(t->nr_pieces * sizeof(*order));
	if (!order)
		return false;
	for (u32 i = 0; i < t->nr_pieces; i++)
		order[i] = (u64)t->key[i] << 32 | i; /* no two equal: any sort gives the same order */
	qsort(order, t->nr_pieces, sizeof(*order), u64_compare);
	for (u32 i = 0; i < t->nr_pieces; i++)
		t->cluster[(u32)order[i]] = (u8)((u64)i * nr_clusters / t->nr_pieces);
	free(order);
	return true;
}

/* Sums up the clusters' histograms and closes the gaps of empty ones; returns how many are left. */
static unsigned clusters_sum(struct wfs_trainer *t, unsigned nr_clusters)
{
	bool used[WFS_MAX_TABLES] = {false};
	u8 number[WFS_MAX_TABLES];
	unsigned nr = 0;

	for (u32 i = 0; i < t->nr_pieces; i++)
		used[t->cluster[i]] = true;
	for (unsigned k = 0; k < nr_clusters; k++)
		if (used[k])
			number[k] = (u8)nr++;
	memset(t->sum, 0, nr * sizeof(t->sum[0]));
	for (u32 i = 0; i < t->nr_pieces; i++) {
		u32 *sum = t->sum[number[t->cluster[i]]];
		for (u32 c = t->first[i]; c < t->first[i + 1]; c++)
			for (unsigned j = 0; j < WFS_COST_CHUNK; j++)
				sum[t->chunk[c].at * WFS_COST_CHUNK + j] += t->chunk[c].count[j];
	}
	return nr;
}

/* Ideal code lengths for a cluster, every value a little likely. */
static void costs_ideal(const u32 *sum, unsigned nr_values, u16 *cost)
{
	u32 total = nr_values;
	for (unsigned v = 0; v < nr_values; v++)
		total += sum[v] * SMOOTHING;
	u32 log_total = wfs_log2_q16(total);
	for (unsigned v = 0; v < nr_values; v++)
		cost[v] = (u16)((log_total - wfs_log2_q16(sum[v] * SMOOTHING + 1)) >> 8);
}

static u32 piece_cost(const struct wfs_trainer *t, u32 piece, unsigned cluster)
{
	u32 cost = 0;

	for (u32 c = t->first[piece]; c < t->first[piece + 1]; c++)
		cost += wfs_chunk_cost(t->chunk[c].count, t->cost[cluster] + t->chunk[c].at * WFS_COST_CHUNK);
	return cost;
}

/* Moves every piece to the cluster that codes it cheapest; returns the cost of all. */
static u64 clusters_assign(struct wfs_trainer *t, unsigned nr_clusters)
{
	u64 total = 0;
	for (u32 i = 0; i < t->nr_pieces; i++) {
		u32 best = UINT32_MAX;
		for (unsigned k = 0; k < nr_clusters; k++) {
			u32 cost = piece_cost(t, i, k);
			if (cost < best) {
				best = cost;
				t->cluster[i] = (u8)k;
			}
		}
		total += best;
	}
	return total;
}

/* How many rounds, 1..most, the work allows. */
static unsigned rounds_within(const struct wfs_trainer *t, unsigned nr_clusters, unsigned most)
{
	u64 work = (u64)t->first[t->nr_pieces] * nr_clusters;
	return (unsigned)WFS_MIN(MAX_WORK / (work + 1) + 1, (u64)most);
}

/* k-means with ideal code lengths until nothing moves or the time is up; returns the clusters left. */
static unsigned clusters_settle(struct wfs_trainer *t, unsigned nr_clusters)
{
	const unsigned rounds = rounds_within(t, nr_clusters, IDEAL_ROUNDS);
	unsigned nr = clusters_sum(t, nr_clusters);
	u64 before = 0;

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned k = 0; k < nr; k++)
			costs_ideal(t->sum[k], 1u << t->s.field, t->cost[k]);
		u64 cost = clusters_assign(t, nr);
		nr = clusters_sum(t, nr);
		if (cost == before)
			break;
		before = cost;
	}
	return nr;
}

/* k-means with the tables that the clusters get, as long as they become better; the best go to *pool_ret. */
static void tables_settle(struct wfs_trainer *t, unsigned nr_clusters, struct wfs_pool *pool_ret)
{
	const unsigned rounds = rounds_within(t, nr_clusters, TABLE_ROUNDS);
	struct wfs_table table[WFS_MAX_TABLES];
	unsigned nr = nr_clusters;
	u64 best = UINT64_MAX;

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned k = 0; k < nr; k++) {
			wfs_table_build(t->sum[k], t->s, &table[k]);
			wfs_table_costs(&table[k], t->s, t->cost[k]);
		}
		u64 cost = clusters_assign(t, nr);
		if (cost >= best)
			break;
		best = cost;
		memcpy(pool_ret->table, table, nr * sizeof(table[0]));
		pool_ret->nr_tables = (u8)nr;
		nr = clusters_sum(t, nr);
	}
}

/* Costs of a sample in segments of 2^9, 2^10 and 2^11 words, each with the table that suits it best, are added to
 * sum[0..2]. */
static void sample_costs(const struct wfs_trainer *t, u32 sample, unsigned nr_tables, u64 *sum)
{
	const u32 first = t->sample_first[sample], nr = t->sample_first[sample + 1] - first;
	u32 cost[SAMPLE_PIECES][WFS_MAX_TABLES];

	if (nr < SAMPLE_PIECES)
		return; /* too short to tell */
	for (u32 i = 0; i < nr; i++)
		for (unsigned k = 0; k < nr_tables; k++)
			cost[i][k] = piece_cost(t, first + i, k);
	for (unsigned log2 = PIECE_LOG2; log2 <= MAX_SEG_LOG2; log2++)
		for (u32 i = 0, step = 1u << (log2 - PIECE_LOG2); i < nr; i += step) {
			u64 best = UINT64_MAX;
			for (unsigned k = 0; k < nr_tables; k++) {
				u64 all = ID_BITS * WFS_COST_UNIT;
				for (u32 j = i; j < i + step; j++)
					all += cost[j][k];
				best = WFS_MIN(best, all);
			}
			sum[log2 - PIECE_LOG2] += best;
		}
}

/* The segment length with the least cost, the longest of equals; without long samples one that is never bad. */
static unsigned segments_choose(struct wfs_trainer *t, const struct wfs_pool *pool, unsigned min_seg_log2)
{
	u64 sum[MAX_SEG_LOG2 - PIECE_LOG2 + 1] = {0};
	unsigned best = MAX_SEG_LOG2;

	for (unsigned k = 0; k < pool->nr_tables; k++)
		wfs_table_costs(&pool->table[k], t->s, t->cost[k]);
	for (u32 i = 0; i < t->nr_samples; i++)
		sample_costs(t, i, pool->nr_tables, sum);
	if (!sum[0])
		return WFS_MAX(min_seg_log2, (unsigned)USUAL_SEG_LOG2);
	for (unsigned log2 = MAX_SEG_LOG2; log2 >= min_seg_log2; log2--)
		if (sum[log2 - PIECE_LOG2] < sum[best - PIECE_LOG2])
			best = log2;
	return best;
}

enum wfs_status wfs_trainer_finish(struct wfs_trainer *t, unsigned min_seg_log2, struct wfs_pool *pool_ret)
{
	unsigned nr = WFS_MIN(t->nr_pieces, (u32)WFS_MAX_TABLES);

	if (t->no_memory || (nr && !clusters_start(t, nr)))
		return WFS_NO_MEMORY;
	memset(pool_ret, 0, sizeof(*pool_ret));
	pool_ret->field = t->s.field;
	if (nr) {
		tables_settle(t, clusters_settle(t, nr), pool_ret);
	} else {
		wfs_table_build(t->sum[0], t->s, &pool_ret->table[0]);
		pool_ret->nr_tables = 1;
	}
	pool_ret->seg_log2 = (u8)segments_choose(t, pool_ret, min_seg_log2);
	return WFS_OK;
}
