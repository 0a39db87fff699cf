/* test_train.c - tables and pools: valid whatever the counts, their slots the best there are, the same on every run,
 * and worth having more than one of.
 */
#include "log2_fixed.h"
#include "split_encode.h"
#include "test_util.h"

static u32 hist[WFS_FIELD_VALUES];
static u16 cost[WFS_FIELD_VALUES];

/* The table must survive being written and read by the reader's checks (FORMAT.md 2.3). */
static void check_valid(const struct wfs_table *t, unsigned field, const char *what)
{
	struct wfs_pool pool = {.nr_tables = 1, .seg_log2 = 10, .field = (u8)field, .table = {*t}}, back;
	u8 bytes[WFS_POOL_MAX_BYTES], again[WFS_POOL_MAX_BYTES];
	const char *reason = NULL;
	size_t used = 0, len = wfs_pool_write(&pool, bytes);

	CHECK_MSG(wfs_pool_parse(bytes, len, &back, &used, &reason) == WFS_OK, "%s: %s", what, reason);
	CHECK_MSG(used == len && wfs_pool_write(&back, again) == len && !memcmp(bytes, again, len), "%s", what);
	for (unsigned i = 0; i < WFS_MAX_SYMS; i++)
		CHECK_MSG(t->freq[i] == (i < t->m ? back.table[0].freq[i] : 0), "%s", what);
}

/* No slot moved from one symbol to another may make the table cheaper. */
static void check_best_slots(const struct wfs_table *t, unsigned nr_values, const char *what)
{
	u64 count[WFS_MAX_SYMS] = {0}, total = 0;

	for (unsigned v = 0; v < nr_values; v++)
		total += hist[v];
	for (unsigned i = 0; i + 1 < t->m; i++) {
		count[i] = hist[t->val[i]];
		total -= count[i];
	}
	count[t->m - 1] = total;
	for (unsigned to = 0; to < t->m; to++)
		for (unsigned from = 0; from < t->m; from++) {
			if (to == from || t->freq[from] == 1 || t->freq[to] == 255)
				continue;
			u64 gain = count[to] * (wfs_log2_q16(t->freq[to] + 1u) - wfs_log2_q16(t->freq[to]));
			u64 loss = count[from] * (wfs_log2_q16(t->freq[from]) - wfs_log2_q16(t->freq[from] - 1u));
			CHECK_MSG(gain <= loss, "%s: a slot of %u belongs to %u", what, from, to);
		}
}

static void check_costs(const struct wfs_table *t, struct wfs_split s, const char *what)
{
	const unsigned escape = t->m - 1;
	unsigned nr[3] = {0};

	wfs_table_costs(t, s, cost);
	for (unsigned v = 0; v < 1u << s.field; v++) {
		unsigned sym = 0, extra = 0, tail = 0;
		while (sym < escape && t->val[sym] != v)
			sym++;
		while (tail < t->ntail && t->tail[tail] != v)
			tail++;
		if (sym == escape)
			extra = tail < t->ntail ? 4 : 4 + 8 * (4u + s.word);
		nr[sym < escape ? 0 : tail < t->ntail ? 1 : 2]++;
		u32 exact = (8u << 16) - wfs_log2_q16(t->freq[sym]) + (extra << 16);
		CHECK_MSG(cost[v] == (exact + 128) >> 8, "%s: value %u", what, v);
	}
	CHECK(nr[0] == escape && nr[1] == t->ntail);
}

static bool pools_equal(const struct wfs_pool *a, const struct wfs_pool *b)
{
	u8 bytes_a[WFS_POOL_MAX_BYTES], bytes_b[WFS_POOL_MAX_BYTES];
	size_t len = wfs_pool_write(a, bytes_a);
	return wfs_pool_write(b, bytes_b) == len && !memcmp(bytes_a, bytes_b, len);
}

/* ---- tests ---- */

static void test_log2(void)
{
	for (unsigned k = 0; k < 32; k++)
		CHECK(wfs_log2_q16(1u << k) == k << 16);
	for (u32 x = 1; x < 65536; x++) {
		u32 one = wfs_log2_q16(x), square = wfs_log2_q16(x * x);
		CHECK(wfs_log2_q16(x + 1) >= one);
		if (x < 32768)
			CHECK(wfs_log2_q16(2 * x) == one + 65536);
		CHECK(square + 3 >= 2 * one && square <= 2 * one + 3);
	}
	CHECK(wfs_log2_q16(3) == 103872); /* log2(3) * 65536 = 103872.1 */
	CHECK(wfs_log2_q16(UINT32_MAX) <= 32u << 16);
	PASS("logarithms");
}

