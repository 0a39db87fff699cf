/* test_plan.c - how files are cut: constant stretches and repeated tensors cost almost nothing, small strangers do not
 * cut runs, headers that lie or overlap change no byte, and pools that would not pay are not made.
 */
#include "encode_util.h"

#include "container.h"

/* Encodes, checks every byte, gives the regions. */
static u64 regions_of(const struct bytes *b, struct wfs_region *region, u64 room, struct wfs_encode_result *result)
{
	int fd;
	struct wfs_reader *reader = round_trip(b, NULL, &fd, result);

	for (u64 i = 0; i < result->nr_regions && i < room; i++)
		wfs_reader_region(reader, i, &region[i]);
	wfs_reader_free(reader);
	close(fd);
	return result->nr_regions;
}

static void test_one_run(void)
{
	struct wfs_encode_result result;
	struct wfs_region g[4];
	struct model m = {0};
	uint64_t seed = 5;
	struct bytes b;

	for (int i = 0; i < 500; i++) {
		size_t at = m.data.len;

		add_weights(&m.data, 2, 3000, &seed);
		model_tensor(&m, "BF16", at);
		at = m.data.len;
		bytes_add(&m.data, &i, 4);
		model_tensor(&m, "F32", at);
	}
	b = model_file(&m, 0);
	CHECK(regions_of(&b, g, 4, &result) == 3); /* header, run, the last stranger */
	CHECK(g[0].coding == WFS_LZ4 && g[1].coding == WFS_SPLIT && g[1].word == 2 && g[1].field == 9);
	CHECK(g[2].coding == WFS_LZ4 && g[2].raw_len == 4);
	CHECK(result.file_len < b.len * 72 / 100);
	free(b.p);
	PASS("small strangers do not cut a run");
}

static void test_strangers_that_shift(void)
{
	struct wfs_encode_result result;
	struct wfs_region g[8];
	struct model m = {0};
	uint64_t seed = 5;
	struct bytes b;
	size_t at;

	for (int i = 0; i < 3; i++) {
		at = m.data.len;
		add_weights(&m.data, 2, 100000, &seed);
		model_tensor(&m, "BF16", at);
		at = m.data.len;
		bytes_add(&m.data, "odd", 3);
		model_tensor(&m, "U8", at);
	}
	b = model_file(&m, 1);
	CHECK(regions_of(&b, g, 8, &result) == 7);
	for (int i = 1; i < 6; i += 2)
		CHECK(g[i].coding == WFS_SPLIT && g[i].raw_len == 200000);
	CHECK(result.file_len < b.len * 72 / 100);
	free(b.p);
	PASS("strangers of odd length keep the words' places right");
}

static void test_pools(void)
{
	static const struct {
		const char *dtype;
		unsigned word, field;
		size_t nr;
	} types[] = {{"BF16", 2, 9, 300000},	{"F16", 2, 6, 300000},
		     {"F32", 4, 9, 200000},	{"F64", 8, 12, 100000},
		     {"C64", 4, 9, 200000},	{"F8_E4M3", 1, 5, 900000},
		     {"F8_E5M2", 1, 6, 900000}, /* what its bytes are like counts */ {"I16", 1, 5, 300000}};
	struct wfs_encode_result result;
	struct wfs_region g[16];
	struct model m = {0};
	uint64_t seed = 5;
	struct bytes b;

	for (size_t i = 0; i < WFS_ARRAY_LEN(types); i++) {
		size_t at = m.data.len;

		add_weights(&m.data, types[i].word, types[i].nr, &seed);
		model_tensor(&m, types[i].dtype, at);
	}
	b = model_file(&m, 0);
	CHECK(regions_of(&b, g, 16, &result) == 1 + WFS_ARRAY_LEN(types));
	for (size_t i = 0; i < WFS_ARRAY_LEN(types); i++) {
		CHECK(g[i + 1].word == types[i].word && g[i + 1].field == types[i].field);
		CHECK(g[i + 1].coding == WFS_SPLIT);
	}
	free(b.p);

	m = (struct model){0};
	add_weights(&m.data, 2, 200, &seed);
	model_tensor(&m, "BF16", 0);
	b = model_file(&m, 0);
	CHECK(regions_of(&b, g, 16, &result) == 1 && g[0].coding == WFS_LZ4);
	CHECK(result.file_len <= b.len + 9000); /* overheads: two heads of 4 KiB, two metadata */
	free(b.p);
	PASS("every dtype has its split, and no pool where it does not pay");
}

