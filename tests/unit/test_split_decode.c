/* test_split_decode.c - every decoder of the split coding against payloads made by a naive writer, and against each
 * other on damaged ones; the rules of FORMAT.md 2.2 to 2.6 one by one.
 *
 * All payloads and outputs lie against inaccessible pages, so that a read or write outside them is a crash.
 */
#include "split_model.h"
#include "split_merge.h"

static const struct split_case {
	u8 word, rot, field;
} splits[] = {
	{2, 1, 9}, {2, 0, 5},  {2, 1, 6}, {4, 1, 9}, {1, 1, 5}, {1, 1, 6}, {1, 1, 7}, {1, 0, 5},  {8, 1, 12},
	{2, 1, 8}, {4, 0, 12}, {2, 0, 9}, {4, 0, 8}, {1, 0, 3}, {8, 0, 1}, {2, 1, 1}, {2, 1, 12}, {4, 1, 12},
	{4, 1, 1}, {1, 1, 1},  {8, 1, 9}, {2, 1, 7}, {4, 1, 8}, {4, 1, 5}, {2, 0, 6}, {1, 0, 7},  {4, 0, 9},
};

/* What a block gave. */
struct outcome {
	enum wfs_status status;
	const char *reason;
};

static struct wfs_scratch *scratch;
static struct test_guard comp_guard, raw_guard;

/* Decode through wfs_payload_decode as the reader does. Output bytes end up in raw[0..raw_len). */
static struct outcome decode(const struct wfs_coder *coder, const struct wfs_decode_pool *pool, enum wfs_cpu cpu,
			     unsigned phase, const u8 *comp, size_t comp_len, u8 *raw, size_t raw_len)
{
	const struct wfs_decode_tables tables = {.split = pool};
	const struct wfs_kernels kernels = wfs_kernels_for(cpu);
	struct outcome o = {WFS_OK, NULL};

	o.status =
		wfs_payload_decode(coder, &tables, &kernels, phase, comp, comp_len, raw, raw_len, scratch, &o.reason);
	CHECK((o.status == WFS_OK) == (o.reason == NULL));
	return o;
}

static struct wfs_coder coder_of(struct wfs_split s)
{
	return (struct wfs_coder){.coding = WFS_SPLIT, .word = s.word, .rot = s.rot, .field = s.field};
}

/* comp copied so that it ends (or begins) at a guard page. */
static const u8 *guarded(const u8 *comp, size_t comp_len, bool at_end)
{
	u8 *p = at_end ? test_guard_end(&comp_guard, comp_len) : test_guard_start(&comp_guard);

	memcpy(p, comp, comp_len);
	return p;
}

/* ---- round trips ---- */

static void check_model(const struct model *m, enum wfs_cpu cpu, unsigned align, const char *what)
{
	const struct wfs_coder coder = coder_of(m->s);
	struct wfs_decode_pool *pool = wfs_decode_pool_new(&m->pool);
	const size_t raw_len = m->n * m->s.word;
	u8 *raw;
	struct outcome o;

	CHECK(pool);
	/* Against the guard behind, then `align` bytes after the one in front, with canaries. */
	raw = test_guard_end(&raw_guard, raw_len);
	memset(raw, 0xA5, raw_len);
	o = decode(&coder, pool, cpu, 0, guarded(m->comp, m->comp_len, true), m->comp_len, raw, raw_len);
	CHECK_MSG(o.status == WFS_OK, "%s: %s", what, o.reason);
	CHECK_MSG(!memcmp(raw, m->raw, raw_len), "%s", what);

	raw = test_guard_start(&raw_guard);
	memset(raw, 0xA5, raw_len + align + 256);
	o = decode(&coder, pool, cpu, 0, guarded(m->comp, m->comp_len, false), m->comp_len, raw + align, raw_len);
	CHECK_MSG(o.status == WFS_OK, "%s: %s", what, o.reason);
	CHECK_MSG(!memcmp(raw + align, m->raw, raw_len), "%s", what);
	for (unsigned i = 0; i < align; i++)
		CHECK_MSG(raw[i] == 0xA5, "%s: byte -%u", what, align - i);
	for (unsigned i = 0; i < 256; i++)
		CHECK_MSG(raw[align + raw_len + i] == 0xA5, "%s: byte +%u", what, i);
	free(pool);
}

