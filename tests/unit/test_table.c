/* test_table.c - pools of tables: what is written is read again, every rule of FORMAT.md 2.3 refuses, and decode tables
 * mean what the format says about slots, ranks and buckets.
 */
#include "split_model.h"

/* Parse a copy that ends at a guard page. */
static enum wfs_status parse(const struct test_guard *g, const u8 *comp, size_t comp_len, struct wfs_pool *pool_ret,
			     size_t *used_ret, const char **reason_ret)
{
	u8 *p = test_guard_end(g, comp_len);

	*reason_ret = NULL;
	memcpy(p, comp, comp_len);
	return wfs_pool_parse(p, comp_len, pool_ret, used_ret, reason_ret);
}

/* All that a pool says: what is stored of it, and the frequencies that parsing derives. (The structs have padding.) */
static bool pools_equal(const struct wfs_pool *a, const struct wfs_pool *b)
{
	u8 comp_a[WFS_POOL_MAX_BYTES], comp_b[WFS_POOL_MAX_BYTES];
	size_t len = wfs_pool_write(a, comp_a);
	bool equal = wfs_pool_write(b, comp_b) == len && !memcmp(comp_a, comp_b, len);

	for (unsigned t = 0; equal && t < a->nr_tables; t++)
		equal = !memcmp(a->table[t].freq, b->table[t].freq, a->table[t].m);
	return equal;
}

static void test_round_trip(const struct test_guard *g)
{
	uint64_t rng = 1;

	for (unsigned i = 0; i < 2000; i++) {
		struct wfs_pool pool, again;
		u8 comp[WFS_POOL_MAX_BYTES + 8] = {0};
		const char *reason;
		size_t len, used = 0;

		model_pool(&rng, 1 + i % 12, 1 + (unsigned)test_rand_below(&rng, 16),
			   9 + (unsigned)test_rand_below(&rng, 5), &pool);
		len = wfs_pool_write(&pool, comp);
		CHECK(len <= WFS_POOL_MAX_BYTES);
		CHECK(parse(g, comp, len + i % 8, &again, &used, &reason) == WFS_OK);
		CHECK(used == len);
		CHECK(pools_equal(&pool, &again));
	}
	PASS("pools of every field width are read as they were written, with what follows left alone");
}

/* A cut pool is refused wherever it is cut, and nothing behind the cut is read. */
static void test_cuts(const struct test_guard *g)
{
	uint64_t rng = 2;
	struct wfs_pool pool, again;
	u8 comp[WFS_POOL_MAX_BYTES];
	const char *reason;
	size_t len, used;

	model_pool(&rng, 9, 3, 10, &pool);
	len = wfs_pool_write(&pool, comp);
	for (size_t cut = 0; cut < len; cut++) {
		CHECK(parse(g, comp, cut, &again, &used, &reason) == WFS_BAD_DATA);
		CHECK_MSG(!strcmp(reason, "pool is cut short"), "%s", reason);
	}
	PASS("a pool cut short anywhere is refused");
}

/* ---- rules ---- */

/* Field 4; symbols 0 (value 3), 1 (value 5), 2 = escape; tail 7, 0; runs 0 1 0 2 with starts 0, 100, 110, 240. */
static const u8 good[] = {1, 9, 4, 0, 3, 2, 4, 0, 3, 0, 5, 0, 7, 0, 0, 0, 100, 0, 10, 1, 130, 0, 16, 2};
enum { TABLE = 4, VALUES = 8, TAIL = 12, RUNS = 16 };

static void expect_refused(const struct test_guard *g, const u8 *comp, size_t len, const char *want)
{
	struct wfs_pool pool;
	const char *reason;
	size_t used;

	CHECK_MSG(parse(g, comp, len, &pool, &used, &reason) == WFS_BAD_DATA, "accepted: %s", want);
	CHECK_MSG(!strcmp(reason, want), "%s, expected: %s", reason, want);
}