static void test_constants(void)
{
	const size_t at = 3 * 1000 * 1000 + 5;
	struct wfs_encode_result result;
	struct wfs_region g[8];
	struct bytes b = {0};
	uint64_t seed = 5;

	/* 256 MiB of zeros */
	bytes_add(&b, NULL, 256 << 20);
	CHECK(regions_of(&b, g, 8, &result) == 1 && g[0].kind == WFS_REGION_CONSTANT && !result.nr_blocks);
	CHECK(result.file_len < 10000);
	/* a word of 8 bytes, not a whole number of times, and noise around it */
	b.len = 6 * 1000 * 1000 + 3;
	test_rand_fill(&seed, b.p, b.len);
	for (size_t i = 0; i < ((size_t)1 << 21) + 13; i++)
		b.p[at + i] = "weightfs"[i % 8];
	CHECK(regions_of(&b, g, 8, &result) == 3 && g[1].kind == WFS_REGION_CONSTANT);
	CHECK(result.file_len < b.len - (1 << 21) + 20000);
	free(b.p);
	PASS("a stretch that repeats 8 bytes costs almost nothing");
}

static void test_constant_tensors(void)
{
	static const size_t lens[] = {65535, 65536, 70002, 1 << 20, (1 << 20) + 65534, (1 << 20) + 65536, 3 << 20};
	const u16 one = 0x3f80;
	uint64_t seed = 5;

	for (size_t i = 0; i < WFS_ARRAY_LEN(lens); i++) {
		struct wfs_encode_result result;
		struct wfs_region g[8];
		struct model m = {0};
		struct bytes b;
		size_t begin;

		add_weights(&m.data, 2, 100001, &seed);
		model_tensor(&m, "BF16", 0);
		for (int tensor = 0; tensor < 2; tensor++) { /* neighbours of one fill become one region */
			begin = m.data.len;
			for (size_t k = 0; k < lens[i]; k += 2)
				bytes_add(&m.data, &one, lens[i] - k < 2 ? 1 : 2);
			model_tensor(&m, "BF16", begin);
		}
		b = model_file(&m, 0);
		if (lens[i] % 2 == 0) {
			CHECK(regions_of(&b, g, 8, &result) == 3 && g[2].kind == WFS_REGION_CONSTANT);
			CHECK(g[2].raw_len == 2 * lens[i] && !memcmp(g[2].fill, "\x80\x3f\x80\x3f\x80\x3f\x80\x3f", 8));
		} else {
			regions_of(&b, g, 8, &result);
		}
		free(b.p);
	}
	PASS("constant tensors become constant regions");
}

static void test_copies(void)
{
	struct wfs_encode_result result;
	struct wfs_region g[8];
	struct model m = {0};
	uint64_t seed = 5;
	struct bytes b;
	size_t at;

	add_weights(&m.data, 2, 200000, &seed);
	model_tensor(&m, "BF16", 0);
	add_weights(&m.data, 2, 200000, &seed); /* as long, other bytes */
	model_tensor(&m, "BF16", 400000);
	for (int i = 0; i < 2; i++) {
		at = m.data.len;
		bytes_add(&m.data, NULL, 400000);
		memcpy(m.data.p + at, m.data.p, 400000);
		model_tensor(&m, i ? "I16" : "BF16", at);
	}
	at = m.data.len; /* alike but for one byte */
	bytes_add(&m.data, NULL, 400000);
	memcpy(m.data.p + at, m.data.p, 400000);
	m.data.p[at + 300001] ^= 1;
	model_tensor(&m, "BF16", at);
	b = model_file(&m, 0);
	CHECK(regions_of(&b, g, 8, &result) == 5);
	CHECK(g[2].kind == WFS_REGION_COPY && g[2].raw_len == 400000 && g[2].copy_of == g[1].raw_off);
	CHECK(g[3].kind == WFS_REGION_COPY && g[3].raw_len == 400000 && g[3].copy_of == g[1].raw_off);
	CHECK(g[4].kind == WFS_REGION_CODED && g[4].coding == WFS_SPLIT);
	CHECK(result.file_len < 3 * 400000 * 72 / 100);
	free(b.p);
	PASS("tensors that repeat an earlier one are copies");
}

