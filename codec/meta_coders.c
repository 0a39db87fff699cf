/* meta_coders.c - the parts of the metadata that say how blocks are decoded: pools, wide pools, grids, and the coders
 * that name them (FORMAT.md 1.4, 2.3, 3.1, 4.1), checked and made ready.
 */
#include "meta.h"

enum wfs_status wfs_meta_parse_pools(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_reader *r = m->reader;
	size_t used, at = 0, room = 0;
	const char *reason = NULL;
	struct wfs_pool pool;
	enum wfs_status status;

	for (; at < body->len; at += used) {
		if (r->nr_pools == WFS_MAX_POOLS)
			return wfs_meta_bad(m, "too many pools");
		status = wfs_pool_parse(body->bytes + at, body->len - at, &pool, &used, &reason);
		if (status != WFS_OK)
			return wfs_fail(m->err, status, reason);
		if (r->nr_pools == room) {
			struct wfs_decode_pool **grown;

			room = WFS_MAX((size_t)8, room * 2);
			grown = realloc(r->pool, room * sizeof(*grown));
			if (!grown)
				return wfs_meta_no_memory(m);
			r->pool = grown;
		}
		r->pool[r->nr_pools] = wfs_decode_pool_new(&pool);
		if (!r->pool[r->nr_pools])
			return wfs_meta_no_memory(m);
		r->nr_pools++;
		r->memory_bytes += sizeof(*r->pool) + offsetof(struct wfs_decode_pool, table) +
				   pool.nr_tables * sizeof(struct wfs_decode_table);
	}
	return WFS_OK;
}

enum wfs_status wfs_meta_parse_wide_pools(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_reader *r = m->reader;
	const char *reason = NULL;
	struct wfs_wide_pool pool;
	enum wfs_status status;
	size_t used;

	r->wide_pool = wfs_reader_alloc(r, WFS_MAX_WIDE_POOLS, sizeof(struct wfs_wide_decode_pool *));
	if (!r->wide_pool)
		return wfs_meta_no_memory(m);
	for (size_t at = 0; at < body->len; at += used) {
		if (r->nr_wide_pools == WFS_MAX_WIDE_POOLS)
			return wfs_meta_bad(m, "too many wide pools");
		status = wfs_wide_pool_parse(body->bytes + at, body->len - at, &pool, &used, &reason);
		if (status != WFS_OK)
			return wfs_fail(m->err, status, reason);
		r->wide_pool[r->nr_wide_pools] = wfs_wide_decode_pool_new(&pool);
		if (!r->wide_pool[r->nr_wide_pools])
			return wfs_meta_no_memory(m);
		r->nr_wide_pools++;
		r->memory_bytes += wfs_wide_decode_pool_bytes(pool.nr_tables);
	}
	return WFS_OK;
}

enum wfs_status wfs_meta_parse_grids(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_reader *r = m->reader;
	size_t used, at = 0, room = 0;
	const char *reason = NULL;
	struct wfs_grid grid;
	enum wfs_status status;

	for (; at < body->len; at += used) {
		if (r->nr_grids == WFS_MAX_GRIDS)
			return wfs_meta_bad(m, "too many grids");
		status = wfs_grid_parse(body->bytes + at, body->len - at, &grid, &used, &reason);
		if (status != WFS_OK)
			return wfs_fail(m->err, status, reason);
		if (r->nr_grids == room) {
			struct wfs_grid_values *grown;

			room = WFS_MAX((size_t)1, room * 2);
			grown = realloc(r->grid, room * sizeof(*grown));
			if (!grown)
				return wfs_meta_no_memory(m);
			r->grid = grown;
		}
		wfs_grid_values_make(&grid, &r->grid[r->nr_grids++]);
	}
	r->memory_bytes += room * sizeof(*r->grid);
	return WFS_OK;
}

/* Bytes of a word, and where records have borders. */
static bool word_valid(const struct wfs_disk_coder *d)
{
	static const u8 none[WFS_MAX_BORDERS];
	struct wfs_records r = {.bytes = d->word};

	memcpy(r.border, d->border, sizeof(r.border));
	if (d->coding == WFS_RECORDS)
		return wfs_records_valid(&r);
	if (memcmp(d->border, none, sizeof(none)) != 0)
		return false;
	return d->word == 1 || (d->coding > WFS_LZ4 && (d->word == 2 || d->word == 4 || d->word == 8));
}

static enum wfs_status check_coder(const struct wfs_meta *m, const struct wfs_disk_coder *d)
{
	const struct wfs_reader *r = m->reader;
	const bool grid = wfs_coding_is_grid(d->coding), wide = wfs_coding_is_wide(d->coding);
	const bool split = wide || wfs_coding_is_split(d->coding);
	const unsigned bits = 8 * (grid || d->coding == WFS_RECORDS ? 1u : d->word);

	if (d->coding > WFS_RECORDS)
		return wfs_fail(m->err, WFS_UNSUPPORTED, "a coder has a coding this version does not know");
	if (!word_valid(d) || (!grid && d->grid))
		return wfs_meta_bad(m, "a coder is not valid");
	if (!split && (d->rot || d->field || d->pool))
		return wfs_meta_bad(m, "a coder is not valid");
	if (grid && (d->grid >= r->nr_grids || wfs_grid_word_bytes(r->grid[d->grid].output) != d->word))
		return wfs_meta_bad(m, "a coder's grid does not fit");
	if (split && (d->rot > 1 || d->field < 1 || d->field > WFS_MAX_FIELD))
		return wfs_meta_bad(m, "a coder's split is not valid");
	/* Only the wide coding takes bytes as a whole. */
	if (split && d->field >= bits && !(wide && d->field == bits && !d->rot))
		return wfs_meta_bad(m, "a coder's split is not valid");
	if (wide && (d->pool >= r->nr_wide_pools || r->wide_pool[d->pool]->field != d->field))
		return wfs_meta_bad(m, "a coder's wide pool does not fit");
	if (split && !wide && (d->pool >= r->nr_pools || r->pool[d->pool]->field != d->field))
		return wfs_meta_bad(m, "a coder's pool does not fit");
	return WFS_OK;
}

enum wfs_status wfs_meta_parse_coders(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_cursor c = wfs_cursor_make(body->bytes, body->len);
	struct wfs_reader *r = m->reader;
	struct wfs_disk_coder d;
	bool uses_grids = false, uses_wide_pools = false;

	if (body->len / sizeof(d) > WFS_MAX_CODERS)
		return wfs_meta_bad(m, "too many coders");
	r->coder = wfs_reader_alloc(r, body->len / sizeof(d), sizeof(*r->coder));
	if (!r->coder)
		return wfs_meta_no_memory(m);
	for (; wfs_cursor_copy(&c, &d, sizeof(d)); r->nr_coders++) {
		enum wfs_status status = check_coder(m, &d);

		if (status != WFS_OK)
			return status;
		r->coder[r->nr_coders] = (struct wfs_coder){d.coding, d.word, d.rot, d.field, d.pool, d.grid, {0}};
		memcpy(r->coder[r->nr_coders].border, d.border, sizeof(d.border));
		uses_grids |= wfs_coding_is_grid(d.coding);
		uses_wide_pools |= wfs_coding_is_wide(d.coding);
	}
	if (m->section[WFS_SECTION_GRIDS].comp && !uses_grids)
		return wfs_meta_bad(m, "no coder uses the grids");
	if (m->section[WFS_SECTION_WIDE_POOLS].comp && !uses_wide_pools)
		return wfs_meta_bad(m, "no coder uses the wide pools");
	return WFS_OK;
}
