/* meta_read.c - check the metadata against every rule of FORMAT.md 1.2 to 1.5 and turn it into look-up tables.
 *
 * After this the read path has nothing left to check but payloads. Time and memory are bounded by the metadata's own
 * size: the block hashes and the pools are stored bytes, LZ4 sections expand at most 255 times, and there are not many
 * more regions than hashes.
 */
#include "meta.h"

#include <lz4.h>

/* ---- sections ---- */

static enum wfs_status parse_directory(struct wfs_meta *m, struct wfs_cursor c)
{
	struct wfs_disk_meta d;
	struct wfs_cursor directory;
	const u8 *entries;
	int last_kind = -1;

	if (!wfs_cursor_copy(&c, &d, sizeof(d)) || d.zero || d.nr_sections < 1 || d.nr_sections > WFS_MAX_SECTIONS)
		return wfs_meta_bad(m, "the metadata's start is not valid");
	entries = wfs_cursor_take(&c, d.nr_sections * (u64)sizeof(struct wfs_disk_section));
	if (!entries)
		return wfs_meta_bad(m, "the list of sections is cut off");
	directory = wfs_cursor_make(entries, d.nr_sections * sizeof(struct wfs_disk_section));
	for (u32 i = 0; i < d.nr_sections; i++) {
		struct wfs_disk_section s;
		const u8 *comp;

		if (!wfs_cursor_copy(&directory, &s, sizeof(s)))
			return wfs_meta_bad(m, "the list of sections is cut off");
		comp = wfs_cursor_take(&c, s.comp_len);
		if (s.zero || s.kind <= last_kind || !comp)
			return wfs_meta_bad(m, "a section's entry is not valid");
		last_kind = s.kind;
		if (s.kind >= WFS_SECTION_SKIPPED)
			continue;
		if (!s.kind || s.kind >= WFS_NR_SECTION_KINDS)
			return wfs_fail(m->err, WFS_UNSUPPORTED,
					"the metadata has a section this version does not know");
		if (s.coding != WFS_STORED && s.coding != WFS_LZ4)
			return wfs_fail(m->err, WFS_UNSUPPORTED, "a section has a coding this version does not know");
		m->section[s.kind] = (struct wfs_meta_section){comp, s.comp_len, s.raw_len, s.coding};
	}
	if (c.left)
		return wfs_meta_bad(m, "bytes follow the last section");
	for (int kind = WFS_SECTION_REGIONS; kind <= WFS_SECTION_HASHES; kind++)
		if (!m->section[kind].comp)
			return wfs_meta_bad(m, "a section is missing");
	return WFS_OK;
}

/* Give the raw bytes of a section; the caller frees body->owned. unit: the length is a multiple of it. */
static enum wfs_status open_section(const struct wfs_meta *m, int kind, size_t unit, struct wfs_meta_body *body)
{
	const struct wfs_meta_section *s = &m->section[kind];
	int got;

	if (s->raw_len % unit)
		return wfs_meta_bad(m, "a section's length is not a multiple of its entries'");
	if (s->coding == WFS_STORED) {
		if (s->raw_len != s->comp_len)
			return wfs_meta_bad(m, "a stored section's lengths differ");
		*body = (struct wfs_meta_body){s->comp, (size_t)s->raw_len, NULL};
		return WFS_OK;
	}
	/* comp_len is within the file: the product cannot overflow. */
	if (s->raw_len > WFS_LZ4_MAX_RAW || s->raw_len > WFS_LZ4_MAX_RATIO * s->comp_len || s->comp_len > INT32_MAX)
		return wfs_meta_bad(m, "a section claims to expand too much");
	body->owned = malloc(WFS_MAX((size_t)s->raw_len, (size_t)1));
	if (!body->owned)
		return wfs_meta_no_memory(m);
	got = LZ4_decompress_safe((const char *)s->comp, (char *)body->owned, (int)s->comp_len, (int)s->raw_len);
	if (got < 0 || (u64)got != s->raw_len)
		return wfs_meta_bad(m, "a section is not valid LZ4");
	body->bytes = body->owned;
	body->len = (size_t)s->raw_len;
	return WFS_OK;
}