/* Histograms of many shapes; nr_distinct values of 2^field, counts falling by a random factor. */
static void test_tables(void)
{
	uint64_t rng = 1;
	char what[80];
	unsigned nr = 0;

	for (unsigned field = 1; field <= WFS_MAX_FIELD; field++)
		for (unsigned round = 0; round < 300; round++, nr++) {
			unsigned nr_values = 1u << field;
			unsigned nr_distinct = (unsigned)test_rand_below(&rng, nr_values < 80 ? nr_values + 1 : 80);
			unsigned slope = (unsigned)test_rand_below(&rng, 12);
			struct wfs_split s = wfs_split_make(1u << (field > 7 ? 1 + round % 3 : round % 4), 1, field);
			struct wfs_table t;

			if (round % 30 == 0)
				nr_distinct = nr_values;
			memset(hist, 0, sizeof(hist));
			for (unsigned i = 0; i < nr_distinct; i++) {
				u32 most = (u32)1 << (22 - WFS_MIN(i * slope / 4, 22u));
				hist[test_rand_below(&rng, nr_values)] = (u32)test_rand_below(&rng, most) + 1;
			}
			snprintf(what, sizeof(what), "field %u round %u", field, round);
			wfs_table_build(hist, s, &t);
			check_valid(&t, field, what);
			check_best_slots(&t, nr_values, what);
			check_costs(&t, s, what);
		}
	PASS("%u tables: valid, best slots, exact costs", nr);
}

/* Counts at the ends of what is allowed. */
static void test_extreme_tables(void)
{
	struct wfs_split s = wfs_split_make(2, 1, 9);
	struct wfs_table t;

	memset(hist, 0, sizeof(hist));
	wfs_table_build(hist, s, &t);
	check_valid(&t, 9, "no counts");
	CHECK(t.m == 2 && t.val[0] == 0 && t.ntail == 0);

	hist[300] = UINT32_MAX;
	wfs_table_build(hist, s, &t);
	check_valid(&t, 9, "one value");
	CHECK(t.m == 2 && t.val[0] == 300 && t.freq[0] == 255 && t.freq[1] == 1 && t.ntail == 0);

	for (unsigned v = 0; v < 512; v++)
		hist[v] = UINT32_MAX / 512;
	wfs_table_build(hist, s, &t);
	check_valid(&t, 9, "uniform"); /* the escape is by far the most frequent */
	CHECK(t.ntail == 15 && t.freq[t.m - 1] > 200);

	memset(hist, 0, sizeof(hist));
	for (unsigned v = 0; v < 31; v++)
		hist[v] = 1000;
	wfs_table_build(hist, s, &t);
	check_valid(&t, 9, "31 equal values");
	CHECK(t.m == 32 && t.ntail == 0);
	for (unsigned v = 0; v < 31; v++)
		CHECK(t.val[v] == v && t.freq[v] >= 8);
	PASS("tables from no, one, equal and huge counts");
}

/* Words of field values centre - geometric, as BF16 has them; rot 1, field 9. */
static void make_segment(uint64_t *rng, unsigned centre, size_t nr_words, u8 *raw)
{
	for (size_t i = 0; i < nr_words; i++) {
		unsigned below = (unsigned)__builtin_ctzll(test_rand(rng) | 1ull << 40);
		unsigned x = (centre - below) << 7 | (unsigned)test_rand_below(rng, 128);
		wfs_store16(raw + 2 * i, (u16)(x >> 1 | x << 15));
	}
}

/* Samples in which the centre changes every seg_words. */
static void train(uint64_t seed, const unsigned *centre, unsigned nr_centres, unsigned nr_samples, size_t seg_words,
		  unsigned align, struct wfs_pool *pool)
{
	struct wfs_trainer *t = wfs_trainer_new(wfs_split_make(2, 1, 9));
	u8 raw[2 * WFS_TRAIN_WORDS + 8];
	unsigned seg = 0;

	CHECK(t);
	for (unsigned i = 0; i < nr_samples; i++) {
		for (size_t at = 0; at < WFS_TRAIN_WORDS; at += seg_words)
			make_segment(&seed, centre[seg++ % nr_centres], seg_words, raw + align + 2 * at);
		wfs_trainer_add(t, raw + align, WFS_TRAIN_WORDS);
	}
	CHECK(wfs_trainer_finish(t, 9, pool) == WFS_OK);
	wfs_trainer_free(t);
}

