/* test_wide_decode.c - every decoder of the wide coding against payloads made by a naive writer, and against each other
 * on damaged ones; the rules of FORMAT.md 4.2 and 4.3 one by one.
 *
 * All payloads and outputs lie against inaccessible pages, so that a read or write outside them is a crash.
 */
#include "wide_model.h"
#include "split_merge.h"

static const struct split_case {
	u8 word, rot, field;
} splits[] = {
	{2, 1, 11}, {2, 1, 12}, {2, 1, 10}, {4, 1, 11}, {1, 0, 8}, {1, 1, 7}, {2, 1, 8},  {2, 1, 6},
	{8, 1, 12}, {2, 0, 9},	{4, 0, 8},  {1, 0, 3},	{8, 0, 1}, {2, 1, 1}, {4, 1, 12}, {4, 1, 1},
	{1, 1, 1},  {8, 1, 9},	{2, 1, 7},  {4, 1, 9},	{4, 1, 5}, {2, 1, 9}, {1, 0, 7},  {1, 1, 5},
};

struct outcome {
	enum wfs_status status;
	const char *reason;
};

static struct wfs_scratch *scratch;
static struct test_guard comp_guard, raw_guard;

/* Decode through wfs_payload_decode as the reader does. */
static struct outcome decode(struct wfs_split s, const struct wfs_wide_decode_pool *pool, enum wfs_cpu cpu,
			     unsigned phase, const u8 *comp, size_t comp_len, u8 *raw, size_t raw_len)
{
	const struct wfs_coder coder = {.coding = WFS_WIDE, .word = s.word, .rot = s.rot, .field = s.field};
	const struct wfs_decode_tables tables = {.wide = pool};
	const struct wfs_kernels kernels = wfs_kernels_for(cpu);
	struct outcome o = {WFS_OK, NULL};

	o.status =
		wfs_payload_decode(&coder, &tables, &kernels, phase, comp, comp_len, raw, raw_len, scratch, &o.reason);
	CHECK((o.status == WFS_OK) == (o.reason == NULL));
	return o;
}

/* comp copied so that it ends (or begins) at a guard page. */
static const u8 *guarded(const u8 *comp, size_t comp_len, bool at_end)
{
	u8 *p = at_end ? test_guard_end(&comp_guard, comp_len) : test_guard_start(&comp_guard);

	memcpy(p, comp, comp_len);
	return p;
}

static struct wfs_split split_of(size_t i)
{
	return wfs_split_make(splits[i].word, splits[i].rot, splits[i].field);
}

/* ---- round trips ---- */

static void check_model(const struct wide_model *w, enum wfs_cpu cpu, unsigned align, const char *what)
{
	struct wfs_wide_decode_pool *pool = wfs_wide_decode_pool_new(&w->pool);
	const size_t raw_len = w->m.n * w->m.s.word, comp_len = w->m.comp_len;
	struct outcome o;
	u8 *raw;

	CHECK(pool);
	/* Against the guard behind, then `align` bytes after the one in front, with canaries. */
	raw = test_guard_end(&raw_guard, raw_len);
	memset(raw, 0xA5, raw_len);
	o = decode(w->m.s, pool, cpu, 0, guarded(w->m.comp, comp_len, true), comp_len, raw, raw_len);
	CHECK_MSG(o.status == WFS_OK, "%s: %s", what, o.reason);
	CHECK_MSG(!memcmp(raw, w->m.raw, raw_len), "%s", what);

	raw = test_guard_start(&raw_guard);
	memset(raw, 0xA5, raw_len + align + 256);
	o = decode(w->m.s, pool, cpu, 0, guarded(w->m.comp, comp_len, false), comp_len, raw + align, raw_len);
	CHECK_MSG(o.status == WFS_OK, "%s: %s", what, o.reason);
	CHECK_MSG(!memcmp(raw + align, w->m.raw, raw_len), "%s", what);
	for (unsigned i = 0; i < align; i++)
		CHECK_MSG(raw[i] == 0xA5, "%s: byte -%u", what, align - i);
	for (unsigned i = 0; i < 256; i++)
		CHECK_MSG(raw[align + raw_len + i] == 0xA5, "%s: byte +%u", what, i);
	free(pool);
}

