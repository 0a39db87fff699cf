/* container_rewrite.c - give a container the SHA-256 of its blocks: the same payload under new metadata.
 *
 * Blocks go by in windows; lane i of a window takes every nr_lanes-th block. What a lane copies is what it has decoded,
 * so that a container that changes meanwhile cannot come out whole and wrong.
 */
#include "container.h"
#include "container_write.h"
#include "cursor.h"
#include "file_io.h"
#include "parallel.h"

#include <stdlib.h>

enum { MAX_LANES = 32, BLOCKS_PER_LANE = 8 };

struct lane {
	struct wfs_scratch *scratch;
	struct wfs_read_buffers *buffers;
	struct wfs_error error; /* status WFS_OK: none */
};

struct rewrite {
	const struct wfs_reader *reader;
	struct wfs_container_writer writer;
	EVP_MD *md;
	u8 *sha256;    /* nr_blocks times 32 bytes */
	u64 from, end; /* blocks of the window */
	unsigned nr_lanes;
	struct lane lane[MAX_LANES];
};

static enum wfs_status copy_block(struct rewrite *w, struct lane *lane, u64 index)
{
	u64 shift = w->writer.payload_off - w->reader->head.payload_off; /* modulo 2^64 */
	struct wfs_error *err = &lane->error;
	enum wfs_status status;
	struct wfs_block b;
	int sys_errno;

	wfs_reader_block(w->reader, index, &b);
	status = wfs_block_load(w->reader, &b, &b, lane->buffers->comp, err);
	if (status == WFS_OK)
		status =
			wfs_block_decode(w->reader, &b, lane->buffers->comp, lane->buffers->raw, lane->scratch, 0, err);
	if (status != WFS_OK)
		return status;
	if (EVP_Digest(lane->buffers->raw, b.raw_len, w->sha256 + index * WFS_SHA256_BYTES, NULL, w->md, NULL) != 1)
		return wfs_fail(err, WFS_NO_MEMORY, "cannot compute SHA-256");
	sys_errno = wfs_pwrite_full(w->writer.fd, lane->buffers->comp, b.comp_len, b.comp_off + shift);
	return sys_errno ? wfs_fail_io(err, sys_errno, "cannot write the container") : WFS_OK;
}

static void run_lane(void *ctx, size_t i)
{
	struct rewrite *w = ctx;

	for (u64 index = w->from + i; index < w->end; index += w->nr_lanes)
		if (copy_block(w, &w->lane[i], index) != WFS_OK)
			return;
}

static enum wfs_status copy_blocks(struct rewrite *w, wfs_progress_fn progress, void *ctx, struct wfs_error *err)
{
	const struct wfs_reader *r = w->reader;
	struct wfs_block last;

	for (; w->from < r->nr_blocks; w->from = w->end) {
		w->end = WFS_MIN(w->from + (u64)w->nr_lanes * BLOCKS_PER_LANE, r->nr_blocks);
		wfs_parallel_for(w->nr_lanes, w->nr_lanes, run_lane, w);
		for (unsigned i = 0; i < w->nr_lanes; i++) {
			if (w->lane[i].error.status == WFS_OK)
				continue;
			if (err)
				*err = w->lane[i].error;
			return w->lane[i].error.status;
		}
		wfs_reader_block(r, w->end - 1, &last);
		if (progress &&
		    progress(ctx, last.raw_off + last.raw_len, last.comp_off + last.comp_len - r->head.payload_off))
			return wfs_fail(err, WFS_CANCELLED, "cancelled");
	}
	return WFS_OK;
}

