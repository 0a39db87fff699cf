/* fuzz_container.c - any bytes as a container: opened and decoded by every variant, which must agree.
 *
 * Each input is tried as it is and with its hashes made right (head, metadata), so that mutations reach what lies
 * behind them. Blocks are decoded with and without the check of their hash. The whole is then read as the tools do it:
 * streamed, verified, its tensors listed; all of it within limits of memory that follow from the input's size.
 */
#include "fuzz.h"
#include "wfs.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAD = 4096, META_LEN_AT = 64, META_XXH_AT = 72, HEAD_XXH_AT = 4088, MAX_BLOCKS = 12, MAX_LOOKUPS = 24 };
enum { MAX_STREAM = 2 << 20 };

/* Make the head's hashes right; false when there is nothing to make right. */
static bool repair(uint8_t *data, size_t size)
{
	uint64_t meta_len, hash;

	if (size < 2 * HEAD)
		return false;
	memcpy(&meta_len, data + META_LEN_AT, sizeof(meta_len));
	if (meta_len <= size - HEAD) {
		hash = XXH3_64bits(data + HEAD, (size_t)meta_len);
		memcpy(data + META_XXH_AT, &hash, sizeof(hash));
	}
	hash = XXH3_64bits(data, HEAD_XXH_AT);
	memcpy(data + HEAD_XXH_AT, &hash, sizeof(hash));
	return true;
}

/* The status of each try, and for each block one hash of the bytes it gave. */
struct result {
	enum wfs_status open, checked[MAX_BLOCKS], unchecked[MAX_BLOCKS], read;
	uint64_t bytes[MAX_BLOCKS], read_bytes;
};

static void decode_block(const struct wfs_reader *reader, const struct wfs_block *block, struct wfs_scratch *scratch,
			 struct result *r, unsigned i)
{
	uint8_t *comp = fuzz_alloc(block->comp_len), *raw = fuzz_alloc(block->raw_len);

	r->unchecked[i] = wfs_block_load(reader, block, block, comp, NULL);
	if (r->unchecked[i] == WFS_OK) {
		r->checked[i] = wfs_block_decode(reader, block, comp, raw, scratch, 0, NULL);
		r->unchecked[i] = wfs_block_decode(reader, block, comp, raw, scratch, WFS_DECODE_UNCHECKED, NULL);
		if (r->unchecked[i] == WFS_OK)
			r->bytes[i] = XXH3_64bits(raw, block->raw_len);
		FUZZ_CHECK(r->checked[i] == r->unchecked[i] ||
			   (r->checked[i] == WFS_BAD_CHECKSUM && r->unchecked[i] == WFS_OK));
		FUZZ_CHECK(r->checked[i] != WFS_OK || r->bytes[i] == block->hash);
	}
	free(comp);
	free(raw);
}

/* Look-ups must stay inside what they describe. */
static void look_up(const struct wfs_reader *reader, const struct wfs_info *info)
{
	uint64_t raw_len = info->head.raw_len;

	for (unsigned i = 0; i < MAX_LOOKUPS && raw_len; i++) {
		uint64_t off = i % 2 ? raw_len - 1 - i % raw_len : (raw_len / MAX_LOOKUPS) * i;
		struct wfs_extent e;

		wfs_reader_extent(reader, off, &e);
		FUZZ_CHECK(e.raw_off == off && e.len >= 1 && e.len <= raw_len - off);
		if (e.block != WFS_NO_BLOCK) {
			struct wfs_block b;

			FUZZ_CHECK(e.block < info->nr_blocks);
			wfs_reader_block(reader, e.block, &b);
			FUZZ_CHECK(e.skip < b.raw_len && e.len <= b.raw_len - e.skip);
		}
	}
	for (uint64_t i = 0; i < info->nr_regions && i < MAX_LOOKUPS; i++) {
		struct wfs_region region;

		wfs_reader_region(reader, i, &region);
		FUZZ_CHECK(region.raw_len >= 1 && region.raw_off + region.raw_len <= raw_len);
		FUZZ_CHECK(region.kind == WFS_REGION_CODED || region.nr_blocks == 0);
	}
}

/* ---- as the tools read it ---- */

struct sink {
	uint8_t *raw;
	size_t len;
};

static int append(void *ctx, const void *raw, size_t len)
{
	struct sink *sink = ctx;

	memcpy(sink->raw + sink->len, raw, len);
	sink->len += len;
	return 0;
}

struct range_source {
	const struct wfs_reader *reader;
	struct wfs_scratch *scratch;
};

static enum wfs_status read_range(void *ctx, void *buf, size_t len, uint64_t off)
{
	const struct range_source *source = ctx;

	return wfs_reader_read(source->reader, off, buf, len, source->scratch, NULL);
}

