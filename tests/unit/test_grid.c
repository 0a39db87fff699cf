/* test_grid.c - what grids are made of: words and their rounding, the tiles of segments, and grids as they are stored,
 * with the rules of FORMAT.md 3.1 one by one.
 */
#include "grid_model.h"

static struct test_guard guard;

/* ---- words ---- */

static void test_rounding(void)
{
	uint64_t rng = 1;

	for (u32 w = 0; w < 31 << 10; w++) {
		/* Half-way between two words, and the numbers on both sides; the last one is between the largest and
		 * infinity. */
		const double middle = (model_half_value(false, w) + model_half_value(false, w + 1)) / 2;
		const u32 bits = wfs_f32_bits((float)middle);

		for (u32 b = bits - 1; b <= bits + 1; b++) {
			CHECK_MSG(wfs_f16_nearest(b) == model_nearest(false, model_double(b)), "%x", b);
			CHECK_MSG(wfs_f16_nearest(b | 1u << 31) == (0x8000 | wfs_f16_nearest(b)), "%x", b);
		}
		CHECK(wfs_f16_nearest(wfs_f32_bits((float)model_half_value(false, w))) == w);
	}
	for (u32 w = 1 << 7; w < 254 << 7; w += 7) {
		const u32 low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, (u32)test_rand_below(&rng, 0x10000)};

		for (unsigned i = 0; i < WFS_ARRAY_LEN(low); i++) {
			const u32 b = w << 16 | low[i];

			CHECK_MSG(wfs_bf16_nearest(b) == model_nearest(true, model_double(b)), "%x", b);
			CHECK(wfs_bf16_nearest(b | 1u << 31) == (0x8000 | wfs_bf16_nearest(b)));
		}
	}
	for (unsigned i = 0; i < 1000000; i++) {
		const u32 b = (u32)test_rand_below(&rng, 254u << 23);

		CHECK_MSG(wfs_f16_nearest(b) == model_nearest(false, model_double(b)), "%x", b);
	}
	CHECK(wfs_f16_nearest(0) == 0 && wfs_f16_nearest(1u << 31) == 0x8000);
	PASS("every value between words is rounded to the nearest, to the even one on a tie");
}

/* ---- tiles ---- */

static void check_walk(const struct wfs_grid_segment *s)
{
	struct wfs_grid_walk walk = wfs_grid_walk_start(s);
	struct wfs_grid_run run;
	u64 at = 0, last = UINT64_MAX;

	CHECK(wfs_grid_segment_valid(s));
	CHECK(wfs_grid_nr_tiles(s) == model_nr_tiles(s));
	while (wfs_grid_walk_next(&walk, &run)) {
		CHECK(run.nr_words && run.nr_words <= s->n - at);
		CHECK(model_tile_number(s, at) == run.tile);
		CHECK(model_tile_number(s, at + run.nr_words - 1) == run.tile);
		for (u32 i = 1; i < run.nr_words; i += 1 + run.nr_words / 50)
			CHECK(model_tile_number(s, at + i) == run.tile);
		CHECK(run.tile != last);
		last = run.tile;
		at += run.nr_words;
	}
	CHECK(at == s->n);
}

static void test_walk(void)
{
	uint64_t rng = 2;

	for (unsigned i = 0; i < 30000; i++) {
		struct wfs_grid_segment s = {.n = 1 + (u32)test_rand_below(&rng, 3000)};

		s.cols = 1 + (u32)(test_rand(&rng) >> (32 + test_rand_below(&rng, 32)));
		s.cols = s.cols ? s.cols : 1;
		if (test_rand_below(&rng, 3))
			s.cols = 1 + (s.cols - 1) % 300;
		s.col0 = (u32)test_rand_below(&rng, s.cols);
		s.tw = (u16)test_rand_below(&rng, WFS_MIN(s.cols, (u32)UINT16_MAX) + 1);
		if (test_rand_below(&rng, 2))
			s.tw = (u16)(s.tw % 20);
		s.th = (u16)(test_rand_below(&rng, 2) ? test_rand_below(&rng, 4) : test_rand(&rng));
		s.row0 = s.th ? (u16)test_rand_below(&rng, s.th) : 0;
		check_walk(&s);
	}
	PASS("runs and counts of tiles are those of rows and columns");
}

