/* test_records.c - records in part order and back; blocks of records through every decoder, whole and damaged; the
 * bytes of any place in a record at either end.
 */
#include "sniff_util.h"

#include "block.h"

static struct wfs_scratch *scratch;
static struct wfs_encode_scratch *encode_scratch;

static struct wfs_records records_random(uint64_t *rng)
{
	struct wfs_records r = {
		.bytes = (u8)(WFS_MIN_RECORD + test_rand_below(rng, WFS_MAX_RECORD - WFS_MIN_RECORD + 1))};
	unsigned last = 0;

	for (unsigned i = 0; i < WFS_MAX_BORDERS && last + 1 < r.bytes && test_rand_below(rng, 8); i++) {
		last += 1 + (unsigned)test_rand_below(rng, WFS_MIN(r.bytes - 1u - last, 40u));
		r.border[i] = (u8)last;
	}
	return r;
}

/* Byte number k of a record is in the last part that begins at k or before. */
static unsigned part_of(const struct wfs_records *r, unsigned k)
{
	unsigned part = 0;

	for (unsigned i = 0; i < WFS_MAX_BORDERS && r->border[i]; i++)
		part = k >= r->border[i] ? i + 1 : part;
	return part;
}

/* The order by its definition: sorted by part, then by record, then by byte. */
static void gather_slowly(const struct wfs_records *r, const u8 *raw, size_t nr, u8 *parts)
{
	for (unsigned part = 0; part <= WFS_MAX_BORDERS; part++)
		for (size_t i = 0; i < nr; i++)
			for (unsigned k = 0; k < r->bytes; k++)
				if (part_of(r, k) == part)
					*parts++ = raw[i * r->bytes + k];
}

static void test_order(void)
{
	struct test_guard guard[2] = {test_guard_new(100 * WFS_MAX_RECORD), test_guard_new(100 * WFS_MAX_RECORD)};
	u8 raw[100 * WFS_MAX_RECORD], want[100 * WFS_MAX_RECORD];
	uint64_t rng = 1;

	for (int i = 0; i < 2000; i++) {
		const struct wfs_records r = records_random(&rng);
		const size_t nr = (size_t)test_rand_below(&rng, 100), len = nr * r.bytes;
		u8 *from = test_guard_end(&guard[0], len), *to = test_guard_end(&guard[1], len);

		test_rand_fill(&rng, raw, len);
		gather_slowly(&r, raw, nr, want);
		memcpy(from, raw, len);
		wfs_records_gather(&r, from, nr, to);
		CHECK(!memcmp(to, want, len));
		memset(from, 0xa5, len);
		wfs_records_scatter(&r, to, nr, from);
		CHECK(!memcmp(from, raw, len));
	}
	test_guard_free(&guard[0]);
	test_guard_free(&guard[1]);
	PASS("part order is what FORMAT.md says, and goes back");
}

/* ---- blocks ---- */

/* A pool for the bytes of these records, ready for both sides. */
struct tables {
	struct wfs_coder coder;
	struct wfs_wide_decode_pool *decode;
	struct wfs_wide_encode_pool *encode;
};

static struct tables tables_new(const struct wfs_records *r, const u8 *raw, size_t nr)
{
	const struct wfs_split base = wfs_split_make(1, 0, 8);
	struct wfs_wide_trainer *trainer = wfs_wide_trainer_new(base, nr * r->bytes);
	u8 *parts = malloc(nr * r->bytes);
	struct wfs_wide_pool pool;
	struct wfs_split s;
	struct tables t;

	CHECK(trainer && parts);
	wfs_records_gather(r, raw, nr, parts);
	for (size_t k = 0; k < nr * r->bytes; k += 1000)
		wfs_wide_trainer_add(trainer, parts + k, WFS_MIN(nr * r->bytes - k, (size_t)1000));
	CHECK(wfs_wide_trainer_finish(trainer, &pool, &s) == WFS_OK);
	t = (struct tables){
		.coder = {.coding = WFS_RECORDS, .word = r->bytes, .rot = s.rot, .field = s.field},
		.decode = wfs_wide_decode_pool_new(&pool),
		.encode = wfs_wide_encode_pool_new(&pool, s),
	};
	memcpy(t.coder.border, r->border, sizeof(r->border));
	CHECK(t.decode && t.encode);
	wfs_wide_trainer_free(trainer);
	free(parts);
	return t;
}

static void tables_free(struct tables *t)
{
	free(t->decode);
	wfs_wide_encode_pool_free(t->encode);
}

static const char *decode(const struct tables *t, enum wfs_cpu cpu, unsigned phase, const u8 *comp, size_t comp_len,
			  u8 *raw, size_t raw_len)
{
	const struct wfs_decode_tables tables = {.wide = t->decode};
	const struct wfs_kernels kernels = wfs_kernels_for(cpu);
	const char *reason = NULL;
	enum wfs_status status =
		wfs_payload_decode(&t->coder, &tables, &kernels, phase, comp, comp_len, raw, raw_len, scratch, &reason);

	CHECK(reason ? status == WFS_BAD_DATA : status == WFS_OK);
	return reason;
}

