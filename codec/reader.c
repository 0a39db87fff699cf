/* reader.c - look-ups in an open container, and its blocks read and decoded on the calling thread.
 *
 * Whatever decodes a block, its bytes leave wfs_block_decode only after their hash was checked.
 */
#include "checksum.h"
#include "container.h"
#include "file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* ---- look-ups ---- */

static u64 block_comp_off(const struct wfs_reader *r, u64 index)
{
	return r->group_off[index >> WFS_GROUP_LOG2] + r->rel_off[index];
}

void wfs_block_of_region(const struct wfs_reader *r, u64 region, u64 index, struct wfs_block *block_ret)
{
	const struct wfs_reader_region *g = &r->region[region];
	unsigned log2 = r->head.block_log2;
	u64 square = (g->raw_off >> log2) + (index - g->first_block); /* which multiple of the block size */
	u64 start = WFS_MAX(square << log2, g->raw_off), end = WFS_MIN((square + 1) << log2, g[1].raw_off);
	u64 comp_off = block_comp_off(r, index);
	u16 coder = r->selector[index] ? (u16)(r->selector[index] - 1) : g->coder;
	const struct wfs_coder *c = &r->coder[coder];

	*block_ret = (struct wfs_block){
		.index = index,
		.raw_off = start,
		.comp_off = r->head.payload_off + comp_off,
		.raw_len = (u32)(end - start),
		.comp_len = (u32)(block_comp_off(r, index + 1) - comp_off),
		.hash = r->hash[index],
		.coding = c->coding,
		.coder = coder,
		.word = c->word,
		.field = c->field,
		.phase = (u8)((g->phase + (start - g->raw_off)) % c->word),
	};
}

/* The last region whose first block is index or before. Regions without blocks share that number with the coded one
 * that follows them, which comes later. */
void wfs_reader_block(const struct wfs_reader *reader, uint64_t index, struct wfs_block *block_ret)
{
	u64 low = 0, high = reader->nr_regions;

	while (high - low > 1) {
		u64 mid = low + (high - low) / 2;

		if (reader->region[mid].first_block <= index)
			low = mid;
		else
			high = mid;
	}
	wfs_block_of_region(reader, low, index, block_ret);
}

/* fill[i] = byte `at + i` of a constant region. */
static void region_fill(const struct wfs_reader_region *g, u64 at, u8 fill[8])
{
	for (unsigned i = 0; i < 8; i++)
		fill[i] = (u8)(g->arg >> 8 * ((g->phase + at + i) % 8));
}

void wfs_reader_region(const struct wfs_reader *reader, uint64_t index, struct wfs_region *region_ret)
{
	const struct wfs_reader_region *g = &reader->region[index];

	*region_ret = (struct wfs_region){
		.raw_off = g->raw_off,
		.raw_len = g[1].raw_off - g->raw_off,
		.kind = g->kind,
		.first_block = g->first_block,
		.nr_blocks = g[1].first_block - g->first_block,
	};
	if (g->kind == WFS_REGION_CODED) {
		region_ret->coding = reader->coder[g->coder].coding;
		region_ret->word = reader->coder[g->coder].word;
		region_ret->field = reader->coder[g->coder].field;
	} else if (g->kind == WFS_REGION_COPY) {
		region_ret->copy_of = g->arg;
	} else {
		region_fill(g, 0, region_ret->fill);
	}
}

void wfs_reader_extent(const struct wfs_reader *reader, uint64_t raw_off, struct wfs_extent *extent_ret)
{
	const struct wfs_reader_region *g = &reader->region[wfs_region_at(reader, raw_off)];
	u64 at = raw_off, end = g[1].raw_off, copied = UINT64_MAX;
	unsigned log2 = reader->head.block_log2;

	*extent_ret = (struct wfs_extent){.raw_off = raw_off, .block = WFS_NO_BLOCK};
	if (g->kind == WFS_REGION_COPY) { /* checked at open: its source holds no copy */
		copied = end - raw_off;
		at = g->arg + (raw_off - g->raw_off);
		g = &reader->region[wfs_region_at(reader, at)];
		end = g[1].raw_off;
	}
	if (g->kind == WFS_REGION_CODED) {
		u64 square = at >> log2, start = WFS_MAX(square << log2, g->raw_off);

		extent_ret->block = g->first_block + (square - (g->raw_off >> log2));
		extent_ret->skip = (u32)(at - start);
		end = WFS_MIN(end, (square + 1) << log2);
	} else {
		region_fill(g, at - g->raw_off, extent_ret->fill);
	}
	extent_ret->len = WFS_MIN(end - at, copied);
}

/* ---- blocks ---- */

