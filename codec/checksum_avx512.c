/* checksum_avx512.c - the main loop of XXH3-64 with AVX-512: the 8 sums are one vector. */
#include "checksum.h"

#ifdef __x86_64__
#include <immintrin.h>

#define INLINE static WFS_ALWAYS_INLINE WFS_TARGET_AVX512VBMI

INLINE __m512i load(const void *p)
{
	return _mm512_loadu_si512(p);
}

/* The sums of a block: of the products, and of the words as they are. */
struct sums {
	__m512i products, words;
};

INLINE void add_stripe(struct sums *s, const u8 *stripe, __m512i secret)
{
	const __m512i words = load(stripe), keyed = _mm512_xor_si512(words, secret);

	s->products =
		_mm512_add_epi64(s->products, _mm512_mul_epu32(keyed, _mm512_shuffle_epi32(keyed, _MM_PERM_CDAB)));
	s->words = _mm512_add_epi64(s->words, words);
}

INLINE __m512i total(const struct sums *s)
{
	return _mm512_add_epi64(s->products, _mm512_shuffle_epi32(s->words, _MM_PERM_BADC));
}

INLINE void mix(struct sums *s)
{
	enum { XOR3 = 0x96 };
	const __m512i sum = total(s), secret = load(wfs_hash_secret + WFS_HASH_MIX);
	const __m512i mixed = _mm512_ternarylogic_epi64(sum, _mm512_srli_epi64(sum, 47), secret, XOR3);

	s->products = _mm512_mullo_epi64(mixed, _mm512_set1_epi64(WFS_HASH_PRIME));
	s->words = _mm512_setzero_si512();
}

WFS_TARGET_AVX512VBMI void wfs_hash_sums_avx512(u64 sum[8], const u8 *buf, size_t len)
{
	enum { NR = WFS_HASH_BLOCK / WFS_HASH_STRIPE };
	struct sums s = {load(sum), _mm512_setzero_si512()};
	const u8 *const end = buf + len, *const last = end - WFS_HASH_STRIPE, *next = wfs_hash_secret;
	__m512i secret[NR];

#pragma GCC unroll 16
	for (unsigned i = 0; i < NR; i++)
		secret[i] = load(wfs_hash_secret + WFS_HASH_STEP * i);
	for (; end - buf > WFS_HASH_BLOCK; buf += WFS_HASH_BLOCK) {
#pragma GCC unroll 16
		for (unsigned i = 0; i < NR; i++)
			add_stripe(&s, buf + WFS_HASH_STRIPE * i, secret[i]);
		mix(&s);
	}
	for (; buf < last; buf += WFS_HASH_STRIPE, next += WFS_HASH_STEP)
		add_stripe(&s, buf, load(next));
	add_stripe(&s, last, load(wfs_hash_secret + WFS_HASH_LAST));
	_mm512_storeu_si512(sum, total(&s));
}
#endif
