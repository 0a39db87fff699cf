/* test_container_rules.c - each rule of FORMAT.md section 1 broken alone, under good checksums: refused with its
 * status. */
#include "handmade_tables.h"

/* ---- changes that are more than one field ---- */

static void head_file_len(struct wfs_disk_head *h)
{
	h->file_len++;
}
static void head_longer_than_it_says(struct wfs_disk_head *h)
{
	h->file_len--;
	h->payload_len--;
}
static void head_metadata_meets_payload(struct wfs_disk_head *h)
{
	h->payload_off -= 101; /* the gap has 100 bytes */
	h->payload_len += 101;
}
static void head_payload_len(struct wfs_disk_head *h)
{
	h->payload_off++;
	h->payload_len--;
}
static void head_sums_overflow(struct wfs_disk_head *h)
{
	h->payload_len = UINT64_MAX - 10;
	h->file_len = h->payload_off + h->payload_len + h->meta_len + 4096;
}
static void head_sums_beyond_signed(struct wfs_disk_head *h)
{
	h->payload_off = UINT64_C(1) << 63;
	h->file_len = h->payload_off + h->payload_len + h->meta_len + 4096;
}
static void head_metadata_beyond_file(struct wfs_disk_head *h)
{
	h->meta_len = UINT64_C(1) << 40;
	h->payload_off = 4096 + h->meta_len;
	h->file_len = h->payload_off + h->payload_len + h->meta_len + 4096;
}

static void regions_end_early(struct parts *p)
{
	p->nr_regions--;
}
static void pool_cut(struct parts *p)
{
	p->pools_len--;
}
static void pool_trailing(struct parts *p)
{
	p->pools[p->pools_len++] = 0;
}
/* The pool of the good container and the smallest ones there are, up to nr. */
static void pools_many(struct parts *p, unsigned nr)
{
	static const u8 smallest[] = {1, 9, 1, 0, 2, 0, 2, 0, 0, 0, 255, 0, 1, 1};

	for (unsigned i = 1; i < nr; i++, p->pools_len += sizeof(smallest))
		memcpy(p->pools + p->pools_len, smallest, sizeof(smallest));
}
static void pools_most(struct parts *p)
{
	pools_many(p, 4096);
}
static void pools_too_many(struct parts *p)
{
	pools_many(p, 4097);
}
static void blocks_missing(struct parts *p)
{
	p->nr_blocks--;
}
static void blocks_more(struct parts *p)
{
	p->nr_blocks++;
}
static void block_stored_short(struct parts *p)
{
	p->comp_len[0]--;
	p->comp_len[3]++;
}
static void block_constant_long(struct parts *p)
{
	p->comp_len[4]++;
	p->comp_len[3]--;
}
static void block_lz4_empty(struct parts *p)
{
	p->payload_len -= p->comp_len[3];
	p->comp_len[3] = 0;
}
static void block_longer_than_raw(struct parts *p)
{
	p->selector[1] = 2; /* LZ4 */
	p->comp_len[1]++;
	p->payload_len++;
}
static void block_longer_than_any(struct parts *p)
{
	p->comp_len[2] = 0xffffff; /* more than a block has; the sum is wrong, too */
}
static void block_split_without_word(struct parts *p)
{
	/* The last region becomes one byte long and has the split coder. */
	p->region[5].len = 9999;
	p->region[6] = (struct wfs_disk_region){.start = 189999, .len = 1, .kind = WFS_REGION_CODED, .coder = 3};
	p->selector[4] = 1;
	p->comp_len[4] = 9999;
	p->comp_len[5] = 1;
	p->payload_len += 9999 - 2 + 1 - 5000;
}
static void lengths_sum(struct parts *p)
{
	p->payload_len--;
}
static void pools_compressed(struct parts *p)
{
	p->compressed = WFS_SECTION_POOLS;
}
static void hashes_compressed(struct parts *p)
{
	p->compressed = WFS_SECTION_HASHES;
}

static void section_new(struct parts *p)
{
	extra_section(p, 10, WFS_STORED, 8, 8);
}

static void section_skipped(struct parts *p)
{
	extra_section(p, WFS_SECTION_SKIPPED, 77, 8, 1);
}
static void section_sha256(struct parts *p)
{
	extra_section(p, WFS_SECTION_SHA256, WFS_STORED, 6 * 32, 6 * 32);
}
static void section_sha256_short(struct parts *p)
{
	extra_section(p, WFS_SECTION_SHA256, WFS_STORED, 5 * 32, 5 * 32);
}

