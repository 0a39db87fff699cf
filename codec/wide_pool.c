/* wide_pool.c - pools of the wide coding: from and to bytes (FORMAT.md 4.1), and made ready for decoding.
 *
 * wfs_wide_pool_parse is the only way in for pools from disk. That the slots of a table are covered exactly, which
 * every decoder relies on, is established here.
 */
#include "cursor.h"
#include "wide.h"

#include <stdlib.h>

/* One frequency, 0..4095, or -1. */
static int parse_frequency(struct wfs_cursor *c)
{
	const u8 *low = wfs_cursor_take(c, 1), *high;

	if (!low || *low < 128)
		return low ? *low : -1;
	high = wfs_cursor_take(c, 1);
	if (!high || !*high || *high >= WFS_WIDE_SLOTS / 128)
		return -1;
	return (*low & 127) | *high << 7;
}

static const char *parse_table(struct wfs_cursor *c, unsigned field, u16 freq[WFS_WIDE_NAMES])
{
	const unsigned nr_names = WFS_MIN(1u << field, (unsigned)WFS_WIDE_ESCAPE);
	const u8 *p = wfs_cursor_take(c, 2);
	unsigned sum = 0;

	if (!p)
		return "wide pool is cut short";
	if (!p[1] || (unsigned)p[0] + p[1] > nr_names)
		return "wide table header is not valid";
	memset(freq, 0, WFS_WIDE_NAMES * sizeof(freq[0]));
	for (unsigned i = 0; i <= p[1]; i++) {
		const int f = parse_frequency(c);

		if (f < 0)
			return "wide table frequency is not valid";
		freq[i < p[1] ? p[0] + i : WFS_WIDE_ESCAPE] = (u16)f;
		sum += (unsigned)f;
	}
	return sum == WFS_WIDE_SLOTS ? NULL : "wide table frequencies do not sum up to 4096";
}

/* Field values: inside the field, no two the same. */
static bool parse_tail(const u8 *comp, unsigned nr, unsigned field, u16 *tail)
{
	u8 seen[(1 << WFS_MAX_FIELD) / 8] = {0};

	for (unsigned i = 0; i < nr; i++) {
		const unsigned v = wfs_load16(comp + 2 * i);

		if (v >> field || (seen[v >> 3] >> (v & 7) & 1))
			return false;
		seen[v >> 3] |= (u8)(1 << (v & 7));
		tail[i] = (u16)v;
	}
	return true;
}

enum wfs_status wfs_wide_pool_parse(const u8 *comp, size_t comp_len, struct wfs_wide_pool *pool_ret, size_t *used_ret,
				    const char **reason_ret)
{
	struct wfs_cursor c = wfs_cursor_make(comp, comp_len);
	const u8 *p = wfs_cursor_take(&c, WFS_WIDE_POOL_HEADER), *tail;
	const char *reason = "wide pool is cut short";

	if (!p)
		goto out;
	*pool_ret = (struct wfs_wide_pool){.nr_tables = p[0], .field = p[1], .ntail = p[2], .base = wfs_load16(p + 4)};
	reason = "wide pool header is not valid";
	if (p[0] < 1 || p[0] > WFS_WIDE_MAX_TABLES || p[1] < 1 || p[1] > WFS_MAX_FIELD || p[3] ||
	    pool_ret->base >> p[1])
		goto out;
	tail = wfs_cursor_take(&c, 2u * p[2]);
	reason = "wide pool is cut short";
	if (!tail)
		goto out;
	reason = "wide pool tail value is not valid";
	if (!parse_tail(tail, p[2], p[1], pool_ret->tail))
		goto out;
	reason = NULL;
	for (unsigned i = 0; i < p[0] && !reason; i++)
		reason = parse_table(&c, p[1], pool_ret->freq[i]);
out:
	if (reason)
		*reason_ret = reason;
	else
		*used_ret = comp_len - c.left;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

static u8 *write_frequency(unsigned f, u8 *out)
{
	if (f < 128) {
		*out++ = (u8)f;
		return out;
	}
	*out++ = (u8)(128 | f);
	*out++ = (u8)(f >> 7);
	return out;
}

static u8 *write_table(const u16 freq[WFS_WIDE_NAMES], u8 *out)
{
	unsigned first = 0, end = WFS_WIDE_ESCAPE;

	while (!freq[first])
		first++;
	while (!freq[end - 1])
		end--;
	*out++ = (u8)first;
	*out++ = (u8)(end - first);
	for (unsigned i = first; i < end; i++)
		out = write_frequency(freq[i], out);
	return write_frequency(freq[WFS_WIDE_ESCAPE], out);
}

size_t wfs_wide_pool_write(const struct wfs_wide_pool *pool, u8 *out)
{
	u8 *p = out;

	*p++ = pool->nr_tables;
	*p++ = pool->field;
	*p++ = pool->ntail;
	*p++ = 0;
	wfs_store16(p, pool->base);
	p += 2;
	for (unsigned i = 0; i < pool->ntail; i++, p += 2)
		wfs_store16(p, pool->tail[i]);
	for (unsigned i = 0; i < pool->nr_tables; i++)
		p = write_table(pool->freq[i], p);
	return (size_t)(p - out);
}

static void expand_table(const u16 freq[WFS_WIDE_NAMES], struct wfs_wide_decode_table *t)
{
	u32 first = 0;

	for (u32 name = 0; name < WFS_WIDE_NAMES; first += freq[name++]) {
		memset(t->name + first, (int)name, freq[name]);
		t->entry[name] = freq[name] ? name | (u32)freq[name] << 8 | first << 20 : 0;
	}
}

struct wfs_wide_decode_pool *wfs_wide_decode_pool_new(const struct wfs_wide_pool *pool)
{
	struct wfs_wide_decode_pool *d =
		aligned_alloc(_Alignof(struct wfs_wide_decode_pool), wfs_wide_decode_pool_bytes(pool->nr_tables));

	if (!d)
		return NULL;
	memset(d, 0, sizeof(*d));
	d->nr_tables = pool->nr_tables;
	d->field = pool->field;
	d->base = pool->base;
	d->number_bits = (u8)wfs_wide_number_bits(pool->nr_tables);
	for (unsigned i = 0; i < pool->ntail; i++)
		d->tail_top[i] = (u16)(pool->tail[i] << (16 - pool->field));
	for (unsigned i = 0; i < pool->nr_tables; i++)
		expand_table(pool->freq[i], &d->table[i]);
	return d;
}
