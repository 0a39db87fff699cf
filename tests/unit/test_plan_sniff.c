/* test_plan_sniff.c - how bytes that nobody describes are cut: along words of any class at any place, to a few bytes,
 * over any length; what is small, text or noise is left alone; chance cuts nothing; and nothing depends on the number
 * of threads.
 */
#include "sniff_util.h"

#include "container.h"
#include "log2_fixed.h"
#include "sniff.h"

/* What was put into a file. */
struct part {
	enum wfs_class class;
	size_t off, len; /* off: a word or a record begins here */
};
struct parts {
	struct bytes bytes;
	struct part part[64];
	size_t nr;
};

static void add_part(struct parts *p, enum wfs_class class, size_t nr_words, uint64_t *seed)
{
	size_t off = p->bytes.len;

	if (wfs_class_records(class))
		add_records(&p->bytes, class, nr_words, seed);
	else
		add_words(&p->bytes, class, nr_words, seed);
	p->part[p->nr++] = (struct part){class, off, p->bytes.len - off};
}

static const struct wfs_reader_region *region_at(const struct wfs_reader *reader, u64 off)
{
	return &reader->region[wfs_region_at(reader, off)];
}

/* Whether the region's words have the size of the part's and start where they do. */
static bool reads(const struct wfs_reader *reader, const struct wfs_reader_region *g, const struct part *part)
{
	const struct wfs_coder *c = &reader->coder[g->coder];
	const struct wfs_records *records = wfs_class_records(part->class);
	unsigned step = wfs_class_step(part->class);

	if (records ? c->coding != WFS_RECORDS || memcmp(c->border, records->border, sizeof(c->border))
		    : c->coding != WFS_SPLIT && c->coding != WFS_WIDE)
		return false;
	return c->word == step && (g->raw_off + step - g->phase) % step == part->off % step;
}

/* The parts but for `slack` bytes at either end are read as what they are, each by one region. */
static void check_parts(const struct wfs_reader *reader, const struct parts *p, size_t slack)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct part *part = &p->part[i];
		const struct wfs_reader_region *g = region_at(reader, part->off + slack);

		CHECK_MSG(reads(reader, g, part), "part %zu at %zu: coder %u, region at %zu, phase %u", i, part->off,
			  g->coder, (size_t)g->raw_off, g->phase);
		CHECK_MSG(region_at(reader, part->off + part->len - 1 - slack) == g, "part %zu", i);
	}
}

static struct wfs_reader *encode(const struct bytes *b, unsigned nr_threads, int *fd_ret,
				 struct wfs_encode_result *result)
{
	struct wfs_encode_opts opts = {.nr_threads = nr_threads};

	return round_trip(b, &opts, fd_ret, result);
}

/* Tensors of every class one after another, with names of odd lengths in front. */
static void test_places(void)
{
	static const enum wfs_class classes[] = {WFS_CLASS_F32,	 WFS_CLASS_F32, WFS_CLASS_BF16, WFS_CLASS_F64,
						 WFS_CLASS_F16,	 WFS_CLASS_F32, WFS_CLASS_E5M2, WFS_CLASS_BF16,
						 WFS_CLASS_BF16, WFS_CLASS_I8,	WFS_CLASS_F64,	WFS_CLASS_I32,
						 WFS_CLASS_F16,	 WFS_CLASS_I16, WFS_CLASS_F32};
	struct wfs_encode_result result;
	struct wfs_reader *reader;
	struct parts p = {0};
	uint64_t seed = 5;
	int fd;

	add_text(&p.bytes, 70001, &seed);
	for (size_t i = 0; i < WFS_ARRAY_LEN(classes); i++) {
		u8 name[64];

		test_rand_fill(&seed, name, sizeof(name));
		bytes_add(&p.bytes, name, 1 + (size_t)test_rand_below(&seed, sizeof(name)));
		add_part(&p, classes[i],
			 (300000 + (size_t)test_rand_below(&seed, 200000)) / wfs_class_split(classes[i]).word, &seed);
	}
	reader = encode(&p.bytes, 3, &fd, &result);
	check_parts(reader, &p, 64);
	CHECK(result.nr_regions <= 1 + WFS_ARRAY_LEN(classes));
	wfs_reader_free(reader);
	close(fd);
	free(p.bytes.p);
	PASS("words of any class are found at any place, to a few bytes");
}

/* The same for records; a part may begin inside one. They are coded block after block, so the file is longer than one.
 */
