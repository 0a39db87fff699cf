/* test_split_encode.c - every encoder of the split coding: the same bytes from each, the bytes that a naive writer made
 * from FORMAT.md gives for the same decisions, the right decisions, and the words back from every decoder.
 *
 * All words and payloads lie against inaccessible pages, so that a read or write outside them is a crash.
 */
#include "split_encode.h"
#include "split_model.h"

enum { MAX_RAW = 1 << 20, ROOM = 4 * MAX_RAW };

enum kind {
	NARROW,	     /* fields around a centre that differs by segment: weights */
	ZEROS,	     /* nothing but zero bits */
	ONE_SIGN,    /* like NARROW, all signs alike */
	ODD_WORDS,   /* like NARROW, with infinities, NaNs and zeros strewn in */
	RANDOM_BITS, /* incompressible */
	FEW_VALUES,  /* three different words */
	MODED,	     /* superrows with zero low bits and constant signs */
	ONE_WORD,    /* one word repeated */
	WIDE,	     /* fields spread evenly over more values than a table has symbols */
	NR_KINDS,
};
static const char *const kind_names[] = {"narrow",     "zeros", "one sign", "odd words", "random bits",
					 "few values", "moded", "one word", "wide"};

static struct wfs_encode_scratch *scratch;
static struct wfs_encode_buffers *buffers;
static struct wfs_scratch *decode_scratch;
static struct test_guard raw_guard, comp_guard, out_guard;
static u8 *first_comp;
static char what[100]; /* the case at hand, for messages */

/* ---- data ---- */

/* A rotated word of the kind; centre: its segment's. */
static u64 make_word(uint64_t *rng, struct wfs_split s, enum kind kind, unsigned centre, unsigned mode)
{
	const unsigned rest_bits = 8u * s.word - s.field;
	const u64 field_mask = model_mask(s.field);
	unsigned below = (unsigned)__builtin_ctzll(test_rand(rng) | 1ull << 40);
	u64 field = (centre - below) & field_mask, rest = test_rand(rng) & model_mask(rest_bits);

	switch (kind) {
	case ZEROS:
		return 0;
	case ONE_SIGN:
		rest = (rest & ~1ull) | (centre & 1);
		break;
	case ODD_WORDS:
		if (!test_rand_below(rng, 50))
			return test_rand_below(rng, 2) ? field_mask << rest_bits | (rest & 3) : rest & 1;
		break;
	case RANDOM_BITS:
		return test_rand(rng) & model_mask(8u * s.word);
	case FEW_VALUES:
		return (test_rand_below(rng, 3) * 0x123456789abcdefull) & model_mask(8u * s.word);
	case MODED:
		rest &= ~model_mask(wfs_mode_zeros(mode) + 1);
		rest |= wfs_mode_sign(mode) ? wfs_mode_sign(mode) == 2 : test_rand(rng) & 1;
		rest &= model_mask(rest_bits);
		break;
	case ONE_WORD:
		return 0x8182838485868788ull & model_mask(8u * s.word);
	case WIDE:
		field = test_rand_below(rng, 70) & field_mask;
		break;
	default:
		break;
	}
	return field << rest_bits | rest;
}

static void make_words(uint64_t *rng, struct wfs_split s, enum kind kind, size_t n, u8 *raw)
{
	unsigned centre = 0, mode = 0;

	for (size_t i = 0; i < n; i++) {
		if (i % 1024 == 0)
			centre = (unsigned)test_rand_below(rng, 12) * 37;
		if (i % WFS_SUPER == 0)
			mode = test_rand_below(rng, 2) ? model_mode(rng, s) : 0;
		u64 word = model_unrotate(s, make_word(rng, s, kind, centre, mode));
		memcpy(raw + i * s.word, &word, s.word);
	}
}

/* A pool trained from these words, with another segment length now and then, or one that has nothing to do with them.
 */
