/* fuzz_roundtrip.c - any bytes as a file to pack: every encoder gives the same container, and it decodes to the input.
 *
 * The first byte chooses the block size and how often the rest is repeated (with small changes), so that short inputs
 * also make files of many blocks.
 */
#include "fuzz.h"
#include "wfs.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 300000 };

struct compare {
	const uint8_t *expected;
	size_t at, len;
};

static int same(void *ctx, const void *raw, size_t len)
{
	struct compare *c = ctx;

	FUZZ_CHECK(len <= c->len - c->at && !memcmp(c->expected + c->at, raw, len));
	c->at += len;
	return 0;
}

static int encode(int src, enum wfs_cpu cpu, unsigned block_log2)
{
	struct wfs_encode_opts opts = {
		.block_log2 = block_log2, .nr_threads = cpu == WFS_CPU_SCALAR ? 1 : 2, .cpu = cpu};
	struct wfs_encode_result result;
	int dst = memfd_create("container", MFD_CLOEXEC);
	struct stat st;

	FUZZ_CHECK(dst >= 0 && wfs_encode_file(src, dst, &opts, &result, NULL) == WFS_OK);
	FUZZ_CHECK(!fstat(dst, &st) && (uint64_t)st.st_size == result.file_len);
	return dst;
}

static void must_be_equal(int a, int b)
{
	struct stat st_a, st_b;
	uint8_t *data_a, *data_b;

	FUZZ_CHECK(!fstat(a, &st_a) && !fstat(b, &st_b) && st_a.st_size == st_b.st_size);
	data_a = fuzz_alloc((size_t)st_a.st_size);
	data_b = fuzz_alloc((size_t)st_a.st_size);
	FUZZ_CHECK(pread(a, data_a, (size_t)st_a.st_size, 0) == st_a.st_size);
	FUZZ_CHECK(pread(b, data_b, (size_t)st_a.st_size, 0) == st_a.st_size);
	FUZZ_CHECK(!memcmp(data_a, data_b, (size_t)st_a.st_size));
	free(data_a);
	free(data_b);
}

static void round_trip(const uint8_t *raw, size_t raw_len, unsigned block_log2)
{
	int src = memfd_create("original", MFD_CLOEXEC), first = -1;
	struct compare compare = {raw, 0, raw_len};
	struct wfs_reader *reader = NULL;

	FUZZ_CHECK(src >= 0 && pwrite(src, raw, raw_len, 0) == (ssize_t)raw_len);
	for (int cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		int dst;

		if (!wfs_cpu_supported((enum wfs_cpu)cpu))
			continue;
		dst = encode(src, (enum wfs_cpu)cpu, block_log2);
		if (first < 0) {
			first = dst;
			continue;
		}
		must_be_equal(first, dst);
		close(dst);
	}
	FUZZ_CHECK(wfs_reader_open(first, NULL, &reader, NULL) == WFS_OK);
	FUZZ_CHECK(wfs_reader_stream(reader, 0, raw_len, 1, same, &compare, NULL) == WFS_OK && compare.at == raw_len);
	FUZZ_CHECK(wfs_reader_verify(reader, 1, NULL, NULL, NULL) == WFS_OK);
	wfs_reader_free(reader);
	close(first);
	close(src);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t body = size ? size - 1 : 0, times = size ? 1u << (data[0] >> 3 & 15) : 1, len;
	unsigned block_log2 = 16 + (size ? data[0] & 7 : 0) % 5;
	uint8_t *raw;

	if (body && times > MAX_FILE / body)
		times = MAX_FILE / body ? MAX_FILE / body : 1;
	len = body * times;
	raw = fuzz_alloc(len);
	for (size_t i = 0; i < len; i++)
		raw[i] = (uint8_t)(data[1 + i % body] ^ (i / body * 0x9e37u >> 13 & (data[0] >> 7)));
	round_trip(raw, len, block_log2);
	free(raw);
	return 0;
}