static void test_round_trip(enum wfs_cpu cpu)
{
	static const size_t sizes[] = {1,   2,	 31,  32,   33,	  63,	64,   65,   127,  128,	129,  447,  448,  449,
				       511, 512, 513, 1000, 1023, 1024, 1025, 1536, 4095, 4097, 8191, 8192, 20011};
	uint64_t rng = 0x9E3779B97F4A7C15ull;
	size_t nr = 0;

	for (size_t i = 0; i < WFS_ARRAY_LEN(splits); i++) {
		for (size_t k = 0; k < WFS_ARRAY_LEN(sizes); k++, nr++) {
			struct wfs_split s = split_of(i);
			unsigned nr_tables = 1 + (unsigned)test_rand_below(&rng, 32);
			bool modes = test_rand_below(&rng, 2);
			unsigned escapes = test_rand_below(&rng, 4) ? 5 : 300;
			struct wide_model w = wide_model_new(&rng, s, sizes[k], nr_tables, modes, escapes);
			char what[128];

			snprintf(what, sizeof(what), "%s word %u rot %u field %u n %zu tables %u modes %d",
				 wfs_cpu_name(cpu), s.word, s.rot, s.field, sizes[k], nr_tables, modes);
			check_model(&w, cpu, (unsigned)test_rand_below(&rng, 70), what);
			wide_model_free(&w);
		}
	}
	PASS("%s: %zu payloads of every split, size and mode decode, writing only their words", wfs_cpu_name(cpu), nr);
}

static void test_largest(enum wfs_cpu cpu)
{
	uint64_t rng = 77;

	for (unsigned word = 1; word <= 8; word *= 2) {
		struct wfs_split s = wfs_split_make(word, word > 1, word == 1 ? 8 : 11);
		struct wide_model w = wide_model_new(&rng, s, WFS_MAX_BLOCK / word, 32, word > 1, 20);

		check_model(&w, cpu, word, "largest");
		wide_model_free(&w);
	}
	PASS("%s: blocks of 1 MiB decode", wfs_cpu_name(cpu));
}

static void test_cut_words(enum wfs_cpu cpu)
{
	uint64_t rng = 5;

	for (unsigned i = 0; i < 60; i++) {
		struct wfs_split s = wfs_split_make(i % 3 == 0 ? 2 : i % 3 == 1 ? 4 : 8, 1, 10);
		struct wide_model w = wide_model_new(&rng, s, 1 + test_rand_below(&rng, 1500), 3, false, 5);
		unsigned phase = (unsigned)test_rand_below(&rng, 8), head = (s.word - phase % s.word) % s.word;
		unsigned tail = (unsigned)test_rand_below(&rng, s.word);
		size_t comp_len = w.m.comp_len + head + tail, raw_len = w.m.n * s.word + head + tail;
		struct wfs_wide_decode_pool *pool = wfs_wide_decode_pool_new(&w.pool);
		u8 *comp = malloc(comp_len), *raw = test_guard_end(&raw_guard, raw_len);
		struct outcome o;

		memcpy(comp, w.m.comp, w.m.comp_len);
		test_rand_fill(&rng, comp + w.m.comp_len, head + tail);
		o = decode(s, pool, cpu, phase, guarded(comp, comp_len, true), comp_len, raw, raw_len);
		CHECK_MSG(o.status == WFS_OK, "%s", o.reason);
		CHECK(!memcmp(raw, comp + w.m.comp_len, head));
		CHECK(!memcmp(raw + head, w.m.raw, w.m.n * s.word));
		CHECK(!memcmp(raw + raw_len - tail, comp + w.m.comp_len + head, tail));
		free(comp);
		free(pool);
		wide_model_free(&w);
	}
	PASS("%s: cut words at both ends come back", wfs_cpu_name(cpu));
}

/* ---- damage ---- */

