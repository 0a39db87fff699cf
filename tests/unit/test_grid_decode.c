/* test_grid_decode.c - blocks of grids against a naive writer, in every shape by every CPU variant. */
#include "grid_check.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Columns, tile columns, tile rows. */
static const struct {
	u32 cols;
	u16 tw, th;
} shapes[] = {
	{1, 0, 0},	    {1000, 0, 0},    {64, 64, 64},    {300, 128, 128},
	{7, 3, 2},	    {129, 128, 1},   {1024, 0, 1},    {5, 0, 1},
	{16, 16, 1},	    {33, 16, 1},     {100, 1, 0},     {100, 1, 3},
	{99, 1, 1},	    {2048, 100, 5},  {96, 32, 1},     {1000, 0, 7},
	{65, 64, 0},	    {4096, 4095, 1}, {50, 2, 1},      {41, 4, 1},
	{24, 8, 3},	    {24, 24, 3},     {700, 63, 2},    {700, 65, 1},
	{1u << 31, 512, 1}, {3000, 48, 1},   {256, 128, 128}, {640, 64, 40},
	{256, 64, 4},	    {200, 64, 8},    {4001, 2000, 1}, {UINT32_MAX, 0, UINT16_MAX},
};

static void test_shapes(void)
{
	static const size_t lens[] = {1, 2, 15, 16, 17, 33, 63, 64, 65, 127, 129, 511, 512, 513, 2000, 9999};
	uint64_t rng = 3;
	char what[100];

	for (unsigned i = 0; i < WFS_ARRAY_LEN(shapes); i++) {
		for (unsigned k = 0; k < 2 * WFS_ARRAY_LEN(lens); k++) {
			const size_t n = lens[k / 2];
			const unsigned output = (unsigned)test_rand_below(&rng, 3),
				       flags = (unsigned)test_rand_below(&rng, 3);
			const unsigned op = output == WFS_GRID_BF16 ? (unsigned)test_rand_below(&rng, 2) : 0;
			const unsigned nb = 2 + (unsigned)test_rand_below(&rng, flags == WFS_GRID_SIGNED ? 255 : 127);
			struct wfs_grid_segment s = {.cols = shapes[i].cols, .tw = shapes[i].tw, .th = shapes[i].th};
			const unsigned nr_segments =
				k % 2 ? 1 : 1 + (unsigned)test_rand_below(&rng, WFS_MIN((n + 1) / 2, (size_t)20));
			struct wfs_grid g = model_grid(&rng, op, flags, output, nb, test_rand_below(&rng, 2));
			struct grid_model m;

			if (k % 3) {
				s.col0 = (u32)test_rand_below(&rng, s.cols);
				s.row0 = s.th ? (u16)test_rand_below(&rng, s.th) : 0;
			}
			m = grid_model_new(&rng, &g, n, nr_segments, &s,
					   (unsigned)test_rand_below(&rng, WFS_MIN(n, (size_t)4)));
			snprintf(what, sizeof(what), "cols %u tw %u th %u, %zu words, op %u flags %u output %u", s.cols,
				 s.tw, s.th, n, op, flags, output);
			check_model(&m, what);
			grid_model_free(&m);
		}
	}
	PASS("blocks of every shape, in one or several segments, from anywhere in a tile");
}

static void test_kinds(void)
{
	uint64_t rng = 4;
	char what[100];

	for (unsigned kind = 0; kind < 3 * 3 * 3; kind++) {
		const unsigned op = kind / 9, flags = kind / 3 % 3, output = kind % 3;
		const bool list = flags == WFS_GRID_SIGNED;

		if ((op == WFS_GRID_TRUNCATE && output) || (op == WFS_GRID_PALETTE && !list))
			continue;
		for (unsigned i = 0; i < 24; i++) {
			static const unsigned sizes[] = {2, 9, 16, 17, 127, 128, 200, 256};
			const unsigned nb = sizes[i % (list ? 8 : 6)];
			struct wfs_grid g = model_grid(&rng, op, flags, output, nb, i & 1);
			const struct wfs_grid_segment s = {.cols = 200, .tw = 70, .th = (u16)(i % 3)};
			struct grid_model m = grid_model_new(&rng, &g, 3001, 1, &s, i % 5);

			snprintf(what, sizeof(what), "op %u flags %u output %u, %u entries", op, flags, output, nb);
			check_model(&m, what);
			grid_model_free(&m);
		}
	}
	PASS("every operation, sign, output and size of a list; codes that name no entry");
}

