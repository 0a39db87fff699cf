/* handmade.h - containers made by hand, byte by byte, without the writer: test_container.c and
 * test_container_rules.c change them.
 */
#ifndef HANDMADE_H
#define HANDMADE_H

#include "test_util.h"

#include "checksum.h"
#include "container.h"

#include <lz4.h>

enum { MAX = 16, BLOCK_LOG2 = 16, RAW_LEN = 190000, MAX_META = 256 << 10, MAX_POOL_BYTES = 64 << 10 };

/* A container in parts, before the sizes and checksums are computed. */
struct parts {
	struct wfs_disk_head head;
	struct wfs_disk_region region[MAX];
	struct wfs_disk_coder coder[MAX];
	u32 nr_regions, nr_coders, nr_blocks;
	u8 pools[MAX_POOL_BYTES];
	size_t pools_len;
	u32 comp_len[MAX];
	u16 selector[MAX];
	u64 hash[MAX];
	u8 *payload;
	size_t payload_len;
	struct wfs_disk_section extra; /* one more section when its kind is not 0 */
	const u8 *extra_body;	       /* its comp_len bytes; NULL: zero */
	int compressed;		       /* the kind of a section to compress with LZ4 */
};

struct file {
	u8 *bytes;
	size_t len, meta_len;
};

static u8 raw[RAW_LEN];
static u8 payload[RAW_LEN];

/* ---- the good container ---- */

static inline void make_raw(void)
{
	uint64_t seed = 7;

	test_rand_fill(&seed, raw, RAW_LEN);
	for (size_t i = 70000; i < 100000; i++) /* constant: "ABCDEFGH" from its fourth byte on */
		raw[i] = "ABCDEFGH"[(i - 70000 + 3) % 8];
	for (size_t i = 100000; i < 140000; i++)
		raw[i] = (u8)(i / 100);
	memcpy(raw + 140000, raw + 10000, 20000);
	memcpy(raw + 160000, raw + 60000, 20000);
	for (size_t i = 180000; i < 185000; i++)
		raw[i] = "ab"[(i - 180000 + 1) % 2];
}

static inline void add_region(struct parts *p, u64 start, u64 len, u8 kind, u16 coder, u64 arg)
{
	p->region[p->nr_regions++] =
		(struct wfs_disk_region){.start = start, .len = len, .kind = kind, .coder = coder, .arg = arg};
}

static inline void add_block(struct parts *p, size_t start, size_t len, u8 coding, u16 selector)
{
	u8 *out = p->payload + p->payload_len;
	u32 n = p->nr_blocks++;

	p->selector[n] = selector;
	p->hash[n] = wfs_hash64(WFS_CPU_SCALAR, raw + start, len);
	if (coding == WFS_STORED) {
		memcpy(out, raw + start, len);
		p->comp_len[n] = (u32)len;
	} else if (coding == WFS_CONSTANT) {
		memcpy(out, "ab", 2);
		p->comp_len[n] = 2;
	} else {
		p->comp_len[n] = (u32)LZ4_compress_default((const char *)raw + start, (char *)out, (int)len, (int)len);
	}
	p->payload_len += p->comp_len[n];
}

static inline void make_parts(struct parts *p)
{
	struct wfs_split s = wfs_split_make(2, 1, 9);
	struct wfs_trainer *trainer = wfs_trainer_new(s);
	struct wfs_pool pool;

	*p = (struct parts){.payload = payload};
	CHECK(trainer && wfs_trainer_finish(trainer, 9, &pool) == WFS_OK);
	wfs_trainer_free(trainer);
	p->pools_len = wfs_pool_write(&pool, p->pools);
	p->coder[p->nr_coders++] = (struct wfs_disk_coder){.coding = WFS_STORED, .word = 1};
	p->coder[p->nr_coders++] = (struct wfs_disk_coder){.coding = WFS_LZ4, .word = 1};
	p->coder[p->nr_coders++] = (struct wfs_disk_coder){.coding = WFS_CONSTANT, .word = 2};
	p->coder[p->nr_coders++] = (struct wfs_disk_coder){.coding = WFS_SPLIT, .word = 2, .rot = 1, .field = 9};
	add_region(p, 0, 70000, WFS_REGION_CODED, 0, 0);
	add_region(p, 70000, 30000, WFS_REGION_CONSTANT, 0, UINT64_C(0x4847464544434241));
	p->region[1].phase = 3;
	add_region(p, 100000, 40000, WFS_REGION_CODED, 1, 0);
	add_region(p, 140000, 20000, WFS_REGION_COPY, 0, 10000);
	add_region(p, 160000, 20000, WFS_REGION_COPY, 0, 60000);
	add_region(p, 180000, 5000, WFS_REGION_CODED, 3, 0);
	p->region[5].phase = 1;
	add_region(p, 185000, 5000, WFS_REGION_CODED, 0, 0);
	add_block(p, 0, 65536, WFS_STORED, 0);
	add_block(p, 65536, 4464, WFS_STORED, 1);
	add_block(p, 100000, 31072, WFS_LZ4, 0);
	add_block(p, 131072, 8928, WFS_LZ4, 0);
	add_block(p, 180000, 5000, WFS_CONSTANT, 3);
	add_block(p, 185000, 5000, WFS_STORED, 0);
	memcpy(p->head.magic, wfs_magic, sizeof(wfs_magic));
	p->head.major = 1;
	p->head.raw_len = RAW_LEN;
	p->head.mtime_sec = -5;
	p->head.mtime_nsec = 999999999;
	p->head.block_log2 = BLOCK_LOG2;
	p->head.sha256[0] = 0xaa;
}

