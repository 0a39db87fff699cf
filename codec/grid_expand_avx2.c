/* grid_expand_avx2.c - codes to words with AVX2 and F16C. Hot loops: all of the file but its last two functions.
 *
 * The values of up to CHUNK codes are looked up one by one, which costs less than shuffles from 16 tables (15 against
 * 9 GB/s on Zen 5), then multiplied and rounded as vectors. Tiles of fewer than NARROW columns get a vector of scales,
 * one a word.
 *
 * STEP words are written even where fewer are wanted: the next ones overwrite them. Only the block's last ones go
 * through a buffer.
 */
#include "grid_rows.h"

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2_INLINE static WFS_ALWAYS_INLINE WFS_TARGET_AVX2

enum { STEP = 16, CHUNK = 256, NARROW = 64 };
_Static_assert((int)WFS_GRID_CODE_SLACK >= STEP && (int)WFS_GRID_SCALE_SLACK >= STEP, "steps are not cut");

/* Where the next words come from and go. */
struct work {
	const u32 *value;
	const u8 *codes;
	u8 *raw;
	size_t left; /* words up to the block's end */
};

/* ---- words ---- */

AVX2_INLINE __m256i round_bf16(__m256i f)
{
	const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(f, 16), _mm256_set1_epi32(1));

	return _mm256_add_epi32(_mm256_add_epi32(f, _mm256_set1_epi32(0x7fff)), odd);
}

/* Two vectors of values, multiplied where target says so, to STEP words; returns the bytes of a word. */
AVX2_INLINE unsigned make_words(const enum wfs_grid_target target, const __m256i v[2], const __m256 s[2],
				__m256i out[2])
{
	__m256i f[2] = {v[0], v[1]};

#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		if (target < WORDS2)
			f[i] = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(v[i]), s[i]));
		if (target == BF16_NEAREST)
			f[i] = round_bf16(f[i]);
		if (target == BF16_NEAREST || target == BF16_TRUNCATED)
			f[i] = _mm256_srli_epi32(f[i], 16);
		out[i] = f[i];
	}
	if (target == F32 || target == WORDS4)
		return 4;
	if (target == F16)
		out[0] = _mm256_inserti128_si256(
			_mm256_castsi128_si256(_mm256_cvtps_ph(_mm256_castsi256_ps(f[0]), _MM_FROUND_TO_NEAREST_INT)),
			_mm256_cvtps_ph(_mm256_castsi256_ps(f[1]), _MM_FROUND_TO_NEAREST_INT), 1);
	else
		out[0] = _mm256_permute4x64_epi64(_mm256_packus_epi32(f[0], f[1]), 0xd8);
	return 2;
}

/* Up to CHUNK words. */
AVX2_INLINE void expand_chunk(struct work *w, const enum wfs_grid_target target, size_t nr, const float *scale,
			      const unsigned step)
{
	const unsigned word = target == F32 || target == WORDS4 ? 4 : 2;
	_Alignas(32) u32 value[CHUNK];
	__m256 s[2];
	__m256i v[2], out[2];

	for (size_t i = 0; i < WFS_CEIL_DIV(nr, (size_t)STEP) * STEP; i++)
		value[i] = w->value[w->codes[i]];
	s[0] = s[1] = _mm256_set1_ps(*scale);
	for (size_t i = 0; i < nr; i += STEP) {
		u8 *to = w->raw + word * i, last[64];
		const bool cut = w->left - i < STEP;

#pragma GCC unroll 2
		for (unsigned k = 0; k < 2; k++) {
			v[k] = _mm256_load_si256((const __m256i *)(value + i + 8 * k));
			if (step)
				s[k] = _mm256_loadu_ps(scale + i + 8 * k);
		}
		make_words(target, v, s, out);
		if (wfs_unlikely(cut))
			to = last;
		_mm256_storeu_si256((__m256i *)to, out[0]);
		if (word == 4)
			_mm256_storeu_si256((__m256i *)(to + 32), out[1]);
		if (wfs_unlikely(cut))
			memcpy(w->raw + word * i, last, word * (w->left - i));
	}
	w->codes += nr;
	w->raw += word * nr;
	w->left -= nr;
}

/* nr words; scale: one a word, or where step is 0 one for all. */
AVX2_INLINE void expand(struct work *w, const enum wfs_grid_target target, size_t nr, const float *scale,
			const unsigned step)
{
	for (size_t done = 0; done < nr; done += CHUNK)
		expand_chunk(w, target, WFS_MIN(nr - done, (size_t)CHUNK), scale + step * done, step);
}

