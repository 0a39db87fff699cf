/* grid_expand_avx512.c - codes to words with AVX-512 and VBMI: 64 at a time. Hot loops: all of the file but its last
 * two functions.
 *
 * The values of the codes live in registers as byte planes, 128 entries in two registers; where a sign is apart it is
 * put in afterwards. Tiles of fewer than NARROW columns get a vector of scales, one a word. Where a tile has many words
 * in the block the words that its codes stand for are made once: 89 GB/s against 33 on Zen 5.
 *
 * 64 words are written even where fewer are wanted: the next ones overwrite them. Only at the block's end stores are
 * masked.
 */
#include "grid_rows.h"

#ifdef __x86_64__
#include "split_unit_avx512.h"

enum { STEP = 64, NARROW = 64, STRIP = 512, MANY = 256, MAX_PALETTES = 128 };
_Static_assert((int)WFS_GRID_CODE_SLACK >= STEP && (int)WFS_GRID_SCALE_SLACK >= STEP, "steps are not cut");

/* The values as planes: plane[k][i] has byte k of values 64 * i and on. */
struct values {
	__m512i plane[4][4];
	__mmask64 skip_zero; /* negative codes name the entry after theirs */
};

/* ---- values ---- */

AVX512_INLINE void load_values(struct values *t, const struct wfs_grid_values *g)
{
	_Alignas(64) u8 plane[4][256];

	for (unsigned k = 0; k < 4; k++) {
		for (unsigned i = 0; i < 256; i += 16)
			_mm_store_si128((__m128i *)(plane[k] + i),
					_mm512_cvtepi32_epi8(_mm512_srli_epi32(load(g->value + i), 8 * k)));
		for (unsigned i = 0; i < 4; i++)
			t->plane[k][i] = load(plane[k] + 64 * i);
	}
	t->skip_zero = g->flags & WFS_GRID_NEG1 ? ~(__mmask64)0 : 0;
}

/* Four vectors of values of 64 codes, in order. list: 256 entries, else 128 and a sign. nr_planes: those that count. */
AVX512_INLINE void look_up(const struct values *t, const bool list, const unsigned nr_planes, const u8 *codes,
			   __m512i v[4])
{
	/* Lane order of words of 4 bytes (split.h), which interleaving undoes. */
	static const u8 lanes[64] = {
		0,  1,	2,  3,	16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51, 4,  5,	6,  7,	20, 21,
		22, 23, 36, 37, 38, 39, 52, 53, 54, 55, 8,  9,	10, 11, 24, 25, 26, 27, 40, 41, 42, 43,
		56, 57, 58, 59, 12, 13, 14, 15, 28, 29, 30, 31, 44, 45, 46, 47, 60, 61, 62, 63,
	};
	const __m512i code = _mm512_permutexvar_epi8(load(lanes), load(codes));
	const __mmask64 upper = _mm512_movepi8_mask(code);
	const __m512i entry = list ? code : _mm512_mask_add_epi8(code, upper & t->skip_zero, code, _mm512_set1_epi8(1));
	__m512i b[4];

#pragma GCC unroll 4
	for (unsigned k = 0; k < 4; k++) {
		b[k] = _mm512_setzero_si512();
		if (k < nr_planes)
			b[k] = _mm512_permutex2var_epi8(t->plane[k][0], entry, t->plane[k][1]);
		if (k < nr_planes && list)
			b[k] = _mm512_mask_mov_epi8(b[k], upper,
						    _mm512_permutex2var_epi8(t->plane[k][2], entry, t->plane[k][3]));
	}
	if (!list)
		b[3] = _mm512_ternarylogic_epi64(b[3], code, _mm512_set1_epi8(INT8_MIN), OR_AND);
	interleave(4, b, v);
}

/* ---- words ---- */

