/* damage_kinds.h - the ways in which damage_campaign.c damages a container: its image, damaged anew for each case. */
#ifndef DAMAGE_KINDS_H
#define DAMAGE_KINDS_H

#include "unit/test_util.h"
#include "wfs.h"
#include "wfs_format.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <lz4.h>

struct bytes {
	u8 *at;
	size_t len;
};

/* A good container and what it holds. */
struct original {
	struct bytes comp, raw;
	struct wfs_head head;
	u8 sha256[32];
	struct wfs_block *block;
	uint64_t nr_blocks;
};

struct subject {
	struct original file, older;  /* older: another version of the same file */
	const struct original *other; /* another file */
	unsigned number;
	struct wfs_scratch *scratch;
	u8 *buf;
};

enum kind {
	FLIPPED_BIT,
	RANDOM_BYTES,
	ZEROED_PAGES,
	CUT,
	GROWN,
	SWAPPED_BLOCKS,
	FOREIGN_BYTES,
	ROLLED_BACK,
	TORN,
	MISDIRECTED_PAGE,
	FORGED_HEAD,
	FORGED_METADATA,
	FORGED_PAYLOAD,
	NR_KINDS
};

static inline const char *kind_name(enum kind kind)
{
	static const char *const name[] = {
		[FLIPPED_BIT] = "flipped bit",
		[RANDOM_BYTES] = "random bytes",
		[ZEROED_PAGES] = "zeroed pages",
		[CUT] = "cut off",
		[GROWN] = "grown",
		[SWAPPED_BLOCKS] = "swapped blocks",
		[FOREIGN_BYTES] = "another file's bytes",
		[ROLLED_BACK] = "rolled-back bytes",
		[TORN] = "torn between versions",
		[MISDIRECTED_PAGE] = "misdirected page",
		[FORGED_HEAD] = "forged head",
		[FORGED_METADATA] = "forged metadata",
		[FORGED_PAYLOAD] = "forged payload",
	};

	return name[kind];
}

/* With every hash of head, metadata and blocks made right. */
static inline bool kind_is_forged(enum kind kind)
{
	return kind >= FORGED_HEAD;
}

enum { PAGE = 4096 };

static inline struct bytes copy_of(const struct bytes *b, size_t room)
{
	struct bytes copy = {malloc(b->len + room + 1), b->len};

	CHECK(copy.at);
	memcpy(copy.at, b->at, b->len);
	return copy;
}

/* Number nr of count places spread over 0..len-1, a random one in each stretch. */
static inline size_t spread(size_t len, uint64_t nr, uint64_t count, uint64_t *rng)
{
	size_t begin = (size_t)(len * nr / count), end = (size_t)(len * (nr + 1) / count);

	if (end > begin)
		begin += (size_t)test_rand_below(rng, end - begin);
	return WFS_MIN(begin, len - 1);
}

/* A value that readers may stumble over, or any. */
static inline u64 odd_value(u64 was, uint64_t *rng)
{
	static const u64 known[] = {0, 1, 255, 256, 4095, 4096, UINT32_MAX, INT64_MAX, UINT64_MAX, (u64)1 << 62};

	switch (test_rand_below(rng, 4)) {
	case 0:
		return was + 1;
	case 1:
		return was - 1;
	case 2:
		return known[test_rand_below(rng, WFS_ARRAY_LEN(known))];
	default:
		return was ^ (u64)1 << test_rand_below(rng, 64);
	}
}

/* ---- forging ---- */

/* The same container with all sections stored, so that a changed byte of the metadata is a changed field. */
struct plain {
	struct bytes image;
	struct wfs_disk_head *head; /* in the image, as the next ones */
	struct wfs_disk_section *section;
	struct bytes body[WFS_MAX_SECTIONS];
	unsigned nr_sections;
};

static inline void make_right(struct plain *p)
{
	const size_t meta_len = (size_t)p->head->meta_len;
	u8 *meta = p->image.at + WFS_HEAD_BYTES, *tail = p->image.at + p->image.len - WFS_HEAD_BYTES;

	memmove(tail - meta_len, meta, meta_len);
	p->head->meta_xxh = XXH3_64bits(meta, meta_len);
	p->head->head_xxh = XXH3_64bits(p->head, offsetof(struct wfs_disk_head, head_xxh));
	memcpy(tail, p->head, WFS_HEAD_BYTES);
}

