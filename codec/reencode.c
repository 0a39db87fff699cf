/* reencode.c - encode blocks of an open container again, with its own coders: for benchmarks and tests. */
#include "container.h"

#include <stdlib.h>

struct wfs_reencoder {
	const struct wfs_reader *reader;
	enum wfs_cpu cpu;
	struct wfs_encode_scratch *scratch;
	struct wfs_encode_pool **pool; /* one for each coder; NULL where it has no split */
};

/* The reader keeps pools only in the form for decoding, so the metadata is read again. */
static enum wfs_status load_pools(const struct wfs_reader *reader, struct wfs_pool *pool, struct wfs_error *err)
{
	const u8 *bytes = NULL;
	const char *reason = NULL;
	bool from_copy_b;
	size_t len = 0, used;
	u8 *meta = NULL;
	enum wfs_status status = wfs_meta_load(reader, &meta, &from_copy_b, err);

	if (status == WFS_OK)
		status = wfs_meta_pools(reader, meta, &bytes, &len, err);
	for (u32 i = 0; i < reader->nr_pools && status == WFS_OK; i++) {
		status = wfs_pool_parse(bytes, len, &pool[i], &used, &reason);
		if (status != WFS_OK) {
			wfs_fail(err, status, reason);
			break;
		}
		bytes += used;
		len -= used;
	}
	free(meta);
	return status;
}

enum wfs_status wfs_reencoder_new(const struct wfs_reader *reader, enum wfs_cpu cpu,
				  struct wfs_reencoder **reencoder_ret, struct wfs_error *err)
{
	struct wfs_pool *pool = calloc((size_t)reader->nr_pools + 1, sizeof(*pool));
	struct wfs_reencoder *r = calloc(1, sizeof(*r));
	enum wfs_status status;

	if (r)
		*r = (struct wfs_reencoder){
			.reader = reader,
			.cpu = cpu == WFS_CPU_AUTO ? wfs_cpu_best() : cpu,
			.scratch = wfs_encode_scratch_new(),
			.pool = calloc((size_t)reader->nr_coders + 1, sizeof(struct wfs_encode_pool *)),
		};
	if (!pool || !r || !r->scratch || !r->pool) {
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for encoding");
		goto out;
	}
	if ((unsigned)cpu >= WFS_NR_CPUS || !wfs_cpu_supported(cpu)) {
		status = wfs_fail(err, WFS_BAD_ARGUMENT, "this machine cannot run that CPU variant");
		goto out;
	}
	status = load_pools(reader, pool, err);
	for (u32 i = 0; i < reader->nr_coders && status == WFS_OK; i++) {
		const struct wfs_coder *c = &reader->coder[i];

		if (c->coding != WFS_SPLIT)
			continue;
		r->pool[i] = wfs_encode_pool_new(&pool[c->pool], wfs_split_make(c->word, c->rot, c->field));
		if (!r->pool[i])
			status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for encoding");
	}
	if (status == WFS_OK) {
		*reencoder_ret = r;
		r = NULL;
	}
out:
	wfs_reencoder_free(r);
	free(pool);
	return status;
}

void wfs_reencoder_free(struct wfs_reencoder *reencoder)
{
	if (!reencoder)
		return;
	for (u32 i = 0; reencoder->pool && i < reencoder->reader->nr_coders; i++)
		wfs_encode_pool_free(reencoder->pool[i]);
	free(reencoder->pool);
	wfs_encode_scratch_free(reencoder->scratch);
	free(reencoder);
}

size_t wfs_block_reencode(struct wfs_reencoder *reencoder, const struct wfs_block *block, const void *raw, void *comp)
{
	const struct wfs_encode_tables tables = {.split = reencoder->pool[block->coder]};
	const struct wfs_place place = {.raw_off = block->raw_off, .phase = block->phase};

	return wfs_payload_encode(&reencoder->reader->coder[block->coder], &tables, reencoder->cpu, &place, raw,
				  block->raw_len, comp, reencoder->scratch);
}
