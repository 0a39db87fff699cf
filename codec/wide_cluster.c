/* wide_cluster.c - clusters of segments that will share a wide table: k-means where distance is coding cost. Integer
 * arithmetic and total orders only.
 */
#include "log2_fixed.h"
#include "wide_train.h"

#include <stdlib.h>

enum {
	NAME_CHUNKS = WFS_WIDE_NAMES / WFS_COST_CHUNK,
	IDEAL_ROUNDS = 10,
	SMOOTHING = 64, /* counts are scaled by this, then 1 is added */
};

int wfs_u64_compare(const void *a, const void *b)
{
	const u64 x = wfs_load64(a), y = wfs_load64(b);

	return (x > y) - (x < y);
}

bool wfs_wide_clusters_start(struct wfs_wide_trainer *t, unsigned nr_clusters)
{
	u64 *order = malloc(t->nr_segs * sizeof(*order));

	if (!order)
		return false;
	for (u32 i = 0; i < t->nr_segs; i++) {
		u32 sum = 0, nr = 1;

		for (unsigned name = 0; name < WFS_WIDE_ESCAPE; name++) {
			sum += t->segment[i].count[name] * name;
			nr += t->segment[i].count[name];
		}
		order[i] = (u64)(sum * 16 / nr) << 32 | i; /* no two equal: any sort gives the same order */
	}
	qsort(order, t->nr_segs, sizeof(*order), wfs_u64_compare);
	for (u32 i = 0; i < t->nr_segs; i++)
		t->segment[(u32)order[i]].cluster = (u8)((u64)i * nr_clusters / t->nr_segs);
	free(order);
	return true;
}

unsigned wfs_wide_clusters_sum(struct wfs_wide_trainer *t, unsigned nr_clusters)
{
	bool used[WFS_WIDE_MAX_CLUSTERS] = {false};
	u8 number[WFS_WIDE_MAX_CLUSTERS];
	unsigned nr = 0;

	for (u32 i = 0; i < t->nr_segs; i++)
		used[t->segment[i].cluster] = true;
	for (unsigned k = 0; k < nr_clusters; k++)
		if (used[k])
			number[k] = (u8)nr++;
	memset(t->sum, 0, sizeof(t->sum));
	for (u32 i = 0; i < t->nr_segs; i++) {
		struct wfs_wide_segment *seg = &t->segment[i];

		seg->cluster = number[seg->cluster];
		for (unsigned name = 0; name < WFS_WIDE_NAMES; name++)
			t->sum[seg->cluster][name] += seg->count[name];
	}
	return nr;
}

/* Ideal code lengths for a cluster, every name a little likely. */
static void costs_ideal(const u64 *sum, u16 *cost)
{
	u64 total = WFS_WIDE_NAMES;
	unsigned shift = 0;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		total += sum[i] * SMOOTHING;
	while (total >> shift > UINT32_MAX)
		shift++;
	const u32 log_total = wfs_log2_q16((u32)(total >> shift));
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
		const u32 in = (u32)WFS_MAX((sum[i] * SMOOTHING + 1) >> shift, (u64)1);

		cost[i] = (u16)((log_total - wfs_log2_q16(in)) >> 8);
	}
}

u64 wfs_wide_clusters_assign(struct wfs_wide_trainer *t, unsigned nr_clusters)
{
	u64 total = 0;

	for (u32 i = 0; i < t->nr_segs; i++) {
		struct wfs_wide_segment *seg = &t->segment[i];
		u32 cost[WFS_WIDE_MAX_CLUSTERS] = {0}, best = 0;

		for (unsigned c = 0; c < NAME_CHUNKS; c++)
			for (unsigned k = 0; seg->chunks >> c & 1 && k < nr_clusters; k++)
				cost[k] += wfs_chunk_cost(seg->count + c * WFS_COST_CHUNK,
							  t->cost[k] + c * WFS_COST_CHUNK);
		for (unsigned k = 1; k < nr_clusters; k++)
			if (cost[k] < cost[best])
				best = k;
		seg->cluster = (u8)best;
		total += cost[best];
	}
	return total;
}

unsigned wfs_wide_clusters_settle(struct wfs_wide_trainer *t, unsigned nr_clusters)
{
	unsigned nr = wfs_wide_clusters_sum(t, nr_clusters);
	u64 before = 0;

	for (unsigned round = 0; round < IDEAL_ROUNDS; round++) {
		for (unsigned k = 0; k < nr; k++)
			costs_ideal(t->sum[k], t->cost[k]);
		const u64 cost = wfs_wide_clusters_assign(t, nr);

		nr = wfs_wide_clusters_sum(t, nr);
		if (cost == before)
			break;
		before = cost;
	}
	return nr;
}

/* Bits (in 1/65536) of names with these counts, ideally coded. */
static u64 ideal_bits(const u64 *a, const u64 *b)
{
	u64 total = 0, bits = 0;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
		const u64 count = a[i] + b[i];

		total += count;
		bits -= count ? count * wfs_log2_q16((u32)count) : 0;
	}
	return total ? bits + total * wfs_log2_q16((u32)total) : 0;
}

unsigned wfs_wide_clusters_join(struct wfs_wide_trainer *t, unsigned nr, unsigned nr_wanted)
{
	static const u64 none[WFS_WIDE_NAMES];
	u64 own[WFS_WIDE_MAX_CLUSTERS], loss[WFS_WIDE_MAX_CLUSTERS][WFS_WIDE_MAX_CLUSTERS];
	u8 joined[WFS_WIDE_MAX_CLUSTERS]; /* the cluster that each became */

	for (unsigned k = 0; k < nr; k++) {
		joined[k] = (u8)k;
		own[k] = ideal_bits(t->sum[k], none);
		for (unsigned j = 0; j < k; j++)
			loss[k][j] = ideal_bits(t->sum[k], t->sum[j]) - own[k] - own[j];
	}
	for (unsigned left = nr; left > nr_wanted; left--) {
		unsigned a = 0, b = 0;

		for (unsigned k = 0; k < nr; k++)
			for (unsigned j = 0; j < k; j++)
				if (joined[k] == k && joined[j] == j && (a == b || loss[k][j] < loss[a][b])) {
					a = k;
					b = j;
				}
		for (unsigned k = 0; k < nr; k++)
			joined[k] = joined[k] == a ? (u8)b : joined[k];
		for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
			t->sum[b][i] += t->sum[a][i];
		own[b] = ideal_bits(t->sum[b], none);
		for (unsigned k = 0; k < nr; k++)
			if (joined[k] == k && k != b)
				loss[WFS_MAX(k, b)][WFS_MIN(k, b)] = ideal_bits(t->sum[k], t->sum[b]) - own[k] - own[b];
	}
	for (u32 i = 0; i < t->nr_segs; i++)
		t->segment[i].cluster = joined[t->segment[i].cluster];
	return wfs_wide_clusters_sum(t, nr);
}