static void test_round_trip(enum wfs_cpu cpu)
{
	static const size_t sizes[] = {1,   2,	 63,  64,   65,	  127,	128,  129,  447,  448,	449,  511,  512,
				       513, 600, 960, 1023, 1024, 1025, 1536, 4095, 4097, 8191, 8192, 20011};
	uint64_t rng = 0x9E3779B97F4A7C15ull;
	size_t nr = 0;

	for (size_t i = 0; i < WFS_ARRAY_LEN(splits); i++) {
		for (size_t k = 0; k < WFS_ARRAY_LEN(sizes); k++) {
			struct wfs_split s = wfs_split_make(splits[i].word, splits[i].rot, splits[i].field);
			unsigned nr_tables = (unsigned)(test_rand_below(&rng, 3) ? 1 + test_rand_below(&rng, 16) : 1);
			unsigned seg_log2 = 9 + (unsigned)test_rand_below(&rng, 5);
			bool modes = test_rand_below(&rng, 2);
			unsigned escapes = test_rand_below(&rng, 4) ? 5 : 300;
			struct model m = model_new(&rng, s, sizes[k], nr_tables, seg_log2, modes, escapes);
			char what[128];

			snprintf(what, sizeof(what), "%s word %u rot %u field %u n %zu tables %u seg %u modes %d",
				 wfs_cpu_name(cpu), s.word, s.rot, s.field, sizes[k], nr_tables, seg_log2, modes);
			check_model(&m, cpu, (unsigned)test_rand_below(&rng, 70), what);
			model_free(&m);
			nr++;
		}
	}
	PASS("%s: %zu payloads of every split, size and mode decode, writing only their words", wfs_cpu_name(cpu), nr);
}

/* The largest block there is: every field of the header at its widest. */
static void test_largest(enum wfs_cpu cpu)
{
	uint64_t rng = 77;

	for (unsigned word = 1; word <= 8; word *= 2) {
		struct wfs_split s = wfs_split_make(word, 1, word == 1 ? 5 : 9);
		struct model m = model_new(&rng, s, WFS_MAX_BLOCK / word, 16, 10, word > 1, 40);

		check_model(&m, cpu, word, "largest");
		model_free(&m);
	}
	PASS("%s: blocks of 1 MiB decode", wfs_cpu_name(cpu));
}

static void test_cut_words(enum wfs_cpu cpu)
{
	uint64_t rng = 5;

	for (unsigned i = 0; i < 60; i++) {
		struct wfs_split s = wfs_split_make(i % 3 == 0 ? 2 : i % 3 == 1 ? 4 : 8, 1, 9);
		struct model m = model_new(&rng, s, 1 + test_rand_below(&rng, 1500), 3, 9, false, 5);
		unsigned phase = (unsigned)test_rand_below(&rng, 8), head = (s.word - phase % s.word) % s.word;
		unsigned tail = (unsigned)test_rand_below(&rng, s.word);
		size_t comp_len = m.comp_len + head + tail, raw_len = m.n * s.word + head + tail;
		struct wfs_decode_pool *pool = wfs_decode_pool_new(&m.pool);
		struct wfs_coder coder = coder_of(s);
		u8 *comp = malloc(comp_len), *raw = test_guard_end(&raw_guard, raw_len);
		struct outcome o;

		memcpy(comp, m.comp, m.comp_len);
		test_rand_fill(&rng, comp + m.comp_len, head + tail);
		o = decode(&coder, pool, cpu, phase, guarded(comp, comp_len, true), comp_len, raw, raw_len);
		CHECK_MSG(o.status == WFS_OK, "%s", o.reason);
		CHECK(!memcmp(raw, comp + m.comp_len, head));
		CHECK(!memcmp(raw + head, m.raw, m.n * s.word));
		CHECK(!memcmp(raw + raw_len - tail, comp + m.comp_len + head, tail));
		free(comp);
		free(pool);
		model_free(&m);
	}
	PASS("%s: cut words at both ends come back", wfs_cpu_name(cpu));
}