static void make_pool(uint64_t *rng, struct wfs_split s, const u8 *raw, size_t n, struct wfs_pool *pool)
{
	unsigned choice = (unsigned)test_rand_below(rng, 4);

	if (!choice) {
		model_pool(rng, s.field, 1 + (unsigned)test_rand_below(rng, WFS_MAX_TABLES),
			   9 + (unsigned)test_rand_below(rng, 5), pool);
		return;
	}
	struct wfs_trainer *t = wfs_trainer_new(s);
	CHECK(t);
	for (size_t i = 0; i < n; i += 1024)
		wfs_trainer_add(t, raw + i * s.word, WFS_MIN(n - i, (size_t)1024));
	CHECK(wfs_trainer_finish(t, 9, pool) == WFS_OK);
	wfs_trainer_free(t);
	if (choice == 1)
		pool->seg_log2 = (u8)(9 + test_rand_below(rng, 5));
}

/* ---- checks ---- */

static const struct wfs_encode_kernel *kernel_of(enum wfs_cpu cpu)
{
	if (!wfs_cpu_supported(cpu))
		return NULL;
	return cpu == WFS_CPU_SCALAR ? &wfs_encode_kernel_scalar
	       : cpu == WFS_CPU_AVX2 ? wfs_encode_kernel_avx2_get()
				     : wfs_encode_kernel_avx512vbmi_get();
}

/* Each segment's table must be the first of those with the least cost. */
static void check_tables(struct wfs_split s, const struct wfs_pool *pool, const u8 *raw, size_t n, const u8 *seg)
{
	static u16 cost[WFS_MAX_TABLES][WFS_FIELD_VALUES];
	const size_t seg_words = (size_t)1 << pool->seg_log2;

	for (unsigned t = 0; t < pool->nr_tables; t++)
		wfs_table_costs(&pool->table[t], s, cost[t]);
	for (size_t at = 0; at < n; at += seg_words) {
		u64 sum[WFS_MAX_TABLES] = {0};
		unsigned best = 0;
		for (size_t i = at; i < WFS_MIN(n, at + seg_words); i++) {
			u64 word = 0;
			memcpy(&word, raw + i * s.word, s.word);
			word = model_rotate(s, word) >> (8 * s.word - s.field);
			for (unsigned t = 0; t < pool->nr_tables; t++)
				sum[t] += cost[t][word];
		}
		for (unsigned t = 1; t < pool->nr_tables; t++)
			best = sum[t] < sum[best] ? t : best;
		CHECK_MSG(seg[at >> pool->seg_log2] == best, "%s", what);
	}
}

/* The naive writer, given the table numbers and modes of this payload, must give the payload. */
static void check_against_model(struct wfs_split s, const struct wfs_pool *pool, const struct wfs_decode_pool *decode,
				const u8 *raw, size_t n, const u8 *comp, size_t comp_len)
{
	const char *reason = NULL;
	struct wfs_split_view v;
	struct model m = {.s = s, .pool = *pool, .n = n, .raw = (u8 *)raw};

	CHECK_MSG(wfs_split_parse(comp, comp_len, s, decode, n, 0, &v, &reason) == WFS_OK, "%s: %s", what, reason);
	if (!v.nr_modes)
		memset(v.mode, 0, sizeof(v.mode));
	m.seg = v.seg;
	m.mode = v.mode;
	model_encode(&m);
	CHECK_MSG(m.comp_len == comp_len && !memcmp(m.comp, comp, comp_len), "%s", what);
	free(m.comp);
	check_tables(s, pool, raw, n, v.seg);
}

static void check_decodes(const struct wfs_coder *coder, const struct wfs_decode_pool *pool, unsigned phase,
			  const u8 *comp, size_t comp_len, const u8 *raw, size_t raw_len)
{
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		const char *reason = NULL;
		u8 *out = test_guard_end(&out_guard, raw_len);
		if (!wfs_cpu_supported(cpu))
			continue;
		memset(out, 0xA5, raw_len);
		const struct wfs_decode_tables tables = {.split = pool};
		const struct wfs_kernels kernels = wfs_kernels_for(cpu);
		enum wfs_status status = wfs_payload_decode(coder, &tables, &kernels, phase, comp, comp_len, out,
							    raw_len, decode_scratch, &reason);
		CHECK_MSG(status == WFS_OK, "%s: %s: %s", what, wfs_cpu_name(cpu), reason);
		CHECK_MSG(!memcmp(out, raw, raw_len), "%s: %s", what, wfs_cpu_name(cpu));
	}
}

