/* block_choose.h - the coding each block gets, and the columns that describe it. Private. */
#ifndef WFS_BLOCK_CHOOSE_H
#define WFS_BLOCK_CHOOSE_H

#include "plan.h"

/* One thread's working memory. */
struct wfs_chooser;
struct wfs_chooser *wfs_chooser_new(const struct wfs_plan *plan, enum wfs_cpu cpu);
/* chooser may be NULL. */
void wfs_chooser_free(struct wfs_chooser *chooser);

/* What the metadata says of a block beside its hash. */
struct wfs_choice {
	u32 comp_len;
	u16 selector; /* FORMAT.md 1.4 */
};

/* Encode the block raw[0..raw_len) that starts at raw_off of the file, inside that coded region. comp has room for
 * raw_len bytes. The same choice and bytes on every cpu. */
struct wfs_choice wfs_block_choose(struct wfs_chooser *chooser, u64 region, u64 raw_off, const u8 *raw, u32 raw_len,
				   u8 *comp);

#endif
