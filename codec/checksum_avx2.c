/* checksum_avx2.c - the main loop of XXH3-64 with AVX2: the 8 sums are two vectors. */
#include "checksum.h"

#ifdef __x86_64__
#include <immintrin.h>

#define INLINE static WFS_ALWAYS_INLINE WFS_TARGET_AVX2

/* Half of the sums of a block: of the products, and of the words as they are. */
struct sums {
	__m256i products, words;
};

INLINE __m256i load(const void *p)
{
	return _mm256_loadu_si256(p);
}

/* Half of a stripe. */
INLINE void add_half(struct sums *s, const u8 *stripe, const u8 *secret)
{
	const __m256i words = load(stripe), keyed = _mm256_xor_si256(words, load(secret));
	const __m256i swapped = _mm256_shuffle_epi32(keyed, _MM_SHUFFLE(2, 3, 0, 1));

	s->products = _mm256_add_epi64(s->products, _mm256_mul_epu32(keyed, swapped));
	s->words = _mm256_add_epi64(s->words, words);
}
INLINE void add_stripe(struct sums s[2], const u8 *stripe, const u8 *secret)
{
	add_half(&s[0], stripe, secret);
	add_half(&s[1], stripe + 32, secret + 32);
}

/* Four stripes, added up on their own first: that keeps the dependency chains short. */
INLINE void add_stripes(struct sums s[2], const u8 *stripe, const u8 *secret)
{
	const __m256i zero = _mm256_setzero_si256();
	struct sums part[2] = {{zero, zero}, {zero, zero}};

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		add_stripe(part, stripe + WFS_HASH_STRIPE * i, secret + WFS_HASH_STEP * i);
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		/* Not to be taken apart again: compilers would run out of registers. */
		__asm__("" : "+x"(part[i].products), "+x"(part[i].words));
		s[i].products = _mm256_add_epi64(s[i].products, part[i].products);
		s[i].words = _mm256_add_epi64(s[i].words, part[i].words);
	}
}

INLINE __m256i total(const struct sums *s)
{
	return _mm256_add_epi64(s->products, _mm256_shuffle_epi32(s->words, _MM_SHUFFLE(1, 0, 3, 2)));
}

INLINE void mix(struct sums *s, const u8 *secret)
{
	const __m256i sum = total(s), prime = _mm256_set1_epi64x(WFS_HASH_PRIME);
	const __m256i mixed = _mm256_xor_si256(_mm256_xor_si256(sum, _mm256_srli_epi64(sum, 47)), load(secret));
	const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), prime);

	s->products = _mm256_add_epi64(_mm256_mul_epu32(mixed, prime), _mm256_slli_epi64(high, 32));
	s->words = _mm256_setzero_si256();
}

WFS_TARGET_AVX2 void wfs_hash_sums_avx2(u64 sum[8], const u8 *buf, size_t len)
{
	struct sums s[2] = {{load(sum), _mm256_setzero_si256()}, {load(sum + 4), _mm256_setzero_si256()}};
	const u8 *const end = buf + len, *const last = end - WFS_HASH_STRIPE, *secret = wfs_hash_secret;

	for (; end - buf > WFS_HASH_BLOCK; buf += WFS_HASH_BLOCK) {
		for (unsigned i = 0; i < WFS_HASH_BLOCK / WFS_HASH_STRIPE; i += 4)
			add_stripes(s, buf + WFS_HASH_STRIPE * i, secret + WFS_HASH_STEP * i);
		mix(&s[0], wfs_hash_secret + WFS_HASH_MIX);
		mix(&s[1], wfs_hash_secret + WFS_HASH_MIX + 32);
	}
	for (; buf < last; buf += WFS_HASH_STRIPE, secret += WFS_HASH_STEP)
		add_stripe(s, buf, secret);
	add_stripe(s, last, wfs_hash_secret + WFS_HASH_LAST);
	_mm256_storeu_si256((void *)sum, total(&s[0]));
	_mm256_storeu_si256((void *)(sum + 4), total(&s[1]));
}
#endif
