/* wide_decode_avx2.c - the wide decoder for AVX2. Hot loop: row() with all that it inlines.
 *
 * As wide_decode_avx512vbmi.c, but 32 states are four vectors, and stream bits go to the lanes that need them by a
 * shuffle from a table of 256 (scratch->spread).
 */
#include "wide_decode.h"

#ifdef __x86_64__
#include "split_unit_avx2.h"

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

/* ---- fields ---- */

/* The fields that 32 names stand for. */
AVX2_INLINE void names_to_fields(const struct wfs_wide_decode_pool *pool, __m256i name, u8 *hi, u8 *lo)
{
	const __m256i zero = _mm256_setzero_si256(), base = _mm256_set1_epi16((short)pool->base);
	const __m256i low8 = _mm256_set1_epi16(255);
	const __m128i up = _mm_cvtsi32_si128(16 - pool->field);
	const __m256i a = _mm256_sll_epi16(_mm256_add_epi16(_mm256_unpacklo_epi8(name, zero), base), up);
	const __m256i b = _mm256_sll_epi16(_mm256_add_epi16(_mm256_unpackhi_epi8(name, zero), base), up);

	store(hi, _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8)));
	store(lo, _mm256_packus_epi16(_mm256_and_si256(a, low8), _mm256_and_si256(b, low8)));
}

/* The fields of `rows` rows from word `first` on. False: stream or escapes run out. */
static __attribute__((noinline)) WFS_TARGET_AVX2 bool decode_fields(struct wfs_wide_walk *walk,
								    const struct wfs_scratch *scratch,
								    struct wfs_wide_state *state, size_t first,
								    unsigned rows, struct wfs_wide_fields *f)
{
	const __m256i escape = _mm256_set1_epi8((char)WFS_WIDE_ESCAPE);
	struct lanes l = lanes_load(state);
	u64 escapes[WFS_SUPER_ROWS];

	for (unsigned r = 0; r < rows; r++, first += WFS_LANES) {
		const struct wfs_wide_decode_table *one = wfs_wide_walk_row(walk, first);
		u8 careful[WFS_LANES];
		__m256i name[2];

		if (wfs_unlikely(walk->v->stream_end - l.p < WFS_WIDE_ROW_BYTES)) {
			lanes_store(&l, state);
			if (!wfs_wide_row_careful(walk, one, state, careful))
				return false;
			l = lanes_load(state);
			name[0] = load(careful);
			name[1] = load(careful + 32);
		} else if (wfs_likely(one)) {
			name[0] = half_row(&l, scratch, one, NULL);
			name[1] = half_row(&l, scratch, one, NULL);
		} else {
			name[0] = half_row(&l, scratch, NULL, walk->of);
			name[1] = half_row(&l, scratch, NULL, walk->of + WFS_WIDE_LANES);
		}
		escapes[r] = 0;
		for (unsigned half = 0; half < 2; half++) {
			const unsigned at = WFS_LANES * r + 32 * half;
			const __m256i escaped = _mm256_cmpeq_epi8(name[half], escape);

			names_to_fields(walk->pool, name[half], f->hi + at, f->lo + at);
			escapes[r] |= (u64)(u32)_mm256_movemask_epi8(escaped) << 32 * half;
		}
	}
	lanes_store(&l, state);
	for (unsigned r = 0; r < rows; r++)
		if (wfs_unlikely(escapes[r]) && !wfs_wide_name_escapes(walk, escapes[r], r, f))
			return false;
	return true;
}

/* ---- superrows ---- */

/* A superrow in mode 0 of a split that is a constant. */
AVX2_INLINE void merge(const struct wfs_split s, const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)
{
	struct unit u;

	unit_start(&u, s, rest);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * s.word) {
		const __m256i hi[2] = {load(f->hi + WFS_LANES * r), load(f->hi + WFS_LANES * r + 32)};
		const __m256i lo[2] = {load(f->lo + WFS_LANES * r), load(f->lo + WFS_LANES * r + 32)};

		unit_row(&u, s, r, hi, lo, raw);
	}
}

/* Any superrow of words of a size that is a constant. */
AVX2_INLINE void merge_any(struct wfs_split s, const unsigned word, unsigned mode, const struct wfs_wide_fields *f,
			   const u8 *rest, u8 *raw)
{
	struct moded m;

	moded_start(&m, s, mode, rest);
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * word) {
		const __m256i hi[2] = {load(f->hi + WFS_LANES * r), load(f->hi + WFS_LANES * r + 32)};
		const __m256i lo[2] = {load(f->lo + WFS_LANES * r), load(f->lo + WFS_LANES * r + 32)};

		moded_row(&m, word, r, hi, lo, raw);
	}
}

static __attribute__((noinline)) WFS_TARGET_AVX2 void
merge_moded(struct wfs_split s, unsigned mode, const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)
{
	switch (s.word) {
	case 1:
		merge_any(s, 1, mode, f, rest, raw);
		break;
	case 2:
		merge_any(s, 2, mode, f, rest, raw);
		break;
	case 4:
		merge_any(s, 4, mode, f, rest, raw);
		break;
	default:
		merge_any(s, 8, mode, f, rest, raw);
	}
}

#define DEFINE_MERGE(word, rot, field)                                                                                 \
	static __attribute__((noinline))                                                                               \
	WFS_TARGET_AVX2 void merge_##word##_##rot##_##field(const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)  \
	{                                                                                                              \
		merge(WFS_WIDE_SPLIT(word, rot, field), f, rest, raw);                                                 \
	}
WFS_WIDE_SHAPES(DEFINE_MERGE)

static wfs_wide_merge_fn *choose(struct wfs_split s)
{
	WFS_WIDE_SHAPES(WFS_WIDE_CHOOSE)
	return NULL;
}

/* ---- blocks ---- */

static WFS_TARGET_AVX2 enum wfs_status decode_avx2(const struct wfs_wide_view *v,
						   const struct wfs_wide_decode_pool *pool, struct wfs_split s, u8 *raw,
						   struct wfs_scratch *scratch, const char **reason_ret)
{
	const size_t last = (v->n - 1) / WFS_SUPER;
	struct wfs_wide_walk walk = wfs_wide_walk_start(v, pool, s);
	struct wfs_wide_state state = {.p = v->stream};
	wfs_wide_merge_fn *const merge_plain = choose(s);
	const char *reason = WFS_SPLIT_UNPROVEN;
	const u8 *rest = v->rest;
	struct wfs_wide_fields f;

	memcpy(state.lane, v->states, sizeof(state.lane));
	for (size_t super = 0; super < last; super++) {
		const unsigned mode = v->nr_modes ? v->mode[super] : 0;
		u8 *out = raw + super * WFS_SUPER * s.word;

		if (!decode_fields(&walk, scratch, &state, super * WFS_SUPER, WFS_SUPER_ROWS, &f))
			goto out;
		if (merge_plain && !mode)
			merge_plain(&f, rest, out);
		else
			merge_moded(s, mode, &f, rest, out);
		rest += 8 * WFS_SUPER_ROWS * wfs_mode_rest_bits(s, mode);
	}
	if (decode_fields(&walk, scratch, &state, last * WFS_SUPER, wfs_last_rows(v->n), &f))
		reason = wfs_wide_finish(&walk, &state, s, &f, rest, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

wfs_wide_decode_fn *wfs_wide_decode_avx2_get(void)
{
	return decode_avx2;
}

#else

wfs_wide_decode_fn *wfs_wide_decode_avx2_get(void)
{
	return NULL;
}

#endif
