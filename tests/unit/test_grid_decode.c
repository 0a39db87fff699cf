/* test_grid_decode.c - blocks of grids against a naive writer, in every shape by every CPU variant, and the rules of
 * FORMAT.md 3.2 one by one.
 *
 * Payloads and blocks lie against inaccessible pages, so that a read or write outside them is a crash.
 */
#include "grid_model.h"
#include "split_encode.h"
#include "split_merge.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static struct wfs_scratch *scratch;
static struct test_guard comp_guard, raw_guard;

/* ---- whole blocks ---- */

struct outcome {
	enum wfs_status status;
	const char *reason;
};

/* The pool of the codes when they are wide ones, else NULL. */
static struct wfs_wide_decode_pool *wide_pool;

static struct outcome decode(const struct grid_model *m, enum wfs_cpu cpu, unsigned phase, const u8 *comp,
			     size_t comp_len, u8 *raw, size_t raw_len)
{
	const struct wfs_coder coder = {
		.coding = wide_pool ? WFS_GRID_WIDE : WFS_GRID,
		.word = m->grid.output == WFS_GRID_F32 ? 4 : 2,
		.rot = m->codes.s.rot,
		.field = m->codes.s.field,
	};
	struct wfs_decode_pool *pool = wfs_decode_pool_new(&m->codes.pool);
	const struct wfs_kernels kernels = wfs_kernels_for(cpu);
	struct wfs_grid_values values;
	const struct wfs_decode_tables tables = {.split = pool, .wide = wide_pool, .grid = &values};
	struct outcome o = {WFS_OK, NULL};

	CHECK(pool);
	wfs_grid_values_make(&m->grid, &values);
	o.status =
		wfs_payload_decode(&coder, &tables, &kernels, phase, comp, comp_len, raw, raw_len, scratch, &o.reason);
	CHECK((o.status == WFS_OK) == (o.reason == NULL));
	free(pool);
	return o;
}

static void check_model(const struct grid_model *m, const char *what)
{
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		for (unsigned at_end = 0; at_end < 2; at_end++) {
			u8 *comp = at_end ? test_guard_end(&comp_guard, m->comp_len) : test_guard_start(&comp_guard);
			u8 *raw = at_end ? test_guard_end(&raw_guard, m->raw_len) : test_guard_start(&raw_guard) + 1;
			struct outcome o;

			if (!wfs_cpu_supported(cpu))
				continue;
			memcpy(comp, m->comp, m->comp_len);
			memset(at_end ? raw : raw - 1, 0xA5, m->raw_len + (at_end ? 0 : 101));
			o = decode(m, cpu, phase_of(m), comp, m->comp_len, raw, m->raw_len);
			CHECK_MSG(o.status == WFS_OK, "%s, %s: %s", what, wfs_cpu_name(cpu), o.reason);
			for (size_t i = 0; i < m->raw_len; i++)
				CHECK_MSG(raw[i] == m->raw[i], "%s, %s: byte %zu of %zu", what, wfs_cpu_name(cpu), i,
					  m->raw_len);
			for (size_t i = 0; !at_end && i < 100; i++)
				CHECK(raw[m->raw_len + i] == 0xA5);
			CHECK(at_end || raw[-1] == 0xA5);
		}
	}
}

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