static enum wfs_status check_sha256(const struct wfs_reader *r, const struct wfs_block *block, const void *raw,
				    struct wfs_error *err)
{
	u8 digest[WFS_SHA256_BYTES];

	if (EVP_Digest(raw, block->raw_len, digest, NULL, r->sha256, NULL) != 1)
		return wfs_fail_block(err, WFS_NO_MEMORY, block->index, "cannot compute SHA-256");
	if (memcmp(digest, r->block_sha256 + block->index * WFS_SHA256_BYTES, sizeof(digest)))
		return wfs_fail_block(err, WFS_BAD_CHECKSUM, block->index,
				      "the decoded bytes do not match their SHA-256");
	return WFS_OK;
}

enum wfs_status wfs_block_decode(const struct wfs_reader *reader, const struct wfs_block *block, const void *comp,
				 void *raw, struct wfs_scratch *scratch, unsigned flags, struct wfs_error *err)
{
	const struct wfs_coder *coder = &reader->coder[block->coder];
	const struct wfs_decode_tables tables = {
		.split = wfs_coding_is_split(coder->coding) ? reader->pool[coder->pool] : NULL,
		.wide = wfs_coding_is_wide(coder->coding) ? reader->wide_pool[coder->pool] : NULL,
		.grid = wfs_coding_is_grid(coder->coding) ? &reader->grid[coder->grid] : NULL,
	};
	const char *reason = NULL;
	enum wfs_status status = wfs_payload_decode(coder, &tables, &reader->kernels, block->phase, comp,
						    block->comp_len, raw, block->raw_len, scratch, &reason);

	if (status != WFS_OK)
		return wfs_fail_block(err, status, block->index, reason);
	if (!(flags & WFS_DECODE_UNCHECKED) && wfs_hash64(reader->cpu, raw, block->raw_len) != block->hash)
		return wfs_fail_block(err, WFS_BAD_CHECKSUM, block->index, "the decoded bytes do not match their hash");
	if (!(flags & WFS_DECODE_UNCHECKED) && reader->check_sha256)
		return check_sha256(reader, block, raw, err);
	return WFS_OK;
}

/* The first of the blocks first..last that does not end before comp byte `end` of the file. */
static u64 first_cut_block(const struct wfs_reader *r, u64 first, u64 last, u64 end)
{
	while (first < last && r->head.payload_off + block_comp_off(r, first + 1) <= end)
		first++;
	return first;
}

/* Read once more what could not be read. XFS caches up to 2 MiB in one piece, of which no byte can be had when one
 * sector is bad: let it go, and have single pages from now on. */
static int pread_by_pages(int fd, void *buf, size_t len, u64 off, size_t *got_ret)
{
	const u64 around = 2 << 20, from = off - WFS_MIN(off, around);

	(void)posix_fadvise(fd, (off_t)from, (off_t)(off - from + len + around), POSIX_FADV_DONTNEED);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	return wfs_pread_full(fd, buf, len, off, got_ret);
}

enum wfs_status wfs_block_load(const struct wfs_reader *reader, const struct wfs_block *first,
			       const struct wfs_block *last, void *comp, struct wfs_error *err)
{
	size_t got, len = (size_t)(last->comp_off + last->comp_len - first->comp_off);
	int sys_errno = wfs_pread_full(reader->fd, comp, len, first->comp_off, &got);

	if (sys_errno == EIO)
		sys_errno = pread_by_pages(reader->fd, comp, len, first->comp_off, &got);
	if (sys_errno) {
		wfs_fail_io(err, sys_errno, "cannot read a block");
		if (err)
			err->block = first->index;
		return WFS_IO;
	}
	if (got < len)
		return wfs_fail_block(err, WFS_BAD_DATA,
				      first_cut_block(reader, first->index, last->index, first->comp_off + got),
				      "the container is cut off in this block");
	return WFS_OK;
}

/* ---- ranges ---- */

static void fill_constant(u8 *out, size_t len, const u8 fill[8])
{
	size_t i = 0;

	for (; i + 8 <= len; i += 8)
		memcpy(out + i, fill, 8);
	memcpy(out + i, fill, len - i);
}

struct wfs_read_buffers *wfs_read_buffers_new(void)
{
	struct wfs_read_buffers *buffers = malloc(sizeof(*buffers));

	if (buffers)
		buffers->block = WFS_NO_BLOCK;
	return buffers;
}

/* A part of a block that lies in buffers->raw already or is decoded there. */
static enum wfs_status read_part(const struct wfs_reader *reader, const struct wfs_extent *x, u8 *buf, size_t len,
				 struct wfs_scratch *scratch, struct wfs_read_buffers *buffers, struct wfs_error *err)
{
	enum wfs_status status;
	struct wfs_block b;

