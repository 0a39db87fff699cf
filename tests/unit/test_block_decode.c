/* test_block_decode.c - the block codings that are not split: stored, LZ4, constant, and those of later versions. */
#include "block.h"
#include "test_util.h"

#include <lz4.h>

static struct wfs_scratch *scratch;
static struct test_guard guard;

/* Whether the payload decodes; raw lies between guard pages. */
static enum wfs_status decode(unsigned coding, unsigned word, unsigned phase, const u8 *comp, size_t comp_len, u8 *raw,
			      size_t raw_len)
{
	const struct wfs_coder coder = {.coding = (u8)coding, .word = (u8)word};
	const struct wfs_decode_tables tables = {0};
	const struct wfs_kernels kernels = wfs_kernels_for(WFS_CPU_SCALAR);
	const char *reason = NULL;
	enum wfs_status status;

	status = wfs_payload_decode(&coder, &tables, &kernels, phase, comp, comp_len, raw, raw_len, scratch, &reason);
	CHECK((status == WFS_OK) == (reason == NULL));
	return status;
}

static void test_stored(void)
{
	uint64_t rng = 1;
	u8 comp[1000], *raw = test_guard_end(&guard, 1000);

	test_rand_fill(&rng, comp, sizeof(comp));
	CHECK(decode(WFS_STORED, 1, 0, comp, 1000, raw, 1000) == WFS_OK);
	CHECK(!memcmp(raw, comp, 1000));
	CHECK(decode(WFS_STORED, 1, 0, comp, 999, raw, 1000) == WFS_BAD_DATA);
	CHECK(decode(WFS_STORED, 1, 0, comp, 1000, raw, 999) == WFS_BAD_DATA);
	PASS("stored: the same bytes, or refused when the lengths differ");
}

static void test_lz4(void)
{
	uint64_t rng = 2;
	u8 want[1000], comp[2000], *raw = test_guard_end(&guard, 1000);
	size_t len;

	test_rand_fill(&rng, want, sizeof(want));
	memset(want + 200, 7, 600);
	len = (size_t)LZ4_compress_default((const char *)want, (char *)comp, 1000, 2000);
	CHECK(len > 0 && len < 700);
	CHECK(decode(WFS_LZ4, 1, 0, comp, len, raw, 1000) == WFS_OK);
	CHECK(!memcmp(raw, want, 1000));
	CHECK(decode(WFS_LZ4, 1, 0, comp, len, raw + 1, 999) == WFS_BAD_DATA);
	CHECK(decode(WFS_LZ4, 1, 0, comp, len - 1, raw, 1000) == WFS_BAD_DATA);
	CHECK(decode(WFS_LZ4, 1, 0, comp, 0, raw, 1000) == WFS_BAD_DATA);
	PASS("LZ4: exactly the block's length, or refused");
}

static void test_constant(void)
{
	uint64_t rng = 3;
	u8 fill[9];

	test_rand_fill(&rng, fill, sizeof(fill));
	for (unsigned word = 1; word <= 8; word *= 2) {
		for (unsigned phase = 0; phase < 8; phase++) {
			for (size_t len = 1; len < 200; len++) {
				u8 *raw = test_guard_end(&guard, len);

				CHECK(decode(WFS_CONSTANT, word, phase, fill, word, raw, len) == WFS_OK);
				for (size_t i = 0; i < len; i++)
					CHECK(raw[i] == fill[(phase + i) % word]);
			}
		}
		CHECK(decode(WFS_CONSTANT, word, 0, fill, word + 1, test_guard_start(&guard), 64) == WFS_BAD_DATA);
		CHECK(decode(WFS_CONSTANT, word, 0, fill, word - 1, test_guard_start(&guard), 64) == WFS_BAD_DATA);
	}
	PASS("constant: the fill by phase, or refused");
}

static void test_unknown(void)
{
	u8 comp[16] = {0};

	for (unsigned coding = WFS_RECORDS + 1; coding < 256; coding++)
		CHECK(decode(coding, 2, 0, comp, sizeof(comp), test_guard_start(&guard), 1000) == WFS_UNSUPPORTED);
	PASS("the codings of later versions are refused as unsupported");
}

int main(void)
{
	scratch = wfs_scratch_new();
	CHECK(scratch);
	guard = test_guard_new(4096);
	test_stored();
	test_lz4();
	test_constant();
	test_unknown();
	test_guard_free(&guard);
	wfs_scratch_free(scratch);
	return 0;
}