/* Change a payload in place in one of the ways that reach deep into the decoders. May shorten it. */
static void damage(uint64_t *rng, const struct wide_model *w, u8 *comp, size_t *comp_len)
{
	const size_t front = 12 + 5 * w->groups.nr;

	for (size_t times = 1 + test_rand_below(rng, 3); times > 0; times--) {
		const size_t at = test_rand_below(rng, *comp_len), few = test_rand_below(rng, 4);
		const u32 stream = wfs_load24(comp), escapes = wfs_load24(comp + 3);

		switch (test_rand_below(rng, 10)) {
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
		case 4: /* border between stream and escapes, either way: all lengths still add up */
			if (escapes >= 2 * few) {
				wfs_store24(comp, (u32)(stream + 2 * few));
				wfs_store24(comp + 3, (u32)(escapes - 2 * few));
			}
			break;
		case 5:
			if (stream >= 2 * few) {
				wfs_store24(comp, (u32)(stream - 2 * few));
				wfs_store24(comp + 3, (u32)(escapes + 2 * few));
			}
			break;
		case 6: /* a smear */
			test_rand_fill(rng, comp + at, WFS_MIN((size_t)64, *comp_len - at));
			break;
		case 7: /* groups */
			comp[12 + test_rand_below(rng, front - 12)] ^= (u8)(1 << test_rand_below(rng, 8));
			break;
		case 8: /* table numbers, modes, states */
			if (front + 8 < *comp_len)
				comp[front + test_rand_below(rng, WFS_MIN(*comp_len - front, (size_t)300))] ^=
					(u8)(1 << test_rand_below(rng, 8));
			break;
		default:
			if (few < *comp_len && !test_rand_below(rng, 4))
				*comp_len -= few;
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
		struct wfs_split s = split_of(test_rand_below(&rng, test_rand_below(&rng, 2) ? 9 : 24));
		size_t n = 1 + test_rand_below(&rng, test_rand_below(&rng, 2) ? 300 : 6000);
		struct wide_model w = wide_model_new(&rng, s, n, 1 + (unsigned)test_rand_below(&rng, 32),
						     test_rand_below(&rng, 2), (unsigned)test_rand_below(&rng, 50));
		struct wfs_wide_decode_pool *pool = wfs_wide_decode_pool_new(&w.pool);
		u8 *comp = malloc(w.m.comp_len);

		for (unsigned k = 0; k < 8; k++) {
			size_t comp_len = w.m.comp_len, raw_len = n * s.word;
			u8 *raw = test_guard_end(&raw_guard, raw_len);
			struct outcome want;
			const u8 *in;

			memcpy(comp, w.m.comp, comp_len);
			damage(&rng, &w, comp, &comp_len);
			in = guarded(comp, comp_len, k % 4 != 3);
			want = decode(s, pool, WFS_CPU_SCALAR, 0, in, comp_len, expect, raw_len);
			*(want.status == WFS_OK ? &nr_accepted : &nr_refused) += 1;
			for (enum wfs_cpu cpu = WFS_CPU_SCALAR + 1; cpu < WFS_NR_CPUS; cpu++) {
				struct outcome got;

				if (!wfs_cpu_supported(cpu))
					continue;
				got = decode(s, pool, cpu, 0, in, comp_len, raw, raw_len);
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
		wide_model_free(&w);
	}
	free(expect);
	CHECK(nr_refused && nr_accepted);
	PASS("damage: all variants agree on %zu payloads refused and %zu accepted", nr_refused, nr_accepted);
}

/* ---- single rules ---- */

static void expect_refused(const struct wide_model *w, const u8 *comp, size_t comp_len, const char *reason)
{
	struct wfs_wide_decode_pool *pool = wfs_wide_decode_pool_new(&w->pool);
	const size_t raw_len = w->m.n * w->m.s.word;
	u8 *raw = test_guard_end(&raw_guard, raw_len);

	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		struct outcome o;

		if (!wfs_cpu_supported(cpu))
			continue;
		o = decode(w->m.s, pool, cpu, 0, guarded(comp, comp_len, true), comp_len, raw, raw_len);
		CHECK_MSG(o.status == WFS_BAD_DATA, "%s accepted: %s", wfs_cpu_name(cpu), reason);
		CHECK_MSG(!strcmp(o.reason, reason), "%s: %s, expected: %s", wfs_cpu_name(cpu), o.reason, reason);
	}
	free(pool);
}

/* A payload of 33 rows with 3 tables, several groups, unused bits of table numbers and literals. */
static struct wide_model rule_model(void)
{
	uint64_t rng = 11;

	for (;;) {
		struct wide_model w = wide_model_new(&rng, wfs_split_make(2, 1, 10), 2049, 3, false, 100);

		if (w.groups.nr >= 3 && w.groups.nr <= 6 && w.nr_segs % 4 == 3 && w.m.nr_literals >= 2 &&
		    w.groups.phase)
			return w;
		wide_model_free(&w);
	}
}

static void test_layout_rules(void)
{
	struct wide_model w = rule_model();
	struct wfs_wide_decode_pool *pool = wfs_wide_decode_pool_new(&w.pool);
	const size_t numbers = 12 + 5 * w.groups.nr;
	u8 *comp = malloc(w.m.comp_len + 64);
	const char *reason = NULL;
	struct wfs_wide_view v;
	size_t at_literals;

	CHECK(wfs_wide_parse(w.m.comp, w.m.comp_len, w.m.s, pool, w.m.n, 0, &v, &reason) == WFS_OK);
	at_literals = (size_t)(v.literals - w.m.comp);
#define REFUSED(change, reason_)                                                                                       \
	do {                                                                                                           \
		size_t comp_len = w.m.comp_len;                                                                        \
		memcpy(comp, w.m.comp, w.m.comp_len);                                                                  \
		change;                                                                                                \
		expect_refused(&w, comp, comp_len, reason_);                                                           \
	} while (0)
	REFUSED(comp_len = 11, "wide payload is cut short");
	REFUSED(comp_len = numbers - 1, "wide payload is cut short");
	REFUSED(comp_len = numbers + WFS_CEIL_DIV(w.nr_segs, 4) + 127, "wide payload is cut short");
	REFUSED(comp_len--, "lengths inside the wide payload do not add up");
	REFUSED(comp[comp_len++] = 0, "lengths inside the wide payload do not add up");
	REFUSED(wfs_store24(comp, wfs_load24(comp) + 1), "wide header is not valid");
	REFUSED(wfs_store24(comp, 128 * 33 + 2), "wide header is not valid");
	REFUSED(wfs_store24(comp + 3, 64 * 33 + 1), "wide header is not valid");
	REFUSED(wfs_store16(comp + 6, (u16)(w.m.nr_escapes + 1)), "wide header is not valid");
	REFUSED(comp[9] = 0, "wide header is not valid");
	REFUSED(wfs_store16(comp + 10, w.groups.group[0].seg_len), "groups of segments are not valid");
	REFUSED(wfs_store24(comp + 12, 1), "groups of segments are not valid");
	REFUSED(wfs_store16(comp + 15, 63), "groups of segments are not valid");
	REFUSED(wfs_store24(comp + 17, 0), "groups of segments are not valid");
	REFUSED(wfs_store24(comp + 22, w.groups.group[1].first), "groups of segments are not valid");
	REFUSED(wfs_store24(comp + 12 + 5 * (w.groups.nr - 1), 2049), "groups of segments are not valid");
	REFUSED(comp[numbers] |= 3, "table number is not valid");
	REFUSED(comp[numbers + w.nr_segs / 4] |= 0x40, "unused bits of the table numbers are not zero");
	REFUSED(wfs_store32(comp + at_literals, 2049), "literal number is not valid");
	REFUSED(wfs_store32(comp + at_literals + 6, wfs_load32(comp + at_literals)), "literal number is not valid");
#undef REFUSED
	free(comp);
	free(pool);
	wide_model_free(&w);
	PASS("lengths, groups, table numbers, unused bits and literals: every rule refuses");
}

static void test_mode_rules(void)
{
	static const u8 modes[] = {0x41, 0x44, 0, 0x40};
	uint64_t rng = 3;
	struct wide_model w = wide_model_new(&rng, wfs_split_make(2, 1, 11), 2000, 1, false, 0);
	const size_t front = 12 + 5 * w.groups.nr;
	u8 *comp;

	/* Words that fit all of these modes: no sign, no mantissa but its coded bits. */
	for (size_t i = 0; i < w.m.n; i++)
		wfs_store16(w.m.raw + 2 * i, wfs_load16(w.m.raw + 2 * i) & 0x7ff0);
	memcpy(w.m.mode, modes, sizeof(modes));
	wide_model_encode(&w);
	CHECK(w.m.comp[8] == 4);
	check_model(&w, WFS_CPU_SCALAR, 0, "modes");
	comp = malloc(w.m.comp_len + 3);
#define REFUSED(change)                                                                                                \
	do {                                                                                                           \
		memcpy(comp, w.m.comp, w.m.comp_len);                                                                  \
		change;                                                                                                \
		expect_refused(&w, comp, w.m.comp_len, "mode change is not valid");                                    \
	} while (0)
	REFUSED(wfs_store16(comp + front, 1));	   /* same superrow twice */
	REFUSED(wfs_store16(comp + front + 9, 4)); /* beyond the last */
	REFUSED(comp[front + 2] = 0xC0);	   /* sign 3 */
	REFUSED(comp[front + 2] = 5);		   /* more zeros than mantissa bits: at most 16 - 11 - 1 */
#undef REFUSED
	free(comp);
	wide_model_free(&w);

	w = wide_model_new(&rng, wfs_split_make(1, 0, 8), 2000, 1, false, 0);
	comp = malloc(w.m.comp_len + 3);
	memcpy(comp, w.m.comp, 12 + 5 * w.groups.nr);
	comp[8] = 1;
	memset(comp + 12 + 5 * w.groups.nr, 0, 3);
	memcpy(comp + 15 + 5 * w.groups.nr, w.m.comp + 12 + 5 * w.groups.nr, w.m.comp_len - 12 - 5 * w.groups.nr);
	expect_refused(&w, comp, w.m.comp_len + 3, "modes in a split that has none");
	free(comp);
	wide_model_free(&w);
	PASS("mode changes: every rule refuses");
}

/* The payload with `by` bytes more or fewer before offset at, and a length field adjusted. */
static void expect_resized_refused(const struct wide_model *w, size_t at, int by, unsigned header_at, u32 header_value)
{
	const size_t comp_len = w->m.comp_len + (size_t)by, kept = by < 0 ? at - (size_t)-by : at;
	u8 *comp = calloc(comp_len, 1);

	memcpy(comp, w->m.comp, kept);
	memcpy(comp + comp_len - (w->m.comp_len - at), w->m.comp + at, w->m.comp_len - at);
	wfs_store24(comp + header_at, header_value);
	expect_refused(w, comp, comp_len, WFS_SPLIT_UNPROVEN);
	free(comp);
}

static void check_proof(struct wide_model *w)
{
	struct wfs_wide_decode_pool *pool = wfs_wide_decode_pool_new(&w->pool);
	const size_t cap = WFS_CEIL_DIV(w->m.n, 64) * 64;
	const char *reason = NULL;
	struct wfs_wide_view v;
	size_t stream_len, stream_end, escapes_end;

	CHECK(wfs_wide_parse(w->m.comp, w->m.comp_len, w->m.s, pool, w->m.n, 0, &v, &reason) == WFS_OK);
	free(pool);
	stream_len = (size_t)(v.stream_end - v.stream);
	stream_end = (size_t)(v.stream_end - w->m.comp);
	escapes_end = (size_t)(v.literals - w->m.comp);
	if (stream_len < 2 * cap)
		expect_resized_refused(w, stream_end, 2, 0, (u32)stream_len + 2);
	if (stream_len)
		expect_resized_refused(w, stream_end, -2, 0, (u32)stream_len - 2);
	if (w->m.nr_escapes < cap)
		expect_resized_refused(w, escapes_end, 1, 3, (u32)w->m.nr_escapes + 1);
	if (w->m.nr_escapes > w->m.nr_literals)
		expect_resized_refused(w, escapes_end, -1, 3, (u32)w->m.nr_escapes - 1);
	w->extra_state = 1;
	wide_model_encode(w);
	expect_refused(w, w->m.comp, w->m.comp_len, WFS_SPLIT_UNPROVEN);
	w->extra_state = 0;
	if (w->m.n % 64 && w->m.s.field < 8 * w->m.s.word) {
		w->m.extra_padding = 1;
		wide_model_encode(w);
		expect_refused(w, w->m.comp, w->m.comp_len, "padding bits are not zero");
	}
}

static void test_proof_rules(void)
{
	static const size_t sizes[] = {1, 100, 449, 512, 1000, 2047, 2048};
	uint64_t rng = 21;

	for (size_t k = 0; k < WFS_ARRAY_LEN(sizes); k++) {
		for (size_t i = 0; i < WFS_ARRAY_LEN(splits); i++) {
			struct wide_model w = wide_model_new(&rng, split_of(i), sizes[k], 5, false, 20);

			check_proof(&w);
			wide_model_free(&w);
		}
	}
	PASS("final states, stream and escape ends, padding bits: every rule refuses");
}

int main(int argc, char **argv)
{
	size_t damage_rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1500;

	scratch = wfs_scratch_new();
	CHECK(scratch);
	comp_guard = test_guard_new(6 * WFS_MAX_BLOCK);
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