/* ---- tiles ---- */

/* The scales of nr words to strip, the first tile's first `skip` words left out. May write 63 more. */
AVX2_INLINE void fill_strip(const float *scale, const unsigned nr_vectors, unsigned tw, unsigned skip, size_t nr,
			    float *strip)
{
	const float *const end = strip + nr;
	float *at = strip;

	for (unsigned width = tw - skip; at < end; at += width, width = tw) {
		const __m256 s = _mm256_set1_ps(*scale++);

#pragma GCC unroll 8
		for (unsigned i = 0; i < nr_vectors; i++)
			_mm256_storeu_ps(at + 8 * i, s);
	}
}

AVX2_INLINE void expand_narrow(struct work *w, const enum wfs_grid_target target, const struct wfs_grid_piece *p)
{
	_Alignas(32) float strip[CHUNK + 64];
	const unsigned tw = (unsigned)p->tw, per_strip = CHUNK / tw * tw;
	const float *scale = p->scale;
	unsigned skip = (unsigned)p->skip;

	if (tw == 1) {
		expand(w, target, p->nr_words, scale, 1);
		return;
	}
	for (size_t left = p->nr_words; left;) {
		const size_t nr = WFS_MIN(left, (size_t)per_strip - skip);

		if (tw <= 8)
			fill_strip(scale, 1, tw, skip, nr, strip);
		else if (tw <= 16)
			fill_strip(scale, 2, tw, skip, nr, strip);
		else if (tw <= 32)
			fill_strip(scale, 4, tw, skip, nr, strip);
		else
			fill_strip(scale, 8, tw, skip, nr, strip);
		expand_chunk(w, target, nr, strip, 1);
		scale += per_strip / tw;
		skip = 0;
		left -= nr;
	}
}

AVX2_INLINE void expand_piece(struct work *w, const enum wfs_grid_target target, const struct wfs_grid_piece *p)
{
	const float *scale = p->scale;
	u64 width = p->tw - p->skip;

	if (p->tw < NARROW) {
		expand_narrow(w, target, p);
		return;
	}
	for (size_t left = p->nr_words; left; width = p->tw) {
		const size_t nr = (size_t)WFS_MIN(left, width);

		expand(w, target, nr, scale++, 0);
		left -= nr;
	}
}

AVX2_INLINE void expand_block(const struct wfs_grid_view *v, const struct wfs_grid_values *g,
			      const enum wfs_grid_target target, const u8 *codes, const float *scale, u8 *raw)
{
	struct work w = {g->value, codes, raw, v->n};
	struct wfs_grid_piece piece;

	if (target >= WORDS2) {
		static const float none = 1;

		expand(&w, target, v->n, &none, 0);
		return;
	}
	for (u32 i = 0; i < v->nr_segments; i++) {
		struct wfs_grid_rows rows = wfs_grid_rows_start(v, i, &scale);

		while (wfs_grid_rows_next(&rows, &piece))
			expand_piece(&w, target, &piece);
	}
}

#define DEFINE_BLOCK(name, target)                                                                                     \
	static __attribute__((noinline)) WFS_TARGET_AVX2 void name(const struct wfs_grid_view *v,                      \
								   const struct wfs_grid_values *g, const u8 *codes,   \
								   const float *scale, u8 *raw)                        \
	{                                                                                                              \
		expand_block(v, g, target, codes, scale, raw);                                                         \
	}
DEFINE_BLOCK(to_bf16, BF16_NEAREST)
DEFINE_BLOCK(to_bf16_truncated, BF16_TRUNCATED)
DEFINE_BLOCK(to_f16, F16)
DEFINE_BLOCK(to_f32, F32)
DEFINE_BLOCK(palette_2, WORDS2)
DEFINE_BLOCK(palette_4, WORDS4)

static void expand_avx2(const struct wfs_grid_view *v, const struct wfs_grid_values *g, const u8 *codes,
			const float *scale, u8 *raw)
{
	static wfs_grid_expand_fn *const fn[NR_TARGETS] = {
		[BF16_NEAREST] = to_bf16, [BF16_TRUNCATED] = to_bf16_truncated,
		[F16] = to_f16,		  [F32] = to_f32,
		[WORDS2] = palette_2,	  [WORDS4] = palette_4,
	};

	fn[wfs_grid_target(g)](v, g, codes, scale, raw);
}

wfs_grid_expand_fn *wfs_grid_expand_avx2_get(void)
{
	return expand_avx2;
}

#else

wfs_grid_expand_fn *wfs_grid_expand_avx2_get(void)
{
	return NULL;
}

#endif