/* A copy whose source is partly constant and lies at the end of one region and the start of the next. */
static void test_copies_of_constants(void)
{
	struct wfs_encode_result result;
	struct wfs_region g[8];
	struct model m = {0};
	uint64_t seed = 5;
	struct bytes b;

	add_weights(&m.data, 4, 100000, &seed);
	bytes_add(&m.data, NULL, 3 << 20);
	add_weights(&m.data, 4, 100000, &seed);
	model_tensor(&m, "F32", 0);
	bytes_add(&m.data, NULL, m.data.len);
	memcpy(m.data.p + m.data.len / 2, m.data.p, m.data.len / 2);
	model_tensor(&m, "F32", m.data.len / 2);
	b = model_file(&m, 5);
	CHECK(regions_of(&b, g, 8, &result) == 5);
	CHECK(g[2].kind == WFS_REGION_CONSTANT && g[4].kind == WFS_REGION_COPY && g[4].copy_of == g[1].raw_off);
	free(b.p);
	PASS("a copy may take in constants");
}

static void test_liars(void)
{
	uint64_t seed = 77;

	for (int i = 0; i < 60; i++) {
		struct wfs_encode_result result;
		struct model m = {0};
		struct bytes b;
		int fd;

		add_weights(&m.data, 2, 150000, &seed);
		for (int k = 0; k < 12; k++) { /* overlaps, holes, duplicates, words that overlap by a byte */
			static const char *const dtypes[] = {"BF16", "F32", "U8", "F64", "I4_NEW", "F8_E4M3"};
			size_t x = (size_t)test_rand_below(&seed, m.data.len), y = x;

			if (k % 3)
				y = x + (size_t)test_rand_below(&seed, m.data.len - x);
			if (k == 5)
				x = y = 0;
			model_tensor_at(&m, dtypes[test_rand_below(&seed, 6)], x, y);
		}
		if (i % 4 == 1)
			model_tensor_at(&m, "BF16", m.data.len - 4, m.data.len + 4);
		b = model_file(&m, (unsigned)i % 8);
		if (i % 5 == 4)
			b.p[8 + test_rand_below(&seed, m.header_len)] ^= 0x20;
		wfs_reader_free(round_trip(&b, NULL, &fd, &result));
		close(fd);
		free(b.p);
	}
	PASS("headers that overlap, leave holes or lie change no byte");
}

static void test_repeating_rows(void)
{
	struct wfs_encode_result result;
	struct model m = {0};
	uint64_t seed = 5;
	struct bytes b;
	int fd;

	add_weights(&m.data, 2, 400, &seed);
	for (int row = 1; row < 4000; row++) /* an embedding of tokens that were never trained */
		bytes_add(&m.data, NULL, 800);
	for (size_t i = 800; i < m.data.len; i++)
		m.data.p[i] = m.data.p[i - 800];
	model_tensor(&m, "BF16", 0);
	b = model_file(&m, 0);
	wfs_reader_free(round_trip(&b, NULL, &fd, &result));
	CHECK(result.file_len < b.len / 20);
	close(fd);
	free(b.p);
	PASS("blocks of repeating rows are left to LZ4");
}

int main(void)
{
	test_one_run();
	test_strangers_that_shift();
	test_pools();
	test_constants();
	test_constant_tensors();
	test_copies();
	test_copies_of_constants();
	test_liars();
	test_repeating_rows();
	return 0;
}
