/* test_grid_rules.c - what a grid payload may not be: the rules of FORMAT.md 3.2 one by one, and damage; every CPU
 * variant refuses for the same reason.
 */
#include "grid_check.h"

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
	grid_check_start();
	test_most_tiles();
	test_wrapped_scales();
	test_wide_codes();
	test_payload_rules();
	test_palette_rules();
	test_scale_limits();
	test_damage();
	grid_check_end();
	return 0;
}