static void test_pools(void)
{
	static const unsigned centre[] = {200, 220, 243, 301, 130};
	struct wfs_pool pool, again, more;

	for (unsigned log2 = 9; log2 <= 11; log2++) {
		train(1, centre, 5, 250, (size_t)1 << log2, 0, &pool);
		CHECK(pool.field == 9 && pool.seg_log2 == log2);
	}
	train(1, centre, 5, 250, 1024, 0, &pool);
	for (unsigned i = 0; i < pool.nr_tables; i++)
		check_valid(&pool.table[i], 9, "trained table");
	/* Each scale must have a table that gives its most frequent value, half of the words, about a bit. */
	for (unsigned c = 0; c < 5; c++) {
		unsigned best = 1 << 15;
		for (unsigned i = 0; i < pool.nr_tables; i++) {
			wfs_table_costs(&pool.table[i], wfs_split_make(2, 1, 9), cost);
			best = WFS_MIN(best, cost[centre[c]]);
		}
		CHECK_MSG(best < WFS_COST_UNIT * 5 / 4, "centre %u costs %u", centre[c], best);
	}
	train(1, centre, 5, 250, 1024, 3, &again);
	CHECK(pools_equal(&pool, &again));
	train(1, centre, 5, WFS_TRAIN_SAMPLES, 1024, 0, &pool);
	train(1, centre, 5, WFS_TRAIN_SAMPLES + 100, 1024, 0, &more);
	CHECK(pools_equal(&pool, &more));
	PASS("pools: a table a scale, segments as long as it stays, the same every time, at most %d samples",
	     WFS_TRAIN_SAMPLES);
}

static void test_small_pools(void)
{
	struct wfs_split s = wfs_split_make(2, 1, 9);
	struct wfs_trainer *t = wfs_trainer_new(s);
	struct wfs_pool pool;
	uint64_t rng = 2;
	u8 raw[2048];

	CHECK(t);
	wfs_trainer_add(t, raw, 0);
	CHECK(wfs_trainer_finish(t, 9, &pool) == WFS_OK);
	CHECK(pool.nr_tables == 1);
	check_valid(&pool.table[0], 9, "nothing added");
	wfs_trainer_free(t);

	for (unsigned nr_segs = 1; nr_segs < 40; nr_segs++) {
		t = wfs_trainer_new(s);
		CHECK(t);
		for (unsigned i = 0; i < nr_segs; i++) {
			size_t nr_words = 1 + test_rand_below(&rng, 1024);
			make_segment(&rng, 200 + (unsigned)test_rand_below(&rng, 50), nr_words, raw);
			wfs_trainer_add(t, raw, nr_words);
		}
		CHECK(wfs_trainer_finish(t, 9, &pool) == WFS_OK);
		CHECK(pool.nr_tables >= 1 && pool.nr_tables <= WFS_MIN(2 * nr_segs, (unsigned)WFS_MAX_TABLES));
		for (unsigned i = 0; i < pool.nr_tables; i++)
			check_valid(&pool.table[i], 9, "few segments");
		wfs_trainer_free(t);
	}
	PASS("pools of nothing and of few, short segments");
}

/* Every split, with words of random bits: chunks of all values, the widest maps. */
static void test_all_splits(void)
{
	uint64_t rng = 3;
	u8 raw[1024 * 8];
	unsigned nr = 0;

	for (unsigned word = 1; word <= 8; word *= 2)
		for (unsigned field = 1; field <= WFS_MIN(8 * word - 1, (unsigned)WFS_MAX_FIELD); field++, nr++) {
			struct wfs_trainer *t = wfs_trainer_new(wfs_split_make(word, field % 2, field));
			struct wfs_pool pool;
			CHECK(t);
			for (unsigned i = 0; i < 40; i++) {
				test_rand_fill(&rng, raw, sizeof(raw));
				wfs_trainer_add(t, raw, 1024);
			}
			CHECK(wfs_trainer_finish(t, 9, &pool) == WFS_OK);
			for (unsigned i = 0; i < pool.nr_tables; i++)
				check_valid(&pool.table[i], field, "random bits");
			wfs_trainer_free(t);
		}
	PASS("pools of %u splits from random bits", nr);
}

int main(void)
{
	test_log2();
	test_tables();
	test_extreme_tables();
	test_pools();
	test_small_pools();
	test_all_splits();
	return 0;
}
