/* reencode.c - encode blocks of an open container again, with its own coders: for benchmarks and tests. */
#include "grid_encode.h"
#include "plan.h"
#include "container.h"
#include "file_io.h"

#include <stdlib.h>

/* The pools as they are stored. */
struct stored_pools {
	struct wfs_pool *pool;
	struct wfs_wide_pool *wide_pool;
};

/* Tables are made when a block first needs them. A container may name 65,534 coders: when so many are ready, they make
 * room. */
enum { MAX_READY = 256 };

struct wfs_reencoder {
	const struct wfs_reader *reader;
	enum wfs_cpu cpu;
	struct wfs_encode_scratch *scratch;
	struct wfs_geometry geometry;
	struct stored_pools pools;
	struct wfs_encode_tables *tables; /* one for each coder; NULL where it has none, or none yet */
	u32 nr_ready;
	struct wfs_grid_encoder *grid; /* nr_grids */
	u8 segment[WFS_GRID_ENCODE_SEGMENTS * WFS_GRID_SEGMENT_BYTES];
};

/* The reader keeps pools only in the form for decoding, so the metadata is read again. */
static enum wfs_status load_pools(const struct wfs_reader *reader, struct stored_pools *pools, struct wfs_error *err)
{
	const u8 *bytes = NULL;
	const char *reason = NULL;
	bool from_copy_b;
	size_t len = 0, used;
	u8 *meta = NULL;
	enum wfs_status status = wfs_meta_load(reader, &meta, &from_copy_b, err);

	if (status == WFS_OK)
		status = wfs_meta_pools(reader, meta, false, &bytes, &len, err);
	for (u32 i = 0; i < reader->nr_pools && status == WFS_OK; i++, bytes += used, len -= used) {
		status = wfs_pool_parse(bytes, len, &pools->pool[i], &used, &reason);
		if (status != WFS_OK) {
			wfs_fail(err, status, reason);
			break;
		}
	}
	if (status == WFS_OK)
		status = wfs_meta_pools(reader, meta, true, &bytes, &len, err);
	for (u32 i = 0; i < reader->nr_wide_pools && status == WFS_OK; i++, bytes += used, len -= used) {
		status = wfs_wide_pool_parse(bytes, len, &pools->wide_pool[i], &used, &reason);
		if (status != WFS_OK) {
			wfs_fail(err, status, reason);
			break;
		}
	}
	free(meta);
	return status;
}

static void tables_drop(struct wfs_reencoder *r)
{
	for (u32 i = 0; i < r->reader->nr_coders; i++) {
		/* ours alone */
		wfs_encode_pool_free((struct wfs_encode_pool *)r->tables[i].split);
		wfs_wide_encode_pool_free((struct wfs_wide_encode_pool *)r->tables[i].wide);
		r->tables[i] = (struct wfs_encode_tables){0};
	}
	r->nr_ready = 0;
}

/* The tables of a coder; NULL: out of memory. */
static const struct wfs_encode_tables *tables_of(struct wfs_reencoder *r, u32 coder)
{
	const struct wfs_coder *c = &r->reader->coder[coder];
	struct wfs_encode_tables *t = &r->tables[coder];

	if (t->split || t->wide || !(wfs_coding_is_split(c->coding) || wfs_coding_is_wide(c->coding)))
		return t;
	if (r->nr_ready == MAX_READY)
		tables_drop(r);
	r->nr_ready++;
	if (wfs_coding_is_grid(c->coding))
		t->grid = &r->grid[c->grid];
	if (wfs_coding_is_split(c->coding))
		t->split = wfs_encode_pool_new(&r->pools.pool[c->pool], wfs_coder_split(c));
	else
		t->wide = wfs_wide_encode_pool_new(&r->pools.wide_pool[c->pool], wfs_coder_split(c));
	return t->split || t->wide ? t : NULL;
}

/* What geometry_make reads the original with. */
struct original {
	const struct wfs_reader *reader;
	struct wfs_scratch *scratch;
};

static enum wfs_status original_read(void *ctx, void *buf, size_t len, u64 off)
{
	const struct original *o = ctx;

	return wfs_reader_read(o->reader, off, buf, len, o->scratch, NULL);
}

/* The geometry that the encoder had: that of the original's tensors. */
static enum wfs_status geometry_make(struct wfs_reencoder *r, struct wfs_error *err)
{
	struct original o = {r->reader, wfs_scratch_new()};
	struct wfs_tensors none = {0}, *tensors = NULL;
	enum wfs_status status = WFS_NO_MEMORY;

