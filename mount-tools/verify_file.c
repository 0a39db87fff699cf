/* verify_file.c - prove one container, and say exactly what is wrong with a damaged one. */
#include "verify_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD_BYTES = 4096, MAX_BLOCK_BYTES = 1 << 20 };

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[NR_VERDICTS] = {"ok", "degraded", "damaged", "unsupported", "error", "none"};
	return names[verdict];
}

static enum verdict verdict_of(enum wfs_status status)
{
	switch (status) {
	case WFS_BAD_DATA:
	case WFS_BAD_CHECKSUM:
		return VERDICT_DAMAGED;
	case WFS_UNSUPPORTED:
		return VERDICT_UNSUPPORTED;
	case WFS_NOT_CONTAINER:
		return VERDICT_NONE;
	default:
		return VERDICT_ERROR;
	}
}

static void set_failure(struct verify_result *r, const struct wfs_reader *reader, const struct wfs_error *err)
{
	char reason[REASON_BYTES];
	wfs_reason(reason, reader, err);
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
	r->verdict = verdict_of(err->status);
}

/* Compare two ranges of the file. false: they differ or cannot be read. */
static bool same_ranges(int fd, uint64_t a, uint64_t b, uint64_t len)
{
	enum { STEP = 64 << 10 };
	char *buf = xcalloc(2, STEP);
	bool same = true;
	for (uint64_t done = 0; same && done < len; done += STEP) {
		size_t want = (size_t)MIN((uint64_t)STEP, len - done);
		same = pread_full(fd, buf, want, (off_t)(a + done)) == (ssize_t)want &&
		       pread_full(fd, buf + STEP, want, (off_t)(b + done)) == (ssize_t)want &&
		       !memcmp(buf, buf + STEP, want);
	}
	free(buf);
	return same;
}

/* A reader takes the first good copy; whether the spare ones are good it does not look at. */
static void check_spare_copies(int fd, const struct wfs_info *info, struct verify_result *r)
{
	const struct wfs_head *h = &info->head;
	const char *what = NULL;
	if (h->from_tail || !same_ranges(fd, 0, h->file_len - HEAD_BYTES, HEAD_BYTES))
		what = h->from_tail ? "the head" : "the copy of the head at the end";
	else if (info->meta_from_copy_b || !same_ranges(fd, HEAD_BYTES, h->payload_off + h->payload_len, h->meta_len))
		what = info->meta_from_copy_b ? "the first copy of the metadata" : "the second copy of the metadata";
	if (!what)
		return;
	r->verdict = VERDICT_DEGRADED;
	snprintf(r->reason, sizeof(r->reason),
		 "%s is damaged; every byte of the original is right: unpack it and pack it again", what);
}

/* Look at every block, to say how many are lost and which. */
static void list_bad_blocks(const struct wfs_reader *reader, struct verify_result *r)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	char *comp = xcalloc(2, MAX_BLOCK_BYTES), *raw = comp + MAX_BLOCK_BYTES;
	for (uint64_t i = 0; scratch && i < r->nr_blocks; i++) {
		struct wfs_error err = {0};
		struct wfs_block block;
		wfs_reader_block(reader, i, &block);
		if (wfs_block_load(reader, &block, &block, comp, &err) == WFS_OK &&
		    wfs_block_decode(reader, &block, comp, raw, scratch, 0, &err) == WFS_OK)
			continue;
		if (r->nr_bad_blocks < MAX_LISTED_BAD_BLOCKS)
			r->bad_block[r->nr_bad_blocks] =
				(struct bad_block){i, block.raw_off, block.raw_len,
						   err.status == WFS_IO ? strerror(err.sys_errno) : err.reason};
		r->nr_bad_blocks++;
	}
	free(comp);
	wfs_scratch_free(scratch);
	if (r->nr_bad_blocks > 1) {
		size_t len = strlen(r->reason);
		snprintf(r->reason + len, sizeof(r->reason) - len, "; %llu of %llu blocks are damaged",
			 (unsigned long long)r->nr_bad_blocks, (unsigned long long)r->nr_blocks);
	}
}

struct verify_progress {
	struct progress *progress;
	uint64_t told;
};

static int on_progress(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	struct verify_progress *p = ctx;
	(void)comp_done;
	if (raw_done > p->told) {
		progress_add(p->progress, raw_done - p->told);
		p->told = raw_done;
	}
	return 0;
}

static int drop_piece(void *ctx, const void *raw, size_t len)
{
	struct verify_progress *p = ctx;
	(void)raw;
	progress_add(p->progress, len);
	p->told += len;
	return 0;
}

static void check_name(const char *name, struct verify_result *r)
{
	uint8_t named[SHA256_BYTES];
	char original[NAME_MAX + 1];
	if (!container_name(name, original) || !sha256_from_name(original, named) ||
	    !memcmp(named, r->head.sha256, SHA256_BYTES))
		return;
	r->verdict = VERDICT_DAMAGED;
	snprintf(r->reason, sizeof(r->reason), "its name is a SHA-256, but not that of its content");
}

static void check_content(const struct wfs_reader *reader, const struct verify_opts *opts, struct verify_result *r)
{
	struct verify_progress progress = {.progress = opts->progress};
	struct wfs_error err = {0};
	enum wfs_status status;
	if (opts->fast)
		status = wfs_reader_stream(reader, 0, r->head.raw_len, opts->nr_threads, drop_piece, &progress, &err);
	else
		status = wfs_reader_verify(reader, opts->nr_threads, on_progress, &progress, &err);
	if (status != WFS_OK) {
		set_failure(r, reader, &err);
		if (err.block != WFS_NO_BLOCK)
			list_bad_blocks(reader, r);
	}
	progress_add(opts->progress, r->head.raw_len - MIN(progress.told, r->head.raw_len));
}

void verify_container(int fd, const char *name, const struct verify_opts *opts, struct verify_result *result)
{
	const struct wfs_reader_opts reader_opts = {.cpu = opts->cpu};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	struct wfs_info info;
	struct stat st;
	memset(result, 0, sizeof(*result));
	if (!fstat(fd, &st))
		result->stored_bytes = (uint64_t)st.st_size;
	result->head_known = wfs_head_read(fd, &result->head, &err) == WFS_OK;
	if (!result->head_known || wfs_reader_open(fd, &reader_opts, &reader, &err) != WFS_OK) {
		set_failure(result, NULL, &err);
		return;
	}
	wfs_reader_info(reader, &info);
	result->head = info.head;
	result->nr_blocks = info.nr_blocks;
	check_content(reader, opts, result);
	if (result->verdict == VERDICT_OK)
		check_spare_copies(fd, &info, result);
	if (result->verdict == VERDICT_OK)
		check_name(name, result);
	wfs_reader_free(reader);
}
