/* test_grid_search.c - scales found from words: borders and ranges that are exact, every list under every rounding, and
 * the same results from every kernel on words of any kind.
 */
#include "grid_encode.h"
#include "test_util.h"

#include <math.h>

enum { MAX_WORDS = 512, TRIED = 8 };

static const struct wfs_search_kernel *kernel[4];
static unsigned nr_kernels;
static struct wfs_search_rule rule;
static struct wfs_grid_values values;
static u64 seed = 1;

static const u8 ops[] = {WFS_GRID_NEAREST, WFS_GRID_TRUNCATE};

static bool make_rule(unsigned list, unsigned op, unsigned output)
{
	struct wfs_grid grid;

	if (op == WFS_GRID_TRUNCATE && output != WFS_GRID_BF16)
		return false;
	wfs_grid_of_list(list, op, output, &grid);
	wfs_grid_values_make(&grid, &values);
	CHECK(wfs_search_rule_make(&values, &rule));
	return true;
}

/* A scale with so many mantissa bits, in the middle of what is valid or anywhere. */
static u32 random_scale(unsigned mantissa, bool anywhere)
{
	u32 bits = anywhere ? rule.valid.low + (u32)test_rand_below(&seed, rule.valid.high - rule.valid.low + 1)
			    : (u32)(110 + test_rand_below(&seed, 16)) << 23 | (u32)(test_rand(&seed) >> 41);

	return bits >> (23 - mantissa) << (23 - mantissa);
}

static bool is_code(unsigned code)
{
	return values.value[code] << 1 || code == rule.zero[0] || code == rule.zero[1];
}

static void put_word(u8 *raw, unsigned output, size_t i, u32 word)
{
	if (output == WFS_GRID_F32)
		wfs_store32(raw + 4 * i, word);
	else
		wfs_store16(raw + 2 * i, (u16)word);
}

/* Random codes with their largest value among them, and their words. */
static void random_tile(unsigned output, u32 scale, size_t nr, u8 *code, u8 *raw)
{
	for (size_t i = 0; i < nr; i++) {
		do {
			code[i] = (u8)test_rand(&seed);
		} while (!is_code(code[i]));
		put_word(raw, output, i, wfs_grid_word(&values, wfs_f32_of_bits(scale), code[i]));
	}
}

/* ---- borders ---- */

/* Of a word x: the numbers low and high round to it, those around them do not. */
static void check_borders(unsigned op, unsigned output, u32 word, u32 x)
{
	u32 low, high;

	wfs_word_borders(op, output, x, &low, &high);
	CHECK_MSG(wfs_grid_round(op, output, low) == word && wfs_grid_round(op, output, high) == word,
		  "output %u, op %u, word %x", output, op, word);
	CHECK_MSG(wfs_grid_round(op, output, low - 1) != word && wfs_grid_round(op, output, high + 1) != word,
		  "output %u, op %u, word %x", output, op, word);
}

static void test_borders(void)
{
	for (u32 word = 1; word < 0x8000; word++) {
		u8 raw[2];
		u32 x;

		wfs_store16(raw, (u16)word);
		wfs_search_kernel_scalar.load(WFS_GRID_BF16, raw, 1, &x);
		CHECK(x == (word >= 0x80 && word < 0x7f80 ? word << 16 : 0));
		for (unsigned i = 0; i < 2 && x; i++)
			check_borders(ops[i], WFS_GRID_BF16, word, x);
		wfs_search_kernel_scalar.load(WFS_GRID_F16, raw, 1, &x);
		CHECK(!x == (word >= 0x7c00));
		if (x)
			check_borders(WFS_GRID_NEAREST, WFS_GRID_F16, word, x);
	}
	check_borders(WFS_GRID_NEAREST, WFS_GRID_F32, 0x3f800001, 0x3f800001);
	PASS("borders of every word of two bytes");
}

