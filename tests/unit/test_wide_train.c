/* test_wide_train.c - wide tables, pools and segments: valid whatever the words, slots the best there are, the same on
 * every run; fields, tables and segments as the words ask for.
 */
#include "log2_fixed.h"
#include "wide_model.h"
#include "wide_encode.h"

/* The pool must survive being written and read by the reader's checks (FORMAT.md 4.1). */
static void check_valid(const struct wfs_wide_pool *pool, const char *what)
{
	static u8 bytes[WFS_WIDE_POOL_MAX_BYTES];
	struct wfs_wide_pool back;
	const char *reason = NULL;
	size_t used = 0, len = wfs_wide_pool_write(pool, bytes);

	CHECK_MSG(wfs_wide_pool_parse(bytes, len, &back, &used, &reason) == WFS_OK, "%s: %s", what, reason);
	CHECK_MSG(used == len && wide_pools_equal(&back, pool), "%s", what);
}

/* ---- tables ---- */

/* ln((f + 1) / f) / 2 */
static double slot_worth(unsigned f)
{
	double y = 1.0 / (2 * f + 1), sum = 0;

	for (unsigned k = 1; k < 60; k += 2, y *= 1.0 / (2 * f + 1) / (2 * f + 1))
		sum += y / k;
	return sum;
}

/* No slot moved from one name to another may make the table cheaper. */
static void check_best_slots(const u64 *count, const u16 *freq, const char *what)
{
	unsigned sum = 0;

	for (unsigned to = 0; to < WFS_WIDE_NAMES; sum += freq[to++]) {
		CHECK_MSG(!count[to] || freq[to], "%s: no slot for name %u", what, to);
		for (unsigned from = 0; from < WFS_WIDE_NAMES; from++) {
			if (to == from || freq[from] <= 1 || !freq[to] || freq[to] == 4095)
				continue;
			double gain = (double)count[to] * slot_worth(freq[to]);
			double loss = (double)count[from] * slot_worth(freq[from] - 1u);
			CHECK_MSG(gain <= loss * 1.00001 + 0.00001, "%s: a slot of %u belongs to %u", what, from, to);
		}
	}
	CHECK_MSG(sum == 4096 && freq[WFS_WIDE_ESCAPE], "%s", what);
}

static void test_tables(void)
{
	uint64_t rng = 1;

	for (unsigned round = 0; round < 1500; round++) {
		u64 count[WFS_WIDE_NAMES] = {0}, total = 0, bits, exact = 0;
		unsigned nr = (unsigned)test_rand_below(&rng, 256), slope = (unsigned)test_rand_below(&rng, 12);
		struct wfs_wide_pool pool = {.nr_tables = 1, .field = 12};
		u16 freq[WFS_WIDE_NAMES];
		char what[32];

		snprintf(what, sizeof(what), "round %u", round);
		for (unsigned i = 0; i < nr; i++)
			count[test_rand_below(&rng, 256)] =
				1 + test_rand_below(&rng, (u64)1 << (24 - WFS_MIN(i * slope / 4, 24u)));
		count[test_rand_below(&rng, 255)] += 1;
		bits = wfs_wide_slots_allot(count, freq);
		check_best_slots(count, freq, what);
		for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
			exact += freq[i] ? count[i] * ((12 << 16) - wfs_log2_q16(freq[i])) : 0;
			total += count[i];
		}
		CHECK_MSG(bits == exact, "%s", what);
		wfs_wide_table_build(count, pool.freq[0]);
		check_valid(&pool, what);
		/* Names that are left out are rare. */
		for (unsigned i = 0; i < WFS_WIDE_ESCAPE; i++)
			CHECK_MSG(pool.freq[0][i] || count[i] * 2048 <= total, "%s: name %u", what, i);
	}
	PASS("tables: the best slots, none missing but for rare names");
}