/* ---- grids ---- */

static enum wfs_status parse(const u8 *bytes, size_t len, struct wfs_grid *g)
{
	u8 *p = test_guard_end(&guard, len);
	const char *reason = NULL;
	size_t used = 0;
	enum wfs_status status;

	memcpy(p, bytes, len);
	status = wfs_grid_parse(p, len, g, &used, &reason);
	CHECK((status == WFS_OK) == (reason == NULL));
	CHECK(status != WFS_OK || used == 4 + 4u * g->nb);
	return status;
}

static void test_grid_round_trip(void)
{
	uint64_t rng = 10;

	for (unsigned i = 0; i < 500; i++) {
		const unsigned flags = (unsigned)test_rand_below(&rng, 3), output = (unsigned)test_rand_below(&rng, 3);
		const unsigned op = flags == 2 && i % 2 ? 2 : output ? 0 : (unsigned)test_rand_below(&rng, 2);
		const unsigned nb = 2 + (unsigned)test_rand_below(&rng, flags == 2 ? 255 : 127);
		const struct wfs_grid g = model_grid(&rng, op, flags, output, nb, test_rand_below(&rng, 2));
		struct wfs_grid got;
		u8 bytes[WFS_GRID_MAX_BYTES];
		const size_t len = wfs_grid_write(&g, bytes);

		CHECK(len == 4 + 4 * nb);
		memset(&got, 0xee, sizeof(got));
		CHECK(parse(bytes, len, &got) == WFS_OK);
		CHECK(got.op == g.op && got.flags == g.flags && got.output == g.output && got.nb == g.nb);
		CHECK(!memcmp(got.base, g.base, 4 * nb));
		for (size_t cut = 0; cut < len; cut += 1 + cut / 8)
			CHECK(parse(bytes, cut, &got) == WFS_BAD_DATA);
	}
	PASS("grids are read as they are written, and refused when cut");
}