/* The codes of a model by the wide coding instead. */
static void code_wide(struct grid_model *m, uint64_t *rng)
{
	struct wfs_wide_trainer *trainer = wfs_wide_trainer_new(m->codes.s, m->codes.n);
	struct wfs_encode_buffers *buffers = malloc(sizeof(*buffers));
	const struct wfs_wide_groups groups = {.nr = 1, .group = {{0, 1000}}};
	struct wfs_wide_pool *pool = malloc(sizeof(*pool));
	struct wfs_wide_encode_pool *encode;
	const size_t room = 8 * m->codes.n + 1000;

	CHECK(trainer && buffers && pool);
	wfs_wide_trainer_add(trainer, m->codes.raw, WFS_MIN(m->codes.n, (size_t)WFS_WIDE_TRAIN_WORDS));
	CHECK(wfs_wide_trainer_finish(trainer, pool, &m->codes.s) == WFS_OK);
	encode = wfs_wide_encode_pool_new(pool, m->codes.s);
	wide_pool = wfs_wide_decode_pool_new(pool);
	m->codes.comp = realloc(m->codes.comp, room);
	CHECK(encode && wide_pool && m->codes.comp);
	m->codes.comp_len = wfs_wide_encode(encode, &wfs_encode_kernel_scalar, &groups, m->codes.raw, m->codes.n,
					    m->codes.comp, room, buffers);
	CHECK(m->codes.comp_len <= room);
	free(m->raw);
	free(m->comp);
	grid_model_encode(m, rng);
	wfs_wide_encode_pool_free(encode);
	wfs_wide_trainer_free(trainer);
	free(buffers);
	free(pool);
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

/* ---- refusals ---- */

/* A block with all that a payload can have. */
static struct grid_model sample(uint64_t *rng)
{
	const struct wfs_grid g = model_grid(rng, WFS_GRID_NEAREST, 0, WFS_GRID_BF16, 100, false);
	const struct wfs_grid_segment s = {.cols = 90, .col0 = 7, .tw = 32, .th = 4, .row0 = 3};
	struct grid_model m = grid_model_new(rng, &g, 1000, 2, &s, 3);

	free(m.raw);
	free(m.comp);
	m.mantissa_bits = 7;
	m.scale_bits = 5;
	m.low = 120 << 7;
	for (size_t i = 0; i < m.nr_tiles; i++)
		m.packed[i] &= 31;
	CHECK(m.nr_tiles * m.scale_bits % 8);
	grid_model_encode(&m, rng);
	return m;
}

static void check_refused(const struct grid_model *m, const u8 *comp, size_t comp_len, const char *reason)
{
	u8 *p = test_guard_end(&comp_guard, comp_len), *raw = test_guard_end(&raw_guard, m->raw_len);

	memcpy(p, comp, comp_len);
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		struct outcome o;

		if (!wfs_cpu_supported(cpu))
			continue;
		o = decode(m, cpu, phase_of(m), p, comp_len, raw, m->raw_len);
		CHECK_MSG(o.status == WFS_BAD_DATA, "%s: %s", wfs_cpu_name(cpu), reason);
		CHECK_MSG(!reason || !strcmp(o.reason, reason), "%s: %s, not %s", wfs_cpu_name(cpu), o.reason, reason);
	}
}

/* The payload with `bytes` bytes at off set to value. */
static void check_edit(const struct grid_model *m, size_t off, unsigned bytes, u32 value, const char *reason)
{
	u8 *comp = malloc(m->comp_len);

	CHECK(comp);
	memcpy(comp, m->comp, m->comp_len);
	CHECK(memcmp(comp + off, &value, bytes));
	memcpy(comp + off, &value, bytes);
	check_refused(m, comp, m->comp_len, reason);
	free(comp);
}

/* One tile for two words is the most; a row of one column less has one more. */
static void test_most_tiles(void)
{
	static const size_t sizes[] = {1000, 1024, WFS_GRID_MAX_WORDS - 2};
	uint64_t rng = 21;

	for (size_t i = 0; i < WFS_ARRAY_LEN(sizes); i++) {
		const struct wfs_grid g = model_grid(&rng, WFS_GRID_NEAREST, 0, WFS_GRID_BF16, 100, false);
		const struct wfs_grid_segment s = {.cols = (u32)sizes[i], .tw = 2, .th = 1};
		struct grid_model m = grid_model_new(&rng, &g, sizes[i], 1, &s, 0);

		CHECK(m.nr_tiles == sizes[i] / 2);
		check_model(&m, "the most tiles");
		check_edit(&m, 16, 4, (u32)sizes[i] - 1, "a grid has too many tiles");
		grid_model_free(&m);
	}
	PASS("as many tiles as half the words, not one more");
}

/* Packed scales that become valid ones if the sum lost its top bit. */
static void test_wrapped_scales(void)
{
	uint64_t rng = 22;
	struct grid_model m = sample(&rng);

	free(m.raw);
	free(m.comp);
	m.scale_bits = 31;
	m.low = UINT32_MAX - 1000;
	for (size_t i = 0; i < m.nr_tiles; i++)
		m.packed[i] = (120 << 7) + 1001 + (u32)test_rand_below(&rng, 32);
	grid_model_encode(&m, &rng);
	check_refused(&m, m.comp, m.comp_len, "a scale of a grid is not valid");
	grid_model_free(&m);
	PASS("sums of scales do not wrap around");
}