static void test_records(void)
{
	enum { LEN = 700000 };
	struct wfs_encode_result result;
	struct wfs_reader *reader;
	struct parts p = {0};
	uint64_t seed = 14;
	int fd;

	for (enum wfs_class class = WFS_FIRST_RECORDS; class < WFS_NR_CLASSES; class ++) {
		const unsigned step = wfs_class_step(class), skip = class % 2 ? 0 : 7;
		struct bytes records = {0};
		u8 name[64];

		test_rand_fill(&seed, name, sizeof(name));
		bytes_add(&p.bytes, name, 1 + (size_t)test_rand_below(&seed, sizeof(name)));
		add_records(&records, class, LEN / step, &seed);
		p.part[p.nr++] = (struct part){class, p.bytes.len + (step - skip) % step, LEN / step * step - 2 * step};
		bytes_add(&p.bytes, records.p + skip, records.len - skip);
		free(records.p);
	}
	reader = encode(&p.bytes, 2, &fd, &result);
	check_parts(reader, &p, 300);
	CHECK(result.file_len < p.bytes.len * 96 / 100);
	wfs_reader_free(reader);
	close(fd);
	free(p.bytes.p);
	PASS("records of any class are found at any place");
}

/* Parts from 128 KiB down to 4 KiB, which no sample of a cell need meet. */
static void test_small(void)
{
	struct wfs_encode_result result;
	struct parts p = {0};
	uint64_t seed = 6;
	size_t raw = 0;
	int fd;

	for (size_t len = 128 << 10; len >= 4 << 10; len = len * 7 / 8) {
		add_part(&p, p.nr % 2 ? WFS_CLASS_BF16 : WFS_CLASS_F32, len / 4, &seed);
		bytes_add(&p.bytes, "odd", 3);
		raw += p.part[p.nr - 1].len;
	}
	wfs_reader_free(encode(&p.bytes, 2, &fd, &result));
	CHECK(result.nr_regions <= p.nr && result.nr_regions >= p.nr / 3);
	CHECK(result.file_len < raw * 92 / 100);
	close(fd);
	free(p.bytes.p);
	PASS("small parts are found, or left alone");
}

/* Ten thousand tensors of 1.5 KiB: worth neither a region each nor a loss. */
static void test_tiny(void)
{
	struct wfs_encode_result result;
	struct bytes b = {0};
	uint64_t seed = 7;
	int fd;

	for (int i = 0; i < 10000; i++) {
		add_words(&b, i % 2 ? WFS_CLASS_F16 : WFS_CLASS_F32, i % 2 ? 768 : 384, &seed);
		bytes_add(&b, &i, 1 + (size_t)i % 3);
	}
	wfs_reader_free(encode(&b, 2, &fd, &result));
	CHECK(result.nr_regions < 1000);
	CHECK(result.file_len < b.len + b.len / 500 + 10000);
	close(fd);
	free(b.p);
	PASS("very many tiny parts cost nothing");
}

/* More cells than are labelled at once, the words changing in the last one of these, and a cut span's rest. */
static void test_long(void)
{
	const size_t batch = (size_t)64 << 20, first = batch - 20000, second = (9 << 20) + 77777;
	struct wfs_encode_result result;
	struct wfs_reader *reader;
	struct parts p = {0};
	struct bytes chunk = {0};
	uint64_t seed = 8;
	int fd;

	add_words(&chunk, WFS_CLASS_BF16, 1 << 19, &seed);
	while (p.bytes.len < first)
		bytes_add(&p.bytes, chunk.p, WFS_MIN(chunk.len, first - p.bytes.len));
	p.part[p.nr++] = (struct part){WFS_CLASS_BF16, 0, first};
	chunk.len = 0;
	add_words(&chunk, WFS_CLASS_F32, 1 << 18, &seed);
	while (p.bytes.len < first + second)
		bytes_add(&p.bytes, chunk.p, WFS_MIN(chunk.len, first + second - p.bytes.len));
	p.part[p.nr++] = (struct part){WFS_CLASS_F32, first, second};
	reader = encode(&p.bytes, 2, &fd, &result);
	CHECK(result.nr_regions == 2);
	check_parts(reader, &p, 64);
	wfs_reader_free(reader);
	close(fd);
	free(chunk.p);
	free(p.bytes.p);
	PASS("a long file is read through");
}

static void test_left_alone(void)
{
	struct wfs_encode_result result;
	struct bytes b = {0};
	uint64_t seed = 9;
	int fd;

	add_text(&b, 3000000, &seed);
	bytes_add(&b, NULL, 3000000);
	test_rand_fill(&seed, b.p + 3000000, 3000000);
	add_text(&b, 1000, &seed);
	wfs_reader_free(encode(&b, 2, &fd, &result));
	CHECK(result.nr_regions == 1 && result.file_len < b.len * 7 / 10);
	close(fd);
	for (size_t len = 0; len < 6000; len += len < 3000 ? 157 : 1000) { /* too short to tell */
		b.len = 0;
		add_words(&b, WFS_CLASS_F32, len / 4, &seed);
		bytes_add(&b, "odd", len % 4);
		wfs_reader_free(encode(&b, 1, &fd, &result));
		CHECK(result.nr_regions <= 1);
		close(fd);
	}
	free(b.p);
	PASS("text, noise and scraps are left alone");
}