/* The stream gives all up to where it fails, the same bytes as reads of ranges. */
static void stream(const struct wfs_reader *reader, uint64_t off, size_t len, struct wfs_scratch *scratch)
{
	struct sink sink = {fuzz_alloc(len), 0};
	uint8_t *raw = fuzz_alloc(len);
	enum wfs_status status = wfs_reader_stream(reader, off, len, 2, append, &sink, NULL);

	FUZZ_CHECK(sink.len <= len && (status != WFS_OK || sink.len == len));
	FUZZ_CHECK((wfs_reader_read(reader, off, raw, len, scratch, NULL) == WFS_OK) == (status == WFS_OK));
	FUZZ_CHECK(!sink.len || wfs_reader_read(reader, off, raw, sink.len, scratch, NULL) == WFS_OK);
	FUZZ_CHECK(!memcmp(raw, sink.raw, sink.len));
	free(sink.raw);
	free(raw);
}

static void read_as_tools(const struct wfs_reader *reader, const struct wfs_info *info, struct wfs_scratch *scratch)
{
	const uint64_t raw_len = info->head.raw_len;
	struct range_source source = {reader, scratch};
	struct wfs_tensors *tensors = NULL;

	stream(reader, raw_len / 3, (size_t)(raw_len - raw_len / 3 < MAX_STREAM ? raw_len - raw_len / 3 : MAX_STREAM),
	       scratch);
	if (raw_len <= MAX_STREAM)
		stream(reader, 0, (size_t)raw_len, scratch);
	if (raw_len <= MAX_STREAM && wfs_reader_verify(reader, 1, NULL, NULL, NULL) == WFS_OK)
		for (uint64_t i = 0; i < info->nr_blocks; i++) {
			struct wfs_block block;
			struct wfs_extent e;

			wfs_reader_block(reader, i, &block);
			wfs_reader_extent(reader, block.raw_off, &e);
			FUZZ_CHECK(e.block == i && e.skip == 0 && e.len == block.raw_len);
		}
	if (wfs_safetensors_scan(read_range, &source, raw_len, &tensors, NULL) == WFS_OK) {
		for (size_t i = 0; i < tensors->nr; i++)
			FUZZ_CHECK(tensors->tensor[i].raw_off <= raw_len &&
				   tensors->tensor[i].raw_len <= raw_len - tensors->tensor[i].raw_off);
		wfs_tensors_free(tensors);
	}
}

static void try_variant(int fd, enum wfs_cpu cpu, struct wfs_scratch *scratch, struct result *r)
{
	struct wfs_reader_opts opts = {.cpu = cpu};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	struct wfs_info info;

	r->open = wfs_reader_open(fd, &opts, &reader, &err);
	if (r->open != WFS_OK) {
		FUZZ_CHECK(!reader && err.status == r->open && err.reason);
		return;
	}
	wfs_reader_info(reader, &info);
	/* Grids are up to 17 MB; sections expand 255 times at most, a table of 10 bytes to 14 KiB. */
	FUZZ_CHECK(info.memory_bytes <= (20u << 20) + 1500 * info.head.meta_len);
	look_up(reader, &info);
	for (unsigned i = 0; i < MAX_BLOCKS && i < info.nr_blocks; i++) {
		struct wfs_block block;

		wfs_reader_block(reader, i, &block);
		FUZZ_CHECK(block.comp_len <= block.raw_len && block.raw_len <= 1u << 20);
		decode_block(reader, &block, scratch, r, i);
	}
	if (info.head.raw_len) {
		size_t len = info.head.raw_len < 300000 ? (size_t)info.head.raw_len : 300000;
		uint8_t *raw = fuzz_alloc(len);

		r->read = wfs_reader_read(reader, info.head.raw_len - len, raw, len, scratch, NULL);
		if (r->read == WFS_OK)
			r->read_bytes = XXH3_64bits(raw, len);
		free(raw);
	}
	if (cpu == WFS_CPU_SCALAR)
		read_as_tools(reader, &info, scratch);
	wfs_reader_free(reader);
}

static void try_all(const uint8_t *data, size_t size)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	struct result first = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);

	FUZZ_CHECK(scratch && fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	for (int cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		struct result r = {0};

		if (!wfs_cpu_supported((enum wfs_cpu)cpu))
			continue;
		try_variant(fd, (enum wfs_cpu)cpu, scratch, &r);
		if (cpu == WFS_CPU_SCALAR)
			first = r;
		FUZZ_CHECK(!memcmp(&r, &first, sizeof(r)));
	}
	close(fd);
	wfs_scratch_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = fuzz_alloc(size);

	if (size)
		memcpy(copy, data, size);
	try_all(data, size);
	if (repair(copy, size))
		try_all(copy, size);
	free(copy);
	return 0;
}