static void test_wide_codes(void)
{
	uint64_t rng = 11;

	for (unsigned output = WFS_GRID_BF16; output <= WFS_GRID_F32; output++) {
		const struct wfs_grid g = model_grid(&rng, WFS_GRID_NEAREST, 0, output, 128, true);
		const struct wfs_grid_segment s = {.cols = 320, .col0 = 30, .tw = 128, .th = 128};
		struct grid_model m = grid_model_new(&rng, &g, 5000, 2, &s, 3);

		code_wide(&m, &rng);
		check_model(&m, "wide codes");
		check_refused(&m, m.comp, m.comp_len - 1, NULL);
		grid_model_free(&m);
		free(wide_pool);
		wide_pool = NULL;
	}
	PASS("codes may be coded wide");
}

static void test_payload_rules(void)
{
	const char *header = "grid header is not valid", *segment = "a segment of a grid is not valid";
	const char *cover = "the segments of a grid do not cover its words", *scale = "a scale of a grid is not valid";
	const char *literal = "literal number is not valid", *cut = "grid payload is cut short";
	uint64_t rng = 7;
	struct grid_model m = sample(&rng);
	const size_t scale_end = m.literals_off - 1;

	check_model(&m, "the sample");
	check_edit(&m, 0, 1, 24, header);
	check_edit(&m, 1, 1, 32, header);
	check_edit(&m, 2, 2, 0, header);
	check_edit(&m, 10, 2, 1, header);
	check_edit(&m, 2, 2, 60000, cut);
	check_edit(&m, 8, 2, 65535, cut);
	check_edit(&m, 12, 4, m.segment[0].n + 1, cover);
	check_edit(&m, 12, 4, m.segment[0].n - 1, cover);
	check_edit(&m, 12, 4, UINT32_MAX, cover);
	check_edit(&m, 36, 4, 0, segment);
	check_edit(&m, 16, 4, 0, segment);
	check_edit(&m, 16, 4, 7, segment);
	check_edit(&m, 20, 4, 90, segment);
	check_edit(&m, 24, 2, 91, segment);
	check_edit(&m, 28, 2, 4, segment);
	check_edit(&m, 26, 2, 0, segment);
	check_edit(&m, 30, 1, 1, segment);
	check_edit(&m, 35, 1, 1, segment);
	check_edit(&m, 16, 4, 1 << 20, "a grid has too many tiles");
	check_edit(&m, 16, 4, UINT32_MAX, "a grid has too many tiles");
	check_edit(&m, m.literals_off, 4, 1000, literal);
	check_edit(&m, m.literals_off + 6, 4, wfs_load32(m.comp + m.literals_off), literal);
	check_edit(&m, m.literals_off + 12, 4, 0, literal);
	check_edit(&m, scale_end, 1, m.comp[scale_end] | 0x80, "unused bits of scales are not zero");
	check_edit(&m, 4, 4, UINT32_MAX, scale);
	check_edit(&m, 4, 4, 227 << 7, scale);
	check_edit(&m, 4, 4, 0, scale);
	check_edit(&m, 4, 4, (27 << 7) - 1, scale);
	for (size_t len = 0; len < m.comp_len; len++)
		check_refused(&m, m.comp, len, NULL);
	m.comp = realloc(m.comp, m.comp_len + 1);
	CHECK(m.comp);
	m.comp[m.comp_len] = 0;
	check_refused(&m, m.comp, m.comp_len + 1, "lengths inside the split payload do not add up");
	grid_model_free(&m);
	PASS("every rule of a payload, broken");
}

static void test_palette_rules(void)
{
	uint64_t rng = 8;
	struct wfs_grid g = model_grid(&rng, WFS_GRID_PALETTE, WFS_GRID_SIGNED, WFS_GRID_F32, 200, false);
	const struct wfs_grid_segment none = {.cols = 1};
	struct grid_model m = grid_model_new(&rng, &g, 700, 0, &none, 2);

	check_model(&m, "the palette");
	check_edit(&m, 0, 1, 1, "grid header is not valid");
	check_edit(&m, 1, 1, 1, "grid header is not valid");
	check_edit(&m, 2, 2, 1, "grid header is not valid");
	check_edit(&m, 4, 4, 1, "grid header is not valid");
	grid_model_free(&m);
	PASS("a palette has no scales");
}