/* ---- damage ---- */

/* Change a payload in place in one of the ways that reach deep into the decoders. May change its length. */
static void damage(uint64_t *rng, u8 *comp, size_t *comp_len)
{
	unsigned times = 1 + (unsigned)test_rand_below(rng, 3);
	size_t len0, len1, nesc;

	for (unsigned i = 0; i < times; i++) {
		size_t at = test_rand_below(rng, *comp_len);
		switch (test_rand_below(rng, 9)) {
		case 0:
		case 1:
			comp[at] ^= (u8)(1 << test_rand_below(rng, 8));
			break;
		case 2:
			comp[at] = (u8)test_rand(rng);
			break;
		case 3: /* header */
			comp[test_rand_below(rng, 12)] ^= (u8)(1 << test_rand_below(rng, 8));
			break;
		case 4: /* border between the streams: all lengths still add up */
			len0 = wfs_load24(comp);
			len1 = wfs_load24(comp + 3);
			at = test_rand_below(rng, 4);
			if (len0 >= at && *comp_len > 12) {
				wfs_store24(comp, (u32)(len0 - at));
				wfs_store24(comp + 3, (u32)(len1 + at));
			}
			break;
		case 5: /* border between streams and escapes, either way */
			len1 = wfs_load24(comp + 3);
			nesc = wfs_load24(comp + 6);
			at = test_rand_below(rng, 3);
			if (test_rand_below(rng, 2) && nesc >= 2 * at) {
				wfs_store24(comp + 3, (u32)(len1 + at));
				wfs_store24(comp + 6, (u32)(nesc - 2 * at));
			} else if (len1 >= at) {
				wfs_store24(comp + 3, (u32)(len1 - at));
				wfs_store24(comp + 6, (u32)(nesc + 2 * at));
			}
			break;
		case 6: /* a smear */
			test_rand_fill(rng, comp + at, WFS_MIN((size_t)64, *comp_len - at));
			break;
		case 7: /* a few states */
			at = 12 + test_rand_below(rng, 300);
			at = WFS_MIN(*comp_len, at);
			test_rand_fill(rng, comp + at, WFS_MIN((size_t)4, *comp_len - at));
			break;
		default:
			at = test_rand_below(rng, 20);
			if (at < *comp_len && !test_rand_below(rng, 4))
				*comp_len -= at;
			break;
		}
	}
}