/* n words at raw, whatever the payload's size, by every encoder; returns the payload's bytes (SIZE_MAX: cannot be). */
static size_t check_words(struct wfs_split s, const struct wfs_pool *pool, const u8 *raw, size_t n)
{
	struct wfs_encode_pool *encode = wfs_encode_pool_new(pool, s);
	struct wfs_decode_pool *decode = wfs_decode_pool_new(pool);
	const struct wfs_coder coder = {.coding = WFS_SPLIT, .word = s.word, .rot = s.rot, .field = s.field};
	u8 *comp = test_guard_start(&comp_guard);
	size_t len = wfs_split_encode(encode, &wfs_encode_kernel_scalar, raw, n, first_comp, ROOM, buffers);

	CHECK(encode && decode);
	for (enum wfs_cpu cpu = WFS_CPU_AVX2; cpu < WFS_NR_CPUS; cpu++) {
		if (!kernel_of(cpu))
			continue;
		CHECK_MSG(wfs_split_encode(encode, kernel_of(cpu), raw, n, comp, ROOM, buffers) == len, "%s: %s", what,
			  wfs_cpu_name(cpu));
		CHECK_MSG(len == SIZE_MAX || !memcmp(comp, first_comp, len), "%s: %s", what, wfs_cpu_name(cpu));
	}
	if (len != SIZE_MAX) {
		check_against_model(s, pool, decode, raw, n, first_comp, len);
		comp = test_guard_end(&comp_guard, len);
		memcpy(comp, first_comp, len);
		check_decodes(&coder, decode, 0, comp, len, raw, n * s.word);
	}
	wfs_encode_pool_free(encode);
	free(decode);
	return len;
}

/* A block through wfs_payload_encode as the container's writer does: within raw_len bytes or not at all. */
static size_t check_block(const struct wfs_coder *coder, const struct wfs_pool *pool, unsigned phase, const u8 *raw,
			  size_t raw_len)
{
	struct wfs_split s = wfs_split_make(coder->word, coder->rot, coder->field);
	struct wfs_encode_pool *encode = pool ? wfs_encode_pool_new(pool, s) : NULL;
	struct wfs_decode_pool *decode = pool ? wfs_decode_pool_new(pool) : NULL;
	const struct wfs_encode_tables tables = {.split = encode};
	const struct wfs_place place = {.phase = phase};
	u8 *comp = test_guard_end(&comp_guard, raw_len);
	size_t len = raw_len;

	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		if (!wfs_cpu_supported(cpu))
			continue;
		memset(comp, 0x5A, raw_len);
		size_t bytes = wfs_payload_encode(coder, &tables, cpu, &place, raw, raw_len, comp, scratch);
		CHECK(bytes <= raw_len);
		if (cpu == WFS_CPU_SCALAR) {
			len = bytes;
			memcpy(first_comp, comp, bytes);
		}
		CHECK_MSG(bytes == len, "%s: %s", what, wfs_cpu_name(cpu));
		CHECK_MSG(len == raw_len || !memcmp(comp, first_comp, len), "%s: %s", what, wfs_cpu_name(cpu));
	}
	if (len < raw_len) {
		comp = test_guard_end(&comp_guard, len);
		memmove(comp, first_comp, len);
		check_decodes(coder, decode, phase, comp, len, raw, raw_len);
	}
	wfs_encode_pool_free(encode);
	free(decode);
	return len;
}

/* ---- tests ---- */