/* wfs_scale_from and wfs_scale_to against trying the scales around. */
static void test_scale_borders(void)
{
	for (unsigned i = 0; i < 200000; i++) {
		const u32 border = (u32)(100 + test_rand_below(&seed, 40)) << 23 | (u32)(test_rand(&seed) >> 41);
		const float value = i % 2 ? (float)(1 + test_rand_below(&seed, 127))
					  : wfs_f32_of_bits(0x3f000000 | (u32)(test_rand(&seed) >> 41));
		const u32 from = (u32)wfs_scale_from(border, value), to = (u32)wfs_scale_to(border, value);

		CHECK(wfs_f32_bits(wfs_f32_of_bits(from) * value) >= border);
		CHECK(wfs_f32_bits(wfs_f32_of_bits(from - 1) * value) < border);
		CHECK(wfs_f32_bits(wfs_f32_of_bits(to) * value) <= border);
		CHECK(wfs_f32_bits(wfs_f32_of_bits(to + 1) * value) > border);
	}
	PASS("smallest and largest scales of a value");
}

static void test_scale_bits(void)
{
	for (unsigned i = 0; i < 20000; i++) {
		struct wfs_scale_range r = {.low = 0x30000000 + (u32)test_rand_below(&seed, 1 << 24)};
		unsigned bits = 0;

		r.high = r.low + (u32)test_rand_below(&seed, 1u << test_rand_below(&seed, 24));
		while (bits < 23 && ((r.low - 1) >> (23 - bits)) == r.high >> (23 - bits))
			bits++;
		CHECK(wfs_scale_bits(&r) == bits);
	}
	PASS("mantissa bits of the shortest scale in a range");
}

/* ---- values ---- */

/* Every code's number gives the code back, and the value next to a value is that value. */
static void test_codes(void)
{
	for (unsigned list = 0; list < WFS_NR_LISTS; list++) {
		CHECK(make_rule(list, WFS_GRID_NEAREST, WFS_GRID_F32));
		for (unsigned code = 0; code < 256; code++) {
			u32 x[WFS_SEARCH_STEP] = {values.value[code]};
			u8 found[WFS_SEARCH_STEP];

			if (!is_code(code))
				continue;
			for (unsigned k = 0; k < nr_kernels; k++) {
				CHECK(!kernel[k]->assign(&rule, x, WFS_SEARCH_STEP, 127 << 23, found));
				CHECK_MSG(found[0] == code, "list %u, code %u, %u", list, code, found[0]);
			}
		}
	}
	PASS("codes of all values of all lists");
}

/* ---- tiles ---- */

static void check_tile(unsigned list, unsigned output, u32 scale, size_t nr)
{
	const struct wfs_search_kernel *k = kernel[test_rand_below(&seed, nr_kernels)];
	u8 code[MAX_WORDS], raw[MAX_WORDS * 4], found[MAX_WORDS];
	u32 x[MAX_WORDS], key;
	u64 mask[2] = {~(u64)0, ~(u64)0};
	struct wfs_search search = {.rule = &rule, .kernel = k};
	struct wfs_scale_range range;

	random_tile(output, scale, nr, code, raw);
	k->load(output, raw, nr, x);
	key = k->largest(x, nr);
	if (!rule.looked_up && key > 1) {
		unsigned largest = 0, number;

		for (size_t i = 0; i < nr; i++)
			if (x[i] == (key >> 1 | key << 31))
				largest = code[i];
		number = (unsigned)(((int)largest - rule.origin[key & 1]) * rule.step[key & 1]);
		k->candidates(&rule, x, key >> 1 | key << 31, mask);
		CHECK_MSG(mask[(number - 1) / 64] >> (number - 1) % 64 & 1, "list %u, value %u", list, number);
	}
	enum wfs_tile_kind kind = wfs_tile_search(&search, x, nr, &range);
	if (kind == WFS_TILE_ZERO) {
		CHECK(key <= 1);
		return;
	}
	CHECK_MSG(kind == WFS_TILE_FITS, "list %u, op %u, output %u, scale %x", list, rule.op, output, scale);
	/* Ambiguous words of a dense list do not cut the range, so not every scale in it need fit all words. */
	size_t least = SIZE_MAX;
	for (unsigned i = 0; i <= TRIED; i++) {
		const unsigned zeros = 23 - wfs_scale_bits(&range);
		const u32 s = i == TRIED ? range.high >> zeros << zeros /* the shortest */
					 : range.low + (u32)((u64)(range.high - range.low) * i / (TRIED - 1));
		const size_t misfits = k->assign(&rule, x, nr, s, found);

		least = WFS_MIN(least, misfits);
		CHECK_MSG(rule.dense || !misfits, "list %u, op %u, output %u, scale %x of %x..%x: %zu", list, rule.op,
			  output, s, range.low, range.high, misfits);
		for (size_t w = 0; w < nr && !misfits; w++) {
			u32 word = wfs_grid_word(&values, wfs_f32_of_bits(s), found[w]);

			CHECK(output == WFS_GRID_F32 ? word == wfs_load32(raw + 4 * w)
						     : word == wfs_load16(raw + 2 * w));
		}
	}
	CHECK_MSG(least <= 2, "list %u, op %u, scale %x, %zu", list, rule.op, scale, least);
}

