/* test_sniff.c - what samples look like: words of every class are recognised at every place, and nothing is seen in
 * noise and text; samples are not left.
 */
#include "sniff_util.h"

#include "sniff.h"

static unsigned cheapest(struct wfs_sniffer *sniffer, const u8 *raw, size_t len, u64 off, u32 *cost)
{
	unsigned best = 0;

	wfs_sniff_costs(sniffer, &(struct wfs_sample){raw, len, off}, cost);
	for (unsigned r = 1; r < WFS_NR_READINGS; r++)
		best = cost[r] < cost[best] ? r : best;
	return best;
}

static void test_readings(void)
{
	bool has[WFS_NR_CLASSES][WFS_MAX_RECORD] = {{false}};

	for (unsigned r = 0; r < WFS_NR_READINGS; r++) {
		const struct wfs_reading way = wfs_reading_get(r);

		CHECK(way.class < WFS_NR_CLASSES && way.at < WFS_MAX_RECORD);
		CHECK(!has[way.class][way.at]);
		has[way.class][way.at] = true;
	}
	for (unsigned class = 0; class < WFS_NR_CLASSES; class ++)
		for (unsigned at = 0; at < WFS_MAX_RECORD; at++)
			CHECK(has[class][at] == (at < wfs_class_step(class)));
	PASS("there is a reading for each class and place");
}

static unsigned reading_of(unsigned class, unsigned at)
{
	unsigned r = 0;

	while (wfs_reading_get(r).class != class || wfs_reading_get(r).at != at)
		r++;
	return r;
}

/* Some classes serve the words of others nearly as well. */
static void test_words(struct wfs_sniffer *sniffer)
{
	uint64_t seed = 7;

	for (unsigned class = WFS_CLASS_NONE + 1; class < WFS_FIRST_RECORDS; class ++) {
		const unsigned word = wfs_class_split(class).word;
		struct bytes b = {0};

		add_words(&b, class, 8000 / word, &seed);
		for (unsigned skip = 0; skip < 8; skip++)
			for (u64 off = 100; off < 108; off++) {
				u32 cost[WFS_NR_READINGS];
				unsigned best = cheapest(sniffer, b.p + skip, WFS_SAMPLE, off, cost);
				unsigned right = reading_of(class, (unsigned)(off + 8 * word - skip) % word);

				CHECK_MSG(cost[right] <= cost[best] + WFS_SAMPLE * WFS_SNIFF_PLAIN / 100,
					  "class %u, skip %u, offset %u: reading %u", class, skip, (unsigned)off, best);
				CHECK(wfs_class_split(wfs_reading_get(best).class).word == word);
				CHECK(wfs_reading_get(best).at == wfs_reading_get(right).at);
			}
		free(b.p);
	}
	PASS("words of every class are recognised at every place");
}

/* Formats of which one is like the other, but cut in other places, are all served. */
static void test_records(struct wfs_sniffer *sniffer)
{
	uint64_t seed = 11;

	for (unsigned class = WFS_FIRST_RECORDS; class < WFS_NR_CLASSES; class ++) {
		const unsigned step = wfs_class_step(class);
		struct bytes b = {0};

		add_records(&b, class, 8000 / step, &seed);
		for (unsigned skip = 0; skip < step; skip++) {
			const u64 off = 1000 + 7 * skip;
			u32 cost[WFS_NR_READINGS];
			unsigned best = cheapest(sniffer, b.p + skip, WFS_SAMPLE, off, cost);

			CHECK_MSG(best == reading_of(class, (unsigned)(off + step - skip) % step),
				  "class %u, skip %u: reading %u of class %u at %u", class, skip, best,
				  wfs_reading_get(best).class, wfs_reading_get(best).at);
			CHECK(cost[best] < WFS_SAMPLE * WFS_SNIFF_PLAIN * 96 / 100);
		}
		free(b.p);
	}
	PASS("records of every class are recognised at every place");
}

