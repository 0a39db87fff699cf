/* test_wide_encode.c - the wide encoder: every kernel the same payload, decoders give the words back, sizes near the
 * entropy, and refusals where the coding cannot express a block.
 */
#include "wide_encode.h"
#include "wide_model.h"

static struct wfs_encode_buffers *buffers;
static struct wfs_scratch *scratch;
static struct test_guard comp_guard, raw_guard;

static const struct wfs_encode_kernel *kernel_of(unsigned i)
{
	if (i == 0)
		return &wfs_encode_kernel_scalar;
	if (i == 1)
		return wfs_cpu_supported(WFS_CPU_AVX2) ? wfs_encode_kernel_avx2_get() : NULL;
	return wfs_cpu_supported(WFS_CPU_AVX512VBMI) ? wfs_encode_kernel_avx512vbmi_get() : NULL;
}

/* What is encoded: words against a guard page, and how. */
struct job {
	struct wfs_split s;
	struct wfs_wide_pool pool;
	struct wfs_wide_groups groups;
	const u8 *raw;
	size_t n;
};

static void check_decoded(const struct job *j, const u8 *comp, size_t len, const char *what)
{
	struct wfs_wide_decode_pool *pool = wfs_wide_decode_pool_new(&j->pool);
	u8 *raw = malloc(j->n * j->s.word);
	const char *reason = NULL;
	struct wfs_wide_view v;

	CHECK(pool && raw);
	CHECK_MSG(wfs_wide_parse(comp, len, j->s, pool, j->n, 0, &v, &reason) == WFS_OK, "%s: %s", what, reason);
	CHECK_MSG(wfs_wide_decode_scalar(&v, pool, j->s, raw, scratch, &reason) == WFS_OK, "%s: %s", what, reason);
	CHECK_MSG(!memcmp(raw, j->raw, j->n * j->s.word), "%s", what);
	free(raw);
	free(pool);
}

/* Encodes with every kernel; the payload's bytes, or SIZE_MAX. */
static size_t encode(const struct job *j, size_t room, const char *what)
{
	struct wfs_wide_encode_pool *pool = wfs_wide_encode_pool_new(&j->pool, j->s);
	size_t len = 0;
	u8 *first = malloc(room + 1);

	CHECK(pool && first);
	for (unsigned i = 0; i < 3; i++) {
		u8 *comp = test_guard_end(&comp_guard, room);
		size_t got;

		if (!kernel_of(i))
			continue;
		memset(buffers, 0x5A + (int)i, sizeof(*buffers)); /* nothing may be left over from before */
		got = wfs_wide_encode(pool, kernel_of(i), &j->groups, j->raw, j->n, comp, room, buffers);
		CHECK_MSG(got == SIZE_MAX || got < room, "%s", what);
		if (i == 0) {
			len = got;
			if (got != SIZE_MAX) {
				memcpy(first, comp, got);
				check_decoded(j, first, got, what);
			}
		}
		CHECK_MSG(got == len && (got == SIZE_MAX || !memcmp(first, comp, len)), "%s: kernel %u", what, i);
	}
	free(first);
	wfs_wide_encode_pool_free(pool);
	return len;
}

static const u8 *guarded(const u8 *raw, size_t len)
{
	u8 *p = test_guard_end(&raw_guard, len);

	memcpy(p, raw, len);
	return p;
}

/* ---- round trips ---- */

