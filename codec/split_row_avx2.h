/* split_row_avx2.h - one row of the split coding with AVX2: 64 positions as two halves of 32, one byte a position.
 *
 * No gathers: the bucket rule (FORMAT.md 2.3) finds a slot's run with four shuffles of 16 entries and three compares,
 * and what a run means comes from two shuffles each. With 16 registers no table can stay in one: they are broadcast
 * from the decode table at each use, which costs a load only. Private to split_decode_avx2.c.
 */
#ifndef WFS_SPLIT_ROW_AVX2_H
#define WFS_SPLIT_ROW_AVX2_H

#include "split_merge.h"
#include "split_unit_avx2.h"

AVX2_INLINE __m256i load_both(const void *p)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}

/* What a loop keeps. The vectors are made once behind a barrier: compilers would rather build them anew at every use.
 */
struct constants {
	__m256i low8, low4, sign;
	const u64 *spread;
};
AVX2_INLINE struct constants constants_make(struct wfs_scratch *scratch)
{
	struct constants c = {
		.low8 = _mm256_set1_epi16(0x00ff),
		.low4 = _mm256_set1_epi8(0x0f),
		.sign = _mm256_set1_epi8((char)0x80),
		.spread = scratch->spread[0][0],
	};

	__asm__("" : "+x"(c.low8), "+x"(c.low4), "+x"(c.sign), "+r"(c.spread));
	return c;
}

/* ---- rANS ---- */

struct strand {
	__m256i l[2], h[2];
	const u8 *p;
};

/* Run numbers as indices for the two halves of a 32-entry table: bit 7 set where the run is in the other half. */
struct index {
	__m256i low, high;
};

/* One row's field: top byte and the byte below, halves of 32 positions, and which positions are escapes. */
struct row {
	struct index run[2];
	__m256i hi[2], lo[2];
	u32 escapes[2];
};

/* Both halves look up in one table at a time. */
AVX2_INLINE void look_up(const u8 *table, const struct index i[2], __m256i found[2])
{
	const __m256i low = load_both(table), high = load_both(table + 16);

	found[0] = _mm256_or_si256(_mm256_shuffle_epi8(low, i[0].low), _mm256_shuffle_epi8(high, i[0].high));
	found[1] = _mm256_or_si256(_mm256_shuffle_epi8(low, i[1].low), _mm256_shuffle_epi8(high, i[1].high));
}

/* The next stream bytes at the 16 positions whose bits are set, anything elsewhere. low2, high2: twice the masks of the
 * positions 0 to 7 and 8 to 15. */
AVX2_INLINE __m128i take16(const u64 *spread, u32 low2, u32 high2, const u8 *p)
{
	const __m128i order = _mm_add_epi8(_mm_load_si128((const void *)(spread + low2)),
					   _mm_load_si128((const void *)(spread + 512 + high2)));

	return _mm_shuffle_epi8(_mm_loadu_si128((const void *)p), order);
}

/* The runs of 64 slots. bucket[] is biased so that runs 0 to 15 become 0x70 to 0x7f and the others 0x80 and more. */
AVX2_INLINE void find_runs(const struct constants *c, const struct wfs_decode_table *d, const __m256i l[2],
			   struct index i[2])
{
	__m256i bucket[2], biased[2];

#pragma GCC unroll 2
	for (unsigned half = 0; half < 2; half++) {
		bucket[half] = _mm256_and_si256(_mm256_srli_epi16(l[half], 4), c->low4);
		biased[half] = _mm256_xor_si256(l[half], c->sign);
		i[half].low = _mm256_shuffle_epi8(load_both(d->bucket), bucket[half]);
	}
#pragma GCC unroll 3
	for (unsigned n = 0; n < 3; n++) {
		const __m256i start = load_both(d->start[n]);

#pragma GCC unroll 2
		for (unsigned half = 0; half < 2; half++) {
			const __m256i past = _mm256_cmpgt_epi8(biased[half], _mm256_shuffle_epi8(start, bucket[half]));

			i[half].low = _mm256_sub_epi8(i[half].low, past);
		}
	}
	i[0].high = _mm256_xor_si256(i[0].low, c->sign);
	i[1].high = _mm256_xor_si256(i[1].low, c->sign);
}

/* 32 states moved on: x = f * h + rank, at most 255 * 255 + 254, in 16 bits; even positions and odd ones apart. */
AVX2_INLINE void step(const struct constants *c, __m256i f, __m256i rank, __m256i *l, __m256i *h, const u8 **p)
{
	const __m256i f_even = _mm256_and_si256(f, c->low8), h_even = _mm256_and_si256(*h, c->low8);
	const __m256i f_odd = _mm256_srli_epi16(f, 8), h_odd = _mm256_srli_epi16(*h, 8);
	const __m256i even = _mm256_add_epi16(_mm256_mullo_epi16(f_even, h_even), _mm256_and_si256(rank, c->low8));
	const __m256i odd = _mm256_add_epi16(_mm256_mullo_epi16(f_odd, h_odd), _mm256_srli_epi16(rank, 8));
	const __m256i new_h = _mm256_blendv_epi8(odd, _mm256_srli_epi16(even, 8), c->low8);
	const __m256i new_l = _mm256_blendv_epi8(_mm256_slli_epi16(odd, 8), even, c->low8);
	const __m256i short_of_bits = _mm256_cmpeq_epi8(new_h, _mm256_setzero_si256());
	const u32 need = (u32)_mm256_movemask_epi8(short_of_bits);
	const u8 *p1 = *p + _mm_popcnt_u32(need & 0xffff);
	const __m128i bytes0 = take16(c->spread, need << 1 & 0x1fe, need >> 7 & 0x1fe, *p);
	const __m128i bytes1 = take16(c->spread, need >> 15 & 0x1fe, need >> 23 & 0x1fe, p1);

	*p = p1 + _mm_popcnt_u32(need >> 16);
	*h = _mm256_blendv_epi8(new_h, new_l, short_of_bits);
	*l = _mm256_blendv_epi8(new_l, _mm256_set_m128i(bytes1, bytes0), short_of_bits);
}

/* One row of a strand, in two steps: what its slots mean, then its states moved on. What is done with the meaning is
 * best written between the two: it need not be kept while the states are worked on. lo is filled only when asked for: a
 * field of up to 8 bits does not reach it. */
AVX2_INLINE struct row read_row(const struct constants *c, const struct wfs_decode_table *d, const struct strand *k,
				const bool with_lo)
{
	const __m256i escape_run = _mm256_set1_epi8((char)d->escape_run);
	struct row r;

	find_runs(c, d, k->l, r.run);
	r.escapes[0] = (u32)_mm256_movemask_epi8(_mm256_cmpeq_epi8(r.run[0].low, escape_run));
	r.escapes[1] = (u32)_mm256_movemask_epi8(_mm256_cmpeq_epi8(r.run[1].low, escape_run));
	look_up(d->hi, r.run, r.hi);
	if (with_lo)
		look_up(d->lo, r.run, r.lo);
	else
		r.lo[0] = r.lo[1] = _mm256_setzero_si256();
	return r;
}

AVX2_INLINE void leave_row(const struct constants *c, const struct wfs_decode_table *d, const struct row *r,
			   struct strand *k)
{
	__m256i f[2], start[2];

	look_up(d->freq, r->run, f);
	look_up(d->c, r->run, start);
	step(c, f[0], _mm256_sub_epi8(k->l[0], start[0]), &k->l[0], &k->h[0], &k->p);
	step(c, f[1], _mm256_sub_epi8(k->l[1], start[1]), &k->l[1], &k->h[1], &k->p);
}

#endif