/* Every split that FORMAT.md allows, every kind of data, short and odd lengths. */
static void test_matrix(void)
{
	static const u16 odd[] = {1, 2, 15, 63, 64, 65, 127, 128, 129, 447, 448, 449, 511, 512, 513, 960, 1023, 1025};
	uint64_t rng = 1;
	unsigned nr_cases = 0, nr_splits = 0;

	for (unsigned word = 1; word <= 8; word *= 2)
		for (unsigned field = 1; field <= WFS_MIN(8 * word - 1, (unsigned)WFS_MAX_FIELD); field++)
			for (unsigned rot = 0; rot < 2; rot++, nr_splits++)
				for (unsigned kind = 0; kind < NR_KINDS; kind++, nr_cases++) {
					struct wfs_split s = wfs_split_make(word, rot, field);
					struct wfs_pool pool;
					bool is_odd = test_rand_below(&rng, 2);
					size_t n = is_odd ? odd[test_rand_below(&rng, WFS_ARRAY_LEN(odd))]
							  : 1 + test_rand_below(&rng, 12000);
					u8 *raw = nr_cases % 2 ? test_guard_end(&raw_guard, n * word)
							       : test_guard_start(&raw_guard);
					snprintf(what, sizeof(what), "word %u rot %u field %u, %s, %zu words", word,
						 rot, field, kind_names[kind], n);
					make_words(&rng, s, kind, n, raw);
					make_pool(&rng, s, raw, n, &pool);
					check_words(s, &pool, raw, n);
				}
	PASS("%u splits, %u cases: equal bytes, the model's bytes, and back", nr_splits, nr_cases);
}

/* Blocks as files have them: any phase, any alignment, cut words. */
static void test_blocks(void)
{
	static const struct wfs_coder coders[] = {
		{WFS_SPLIT, 2, 1, 9, 0, 0, {0}}, {WFS_SPLIT, 4, 1, 9, 0, 0, {0}},  {WFS_SPLIT, 2, 1, 6, 0, 0, {0}},
		{WFS_SPLIT, 1, 1, 5, 0, 0, {0}}, {WFS_SPLIT, 8, 1, 12, 0, 0, {0}}, {WFS_SPLIT, 4, 0, 10, 0, 0, {0}},
	};
	uint64_t rng = 2;
	unsigned nr_smaller = 0, nr_stored = 0;

	for (unsigned i = 0; i < 400; i++) {
		const struct wfs_coder *c = &coders[i % WFS_ARRAY_LEN(coders)];
		struct wfs_split s = wfs_split_make(c->word, c->rot, c->field);
		enum kind kind = (enum kind)test_rand_below(&rng, NR_KINDS);
		struct wfs_pool pool;
		size_t raw_len = 1 + test_rand_below(&rng, i % 8 ? 3000 : 300000);
		size_t nr_words = WFS_CEIL_DIV(raw_len, (size_t)c->word) + 1;
		unsigned phase = (unsigned)test_rand_below(&rng, 8);
		u8 *words = malloc(nr_words * c->word);
		u8 *raw = i % 2 ? test_guard_end(&raw_guard, raw_len) : test_guard_start(&raw_guard);

		CHECK(words);
		snprintf(what, sizeof(what), "word %u field %u, %s, phase %u, %zu bytes", c->word, c->field,
			 kind_names[kind], phase, raw_len);
		make_words(&rng, s, kind, nr_words, words);
		make_pool(&rng, s, words, nr_words, &pool);
		memcpy(raw, words + phase % c->word, raw_len);
		size_t len = check_block(c, &pool, phase, raw, raw_len);
		nr_smaller += len < raw_len;
		nr_stored += len == raw_len;
		CHECK(len == raw_len || kind != RANDOM_BITS);
		free(words);
	}
	what[0] = 0;
	CHECK(nr_smaller > 100 && nr_stored > 50);
	PASS("blocks of any phase: %u smaller, %u left to be stored", nr_smaller, nr_stored);
}