static void test_extreme_tables(void)
{
	struct wfs_wide_pool pool = {.nr_tables = 1, .field = 12};
	u64 count[WFS_WIDE_NAMES] = {0};
	u16 *freq = pool.freq[0];

	wfs_wide_table_build(count, freq);
	check_valid(&pool, "no counts");
	count[77] = UINT32_MAX;
	wfs_wide_table_build(count, freq);
	check_valid(&pool, "one name");
	CHECK(freq[77] == 4095 && freq[WFS_WIDE_ESCAPE] == 1);
	count[77] = 0;
	count[WFS_WIDE_ESCAPE] = UINT32_MAX;
	wfs_wide_table_build(count, freq);
	check_valid(&pool, "escapes only");
	CHECK(freq[WFS_WIDE_ESCAPE] == 4095);
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		count[i] = UINT32_MAX / 256;
	wfs_wide_table_build(count, freq);
	check_valid(&pool, "uniform");
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		CHECK(freq[i] == 16);
	PASS("tables from no, one, equal and huge counts");
}

/* ---- pools ---- */

/* Words whose exponents fall off from `centre` like a bell. zeros: bits below the exponent that are 0. */
static void make_words(uint64_t *rng, struct wfs_split s, unsigned centre, unsigned zeros, size_t nr, u8 *raw)
{
	const unsigned bits = 8u * s.word, noise = bits - s.field - WFS_MIN(zeros, bits - s.field);

	for (size_t i = 0; i < nr; i++) {
		const u64 below = (u64)__builtin_ctzll(test_rand(rng) | 1ull << 12);
		const u64 rest = noise ? test_rand(rng) >> (64 - noise) : 0;
		u64 x = (centre - below) << (bits - s.field) | rest, word = x;

		if (s.rot)
			word = x >> 1 | (x & 1) << (bits - 1);
		memcpy(raw + i * s.word, &word, s.word);
	}
}

static void train(struct wfs_split base, const u8 *raw, size_t nr_segs, size_t seg_words, struct wfs_wide_pool *pool,
		  struct wfs_split *s)
{
	struct wfs_wide_trainer *t = wfs_wide_trainer_new(base, nr_segs * seg_words);

	CHECK(t);
	for (size_t i = 0; i < nr_segs; i++)
		wfs_wide_trainer_add(t, raw + i * seg_words * base.word, seg_words);
	CHECK(wfs_wide_trainer_finish(t, pool, s) == WFS_OK);
	wfs_wide_trainer_free(t);
	check_valid(pool, "trained");
	CHECK(pool->field == s->field && s->word == base.word && s->field >= base.field && s->field <= base.field + 3);
	CHECK(s->rot == (s->field == 8 && s->word == 1 ? 0 : base.rot));
}

static const struct wfs_split bases[] = {{2, 1, 9, 7, 0},  {4, 1, 9, 7, 2}, {2, 1, 6, 2, 1}, {1, 1, 5, 3, 0},
					 {8, 1, 12, 4, 6}, {1, 0, 8, 0, 0}, {4, 0, 3, 5, 3}, {2, 1, 12, 4, 0}};

static void test_any_words(void)
{
	enum { WORDS = 40 * 1000 };
	u8 *raw = malloc(8 * WORDS + 1);
	uint64_t rng = 3;

	for (unsigned kind = 0; kind < 5; kind++)
		for (unsigned b = 0; b < WFS_ARRAY_LEN(bases); b++) {
			const struct wfs_split base = bases[b];
			struct wfs_wide_pool pool, again;
			struct wfs_split s, s_again;

			test_rand_fill(&rng, raw, 8 * WORDS + 1);
			if (kind == 0)
				memset(raw, 0, 8 * WORDS);
			if (kind == 1)
				make_words(&rng, base, (1u << base.field) - 1, 0, WORDS, raw);
			if (kind == 2) /* nothing, one word, and the longest segment there may be */
				train(base, raw, b & 1, 1, &pool, &s);
			train(base, raw, kind == 4 ? 3 : 40, kind == 4 ? 8192 : 1000, &pool, &s);
			memmove(raw + 1, raw, 8 * WORDS);
			train(base, raw + 1, kind == 4 ? 3 : 40, kind == 4 ? 8192 : 1000, &again, &s_again);
			CHECK(wide_pools_equal(&pool, &again) && !memcmp(&s, &s_again, sizeof(s)));
		}
	free(raw);
	PASS("pools from no words, one, zeros, noise and weights are valid, and the same wherever the words lie");
}

