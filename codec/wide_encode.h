/* wide_encode.h - private to the wide encoder: its pools, and what the kernels of the CPU variants do for it. */
#ifndef WFS_WIDE_ENCODE_H
#define WFS_WIDE_ENCODE_H

#include "split_encode.h"
#include "wide.h"

/* Pushing a name of frequency f on a state x < f << 20 gives q = x / f and the rank x mod f: x becomes q << 12 | start
 * + rank = x + q * rest + start. recip = 2^44 / f rounded up makes q exactly x * recip >> 44: the product is too large
 * by less than x * f < f^2 << 20, a share of 2^44 smaller than 1, so it does not reach past the fraction that x / f
 * lacks to the next integer, at least 1 / f. x * recip < 2^20 * 2^44 fits 64 bits. */
struct wfs_wide_sym {
	u64 recip;
	u32 limit; /* f << 20: states from here on give off 16 bits first */
	u16 rest;  /* 4096 - f */
	u16 start; /* its first slot */
};

struct wfs_wide_encode_table {
	/* by name; those without a frequency of their own have the escape's, which may have none */
	struct wfs_wide_sym sym[WFS_WIDE_NAMES];
	bool escaped[WFS_WIDE_NAMES];
	bool has_escape;
	u8 padding; /* the most frequent name */
};

struct wfs_wide_encode_pool {
	struct wfs_split s;
	u8 nr_tables, number_bits;
	/* What a name costs beside its rest bits, in 1 / WFS_COST_UNIT bit, below 2^15. Not in it: what makes literals
	 * of names that are escapes in every table. */
	_Alignas(64) u16 cost[WFS_WIDE_MAX_TABLES][WFS_WIDE_NAMES];
	u8 name[WFS_FIELD_VALUES];   /* of a field value */
	u8 escape[WFS_FIELD_VALUES]; /* the escape byte of a field value */
	struct wfs_wide_encode_table table[WFS_WIDE_MAX_TABLES];
};

/* The escape byte of each of 2^field values. */
void wfs_wide_escapes_fill(const struct wfs_wide_pool *pool, u8 escape[WFS_FIELD_VALUES]);
/* What names cost with a table, as in struct wfs_wide_encode_pool. */
void wfs_wide_table_costs(const struct wfs_wide_pool *pool, unsigned table, unsigned word,
			  const u8 escape[WFS_FIELD_VALUES], u16 cost[WFS_WIDE_NAMES]);

/* ---- wide_table.c ---- */

/* Slots of names with these counts, the escape's last: as many bits for them as needed, no more. A count above 0 gets a
 * slot at least, so does the escape; one name beside it has a count. Returns the bits, in 1/65536. */
u64 wfs_wide_slots_allot(const u64 count[WFS_WIDE_NAMES], u16 freq[WFS_WIDE_NAMES]);
/* The frequencies of a table for these counts, whose sum is below 2^32 and may be 0: rare names become escapes where
 * that pays. Always a table that FORMAT.md 4.1 allows, with an escape. */
void wfs_wide_table_build(const u64 count[WFS_WIDE_NAMES], u16 freq[WFS_WIDE_NAMES]);

#endif
