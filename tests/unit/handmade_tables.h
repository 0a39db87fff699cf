/* handmade_tables.h - changes of a container made by hand that concern grids, wide pools and the coders that use them:
 * test_container_rules.c names what each leads to.
 */
#ifndef HANDMADE_TABLES_H
#define HANDMADE_TABLES_H

#include "handmade.h"

static void extra_section(struct parts *p, u16 kind, u16 coding, u64 comp_len, u64 raw_len)
{
	p->extra = (struct wfs_disk_section){.kind = kind, .coding = coding, .comp_len = comp_len, .raw_len = raw_len};
}

/* Grids of two entries, 0 and 1: one for BF16 and one for F32, then as many as there may be. */
enum { GRID_BYTES = 12, MAX_GRIDS = 16384 };
static u8 grids[(MAX_GRIDS + 1) * GRID_BYTES];

static void grids_many(struct parts *p, size_t nr)
{
	static const u8 grid[GRID_BYTES] = {0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f};

	for (size_t i = 0; i < nr; i++)
		memcpy(grids + GRID_BYTES * i, grid, sizeof(grid));
	if (nr > 1)
		grids[GRID_BYTES + 3] = WFS_GRID_F32;
	extra_section(p, WFS_SECTION_GRIDS, WFS_STORED, GRID_BYTES * nr, GRID_BYTES * nr);
	p->extra_body = grids;
}
/* The split coder becomes one of grids, with a pool for its codes; its only block is of another coding. */
static void grid_coder(struct parts *p)
{
	static const u8 pool[] = {1, 9, 5, 0, 2, 0, 2, 0, 0, 0, 255, 0, 1, 1};

	memcpy(p->pools + p->pools_len, pool, sizeof(pool));
	p->pools_len += sizeof(pool);
	p->coder[3] = (struct wfs_disk_coder){.coding = WFS_GRID, .word = 2, .rot = 1, .field = 5, .pool = 1};
	grids_many(p, 2);
}
static void grid_unused(struct parts *p)
{
	grids_many(p, 2);
}
static void grid_most(struct parts *p)
{
	grid_coder(p);
	grids_many(p, MAX_GRIDS);
	p->coder[3].grid = MAX_GRIDS - 1;
}
static void grid_too_many(struct parts *p)
{
	grid_coder(p);
	grids_many(p, MAX_GRIDS + 1);
}
#define DEFINE_GRID_RULE(name, change)                                                                                 \
	static void name(struct parts *p)                                                                              \
	{                                                                                                              \
		grid_coder(p);                                                                                         \
		change;                                                                                                \
	}
DEFINE_GRID_RULE(grid_none, p->extra = (struct wfs_disk_section){0})
DEFINE_GRID_RULE(grid_empty, extra_section(p, WFS_SECTION_GRIDS, WFS_STORED, 0, 0))
DEFINE_GRID_RULE(grid_cut, extra_section(p, WFS_SECTION_GRIDS, WFS_STORED, 23, 23))
DEFINE_GRID_RULE(grid_byte_after, extra_section(p, WFS_SECTION_GRIDS, WFS_STORED, 25, 25))
DEFINE_GRID_RULE(grid_op, grids[0] = 3)
DEFINE_GRID_RULE(grid_not_ascending, grids[11] = 0xbf)
DEFINE_GRID_RULE(grid_number, p->coder[3].grid = 2)
DEFINE_GRID_RULE(grid_f32, (p->coder[3].grid = 1, p->coder[3].word = 4))
DEFINE_GRID_RULE(grid_word_4_of_bf16, p->coder[3].word = 4)
DEFINE_GRID_RULE(grid_word_2_of_f32, p->coder[3].grid = 1)
DEFINE_GRID_RULE(grid_word_1, p->coder[3].word = 1)
DEFINE_GRID_RULE(grid_field_of_pool, p->coder[3].pool = 0)
DEFINE_GRID_RULE(grid_field_8, (p->coder[3].field = 8, p->pools[p->pools_len - 12] = 8))
DEFINE_GRID_RULE(grid_field_7, (p->coder[3].field = 7, p->pools[p->pools_len - 12] = 7))
DEFINE_GRID_RULE(grid_rot, p->coder[3].rot = 2)
DEFINE_GRID_RULE(grid_wide, p->coder[3].coding = WFS_GRID_WIDE)

/* Wide pools of one table each, two names and the escape; the first is for fields of 9 bits, the others for whole
 * bytes. */
enum { WIDE_POOL_BYTES = 11, MAX_WIDE_POOLS = 64 };
static u8 wide_pools[(MAX_WIDE_POOLS + 1) * WIDE_POOL_BYTES];