static inline struct plain plain_of(const struct original *o)
{
	const u8 *meta = o->comp.at + (o->head.from_tail ? o->head.payload_off + o->head.payload_len : WFS_HEAD_BYTES);
	struct wfs_disk_meta directory;
	size_t len = sizeof(directory);
	struct plain p = {0};
	const u8 *comp;
	u8 *at;

	if (XXH3_64bits(meta, (size_t)o->head.meta_len) !=
	    o->head.meta_xxh) /* copy A is bad in some golden containers */
		meta = o->comp.at + o->head.payload_off + o->head.payload_len;
	memcpy(&directory, meta, sizeof(directory));
	p.nr_sections = directory.nr_sections;
	for (unsigned i = 0; i < p.nr_sections; i++) {
		struct wfs_disk_section s;

		memcpy(&s, meta + sizeof(directory) + i * sizeof(s), sizeof(s));
		len += sizeof(s) + (size_t)s.raw_len;
	}
	p.image.len = 2 * (WFS_HEAD_BYTES + len) + (size_t)o->head.payload_len;
	p.image.at = calloc(1, p.image.len);
	CHECK(p.image.at);
	p.head = (struct wfs_disk_head *)p.image.at;
	memcpy(p.head, o->head.from_tail ? o->comp.at + o->comp.len - WFS_HEAD_BYTES : o->comp.at, WFS_HEAD_BYTES);
	at = p.image.at + WFS_HEAD_BYTES;
	memcpy(at, meta, sizeof(directory) + p.nr_sections * sizeof(*p.section));
	p.section = (struct wfs_disk_section *)(at + sizeof(directory));
	comp = meta + sizeof(directory) + p.nr_sections * sizeof(*p.section);
	at += sizeof(directory) + p.nr_sections * sizeof(*p.section);
	for (unsigned i = 0; i < p.nr_sections; i++) {
		struct wfs_disk_section *s = &p.section[i];

		if (s->coding == WFS_LZ4)
			CHECK(LZ4_decompress_safe((const char *)comp, (char *)at, (int)s->comp_len, (int)s->raw_len) ==
			      (int)s->raw_len);
		else
			memcpy(at, comp, (size_t)s->comp_len);
		comp += s->comp_len;
		s->coding = WFS_STORED;
		s->comp_len = s->raw_len;
		p.body[i] = (struct bytes){at, (size_t)s->raw_len};
		at += s->raw_len;
	}
	p.head->meta_len = len;
	p.head->payload_off = WFS_HEAD_BYTES + len;
	p.head->file_len = p.image.len;
	memcpy(at, o->comp.at + o->head.payload_off, (size_t)o->head.payload_len);
	make_right(&p);
	return p;
}

static inline void forge_head(struct plain *p, uint64_t *rng)
{
	static const u8 field[][2] = {{8, 2},  {10, 2}, {12, 4}, {16, 8}, {24, 8}, {32, 4}, {36, 1},  {37, 1},
				      {40, 8}, {48, 8}, {56, 8}, {64, 8}, {72, 8}, {80, 8}, {112, 1}, {255, 1}};
	const u8 *f = field[test_rand_below(rng, WFS_ARRAY_LEN(field))];
	u64 value = 0;

	memcpy(&value, p->image.at + f[0], f[1]);
	value = odd_value(value, rng);
	memcpy(p->image.at + f[0], &value, f[1]);
	p->head->head_xxh = XXH3_64bits(p->head, offsetof(struct wfs_disk_head, head_xxh));
	memcpy(p->image.at + p->image.len - WFS_HEAD_BYTES, p->head, WFS_HEAD_BYTES);
}

/* Fields of up to 8 bytes anywhere in a section, or in its entry. */
static inline void forge_metadata(struct plain *p, uint64_t *rng)
{
	const unsigned i = (unsigned)test_rand_below(rng, p->nr_sections);

	for (u64 times = 1 + test_rand_below(rng, 2); times; times--) {
		const bool entry = test_rand_below(rng, 8) == 0 || !p->body[i].len;
		u8 *from = entry ? (u8 *)&p->section[i] : p->body[i].at;
		size_t len = entry ? sizeof(*p->section) : p->body[i].len;
		size_t at = (size_t)test_rand_below(rng, len);
		size_t size = (size_t)1 << test_rand_below(rng, 4);
		u64 value = 0;

		size = WFS_MIN(size, len - at);
		memcpy(&value, from + at, size);
		value = odd_value(value, rng);
		memcpy(from + at, &value, size);
	}
	make_right(p);
}

/* Bytes of a block's payload, and the hash of what it decodes to then. */
static inline void forge_payload(const struct subject *s, struct plain *p, uint64_t *rng)
{
	const struct wfs_block *b = &s->file.block[test_rand_below(rng, s->file.nr_blocks)];
	u8 *comp = p->image.at + p->head->payload_off + (b->comp_off - s->file.head.payload_off);
	int fd = memfd_create("forged", MFD_CLOEXEC);
	u8 *raw = malloc(b->raw_len);
	struct wfs_reader *reader;

	for (u64 times = 1 + test_rand_below(rng, 3); times && b->comp_len; times--)
		comp[test_rand_below(rng, b->comp_len)] ^= (u8)(1u << test_rand_below(rng, 8));
	CHECK(fd >= 0 && raw && pwrite(fd, p->image.at, p->image.len, 0) == (ssize_t)p->image.len);
	CHECK(wfs_reader_open(fd, NULL, &reader, NULL) == WFS_OK);
	if (wfs_block_decode(reader, b, comp, raw, s->scratch, WFS_DECODE_UNCHECKED, NULL) == WFS_OK) {
		u64 hash = XXH3_64bits(raw, b->raw_len);

		for (unsigned i = 0; i < p->nr_sections; i++)
			if (p->section[i].kind == WFS_SECTION_HASHES)
				memcpy(p->body[i].at + b->index * sizeof(hash), &hash, sizeof(hash));
	}
	make_right(p);
	wfs_reader_free(reader);
	close(fd);
	free(raw);
}