/* Lists come from containers, too, when their blocks are encoded again. */
static void test_long_lists(void)
{
	for (unsigned nr = 127; nr <= 255; nr++) {
		struct wfs_grid grid = {.op = WFS_GRID_NEAREST, .flags = WFS_GRID_SIGNED, .nb = (u16)(nr + 1)};

		for (unsigned i = 0; i <= nr; i++)
			grid.base[i] = wfs_f32_bits((float)i);
		wfs_grid_values_make(&grid, &values);
		CHECK(wfs_search_rule_make(&values, &rule) == (nr <= WFS_SEARCH_MAX_VALUES));
	}
	PASS("lists of more values of a sign than the search takes are refused");
}

static void test_tiles(void)
{
	static const u8 mantissas[] = {0, 3, 7, 10, 23};

	for (unsigned list = 0; list < WFS_NR_LISTS; list++)
		for (unsigned op = 0; op < 2; op++)
			for (unsigned output = 0; output < 3; output++)
				for (unsigned i = 0; make_rule(list, ops[op], output) && i < 400; i++)
					check_tile(
						list, output,
						random_scale(mantissas[i % 5], output != WFS_GRID_F16 && i % 16 == 15),
						(1 + test_rand_below(&seed, MAX_WORDS / 16)) * 16);
	PASS("scales of tiles of every list, rounding and output");
}

/* A few strangers among the words, the largest one included, become misfits; the others keep their scale. */
static void test_misfits(void)
{
	enum { NR = 256, STRANGERS = 3 };

	for (unsigned round = 0; round < 200; round++) {
		u8 code[NR], raw[2 * NR], found[NR];
		struct wfs_search search = {.rule = &rule, .kernel = kernel[0], .misfit_work = 1 << 20};
		struct wfs_scale_range range;
		u32 x[NR], scale;

		CHECK(make_rule(round % 2 ? WFS_LIST_E4M3 : WFS_LIST_INT4, WFS_GRID_NEAREST, WFS_GRID_BF16));
		scale = random_scale(23, false);
		random_tile(WFS_GRID_BF16, scale, NR, code, raw);
		for (unsigned i = 0; i < STRANGERS; i++) {
			size_t at = test_rand_below(&seed, NR);
			float stranger = wfs_f32_of_bits(values.max_abs) * wfs_f32_of_bits(scale) * (i ? 0.437f : 1.3f);

			put_word(raw, WFS_GRID_BF16, at, wfs_bf16_nearest(wfs_f32_bits(stranger)));
		}
		kernel[0]->load(WFS_GRID_BF16, raw, NR, x);
		CHECK(wfs_tile_search(&search, x, NR, &range) == WFS_TILE_FITS);
		kernel[0]->load(WFS_GRID_BF16, raw, NR, x);
		CHECK(kernel[0]->assign(&rule, x, NR, range.low + (range.high - range.low) / 2, found) <= STRANGERS);
	}
	PASS("misfits among words of a grid");
}