/* One full block of each word size, of data that gains. */
static void test_full_blocks(void)
{
	uint64_t rng = 3;

	for (unsigned word = 1; word <= 8; word *= 2) {
		struct wfs_coder c = {WFS_SPLIT, (u8)word, 1, word == 1 ? 5 : 9, 0, 0, {0}};
		struct wfs_split s = wfs_split_make(c.word, c.rot, c.field);
		struct wfs_pool pool;
		u8 *raw = test_guard_start(&raw_guard);
		make_words(&rng, s, NARROW, MAX_RAW / word, raw);
		struct wfs_trainer *t = wfs_trainer_new(s);
		for (size_t i = 0; i < MAX_RAW / word; i += 1024)
			wfs_trainer_add(t, raw + i * word, 1024);
		CHECK(wfs_trainer_finish(t, 9, &pool) == WFS_OK);
		wfs_trainer_free(t);
		CHECK(check_block(&c, &pool, 0, raw, MAX_RAW) < MAX_RAW);
	}
	PASS("blocks of 1 MiB");
}

/* nlit has 16 bits: one literal more than fits, and the block must be given up, not cut. */
static void test_literal_limit(void)
{
	struct wfs_split s = wfs_split_make(1, 1, 7);
	struct wfs_coder c = {WFS_SPLIT, 1, 1, 7, 0, 0, {0}};
	struct wfs_pool pool;
	u8 *raw = test_guard_start(&raw_guard);

	memset(raw, 0, MAX_RAW);
	struct wfs_trainer *t = wfs_trainer_new(s);
	wfs_trainer_add(t, raw, 1024);
	CHECK(wfs_trainer_finish(t, 9, &pool) == WFS_OK);
	wfs_trainer_free(t);
	for (size_t i = 0; i < WFS_MAX_LITERALS; i++)
		raw[i * 16] = (u8)(1 + i % 100);
	size_t len = check_block(&c, &pool, 0, raw, MAX_RAW);
	CHECK(len < MAX_RAW && len > 5 * WFS_MAX_LITERALS);
	CHECK(wfs_load16(first_comp + 9) == WFS_MAX_LITERALS);
	raw[MAX_RAW - 16] = 1;
	CHECK(check_block(&c, &pool, 0, raw, MAX_RAW) == MAX_RAW);
	PASS("65535 literals are coded, 65536 refused");
}

/* nmode has 8 bits: superrows that alternate 1,024 times must share modes. */
static void test_mode_limit(void)
{
	struct wfs_split s = wfs_split_make(2, 1, 9);
	struct wfs_coder c = {WFS_SPLIT, 2, 1, 9, 0, 0, {0}};
	struct wfs_pool pool;
	uint64_t rng = 4;
	u8 *raw = test_guard_start(&raw_guard);
	size_t len[2];

	for (unsigned alternate = 0; alternate < 2; alternate++) {
		make_words(&rng, s, NARROW, MAX_RAW / 2, raw);
		for (size_t i = 0; i < MAX_RAW; i += 2)
			raw[i] &= i / 2 / WFS_SUPER % 2 && alternate ? 0xfc : 0xfe;
		struct wfs_trainer *t = wfs_trainer_new(s);
		for (size_t i = 0; i < MAX_RAW / 2; i += 1024)
			wfs_trainer_add(t, raw + i * 2, 1024);
		CHECK(wfs_trainer_finish(t, 9, &pool) == WFS_OK);
		wfs_trainer_free(t);
		len[alternate] = check_block(&c, &pool, 0, raw, MAX_RAW);
		CHECK(first_comp[11] == 1); /* what all superrows have in common */
	}
	CHECK(len[0] < MAX_RAW * 5 / 8 && len[1] < len[0] + MAX_RAW / 64);
	PASS("more mode changes than a payload holds");
}

