/* estimate_schemes.c - the bytes of schemes that follow from counts: the order-0 bounds, Split12, K15, and what
 * exponent Huffman stores beside its exponents. */
#include "estimate.h"

#include <math.h>
#include <stdlib.h>

enum {
	WINDOW = 15,		   /* exponents that Split12 has codes for */
	SPLIT12_TENSOR_BYTES = 16, /* rows, columns, exceptions, base exponent */
	PALETTE = 15,		   /* symbols that K15 has codes for */
	K15_TENSOR_BYTES = 38,	   /* 15 symbols of 16 bits, number of escapes */
};

bool scheme_takes(enum scheme scheme, const struct dtype *d)
{
	switch (scheme) {
	case SCHEME_EXPONENT:
	case SCHEME_SPLIT12:
	case SCHEME_K15:
	case SCHEME_HUFFMAN:
		return d && d->exponent_bits;
	case SCHEME_JOINT:
	case SCHEME_ZSTD:
		return d;
	default:
		return true;
	}
}

/* Bytes of nr fields of `bits` bits, packed. 128 bits: hostile files are up to 2^63 bytes long. */
static uint64_t packed_bytes(uint64_t nr, unsigned bits)
{
	return (uint64_t)(((unsigned __int128)nr * bits + 7) / 8);
}

/* Of the words' bits that are not entropy-coded. */
static unsigned rest_bits(const struct dtype *d)
{
	return 8u * d->word_bytes - d->exponent_bits;
}

static uint64_t bound_bytes(double bits, uint64_t raw_len)
{
	uint64_t bytes = (uint64_t)ceil(bits / 8);
	return MIN(bytes, raw_len);
}

static uint64_t exponent_bound(const struct dtype *d, const uint64_t *exponent, uint64_t nr_words, uint64_t raw_len)
{
	double bits = 0;
	for (unsigned i = 0; i < 1u << d->exponent_bits; i++)
		if (exponent[i])
			bits += (double)exponent[i] * log2((double)nr_words / (double)exponent[i]);
	return bound_bytes(bits + (double)nr_words * rest_bits(d), raw_len);
}

static uint64_t split12(const struct dtype *d, const uint64_t *exponent, uint64_t nr_words, uint64_t nr_rows)
{
	uint64_t sum = 0, best = 0, nr_exceptions;
	for (unsigned i = 0; i < 1u << d->exponent_bits; i++) {
		sum += exponent[i];
		if (i >= WINDOW)
			sum -= exponent[i - WINDOW];
		best = MAX(best, sum);
	}
	nr_exceptions = nr_words - best;
	return SPLIT12_TENSOR_BYTES + packed_bytes(nr_words, 4) + packed_bytes(nr_words, rest_bits(d)) +
	       4 * (nr_rows + 1) + nr_exceptions * (4 + 2u * d->word_bytes);
}

static int compare_descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x < y) - (x > y);
}

static uint64_t k15(const struct dtype *d, const struct counts *c)
{
	uint64_t used[1 << MAX_SYMBOL_BITS], nr_escapes = c->nr_words;
	unsigned nr_used = 0;
	for (unsigned i = 0; i < 1u << symbol_bits(d); i++)
		if (c->symbol[i])
			used[nr_used++] = c->symbol[i];
	qsort(used, nr_used, sizeof(*used), compare_descending);
	for (unsigned i = 0; i < MIN(nr_used, (unsigned)PALETTE); i++)
		nr_escapes -= used[i];
	return K15_TENSOR_BYTES + packed_bytes(c->nr_words, 4) + packed_bytes(c->nr_words, d->mantissa_bits) +
	       packed_bytes(nr_escapes, symbol_bits(d));
}

void schemes_of_counts(const struct dtype *d, const struct counts *c, uint64_t raw_len, uint64_t nr_rows,
		       uint64_t bytes_ret[NR_SCHEMES])
{
	uint64_t exponent[1 << (MAX_SYMBOL_BITS - 1)] = {0};
	for (enum scheme s = 0; s < SCHEME_ZSTD; s++)
		bytes_ret[s] = raw_len;
	bytes_ret[SCHEME_JOINT] = bound_bytes(c->joint_bits, raw_len);
	if (!d->exponent_bits)
		return;
	for (unsigned i = 0; i < 1u << symbol_bits(d); i++)
		exponent[i & ((1u << d->exponent_bits) - 1)] += c->symbol[i];
	bytes_ret[SCHEME_EXPONENT] = exponent_bound(d, exponent, c->nr_words, raw_len);
	bytes_ret[SCHEME_SPLIT12] = coded_or_raw(split12(d, exponent, c->nr_words, nr_rows), raw_len);
	bytes_ret[SCHEME_K15] = coded_or_raw(k15(d, c), raw_len);
	bytes_ret[SCHEME_HUFFMAN] = coded_or_raw(
		huffman_bytes(d->exponent_bits, exponent) + packed_bytes(c->nr_words, rest_bits(d)), raw_len);
}
