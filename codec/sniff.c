/* sniff.c - the cost of each way to read a sample of unknown bytes. */
#include "sniff.h"
#include "log2_fixed.h"
#include "wide.h"

#include <stdlib.h>

enum {
	COUNTS = 256,	  /* counts below this are themselves counted */
	MIN_SAVED = 64,	  /* a part of a word that its top byte has to save */
	SELDOM_BITS = 16, /* of a value that the sample does not have */
	/* 1 / (2 ln 2) bits a symbol: counts of few words look more uneven than what made them (Miller, Madow). */
	CORRECTION = 185,
};

/* Those that give way to others come last. */
static const struct wfs_reading word_reading[WFS_NR_WORD_READINGS] = {
	{WFS_CLASS_NONE, 0}, {WFS_CLASS_BF16, 0},  {WFS_CLASS_BF16, 1}, {WFS_CLASS_F16, 0},  {WFS_CLASS_F16, 1},
	{WFS_CLASS_F32, 0},  {WFS_CLASS_F32, 1},   {WFS_CLASS_F32, 2},	{WFS_CLASS_F32, 3},  {WFS_CLASS_F64, 0},
	{WFS_CLASS_F64, 1},  {WFS_CLASS_F64, 2},   {WFS_CLASS_F64, 3},	{WFS_CLASS_F64, 4},  {WFS_CLASS_F64, 5},
	{WFS_CLASS_F64, 6},  {WFS_CLASS_F64, 7},   {WFS_CLASS_E4M3, 0}, {WFS_CLASS_E5M2, 0}, {WFS_CLASS_I8, 0},
	{WFS_CLASS_I16, 0},  {WFS_CLASS_I16, 1},   {WFS_CLASS_I32, 0},	{WFS_CLASS_I32, 1},  {WFS_CLASS_I32, 2},
	{WFS_CLASS_I32, 3},  {WFS_CLASS_BYTES, 0},
};

struct wfs_reading wfs_reading_get(unsigned number)
{
	unsigned class = WFS_FIRST_RECORDS;

	if (number < WFS_NR_WORD_READINGS)
		return word_reading[number];
	for (number -= WFS_NR_WORD_READINGS; number >= wfs_class_step(class); class ++)
		number -= wfs_class_step(class);
	return (struct wfs_reading){(u8) class, (u8)number};
}

struct wfs_sniffer *wfs_sniffer_new(void)
{
	return calloc(1, sizeof(struct wfs_sniffer));
}

u32 wfs_sniff_lz4(struct wfs_sniffer *sniffer, const u8 *raw, size_t len)
{
	int comp_len =
		LZ4_compress_fast_extState(&sniffer->lz4, (const char *)raw, sniffer->comp, (int)len, (int)len - 1, 1);

	return (comp_len > 0 ? (u32)comp_len : (u32)len) * WFS_SNIFF_PLAIN;
}

/* ---- fields ---- */

/* The words of a reading inside a sample. */
static struct wfs_block_cut words_of(struct wfs_reading reading, const struct wfs_sample *sample)
{
	unsigned word = wfs_class_split(reading.class).word;

	return wfs_block_cut(word, (unsigned)((sample->off + word - reading.at) % word), sample->len);
}

/* The coded field of the word at p: it lies in the top 16 bits, the sign included. */
static WFS_ALWAYS_INLINE unsigned field_at(struct wfs_split s, const u8 *p)
{
	unsigned top = s.word == 1 ? (unsigned)*p << 8 : wfs_load16(p + s.word - 2);

	return (top << s.rot & 0xffff) >> (16 - s.field);
}

static void count_fields(struct wfs_sniffer *sniffer, struct wfs_split s, const u8 *raw, size_t nr)
{
	memset(sniffer->hist, 0, sizeof(sniffer->hist[0]) << s.field);
	for (size_t i = 0; i < nr; i++)
		sniffer->hist[field_at(s, raw + i * s.word)]++;
}

static u64 n_log_n(u64 n)
{
	return n ? n * wfs_log2_q16((u32)n) / (65536 / WFS_SNIFF_UNIT) : 0;
}