static void test_grid_rules(void)
{
	static const u32 good[] = {0, 0x3f800000, 0x40000000, 0x40400000}; /* 0 1 2 3 */
	static const struct {
		u8 op, flags, output;
		u32 base[4];
		enum wfs_status status;
	} cases[] = {
		{0, 0, 0, {0, 0x3f800000, 0x40000000, 0x40400000}, WFS_OK},
		{3, 0, 0, {0, 1, 2, 3}, WFS_UNSUPPORTED},
		{0, 4, 0, {0, 0x3f800000, 0x40000000, 0x40400000}, WFS_UNSUPPORTED},
		{0, 128, 0, {0, 0x3f800000, 0x40000000, 0x40400000}, WFS_UNSUPPORTED},
		{0, 0, 3, {0, 0x3f800000, 0x40000000, 0x40400000}, WFS_UNSUPPORTED},
		{0, 3, 0, {0, 0x3f800000, 0x40000000, 0x40400000}, WFS_BAD_DATA},
		{1, 0, 1, {0, 0x3f800000, 0x40000000, 0x40400000}, WFS_BAD_DATA},
		{1, 0, 2, {0, 0x3f800000, 0x40000000, 0x40400000}, WFS_BAD_DATA},
		{2, 0, 0, {0, 1, 2, 3}, WFS_BAD_DATA},
		{2, 1, 0, {0, 1, 2, 3}, WFS_BAD_DATA},
		{2, 2, 0, {0, 1, 2, 3}, WFS_OK},
		{2, 2, 0, {5, 6, 7, 0xffff}, WFS_OK},
		{2, 2, 1, {5, 6, 7, 0x10000}, WFS_BAD_DATA},
		{2, 2, 2, {5, 6, 7, 0xffffffff}, WFS_OK},
		{2, 2, 2, {5, 6, 6, 8}, WFS_BAD_DATA},
		{2, 2, 2, {5, 6, 4, 8}, WFS_BAD_DATA},
		{0, 0, 0, {1, 0x3f800000, 0x40000000, 0x40400000}, WFS_BAD_DATA},	   /* subnormal */
		{0, 0, 0, {0, 0x007fffff, 0x40000000, 0x40400000}, WFS_BAD_DATA},	   /* subnormal */
		{0, 0, 0, {0, 0x00800000, 0x40000000, 0x40400000}, WFS_OK},		   /* the smallest normal */
		{0, 0, 0, {0, 0x3f800000, 0x40000000, 0x7f800000}, WFS_BAD_DATA},	   /* infinity */
		{0, 0, 0, {0, 0x3f800000, 0x40000000, 0x7f800001}, WFS_BAD_DATA},	   /* NaN */
		{0, 0, 0, {0, 0x3f800000, 0x40000000, 0x7f7fffff}, WFS_OK},		   /* the largest */
		{0, 0, 0, {0, 0x3f800000, 0x3f800000, 0x40400000}, WFS_BAD_DATA},	   /* twice */
		{0, 0, 0, {0, 0x40000000, 0x3f800000, 0x40400000}, WFS_BAD_DATA},	   /* descends */
		{0, 0, 0, {0x3f800000, 0x40000000, 0x40400000, 0x40800000}, WFS_BAD_DATA}, /* starts at 1 */
		{0, 0, 0, {0xbf800000, 0x40000000, 0x40400000, 0x40800000}, WFS_BAD_DATA}, /* starts at -1 */
		{0, 2, 0, {0xc0000000, 0xbf800000, 0, 0x40400000}, WFS_OK},		   /* -2 -1 0 3 */
		{0, 2, 0, {0xc0000000, 0xbf800000, 0x80000000, 0x40400000}, WFS_BAD_DATA}, /* -0 */
		{0, 2, 0, {0xbf800000, 0xc0000000, 0, 0x40400000}, WFS_BAD_DATA},	   /* descends below 0 */
		{0, 2, 0, {0xff800000, 0xc0000000, 0, 0x40400000}, WFS_BAD_DATA},	   /* -infinity */
	};
	u8 bytes[4 + 4 * 129] = {0};
	struct wfs_grid g;

	for (unsigned i = 0; i < WFS_ARRAY_LEN(cases); i++) {
		const u8 start[] = {cases[i].op, cases[i].flags, 3, cases[i].output};

		memcpy(bytes, start, 4);
		memcpy(bytes + 4, cases[i].base, 16);
		CHECK_MSG(parse(bytes, 20, &g) == cases[i].status, "case %u", i);
	}
	memcpy(bytes, (u8[]){0, 0, 0, 0}, 4);
	memcpy(bytes + 4, good, sizeof(good));
	CHECK(parse(bytes, 8, &g) == WFS_BAD_DATA); /* one entry */
	bytes[2] = 128;
	for (u32 i = 0; i < 129; i++)
		wfs_store32(bytes + 4 + 4 * i, wfs_f32_bits((float)i));
	CHECK(parse(bytes, sizeof(bytes), &g) == WFS_BAD_DATA); /* 129 of them */
	bytes[1] = WFS_GRID_SIGNED;
	CHECK(parse(bytes, sizeof(bytes), &g) == WFS_OK);
	PASS("every rule of a grid, broken");
}

int main(void)
{
	guard = test_guard_new(1 << 16);
	test_rounding();
	test_walk();
	test_grid_round_trip();
	test_grid_rules();
	test_guard_free(&guard);
	return 0;
}
