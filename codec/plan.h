/* plan.h - how a file will be cut and coded, decided before the first block is encoded. Private.
 *
 * plan.c cuts the file in spans along its tensors and joins them to regions; plan_repeat.c finds constant stretches and
 * repeated tensors; plan_pools.c assigns and trains the pools. Nothing here can make a wrong byte: what parsing gets
 * wrong only compresses worse, and what is claimed (constant, copy) was compared in full and is compared again when
 * the file is encoded.
 */
#ifndef WFS_PLAN_H
#define WFS_PLAN_H

#include "block.h"
#include "wide.h"
#include "classes.h"
#include "wfs_format.h"

/* The file to encode, as it was when encoding began. */
struct wfs_source {
	int fd;
	u64 raw_len;
	int64_t mtime_sec;
	int64_t mtime_nsec;
	wfs_progress_fn progress; /* may be NULL; the calling thread's alone */
	void *ctx;
};
/* Exactly len bytes at off; fewer: WFS_CHANGED. */
enum wfs_status wfs_source_read(const struct wfs_source *source, void *buf, size_t len, u64 off, struct wfs_error *err);
/* Asked now and then before the first block is encoded: WFS_CANCELLED when the caller wants to stop. On the thread that
 * called the encoder only. */
enum wfs_status wfs_source_go_on(const struct wfs_source *source, struct wfs_error *err);

/* encode_file.c: check the options of an encoding, fill in what 0 stands for, and open its source. */
enum wfs_status wfs_encode_begin(int src_fd, struct wfs_encode_opts *opts, struct wfs_source *source_ret,
				 struct wfs_error *err);

/* Coders that every container has; then those of the groups. */
enum { WFS_CODER_STORED, WFS_CODER_LZ4, WFS_CODER_CONSTANT, WFS_NR_FIXED_CODERS };

/* The coders that blocks of a region may have beside constant, LZ4 and stored. The first is the region's default. Group
 * 0 has none: LZ4 is the default. */
enum { WFS_GROUP_CODERS = 2 };
struct wfs_group {
	u16 coder[WFS_GROUP_CODERS];
	u8 nr_coders;
};

struct wfs_plan {
	enum wfs_level level;
	u64 raw_len;
	unsigned block_log2;
	u64 nr_regions, nr_blocks;
	struct wfs_disk_region *region;
	u64 *first_block;  /* nr_regions + 1 */
	u32 *region_group; /* nr_regions: group of a coded region */
	struct wfs_group *group;
	u32 nr_groups, nr_coders, nr_pools, nr_wide_pools;
	struct wfs_coder *coder;
	struct wfs_pool *pool;
	struct wfs_encode_pool **encode_pool;
	struct wfs_wide_pool *wide_pool;
	struct wfs_wide_encode_pool **wide_encode_pool;
	u32 nr_grids;
	struct wfs_grid *grid;
	struct wfs_grid_encoder *grid_encoder;
	struct wfs_geometry geometry; /* the matrices are the plan's */
};

/* The same plan for the same bytes, whatever opts->nr_threads and cpu. opts as wfs_encode_begin leaves them. The caller
 * frees it. */
enum wfs_status wfs_plan_new(const struct wfs_source *source, const struct wfs_encode_opts *opts,
			     struct wfs_plan **plan_ret, struct wfs_error *err);
/* plan may be NULL. */
void wfs_plan_free(struct wfs_plan *plan);
/* The region that holds raw_off < raw_len. */
u64 wfs_plan_region_at(const struct wfs_plan *plan, u64 raw_off);

/* ---- between the plan*.c files ---- */

/* plan_geometry.c: the matrices among the tensors of a file of raw_len bytes; the caller frees geometry->matrix. false:
 * out of memory. */
bool wfs_geometry_make(const struct wfs_tensors *tensors, u64 raw_len, struct wfs_geometry *geometry_ret);

/* A stretch of the file: a tensor, part of one, a gap, later a region. */
struct wfs_span {
	u64 off, len;
	u64 arg;     /* constant: its 8 bytes, the span's first byte lowest; copy: offset of the source */
	u8 kind;     /* enum wfs_region_kind */
	u8 class;    /* of coded spans */
	u8 phase;    /* place of the first byte within its word */
	bool tensor; /* one whole tensor */
	u16 grid;    /* number + 1 of the grid that words are likely to be on, or 0 */
	u32 pool;
};
struct wfs_spans {
	struct wfs_span *span;
	size_t nr, room;
};
/* false: out of memory. */
bool wfs_spans_push(struct wfs_spans *spans, const struct wfs_span *span);
void wfs_spans_free(struct wfs_spans *spans);

/* Shorter stretches are not worth a region of their own. */
enum { WFS_MIN_REPEAT = 64 << 10 };

/* Turn whole tensors that repeat an earlier one into copies. */
enum wfs_status wfs_spans_find_copies(const struct wfs_source *source, struct wfs_spans *spans, struct wfs_error *err);
/* Cut constant stretches out of coded spans. */
enum wfs_status wfs_spans_find_constants(const struct wfs_source *source, struct wfs_spans *spans,
					 struct wfs_error *err);

/* plan_sniff.c: find words in coded spans of no class by what samples of their bytes look like, and cut the spans where
 * the words change. */
enum wfs_status wfs_spans_sniff(const struct wfs_source *source, unsigned nr_threads, struct wfs_spans *spans,
				struct wfs_error *err);

/* The pools of a plan in the making. */
enum { WFS_NO_POOL = UINT32_MAX };
struct wfs_pools {
	const struct wfs_source *source;
	const struct wfs_encode_opts *opts;
	const struct wfs_geometry *geometry;
	const struct wfs_grids *grids;
	struct wfs_spans *spans;
	bool serve_grids[WFS_NR_CLASSES]; /* spans on grids, too */
	u32 nr;
	struct wfs_pool_plan *plan;
};
struct wfs_pool_plan {
	u8 class;
	struct wfs_split split;
	size_t first_span, last_span;
	u64 data_len;
	bool pays, wide; /* wide: the wide coding serves it, not the split one */
	struct wfs_pool pool;
	struct wfs_encode_pool *encode_pool;
	struct wfs_wide_pool wide_pool;
	struct wfs_wide_encode_pool *wide_encode_pool;
	enum wfs_status status;
	struct wfs_error error;
};
/* Cut spans so that each has one pool, train the pools, give up those that do not pay (their spans lose their class)
 * and number the others anew. Spans on grids have pools only where their class needs one for blocks that are not. The
 * caller frees. */
enum wfs_status wfs_pools_make(struct wfs_pools *pools, struct wfs_error *err);
void wfs_pools_free(struct wfs_pools *pools);
/* The coder that a pool serves, but for the pool's number. */
struct wfs_coder wfs_pool_coder(const struct wfs_pool_plan *p);

#endif
