/* wide_decode_avx2.c - the wide decoder for AVX2: wide_decode_vec.h. Hot loop: row() with all that it inlines.
 *
 * As wide_decode_avx512vbmi.c, but 32 states are four vectors, and stream bits go to the lanes that need them by a
 * shuffle from a table of 256 (scratch->spread).
 */
#include "wide_decode.h"

#ifdef __x86_64__
#include "split_unit_avx2.h"

#define TARGET WFS_TARGET_AVX2

enum { EIGHT = 8, NR_VECTORS = WFS_WIDE_LANES / EIGHT };

/* ---- rows ---- */

/* States, and where the next bits are. */
struct lanes {
	__m256i x[NR_VECTORS];
	const u8 *p;
};

AVX2_INLINE void lanes_store(const struct lanes *l, struct wfs_wide_state *state)
{
	for (unsigned i = 0; i < NR_VECTORS; i++)
		store(state->lane + EIGHT * i, l->x[i]);
	state->p = l->p;
}
AVX2_INLINE struct lanes lanes_load(const struct wfs_wide_state *state)
{
	struct lanes l = {.p = state->p};

	for (unsigned i = 0; i < NR_VECTORS; i++)
		l.x[i] = load(state->lane + EIGHT * i);
	return l;
}

/* The names of the first and the last 32 positions. */
struct names {
	__m256i of[2];
};

AVX2_INLINE struct names names_load(const u8 *name)
{
	return (struct names){{load(name), load(name + 32)}};
}

/* The entries of 8 slots. of: their tables; NULL: all have the table `one`. */
AVX2_INLINE __m256i look_up(const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of,
			    __m256i slot)
{
	_Alignas(32) u32 s[EIGHT];
	u32 e[EIGHT];
	__m128i four[2];

	_mm256_store_si256((void *)s, slot);
#pragma GCC unroll 8
	for (unsigned i = 0; i < EIGHT; i++) {
		const struct wfs_wide_decode_table *table = of ? of[i] : one;

		e[i] = table->entry[table->name[s[i]]];
	}
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++)
		four[i] = _mm_insert_epi32(
			_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128((int)e[4 * i]), (int)e[4 * i + 1], 1),
					 (int)e[4 * i + 2], 2),
			(int)e[4 * i + 3], 3);
	return _mm256_set_m128i(four[1], four[0]);
}

/* Half a row: the names of 32 positions. */
AVX2_INLINE __m256i half_row(struct lanes *l, const struct wfs_scratch *scratch,
			     const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of)
{
	const __m256i low12 = _mm256_set1_epi32(0xfff), low8 = _mm256_set1_epi32(0xff);
	__m256i entry[NR_VECTORS];

#pragma GCC unroll 4
	for (unsigned i = 0; i < NR_VECTORS; i++) {
		const __m256i x = l->x[i], slot = _mm256_and_si256(x, low12);

		entry[i] = look_up(one, of ? of + EIGHT * i : NULL, slot);
		const __m256i freq = _mm256_and_si256(_mm256_srli_epi32(entry[i], 8), low12);
		const __m256i rank = _mm256_sub_epi32(slot, _mm256_srli_epi32(entry[i], 20));
		const __m256i moved =
			_mm256_add_epi32(_mm256_mullo_epi32(freq, _mm256_srli_epi32(x, WFS_WIDE_BITS)), rank);
		const __m256i need = _mm256_cmpeq_epi32(_mm256_srli_epi32(moved, 16), _mm256_setzero_si256());
		const unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(need));
		const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)scratch->spread[0][mask]));
		const __m256i next = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)l->p));
		const __m256i refilled =
			_mm256_or_si256(_mm256_slli_epi32(moved, 16), _mm256_permutevar8x32_epi32(next, order));

		l->x[i] = _mm256_blendv_epi8(moved, refilled, need);
		l->p += 2 * (unsigned)_mm_popcnt_u32(mask);
		entry[i] = _mm256_and_si256(entry[i], low8);
	}
	const __m256i in_lanes =
		_mm256_packus_epi16(_mm256_packus_epi32(entry[0], entry[1]), _mm256_packus_epi32(entry[2], entry[3]));
	return _mm256_permutevar8x32_epi32(in_lanes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

AVX2_INLINE struct names row(struct lanes *l, const struct wfs_scratch *scratch,
			     const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of)
{
	struct names names;

	names.of[0] = half_row(l, scratch, one, of);
	names.of[1] = half_row(l, scratch, one, of ? of + WFS_WIDE_LANES : NULL);
	return names;
}

/* ---- fields ---- */

/* Of 32 positions. */
AVX2_INLINE u32 half_to_fields(const struct wfs_wide_decode_pool *pool, __m256i name, u8 *hi, u8 *lo)
{
	const __m256i zero = _mm256_setzero_si256(), base = _mm256_set1_epi16((short)pool->base);
	const __m256i low8 = _mm256_set1_epi16(255);
	const __m128i up = _mm_cvtsi32_si128(16 - pool->field);
	const __m256i a = _mm256_sll_epi16(_mm256_add_epi16(_mm256_unpacklo_epi8(name, zero), base), up);
	const __m256i b = _mm256_sll_epi16(_mm256_add_epi16(_mm256_unpackhi_epi8(name, zero), base), up);

	store(hi, _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8)));
	store(lo, _mm256_packus_epi16(_mm256_and_si256(a, low8), _mm256_and_si256(b, low8)));
	return (u32)_mm256_movemask_epi8(_mm256_cmpeq_epi8(name, _mm256_set1_epi8((char)WFS_WIDE_ESCAPE)));
}

AVX2_INLINE u64 names_to_fields(const struct wfs_wide_decode_pool *pool, struct names names, u8 *hi, u8 *lo)
{
	const u32 first = half_to_fields(pool, names.of[0], hi, lo);

	return first | (u64)half_to_fields(pool, names.of[1], hi + 32, lo + 32) << 32;
}

/* ---- superrows ---- */

AVX2_INLINE void unit_fields(struct unit *u, const struct wfs_split s, const unsigned r,
			     const struct wfs_wide_fields *f, u8 *raw)
{
	const __m256i hi[2] = {load(f->hi + WFS_LANES * r), load(f->hi + WFS_LANES * r + 32)};
	const __m256i lo[2] = {load(f->lo + WFS_LANES * r), load(f->lo + WFS_LANES * r + 32)};

	unit_row(u, s, r, hi, lo, raw);
}

AVX2_INLINE void moded_fields(const struct moded *m, const unsigned word, unsigned r, const struct wfs_wide_fields *f,
			      u8 *raw)
{
	const __m256i hi[2] = {load(f->hi + WFS_LANES * r), load(f->hi + WFS_LANES * r + 32)};
	const __m256i lo[2] = {load(f->lo + WFS_LANES * r), load(f->lo + WFS_LANES * r + 32)};

	moded_row(m, word, r, hi, lo, raw);
}

#include "wide_decode_vec.h"

wfs_wide_decode_fn *wfs_wide_decode_avx2_get(void)
{
	return decode;
}

#else

wfs_wide_decode_fn *wfs_wide_decode_avx2_get(void)
{
	return NULL;
}

#endif