/* Scalar and every other variant must agree on status and reason and, when accepted, on every byte. */
static void test_damage(size_t nr_rounds)
{
	uint64_t rng = 0xD1B54A32D192ED03ull;
	size_t nr_refused = 0, nr_accepted = 0;
	u8 *expect = malloc(WFS_MAX_BLOCK);

	for (size_t i = 0; i < nr_rounds; i++) {
		const struct split_case *c =
			&splits[test_rand_below(&rng, test_rand_below(&rng, 2) ? 8 : WFS_ARRAY_LEN(splits))];
		struct wfs_split s = wfs_split_make(c->word, c->rot, c->field);
		size_t n = 1 + test_rand_below(&rng, test_rand_below(&rng, 2) ? 300 : 6000);
		struct model m = model_new(&rng, s, n, 1 + (unsigned)test_rand_below(&rng, 16),
					   9 + (unsigned)test_rand_below(&rng, 5), test_rand_below(&rng, 2),
					   (unsigned)test_rand_below(&rng, 50));
		struct wfs_decode_pool *pool = wfs_decode_pool_new(&m.pool);
		struct wfs_coder coder = coder_of(s);
		u8 *comp = malloc(m.comp_len);

		for (unsigned k = 0; k < 8; k++) {
			size_t comp_len = m.comp_len, raw_len = n * s.word;
			u8 *raw = test_guard_end(&raw_guard, raw_len);
			const u8 *in;
			struct outcome want;

			memcpy(comp, m.comp, comp_len);
			damage(&rng, comp, &comp_len);
			in = guarded(comp, comp_len, k % 4 != 3);
			want = decode(&coder, pool, WFS_CPU_SCALAR, 0, in, comp_len, expect, raw_len);
			*(want.status == WFS_OK ? &nr_accepted : &nr_refused) += 1;
			for (enum wfs_cpu cpu = WFS_CPU_SCALAR + 1; cpu < WFS_NR_CPUS; cpu++) {
				struct outcome got;
				if (!wfs_cpu_supported(cpu))
					continue;
				got = decode(&coder, pool, cpu, 0, in, comp_len, raw, raw_len);
				CHECK_MSG(got.status == want.status &&
						  (!want.reason || !strcmp(got.reason, want.reason)),
					  "%s: %s, scalar: %s (round %zu.%u)", wfs_cpu_name(cpu), got.reason,
					  want.reason, i, k);
				CHECK_MSG(got.status != WFS_OK || !memcmp(raw, expect, raw_len),
					  "%s differs (round %zu.%u)", wfs_cpu_name(cpu), i, k);
			}
		}
		free(comp);
		free(pool);
		model_free(&m);
	}
	free(expect);
	CHECK(nr_refused && nr_accepted);
	PASS("damage: all variants agree on %zu payloads refused and %zu accepted", nr_refused, nr_accepted);
}

/* ---- single rules ---- */

/* A payload of 3 superrows and a bit, with 2 tables, odd numbers of segments and escapes, literals, and no modes. */
static struct model rule_model(struct wfs_split s, size_t n)
{
	uint64_t rng = 11;

	for (;;) {
		struct model m = model_new(&rng, s, n, 2, 9, false, 100);
		if (m.nr_escapes & 1 && m.nr_literals >= 2)
			return m;
		model_free(&m);
	}
}

static void expect_refused(const struct model *m, const u8 *comp, size_t comp_len, const char *reason)
{
	struct wfs_decode_pool *pool = wfs_decode_pool_new(&m->pool);
	struct wfs_coder coder = coder_of(m->s);
	u8 *raw = test_guard_end(&raw_guard, m->n * m->s.word);

	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		struct outcome o;
		if (!wfs_cpu_supported(cpu))
			continue;
		o = decode(&coder, pool, cpu, 0, guarded(comp, comp_len, true), comp_len, raw, m->n * m->s.word);
		CHECK_MSG(o.status == WFS_BAD_DATA, "%s accepted: %s", wfs_cpu_name(cpu), reason);
		CHECK_MSG(!strcmp(o.reason, reason), "%s: %s, expected: %s", wfs_cpu_name(cpu), o.reason, reason);
	}
	free(pool);
}