/* ---- regions ---- */

/* The source of a copy ends at or before its region and meets no copy: counted with the prefix sums of the regions so
 * far, so that a list of copies costs n log n whatever they point at. */
static bool copy_valid(const struct wfs_reader *r, const struct wfs_disk_region *d)
{
	u64 end;
	const struct wfs_reader_region *first, *last;

	if (__builtin_add_overflow(d->arg, d->len, &end) || end > d->start)
		return false;
	first = &r->region[wfs_region_at(r, d->arg)];
	last = &r->region[wfs_region_at(r, end - 1)];
	return last->copies_before + (last->kind == WFS_REGION_COPY) == first->copies_before;
}

static enum wfs_status check_region(const struct wfs_meta *m, const struct wfs_disk_region *d, u64 expected_start)
{
	const struct wfs_reader *r = m->reader;
	bool coded = d->kind == WFS_REGION_CODED;

	if (d->kind < WFS_REGION_CODED || d->kind > WFS_REGION_COPY)
		return wfs_fail(m->err, WFS_UNSUPPORTED, "a region has a kind this version does not know");
	if (d->start != expected_start || !d->len || d->len > r->head.raw_len - expected_start)
		return wfs_meta_bad(m, "the regions do not cover the original exactly");
	if (d->zero0 || d->zero1 || d->phase >= (coded ? WFS_MAX_RECORD : 8))
		return wfs_meta_bad(m, "a region is not valid");
	if (coded ? d->coder >= r->nr_coders || d->arg : d->coder)
		return wfs_meta_bad(m, "a region's coder is not valid");
	if (d->kind == WFS_REGION_COPY && (d->phase || !copy_valid(r, d)))
		return wfs_meta_bad(m, "a copy's source is not valid");
	return WFS_OK;
}

static enum wfs_status parse_regions(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_cursor c = wfs_cursor_make(body->bytes, body->len);
	u64 nr = body->len / sizeof(struct wfs_disk_region), at = 0;
	struct wfs_reader *r = m->reader;
	struct wfs_disk_region d;
	u32 nr_copies = 0, nr_repeats = 0;

	if (nr > WFS_MAX_REGIONS)
		return wfs_meta_bad(m, "too many regions");
	r->region = wfs_reader_alloc(r, nr + 1, sizeof(*r->region));
	if (!r->region)
		return wfs_meta_no_memory(m);
	for (; wfs_cursor_copy(&c, &d, sizeof(d)); r->nr_regions++) {
		enum wfs_status status = check_region(m, &d, at);

		if (status != WFS_OK)
			return status;
		r->region[r->nr_regions] =
			(struct wfs_reader_region){at, d.arg, r->nr_blocks, nr_copies, d.coder, d.kind, d.phase};
		nr_copies += d.kind == WFS_REGION_COPY;
		nr_repeats += d.kind != WFS_REGION_CODED;
		if (nr_repeats > WFS_MAX_REPEATS)
			return wfs_meta_bad(m, "too many constant and copy regions");
		if (d.kind == WFS_REGION_CODED)
			r->nr_blocks += wfs_nr_blocks_of(at, d.len, r->head.block_log2);
		at += d.len;
	}
	if (at != r->head.raw_len)
		return wfs_meta_bad(m, "the regions do not cover the original exactly");
	r->region[nr] = (struct wfs_reader_region){.raw_off = at, .first_block = r->nr_blocks};
	return WFS_OK;
}

/* ---- block columns ---- */

/* Every column has exactly nr_blocks entries. The hashes are stored bytes: this also bounds nr_blocks by the file. */
static enum wfs_status check_columns(const struct wfs_meta *m)
{
	const struct wfs_meta_section *s = m->section;
	u64 nr = m->reader->nr_blocks;

