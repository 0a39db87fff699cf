/* test_wide_pool.c - wide pools from and to bytes: every rule of FORMAT.md 4.1, and what decoders are given. */
#include "wide_model.h"

static u8 bytes[WFS_WIDE_POOL_MAX_BYTES];

/* Parses a pool that lies against a guard page. */
static const char *parse(const struct test_guard *guard, const u8 *from, size_t len, struct wfs_wide_pool *pool,
			 size_t *used)
{
	const char *reason = NULL;
	u8 *p = test_guard_end(guard, len);
	enum wfs_status status;

	memcpy(p, from, len);
	status = wfs_wide_pool_parse(p, len, pool, used, &reason);
	CHECK(reason ? status == WFS_BAD_DATA : status == WFS_OK);
	return reason;
}

static void test_round_trip(const struct test_guard *guard)
{
	uint64_t rng = 1;

	for (unsigned i = 0; i < 400; i++) {
		struct wfs_wide_pool pool, back;
		size_t used = 0, len;

		wide_model_pool(&rng, 1 + i % 12, 1 + (unsigned)test_rand_below(&rng, 32), &pool);
		len = wfs_wide_pool_write(&pool, bytes);
		CHECK(len <= sizeof(bytes));
		CHECK(!parse(guard, bytes, len, &back, &used) && used == len);
		CHECK(wide_pools_equal(&pool, &back));
		for (size_t cut = 0; cut < len; cut += 1 + cut / 7) {
			const char *reason = parse(guard, bytes, cut, &back, &used);

			CHECK(reason && (strstr(reason, "cut short") || strstr(reason, "frequency")));
		}
	}
	PASS("pools of every field come back from their bytes, and are refused when cut off");
}

static void test_rules(const struct test_guard *guard)
{
	/* 1 table of a field of 6, tail 1 and 2; names 3 and 4: 4000 and 90, the escape 6. */
	static const u8 good[] = {1, 6, 2, 0, 9, 0, 1, 0, 2, 0, 3, 2, 0xA0, 31, 90, 6};
	static const struct {
		size_t at;
		u8 value;
		const char *reason;
	} rule[] = {
		{0, 0, "wide pool header is not valid"},
		{0, 33, "wide pool header is not valid"},
		{1, 0, "wide pool header is not valid"},
		{1, 13, "wide pool header is not valid"},
		{3, 1, "wide pool header is not valid"},
		{4, 64, "wide pool header is not valid"},
		{5, 1, "wide pool header is not valid"},
		{6, 64, "wide pool tail value is not valid"},
		{6, 2, "wide pool tail value is not valid"},
		{7, 1, "wide pool tail value is not valid"},
		{10, 63, "wide table header is not valid"},
		{11, 0, "wide table header is not valid"},
		{11, 62, "wide table header is not valid"},
		{12, 0xA1, "wide table frequencies do not sum up to 4096"},
		{13, 0, "wide table frequency is not valid"},
		{13, 32, "wide table frequency is not valid"},
		{14, 89, "wide table frequencies do not sum up to 4096"},
		{15, 0, "wide table frequencies do not sum up to 4096"},
	};
	static const u8 wide[] = {1, 12, 0, 0, 0, 0, 200, 56, 1}; /* names up to 255: one too many */
	static const u8 whole[] = {1, 6, 0, 0, 0, 0, 3, 1, 0x80, 32, 0};
	struct wfs_wide_pool pool;
	size_t used = 0;

	CHECK(!parse(guard, good, sizeof(good), &pool, &used) && used == sizeof(good));
	CHECK(pool.base == 9 && pool.freq[0][3] == 4000 && pool.freq[0][4] == 90 && pool.freq[0][255] == 6);
	for (size_t i = 0; i < WFS_ARRAY_LEN(rule); i++) {
		u8 bad[sizeof(good)];
		const char *reason;

		memcpy(bad, good, sizeof(good));
		bad[rule[i].at] = rule[i].value;
		reason = parse(guard, bad, sizeof(bad), &pool, &used);
		CHECK_MSG(reason && !strcmp(reason, rule[i].reason), "byte %zu = %u: %s", rule[i].at, rule[i].value,
			  reason ? reason : "accepted");
	}
	CHECK(!strcmp(parse(guard, wide, sizeof(wide), &pool, &used), "wide table header is not valid"));
	CHECK(!strcmp(parse(guard, whole, sizeof(whole), &pool, &used), "wide table frequency is not valid"));
	PASS("every rule of a pool refuses");
}

/* Each slot's name, its frequency and first slot; each escape byte's value. */
static void test_expansion(void)
{
	uint64_t rng = 2;

	for (unsigned i = 0; i < 60; i++) {
		struct wfs_wide_pool pool;
		struct wfs_wide_decode_pool *d;

		wide_model_pool(&rng, 1 + i % 12, 1 + (unsigned)test_rand_below(&rng, 32), &pool);
		d = wfs_wide_decode_pool_new(&pool);
		CHECK(d && d->nr_tables == pool.nr_tables && d->field == pool.field && d->base == pool.base);
		CHECK(1u << d->number_bits >= pool.nr_tables &&
		      (!d->number_bits || 1u << d->number_bits < 2u * pool.nr_tables));
		for (unsigned t = 0; t < 256; t++)
			CHECK(d->tail_top[t] == (t < pool.ntail ? pool.tail[t] << (16 - pool.field) : 0));
		for (unsigned t = 0; t < pool.nr_tables; t++) {
			unsigned slot = 0;

			for (unsigned name = 0; name < WFS_WIDE_NAMES; name++) {
				const unsigned f = pool.freq[t][name], first = slot;

				for (; slot < first + f; slot++)
					CHECK(d->table[t].name[slot] == name);
				CHECK(!f || d->table[t].entry[name] == (name | f << 8 | first << 20));
			}
			CHECK(slot == WFS_WIDE_SLOTS);
		}
		free(d);
	}
	PASS("decoders get every slot's name, frequency and first slot");
}

int main(void)
{
	struct test_guard guard = test_guard_new(WFS_WIDE_POOL_MAX_BYTES);

	test_round_trip(&guard);
	test_rules(&guard);
	test_expansion();
	test_guard_free(&guard);
	return 0;
}