static void test_layout_rules(void)
{
	struct model m = rule_model(wfs_split_make(2, 1, 9), 2049);
	struct wfs_decode_pool *pool = wfs_decode_pool_new(&m.pool);
	struct wfs_split_view v;
	const char *reason = NULL;
	u8 *comp = malloc(m.comp_len + 64);
	size_t at_literals, at_escapes;

	CHECK(wfs_split_parse(m.comp, m.comp_len, m.s, pool, m.n, 0, &v, &reason) == WFS_OK);
	at_literals = (size_t)(v.literals - m.comp);
	at_escapes = (size_t)(v.escapes - m.comp);
#define REFUSED(change, reason_)                                                                                       \
	do {                                                                                                           \
		size_t comp_len = m.comp_len;                                                                          \
		memcpy(comp, m.comp, m.comp_len);                                                                      \
		change;                                                                                                \
		expect_refused(&m, comp, comp_len, reason_);                                                           \
	} while (0)
	REFUSED(comp_len = 11, "split payload is cut short");
	REFUSED(comp_len = 13, "split payload is cut short");
	REFUSED(comp_len--, "lengths inside the split payload do not add up");
	REFUSED(comp[comp_len++] = 0, "lengths inside the split payload do not add up");
	REFUSED(wfs_store24(comp, 64 * 33 + 1), "split header is not valid");
	REFUSED(wfs_store24(comp + 3, 64 * 33 + 1), "split header is not valid");
	REFUSED(wfs_store24(comp + 6, 64 * 33 + 1), "split header is not valid");
	REFUSED(wfs_store16(comp + 9, (u16)(m.nr_escapes + 1)), "split header is not valid");
	REFUSED(comp[12] |= 2, "table number is not valid");
	REFUSED(comp[14] |= 0x10, "unused table number is not zero");
	REFUSED(comp[at_escapes + m.nr_escapes / 2] |= 0x10, "unused escape is not zero");
	REFUSED(wfs_store32(comp + at_literals, 2049), "literal number is not valid");
	REFUSED(wfs_store32(comp + at_literals + 6, wfs_load32(comp + at_literals)), "literal number is not valid");
#undef REFUSED
	free(comp);
	free(pool);
	model_free(&m);
	PASS("lengths, table numbers, unused nibbles and literals: every rule refuses");
}

static void test_mode_rules(void)
{
	uint64_t rng = 3;
	struct model m = model_new(&rng, wfs_split_make(2, 1, 9), 2000, 1, 10, false, 0);
	static const u8 modes[] = {0x43, 0x46, 0, 0x40};
	u8 *comp;

	/* Words that fit all of these modes: no sign, no mantissa but its coded bit. */
	for (size_t i = 0; i < m.n; i++)
		wfs_store16(m.raw + 2 * i, wfs_load16(m.raw + 2 * i) & 0x7fc0);
	memcpy(m.mode, modes, sizeof(modes));
	free(m.comp);
	model_encode(&m);
	CHECK(m.comp[11] == 4);
	comp = malloc(m.comp_len);
#define REFUSED(change)                                                                                                \
	do {                                                                                                           \
		memcpy(comp, m.comp, m.comp_len);                                                                      \
		change;                                                                                                \
		expect_refused(&m, comp, m.comp_len, "mode change is not valid");                                      \
	} while (0)
	REFUSED(wfs_store16(comp + 12, 1));	/* same superrow twice */
	REFUSED(wfs_store16(comp + 12 + 9, 4)); /* beyond the last */
	REFUSED(comp[14] = 0xC0);		/* sign 3 */
	REFUSED(comp[14] = 7);			/* more zeros than mantissa bits: at most 16 - 9 - 1 */
#undef REFUSED
	free(comp);
	model_free(&m);

	m = model_new(&rng, wfs_split_make(2, 0, 9), 2000, 1, 10, false, 0);
	comp = malloc(m.comp_len + 3);
	memcpy(comp, m.comp, 12);
	comp[11] = 1;
	memset(comp + 12, 0, 3);
	memcpy(comp + 15, m.comp + 12, m.comp_len - 12);
	expect_refused(&m, comp, m.comp_len + 3, "modes in a split that has none");
	free(comp);
	model_free(&m);
	PASS("mode changes: every rule refuses");
}

/* The payload with one byte inserted before (grow) or taken away before (else) offset at, and a length field adjusted.
 */
static void expect_resized_refused(const struct model *m, size_t at, bool grow, unsigned header_at, u32 header_value)
{
	size_t comp_len = grow ? m->comp_len + 1 : m->comp_len - 1;
	u8 *comp = malloc(comp_len);

	memcpy(comp, m->comp, grow ? at : at - 1);
	if (grow)
		comp[at] = 0;
	memcpy(comp + (grow ? at + 1 : at - 1), m->comp + at, m->comp_len - at);
	wfs_store24(comp + header_at, header_value);
	expect_refused(m, comp, comp_len, WFS_SPLIT_UNPROVEN);
	free(comp);
}