/* A table in the making: its commonest values are symbols, the next ones the tail, the others literals. */
struct alphabet {
	unsigned symbols, tail; /* room left */
	unsigned nr;		/* symbols */
	u64 own;		/* sum of count * log2(count) over them */
	u32 escapes, literals;	/* words */
};

/* Takes in nr values that occur count times each. */
static void alphabet_add(struct alphabet *a, u32 count, unsigned nr)
{
	unsigned coded = WFS_MIN(nr, a->symbols), tail = WFS_MIN(nr - coded, a->tail);

	a->symbols -= coded;
	a->tail -= tail;
	a->nr += coded;
	a->own += coded * n_log_n(count);
	a->escapes += (nr - coded) * count;
	a->literals += (nr - coded - tail) * count;
}

u64 wfs_sniff_counts(const u16 *hist, size_t nr_values, u64 nr, unsigned symbols, unsigned tail, unsigned word)
{
	struct alphabet a = {.symbols = symbols, .tail = tail};
	u16 values[COUNTS] = {0};
	u64 cost;

	for (size_t v = 0; v < nr_values; v += 4) {
		if (!wfs_load64(hist + v)) /* most values do not occur */
			continue;
		for (size_t i = v; i < v + 4; i++)
			if (hist[i] < COUNTS)
				values[hist[i]]++;
			else
				alphabet_add(&a, hist[i], 1);
	}
	for (u32 count = COUNTS - 1; count; count--)
		if (values[count])
			alphabet_add(&a, count, values[count]);
	cost = n_log_n(nr) - a.own - n_log_n(a.escapes) + (u64)a.nr * CORRECTION;
	return cost + WFS_SNIFF_UNIT * (4 * (u64)a.escapes + 8u * (4u + word) * (u64)a.literals);
}

/* Whether the top bytes of words that start at `at` hold less than they could: where they do not, no word saves
 * anything. Quick, and most readings of most bytes fall to it. byte_hist: a histogram for each offset modulo 8. */
static bool top_bytes_save(struct wfs_sniffer *sniffer, struct wfs_split s, unsigned at)
{
	u16 *sum = sniffer->hist;
	u64 nr = 0, cost;

	memset(sum, 0, 256 * sizeof(*sum));
	for (unsigned place = (at + s.word - 1u) % s.word; place < 8; place += s.word)
		for (unsigned v = 0; v < 256; v++)
			sum[v] = (u16)(sum[v] + sniffer->byte_hist[place][v]);
	for (unsigned v = 0; v < 256; v++)
		nr += sum[v];
	cost = wfs_sniff_counts(sum, 256, nr, 256, 0, 1);
	return cost + nr * s.word * (WFS_SNIFF_PLAIN / MIN_SAVED) < nr * WFS_SNIFF_PLAIN;
}

static void count_bytes(struct wfs_sniffer *sniffer, const struct wfs_sample *sample)
{
	memset(sniffer->byte_hist, 0, sizeof(sniffer->byte_hist));
	for (size_t i = 0; i < sample->len; i++)
		sniffer->byte_hist[(sample->off + i) % 8][sample->raw[i]]++;
}

/* ---- rest bits ---- */

/* Rest bits a word of one superrow, as the best mode leaves them. */
static unsigned rest_bits(struct wfs_split s, const u8 *raw, size_t nr)
{
	unsigned bits = 8u * s.word - s.field, zeros;
	size_t len = nr * s.word;
	u64 any = 0, all = UINT64_MAX;

	if (!s.rot || s.word < 2)
		return bits;
	for (size_t i = 0; i + 8 <= len; i += 8) {
		u64 v = wfs_load64(raw + i);

		any |= v;
		all &= v;
	}
	for (unsigned step = 32; step >= 8u * s.word; step /= 2) {
		any |= any >> step;
		all &= all >> step;
	}
	zeros = any ? (unsigned)__builtin_ctzll(any) : 64;
	bits -= WFS_MIN(zeros, bits - 1);
	return bits - (bits > 1 && (any >> (8u * s.word - 1) & 1) == (all >> (8u * s.word - 1) & 1));
}