/* Products that are half-way between words, of a grid in which they are common. */
static void test_ties(void)
{
	uint64_t rng = 5;

	for (unsigned output = WFS_GRID_BF16; output <= WFS_GRID_F16; output++) {
		const struct wfs_grid g = model_grid(&rng, WFS_GRID_NEAREST, 0, output, 128, false);
		const struct wfs_grid_segment s = {.cols = 64, .tw = 16, .th = 1};
		size_t nr_ties = 0;
		struct grid_model m = grid_model_new(&rng, &g, 20000, 1, &s, 0);

		/* Scales of few bits; F16 words that may be subnormal. */
		free(m.raw);
		free(m.comp);
		m.mantissa_bits = 6;
		m.scale_bits = 9;
		m.low = (output == WFS_GRID_F16 ? 105u : 120u) << 6;
		for (size_t i = 0; i < m.nr_tiles; i++)
			m.packed[i] = (u32)test_rand_below(&rng, 512);
		grid_model_encode(&m, &rng);
		check_model(&m, "ties");
		for (size_t i = 0; i < m.codes.n; i++) {
			const u32 scale = (m.low + m.packed[model_tile_number(&m.segment[0], i)]) << 17;
			const double product = model_double(g.base[m.codes.raw[i] & 127]) * model_double(scale);
			const u32 w = model_nearest(output == WFS_GRID_BF16, product);
			const bool bf16 = output == WFS_GRID_BF16;

			nr_ties += product * 2 == model_half_value(bf16, w) + model_half_value(bf16, w + 1) ||
				   (w && product * 2 == model_half_value(bf16, w) + model_half_value(bf16, w - 1));
		}
		CHECK_MSG(nr_ties > 200, "%zu ties", nr_ties);
		grid_model_free(&m);
	}
	PASS("products half-way between words are rounded to the even one");
}

/* Scales that take all 31 bits, any other pattern of which would be refused: what lies behind them must not count. */
static void test_packed_scales(void)
{
	uint64_t rng = 13;

	for (unsigned nr = 1; nr <= 40; nr++) {
		const struct wfs_grid g = model_grid(&rng, WFS_GRID_NEAREST, 0, WFS_GRID_BF16, 128, false);
		const struct wfs_grid_segment s = {.cols = 8, .th = 1};
		struct grid_model m = grid_model_new(&rng, &g, 8 * nr, 1, &s, nr % 3);

		CHECK(m.nr_tiles == nr);
		free(m.raw);
		free(m.comp);
		m.mantissa_bits = 23;
		m.scale_bits = 31;
		m.low = 0;
		for (size_t i = 0; i < nr; i++)
			m.packed[i] = (118u << 23) + (u32)test_rand_below(&rng, 8u << 23);
		grid_model_encode(&m, &rng);
		check_model(&m, "scales of 31 bits");
		grid_model_free(&m);
	}
	PASS("any number of packed scales");
}

static void test_large(void)
{
	uint64_t rng = 6;

	for (unsigned output = WFS_GRID_BF16; output <= WFS_GRID_F32; output++) {
		const struct wfs_grid g = model_grid(&rng, WFS_GRID_NEAREST, WFS_GRID_NEG1, output, 128, false);
		const struct wfs_grid_segment s = {.cols = 1024, .tw = 2, .th = 1};
		const size_t n = WFS_MAX_BLOCK / (output == WFS_GRID_F32 ? 4 : 2);
		struct grid_model m = grid_model_new(&rng, &g, n, 1, &s, 0);

		CHECK(m.raw_len >= WFS_MAX_BLOCK && m.nr_tiles == n / 2);
		check_model(&m, "largest block");
		grid_model_free(&m);
	}
	PASS("blocks of 1 MiB with as many tiles as there can be");
}

/* A program may have told the processor to flush subnormal numbers to zero: no product is one. */
static void test_flush_to_zero(void)
{
#ifdef __x86_64__
	const unsigned before = _mm_getcsr();
	uint64_t rng = 12;

	for (unsigned output = WFS_GRID_BF16; output <= WFS_GRID_F32; output++) {
		struct wfs_grid g = model_grid(&rng, WFS_GRID_NEAREST, 0, output, 128, true);
		const struct wfs_grid_segment s = {.cols = 400, .tw = 90, .th = 2};
		struct grid_model m;

		/* 2^-117, and scales from 2^-9 on. Among F16 words there are subnormal ones. */
		g.base[1] = 10 << 23;
		m = grid_model_new(&rng, &g, 5000, 1, &s, 0);
		_mm_setcsr(before | _MM_FLUSH_ZERO_ON | 0x40); /* and inputs that are subnormal */
		check_model(&m, "flush to zero");
		_mm_setcsr(before);
		grid_model_free(&m);
	}
	PASS("modes that flush subnormal numbers to zero change nothing");
#endif
}

int main(void)
{
	grid_check_start();
	test_kinds();
	test_shapes();
	test_ties();
	test_packed_scales();
	test_large();
	test_flush_to_zero();
	grid_check_end();
	return 0;
}
