/* info.c - collect what a container holds: sums by coding and dtype, what each tensor costs. */
#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *coding_name(unsigned coding)
{
	static const char *const names[NR_CODINGS] = {
		[WFS_STORED] = "stored", [WFS_LZ4] = "lz4",   [WFS_CONSTANT] = "constant",   [WFS_SPLIT] = "split",
		[WFS_GRID] = "grid",	 [WFS_WIDE] = "wide", [WFS_GRID_WIDE] = "grid-wide", [WFS_RECORDS] = "records",
	};
	return coding < NR_CODINGS ? names[coding] : "unknown";
}

uint64_t tensor_weights(const struct wfs_tensor *t)
{
	unsigned bits = wfs_dtype_bits(t->dtype);
	/* 2^61 bytes overflow in bits: no file is that long. */
	return bits ? t->raw_len / bits * 8 + t->raw_len % bits * 8 / bits : 0;
}

double bits_per_weight(double stored_bytes, uint64_t nr_weights)
{
	return nr_weights ? 8 * stored_bytes / (double)nr_weights : 0;
}

static void collect_blocks(struct info *info)
{
	for (uint64_t i = 0; i < info->wfs.nr_blocks; i++) {
		struct wfs_block block;
		wfs_reader_block(info->reader, i, &block);
		if ((unsigned)block.coding >= NR_CODINGS)
			continue;
		info->coding[block.coding].nr_blocks++;
		info->coding[block.coding].raw_bytes += block.raw_len;
		info->coding[block.coding].stored_bytes += block.comp_len;
	}
}

static double block_stored_before(const struct info *info, uint64_t block_index)
{
	struct wfs_block block;
	if (block_index >= info->wfs.nr_blocks)
		return (double)info->wfs.head.payload_len;
	wfs_reader_block(info->reader, block_index, &block);
	return (double)(block.comp_off - info->wfs.head.payload_off);
}

static void collect_regions(struct info *info)
{
	double before = 0;
	info->region_stored = xcalloc(info->wfs.nr_regions, sizeof(double));
	for (uint64_t i = 0; i < info->wfs.nr_regions; i++) {
		struct wfs_region region;
		wfs_reader_region(info->reader, i, &region);
		info->region_stored[i] = before;
		if (region.kind == WFS_REGION_CODED)
			before = block_stored_before(info, region.first_block + region.nr_blocks);
		else if (region.kind == WFS_REGION_CONSTANT)
			info->constant_bytes += region.raw_len;
		else
			info->copied_bytes += region.raw_len;
	}
}

double info_stored_before(const struct info *info, uint64_t raw_off)
{
	uint64_t low = 0, high = info->wfs.nr_regions, first;
	struct wfs_region region;
	struct wfs_block block;
	if (raw_off >= info->wfs.head.raw_len || high == 0)
		return (double)info->wfs.head.payload_len;
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;
		wfs_reader_region(info->reader, mid, &region);
		if (region.raw_off <= raw_off)
			low = mid;
		else
			high = mid;
	}
	wfs_reader_region(info->reader, low, &region);
	if (region.kind != WFS_REGION_CODED)
		return info->region_stored[low];
	first = region.raw_off >> info->wfs.head.block_log2;
	wfs_reader_block(info->reader, region.first_block + (raw_off >> info->wfs.head.block_log2) - first, &block);
	return (double)(block.comp_off - info->wfs.head.payload_off) +
	       (double)block.comp_len * (double)(raw_off - block.raw_off) / (double)block.raw_len;
}

static struct dtype_sum *dtype_of(struct info *info, const char *name)
{
	for (size_t i = 0; i < info->nr_dtypes; i++)
		if (!strncmp(info->dtype[i].name, name, DTYPE_TEXT_BYTES - 1))
			return &info->dtype[i];
	info->dtype = xrealloc(info->dtype, info->nr_dtypes + 1, sizeof(*info->dtype));
	info->dtype[info->nr_dtypes] = (struct dtype_sum){0};
	snprintf(info->dtype[info->nr_dtypes].name, DTYPE_TEXT_BYTES, "%s", name);
	return &info->dtype[info->nr_dtypes++];
}

static void collect_tensors(struct info *info)
{
	info->tensor_stored = xcalloc(info->tensors->nr, sizeof(double));
	for (size_t i = 0; i < info->tensors->nr; i++) {
		const struct wfs_tensor *t = &info->tensors->tensor[i];
		struct dtype_sum *sum = dtype_of(info, t->dtype);
		if (t->raw_len)
			info->tensor_stored[i] = info_stored_before(info, t->raw_off + t->raw_len) -
						 info_stored_before(info, t->raw_off);
		sum->nr_tensors++;
		sum->nr_weights += tensor_weights(t);
		sum->raw_bytes += t->raw_len;
		sum->stored_bytes += info->tensor_stored[i];
	}
}

struct scan_ctx {
	const struct wfs_reader *reader;
	struct wfs_scratch *scratch;
};

static enum wfs_status scan_pread(void *ctx, void *buf, size_t len, uint64_t off)
{
	struct scan_ctx *s = ctx;
	return wfs_reader_read(s->reader, off, buf, len, s->scratch, NULL);
}

void info_open(struct info *info, const char *path, uint64_t present_bytes, const struct wfs_reader *reader)
{
	*info = (struct info){.path = path, .present_bytes = present_bytes, .reader = reader};
	wfs_reader_info(reader, &info->wfs);
	info->stored_bytes = info->wfs.head.file_len;
	collect_blocks(info);
	collect_regions(info);
}

bool info_collect(struct info *info, const char *path, uint64_t present_bytes, const struct wfs_reader *reader)
{
	struct scan_ctx ctx = {.reader = reader, .scratch = wfs_scratch_new()};
	struct wfs_error err = {0};
	char reason[REASON_BYTES];
	enum wfs_status status = WFS_NO_MEMORY;
	info_open(info, path, present_bytes, reader);
	err.reason = "out of memory";
	if (ctx.scratch)
		status = wfs_safetensors_scan(scan_pread, &ctx, info->wfs.head.raw_len, &info->tensors, &err);
	wfs_scratch_free(ctx.scratch);
	if (status == WFS_OK)
		collect_tensors(info);
	if (status == WFS_OK || status == WFS_NOT_CONTAINER)
		return true;
	wfs_reason(reason, reader, &err);
	msg("info: %s: cannot read the original's header: %s", path, reason);
	return false;
}

void info_free(struct info *info)
{
	free(info->region_stored);
	free(info->tensor_stored);
	free(info->dtype);
	wfs_tensors_free(info->tensors);
}
