/* block_choose.c - constant, grid, split, LZ4 or stored: the smallest that is worth its decoding.
 *
 * A split region's blocks are also tried with LZ4 when a few KiB of them suggest it: rows that repeat (unused tokens)
 * or weights pruned to zero are better served by it.
 */
#include "block_choose.h"
#include "grid_encode.h"

#include <stdlib.h>

enum {
	PROBE = 4096,
	NR_PROBES = 2,
	MIN_PROBED = 4 * NR_PROBES * PROBE,
	/* LZ4 decodes slower than the split coding: it has to save this part of it. */
	MARGIN = 16,
};

struct wfs_chooser {
	const struct wfs_plan *plan;
	enum wfs_cpu cpu;
	struct wfs_encode_scratch *scratch;
	u8 second[WFS_MAX_BLOCK];
};

struct wfs_chooser *wfs_chooser_new(const struct wfs_plan *plan, enum wfs_cpu cpu)
{
	struct wfs_chooser *chooser = malloc(sizeof(*chooser));

	if (!chooser)
		return NULL;
	chooser->plan = plan;
	chooser->cpu = cpu;
	chooser->scratch = wfs_encode_scratch_new();
	if (!chooser->scratch) {
		free(chooser);
		return NULL;
	}
	return chooser;
}

void wfs_chooser_free(struct wfs_chooser *chooser)
{
	if (!chooser)
		return;
	wfs_encode_scratch_free(chooser->scratch);
	free(chooser);
}

/* The block with one coder: its bytes, or raw_len when it does not become smaller. */
static u32 encode(struct wfs_chooser *c, unsigned coder, const struct wfs_place *place, const u8 *raw, u32 raw_len,
		  u8 *comp)
{
	const struct wfs_coder *k = &c->plan->coder[coder];
	const struct wfs_encode_tables tables = {
		.grid = wfs_coding_is_grid(k->coding) ? &c->plan->grid_encoder[k->grid] : NULL,
		.split = wfs_coding_is_split(k->coding) ? c->plan->encode_pool[k->pool] : NULL,
		.wide = wfs_coding_is_wide(k->coding) ? c->plan->wide_encode_pool[k->pool] : NULL,
	};

	return (u32)wfs_payload_encode(k, &tables, c->cpu, place, raw, raw_len, comp, c->scratch);
}

/* Whether samples of the block shrink more than all of it did to split_len. */
static bool lz4_may_win(struct wfs_chooser *c, const struct wfs_place *place, const u8 *raw, u32 raw_len, u32 split_len)
{
	u32 probed = 0;

	if (raw_len < MIN_PROBED)
		return true; /* too short to sample, short enough to try */
	for (u32 i = 0; i < NR_PROBES; i++)
		probed += encode(c, WFS_CODER_LZ4, place, raw + raw_len / NR_PROBES * i, PROBE, c->second);
	return (u64)probed * raw_len < (u64)split_len * NR_PROBES * PROBE;
}

/* The first of the group's coders that makes the block smaller; raw_len bytes: none does. */
static u32 encode_in_group(struct wfs_chooser *c, const struct wfs_group *group, const struct wfs_place *place,
			   const u8 *raw, u32 raw_len, u8 *comp, unsigned *coder_ret)
{
	u32 len = raw_len;

	for (unsigned i = 0; i < group->nr_coders && len == raw_len; i++) {
		*coder_ret = group->coder[i];
		len = encode(c, group->coder[i], place, raw, raw_len, comp);
	}
	return len;
}

/* Replaces what a group's coder gave, len bytes, by LZ4 where that is worth it. */
static u32 improve_with_lz4(struct wfs_chooser *c, const struct wfs_place *place, const u8 *raw, u32 raw_len, u8 *comp,
			    u32 len, unsigned *coder)
{
	u32 lz4_len;

	if (c->plan->level == WFS_LEVEL_FAST || !lz4_may_win(c, place, raw, raw_len, len))
		return len;
	lz4_len = encode(c, WFS_CODER_LZ4, place, raw, raw_len, c->second);
	if (lz4_len >= len - len / MARGIN)
		return len;
	*coder = WFS_CODER_LZ4;
	memcpy(comp, c->second, lz4_len);
	return lz4_len;
}

struct wfs_choice wfs_block_choose(struct wfs_chooser *c, u64 region, u64 raw_off, const u8 *raw, u32 raw_len, u8 *comp)
{
	const struct wfs_disk_region *g = &c->plan->region[region];
	const struct wfs_place place = {
		.raw_off = raw_off,
		.phase = g->phase + (raw_off - g->start),
		.geometry = &c->plan->geometry,
	};
	unsigned coder = WFS_CODER_CONSTANT;
	u32 len;

	if (wfs_is_constant(raw, raw_len)) {
		len = encode(c, coder, &place, raw, raw_len, comp);
	} else {
		len = encode_in_group(c, &c->plan->group[c->plan->region_group[region]], &place, raw, raw_len, comp,
				      &coder);
		if (len < raw_len)
			len = improve_with_lz4(c, &place, raw, raw_len, comp, len, &coder);
	}
	if (len == raw_len) {
		coder = WFS_CODER_LZ4;
		len = encode(c, coder, &place, raw, raw_len, comp);
	}
	if (len == raw_len) {
		coder = WFS_CODER_STORED;
		memcpy(comp, raw, raw_len);
	}
	return (struct wfs_choice){len, coder == g->coder ? 0 : (u16)(coder + 1)};
}