/* Words, pools and groups of the naive writer: nothing in them is as a trainer would have it. */
static void test_models(void)
{
	static const u8 split[][3] = {{2, 1, 11}, {2, 1, 9}, {2, 1, 8},	 {2, 1, 6}, {4, 1, 11}, {4, 1, 9}, {1, 0, 8},
				      {1, 1, 5},  {1, 1, 7}, {8, 1, 12}, {2, 0, 9}, {4, 0, 3},	{2, 1, 1}, {4, 1, 5}};
	static const size_t sizes[] = {1, 2, 63, 64, 65, 511, 512, 513, 1000, 1025, 4095, 8192, 20011};
	uint64_t rng = 9;
	size_t nr = 0;

	for (unsigned i = 0; i < WFS_ARRAY_LEN(split); i++)
		for (unsigned k = 0; k < WFS_ARRAY_LEN(sizes); k++) {
			struct wfs_split s = wfs_split_make(split[i][0], split[i][1], split[i][2]);
			struct wide_model w =
				wide_model_new(&rng, s, sizes[k], 1 + (unsigned)test_rand_below(&rng, 32),
					       test_rand_below(&rng, 2), (unsigned)test_rand_below(&rng, 60));
			struct job j = {s, w.pool, w.groups, guarded(w.m.raw, sizes[k] * s.word), sizes[k]};
			char what[80];
			size_t len;

			snprintf(what, sizeof(what), "word %u rot %u field %u n %zu", s.word, s.rot, s.field, sizes[k]);
			len = encode(&j, 3 * WFS_MAX_BLOCK, what);
			/* A segment of a table without escapes may hold names that only its own table has. */
			nr += len != SIZE_MAX;
			if (len != SIZE_MAX) {
				CHECK(encode(&j, len + 1, what) == len);
				CHECK(encode(&j, len, what) == SIZE_MAX);
			}
			wide_model_free(&w);
		}
	CHECK_MSG(nr > 120, "%zu", nr);
	PASS("%zu payloads of all shapes: the same from every kernel, and back again", nr);
}

/* Words whose field falls off from a centre that changes with every segment; trained pools. */
static void test_trained(void)
{
	enum { ROW = 700, ROWS = 300, N = ROW * ROWS };
	const struct wfs_split base = wfs_split_make(2, 1, 9);
	struct wfs_wide_trainer *t = wfs_wide_trainer_new(base, N);
	struct wfs_matrix matrix = {.raw_off = 100, .raw_len = 2 * N, .cols = ROW, .word = 2};
	const struct wfs_geometry geometry = {&matrix, 1};
	u8 *raw = malloc(2 * N);
	struct job j = {.n = N, .raw = raw};
	u64 ideal_bits = 0;
	uint64_t rng = 10;
	size_t len;

	for (size_t i = 0; i < N; i++) {
		const unsigned centre = 230 + 4 * (i / ROW % 5),
			       below = (unsigned)__builtin_ctzll(test_rand(&rng) | 1 << 11);
		const unsigned x = (centre - below) << 7 | (unsigned)test_rand_below(&rng, 128);

		wfs_store16(raw + 2 * i, (u16)(x >> 1 | x << 15));
		ideal_bits += 7 + WFS_MIN(below + 1, 11u);
	}
	for (size_t i = 0; i < ROWS; i++)
		wfs_wide_trainer_add(t, raw + 2 * ROW * i, ROW);
	CHECK(wfs_wide_trainer_finish(t, &j.pool, &j.s) == WFS_OK);
	wfs_wide_trainer_free(t);
	/* from the middle of a row */
	wfs_wide_groups_find(&geometry, 100, 2, N, &j.groups);
	CHECK(j.groups.nr == 1 && j.groups.group[0].seg_len == ROW);
	j.raw += 2 * 333;
	j.n -= 333;
	wfs_wide_groups_find(&geometry, 100 + 2 * 333, 2, j.n, &j.groups);
	CHECK(j.groups.phase == 333);
	len = encode(&j, 2 * j.n, "trained");
	CHECK_MSG(len != SIZE_MAX && len * 8 < ideal_bits + ideal_bits / 500, "%zu of %llu bits", len * 8,
		  (unsigned long long)ideal_bits);
	free(raw);
	PASS("weights in rows take 0.2 %% more than their entropy at most");
}

/* ---- what cannot be coded ---- */

/* A pool of one table: names 0 and 1, and escapes when has_escape. */
static struct wfs_wide_pool small_pool(unsigned field, bool has_escape)
{
	struct wfs_wide_pool pool = {.nr_tables = 1, .field = (u8)field};