/* Every other 16 bits of two vectors, in order; which: 0 the low halves of dwords, 1 the high ones. */
AVX512_INLINE __m512i halves(const unsigned which, __m512i a, __m512i b)
{
	static const u16 even[32] = {
		0,  2,	4,  6,	8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
		32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62,
	};

	return _mm512_permutex2var_epi16(a, _mm512_add_epi16(load(even), _mm512_set1_epi16((short)which)), b);
}

/* Two vectors of binary32 numbers to BF16, to nearest: up where the low half is more than half a step, or that where
 * the high half is odd. */
AVX512_INLINE __m512i round_bf16(__m512i a, __m512i b)
{
	const __m512i low = halves(0, a, b), high = halves(1, a, b);
	const __m512i most =
		_mm512_sub_epi16(_mm512_set1_epi16(INT16_MIN), _mm512_and_si512(high, _mm512_set1_epi16(1)));

	return _mm512_mask_add_epi16(high, _mm512_cmpgt_epu16_mask(low, most), high, _mm512_set1_epi16(1));
}

/* 64 values, multiplied where target says so, to words; returns how many vectors they fill. */
AVX512_INLINE unsigned make_words(const enum wfs_grid_target target, const __m512i v[4], const __m512 scale[4],
				  __m512i out[4])
{
	__m512i f[4];

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		f[i] = v[i];
		if (target < WORDS2)
			f[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(v[i]), scale[i]));
		if (target == F32 || target == WORDS4)
			out[i] = f[i];
	}
	if (target == F32 || target == WORDS4)
		return 4;
#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		const __m512i a = f[2 * i], b = f[2 * i + 1];

		if (target == F16)
			out[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(_mm512_castsi512_ps(a),
											   _MM_FROUND_TO_NEAREST_INT)),
						    _mm512_cvtps_ph(_mm512_castsi512_ps(b), _MM_FROUND_TO_NEAREST_INT),
						    1);
		else if (target == BF16_NEAREST)
			out[i] = round_bf16(a, b);
		else
			out[i] = halves(target != WORDS2, a, b);
	}
	return 2;
}

/* The words of a tile's entries 0 to 127, as low and high bytes. */
struct palette {
	_Alignas(64) u8 low[128], high[128];
};

/* Where the next words come from and go. */
struct work {
	const struct wfs_grid_values *g;
	const u8 *codes;
	u8 *raw;
	size_t left;		 /* words up to the block's end */
	bool has_palettes;	 /* of the current row of tiles */
	struct palette *palette; /* MAX_PALETTES of them */
};

/* Stores 64 words, of which nr count. */
AVX512_INLINE void put_words(struct work *w, const unsigned nr_vectors, const __m512i *out, size_t nr)
{
	const unsigned word = nr_vectors;

	if (wfs_likely(w->left >= STEP)) {
#pragma GCC unroll 4
		for (unsigned i = 0; i < nr_vectors; i++)
			store(w->raw + 64 * i, out[i]);
	} else {
		for (unsigned i = 0; i < nr_vectors; i++) {
			const size_t bytes = w->left * word;
			const u64 in =
				bytes > 64 * i ? _bzhi_u64(~(u64)0, (u32)WFS_MIN(bytes - 64 * i, (size_t)64)) : 0;

			_mm512_mask_storeu_epi8(w->raw + 64 * i, in, out[i]);
		}
	}
	w->codes += nr;
	w->raw += nr * word;
	w->left -= nr;
}

/* nr words; scale: one a word, 64 at a time, or where step is 0 one for all. */
AVX512_INLINE void expand(struct work *w, const struct values *t, const bool list, const enum wfs_grid_target target,
			  size_t nr, const float *scale, const unsigned step)
{
	const unsigned nr_planes = target == WORDS2 ? 2 : 4;
	__m512 s[4];
	__m512i v[4], out[4];

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		s[i] = step ? _mm512_setzero_ps() : _mm512_set1_ps(*scale);
	for (size_t done = 0; done < nr; done += STEP) {
#pragma GCC unroll 4
		for (unsigned i = 0; step && i < 4; i++)
			s[i] = _mm512_loadu_ps(scale + done + 16 * i);
		look_up(t, list, nr_planes, w->codes, v);
		put_words(w, make_words(target, v, s, out), out, WFS_MIN(nr - done, (size_t)STEP));
	}
}