	if (buffers->block == x->block) {
		memcpy(buf, buffers->raw + x->skip, len);
		return WFS_OK;
	}
	wfs_reader_block(reader, x->block, &b);
	status = wfs_block_load(reader, &b, &b, buffers->comp, err);
	if (status != WFS_OK)
		return status;
	if (len == b.raw_len)
		return wfs_block_decode(reader, &b, buffers->comp, buf, scratch, 0, err);
	buffers->block = WFS_NO_BLOCK;
	status = wfs_block_decode(reader, &b, buffers->comp, buffers->raw, scratch, 0, err);
	if (status != WFS_OK)
		return status;
	buffers->block = x->block;
	memcpy(buf, buffers->raw + x->skip, len);
	return WFS_OK;
}

enum wfs_status wfs_reader_read_with(const struct wfs_reader *reader, u64 off, u8 *buf, size_t len,
				     struct wfs_scratch *scratch, struct wfs_read_buffers *buffers,
				     struct wfs_error *err)
{
	enum wfs_status status = WFS_OK;

	while (len && status == WFS_OK) {
		struct wfs_extent x;
		size_t part;

		wfs_reader_extent(reader, off, &x);
		part = (size_t)WFS_MIN(x.len, (u64)len);
		if (x.block == WFS_NO_BLOCK)
			fill_constant(buf, part, x.fill);
		else
			status = read_part(reader, &x, buf, part, scratch, buffers, err);
		off += part;
		buf += part;
		len -= part;
	}
	return status;
}

enum wfs_status wfs_reader_read(const struct wfs_reader *reader, uint64_t off, void *buf, size_t len,
				struct wfs_scratch *scratch, struct wfs_error *err)
{
	struct wfs_read_buffers *buffers;
	enum wfs_status status;

	if (off > reader->head.raw_len || len > reader->head.raw_len - off)
		return wfs_fail(err, WFS_BAD_ARGUMENT, "the range ends behind the original's end");
	buffers = wfs_read_buffers_new();
	if (!buffers)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for reading");
	status = wfs_reader_read_with(reader, off, buf, len, scratch, buffers, err);
	free(buffers);
	return status;
}

/* ---- the whole original ---- */

struct verify {
	EVP_MD_CTX *sha256;
	const struct wfs_reader *reader;
	wfs_progress_fn progress;
	void *ctx;
	u64 raw_done;
	bool failed;
};

/* Stored bytes before raw_off: what progress reports. */
static u64 comp_before(const struct wfs_reader *r, u64 raw_off)
{
	const struct wfs_reader_region *g;
	u64 index;

	if (raw_off >= r->head.raw_len)
		return r->head.payload_len;
	g = &r->region[wfs_region_at(r, raw_off)];
	index = g->first_block;
	if (g->kind == WFS_REGION_CODED)
		index += (raw_off >> r->head.block_log2) - (g->raw_off >> r->head.block_log2);
	return block_comp_off(r, index);
}

static int verify_sink(void *ctx, const void *raw, size_t len)
{
	struct verify *v = ctx;

	if (EVP_DigestUpdate(v->sha256, raw, len) != 1) {
		v->failed = true;
		return 1;
	}
	v->raw_done += len;
	return v->progress ? v->progress(v->ctx, v->raw_done, comp_before(v->reader, v->raw_done)) : 0;
}

enum wfs_status wfs_reader_verify(const struct wfs_reader *reader, unsigned nr_threads, wfs_progress_fn progress,
				  void *ctx, struct wfs_error *err)
{
	struct verify v = {EVP_MD_CTX_new(), reader, progress, ctx, 0, false};
	u8 sha256[EVP_MAX_MD_SIZE];
	enum wfs_status status;

	if (!v.sha256 || EVP_DigestInit_ex(v.sha256, EVP_sha256(), NULL) != 1) {
		status = wfs_fail(err, WFS_NO_MEMORY, "cannot start SHA-256");
		goto out;
	}
	status = wfs_reader_stream(reader, 0, reader->head.raw_len, nr_threads, verify_sink, &v, err);
	if (v.failed || (status == WFS_OK && EVP_DigestFinal_ex(v.sha256, sha256, NULL) != 1))
		status = wfs_fail(err, WFS_NO_MEMORY, "cannot compute SHA-256");
	else if (status == WFS_OK && memcmp(sha256, reader->head.sha256, sizeof(reader->head.sha256)))
		status = wfs_fail(err, WFS_BAD_CHECKSUM, "the decoded file does not match its SHA-256");
out:
	EVP_MD_CTX_free(v.sha256);
	return status;
}