/* A moded superrow costs its stored bits, and data without modes has none. */
static void test_modes_pay(void)
{
	struct wfs_split s = wfs_split_make(4, 1, 9);
	struct wfs_pool pool;
	uint64_t rng = 5;
	const size_t n = 64 * WFS_SUPER;
	u8 *raw = test_guard_start(&raw_guard);

	make_words(&rng, s, NARROW, n, raw);
	struct wfs_trainer *t = wfs_trainer_new(s);
	for (size_t i = 0; i < n; i += 1024)
		wfs_trainer_add(t, raw + i * 4, 1024);
	CHECK(wfs_trainer_finish(t, 9, &pool) == WFS_OK);
	wfs_trainer_free(t);
	size_t plain = check_words(s, &pool, raw, n);
	CHECK(first_comp[11] == 0);
	for (size_t i = 8 * WFS_SUPER; i < 24 * WFS_SUPER; i++)
		wfs_store32(raw + 4 * i, wfs_load32(raw + 4 * i) & 0x7fffe000);
	size_t moded = check_words(s, &pool, raw, n);
	CHECK(first_comp[11] == 2);
	/* 13 zero bits and a constant sign, 64 bytes a bit and superrow */
	CHECK(moded == plain - 16 * 14 * 64 + 6);
	PASS("modes are found and pay what they should");
}

static void test_constant(void)
{
	uint64_t rng = 6;
	u8 *raw = test_guard_start(&raw_guard);

	for (unsigned word = 1; word <= 8; word *= 2)
		for (unsigned phase = 0; phase < 8; phase++) {
			struct wfs_coder c = {WFS_CONSTANT, (u8)word, 0, 0, 0, 0, {0}};
			size_t raw_len = word + 1 + test_rand_below(&rng, 5000);
			test_rand_fill(&rng, raw, word);
			for (size_t i = word; i < raw_len; i++)
				raw[i] = raw[i - word];
			CHECK(check_block(&c, NULL, phase, raw, raw_len) == word);
			CHECK(wfs_is_constant(raw, raw_len) == (raw_len >= 8));
			raw[raw_len - 1] ^= 1;
			CHECK(check_block(&c, NULL, phase, raw, raw_len) == raw_len);
			CHECK(!wfs_is_constant(raw, raw_len) || raw_len == 8);
			CHECK(check_block(&c, NULL, phase, raw, word) == word); /* not smaller */
		}
	PASS("constant blocks");
}

static void test_lz4(void)
{
	struct wfs_coder c = {WFS_LZ4, 1, 0, 0, 0, 0, {0}};
	uint64_t rng = 7;

	for (unsigned i = 0; i < 200; i++) {
		size_t raw_len = 1 + test_rand_below(&rng, i % 16 ? 2000 : MAX_RAW);
		u8 *raw = test_guard_end(&raw_guard, raw_len);
		test_rand_fill(&rng, raw, raw_len);
		if (i % 2) {
			for (size_t k = 16; k < raw_len; k++)
				raw[k] = raw[k - 16];
			CHECK(check_block(&c, NULL, 0, raw, raw_len) < raw_len || raw_len < 64);
		} else {
			CHECK(check_block(&c, NULL, 0, raw, raw_len) == raw_len);
		}
	}
	c.coding = WFS_STORED;
	CHECK(check_block(&c, NULL, 0, test_guard_start(&raw_guard), 100) == 100);
	PASS("LZ4 and stored blocks");
}

int main(void)
{
	raw_guard = test_guard_new(MAX_RAW);
	out_guard = test_guard_new(MAX_RAW);
	comp_guard = test_guard_new(ROOM);
	scratch = wfs_encode_scratch_new();
	buffers = aligned_alloc(64, sizeof(*buffers));
	decode_scratch = wfs_scratch_new();
	first_comp = malloc(ROOM);
	CHECK(scratch && buffers && decode_scratch && first_comp);
	test_matrix();
	test_blocks();
	test_full_blocks();
	test_literal_limit();
	test_mode_limit();
	test_modes_pay();
	test_constant();
	test_lz4();
	wfs_encode_scratch_free(scratch);
	free(buffers);
	wfs_scratch_free(decode_scratch);
	free(first_comp);
	test_guard_free(&raw_guard);
	test_guard_free(&out_guard);
	test_guard_free(&comp_guard);
	return 0;
}