static u64 words_cost(struct wfs_sniffer *sniffer, enum wfs_class class, const u8 *raw, size_t nr)
{
	const struct wfs_split s = wfs_class_split(class);
	const bool wide = class == WFS_CLASS_BYTES;
	const unsigned symbols = wide ? WFS_WIDE_NAMES - 1 : WFS_MAX_SYMS - 1;
	const unsigned tail = wide ? WFS_WIDE_MAX_TAIL : WFS_MAX_TAIL;
	u64 rest = 0;

	for (size_t i = 0; i < nr; i += WFS_SUPER) {
		size_t part = WFS_MIN(nr - i, (size_t)WFS_SUPER);

		rest += part * rest_bits(s, raw + i * s.word, part);
	}
	count_fields(sniffer, s, raw, nr);
	return WFS_SNIFF_UNIT * rest + wfs_sniff_counts(sniffer->hist, (size_t)1 << s.field, nr, symbols, tail, s.word);
}

/* Classes that have to save one part in this more where another one serves: words of 16 bits with few exponents are
 * floats rather than integers, and the wide coding decodes slower than the split one. */
static unsigned second_choice(enum wfs_class class)
{
	return class == WFS_CLASS_BYTES ? 64 : class == WFS_CLASS_I16 || class == WFS_CLASS_I32 ? 128 : 0;
}

void wfs_sniff_costs(struct wfs_sniffer *sniffer, const struct wfs_sample *sample, u32 *cost_ret)
{
	const u64 plain = (u64)sample->len * WFS_SNIFF_PLAIN;
	u64 least = plain;
	bool served = false;

	cost_ret[0] = wfs_sniff_lz4(sniffer, sample->raw, sample->len);
	count_bytes(sniffer, sample);
	for (unsigned r = 1; r < WFS_NR_WORD_READINGS; r++) {
		struct wfs_reading way = word_reading[r];
		struct wfs_split s = wfs_class_split(way.class);
		struct wfs_block_cut cut = words_of(way, sample);
		u64 cost = 2 * plain;

		if (top_bytes_save(sniffer, s, way.at))
			cost = words_cost(sniffer, way.class, sample->raw + cut.head, cut.nr_words) * sample->len /
			       WFS_MAX(cut.nr_words * s.word, (size_t)1);
		if (second_choice(way.class) && served)
			cost += plain / second_choice(way.class);
		else
			served |= cost < plain - plain / WFS_SNIFF_MIN_GAIN;
		cost_ret[r] = (u32)WFS_MIN(cost, 2 * plain);
		least = WFS_MIN(least, cost);
	}
	wfs_sniff_records(sniffer, sample, plain - least, cost_ret + WFS_NR_WORD_READINGS);
}

/* ---- single bytes ---- */

void wfs_sniff_value_costs(struct wfs_sniffer *sniffer, size_t nr_values, u64 nr, unsigned rest_bits, unsigned word)
{
	for (size_t v = 0; v < nr_values; v++) {
		u32 count = sniffer->hist[v], bits = SELDOM_BITS * 65536;

		if (count)
			bits = wfs_log2_q16((u32)nr) - wfs_log2_q16(count);
		sniffer->cost[v] = (u16)((WFS_SNIFF_UNIT * rest_bits + bits / (65536 / WFS_SNIFF_UNIT)) / word);
	}
}

void wfs_sniff_bytes(struct wfs_sniffer *sniffer, unsigned reading, const struct wfs_sample *sample,
		     const struct wfs_sample *part, u16 *cost_ret)
{
	struct wfs_reading way = wfs_reading_get(reading);
	struct wfs_split s = wfs_class_split(way.class);
	struct wfs_block_cut cut;

	for (size_t i = 0; i < part->len; i++)
		cost_ret[i] = WFS_SNIFF_PLAIN;
	if (reading == WFS_NO_READING)
		return;
	if (reading >= WFS_NR_WORD_READINGS) {
		wfs_sniff_record_bytes(sniffer, way, sample, part, cost_ret);
		return;
	}
	cut = words_of(way, sample);
	count_fields(sniffer, s, sample->raw + cut.head, cut.nr_words);
	wfs_sniff_value_costs(sniffer, (size_t)1 << s.field, cut.nr_words, 8u * s.word - s.field, s.word);
	cut = words_of(way, part);
	for (size_t i = cut.head; i < part->len - cut.tail; i++)
		cost_ret[i] = sniffer->cost[field_at(s, part->raw + cut.head + (i - cut.head) / s.word * s.word)];
}