static void test_blocks(void)
{
	struct test_guard comp_guard = test_guard_new(WFS_MAX_BLOCK), raw_guard = test_guard_new(WFS_MAX_BLOCK);
	u8 *comp = malloc(WFS_MAX_BLOCK);
	unsigned nr_smaller = 0;
	uint64_t rng = 2;

	CHECK(comp);
	for (int i = 0; i < 100; i++) {
		const struct wfs_records *r = wfs_class_records(WFS_FIRST_RECORDS + (unsigned)i % WFS_NR_RECORDS);
		const size_t most = i % 20 ? 20000 : WFS_MAX_BLOCK;
		struct bytes b = {0};

		add_records(&b, WFS_FIRST_RECORDS + (unsigned)i % WFS_NR_RECORDS, most / r->bytes + 2, &rng);
		struct tables t = tables_new(r, b.p, b.len / r->bytes);
		const struct wfs_encode_tables encode = {.wide = t.encode};
		const unsigned phase = (unsigned)test_rand_below(&rng, r->bytes);
		const size_t raw_len = i % 20 ? 1 + (size_t)test_rand_below(&rng, most) : most;
		/* phases are counted on from wherever a record began, beyond 32 bits */
		const struct wfs_place place = {.phase = phase + r->bytes * UINT64_C(0x123456789)};
		const u8 *raw = b.p + phase;
		size_t comp_len = wfs_payload_encode(&t.coder, &encode, wfs_cpu_best(), &place, raw, raw_len, comp,
						     encode_scratch);

		CHECK(comp_len <= raw_len);
		nr_smaller += comp_len < raw_len;
		for (int cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS && comp_len < raw_len; cpu++) {
			u8 *from = test_guard_end(&comp_guard, comp_len), *to = test_guard_end(&raw_guard, raw_len);

			if (!wfs_cpu_supported((enum wfs_cpu)cpu))
				continue;
			memcpy(from, comp, comp_len);
			CHECK(!decode(&t, (enum wfs_cpu)cpu, phase, from, comp_len, to, raw_len));
			CHECK(!memcmp(to, raw, raw_len));
			CHECK(decode(&t, (enum wfs_cpu)cpu, phase, from, comp_len - 1, to, raw_len));
			CHECK(decode(&t, (enum wfs_cpu)cpu, phase, from, comp_len, to,
				     raw_len - r->bytes % raw_len - 1));
		}
		tables_free(&t);
		free(b.p);
	}
	CHECK_MSG(nr_smaller > 70, "%u", nr_smaller);
	free(comp);
	test_guard_free(&comp_guard);
	test_guard_free(&raw_guard);
	PASS("%u blocks of records at any phase decode on every variant", nr_smaller);
}

/* Damaged payloads: every variant gives what the scalar one gives, bytes or refusal. */
static void test_damage(void)
{
	const enum wfs_class class = WFS_CLASS_Q4_K;
	const struct wfs_records *r = wfs_class_records(class);
	enum { LEN = 9000, PHASE = 100 };
	u8 comp[LEN], raw[LEN], want[LEN];
	unsigned nr_good = 0, nr_bad = 0;
	struct bytes b = {0};
	uint64_t rng = 3;

	add_records(&b, class, LEN / r->bytes + 2, &rng);
	struct tables t = tables_new(r, b.p, b.len / r->bytes);
	const struct wfs_encode_tables encode = {.wide = t.encode};
	const struct wfs_place place = {.phase = PHASE};
	const size_t comp_len =
		wfs_payload_encode(&t.coder, &encode, WFS_CPU_SCALAR, &place, b.p + PHASE, LEN, comp, encode_scratch);

	CHECK(comp_len < LEN);
	for (int i = 0; i < 4000; i++) {
		const size_t at = (size_t)test_rand_below(&rng, i % 2 ? 64 : comp_len);
		const u8 before = comp[at];
		const char *reason, *other;

		comp[at] = (u8)test_rand_below(&rng, 256);
		reason = decode(&t, WFS_CPU_SCALAR, PHASE, comp, comp_len, want, LEN);
		nr_good += !reason;
		nr_bad += reason != NULL;
		for (int cpu = WFS_CPU_SCALAR + 1; cpu < WFS_NR_CPUS; cpu++) {
			if (!wfs_cpu_supported((enum wfs_cpu)cpu))
				continue;
			other = decode(&t, (enum wfs_cpu)cpu, PHASE, comp, comp_len, raw, LEN);
			CHECK(reason ? other && !strcmp(other, reason) : !other && !memcmp(raw, want, LEN));
		}
		comp[at] = before;
	}
	CHECK(nr_good && nr_bad);
	tables_free(&t);
	free(b.p);
	PASS("damaged: %u refused alike, %u decoded alike", nr_bad, nr_good);
}

int main(void)
{
	scratch = wfs_scratch_new();
	encode_scratch = wfs_encode_scratch_new();
	CHECK(scratch && encode_scratch);
	test_order();
	test_blocks();
	test_damage();
	wfs_encode_scratch_free(encode_scratch);
	wfs_scratch_free(scratch);
	return 0;
}