/* ---- palettes: words of 2 bytes, signs apart ---- */

AVX512_INLINE void make_palette(const struct wfs_grid_values *g, const enum wfs_grid_target target, float scale,
				struct palette *palette)
{
	static const u8 even[64] = {
		0,  2,	4,  6,	8,  10, 12,  14,  16,  18,  20,	 22,  24,  26,	28,  30,  32,  34,  36,	 38,  40, 42,
		44, 46, 48, 50, 52, 54, 56,  58,  60,  62,  64,	 66,  68,  70,	72,  74,  76,  78,  80,	 82,  84, 86,
		88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126,
	};
	const __m512i low = load(even), high = _mm512_add_epi8(low, _mm512_set1_epi8(1));
	const __m512 s = _mm512_set1_ps(scale), scales[4] = {s, s, s, s};

#pragma GCC unroll 2
	for (unsigned i = 0; i < 2; i++) {
		__m512i v[4], out[4];

#pragma GCC unroll 4
		for (unsigned k = 0; k < 4; k++)
			v[k] = load(g->value + 64 * i + 16 * k);
		make_words(target, v, scales, out);
		store(palette->low + 64 * i, _mm512_permutex2var_epi8(out[0], low, out[1]));
		store(palette->high + 64 * i, _mm512_permutex2var_epi8(out[0], high, out[1]));
	}
}

AVX512_INLINE void expand_palette(struct work *w, const struct palette *palette, __mmask64 skip_zero, size_t nr)
{
	static const u64 order[8] = {0, 4, 1, 5, 2, 6, 3, 7}; /* which interleaving undoes */
	const __m512i low0 = load(palette->low), low1 = load(palette->low + 64);
	const __m512i high0 = load(palette->high), high1 = load(palette->high + 64);

	for (size_t done = 0; done < nr; done += STEP) {
		const __m512i code = _mm512_permutexvar_epi64(load(order), load(w->codes));
		const __m512i entry =
			_mm512_mask_add_epi8(code, _mm512_movepi8_mask(code) & skip_zero, code, _mm512_set1_epi8(1));
		const __m512i low = _mm512_permutex2var_epi8(low0, entry, low1);
		const __m512i high = _mm512_ternarylogic_epi64(_mm512_permutex2var_epi8(high0, entry, high1), code,
							       _mm512_set1_epi8(INT8_MIN), OR_AND);
		const __m512i out[2] = {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};

		put_words(w, 2, out, WFS_MIN(nr - done, (size_t)STEP));
	}
}

/* Where a row of tiles begins: palettes for it, when its tiles have many words and are not too many. Those of one row
 * have them in one run, and not all of them are in the block. */
AVX512_INLINE void start_tile_row(struct work *w, const enum wfs_grid_target target, const struct wfs_grid_rows *r,
				  const struct wfs_grid_piece *p)
{
	const float *scale = p->scale - p->at;

	w->has_palettes = r->th != 1 && r->across > 1 && r->across <= MAX_PALETTES && p->words >= (u64)MANY * r->across;
	for (u32 i = 0; w->has_palettes && i < r->across; i++)
		make_palette(w->g, target, scale[i], &w->palette[i]);
}

/* ---- tiles ---- */

/* The scales of nr words to strip, the first tile's first `skip` words left out. May write 63 more. */
AVX512_INLINE void fill_strip(const float *scale, const unsigned nr_vectors, unsigned tw, unsigned skip, size_t nr,
			      float *strip)
{
	const float *const end = strip + nr;
	float *at = strip;

	for (unsigned width = tw - skip; at < end; at += width, width = tw) {
		const __m512 s = _mm512_set1_ps(*scale++);

#pragma GCC unroll 4
		for (unsigned i = 0; i < nr_vectors; i++)
			_mm512_storeu_ps(at + 16 * i, s);
	}
}