	pool.freq[0][0] = 2000;
	pool.freq[0][1] = has_escape ? 2000 : 2096;
	pool.freq[0][WFS_WIDE_ESCAPE] = has_escape ? 96 : 0;
	return pool;
}

static void test_refusals(void)
{
	const struct wfs_wide_groups groups = {1, 0, {{0, 1024}}};
	u8 *raw = calloc(WFS_MAX_BLOCK, 1);
	struct job j = {wfs_split_make(2, 0, 9), small_pool(9, false), groups, raw, 300000};
	uint64_t rng = 12;

	/* one word that a table without escapes does not have */
	CHECK(encode(&j, 600000, "two names") != SIZE_MAX);
	wfs_store16(raw + 2 * 299999, 0x8000);
	CHECK(encode(&j, 600000, "a name too many") == SIZE_MAX);
	j.pool = small_pool(9, true);
	CHECK(encode(&j, 600000, "a literal") != SIZE_MAX);
	/* 65,535 literals and one more */
	for (unsigned i = 0; i < 65534; i++)
		wfs_store16(raw + 2 * (4 * i + 1), 0x8000);
	CHECK(encode(&j, WFS_MAX_BLOCK, "as many literals as there may be") != SIZE_MAX);
	wfs_store16(raw, 0x8000);
	CHECK(encode(&j, 3 * WFS_MAX_BLOCK, "a literal too many") == SIZE_MAX);
	/* a stream longer than any block: 12 bits for every byte */
	j = (struct job){wfs_split_make(1, 0, 8), {.nr_tables = 1, .field = 8}, groups, raw, WFS_MAX_BLOCK};
	for (unsigned i = 0; i < 255; i++)
		j.pool.freq[0][i] = 1;
	j.pool.freq[0][0] = 4096 - 255;
	j.pool.freq[0][WFS_WIDE_ESCAPE] = 1;
	for (size_t i = 0; i < WFS_MAX_BLOCK; i++)
		raw[i] = (u8)(1 + test_rand_below(&rng, 254));
	CHECK(encode(&j, WFS_MAX_BLOCK, "long stream") == SIZE_MAX);
	free(raw);
	PASS("names without escapes, too many literals and streams longer than a block are refused");
}

/* Words with zero low bits, of F32 that holds BF16: the modes of the split coding. */
static void test_modes(void)
{
	enum { N = 10000 };
	struct job j = {
		wfs_split_make(4, 1, 11), {.nr_tables = 1, .field = 11, .base = 900}, {1, 0, {{0, 1000}}}, NULL, N};
	u8 *raw = malloc(4 * N);
	uint64_t rng = 13;
	size_t len;

	for (unsigned i = 0; i < 128; i++)
		j.pool.freq[0][i] = 31;
	j.pool.freq[0][WFS_WIDE_ESCAPE] = 4096 - 128 * 31;
	for (unsigned i = 0; i < N; i++)
		wfs_store32(raw + 4 * i, (u32)(0x38400000 + test_rand_below(&rng, 1024) * 65536) |
						 (u32)test_rand_below(&rng, 2) << 31);
	j.raw = guarded(raw, 4 * N);
	len = encode(&j, 4 * N, "modes");
	/* 7 bits of a name, 4 of the mantissa, the sign */
	CHECK_MSG(len < N * (7.1 + 4 + 1) / 8 + 600, "%zu", len);
	free(raw);
	PASS("zero low bits are not stored");
}

int main(void)
{
	buffers = aligned_alloc(64, WFS_CEIL_DIV(sizeof(*buffers), (size_t)64) * 64);
	scratch = wfs_scratch_new();
	CHECK(buffers && scratch);
	comp_guard = test_guard_new(3 * WFS_MAX_BLOCK);
	raw_guard = test_guard_new(WFS_MAX_BLOCK);
	test_models();
	test_trained();
	test_refusals();
	test_modes();
	test_guard_free(&comp_guard);
	test_guard_free(&raw_guard);
	wfs_scratch_free(scratch);
	free(buffers);
	return 0;
}