	if (s[WFS_SECTION_HASHES].coding != WFS_STORED || s[WFS_SECTION_HASHES].raw_len % WFS_HASH_BYTES ||
	    s[WFS_SECTION_HASHES].raw_len / WFS_HASH_BYTES != nr)
		return wfs_meta_bad(m, "the column of hashes does not fit the regions");
	if (s[WFS_SECTION_LENGTHS].raw_len != nr * WFS_LENGTH_PLANES)
		return wfs_meta_bad(m, "the column of lengths does not fit the regions");
	if (s[WFS_SECTION_SELECTORS].raw_len != nr * WFS_SELECTOR_PLANES)
		return wfs_meta_bad(m, "the column of coders does not fit the regions");
	if (s[WFS_SECTION_SHA256].comp &&
	    (s[WFS_SECTION_SHA256].coding != WFS_STORED || s[WFS_SECTION_SHA256].comp_len != nr * WFS_SHA256_BYTES ||
	     s[WFS_SECTION_SHA256].raw_len != s[WFS_SECTION_SHA256].comp_len))
		return wfs_meta_bad(m, "the column of SHA-256 does not fit the regions");
	return WFS_OK;
}

static enum wfs_status parse_hashes(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_reader *r = m->reader;

	r->hash = wfs_reader_alloc(r, r->nr_blocks, sizeof(*r->hash));
	if (!r->hash)
		return wfs_meta_no_memory(m);
	memcpy(r->hash, body->bytes, body->len);
	return WFS_OK;
}

static enum wfs_status parse_sha256(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_reader *r = m->reader;

	r->has_sha256 = true;
	if (!r->check_sha256)
		return WFS_OK;
	r->block_sha256 = wfs_reader_alloc(r, r->nr_blocks, WFS_SHA256_BYTES);
	if (!r->block_sha256)
		return wfs_meta_no_memory(m);
	memcpy(r->block_sha256, body->bytes, body->len);
	return WFS_OK;
}

static enum wfs_status parse_selectors(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	struct wfs_reader *r = m->reader;
	u64 nr = r->nr_blocks;

	r->selector = wfs_reader_alloc(r, nr, sizeof(*r->selector));
	if (!r->selector)
		return wfs_meta_no_memory(m);
	for (u64 i = 0; i < nr; i++) {
		r->selector[i] = (u16)(body->bytes[i] | body->bytes[nr + i] << 8);
		if (r->selector[i] > r->nr_coders)
			return wfs_meta_bad(m, "a block's coder is not valid");
	}
	return WFS_OK;
}

static enum wfs_status parse_lengths(struct wfs_meta *m, const struct wfs_meta_body *body)
{
	const u8 *plane = body->bytes;
	struct wfs_reader *r = m->reader;
	u64 nr = r->nr_blocks, sum = 0, group_off = 0;

	r->group_off = wfs_reader_alloc(r, (nr >> WFS_GROUP_LOG2) + 1, sizeof(*r->group_off));
	r->rel_off = wfs_reader_alloc(r, nr + 1, sizeof(*r->rel_off));
	if (!r->group_off || !r->rel_off)
		return wfs_meta_no_memory(m);
	for (u64 i = 0; i <= nr; i++) {
		if (i % ((u64)1 << WFS_GROUP_LOG2) == 0)
			r->group_off[i >> WFS_GROUP_LOG2] = group_off = sum;
		r->rel_off[i] = (u32)(sum - group_off);
		if (i < nr) {
			u32 comp_len = plane[i] | (u32)plane[nr + i] << 8 | (u32)plane[2 * nr + i] << 16;

			if (comp_len > (u32)1 << r->head.block_log2)
				return wfs_meta_bad(m, "a block's length is not valid");
			sum += comp_len;
		}
	}
	if (sum != r->head.payload_len)
		return wfs_meta_bad(m, "the blocks' lengths do not add up to the payload");
	return WFS_OK;
}

/* The rules of 1.5 that need no payload. */
static bool block_valid(const struct wfs_reader *r, const struct wfs_block *b)
{
	switch (b->coding) {
	case WFS_STORED:
		return b->comp_len == b->raw_len;
	case WFS_LZ4:
		return b->comp_len >= 1 && b->comp_len <= b->raw_len;
	case WFS_CONSTANT:
		return b->comp_len == r->coder[b->coder].word && b->comp_len <= b->raw_len;
	default:
		return b->comp_len <= b->raw_len && wfs_block_cut(b->word, b->phase, b->raw_len).nr_words >= 1;
	}
}

