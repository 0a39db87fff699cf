/* plan_grids.h - which tensors are on grids, and the pools of their codes. Private to the plan.
 *
 * grid_detect.c looks at samples of one tensor, plan_grids.c at all tensors of a file, plan_grid_pools.c trains.
 */
#ifndef WFS_PLAN_GRIDS_H
#define WFS_PLAN_GRIDS_H

#include "grid_encode.h"
#include "plan.h"

/* ---- grid_detect.c ---- */

/* Rules for all lists, for words of one kind. */
struct wfs_grid_rules {
	enum wfs_grid_output output;
	const struct wfs_search_kernel *kernel;
	struct wfs_search_rule rule[WFS_NR_LISTS][2]; /* by list and operation */
};
void wfs_grid_rules_make(enum wfs_grid_output output, enum wfs_cpu cpu, struct wfs_grid_rules *rules_ret);

struct wfs_grid_found {
	bool found;
	enum wfs_grid_list list;
	enum wfs_grid_op op;
	u32 tile_rows, tile_cols; /* as in struct wfs_matrix */
};
/* Whether samples of the bytes off..off+len of a matrix are on a grid. Ordinary weights are recognised by a few hundred
 * of their words. */
enum wfs_status wfs_grid_detect(const struct wfs_source *source, const struct wfs_grid_rules *rules,
				const struct wfs_matrix *matrix, u64 off, u64 len, struct wfs_grid_found *found_ret,
				struct wfs_error *err);

/* ---- plan_grids.c ---- */

enum {
	WFS_GRID_OUTPUTS = 3,
	WFS_MAX_PALETTES = 64, /* of a file */
	WFS_MAX_PLANNED_GRIDS = WFS_NR_LISTS * 2 * WFS_GRID_OUTPUTS + WFS_MAX_PALETTES,
	WFS_MAX_WIDE_GRIDS = 16, /* whose codes have a pool of the wide coding */
};

/* A grid or palette and what its codes are coded with. */
struct wfs_planned_grid {
	struct wfs_grid grid;
	struct wfs_grid_encoder encoder;
	struct wfs_split split; /* of the codes */
	u8 class;		/* of the words */
	u64 data_len;		/* their bytes */
	bool pays;
	bool refuses; /* some blocks of its tensors are not on it: they need plain coders */
	bool wide;    /* the wide coding serves the codes, not the split one */
	struct wfs_pool pool;
	struct wfs_encode_pool *encode_pool;
	struct wfs_wide_pool wide_pool;
	struct wfs_wide_encode_pool *wide_encode_pool;
	enum wfs_status status;
	struct wfs_error error;
};
struct wfs_grids {
	const struct wfs_source *source;
	const struct wfs_encode_opts *opts;
	struct wfs_geometry *geometry;
	struct wfs_spans *spans;
	u32 nr;
	struct wfs_planned_grid *plan;
};

/* Find the spans (tensors, or parts of them) that are on grids or have few different words: names their grids and sets
 * the tiles of their matrices. */
enum wfs_status wfs_grids_find(struct wfs_grids *grids, struct wfs_error *err);

/* ---- plan_grid_pools.c ---- */

/* Train the pools of codes from the spans as they are now; those of grids that do not pay lose their grid. */
enum wfs_status wfs_grids_train(struct wfs_grids *grids, struct wfs_error *err);

/* The caller's at the end, whatever failed. */
void wfs_grids_free(struct wfs_grids *grids);

#endif
