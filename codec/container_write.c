/* container_write.c - metadata, head and copies around the payload (FORMAT.md 1.1, 1.2).
 *
 * The head is written last: a file that was not finished has none and is no container.
 */
#include "container_write.h"
#include "checksum.h"
#include "file_io.h"

#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>

enum { LZ4_LEVEL = 9 };

bool wfs_columns_new(struct wfs_columns *columns, u64 nr_blocks, bool sha256)
{
	*columns = (struct wfs_columns){
		calloc(nr_blocks + 1, sizeof(u32)),
		calloc(nr_blocks + 1, sizeof(u16)),
		calloc(nr_blocks + 1, sizeof(u64)),
		sha256 ? calloc(nr_blocks + 1, WFS_SHA256_BYTES) : NULL,
	};
	return columns->comp_len && columns->selector && columns->hash && (!sha256 || columns->sha256);
}

void wfs_columns_free(struct wfs_columns *columns)
{
	free(columns->comp_len);
	free(columns->selector);
	free(columns->hash);
	free(columns->sha256);
}

/* ---- sections ---- */

struct section {
	struct wfs_disk_section entry;
	u8 *body;
};

/* Takes raw over and compresses it when that helps. */
static bool section_set(struct section *s, enum wfs_section_kind kind, u8 *raw, u64 raw_len, bool may_compress)
{
	u8 *comp;
	void *state;
	int comp_len = 0;
	bool good;

	s->entry = (struct wfs_disk_section){
		.kind = (u16)kind, .coding = WFS_STORED, .comp_len = raw_len, .raw_len = raw_len};
	s->body = raw;
	if (!raw)
		return false;
	if (!may_compress || raw_len < 2 || raw_len > WFS_LZ4_MAX_RAW)
		return true;
	/* LZ4's own allocation would fail silently, and the same metadata would come out longer than its bound. */
	state = malloc((size_t)LZ4_sizeofStateHC());
	comp = malloc((size_t)raw_len);
	if (state && comp)
		comp_len = LZ4_compress_HC_extStateHC(state, (const char *)raw, (char *)comp, (int)raw_len,
						      (int)raw_len - 1, LZ4_LEVEL);
	good = state && comp;
	if (comp_len > 0) {
		s->entry.coding = WFS_LZ4;
		s->entry.comp_len = (u64)comp_len;
		s->body = comp;
		comp = raw;
	}
	free(comp);
	free(state);
	return good;
}

static bool set_regions(struct section *s, const struct wfs_plan *plan)
{
	u64 len = plan->nr_regions * sizeof(*plan->region);
	u8 *raw = malloc(len + 1);

	if (raw)
		memcpy(raw, plan->region, len);
	return section_set(s, WFS_SECTION_REGIONS, raw, len, true);
}

static bool set_coders(struct section *s, const struct wfs_plan *plan)
{
	struct wfs_disk_coder *d = calloc(plan->nr_coders, sizeof(*d));

	for (u32 i = 0; d && i < plan->nr_coders; i++) {
		const struct wfs_coder *c = &plan->coder[i];

		d[i] = (struct wfs_disk_coder){c->coding, c->word, c->rot, c->field, c->pool, c->grid, {0}};
		memcpy(d[i].border, c->border, sizeof(d[i].border));
	}
	return section_set(s, WFS_SECTION_CODERS, (u8 *)d, plan->nr_coders * sizeof(*d), true);
}

static bool set_pools(struct section *s, const struct wfs_plan *plan)
{
	u8 *raw = malloc((size_t)plan->nr_pools * WFS_POOL_MAX_BYTES + 1);
	size_t len = 0;

	for (u32 i = 0; raw && i < plan->nr_pools; i++)
		len += wfs_pool_write(&plan->pool[i], raw + len);
	return section_set(s, WFS_SECTION_POOLS, raw, len, false);
}

static bool set_wide_pools(struct section *s, const struct wfs_plan *plan)
{
	u8 *raw = malloc((size_t)plan->nr_wide_pools * WFS_WIDE_POOL_MAX_BYTES + 1);
	size_t len = 0;

	for (u32 i = 0; raw && i < plan->nr_wide_pools; i++)
		len += wfs_wide_pool_write(&plan->wide_pool[i], raw + len);
	return section_set(s, WFS_SECTION_WIDE_POOLS, raw, len, false);
}

static bool set_grids(struct section *s, const struct wfs_plan *plan)
{
	u8 *raw = malloc((size_t)plan->nr_grids * WFS_GRID_MAX_BYTES + 1);
	size_t len = 0;

	for (u32 i = 0; raw && i < plan->nr_grids; i++)
		len += wfs_grid_write(&plan->grid[i], raw + len);
	return section_set(s, WFS_SECTION_GRIDS, raw, len, true);
}

