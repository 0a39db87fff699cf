/* wide_encode_pool.c - pools of the wide coding made ready for encoding. */
#include "wide_encode.h"
#include "log2_fixed.h"

#include <stdlib.h>

static struct wfs_wide_sym sym_make(u32 freq, u32 start)
{
	const u64 recip = (((u64)1 << 44) + freq - 1) / freq;

	return (struct wfs_wide_sym){recip, freq << 20, (u16)(WFS_WIDE_SLOTS - freq), (u16)start};
}

static void table_expand(const u16 freq[WFS_WIDE_NAMES], struct wfs_wide_encode_table *t)
{
	struct wfs_wide_sym escape = {0};
	u32 start = 0;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; start += freq[i++]) {
		if (freq[i])
			t->sym[i] = sym_make(freq[i], start);
		if (i < WFS_WIDE_ESCAPE && freq[i] > freq[t->padding])
			t->padding = (u8)i;
	}
	t->has_escape = freq[WFS_WIDE_ESCAPE];
	if (t->has_escape)
		escape = t->sym[WFS_WIDE_ESCAPE];
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
		t->escaped[i] = i == WFS_WIDE_ESCAPE || !freq[i];
		if (t->escaped[i])
			t->sym[i] = escape;
	}
}

/* Bits of a name of this frequency, in 1 / WFS_COST_UNIT. */
static unsigned freq_cost(unsigned freq)
{
	const unsigned to_q8 = 16 - 8, half = 1 << (to_q8 - 1);

	_Static_assert(WFS_COST_UNIT == 1 << 8, "costs are q8");
	return ((WFS_WIDE_BITS << 16) - wfs_log2_q16(freq) + half) >> to_q8;
}

void wfs_wide_table_costs(const struct wfs_wide_pool *pool, unsigned table, unsigned word,
			  const u8 escape[WFS_FIELD_VALUES], u16 cost[WFS_WIDE_NAMES])
{
	enum { ESCAPE_BYTE = 8 * WFS_COST_UNIT, NEVER = INT16_MAX };
	const u16 *freq = pool->freq[table];
	const unsigned literal = 8 * (4u + word) * WFS_COST_UNIT;
	const unsigned escaped = freq[WFS_WIDE_ESCAPE] ? freq_cost(freq[WFS_WIDE_ESCAPE]) + ESCAPE_BYTE : NEVER;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
		const unsigned value = (pool->base + i) & ((1u << pool->field) - 1);
		unsigned bits = escaped;

		if (i < WFS_WIDE_ESCAPE && freq[i])
			bits = freq_cost(freq[i]);
		else if (i < WFS_WIDE_ESCAPE && escape[value] == WFS_WIDE_LITERAL)
			bits += literal;
		cost[i] = (u16)WFS_MIN(bits, (unsigned)NEVER);
	}
}

void wfs_wide_escapes_fill(const struct wfs_wide_pool *pool, u8 escape[WFS_FIELD_VALUES])
{
	memset(escape, WFS_WIDE_LITERAL, WFS_FIELD_VALUES);
	for (unsigned i = 0; i < pool->ntail; i++)
		escape[pool->tail[i]] = (u8)i;
}

struct wfs_wide_encode_pool *wfs_wide_encode_pool_new(const struct wfs_wide_pool *pool, struct wfs_split s)
{
	struct wfs_wide_encode_pool *p = aligned_alloc(_Alignof(struct wfs_wide_encode_pool), sizeof(*p));

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->s = s;
	p->nr_tables = pool->nr_tables;
	p->number_bits = (u8)wfs_wide_number_bits(pool->nr_tables);
	wfs_wide_escapes_fill(pool, p->escape);
	for (unsigned value = 0; value < 1u << s.field; value++) {
		const unsigned name = (value - pool->base) & ((1u << s.field) - 1);

		p->name[value] = (u8)WFS_MIN(name, (unsigned)WFS_WIDE_ESCAPE);
	}
	for (unsigned i = 0; i < pool->nr_tables; i++) {
		table_expand(pool->freq[i], &p->table[i]);
		wfs_wide_table_costs(pool, i, s.word, p->escape, p->cost[i]);
	}
	return p;
}

void wfs_wide_encode_pool_free(struct wfs_wide_encode_pool *pool)
{
	free(pool);
}