/* Words looked at for a tile of powers of two, which fit under many values of the list, but for some words: its last
 * one, or others here and there; the same with every kernel. */
static u64 work_for(const u32 *tile, size_t nr, u64 misfit_work)
{
	u64 first = 0;

	for (unsigned k = 0; k < nr_kernels; k++) {
		struct wfs_search search = {.rule = &rule, .kernel = kernel[k], .misfit_work = misfit_work};
		struct wfs_scale_range range;
		static u32 x[1 << 14];

		memcpy(x, tile, nr * sizeof(*tile));
		CHECK(wfs_tile_search(&search, x, nr, &range) == WFS_TILE_MISFIT);
		CHECK(!k || search.work == first);
		CHECK(search.misfit_work <= misfit_work && misfit_work - search.misfit_work <= search.work);
		first = search.work;
	}
	return first;
}

static void test_work(void)
{
	enum { NR = 1 << 14, ONE_VALUE = 2 * (2 + WFS_DENSE_ROUNDS) * NR };
	const u64 strict = WFS_SEARCH_PASSES * NR + WFS_SEARCH_ANY_TILE, misfit_work = 3 * NR;
	static u32 x[NR];

	CHECK(make_rule(WFS_LIST_E5M2, WFS_GRID_NEAREST, WFS_GRID_F32));
	for (size_t i = 0; i < NR; i++)
		x[i] = (u32)(127 - i % 8) << 23;
	x[NR - 1] = 0x3f212345;
	/* Without a bound: once through for each power of two in the list. */
	CHECK(rule.nr_values[0] / 4 * (u64)NR > strict);
	CHECK(work_for(x, NR, 0) >= strict && work_for(x, NR, 0) < strict + ONE_VALUE);
	for (size_t i = 32; i < NR; i += 32)
		x[i] = 0x3f012345 + (u32)(test_rand(&seed) >> 50);
	CHECK(work_for(x, NR, UINT64_MAX / 2) > 2 * (misfit_work + ONE_VALUE));
	CHECK(work_for(x, NR, misfit_work) < work_for(x, NR, 0) + misfit_work + ONE_VALUE);
	/* The tiles of a block share what there is for misfits: the second gets nothing. */
	struct wfs_search search = {.rule = &rule, .kernel = kernel[0], .misfit_work = misfit_work};
	struct wfs_scale_range range;
	static u32 copy[NR];
	memcpy(copy, x, sizeof(x));
	CHECK(wfs_tile_search(&search, copy, NR, &range) == WFS_TILE_MISFIT && !search.misfit_work);
	const u64 before = search.work;
	memcpy(copy, x, sizeof(x));
	CHECK(wfs_tile_search(&search, copy, NR, &range) == WFS_TILE_MISFIT);
	CHECK(search.work - before == work_for(x, NR, 0));
	PASS("work for tiles that are nearly on a grid is bounded");
}

/* Words of no grid are found out. */
static void test_ordinary(void)
{
	unsigned fitting = 0;

	for (unsigned round = 0; round < 2000; round++) {
		struct wfs_search search = {.rule = &rule, .kernel = kernel[0]};
		struct wfs_scale_range range;
		u8 raw[32];
		u32 x[16];

		make_rule(round % WFS_NR_LISTS, WFS_GRID_NEAREST, WFS_GRID_BF16);
		for (unsigned i = 0; i < 16; i++)
			put_word(raw, WFS_GRID_BF16, i, 0x3c00 | (u32)(test_rand(&seed) >> 55));
		kernel[0]->load(WFS_GRID_BF16, raw, 16, x);
		fitting += wfs_tile_search(&search, x, 16, &range) == WFS_TILE_FITS;
	}
	CHECK_MSG(fitting < 20, "%u of 2000", fitting);
	PASS("ordinary words fit no list");
}

/* ---- kernels ---- */