/* ---- parts to bytes ---- */

static inline size_t put_section(const struct parts *p, struct wfs_disk_section *entry, int kind, const void *body,
				 size_t len, u8 *out)
{
	*entry = (struct wfs_disk_section){.kind = (u16)kind, .comp_len = len, .raw_len = len};
	memcpy(out, body, len);
	if (kind == p->compressed) {
		entry->coding = WFS_LZ4;
		entry->comp_len = (u64)LZ4_compress_default(body, (char *)out, (int)len, LZ4_compressBound((int)len));
		CHECK(entry->comp_len);
	}
	return (size_t)entry->comp_len;
}

static inline size_t put_meta(const struct parts *p, u8 *meta)
{
	struct wfs_disk_meta start = {.nr_sections = p->extra.kind ? 7 : 6};
	struct wfs_disk_section entry[7];
	u8 lengths[3 * MAX], selectors[2 * MAX], bodies[MAX_META];
	size_t at = 0, directory = sizeof(start) + start.nr_sections * sizeof(entry[0]);
	u32 nr = p->nr_blocks;

	for (u32 i = 0; i < nr; i++) {
		lengths[i] = (u8)p->comp_len[i];
		lengths[nr + i] = (u8)(p->comp_len[i] >> 8);
		lengths[2 * nr + i] = (u8)(p->comp_len[i] >> 16);
		selectors[i] = (u8)p->selector[i];
		selectors[nr + i] = (u8)(p->selector[i] >> 8);
	}
	at += put_section(p, &entry[0], 1, p->region, p->nr_regions * sizeof(p->region[0]), bodies + at);
	at += put_section(p, &entry[1], 2, p->coder, p->nr_coders * sizeof(p->coder[0]), bodies + at);
	at += put_section(p, &entry[2], 3, p->pools, p->pools_len, bodies + at);
	at += put_section(p, &entry[3], 4, lengths, 3 * (size_t)nr, bodies + at);
	at += put_section(p, &entry[4], 5, selectors, 2 * (size_t)nr, bodies + at);
	at += put_section(p, &entry[5], 6, p->hash, 8 * (size_t)nr, bodies + at);
	entry[6] = p->extra;
	memset(bodies + at, 0, (size_t)p->extra.comp_len);
	if (p->extra_body)
		memcpy(bodies + at, p->extra_body, (size_t)p->extra.comp_len);
	at += (size_t)p->extra.comp_len;
	memcpy(meta, &start, sizeof(start));
	memcpy(meta + sizeof(start), entry, start.nr_sections * sizeof(entry[0]));
	memcpy(meta + directory, bodies, at);
	return directory + at;
}

typedef void (*change_meta_fn)(u8 *meta, size_t *meta_len);
typedef void (*change_head_fn)(struct wfs_disk_head *head);

/* change_meta and change_head act just before the checksums are made. gap: zero bytes behind copy A. */
static inline struct file make_file(const struct parts *p, change_meta_fn change_meta, change_head_fn change_head)
{
	struct wfs_disk_head head = p->head;
	const size_t gap = 100;
	static u8 meta[MAX_META];
	struct file f = {.meta_len = put_meta(p, meta)};

	if (change_meta)
		change_meta(meta, &f.meta_len);
	head.meta_len = f.meta_len;
	head.meta_xxh = wfs_hash64(WFS_CPU_SCALAR, meta, f.meta_len);
	head.payload_off = 4096 + f.meta_len + gap;
	head.payload_len = p->payload_len;
	f.len = (size_t)(head.payload_off + head.payload_len + head.meta_len + 4096);
	head.file_len = f.len;
	if (change_head)
		change_head(&head);
	head.head_xxh = wfs_hash64(WFS_CPU_SCALAR, &head, 4088);
	f.bytes = calloc(1, f.len);
	CHECK(f.bytes);
	memcpy(f.bytes, &head, 4096);
	memcpy(f.bytes + 4096, meta, f.meta_len);
	memcpy(f.bytes + 4096 + f.meta_len + gap, p->payload, p->payload_len);
	memcpy(f.bytes + f.len - 4096 - f.meta_len, meta, f.meta_len);
	memcpy(f.bytes + f.len - 4096, &head, 4096);
	return f;
}

static inline struct file good_file(void)
{
	struct parts p;

	make_parts(&p);
	return make_file(&p, NULL, NULL);
}

static inline int file_fd(const u8 *bytes, size_t len)
{
	int fd = memfd_create("container", 0);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	return fd;
}

static inline enum wfs_status open_bytes(const u8 *bytes, size_t len, struct wfs_reader **reader, int *fd,
					 struct wfs_error *err)
{
	*fd = file_fd(bytes, len);
	*reader = NULL;
	return wfs_reader_open(*fd, NULL, reader, err);
}

static inline void check_whole(const struct wfs_reader *reader)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	u8 *got = malloc(RAW_LEN);
	struct wfs_error err;

	CHECK(scratch && got);
	CHECK(wfs_reader_read(reader, 0, got, RAW_LEN, scratch, &err) == WFS_OK);
	CHECK(!memcmp(got, raw, RAW_LEN));
	free(got);
	wfs_scratch_free(scratch);
}

#endif