static void wide_many(struct parts *p, size_t nr)
{
	static const u8 pool[WIDE_POOL_BYTES] = {1, 8, 0, 0, 0, 0, 0, 1, 255, 31, 1};

	for (size_t i = 0; i < nr; i++)
		memcpy(wide_pools + WIDE_POOL_BYTES * i, pool, sizeof(pool));
	wide_pools[1] = 9;
	extra_section(p, WFS_SECTION_WIDE_POOLS, WFS_STORED, WIDE_POOL_BYTES * nr, WIDE_POOL_BYTES * nr);
	p->extra_body = wide_pools;
}
/* The split coder becomes a wide one; its only block is of another coding. */
static void wide_coder(struct parts *p)
{
	p->coder[3].coding = WFS_WIDE;
	wide_many(p, 2);
}
static void wide_bytes(struct parts *p)
{
	p->coder[3] = (struct wfs_disk_coder){.coding = WFS_WIDE, .word = 1, .field = 8, .pool = 1};
	wide_many(p, 2);
}
static void wide_unused(struct parts *p)
{
	wide_many(p, 2);
}
static void wide_most(struct parts *p)
{
	wide_bytes(p);
	wide_many(p, MAX_WIDE_POOLS);
	p->coder[3].pool = MAX_WIDE_POOLS - 1;
}
static void wide_too_many(struct parts *p)
{
	wide_bytes(p);
	wide_many(p, MAX_WIDE_POOLS + 1);
}
/* As LZ4: a run of literals. */
static void wide_compressed(struct parts *p)
{
	enum { LEN = 2 * WIDE_POOL_BYTES };
	static u8 lz4[2 + LEN] = {0xf0, LEN - 15};

	wide_coder(p);
	memcpy(lz4 + 2, wide_pools, LEN);
	extra_section(p, WFS_SECTION_WIDE_POOLS, WFS_LZ4, sizeof(lz4), LEN);
	p->extra_body = lz4;
}
#define DEFINE_WIDE_RULE(name, start, change)                                                                          \
	static void name(struct parts *p)                                                                              \
	{                                                                                                              \
		start(p);                                                                                              \
		change;                                                                                                \
	}
DEFINE_WIDE_RULE(wide_none, wide_coder, p->extra = (struct wfs_disk_section){0})
DEFINE_WIDE_RULE(wide_cut, wide_coder, extra_section(p, WFS_SECTION_WIDE_POOLS, WFS_STORED, 21, 21))
DEFINE_WIDE_RULE(wide_byte_after, wide_coder, extra_section(p, WFS_SECTION_WIDE_POOLS, WFS_STORED, 23, 23))
DEFINE_WIDE_RULE(wide_number, wide_coder, p->coder[3].pool = 2)
DEFINE_WIDE_RULE(wide_field_of_pool, wide_coder, p->coder[3].pool = 1)
DEFINE_WIDE_RULE(wide_grid, wide_coder, p->coder[3].grid = 1)
DEFINE_WIDE_RULE(wide_rot_2, wide_coder, p->coder[3].rot = 2)
DEFINE_WIDE_RULE(wide_field_of_word, wide_coder, p->coder[3].word = 1)
DEFINE_WIDE_RULE(wide_bytes_rot, wide_bytes, p->coder[3].rot = 1)

/* Records of 18 bytes in three parts. */
static void records(struct parts *p)
{
	p->coder[3] =
		(struct wfs_disk_coder){.coding = WFS_RECORDS, .word = 18, .field = 8, .pool = 1, .border = {1, 2}};
	wide_many(p, 2);
}
DEFINE_WIDE_RULE(records_whole, records, memset(p->coder[3].border, 0, 8))
DEFINE_WIDE_RULE(records_longest, records,
		 (p->coder[3].word = 255, memcpy(p->coder[3].border, "\1\2\3\4\5\6\7\376", 8)))
DEFINE_WIDE_RULE(records_word_1, records, (p->coder[3].word = 1, memset(p->coder[3].border, 0, 8)))
DEFINE_WIDE_RULE(records_equal_borders, records, p->coder[3].border[1] = 1)
DEFINE_WIDE_RULE(records_descend, records, (p->coder[3].border[0] = 3))
DEFINE_WIDE_RULE(records_gap, records, p->coder[3].border[3] = 5)
DEFINE_WIDE_RULE(records_border_outside, records, p->coder[3].border[1] = 18)
DEFINE_WIDE_RULE(records_last_border, records, memcpy(p->coder[3].border, "\1\2\3\4\5\6\7\22", 8))
DEFINE_WIDE_RULE(records_field, records, p->coder[3].field = 9)
DEFINE_WIDE_RULE(records_rot, records, p->coder[3].rot = 1)
DEFINE_WIDE_RULE(records_pool, records, p->coder[3].pool = 2)
DEFINE_WIDE_RULE(records_grid, records, p->coder[3].grid = 1)
DEFINE_WIDE_RULE(records_no_pool, records, p->extra = (struct wfs_disk_section){0})

#endif