/* The metadata with room for one more section at its place, whose body is left zero; *body_off_ret: where. */
static u8 *insert_section(const u8 *meta, size_t len, u64 body_len, size_t *new_len_ret, size_t *body_off_ret)
{
	const size_t entry_len = sizeof(struct wfs_disk_section), new_len = len + entry_len + (size_t)body_len;
	const struct wfs_disk_section added = {
		.kind = WFS_SECTION_SHA256, .coding = WFS_STORED, .comp_len = body_len, .raw_len = body_len};
	struct wfs_cursor c = wfs_cursor_make(meta, len);
	u64 nr_before = 0, bytes_before = 0, directory_len;
	struct wfs_disk_meta start;
	const u8 *entries;
	u8 *new_meta;

	if (!wfs_cursor_copy(&c, &start, sizeof(start)) || start.nr_sections >= WFS_MAX_SECTIONS)
		return NULL;
	directory_len = start.nr_sections * entry_len;
	entries = wfs_cursor_take(&c, directory_len);
	for (u32 i = 0; entries && i < start.nr_sections; i++) {
		struct wfs_disk_section s;

		memcpy(&s, entries + i * entry_len, entry_len);
		if (s.kind >= WFS_SECTION_SHA256)
			break;
		nr_before++;
		bytes_before += s.comp_len;
	}
	new_meta = entries && bytes_before <= c.left ? calloc(1, new_len) : NULL;
	if (!new_meta)
		return NULL;
	start.nr_sections++;
	memcpy(new_meta, &start, sizeof(start));
	*body_off_ret = sizeof(start);
	memcpy(new_meta + *body_off_ret, entries, nr_before * entry_len);
	*body_off_ret += nr_before * entry_len;
	memcpy(new_meta + *body_off_ret, &added, entry_len);
	*body_off_ret += entry_len;
	memcpy(new_meta + *body_off_ret, entries + nr_before * entry_len, directory_len - nr_before * entry_len);
	*body_off_ret = sizeof(start) + directory_len + entry_len;
	memcpy(new_meta + *body_off_ret, c.at, bytes_before);
	*body_off_ret += bytes_before;
	memcpy(new_meta + *body_off_ret + body_len, c.at + bytes_before, c.left - bytes_before);
	*new_len_ret = new_len;
	return new_meta;
}

static enum wfs_status lanes_init(struct rewrite *w, unsigned nr_threads, struct wfs_error *err)
{
	w->nr_lanes = WFS_MIN(wfs_thread_count(nr_threads), (unsigned)MAX_LANES);
	w->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	w->sha256 = calloc(w->reader->nr_blocks + 1, WFS_SHA256_BYTES);
	for (unsigned i = 0; i < w->nr_lanes; i++) {
		w->lane[i].scratch = wfs_scratch_new();
		w->lane[i].buffers = malloc(sizeof(*w->lane[i].buffers));
		if (!w->lane[i].scratch || !w->lane[i].buffers)
			return wfs_fail(err, WFS_NO_MEMORY, "out of memory for decoding");
	}
	return w->md && w->sha256 ? WFS_OK : wfs_fail(err, WFS_NO_MEMORY, "out of memory for SHA-256");
}

static void lanes_free(struct rewrite *w)
{
	for (unsigned i = 0; i < w->nr_lanes; i++) {
		wfs_scratch_free(w->lane[i].scratch);
		free(w->lane[i].buffers);
	}
	free(w->sha256);
	EVP_MD_free(w->md);
}

enum wfs_status wfs_container_add_sha256(const struct wfs_reader *reader, int dst_fd, unsigned nr_threads,
					 wfs_progress_fn progress, void *ctx, struct wfs_error *err)
{
	const struct wfs_head *h = &reader->head;
	const u64 body_len = reader->nr_blocks * WFS_SHA256_BYTES;
	struct rewrite w = {.reader = reader, .writer = {.fd = dst_fd, .payload_len = h->payload_len}};
	struct wfs_disk_head d = {.raw_len = h->raw_len,
				  .mtime_sec = h->mtime_sec,
				  .mtime_nsec = h->mtime_nsec,
				  .block_log2 = (u8)h->block_log2};
	u8 *old_meta = NULL, *meta = NULL;
	size_t meta_len = 0, body_off = 0;
	bool from_copy_b;
	enum wfs_status status;

	if (reader->has_sha256)
		return wfs_fail(err, WFS_BAD_ARGUMENT, "the container has the SHA-256 of its blocks already");
	status = lanes_init(&w, nr_threads, err);
	if (status == WFS_OK)
		status = wfs_meta_load(reader, &old_meta, &from_copy_b, err);
	if (status != WFS_OK)
		goto out;
	meta = insert_section(old_meta, (size_t)h->meta_len, body_len, &meta_len, &body_off);
	if (!meta) {
		status = wfs_fail(err, WFS_NO_MEMORY, "no room for the SHA-256 of its blocks in the metadata");
		goto out;
	}
	w.writer.payload_off = WFS_HEAD_BYTES + meta_len;
	status = copy_blocks(&w, progress, ctx, err);
	if (status != WFS_OK)
		goto out;
	memcpy(meta + body_off, w.sha256, (size_t)body_len);
	memcpy(d.sha256, h->sha256, sizeof(d.sha256));
	d.meta_len = meta_len;
	status = wfs_container_frame(&w.writer, &d, meta, err);
out:
	free(meta);
	free(old_meta);
	lanes_free(&w);
	return status;
}