/* Words of a grid, near a grid, or any bytes. */
static void random_words(unsigned output, size_t nr, u8 *raw)
{
	const u32 scale = random_scale(23, false);
	const unsigned kind = (unsigned)test_rand_below(&seed, 3);
	u8 code[MAX_WORDS];

	random_tile(output, scale, nr, code, raw);
	for (size_t i = 0; i < nr; i++)
		if (kind == 2 || (kind == 1 && test_rand_below(&seed, 20) == 0))
			put_word(raw, output, i, (u32)test_rand(&seed));
}

static void check_kernels(unsigned output)
{
	const size_t nr = (1 + test_rand_below(&seed, MAX_WORDS / 16)) * 16, odd = nr - test_rand_below(&seed, 16);
	u8 raw[MAX_WORDS * 4], code[2][MAX_WORDS];
	u32 x[2][MAX_WORDS] = {{0}};
	u64 mask[2][2] = {{0}};

	random_words(output, nr, raw);
	kernel[0]->load(output, raw, odd, x[0]);
	for (unsigned k = 1; k < nr_kernels; k++) {
		const u32 scale = random_scale((unsigned)test_rand_below(&seed, 24), test_rand(&seed) & 1);
		struct wfs_scale_range range[2];
		const u32 key = kernel[0]->largest(x[0], nr), largest = key >> 1 | key << 31;
		u64 work[2] = {0};
		bool found;

		memset(x[1], 0, sizeof(x[1]));
		kernel[k]->load(output, raw, odd, x[1]);
		CHECK(!memcmp(x[0], x[1], sizeof(x[0])));
		CHECK(kernel[k]->largest(x[1], nr) == key);
		if (!rule.looked_up && key > 1) {
			kernel[0]->candidates(&rule, x[0], largest, mask[0]);
			kernel[k]->candidates(&rule, x[0], largest, mask[1]);
			CHECK(!memcmp(mask[0], mask[1], sizeof(mask[0])));
		}
		range[0].low = WFS_MAX(scale - (u32)test_rand_below(&seed, 1 << 17), rule.valid.low);
		range[0].high = WFS_MIN(scale + (u32)test_rand_below(&seed, 1 << 17), rule.valid.high);
		if (range[0].low <= range[0].high) {
			range[1] = range[0];
			found = kernel[0]->narrow(&rule, x[0], nr, &range[0], &work[0]);
			CHECK(kernel[k]->narrow(&rule, x[0], nr, &range[1], &work[1]) == found);
			CHECK(work[0] == work[1] && work[0] >= WFS_SEARCH_STEP);
			CHECK(!found || !memcmp(&range[0], &range[1], sizeof(range[0])));
		}
		if (scale >= rule.valid.low && scale <= rule.valid.high) {
			CHECK(kernel[0]->assign(&rule, x[0], nr, scale, code[0]) ==
			      kernel[k]->assign(&rule, x[0], nr, scale, code[1]));
			CHECK(!memcmp(code[0], code[1], nr));
		}
	}
}

static void test_kernels(void)
{
	for (unsigned list = 0; list < WFS_NR_LISTS; list++)
		for (unsigned op = 0; op < 2; op++)
			for (unsigned output = 0; output < 3; output++)
				for (unsigned i = 0; make_rule(list, ops[op], output) && i < 500; i++)
					check_kernels(output);
	PASS("%u kernels agree", nr_kernels);
}

int main(void)
{
	kernel[nr_kernels++] = &wfs_search_kernel_scalar;
	if (wfs_cpu_supported(WFS_CPU_AVX2))
		kernel[nr_kernels++] = wfs_search_kernel_avx2_get();
	if (wfs_cpu_supported(WFS_CPU_AVX512VBMI))
		kernel[nr_kernels++] = wfs_search_kernel_avx512_get();
	test_borders();
	test_scale_borders();
	test_scale_bits();
	test_codes();
	test_long_lists();
	test_tiles();
	test_misfits();
	test_work();
	test_ordinary();
	test_kernels();
	return 0;
}