static enum wfs_status check_blocks(const struct wfs_meta *m)
{
	const struct wfs_reader *r = m->reader;

	for (u64 i = 0, region = 0; i < r->nr_blocks; i++) {
		struct wfs_block b;

		while (r->region[region + 1].first_block <= i)
			region++;
		wfs_block_of_region(r, region, i, &b);
		if (!block_valid(r, &b))
			return wfs_fail_block(m->err, WFS_BAD_DATA, i, "a block's length does not fit its coding");
	}
	return WFS_OK;
}

enum wfs_status wfs_meta_pools(const struct wfs_reader *reader, const u8 *meta, bool wide, const u8 **pools_ret,
			       size_t *len_ret, struct wfs_error *err)
{
	const enum wfs_section_kind kind = wide ? WFS_SECTION_WIDE_POOLS : WFS_SECTION_POOLS;
	struct wfs_meta m = {.err = err};
	enum wfs_status status = parse_directory(&m, wfs_cursor_make(meta, (size_t)reader->head.meta_len));

	if (status == WFS_OK) {
		*pools_ret = m.section[kind].comp;
		*len_ret = (size_t)m.section[kind].comp_len;
	}
	return status;
}

enum wfs_status wfs_meta_parse(struct wfs_reader *reader, const u8 *meta, size_t meta_len, struct wfs_error *err)
{
	/* In the order in which they need each other. */
	static const struct {
		int kind;
		size_t unit;
		enum wfs_status (*parse)(struct wfs_meta *m, const struct wfs_meta_body *body);
	} step[] = {
		{WFS_SECTION_POOLS, 1, wfs_meta_parse_pools},
		{WFS_SECTION_WIDE_POOLS, 1, wfs_meta_parse_wide_pools}, /* may be absent, as the next */
		{WFS_SECTION_GRIDS, 1, wfs_meta_parse_grids},
		{WFS_SECTION_CODERS, sizeof(struct wfs_disk_coder), wfs_meta_parse_coders},
		{WFS_SECTION_REGIONS, sizeof(struct wfs_disk_region), parse_regions},
		{WFS_SECTION_HASHES, WFS_HASH_BYTES, parse_hashes},
		{WFS_SECTION_SHA256, WFS_SHA256_BYTES, parse_sha256}, /* may be absent */
		{WFS_SECTION_SELECTORS, 1, parse_selectors},
		{WFS_SECTION_LENGTHS, 1, parse_lengths},
	};
	struct wfs_meta m = {.reader = reader, .err = err};
	enum wfs_status status = parse_directory(&m, wfs_cursor_make(meta, meta_len));

	/* A coded region has at least one block, whose hash is stored bytes: checked exactly when the regions are
	 * there. */
	if (status == WFS_OK && m.section[WFS_SECTION_REGIONS].raw_len / sizeof(struct wfs_disk_region) >
					WFS_MAX_REPEATS + m.section[WFS_SECTION_HASHES].comp_len / WFS_HASH_BYTES)
		status = wfs_meta_bad(&m, "more regions than blocks and repeats allow");
	/* Pools grow most when they are made ready for decoding. */
	if (status == WFS_OK && (m.section[WFS_SECTION_POOLS].coding != WFS_STORED ||
				 m.section[WFS_SECTION_WIDE_POOLS].coding != WFS_STORED))
		status = wfs_meta_bad(&m, "the pools are not stored");
	for (size_t i = 0; i < WFS_ARRAY_LEN(step) && status == WFS_OK; i++) {
		struct wfs_meta_body body = {0};

		if (!m.section[step[i].kind].comp)
			continue;
		if (step[i].kind == WFS_SECTION_HASHES)
			status = check_columns(&m);
		if (status == WFS_OK)
			status = open_section(&m, step[i].kind, step[i].unit, &body);
		if (status == WFS_OK)
			status = step[i].parse(&m, &body);
		free(body.owned);
	}
	if (status == WFS_OK && reader->check_sha256 && !reader->has_sha256)
		status =
			wfs_meta_bad(&m, "the container has no SHA-256 of its blocks, as those of a signed store have");
	if (status == WFS_OK)
		status = check_blocks(&m);
	return status;
}