struct directory {
	struct wfs_disk_meta start;
	struct wfs_disk_section entry[6];
};
static void section_longer_than_rest(u8 *meta, size_t *len)
{
	struct directory d;

	(void)len;
	memcpy(&d, meta, sizeof(d));
	d.entry[5].comp_len++;
	d.entry[5].raw_len++;
	memcpy(meta, &d, sizeof(d));
}
static void section_expands_too_much(u8 *meta, size_t *len)
{
	struct directory d;

	(void)len;
	memcpy(&d, meta, sizeof(d));
	d.entry[0].coding = WFS_LZ4;
	d.entry[0].raw_len = 40 * 1024 * 1024;
	memcpy(meta, &d, sizeof(d));
}
static void meta_trailing(u8 *meta, size_t *len)
{
	meta[(*len)++] = 0;
}
static void meta_cut(u8 *meta, size_t *len)
{
	(void)meta;
	*len = 100;
}

/* ---- the table ---- */

enum { IN_PARTS, IN_META, IN_HEAD };

static const struct rule {
	const char *name;
	enum wfs_status expected;
	/* one of these */
	void (*parts)(struct parts *p);
	change_meta_fn meta;
	change_head_fn head;
	/* or bytes that replace a field */
	int where;
	size_t at, len;
	u64 value;
} rules[] = {
#define PARTS(fn, status)                                                                                              \
	{                                                                                                              \
		.name = #fn, .expected = status, .parts = fn                                                           \
	}
#define META(fn, status)                                                                                               \
	{                                                                                                              \
		.name = #fn, .expected = status, .meta = fn                                                            \
	}
#define HEAD(fn, status)                                                                                               \
	{                                                                                                              \
		.name = #fn, .expected = status, .head = fn                                                            \
	}
#define SET(in, type, field, v, status)                                                                                \
	{                                                                                                              \
		.name = #field " = " #v, .expected = status, .where = in, .at = offsetof(type, field),                 \
		.len = sizeof(((type *)0)->field), .value = v                                                          \
	}
#define SET_HEAD(field, v, status) SET(IN_HEAD, struct wfs_disk_head, field, v, status)
#define SET_PART(field, v, status) SET(IN_PARTS, struct parts, field, v, status)
#define SET_META(field, v, status) SET(IN_META, struct directory, field, v, status)

	SET_HEAD(major, 2, WFS_UNSUPPORTED),
	SET_HEAD(major, 0, WFS_UNSUPPORTED),
	SET_HEAD(minor, 9, WFS_OK),
	SET_HEAD(incompat, 4, WFS_UNSUPPORTED),
	SET_HEAD(raw_len, WFS_MAX_RAW_LEN + 1, WFS_BAD_DATA),
	SET_HEAD(raw_len, RAW_LEN - 1, WFS_BAD_DATA),
	SET_HEAD(raw_len, RAW_LEN + 1, WFS_BAD_DATA),
	SET_HEAD(raw_len, 0, WFS_BAD_DATA),
	SET_HEAD(mtime_nsec, 1000000000, WFS_BAD_DATA),
	SET_HEAD(block_log2, 15, WFS_BAD_DATA),
	SET_HEAD(block_log2, 21, WFS_BAD_DATA),
	SET_HEAD(zero[2], 1, WFS_BAD_DATA),
	SET_HEAD(reserved[0], 1, WFS_BAD_DATA),
	SET_HEAD(reserved[3975], 1, WFS_BAD_DATA),
	SET_HEAD(meta_len, 15, WFS_BAD_DATA),
	HEAD(head_file_len, WFS_BAD_DATA),
	HEAD(head_longer_than_it_says, WFS_BAD_DATA),
	HEAD(head_metadata_meets_payload, WFS_BAD_DATA),
	HEAD(head_payload_len, WFS_BAD_DATA),
	HEAD(head_sums_overflow, WFS_BAD_DATA),
	HEAD(head_sums_beyond_signed, WFS_BAD_DATA),
	HEAD(head_metadata_beyond_file, WFS_BAD_CHECKSUM),

	SET_META(start.nr_sections, 0, WFS_BAD_DATA),
	SET_META(start.nr_sections, 65, WFS_BAD_DATA),
	SET_META(start.nr_sections, 64, WFS_BAD_DATA),
	SET_META(start.zero, 1, WFS_BAD_DATA),
	SET_META(entry[1].kind, 1, WFS_BAD_DATA),
	SET_META(entry[0].kind, 0, WFS_UNSUPPORTED),
	SET_META(entry[5].kind, 7, WFS_BAD_DATA),
	SET_META(entry[0].coding, 2, WFS_UNSUPPORTED),
	SET_META(entry[0].coding, 1, WFS_BAD_DATA),
	SET_META(entry[3].zero, 1, WFS_BAD_DATA),
	SET_META(entry[0].comp_len, UINT64_MAX - 8, WFS_BAD_DATA),
	SET_META(entry[0].raw_len, 240, WFS_BAD_DATA),
	META(section_longer_than_rest, WFS_BAD_DATA),
	META(section_expands_too_much, WFS_BAD_DATA),
	META(meta_trailing, WFS_BAD_DATA),
	META(meta_cut, WFS_BAD_DATA),
	PARTS(section_new, WFS_UNSUPPORTED),
	PARTS(section_skipped, WFS_OK),
	PARTS(section_sha256, WFS_OK),
	PARTS(section_sha256_short, WFS_BAD_DATA),
	PARTS(pools_compressed, WFS_BAD_DATA),
	PARTS(pools_most, WFS_OK),
	PARTS(pools_too_many, WFS_BAD_DATA),
	PARTS(hashes_compressed, WFS_BAD_DATA),

	SET_PART(region[1].start, 70001, WFS_BAD_DATA),
	SET_PART(region[1].start, 69999, WFS_BAD_DATA),
	SET_PART(region[1].len, 0, WFS_BAD_DATA),
	SET_PART(region[6].len, UINT64_MAX - 100, WFS_BAD_DATA),
	SET_PART(region[1].kind, 4, WFS_UNSUPPORTED),
	SET_PART(region[1].kind, 0, WFS_UNSUPPORTED),
	SET_PART(region[0].phase, 254, WFS_OK),
	SET_PART(region[0].phase, 255, WFS_BAD_DATA),
	SET_PART(region[1].phase, 8, WFS_BAD_DATA),
	SET_PART(region[0].zero0, 1, WFS_BAD_DATA),
	SET_PART(region[0].zero1, 1, WFS_BAD_DATA),
	SET_PART(region[0].coder, 4, WFS_BAD_DATA),
	SET_PART(region[0].arg, 1, WFS_BAD_DATA),
	SET_PART(region[1].coder, 1, WFS_BAD_DATA),
	SET_PART(region[3].coder, 1, WFS_BAD_DATA),
	SET_PART(region[3].phase, 1, WFS_BAD_DATA),
	SET_PART(region[3].arg, 120001, WFS_BAD_DATA),	       /* ends behind its start */
	SET_PART(region[3].arg, UINT64_MAX - 5, WFS_BAD_DATA), /* its end overflows */
	SET_PART(region[4].arg, 120001, WFS_BAD_DATA),	       /* its last byte is a copy */
	SET_PART(region[4].arg, 140000, WFS_BAD_DATA),	       /* all of it is */
	PARTS(regions_end_early, WFS_BAD_DATA),

	SET_PART(coder[3].coding, 8, WFS_UNSUPPORTED),
	SET_PART(coder[3].coding, WFS_GRID, WFS_BAD_DATA),
	SET_PART(coder[2].word, 3, WFS_BAD_DATA),
	SET_PART(coder[0].word, 2, WFS_BAD_DATA),
	SET_PART(coder[3].rot, 2, WFS_BAD_DATA),
	SET_PART(coder[2].rot, 1, WFS_BAD_DATA),
	SET_PART(coder[2].field, 1, WFS_BAD_DATA),
	SET_PART(coder[3].field, 8, WFS_BAD_DATA), /* its pool has 9 */
	SET_PART(coder[3].field, 0, WFS_BAD_DATA),
	SET_PART(coder[3].field, 13, WFS_BAD_DATA),
	SET_PART(coder[3].word, 1, WFS_BAD_DATA), /* 9 bits do not fit in a byte */
	SET_PART(coder[3].pool, 1, WFS_BAD_DATA),
	SET_PART(coder[1].pool, 1, WFS_BAD_DATA),
	SET_PART(coder[3].grid, 1, WFS_BAD_DATA),
	SET_PART(coder[3].border[0], 1, WFS_BAD_DATA),

	PARTS(grid_coder, WFS_OK),
	PARTS(grid_f32, WFS_OK),
	PARTS(grid_field_7, WFS_OK),
	PARTS(grid_most, WFS_OK),
	PARTS(grid_too_many, WFS_BAD_DATA),
	PARTS(grid_unused, WFS_BAD_DATA),
	PARTS(grid_none, WFS_BAD_DATA),
	PARTS(grid_empty, WFS_BAD_DATA),
	PARTS(grid_cut, WFS_BAD_DATA),
	PARTS(grid_byte_after, WFS_BAD_DATA),
	PARTS(grid_op, WFS_UNSUPPORTED),
	PARTS(grid_not_ascending, WFS_BAD_DATA),
	PARTS(grid_number, WFS_BAD_DATA),
	PARTS(grid_word_4_of_bf16, WFS_BAD_DATA),
	PARTS(grid_word_2_of_f32, WFS_BAD_DATA),
	PARTS(grid_word_1, WFS_BAD_DATA),
	PARTS(grid_field_of_pool, WFS_BAD_DATA),
	PARTS(grid_field_8, WFS_BAD_DATA),
	PARTS(grid_rot, WFS_BAD_DATA),
	PARTS(grid_wide, WFS_BAD_DATA), /* there is no wide pool */

	PARTS(wide_coder, WFS_OK),
	PARTS(wide_bytes, WFS_OK),
	PARTS(wide_most, WFS_OK),
	PARTS(wide_too_many, WFS_BAD_DATA),
	PARTS(wide_unused, WFS_BAD_DATA),
	PARTS(wide_none, WFS_BAD_DATA),
	PARTS(wide_cut, WFS_BAD_DATA),
	PARTS(wide_byte_after, WFS_BAD_DATA),
	PARTS(wide_compressed, WFS_BAD_DATA),
	PARTS(wide_number, WFS_BAD_DATA),
	PARTS(wide_field_of_pool, WFS_BAD_DATA),
	PARTS(wide_grid, WFS_BAD_DATA),
	PARTS(wide_rot_2, WFS_BAD_DATA),
	PARTS(wide_field_of_word, WFS_BAD_DATA),
	PARTS(wide_bytes_rot, WFS_BAD_DATA),

	PARTS(records, WFS_OK),
	PARTS(records_whole, WFS_OK),
	PARTS(records_longest, WFS_OK),
	PARTS(records_word_1, WFS_BAD_DATA),
	PARTS(records_equal_borders, WFS_BAD_DATA),
	PARTS(records_descend, WFS_BAD_DATA),
	PARTS(records_gap, WFS_BAD_DATA),
	PARTS(records_border_outside, WFS_BAD_DATA),
	PARTS(records_last_border, WFS_BAD_DATA),
	PARTS(records_field, WFS_BAD_DATA),
	PARTS(records_rot, WFS_BAD_DATA),
	PARTS(records_pool, WFS_BAD_DATA),
	PARTS(records_grid, WFS_BAD_DATA),
	PARTS(records_no_pool, WFS_BAD_DATA),

	PARTS(pool_cut, WFS_BAD_DATA),
	PARTS(pool_trailing, WFS_BAD_DATA),
	SET_PART(pools[0], 0, WFS_BAD_DATA),
	SET_PART(pools[3], 1, WFS_BAD_DATA),

	SET_PART(selector[5], 5, WFS_BAD_DATA),
	SET_PART(selector[5], 0xffff, WFS_BAD_DATA),
	PARTS(blocks_missing, WFS_BAD_DATA),
	PARTS(blocks_more, WFS_BAD_DATA),
	PARTS(block_stored_short, WFS_BAD_DATA),
	PARTS(block_constant_long, WFS_BAD_DATA),
	PARTS(block_lz4_empty, WFS_BAD_DATA),
	PARTS(block_longer_than_raw, WFS_BAD_DATA),
	PARTS(block_longer_than_any, WFS_BAD_DATA),
	PARTS(block_split_without_word, WFS_BAD_DATA),
	PARTS(lengths_sum, WFS_BAD_DATA),
};