static void test_rules(const struct test_guard *g)
{
	struct wfs_pool pool;
	const char *reason;
	size_t used;
	u8 comp[sizeof(good) + 16];

	CHECK(parse(g, good, sizeof(good), &pool, &used, &reason) == WFS_OK);
#define REFUSED(at, value, want)                                                                                       \
	do {                                                                                                           \
		memcpy(comp, good, sizeof(good));                                                                      \
		comp[at] = (value);                                                                                    \
		expect_refused(g, comp, sizeof(good), want);                                                           \
	} while (0)
	REFUSED(0, 0, "pool header is not valid");
	REFUSED(0, 17, "pool header is not valid");
	REFUSED(1, 8, "pool header is not valid");
	REFUSED(1, 14, "pool header is not valid");
	REFUSED(2, 0, "pool header is not valid");
	REFUSED(2, 13, "pool header is not valid");
	REFUSED(3, 1, "pool header is not valid");
	REFUSED(TABLE, 1, "table header is not valid");
	REFUSED(TABLE, 33, "table header is not valid");
	REFUSED(TABLE + 1, 16, "table header is not valid");
	REFUSED(TABLE + 2, 2, "table header is not valid"); /* fewer runs than symbols */
	REFUSED(TABLE + 2, 33, "table header is not valid");
	REFUSED(TABLE + 3, 1, "table header is not valid");
	REFUSED(VALUES, 16, "table value is not valid"); /* beyond 4 bits */
	REFUSED(VALUES + 1, 1, "table value is not valid");
	REFUSED(VALUES, 5, "table value is not valid");	    /* twice */
	REFUSED(TAIL, 3, "table tail value is not valid");  /* also a symbol */
	REFUSED(TAIL, 0, "table tail value is not valid");  /* twice */
	REFUSED(TAIL, 16, "table tail value is not valid"); /* beyond 4 bits */
	REFUSED(RUNS, 0, "table run is not valid");
	REFUSED(RUNS + 1, 3, "table run is not valid");	  /* no such symbol */
	REFUSED(RUNS + 4, 140, "table run is not valid"); /* beyond 256 */
	REFUSED(RUNS + 6, 15, "table runs do not sum up to 256");
	REFUSED(RUNS + 1, 2, "table symbol owns too many runs"); /* the escape two */
	REFUSED(RUNS + 3, 0, "table symbol owns too many runs"); /* a symbol three */
	REFUSED(RUNS + 7, 1, "table symbol owns no run");
#undef REFUSED
	PASS("headers, values and runs: every rule refuses");
}

/* A pool of one table whose runs have these lengths, one symbol a run; the last is the escape. */
static size_t pool_of_runs(const u8 *run_len, unsigned nrun, u8 *comp)
{
	u8 *p = comp;

	memcpy(p, (const u8[]){1, 9, 8, 0, (u8)nrun, 0, (u8)nrun, 0}, 8);
	p += 8;
	for (unsigned i = 0; i + 1 < nrun; i++, p += 2)
		wfs_store16(p, (u16)i);
	for (unsigned i = 0; i < nrun; i++) {
		*p++ = run_len[i];
		*p++ = (u8)i;
	}
	return (size_t)(p - comp);
}