static void test_fields(void)
{
	enum { WORDS = 200 * 1000 };
	u8 *raw = malloc(4 * WORDS);
	struct wfs_wide_pool pool;
	struct wfs_split s;
	uint64_t rng = 4;

	/* Each bit below the exponent that is always 0 is worth a bit of field; noise is not. */
	for (unsigned zeros = 0; zeros <= 3; zeros++) {
		make_words(&rng, bases[0], 250, zeros, WORDS, raw);
		train(bases[0], raw, 200, 1000, &pool, &s);
		CHECK_MSG(s.field == 9 + zeros, "%u zeros: field %u", zeros, s.field);
		make_words(&rng, bases[1], 250, zeros, WORDS, raw);
		train(bases[1], raw, 200, 1000, &pool, &s);
		CHECK_MSG(s.field == 9 + zeros, "%u zeros: field %u of 32 bits", zeros, s.field);
	}
	/* Bytes of 13 values all over: only the whole byte tells. */
	for (size_t i = 0; i < WORDS; i++)
		raw[i] = (u8)(test_rand_below(&rng, 13) * 19 + 7);
	train(bases[3], raw, 200, 1000, &pool, &s);
	CHECK(s.field == 8 && s.rot == 0);
	free(raw);
	PASS("fields end where the bits become noise");
}

static void test_numbers_of_tables(void)
{
	enum { SEGS = 600, SEG = 500 };
	u8 *raw = malloc(2 * SEGS * SEG);
	struct wfs_wide_pool pool;
	struct wfs_split s;
	uint64_t rng = 5;

	for (unsigned kinds = 1; kinds <= 9; kinds += 4) {
		for (unsigned i = 0; i < SEGS; i++)
			make_words(&rng, bases[0], 150 + 20 * (i % kinds), 0, SEG, raw + 2 * SEG * i);
		train(bases[0], raw, SEGS, SEG, &pool, &s);
		CHECK_MSG(pool.nr_tables >= kinds && pool.nr_tables <= 2 * kinds - 1u, "%u tables for %u kinds",
			  pool.nr_tables, kinds);
	}
	free(raw);
	PASS("about as many tables as there are kinds of segments");
}

/* ---- segments ---- */

static void test_segment_words(void)
{
	static const u64 cols[][2] = {{0, 1024},     {1, 1024},		{2, 512},     {64, 512},    {128, 512},
				      {299, 598},    {300, 300},	{384, 384},   {768, 768},   {1300, 1300},
				      {1536, 768},   {2048, 1024},	{4096, 1024}, {5120, 1280}, {11008, 688},
				      {14336, 1024}, {1301, 1301},	{2600, 1300}, {2602, 1024}, {50257, 1024},
				      {32000, 1280}, {1ull << 40, 1024}};
	uint64_t rng = 6;

	for (size_t i = 0; i < WFS_ARRAY_LEN(cols); i++)
		CHECK_MSG(wfs_wide_segment_words(cols[i][0]) == cols[i][1], "%llu: %u", (unsigned long long)cols[i][0],
			  wfs_wide_segment_words(cols[i][0]));
	for (unsigned i = 0; i < 3000; i++) {
		const unsigned words = wfs_wide_segment_words(test_rand(&rng) >> test_rand_below(&rng, 64));

		CHECK(words >= 300 && words <= WFS_WIDE_TRAIN_WORDS);
	}
	CHECK(wfs_wide_segment_words(UINT64_MAX) >= 300);
	PASS("segments follow rows");
}

