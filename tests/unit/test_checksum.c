/* test_checksum.c - XXH3-64 of every variant against xxhash.h, at every length where it does something else. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "checksum.h"
#include "test_util.h"

enum { MAX_LEN = 1 << 20 };

static void check(const struct test_guard *g, enum wfs_cpu cpu, const u8 *bytes, size_t len)
{
	const u64 want = XXH3_64bits(bytes, len);
	/* At the end of its pages, so that reading on is a crash, and thus at every alignment. */
	u8 *buf = test_guard_end(g, len);

	memcpy(buf, bytes, len);
	CHECK_MSG(wfs_hash64(cpu, buf, len) == want, "%s: %zu bytes", wfs_cpu_name(cpu), len);
	buf = test_guard_start(g);
	memcpy(buf, bytes, len);
	CHECK_MSG(wfs_hash64(cpu, buf, len) == want, "%s: %zu bytes", wfs_cpu_name(cpu), len);
}

static void test_lengths(const struct test_guard *g, enum wfs_cpu cpu, const u8 *bytes)
{
	uint64_t rng = 9;

	/* Short forms end at 240 bytes; stripes have 64, blocks 1024. */
	for (size_t len = 0; len <= 3 * WFS_HASH_BLOCK + 2; len++)
		check(g, cpu, bytes, len);
	for (unsigned log2 = 12; log2 <= 20; log2++) {
		for (size_t less = 0; less < 3; less++)
			check(g, cpu, bytes, ((size_t)1 << log2) - less);
	}
	for (unsigned i = 0; i < 300; i++)
		check(g, cpu, bytes + test_rand_below(&rng, 64), test_rand_below(&rng, 100000));
	PASS("%s: the hash that xxhash.h gives, at every length", wfs_cpu_name(cpu));
}

/* Every bit counts. */
static void test_bits(enum wfs_cpu cpu, u8 *bytes)
{
	const size_t len = 2 * WFS_HASH_BLOCK + 100;
	const u64 value = wfs_hash64(cpu, bytes, len);

	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= (u8)(1 << i % 8);
		CHECK_MSG(wfs_hash64(cpu, bytes, len) != value, "%s: byte %zu", wfs_cpu_name(cpu), i);
		bytes[i] ^= (u8)(1 << i % 8);
	}
	PASS("%s: a changed bit changes it", wfs_cpu_name(cpu));
}

int main(void)
{
	struct test_guard g = test_guard_new(MAX_LEN);
	u8 *bytes = malloc(MAX_LEN + 64);
	uint64_t rng = 5;

	CHECK(bytes);
	test_rand_fill(&rng, bytes, MAX_LEN + 64);
	CHECK(wfs_hash64(WFS_CPU_SCALAR, "", 0) == 0x2D06800538D394C2);
	for (enum wfs_cpu cpu = WFS_CPU_AUTO; cpu < WFS_NR_CPUS; cpu++) {
		if (!wfs_cpu_supported(cpu)) {
			printf("skip %s: this machine cannot run it\n", wfs_cpu_name(cpu));
			continue;
		}
		test_lengths(&g, cpu, bytes);
		test_bits(cpu, bytes);
	}
	free(bytes);
	test_guard_free(&g);
	return 0;
}