	if (o.scratch)
		status = wfs_safetensors_scan(original_read, &o, r->reader->head.raw_len, &tensors, err);
	else
		wfs_fail(err, status, "out of memory for encoding");
	if (status == WFS_OK || status == WFS_NOT_CONTAINER) {
		status = WFS_OK;
		if (!wfs_geometry_make(tensors ? tensors : &none, r->reader->head.raw_len, &r->geometry))
			status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for encoding");
	}
	wfs_tensors_free(tensors);
	wfs_scratch_free(o.scratch);
	return status;
}

enum wfs_status wfs_reencoder_new(const struct wfs_reader *reader, enum wfs_cpu cpu,
				  struct wfs_reencoder **reencoder_ret, struct wfs_error *err)
{
	struct wfs_reencoder *r = calloc(1, sizeof(*r));
	enum wfs_status status;

	if (r)
		*r = (struct wfs_reencoder){
			.reader = reader,
			.cpu = cpu == WFS_CPU_AUTO ? wfs_cpu_best() : cpu,
			.scratch = wfs_encode_scratch_new(),
			.pools = {calloc((size_t)reader->nr_pools + 1, sizeof(*r->pools.pool)),
				  calloc((size_t)reader->nr_wide_pools + 1, sizeof(*r->pools.wide_pool))},
			.tables = calloc((size_t)reader->nr_coders + 1, sizeof(struct wfs_encode_tables)),
			.grid = calloc((size_t)reader->nr_grids + 1, sizeof(struct wfs_grid_encoder)),
		};
	if (!r || !r->pools.pool || !r->pools.wide_pool || !r->scratch || !r->tables || !r->grid) {
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for encoding");
		goto out;
	}
	if ((unsigned)cpu >= WFS_NR_CPUS || !wfs_cpu_supported(cpu)) {
		status = wfs_fail(err, WFS_BAD_ARGUMENT, "this machine cannot run that CPU variant");
		goto out;
	}
	for (u32 i = 0; i < reader->nr_grids; i++)
		wfs_grid_encoder_make(&reader->grid[i], &r->grid[i]);
	status = load_pools(reader, &r->pools, err);
	if (status == WFS_OK)
		status = geometry_make(r, err);
	if (status == WFS_OK) {
		*reencoder_ret = r;
		r = NULL;
	}
out:
	wfs_reencoder_free(r);
	return status;
}

void wfs_reencoder_free(struct wfs_reencoder *reencoder)
{
	if (!reencoder)
		return;
	if (reencoder->tables)
		tables_drop(reencoder);
	free(reencoder->pools.pool);
	free(reencoder->pools.wide_pool);
	free(reencoder->grid);
	free(reencoder->tables);
	free(reencoder->geometry.matrix);
	wfs_encode_scratch_free(reencoder->scratch);
	free(reencoder);
}

/* The segments of a stored grid block: which tiles an encoder has found is known from nowhere else. */
static void load_segments(struct wfs_reencoder *r, const struct wfs_block *block, struct wfs_place *place)
{
	u8 header[WFS_GRID_HEADER];
	size_t got = 0, len;

	if (wfs_pread_full(r->reader->fd, header, sizeof(header), block->comp_off, &got) || got < sizeof(header))
		return;
	place->nr_segments = WFS_MIN(wfs_load16(header + 2), (u32)WFS_GRID_ENCODE_SEGMENTS);
	len = (size_t)WFS_GRID_SEGMENT_BYTES * place->nr_segments;
	if (!wfs_pread_full(r->reader->fd, r->segment, len, block->comp_off + sizeof(header), &got) && got == len)
		place->segments = r->segment;
}

size_t wfs_block_reencode(struct wfs_reencoder *reencoder, const struct wfs_block *block, const void *raw, void *comp)
{
	struct wfs_place place = {.raw_off = block->raw_off, .phase = block->phase, .geometry = &reencoder->geometry};
	const struct wfs_encode_tables *tables = tables_of(reencoder, block->coder);

	if (!tables)
		return 0;
	if (wfs_coding_is_grid(block->coding))
		load_segments(reencoder, block, &place);
	return wfs_payload_encode(&reencoder->reader->coder[block->coder], tables, reencoder->cpu, &place, raw,
				  block->raw_len, comp, reencoder->scratch);
}
