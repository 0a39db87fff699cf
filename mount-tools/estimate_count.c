/* estimate_count.c - counts the words of tensors. The loops of histogram_add are the ones that see every byte. */
#include "estimate.h"

#include <math.h>
#include <string.h>

static inline uint16_t load16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static unsigned nr_low_bytes(const struct dtype *d)
{
	return d->word_bytes > 2 ? d->word_bytes - 2u : 0;
}

void histogram_add(struct histogram *h, const struct dtype *d, const uint8_t *words, size_t nr_words)
{
	switch (d->word_bytes) {
	case 1:
		for (size_t i = 0; i < nr_words; i++)
			h->top[words[i]]++;
		break;
	case 2:
		for (size_t i = 0; i < nr_words; i++)
			h->top[load16(words + 2 * i)]++;
		break;
	case 4:
		for (size_t i = 0; i < nr_words; i++) {
			h->low[0][words[4 * i]]++;
			h->low[1][words[4 * i + 1]]++;
			h->top[load16(words + 4 * i + 2)]++;
		}
		break;
	default:
		for (size_t i = 0; i < nr_words; i++) {
			for (unsigned b = 0; b < MAX_LOW_BYTES; b++)
				h->low[b][words[8 * i + b]]++;
			h->top[load16(words + 8 * i + 6)]++;
		}
	}
}

void histogram_merge(struct histogram *h, const struct histogram *more)
{
	for (unsigned i = 0; i < ARRAY_LEN(h->top); i++)
		h->top[i] += more->top[i];
	for (unsigned b = 0; b < MAX_LOW_BYTES; b++)
		for (unsigned i = 0; i < 256; i++)
			h->low[b][i] += more->low[b][i];
}

/* Bits that nr of total words take together, each that is one value of them. */
static double value_bits(uint64_t nr, uint64_t total)
{
	return (double)nr * log2((double)total / (double)nr);
}

/* value: one of h->top; a second call for it adds nothing. */
static inline void take_value(struct histogram *h, const struct dtype *d, unsigned value, struct counts *c)
{
	uint64_t nr = h->top[value];
	unsigned top_bits = d->word_bytes == 1 ? 8 : 16;
	if (!nr)
		return;
	h->top[value] = 0;
	c->joint_bits += value_bits(nr, c->nr_words);
	if (d->exponent_bits)
		c->symbol[value >> (top_bits - symbol_bits(d))] += nr;
}

void histogram_reduce(struct histogram *h, const struct dtype *d, uint64_t nr_words, const uint8_t *words,
		      struct counts *counts_ret)
{
	struct counts *c = counts_ret;
	unsigned nr_values = d->word_bytes == 1 ? 1u << 8 : 1u << 16;
	memset(c, 0, sizeof(*c));
	c->nr_words = nr_words;
	if (words && nr_words < nr_values)
		for (size_t i = 0; i < nr_words; i++) {
			const uint8_t *end = words + (i + 1) * d->word_bytes;
			take_value(h, d, d->word_bytes == 1 ? end[-1] : load16(end - 2), c);
		}
	else
		for (unsigned value = 0; value < nr_values; value++)
			take_value(h, d, value, c);
	for (unsigned b = 0; b < nr_low_bytes(d); b++)
		for (unsigned i = 0; i < 256; i++)
			if (h->low[b][i])
				c->joint_bits += value_bits(h->low[b][i], nr_words);
	memset(h->low, 0, sizeof(h->low[0]) * nr_low_bytes(d));
}
