/* wide_train.h - the trainer of wide pools between wide_train.c and wide_cluster.c. Private to them. */
#ifndef WFS_WIDE_TRAIN_H
#define WFS_WIDE_TRAIN_H

#include "wide_encode.h"

/* Clusters at the start, of which those most alike are joined: starting with as many as there may be tables, k-means
 * would more often keep unlike segments together. */
enum { WFS_WIDE_MAX_CLUSTERS = 2 * WFS_WIDE_MAX_TABLES };

/* The nonzero part of a segment's histogram: counts of the values 32 * at .. 32 * at + 31. */
struct wfs_wide_chunk {
	u16 count[WFS_COST_CHUNK];
	u16 at;
};

/* A segment's names in the field that is tried. chunks: which chunks of names are not 0. */
struct wfs_wide_segment {
	u16 count[WFS_WIDE_NAMES];
	u8 chunks, cluster;
};

struct wfs_wide_trainer {
	struct wfs_split base, widest;
	bool no_memory;
	u32 nr_segs;
	u64 nr_words;				/* added */
	u64 nr_all_words;			/* that the pool is for */
	u32 first[WFS_WIDE_TRAIN_SEGMENTS + 1]; /* a segment's chunks: first[i] .. first[i + 1] - 1 */
	struct wfs_wide_chunk *chunk;
	size_t chunk_room;
	struct wfs_wide_segment *segment; /* nr_segs; from wfs_wide_trainer_finish on */
	u16 field[WFS_WIDE_TRAIN_WORDS];
	u16 hist[WFS_FIELD_VALUES];
	/* in the field that is tried: */
	struct wfs_split s;
	unsigned base_value;				/* field value of name 0 */
	u64 total[WFS_FIELD_VALUES];			/* of each field value */
	u64 sum[WFS_WIDE_MAX_CLUSTERS][WFS_WIDE_NAMES]; /* of each cluster */
	_Alignas(64) u16 cost[WFS_WIDE_MAX_CLUSTERS][WFS_WIDE_NAMES];
};

/* ---- wide_cluster.c ---- */

/* The order of u64 values, for qsort. */
int wfs_u64_compare(const void *a, const void *b);

/* The start: segments ordered by their mean, cut in nr_clusters equal parts. false: out of memory. */
bool wfs_wide_clusters_start(struct wfs_wide_trainer *t, unsigned nr_clusters);
/* Sums up the clusters' names and closes the gaps of empty ones; returns how many are left. */
unsigned wfs_wide_clusters_sum(struct wfs_wide_trainer *t, unsigned nr_clusters);
/* Moves every segment to the cluster that codes it cheapest by t->cost; returns the cost of all. */
u64 wfs_wide_clusters_assign(struct wfs_wide_trainer *t, unsigned nr_clusters);
/* k-means with ideal code lengths until nothing moves or enough is done; returns the clusters left. */
unsigned wfs_wide_clusters_settle(struct wfs_wide_trainer *t, unsigned nr_clusters);
/* Joins clusters until nr_wanted are left, each time the two that lose least by it; returns those that are left. */
unsigned wfs_wide_clusters_join(struct wfs_wide_trainer *t, unsigned nr, unsigned nr_wanted);

#endif