static void check_proof(struct model *m)
{
	struct wfs_decode_pool *pool = wfs_decode_pool_new(&m->pool);
	struct wfs_split_view v;
	const char *reason = NULL;
	size_t end[3], carried;

	CHECK(wfs_split_parse(m->comp, m->comp_len, m->s, pool, m->n, 0, &v, &reason) == WFS_OK);
	free(pool);
	end[0] = (size_t)(v.stream_end[0] - m->comp);
	end[1] = (size_t)(v.stream_end[1] - m->comp);
	end[2] = (size_t)(v.literals - m->comp);
	carried = v.carried;
	for (unsigned k = 0; k < 2; k++) {
		if (v.stream_len[k] < WFS_CEIL_DIV(m->n, 64) * 64)
			expect_resized_refused(m, end[k], true, 3 * k, v.stream_len[k] + 1);
		if (v.stream_len[k])
			expect_resized_refused(m, end[k], false, 3 * k, v.stream_len[k] - 1);
	}
	if (!(m->nr_escapes & 1) && m->nr_escapes < WFS_CEIL_DIV(m->n, 64) * 64)
		expect_resized_refused(m, end[2], true, 6, (u32)m->nr_escapes + 1);
	if (m->nr_escapes & 1 && m->nr_escapes > m->nr_literals)
		expect_resized_refused(m, end[2], false, 6, (u32)m->nr_escapes - 1);

#define REFUSED(flag, reason_)                                                                                         \
	do {                                                                                                           \
		free(m->comp);                                                                                         \
		m->flag = 1;                                                                                           \
		model_encode(m);                                                                                       \
		expect_refused(m, m->comp, m->comp_len, reason_);                                                      \
		m->flag = 0;                                                                                           \
	} while (0)
	REFUSED(extra_state, WFS_SPLIT_UNPROVEN);
	if (carried < 128)
		REFUSED(extra_carried, "unused carried bytes are not zero");
	if (m->n % 64)
		REFUSED(extra_padding, "padding bits are not zero");
#undef REFUSED
}

/* What the ends of states, streams and escapes, and all padding must be. */
static void test_proof_rules(void)
{
	static const size_t sizes[] = {1, 100, 449, 512, 1000, 2047, 2048};
	uint64_t rng = 21;

	for (size_t k = 0; k < WFS_ARRAY_LEN(sizes); k++) {
		for (size_t i = 0; i < WFS_ARRAY_LEN(splits); i++) {
			struct wfs_split s = wfs_split_make(splits[i].word, splits[i].rot, splits[i].field);
			struct model m = model_new(&rng, s, sizes[k], 1, 9, false, 20);

			check_proof(&m);
			model_free(&m);
		}
	}
	PASS("final states, stream and escape ends, unused carried bytes, padding bits: every rule refuses");
}

int main(int argc, char **argv)
{
	size_t damage_rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1500;

	scratch = wfs_scratch_new();
	CHECK(scratch);
	comp_guard = test_guard_new(4 * WFS_MAX_BLOCK);
	raw_guard = test_guard_new(WFS_MAX_BLOCK + 4096);
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		if (!wfs_cpu_supported(cpu)) {
			printf("skip %s: this machine cannot run it\n", wfs_cpu_name(cpu));
			continue;
		}
		test_round_trip(cpu);
		test_largest(cpu);
		test_cut_words(cpu);
	}
	test_layout_rules();
	test_mode_rules();
	test_proof_rules();
	test_damage(damage_rounds);
	test_guard_free(&comp_guard);
	test_guard_free(&raw_guard);
	wfs_scratch_free(scratch);
	return 0;
}