/* The rule of the case at hand, for the two callbacks. */
static const struct rule *rule;

static void set_in_head(struct wfs_disk_head *head)
{
	memcpy((u8 *)head + rule->at, &rule->value, rule->len);
}
static void set_in_meta(u8 *meta, size_t *len)
{
	(void)len;
	memcpy(meta + rule->at, &rule->value, rule->len);
}

int main(void)
{
	make_raw();
	for (rule = rules; rule < rules + WFS_ARRAY_LEN(rules); rule++) {
		change_meta_fn change_meta = rule->len && rule->where == IN_META ? set_in_meta : rule->meta;
		change_head_fn change_head = rule->len && rule->where == IN_HEAD ? set_in_head : rule->head;
		struct wfs_error err = {0};
		struct wfs_reader *reader;
		enum wfs_status status;
		struct parts p;
		struct file f;
		int fd;

		make_parts(&p);
		if (rule->parts)
			rule->parts(&p);
		else if (rule->len && rule->where == IN_PARTS)
			memcpy((u8 *)&p + rule->at, &rule->value, rule->len);
		f = make_file(&p, change_meta, change_head);
		status = open_bytes(f.bytes, f.len, &reader, &fd, &err);
		CHECK_MSG(status == rule->expected, "%s: %s (%s)", rule->name, wfs_status_name(status),
			  err.reason ? err.reason : "");
		CHECK(status == WFS_OK || (err.status == status && err.reason && !reader));
		if (status == WFS_OK)
			check_whole(reader);
		wfs_reader_free(reader);
		close(fd);
		free(f.bytes);
	}
	PASS("%zu changed fields and parts, each refused with its status", WFS_ARRAY_LEN(rules));
	return 0;
}