static bool set_lengths(struct section *s, const struct wfs_columns *columns, u64 nr)
{
	u8 *raw = malloc(nr * WFS_LENGTH_PLANES + 1);

	for (u64 i = 0; raw && i < nr; i++)
		for (unsigned plane = 0; plane < WFS_LENGTH_PLANES; plane++)
			raw[plane * nr + i] = (u8)(columns->comp_len[i] >> 8 * plane);
	return section_set(s, WFS_SECTION_LENGTHS, raw, nr * WFS_LENGTH_PLANES, true);
}

static bool set_selectors(struct section *s, const struct wfs_columns *columns, u64 nr)
{
	u8 *raw = malloc(nr * WFS_SELECTOR_PLANES + 1);

	for (u64 i = 0; raw && i < nr; i++)
		for (unsigned plane = 0; plane < WFS_SELECTOR_PLANES; plane++)
			raw[plane * nr + i] = (u8)(columns->selector[i] >> 8 * plane);
	return section_set(s, WFS_SECTION_SELECTORS, raw, nr * WFS_SELECTOR_PLANES, true);
}

static bool set_hashes(struct section *s, const struct wfs_columns *columns, u64 nr)
{
	u8 *raw = malloc(nr * WFS_HASH_BYTES + 1);

	if (raw)
		memcpy(raw, columns->hash, nr * WFS_HASH_BYTES);
	return section_set(s, WFS_SECTION_HASHES, raw, nr * WFS_HASH_BYTES, false);
}

static bool set_sha256(struct section *s, const struct wfs_columns *columns, u64 nr)
{
	u8 *raw = malloc(nr * WFS_SHA256_BYTES + 1);

	if (raw)
		memcpy(raw, columns->sha256, nr * WFS_SHA256_BYTES);
	return section_set(s, WFS_SECTION_SHA256, raw, nr * WFS_SHA256_BYTES, false);
}

/* ---- metadata ---- */

enum { NR_COLUMNS = 3, MAX_SECTIONS = 9 };

static u64 directory_len(int nr_sections)
{
	return sizeof(struct wfs_disk_meta) + (u64)nr_sections * sizeof(struct wfs_disk_section);
}

static u64 bodies_len(const struct section *s, int nr)
{
	u64 len = 0;

	for (int i = 0; i < nr; i++)
		len += s[i].entry.comp_len;
	return len;
}

static void sections_free(struct section *s, int nr)
{
	for (int i = 0; i < nr; i++)
		free(s[i].body);
}

/* The sections that the plan alone decides: those before the columns and those behind. */
static bool set_front(struct section *s, const struct wfs_plan *plan, int *nr)
{
	return set_regions(&s[(*nr)++], plan) && set_coders(&s[(*nr)++], plan) && set_pools(&s[(*nr)++], plan);
}
static bool set_back(struct section *s, const struct wfs_plan *plan, int *nr)
{
	return (!plan->nr_grids || set_grids(&s[(*nr)++], plan)) &&
	       (!plan->nr_wide_pools || set_wide_pools(&s[(*nr)++], plan));
}

static bool set_columns(struct section *s, const struct wfs_columns *columns, u64 nr_blocks, int *nr)
{
	return set_lengths(&s[(*nr)++], columns, nr_blocks) && set_selectors(&s[(*nr)++], columns, nr_blocks) &&
	       set_hashes(&s[(*nr)++], columns, nr_blocks) &&
	       (!columns->sha256 || set_sha256(&s[(*nr)++], columns, nr_blocks));
}

enum wfs_status wfs_meta_bound(const struct wfs_plan *plan, bool sha256, u64 *meta_len_ret, struct wfs_error *err)
{
	const u64 block_bytes =
		WFS_LENGTH_PLANES + WFS_SELECTOR_PLANES + WFS_HASH_BYTES + (sha256 ? WFS_SHA256_BYTES : 0);
	struct section s[MAX_SECTIONS] = {0};
	int nr = 0;
	bool good = set_front(s, plan, &nr) && set_back(s, plan, &nr);

	if (good)
		*meta_len_ret =
			directory_len(nr + NR_COLUMNS + sha256) + bodies_len(s, nr) + plan->nr_blocks * block_bytes;
	sections_free(s, nr);
	return good ? WFS_OK : wfs_fail(err, WFS_NO_MEMORY, "out of memory for the metadata");
}

