/* table.c - pools of probability tables: from and to bytes (FORMAT.md 2.3), and made ready for decoding.
 *
 * wfs_pool_parse is the only way in for tables from disk: everything the decoders rely on (slots covered exactly,
 * symbols below m, the bucket rule) is established here.
 */
#include "cursor.h"
#include "split.h"

#include <stdlib.h>

/* Field values: inside the field, no two the same within a table. seen: one bit a field value. */
static bool parse_values(const u8 *comp, unsigned nr, unsigned field, u8 *seen, u16 *value_ret)
{
	for (unsigned i = 0; i < nr; i++) {
		unsigned v = wfs_load16(comp + 2 * i);

		if (v >> field || (seen[v >> 3] >> (v & 7) & 1))
			return false;
		seen[v >> 3] |= (u8)(1 << (v & 7));
		value_ret[i] = (u16)v;
	}
	return true;
}

/* The runs' rules; fills run_len, run_sym and freq. */
static const char *parse_runs(const u8 *comp, struct wfs_table *t)
{
	unsigned start = 0, bucket_starts[16] = {0};
	u8 nr_runs_of[WFS_MAX_SYMS] = {0};

	for (unsigned i = 0; i < t->nrun; i++) {
		unsigned len = comp[2 * i], sym = comp[2 * i + 1];

		if (!len || sym >= t->m || start + len > 256)
			return "table run is not valid";
		if (start % 16 && ++bucket_starts[start / 16] > 3)
			return "table breaks the bucket rule";
		if (++nr_runs_of[sym] > (sym == t->m - 1u ? 1 : 2))
			return "table symbol owns too many runs";
		t->run_len[i] = (u8)len;
		t->run_sym[i] = (u8)sym;
		t->freq[sym] = (u8)(t->freq[sym] + len); /* < 256: another symbol has a run */
		start += len;
	}
	if (start != 256)
		return "table runs do not sum up to 256";
	for (unsigned sym = 0; sym < t->m; sym++) {
		if (!nr_runs_of[sym])
			return "table symbol owns no run";
	}
	return NULL;
}

static const char *parse_table(struct wfs_cursor *c, unsigned field, struct wfs_table *t)
{
	u8 seen[(1 << WFS_MAX_FIELD) / 8] = {0};
	const u8 *p = wfs_cursor_take(c, 4);

	if (!p)
		return "pool is cut short";
	t->m = p[0];
	t->ntail = p[1];
	t->nrun = p[2];
	if (t->m < 2 || t->m > WFS_MAX_SYMS || t->ntail > WFS_MAX_TAIL || t->nrun < t->m || t->nrun > WFS_MAX_RUNS ||
	    p[3])
		return "table header is not valid";
	p = wfs_cursor_take(c, 2u * (t->m - 1u));
	if (!p)
		return "pool is cut short";
	if (!parse_values(p, t->m - 1u, field, seen, t->val))
		return "table value is not valid";
	p = wfs_cursor_take(c, 2u * t->ntail);
	if (!p)
		return "pool is cut short";
	if (!parse_values(p, t->ntail, field, seen, t->tail))
		return "table tail value is not valid";
	p = wfs_cursor_take(c, 2u * t->nrun);
	if (!p)
		return "pool is cut short";
	return parse_runs(p, t);
}

enum wfs_status wfs_pool_parse(const u8 *comp, size_t comp_len, struct wfs_pool *pool_ret, size_t *used_ret,
			       const char **reason_ret)
{
	struct wfs_cursor c = wfs_cursor_make(comp, comp_len);
	struct wfs_pool pool = {0};
	const u8 *p = wfs_cursor_take(&c, 4);
	const char *reason = NULL;

	if (!p) {
		reason = "pool is cut short";
		goto out;
	}
	pool.nr_tables = p[0];
	pool.seg_log2 = p[1];
	pool.field = p[2];
	if (pool.nr_tables < 1 || pool.nr_tables > WFS_MAX_TABLES || pool.seg_log2 < 9 || pool.seg_log2 > 13 ||
	    pool.field < 1 || pool.field > WFS_MAX_FIELD || p[3]) {
		reason = "pool header is not valid";
		goto out;
	}
	for (unsigned i = 0; i < pool.nr_tables && !reason; i++)
		reason = parse_table(&c, pool.field, &pool.table[i]);
out:
	if (reason) {
		*reason_ret = reason;
		return WFS_BAD_DATA;
	}
	*pool_ret = pool;
	*used_ret = comp_len - c.left;
	return WFS_OK;
}