/* What the rules of FORMAT.md 4.2 want of groups. */
static void check_groups(const struct wfs_wide_groups *g, size_t nr_words)
{
	CHECK(g->nr >= 1 && g->nr <= 255 && g->group[0].first == 0 && g->phase < g->group[0].seg_len);
	for (unsigned i = 0; i < g->nr; i++) {
		CHECK(g->group[i].seg_len >= 64 && g->group[i].first < nr_words);
		CHECK(!i || g->group[i].first > g->group[i - 1].first);
	}
}

/* Whether a segment begins at word `at`. */
static bool is_border(const struct wfs_wide_groups *g, size_t at)
{
	unsigned i = g->nr - 1;

	while (g->group[i].first > at)
		i--;
	return (at - g->group[i].first + (i ? 0 : g->phase)) % g->group[i].seg_len == 0 || at == g->group[i].first;
}

static void test_groups(void)
{
	uint64_t rng = 7;

	for (unsigned round = 0; round < 2000; round++) {
		struct wfs_matrix matrix[600];
		struct wfs_geometry geometry = {matrix, 0};
		const size_t most = test_rand_below(&rng, 10) ? 12 : 600, nr_words = 1 + test_rand_below(&rng, 1 << 19);
		const unsigned word = 1u << test_rand_below(&rng, 4);
		u64 at = test_rand_below(&rng, 3000) * word, raw_off;
		struct wfs_wide_groups g;

		for (; geometry.nr < most; geometry.nr++) {
			struct wfs_matrix *m = &matrix[geometry.nr];
			const u64 rows = 1 + test_rand_below(&rng, 600);

			*m = (struct wfs_matrix){.raw_off = at,
						 .cols = 1 + test_rand_below(&rng, most > 12 ? 40 : 3000)};
			m->word = (u8)(test_rand_below(&rng, 8) ? word : 2 * word);
			m->raw_len = rows * m->cols * m->word;
			at += m->raw_len + (test_rand_below(&rng, 4) ? 0 : test_rand_below(&rng, 5000) * word);
		}
		raw_off = test_rand_below(&rng, at + 5000) / word * word;
		wfs_wide_groups_find(&geometry, raw_off, word, nr_words, &g);
		check_groups(&g, nr_words);
		if (most > 12)
			continue; /* more groups than there can be */
		for (size_t i = 0; i < geometry.nr; i++) {
			const struct wfs_matrix *m = &matrix[i];
			const u64 seg = wfs_wide_segment_words(m->cols), row = seg % m->cols ? m->cols : seg;
			const u64 first = m->raw_off > raw_off ? (m->raw_off - raw_off) / word : 0;
			const u64 end = WFS_MIN((m->raw_off + m->raw_len - raw_off) / word, (u64)nr_words);

			if (m->word != word || m->raw_off + m->raw_len <= raw_off ||
			    m->raw_off >= raw_off + nr_words * word || end - first < 256 || row % seg)
				continue;
			/* Every row, or every few that share a segment, begins with one. */
			for (u64 k = first; k < end; k++)
				if (((raw_off + k * word - m->raw_off) / word) % row == 0)
					CHECK_MSG(is_border(&g, k), "round %u matrix %zu word %llu", round, i,
						  (unsigned long long)k);
		}
	}
	struct wfs_wide_groups g;
	wfs_wide_groups_find(NULL, 12345, 2, 100, &g);
	CHECK(g.nr == 1 && g.phase == 0 && g.group[0].seg_len == 1024);
	PASS("groups keep the rules, and rows of matrices begin segments wherever blocks are cut");
}

int main(void)
{
	test_tables();
	test_extreme_tables();
	test_any_words();
	test_fields();
	test_numbers_of_tables();
	test_segment_words();
	test_groups();
	return 0;
}