static inline struct bytes forged(const struct subject *s, enum kind kind, uint64_t *rng)
{
	struct plain p = plain_of(&s->file);

	if (kind == FORGED_HEAD)
		forge_head(&p, rng);
	else if (kind == FORGED_METADATA)
		forge_metadata(&p, rng);
	else if (s->file.nr_blocks)
		forge_payload(s, &p, rng);
	return p.image;
}

/* ---- what disks and copies do ---- */

/* Half of the lengths are those where a part of the container ends, and the ones beside them. */
static inline size_t cut_at(const struct original *o, uint64_t nr, uint64_t count, uint64_t *rng)
{
	const u64 end[] = {0,
			   WFS_HEAD_BYTES,
			   WFS_HEAD_BYTES + o->head.meta_len,
			   o->head.payload_off,
			   o->head.payload_off + o->head.payload_len,
			   o->head.payload_off + o->head.payload_len + o->head.meta_len,
			   o->comp.len - 1};
	u64 at = end[test_rand_below(rng, WFS_ARRAY_LEN(end))] + test_rand_below(rng, 3);

	if (test_rand_below(rng, 2))
		return spread(o->comp.len, nr, count, rng);
	return (size_t)(at ? WFS_MIN(at - 1, (u64)o->comp.len - 1) : 0);
}

static inline void swap_blocks(const struct original *o, u8 *image, uint64_t *rng)
{
	const struct wfs_block *a = &o->block[test_rand_below(rng, o->nr_blocks)];
	const struct wfs_block *b = &o->block[test_rand_below(rng, o->nr_blocks)];
	const size_t len = WFS_MIN(a->comp_len, b->comp_len);

	memcpy(image + a->comp_off, o->comp.at + b->comp_off, len);
	memcpy(image + b->comp_off, o->comp.at + a->comp_off, len);
}

/* len bytes of `from` at from_off, as far as both reach. */
static inline void put_bytes(struct bytes *image, size_t at, const struct bytes *from, size_t from_off, size_t len)
{
	if (at >= image->len || from_off >= from->len)
		return;
	len = WFS_MIN(len, WFS_MIN(image->len - at, from->len - from_off));
	memcpy(image->at + at, from->at + from_off, len);
}

static inline struct bytes torn(const struct subject *s, size_t at, uint64_t *rng)
{
	const bool older_first = test_rand_below(rng, 2);
	const struct bytes *first = older_first ? &s->older.comp : &s->file.comp;
	const struct bytes *second = older_first ? &s->file.comp : &s->older.comp;
	struct bytes image = copy_of(second, 0);

	memcpy(image.at, first->at, WFS_MIN(at, WFS_MIN(first->len, image.len)));
	return image;
}

/* Case nr of count. The caller frees the image. */
static inline struct bytes damaged(const struct subject *s, enum kind kind, uint64_t nr, uint64_t count, uint64_t *rng)
{
	const struct original *o = &s->file;
	const size_t len = o->comp.len, at = spread(len, nr, count, rng), page = at / PAGE * PAGE;
	const size_t pages = (size_t)(1 + test_rand_below(rng, 3)) * PAGE;
	const size_t some = 1 + (size_t)test_rand_below(rng, test_rand_below(rng, 2) ? 16 : 20000);
	struct bytes image;

	if (kind_is_forged(kind))
		return forged(s, kind, rng);
	if (kind == TORN)
		return torn(s, at, rng);
	image = copy_of(&o->comp, PAGE);
	switch (kind) {
	case FLIPPED_BIT:
		image.at[at] ^= (u8)(1u << test_rand_below(rng, 8));
		break;
	case RANDOM_BYTES:
		test_rand_fill(rng, image.at + at, WFS_MIN(some, len - at));
		break;
	case ZEROED_PAGES:
		memset(image.at + page, 0, WFS_MIN(pages, len - page));
		break;
	case CUT:
		image.len = cut_at(o, nr, count, rng);
		break;
	case GROWN:
		test_rand_fill(rng, image.at + len, PAGE);
		image.len += 1 + (size_t)test_rand_below(rng, PAGE);
		break;
	case SWAPPED_BLOCKS:
		if (o->nr_blocks)
			swap_blocks(o, image.at, rng);
		break;
	case FOREIGN_BYTES:
		put_bytes(&image, at, &s->other->comp, (size_t)test_rand_below(rng, s->other->comp.len), some);
		break;
	case ROLLED_BACK:
		put_bytes(&image, page, &s->older.comp, page, pages);
		break;
	default:
		put_bytes(&image, page, &o->comp, (size_t)test_rand_below(rng, len) / PAGE * PAGE, PAGE);
	}
	return image;
}

#endif
