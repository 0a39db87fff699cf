/* estimate.c - what encoding a file would give, from evenly spread blocks of it.
 *
 * The plan is made as for encoding, pools included; some of the blocks are then encoded with it.
 */
#include "block_choose.h"
#include "container_write.h"
#include "parallel.h"

#include <stdlib.h>

/* On whole models within 0.1 points; 16 MiB are within 1. */
enum { SAMPLE_BYTES = 128 << 20 };

/* One thread's share of the samples. */
struct share {
	u64 first, last; /* samples first .. last - 1 */
	u64 raw_len, comp_len;
	enum wfs_status status;
	struct wfs_error error;
};

struct estimate {
	const struct wfs_source *source;
	const struct wfs_plan *plan;
	enum wfs_cpu cpu;
	u64 sample_bytes, nr_samples;
	struct share share[WFS_MAX_THREADS];
};

/* The coded region of a block: the last one whose first block is index or before. */
static u64 region_of_block(const struct wfs_plan *plan, u64 index)
{
	u64 low = 0, high = plan->nr_regions;

	while (high - low > 1) {
		u64 mid = low + (high - low) / 2;

		if (plan->first_block[mid] <= index)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static enum wfs_status sample_block(const struct estimate *e, struct wfs_chooser *chooser, u64 index, u8 *buf,
				    struct share *share)
{
	u64 region = region_of_block(e->plan, index);
	const struct wfs_disk_region *g = &e->plan->region[region];
	unsigned log2 = e->plan->block_log2;
	u64 square = (g->start >> log2) + (index - e->plan->first_block[region]);
	u64 start = WFS_MAX(square << log2, g->start), end = WFS_MIN((square + 1) << log2, g->start + g->len);
	enum wfs_status status = wfs_source_read(e->source, buf, (size_t)(end - start), start, &share->error);

	if (status != WFS_OK)
		return status;
	share->raw_len += end - start;
	share->comp_len +=
		wfs_block_choose(chooser, region, start, buf, (u32)(end - start), buf + WFS_MAX_BLOCK).comp_len;
	return WFS_OK;
}

static void sample_share(void *ctx, size_t index)
{
	struct estimate *e = ctx;
	struct share *share = &e->share[index];
	struct wfs_chooser *chooser = wfs_chooser_new(e->plan, e->cpu);
	u8 *buf = malloc(2 * WFS_MAX_BLOCK);

	share->status = chooser && buf ? WFS_OK : wfs_fail(&share->error, WFS_NO_MEMORY, "out of memory for encoding");
	for (u64 i = share->first; i < share->last && share->status == WFS_OK; i++)
		share->status = sample_block(e, chooser, i * e->plan->nr_blocks / e->nr_samples, buf, share);
	free(buf);
	wfs_chooser_free(chooser);
}

/* Stored bytes of all blocks, as the samples have it. */
static enum wfs_status payload_estimate(struct estimate *e, unsigned nr_threads, u64 *payload_len_ret,
					struct wfs_error *err)
{
	u64 raw_len = 0, comp_len = 0, coded_len = 0;

	e->nr_samples = WFS_MIN(e->plan->nr_blocks, WFS_MAX(e->sample_bytes >> e->plan->block_log2, (u64)1));
	for (unsigned i = 0; i < nr_threads; i++) {
		e->share[i].first = e->nr_samples * i / nr_threads;
		e->share[i].last = e->nr_samples * (i + 1) / nr_threads;
	}
	wfs_parallel_for(nr_threads, nr_threads, sample_share, e);
	for (unsigned i = 0; i < nr_threads; i++) {
		if (e->share[i].status != WFS_OK) {
			if (err)
				*err = e->share[i].error;
			return e->share[i].status;
		}
		raw_len += e->share[i].raw_len;
		comp_len += e->share[i].comp_len;
	}
	for (u64 i = 0; i < e->plan->nr_regions; i++)
		if (e->plan->region[i].kind == WFS_REGION_CODED)
			coded_len += e->plan->region[i].len;
	*payload_len_ret = raw_len ? (u64)((unsigned __int128)coded_len * comp_len / raw_len) : 0;
	return WFS_OK;
}

enum wfs_status wfs_encode_estimate(int src_fd, const struct wfs_encode_opts *opts,
				    struct wfs_encode_result *result_ret, struct wfs_error *err)
{
	struct wfs_encode_opts o = opts ? *opts : (struct wfs_encode_opts){0};
	unsigned nr_threads = wfs_thread_count(o.nr_threads);
	struct wfs_source source = {.fd = src_fd};
	struct estimate *e = calloc(1, sizeof(*e));
	struct wfs_plan *plan = NULL;
	u64 meta_len, payload_len;
	enum wfs_status status;

	if (!e)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for encoding");
	status = wfs_encode_begin(src_fd, &o, &source, err);
	if (status != WFS_OK)
		goto out;
	status = wfs_plan_new(&source, &o, &plan, err);
	if (status != WFS_OK)
		goto out;
	e->source = &source;
	e->plan = plan;
	e->cpu = o.cpu;
	e->sample_bytes = o.sample_bytes ? o.sample_bytes : SAMPLE_BYTES;
	status = payload_estimate(e, nr_threads, &payload_len, err);
	if (status == WFS_OK)
		status = wfs_meta_bound(plan, o.block_sha256, &meta_len, err);
	if (status == WFS_OK)
		*result_ret = (struct wfs_encode_result){
			.raw_len = source.raw_len,
			.file_len = payload_len + 2 * (meta_len + WFS_HEAD_BYTES),
			.nr_blocks = plan->nr_blocks,
			.nr_regions = plan->nr_regions,
		};
out:
	wfs_plan_free(plan);
	free(e);
	return status;
}