static u8 *write_table(const struct wfs_table *t, u8 *out)
{
	*out++ = t->m;
	*out++ = t->ntail;
	*out++ = t->nrun;
	*out++ = 0;
	for (unsigned i = 0; i + 1 < t->m; i++, out += 2)
		wfs_store16(out, t->val[i]);
	for (unsigned i = 0; i < t->ntail; i++, out += 2)
		wfs_store16(out, t->tail[i]);
	for (unsigned i = 0; i < t->nrun; i++) {
		*out++ = t->run_len[i];
		*out++ = t->run_sym[i];
	}
	return out;
}

size_t wfs_pool_write(const struct wfs_pool *pool, u8 *out)
{
	u8 *p = out;

	*p++ = pool->nr_tables;
	*p++ = pool->seg_log2;
	*p++ = pool->field;
	*p++ = 0;
	for (unsigned i = 0; i < pool->nr_tables; i++)
		p = write_table(&pool->table[i], p);
	return (size_t)(p - out);
}

/* A field value as the top 16 bits of a rotated word. */
static unsigned field_top16(unsigned field, unsigned value)
{
	return value << (16 - field);
}

/* The 16-slot buckets of d->run: slot s belongs to run bucket[s / 16] - WFS_BUCKET_BIAS + the number of thresholds
 * below s. Compares are signed in AVX2, hence the bias of 128: slot >= start <=> slot - 128 > start - 1 - 128. */
static void fill_buckets(const u16 *run_start, struct wfs_decode_table *d)
{
	for (unsigned b = 0; b < 16; b++) {
		unsigned run = d->run[16 * b] & 0x7f, end = 16 * b + 16;

		d->bucket[b] = (u8)(run + WFS_BUCKET_BIAS);
		for (unsigned i = 0; i < 3; i++) {
			bool inside = run + 1 < d->nrun && run_start[run + 1] < end;

			if (inside)
				run++;
			d->start[i][b] = (int8_t)(inside ? run_start[run] - 1 - 128 : 127);
		}
	}
}

static void expand_table(const struct wfs_table *t, unsigned field, struct wfs_decode_table *d)
{
	u16 run_start[WFS_MAX_RUNS];
	u8 slots_before[WFS_MAX_SYMS] = {0};
	unsigned start = 0;

	memset(d, 0, sizeof(*d));
	d->nrun = t->nrun;
	for (unsigned i = 0; i < t->nrun; i++) {
		unsigned sym = t->run_sym[i], len = t->run_len[i];
		bool escape = sym == t->m - 1u;
		unsigned top = escape ? 0 : field_top16(field, t->val[sym]);

		run_start[i] = (u16)start;
		d->freq[i] = t->freq[sym];
		d->c[i] = (u8)(start - slots_before[sym]);
		d->hi[i] = (u8)(top >> 8);
		d->lo[i] = (u8)top;
		if (escape)
			d->escape_run = (u8)(i + WFS_BUCKET_BIAS);
		memset(d->run + start, (int)(escape ? i | 0x80 : i), len);
		slots_before[sym] = (u8)(slots_before[sym] + len);
		start += len;
	}
	for (unsigned i = 0; i < t->ntail; i++) {
		d->tail_top[i] = (u16)field_top16(field, t->tail[i]);
		d->hi[WFS_TAIL_BASE + i] = (u8)(d->tail_top[i] >> 8);
		d->lo[WFS_TAIL_BASE + i] = (u8)d->tail_top[i];
	}
	/* freq * H + rank < 256 <=> H <= (255 - rank) / freq */
	for (unsigned slot = 0; slot < 256; slot++) {
		unsigned run = d->run[slot] & 0x7f, rank = (u8)(slot - d->c[run]);

		d->refill[slot] = (u8)((255 - rank) / d->freq[run]);
	}
	fill_buckets(run_start, d);
}

struct wfs_decode_pool *wfs_decode_pool_new(const struct wfs_pool *pool)
{
	/* sizes are multiples of the alignment, as aligned_alloc wants */
	size_t bytes = offsetof(struct wfs_decode_pool, table) + pool->nr_tables * sizeof(struct wfs_decode_table);
	struct wfs_decode_pool *d = aligned_alloc(_Alignof(struct wfs_decode_pool), bytes);

	if (!d)
		return NULL;
	memset(d, 0, offsetof(struct wfs_decode_pool, table));
	d->nr_tables = pool->nr_tables;
	d->seg_log2 = pool->seg_log2;
	d->field = pool->field;
	for (unsigned i = 0; i < pool->nr_tables; i++)
		expand_table(&pool->table[i], pool->field, &d->table[i]);
	return d;
}