/* The metadata, zeros behind it up to room bytes. The caller frees it. */
static u8 *meta_build(const struct wfs_plan *plan, const struct wfs_columns *columns, u64 room, u64 *meta_len_ret)
{
	struct section s[MAX_SECTIONS] = {0};
	struct wfs_disk_meta start = {0};
	u8 *meta = NULL;
	u64 len, at;
	int nr = 0;

	if (!set_front(s, plan, &nr) || !set_columns(s, columns, plan->nr_blocks, &nr) || !set_back(s, plan, &nr))
		goto out;
	at = directory_len(nr);
	len = at + bodies_len(s, nr);
	meta = calloc(1, (size_t)WFS_MAX(len, room));
	if (!meta)
		goto out;
	start.nr_sections = (u32)nr;
	memcpy(meta, &start, sizeof(start));
	for (int i = 0; i < nr; i++) {
		memcpy(meta + sizeof(start) + i * sizeof(s[i].entry), &s[i].entry, sizeof(s[i].entry));
		memcpy(meta + at, s[i].body, (size_t)s[i].entry.comp_len);
		at += s[i].entry.comp_len;
	}
	*meta_len_ret = len;
out:
	sections_free(s, nr);
	return meta;
}

/* ---- the file ---- */

static enum wfs_status write_at(const struct wfs_container_writer *w, const void *buf, size_t len, u64 off,
				struct wfs_error *err)
{
	int sys_errno = wfs_pwrite_full(w->fd, buf, len, off);

	return sys_errno ? wfs_fail_io(err, sys_errno, "cannot write the container") : WFS_OK;
}

enum wfs_status wfs_container_start(struct wfs_container_writer *w, int fd, const struct wfs_plan *plan, bool sha256,
				    struct wfs_error *err)
{
	u64 reserved;
	enum wfs_status status = wfs_meta_bound(plan, sha256, &reserved, err);

	if (status == WFS_OK)
		*w = (struct wfs_container_writer){fd, plan, WFS_HEAD_BYTES + reserved, 0};
	return status;
}

enum wfs_status wfs_container_append(struct wfs_container_writer *w, const void *comp, size_t comp_len,
				     struct wfs_error *err)
{
	enum wfs_status status = write_at(w, comp, comp_len, w->payload_off + w->payload_len, err);

	if (status == WFS_OK)
		w->payload_len += comp_len;
	return status;
}

enum wfs_status wfs_container_frame(const struct wfs_container_writer *w, struct wfs_disk_head *d, const u8 *meta,
				    struct wfs_error *err)
{
	u64 reserved = w->payload_off - WFS_HEAD_BYTES, copy_b = w->payload_off + w->payload_len;
	enum wfs_status status;

	memcpy(d->magic, wfs_magic, sizeof(d->magic));
	d->major = WFS_MAJOR;
	d->minor = WFS_MINOR;
	d->file_len = copy_b + d->meta_len + WFS_HEAD_BYTES;
	d->payload_off = w->payload_off;
	d->payload_len = w->payload_len;
	d->meta_xxh = wfs_hash64(WFS_CPU_SCALAR, meta, (size_t)d->meta_len);
	d->head_xxh = wfs_hash64(WFS_CPU_SCALAR, d, offsetof(struct wfs_disk_head, head_xxh));
	status = write_at(w, meta, (size_t)d->meta_len, copy_b, err);
	if (status == WFS_OK)
		status = write_at(w, d, sizeof(*d), copy_b + d->meta_len, err);
	if (status == WFS_OK)
		status = write_at(w, meta, (size_t)reserved, WFS_HEAD_BYTES, err);
	if (status == WFS_OK)
		status = write_at(w, d, sizeof(*d), 0, err);
	return status;
}

enum wfs_status wfs_container_finish(struct wfs_container_writer *w, const struct wfs_columns *columns,
				     const struct wfs_encode_opts *opts, const u8 sha256[WFS_SHA256_BYTES],
				     u64 *file_len_ret, struct wfs_error *err)
{
	u64 meta_len = 0, reserved = w->payload_off - WFS_HEAD_BYTES;
	u8 *meta = meta_build(w->plan, columns, reserved, &meta_len);
	struct wfs_disk_head d = {
		.raw_len = w->plan->raw_len,
		.mtime_sec = opts->mtime_sec,
		.mtime_nsec = opts->mtime_nsec,
		.block_log2 = (u8)w->plan->block_log2,
		.meta_len = meta_len,
	};
	enum wfs_status status;

	if (!meta)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the metadata");
	memcpy(d.sha256, sha256, sizeof(d.sha256));
	status = meta_len > reserved ? wfs_fail(err, WFS_BUG, "the metadata is larger than its bound")
				     : wfs_container_frame(w, &d, meta, err);
	*file_len_ret = d.file_len;
	free(meta);
	return status;
}