AVX512_INLINE void expand_narrow(struct work *w, const struct values *t, const bool list,
				 const enum wfs_grid_target target, const struct wfs_grid_piece *p)
{
	_Alignas(64) float strip[STRIP + 64];
	const unsigned tw = (unsigned)p->tw, per_strip = STRIP / tw * tw;
	const float *scale = p->scale;
	unsigned skip = (unsigned)p->skip;

	if (tw == 1) {
		expand(w, t, list, target, p->nr_words, scale, 1);
		return;
	}
	for (size_t left = p->nr_words; left;) {
		const size_t nr = WFS_MIN(left, (size_t)per_strip - skip);

		if (tw <= 16)
			fill_strip(scale, 1, tw, skip, nr, strip);
		else if (tw <= 32)
			fill_strip(scale, 2, tw, skip, nr, strip);
		else
			fill_strip(scale, 4, tw, skip, nr, strip);
		expand(w, t, list, target, nr, strip, 1);
		scale += per_strip / tw;
		skip = 0;
		left -= nr;
	}
}

AVX512_INLINE bool may_have_palettes(const bool list, const enum wfs_grid_target target)
{
	return !list && (target == BF16_NEAREST || target == BF16_TRUNCATED || target == F16);
}

AVX512_INLINE void expand_piece(struct work *w, const struct values *t, const bool list,
				const enum wfs_grid_target target, const struct wfs_grid_piece *p)
{
	const bool palettes = may_have_palettes(list, target);
	u64 width = p->tw - p->skip;
	u32 i = 0;

	if (p->tw < NARROW) {
		expand_narrow(w, t, list, target, p);
		return;
	}
	for (size_t left = p->nr_words; left; width = p->tw, i++) {
		const size_t nr = (size_t)WFS_MIN(left, width);

		if (palettes && w->has_palettes) {
			expand_palette(w, &w->palette[p->at + i], t->skip_zero, nr);
		} else if (palettes && nr >= MANY) {
			make_palette(w->g, target, p->scale[i], w->palette);
			expand_palette(w, w->palette, t->skip_zero, nr);
		} else {
			expand(w, t, list, target, nr, p->scale + i, 0);
		}
		left -= nr;
	}
}

AVX512_INLINE void expand_block(const struct wfs_grid_view *v, const struct wfs_grid_values *g, const bool list,
				const enum wfs_grid_target target, const u8 *codes, const float *scale, u8 *raw)
{
	struct palette palette[MAX_PALETTES];
	struct work w = {.g = g, .codes = codes, .raw = raw, .left = v->n, .palette = palette};
	struct wfs_grid_piece piece;
	struct values t;

	load_values(&t, g);
	if (target >= WORDS2) {
		static const float none = 1;

		expand(&w, &t, list, target, v->n, &none, 0);
		return;
	}
	for (u32 i = 0; i < v->nr_segments; i++) {
		struct wfs_grid_rows rows = wfs_grid_rows_start(v, i, &scale);

		while (wfs_grid_rows_next(&rows, &piece)) {
			if (may_have_palettes(list, target) && piece.words && piece.tw >= NARROW)
				start_tile_row(&w, target, &rows, &piece);
			expand_piece(&w, &t, list, target, &piece);
		}
	}
}

/* ---- scales ---- */