static void test_bucket_rule(const struct test_guard *g)
{
	static const struct {
		u8 nrun, run_len[8];
		bool valid;
	} cases[] = {
		{5, {1, 1, 1, 13, 240}, true},	      /* starts 1 2 3; 16 is a first slot */
		{5, {1, 1, 1, 12, 241}, false},	      /* starts 1 2 3 15 */
		{6, {16, 1, 1, 1, 13, 224}, true},    /* 16 is a first slot; 17 18 19; 32 is one */
		{6, {17, 1, 1, 1, 1, 235}, false},    /* 17 18 19 20 */
		{7, {14, 1, 2, 1, 1, 13, 224}, true}, /* 14 15 | 17 18 19 | 32 */
		{5, {241, 1, 1, 1, 12}, false},	      /* 241 242 243 244 in the last bucket */
		{5, {240, 1, 1, 1, 13}, true},	      /* 240 is a first slot; 241 242 243 */
	};
	struct wfs_pool pool;
	const char *reason;
	size_t used;
	u8 comp[64];

	for (size_t i = 0; i < WFS_ARRAY_LEN(cases); i++) {
		size_t len = pool_of_runs(cases[i].run_len, cases[i].nrun, comp);

		if (cases[i].valid)
			CHECK_MSG(parse(g, comp, len, &pool, &used, &reason) == WFS_OK, "case %zu: %s", i, reason);
		else
			expect_refused(g, comp, len, "table breaks the bucket rule");
	}
	PASS("bucket rule: three starts inside 16 slots are fine, four are refused");
}

/* ---- decode tables ---- */

static void check_slots(const struct wfs_pool *pool, const struct wfs_table *t, const struct wfs_decode_table *d)
{
	u8 seen[WFS_MAX_SYMS] = {0};
	unsigned run = 0, start = 0;

	for (unsigned slot = 0; slot < 256; slot++) {
		unsigned sym, in_bucket, top;

		if (slot == start + t->run_len[run])
			start += t->run_len[run++];
		sym = t->run_sym[run];
		top = sym == t->m - 1u ? 0 : (unsigned)t->val[sym] << (16 - pool->field);
		CHECK((d->run[slot] & 0x7f) == run);
		CHECK((d->run[slot] >> 7) == (sym == t->m - 1u));
		CHECK((d->escape_run == run + WFS_BUCKET_BIAS) == (sym == t->m - 1u));
		CHECK(d->freq[run] == t->freq[sym]);
		CHECK((u8)(slot - d->c[run]) == seen[sym]);
		CHECK(d->hi[run] == top >> 8 && d->lo[run] == (top & 255));
		in_bucket = d->bucket[slot / 16] - WFS_BUCKET_BIAS;
		in_bucket += (int)slot - 128 > d->start[0][slot / 16];
		in_bucket += (int)slot - 128 > d->start[1][slot / 16];
		in_bucket += (int)slot - 128 > d->start[2][slot / 16];
		CHECK(in_bucket == run);
		/* a step needs a byte exactly up to refill */
		for (unsigned h = 0; h < 256; h++)
			CHECK((t->freq[sym] * h + seen[sym] < 256) == (h <= d->refill[slot]));
		seen[sym]++;
	}
}

static void test_decode_tables(void)
{
	uint64_t rng = 7;

	for (unsigned i = 0; i < 60; i++) {
		struct wfs_pool pool;
		struct wfs_decode_pool *d;

		model_pool(&rng, 1 + i % 12, 1 + i % 16, 9, &pool);
		d = wfs_decode_pool_new(&pool);
		CHECK(d && d->nr_tables == pool.nr_tables && d->seg_log2 == 9 && d->field == pool.field);
		for (unsigned k = 0; k < pool.nr_tables; k++) {
			const struct wfs_table *t = &pool.table[k];

			check_slots(&pool, t, &d->table[k]);
			for (unsigned n = 0; n < 16; n++) {
				unsigned top = n < t->ntail ? (unsigned)t->tail[n] << (16 - pool.field) : 0;

				CHECK(d->table[k].tail_top[n] == top);
				CHECK(d->table[k].hi[WFS_TAIL_BASE + n] == top >> 8);
				CHECK(d->table[k].lo[WFS_TAIL_BASE + n] == (top & 255));
			}
		}
		free(d);
	}
	PASS("decode tables: runs, ranks, refills, fields, tails and buckets mean what the format says");
}

int main(void)
{
	struct test_guard g = test_guard_new(WFS_POOL_MAX_BYTES + 64);

	test_round_trip(&g);
	test_cuts(&g);
	test_rules(&g);
	test_bucket_rule(&g);
	test_decode_tables();
	test_guard_free(&g);
	return 0;
}