/* The smallest and largest scales, alone and with entries whose products reach the limits. */
static void test_scale_limits(void)
{
	static const struct {
		u32 entry;	       /* beside 0 */
		u32 smallest, largest; /* scales that are allowed */
	} limits[] = {
		{0x3f800000, 27u << 23, (227u << 23) - 1},
		{0x3fc00000, 27u << 23, (227u << 23) - 1},
		/* 2^-126 and 1.5 * 2^-125 */
		{0x00800000, 127u << 23, (227u << 23) - 1},
		{0x01400000, (125u << 23) + 0x2aaaab, (227u << 23) - 1},
		/* 2^126, 1.5 * 2^126 and the largest */
		{0x7e800000, 27u << 23, (128u << 23) - 1},
		{0x7ec00000, 27u << 23, (127u << 23) + 0x2aaaaa},
		{0x7f7fffff, 27u << 23, 126u << 23},
	};

	for (unsigned i = 0; i < WFS_ARRAY_LEN(limits); i++) {
		const struct wfs_grid g = {.nb = 2, .base = {0, limits[i].entry}};
		struct wfs_grid_values values;

		wfs_grid_values_make(&g, &values);
		CHECK_MSG(wfs_grid_scale_valid(&values, limits[i].smallest), "%u", i);
		CHECK_MSG(!wfs_grid_scale_valid(&values, limits[i].smallest - 1), "%u", i);
		CHECK_MSG(wfs_grid_scale_valid(&values, limits[i].largest), "%u", i);
		CHECK_MSG(!wfs_grid_scale_valid(&values, limits[i].largest + 1), "%u", i);
	}
	PASS("scales up to exactly where a product leaves the normal numbers");
}

/* Damaged payloads: one outcome for all variants. */
static void test_damage(void)
{
	uint64_t rng = 9;
	struct grid_model m = sample(&rng);
	u8 *want = malloc(m.raw_len);
	size_t nr_accepted = 0;

	CHECK(want);
	for (unsigned i = 0; i < 20000; i++) {
		const size_t comp_len = m.comp_len - (test_rand_below(&rng, 8) ? 0 : test_rand_below(&rng, 40));
		u8 *comp = test_guard_end(&comp_guard, comp_len), *raw = test_guard_end(&raw_guard, m.raw_len);
		const size_t front = i % 2 ? comp_len : m.literals_off + 20;
		struct outcome first, o;

		memcpy(comp, m.comp, comp_len);
		for (unsigned k = 0; k <= test_rand_below(&rng, 3); k++)
			comp[test_rand_below(&rng, front)] ^= (u8)(1u << test_rand_below(&rng, 8));
		first = decode(&m, WFS_CPU_SCALAR, phase_of(&m), comp, comp_len, want, m.raw_len);
		nr_accepted += first.status == WFS_OK;
		for (enum wfs_cpu cpu = WFS_CPU_SCALAR + 1; cpu < WFS_NR_CPUS; cpu++) {
			if (!wfs_cpu_supported(cpu))
				continue;
			o = decode(&m, cpu, phase_of(&m), comp, comp_len, raw, m.raw_len);
			CHECK(o.status == first.status);
			CHECK(o.status == WFS_OK ? !memcmp(raw, want, m.raw_len) : !strcmp(o.reason, first.reason));
		}
	}
	CHECK_MSG(nr_accepted > 1000, "%zu", nr_accepted);
	free(want);
	grid_model_free(&m);
	PASS("damaged payloads: the same bytes or the same refusal by every variant");
}

int main(void)
{
	scratch = wfs_scratch_new();
	CHECK(scratch);
	comp_guard = test_guard_new(4 << 20);
	raw_guard = test_guard_new(WFS_MAX_BLOCK + 4096);
	test_kinds();
	test_shapes();
	test_ties();
	test_packed_scales();
	test_large();
	test_most_tiles();
	test_wrapped_scales();
	test_wide_codes();
	test_flush_to_zero();
	test_payload_rules();
	test_palette_rules();
	test_scale_limits();
	test_damage();
	test_guard_free(&comp_guard);
	test_guard_free(&raw_guard);
	wfs_scratch_free(scratch);
	return 0;
}