static WFS_TARGET_AVX512VBMI void unpack_avx512(const struct wfs_grid_view *v, float *scale, u32 *lowest_ret,
						u32 *highest_ret)
{
	const __m256i low = _mm256_set1_epi32((int)v->low),
		      mask = _mm256_set1_epi32((int)_bzhi_u32(~0u, v->scale_bits));
	const __m128i up = _mm_cvtsi32_si128(23 - v->mantissa_bits);
	__m256i lowest = _mm256_set1_epi32(-1), highest = _mm256_setzero_si256();
	const u8 *packed = v->scales;
	_Alignas(64) u8 place[8][8]; /* of the 8 bytes that hold each of 8 scales, which begin and end with a byte */
	_Alignas(64) u64 shift[8];

	for (unsigned i = 0; i < 8; i++) {
		for (unsigned k = 0; k < 8; k++)
			place[i][k] = (u8)(i * v->scale_bits / 8 + k);
		shift[i] = i * v->scale_bits % 8;
	}
	for (size_t i = 0; i < v->nr_tiles; i += 8, packed += v->scale_bits) {
		const __mmask8 in = (__mmask8)_bzhi_u32(0xff, (u32)WFS_MIN(v->nr_tiles - i, (size_t)8));
		const __m512i bytes = _mm512_permutexvar_epi8(load(place), load(packed));
		const __m256i bits = _mm512_cvtepi64_epi32(_mm512_srlv_epi64(bytes, load(shift)));
		const __m256i sum = _mm256_add_epi32(_mm256_and_si256(bits, mask), low);

		lowest = _mm256_mask_min_epu32(lowest, in, lowest, sum);
		highest = _mm256_mask_max_epu32(highest, in, highest, sum);
		_mm256_storeu_si256((__m256i *)(scale + i), _mm256_sll_epi32(sum, up));
	}
	*lowest_ret = _mm512_reduce_min_epu32(_mm512_inserti64x4(_mm512_castsi256_si512(lowest), lowest, 1));
	*highest_ret = _mm512_reduce_max_epu32(_mm512_inserti64x4(_mm512_castsi256_si512(highest), highest, 1));
}

/* ---- variants ---- */

#define DEFINE_BLOCK(name, list, target)                                                                               \
	static __attribute__((noinline)) WFS_TARGET_AVX512VBMI void name(const struct wfs_grid_view *v,                \
									 const struct wfs_grid_values *g,              \
									 const u8 *codes, const float *scale, u8 *raw) \
	{                                                                                                              \
		expand_block(v, g, list, target, codes, scale, raw);                                                   \
	}
DEFINE_BLOCK(signs_bf16, false, BF16_NEAREST)
DEFINE_BLOCK(signs_bf16_truncated, false, BF16_TRUNCATED)
DEFINE_BLOCK(signs_f16, false, F16)
DEFINE_BLOCK(signs_f32, false, F32)
DEFINE_BLOCK(list_bf16, true, BF16_NEAREST)
DEFINE_BLOCK(list_bf16_truncated, true, BF16_TRUNCATED)
DEFINE_BLOCK(list_f16, true, F16)
DEFINE_BLOCK(list_f32, true, F32)
DEFINE_BLOCK(palette_2, true, WORDS2)
DEFINE_BLOCK(palette_4, true, WORDS4)

static void expand_avx512(const struct wfs_grid_view *v, const struct wfs_grid_values *g, const u8 *codes,
			  const float *scale, u8 *raw)
{
	/* Those whose signs are apart, then lists, which palettes always are. */
	static wfs_grid_expand_fn *const fn[2][NR_TARGETS] = {
		{
			[BF16_NEAREST] = signs_bf16,
			[BF16_TRUNCATED] = signs_bf16_truncated,
			[F16] = signs_f16,
			[F32] = signs_f32,
		},
		{
			[BF16_NEAREST] = list_bf16,
			[BF16_TRUNCATED] = list_bf16_truncated,
			[F16] = list_f16,
			[F32] = list_f32,
			[WORDS2] = palette_2,
			[WORDS4] = palette_4,
		},
	};

	fn[!!(g->flags & WFS_GRID_SIGNED)][wfs_grid_target(g)](v, g, codes, scale, raw);
}

wfs_grid_expand_fn *wfs_grid_expand_avx512_get(void)
{
	return expand_avx512;
}

wfs_grid_unpack_fn *wfs_grid_unpack_avx512_get(void)
{
	return unpack_avx512;
}

#else

wfs_grid_expand_fn *wfs_grid_expand_avx512_get(void)
{
	return NULL;
}

wfs_grid_unpack_fn *wfs_grid_unpack_avx512_get(void)
{
	return NULL;
}

#endif