/* F32 words with constant parts: modes leave them out. */
static void test_modes(struct wfs_sniffer *sniffer)
{
	u32 words[1024], cost[WFS_NR_READINGS];
	uint64_t seed = 7;
	unsigned best;

	for (size_t i = 0; i < WFS_ARRAY_LEN(words); i++)
		words[i] = (u32)test_word(WFS_CLASS_BF16, &seed) << 16;
	best = cheapest(sniffer, (const u8 *)words, sizeof(words), 0, cost);
	CHECK(wfs_reading_get(best).class == WFS_CLASS_F32 && wfs_reading_get(best).at == 0);
	CHECK(cost[best] < sizeof(words) * WFS_SNIFF_PLAIN * 36 / 100);
	for (size_t i = 0; i < WFS_ARRAY_LEN(words); i++)
		words[i] &= INT32_MAX;
	CHECK(cheapest(sniffer, (const u8 *)words, sizeof(words), 0, cost) == best);
	CHECK(cost[best] < sizeof(words) * WFS_SNIFF_PLAIN * 33 / 100);
	PASS("BF16 in F32 is F32 with modes");
}

static void test_no_words(struct wfs_sniffer *sniffer)
{
	u32 cost[WFS_NR_READINGS];
	struct bytes b = {0};
	uint64_t seed = 9;

	for (int i = 0; i < 100; i++) {
		b.len = 0;
		bytes_add(&b, NULL, WFS_SAMPLE);
		test_rand_fill(&seed, b.p, b.len);
		CHECK(cheapest(sniffer, b.p, b.len, 0, cost) == 0 && cost[0] == WFS_SAMPLE * WFS_SNIFF_PLAIN);
		b.len = 0;
		add_text(&b, WFS_SAMPLE, &seed);
		CHECK(cheapest(sniffer, b.p, b.len, 0, cost) == 0 && cost[0] < WFS_SAMPLE * WFS_SNIFF_PLAIN / 2);
	}
	free(b.p);
	PASS("noise and text are no words");
}

static void test_bounds(struct wfs_sniffer *sniffer)
{
	struct test_guard g = test_guard_new(WFS_MAX_SAMPLE), small = test_guard_new(1);
	u16 byte_cost[4096];
	u32 cost[WFS_NR_READINGS];
	uint64_t seed = 3;

	test_rand_fill(&seed, g.map + g.page, g.cap);
	memset(g.map + g.page, 0x3c, g.cap / 2);
	for (unsigned len = WFS_MIN_SAMPLE; len <= WFS_MAX_SAMPLE; len = len < 100 ? len + 1 : len * 2 - 37)
		for (u64 off = 0; off < 8; off++) {
			cheapest(sniffer, test_guard_end(&g, len), len, off, cost);
			cheapest(sniffer, test_guard_start(&g), len, off, cost);
			for (unsigned r = 0; r < WFS_NR_READINGS; r++)
				CHECK(cost[r] <= 2 * len * WFS_SNIFF_PLAIN);
		}
	for (unsigned r = 0; r < WFS_NR_READINGS; r++)
		for (size_t len = 0; len < 40; len++) {
			struct wfs_sample sample = {test_guard_start(&g), 100, 5};
			struct wfs_sample part = {test_guard_end(&small, len), len, 11};

			wfs_sniff_bytes(sniffer, r, &sample, &part, byte_cost);
			for (size_t i = 0; i < len; i++)
				CHECK(byte_cost[i] > 0);
		}
	test_guard_free(&g);
	test_guard_free(&small);
	PASS("nothing outside a sample is read");
}

int main(void)
{
	struct wfs_sniffer *sniffer = wfs_sniffer_new();

	CHECK(sniffer);
	test_readings();
	test_words(sniffer);
	test_records(sniffer);
	test_modes(sniffer);
	test_no_words(sniffer);
	test_bounds(sniffer);
	free(sniffer);
	return 0;
}