static void test_threads(void)
{
	struct wfs_encode_result result[2];
	struct parts p = {0};
	uint64_t seed = 10;
	u8 *file[2];

	for (int i = 0; i < 20; i++) {
		const enum wfs_class class = WFS_CLASS_BF16 + (unsigned)i % (WFS_NR_CLASSES - 1);

		add_part(&p, class, class < WFS_FIRST_RECORDS ? 50000 : 10000, &seed);
		bytes_add(&p.bytes, "odd", 1 + (size_t)i % 3);
	}
	for (int i = 0; i < 2; i++) {
		int fd;

		wfs_reader_free(encode(&p.bytes, i ? 7 : 1, &fd, &result[i]));
		file[i] = malloc(result[i].file_len);
		CHECK(file[i] && pread(fd, file[i], result[i].file_len, 0) == (ssize_t)result[i].file_len);
		close(fd);
	}
	CHECK(result[0].file_len == result[1].file_len && !memcmp(file[0], file[1], result[0].file_len));
	free(file[0]);
	free(file[1]);
	free(p.bytes.p);
	PASS("any number of threads cuts in the same way");
}

/* Four cells of words that save a third, among noise: worth two changes. */
static void test_in_noise(void)
{
	struct wfs_encode_result result;
	struct wfs_reader *reader;
	struct parts p = {0};
	uint64_t seed = 11;
	u8 noise[4096];
	int fd;

	for (size_t i = 0; i < 400; i++) {
		if (i == 200)
			add_part(&p, WFS_CLASS_BF16, 4 * WFS_SNIFF_LZ4_BYTES / 2, &seed);
		test_rand_fill(&seed, noise, sizeof(noise));
		bytes_add(&p.bytes, noise, sizeof(noise));
	}
	reader = encode(&p.bytes, 2, &fd, &result);
	CHECK(result.nr_regions == 3);
	check_parts(reader, &p, 64);
	wfs_reader_free(reader);
	close(fd);
	free(p.bytes.p);
	PASS("a few cells of words are found in noise");
}

/* Bytes whose sign and low bits are noise: it makes next to no difference which of them a class takes into its field,
 * so in each cell another one may seem best by chance. */
static void test_equal_classes(void)
{
	struct wfs_encode_result result;
	struct bytes b = {0};
	uint64_t seed = 12;
	int fd;

	for (size_t i = 0; i < 2 << 20; i++) {
		const unsigned exponent = 8 - (unsigned)__builtin_ctzll(test_rand(&seed) | 1 << 5);
		const u8 byte = (u8)(exponent << 3 | (test_rand(&seed) & 0x87));

		bytes_add(&b, &byte, 1);
	}
	wfs_reader_free(encode(&b, 2, &fd, &result));
	CHECK_MSG(result.nr_regions == 1, "%zu regions", (size_t)result.nr_regions);
	CHECK(result.file_len < b.len * 8 / 10);
	close(fd);
	free(b.p);
	PASS("chance does not cut what every class serves as well");
}

/* A sample of words that are all as likely looks less even than they are. Its cost must not be less for that: log2 of
 * how many there are each, on average. */
static void test_chance(void)
{
	static const struct {
		unsigned nr_values, nr;
	} kinds[] = {{16, 512}, {64, 2048}, {128, 4096}, {WFS_WIDE_NAMES - 1, 8192}};
	enum { SAMPLES = 200 };
	uint64_t seed = 13;

	for (size_t k = 0; k < WFS_ARRAY_LEN(kinds); k++) {
		const u64 right = (u64)kinds[k].nr * wfs_log2_q16(kinds[k].nr_values) / (65536 / WFS_SNIFF_UNIT);
		const u64 slack = kinds[k].nr_values * WFS_SNIFF_UNIT / 6; /* chance takes four times as much */
		u64 sum = 0;

		for (unsigned i = 0; i < SAMPLES; i++) {
			u16 hist[256] = {0};

			for (unsigned n = 0; n < kinds[k].nr; n++)
				hist[test_rand_below(&seed, kinds[k].nr_values)]++;
			sum += wfs_sniff_counts(hist, 256, kinds[k].nr, WFS_WIDE_NAMES - 1, 0, 1);
		}
		CHECK_MSG(sum / SAMPLES + slack > right && sum / SAMPLES < right + slack, "%u values: %u, not %u",
			  kinds[k].nr_values, (unsigned)(sum / SAMPLES), (unsigned)right);
	}
	PASS("few words cost what many of their kind cost");
}

int main(void)
{
	test_places();
	test_records();
	test_small();
	test_tiny();
	test_long();
	test_left_alone();
	test_threads();
	test_in_noise();
	test_equal_classes();
	test_chance();
	return 0;
}
