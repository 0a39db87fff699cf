/* wide_decode_avx512vbmi.c - the wide decoder for AVX-512 (VBMI and VBMI2, as for the split coding). Hot loop: row()
 * with all that it inlines.
 *
 * 32 states are two vectors. Slots are looked up with plain loads, put together by inserts: gathers are slower on some
 * processors and very slow where microcode guards them. A superrow is first decoded to names, then its fields and rest
 * bits are merged.
 */
#include "wide_decode.h"

#ifdef __x86_64__
#include "split_unit_avx512.h"

enum { QUARTERS = 4, QUARTER = WFS_LANES / QUARTERS };

/* ---- rows ---- */

/* The state of a block's decoding. */
struct work {
	const struct wfs_wide_view *v;
	const struct wfs_wide_decode_pool *pool;
	struct wfs_split s;
	struct wfs_wide_cursor cursor;
	size_t used; /* escapes */
	u8 lane_word[WFS_LANES];
	const struct wfs_wide_decode_table *of[WFS_LANES]; /* table of each position of a row that has several */
};
struct lanes {
	__m512i x[2];
	const u8 *p;
};

/* The entries of 16 slots. of: their tables; NULL: all have the table `one`. */
AVX512_INLINE __m512i look_up(const struct wfs_wide_decode_table *one, const struct wfs_wide_decode_table *const *of,
			      __m512i slot)
{
	_Alignas(64) u32 s[QUARTER];
	u32 e[QUARTER];
	__m128i four[4];

	_mm512_store_si512(s, slot);
#pragma GCC unroll 16
	for (unsigned i = 0; i < QUARTER; i++) {
		const struct wfs_wide_decode_table *table = of ? of[i] : one;

		e[i] = table->entry[table->name[s[i]]];
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		four[i] = _mm_insert_epi32(
			_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128((int)e[4 * i]), (int)e[4 * i + 1], 1),
					 (int)e[4 * i + 2], 2),
			(int)e[4 * i + 3], 3);
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(four[1], four[0])),
				  _mm256_set_m128i(four[3], four[2]), 1);
}

/* A row: the names of its 64 positions. */
AVX512_INLINE __m512i row(struct lanes *l, const struct wfs_wide_decode_table *one,
			  const struct wfs_wide_decode_table *const *of)
{
	const __m512i low12 = _mm512_set1_epi32(0xfff);
	__m128i name[QUARTERS];

#pragma GCC unroll 4
	for (unsigned q = 0; q < QUARTERS; q++) {
		const __m512i x = l->x[q % 2], slot = _mm512_and_si512(x, low12);
		const __m512i entry = look_up(one, of ? of + QUARTER * q : NULL, slot);
		const __m512i freq = _mm512_and_si512(_mm512_srli_epi32(entry, 8), low12);
		const __m512i rank = _mm512_sub_epi32(slot, _mm512_srli_epi32(entry, 20));
		const __m512i moved =
			_mm512_add_epi32(_mm512_mullo_epi32(freq, _mm512_srli_epi32(x, WFS_WIDE_BITS)), rank);
		const __mmask16 need = _mm512_cmplt_epu32_mask(moved, _mm512_set1_epi32(WFS_WIDE_STATE_MIN));
		const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)l->p));

		l->x[q % 2] = _mm512_mask_or_epi32(moved, need, _mm512_slli_epi32(moved, 16),
						   _mm512_maskz_expand_epi32(need, next));
		l->p += 2 * (unsigned)_mm_popcnt_u32(need);
		name[q] = _mm512_cvtepi32_epi8(entry);
	}
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(name[1], name[0])),
				  _mm256_set_m128i(name[3], name[2]), 1);
}

/* The tables of the row that begins at word `first`: the only one, or NULL and w->of. */
AVX512_INLINE const struct wfs_wide_decode_table *row_tables(struct work *w, size_t first)
{
	const size_t end = WFS_MIN(first + WFS_LANES, w->v->n);
	const struct wfs_wide_decode_table *table;

	if (first == w->cursor.end)
		wfs_wide_cursor_next(&w->cursor, w->v, w->pool);
	table = &w->pool->table[w->cursor.table];
	if (wfs_likely(w->cursor.end >= end))
		return table;
	for (unsigned i = 0; i < WFS_LANES; i += 8)
		store(w->of + i, _mm512_set1_epi64((intptr_t)table));
	while (w->cursor.end < end) {
		const __m512i from = _mm512_set1_epi8((char)(w->cursor.end - first));
		const __mmask64 behind = _mm512_cmpge_epu8_mask(load(w->lane_word), from);

		wfs_wide_cursor_next(&w->cursor, w->v, w->pool);
		table = &w->pool->table[w->cursor.table];
		for (unsigned i = 0; i < WFS_LANES; i += 8)
			_mm512_mask_storeu_epi64(w->of + i, (__mmask8)(behind >> i),
						 _mm512_set1_epi64((intptr_t)table));
	}
	return NULL;
}

/* A row near the end of the stream. */
static __attribute__((noinline)) WFS_TARGET_AVX512VBMI bool
row_careful(struct work *w, struct lanes *l, const struct wfs_wide_decode_table *one, __m512i *name_ret)
{
	struct wfs_wide_state state = {.p = l->p};
	u8 name[WFS_LANES];
	bool good;

	for (unsigned i = 0; one && i < WFS_LANES; i++)
		w->of[i] = one;
	store(state.lane, l->x[0]);
	store(state.lane + QUARTER, l->x[1]);
	good = wfs_wide_row_careful(&state, w->v->stream_end, w->of, name);
	*l = (struct lanes){{load(state.lane), load(state.lane + QUARTER)}, state.p};
	*name_ret = load(name);
	return good;
}

/* ---- fields ---- */

/* The fields of a unit: the top bytes of rotated words and the bytes below. */
struct fields {
	_Alignas(64) u8 hi[WFS_SUPER], lo[WFS_SUPER];
};

/* Those that a row's names stand for. */
AVX512_INLINE void names_to_fields(const struct wfs_wide_decode_pool *pool, __m512i name, u8 *hi, u8 *lo)
{
	const __m512i zero = _mm512_setzero_si512(), base = _mm512_set1_epi16((short)pool->base);
	const __m128i up = _mm_cvtsi32_si128(16 - pool->field);
	const __m512i a = _mm512_sll_epi16(_mm512_add_epi16(_mm512_unpacklo_epi8(name, zero), base), up);
	const __m512i b = _mm512_sll_epi16(_mm512_add_epi16(_mm512_unpackhi_epi8(name, zero), base), up);
	const __m512i low8 = _mm512_set1_epi16(255);

	store(hi, _mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8)));
	store(lo, _mm512_packus_epi16(_mm512_and_si512(a, low8), _mm512_and_si512(b, low8)));
}

/* The escapes of a row. False: they run out. */
static bool name_escapes(struct work *w, u64 escapes, u8 *hi, u8 *lo)
{
	for (; escapes; escapes &= escapes - 1) {
		const unsigned pos = (unsigned)__builtin_ctzll(escapes);

		if (w->used == w->v->nr_escapes)
			return false;
		const unsigned top = w->pool->tail_top[w->v->escapes[w->used++]];

		hi[pos] = (u8)(top >> 8);
		lo[pos] = (u8)top;
	}
	return true;
}

/* The fields of `rows` rows from word `first` on. False: stream or escapes run out. */
static __attribute__((noinline)) WFS_TARGET_AVX512VBMI bool
decode_fields(struct work *w, struct lanes *state, size_t first, unsigned rows, struct fields *out)
{
	const __m512i escape = _mm512_set1_epi8((char)WFS_WIDE_ESCAPE);
	const u8 *stream_end = w->v->stream_end;
	struct lanes l = *state;
	__mmask64 escapes[WFS_SUPER_ROWS];

	for (unsigned r = 0; r < rows; r++, first += WFS_LANES) {
		const struct wfs_wide_decode_table *one = row_tables(w, first);
		__m512i name;

		if (wfs_unlikely(stream_end - l.p < WFS_WIDE_ROW_BYTES)) {
			struct lanes copy = l; /* l itself has no address and stays in registers */

			if (!row_careful(w, &copy, one, &name))
				return false;
			l = copy;
		} else if (wfs_likely(one)) {
			name = row(&l, one, NULL);
		} else {
			name = row(&l, NULL, w->of);
		}
		names_to_fields(w->pool, name, out->hi + WFS_LANES * r, out->lo + WFS_LANES * r);
		escapes[r] = _mm512_cmpeq_epi8_mask(name, escape);
	}
	*state = l;
	for (unsigned r = 0; r < rows; r++)
		if (!name_escapes(w, escapes[r], out->hi + WFS_LANES * r, out->lo + WFS_LANES * r))
			return false;
	return true;
}

/* ---- superrows ---- */

/* A superrow in mode 0 of a split that is a constant. */
AVX512_INLINE void merge(const struct wfs_split s, const struct fields *f, const u8 *rest, u8 *raw)
{
	struct unit u;

	unit_start(&u, s, rest);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * s.word)
		unit_row(&u, s, r, load(f->hi + WFS_LANES * r), load(f->lo + WFS_LANES * r), raw);
}

/* Any superrow of words of a size that is a constant. */
AVX512_INLINE void merge_any(struct wfs_split s, const unsigned word, unsigned mode, const struct fields *f,
			     const u8 *rest, u8 *raw)
{
	struct moded m;

	moded_start(&m, s, mode, rest);
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * word)
		moded_row(&m, word, r, load(f->hi + WFS_LANES * r), load(f->lo + WFS_LANES * r), raw);
}

static __attribute__((noinline)) WFS_TARGET_AVX512VBMI void merge_moded(struct wfs_split s, unsigned mode,
									const struct fields *f, const u8 *rest, u8 *raw)
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

/* Splits with code of their own: BF16 and F16, F32, bytes. */
#define SHAPES(X)                                                                                                      \
	X(2, 1, 6)                                                                                                     \
	X(2, 1, 7)                                                                                                     \
	X(2, 1, 8)                                                                                                     \
	X(2, 1, 9)                                                                                                     \
	X(2, 1, 10) X(2, 1, 11) X(2, 1, 12) X(4, 1, 9) X(4, 1, 10) X(4, 1, 11) X(4, 1, 12) X(1, 1, 5) X(1, 1, 6)       \
		X(1, 1, 7) X(1, 0, 8)

typedef void merge_fn(const struct fields *f, const u8 *rest, u8 *raw);

#define DEFINE_MERGE(word, rot, field)                                                                                 \
	static __attribute__((noinline))                                                                               \
	WFS_TARGET_AVX512VBMI void merge_##word##_##rot##_##field(const struct fields *f, const u8 *rest, u8 *raw)     \
	{                                                                                                              \
		merge((struct wfs_split){word, rot, field, (8 * word - field) % 8, (8 * word - field) / 8}, f, rest,   \
		      raw);                                                                                            \
	}
SHAPES(DEFINE_MERGE)

static merge_fn *choose(struct wfs_split s)
{
#define CHOOSE(word_, rot_, field_)                                                                                    \
	if (s.word == word_ && s.rot == rot_ && s.field == field_)                                                     \
		return merge_##word_##_##rot_##_##field_;
	SHAPES(CHOOSE)
	return NULL;
}

/* ---- blocks ---- */

/* The last unit and the proof. NULL, or why the block is refused. */
static WFS_TARGET_AVX512VBMI const char *finish(struct work *w, struct lanes *l, const u8 *rest, u8 *raw)
{
	const size_t last = (w->v->n - 1) / WFS_SUPER;
	const unsigned rows = wfs_last_rows(w->v->n);
	struct wfs_wide_state state;
	u16 top[WFS_SUPER];
	struct fields f;

	if (!decode_fields(w, l, last * WFS_SUPER, rows, &f))
		return WFS_SPLIT_UNPROVEN;
	state.p = l->p;
	for (unsigned i = 0; i < 2; i++)
		store(state.lane + QUARTER * i, l->x[i]);
	if (!wfs_wide_is_proven(&state, w->v, w->used))
		return WFS_SPLIT_UNPROVEN;
	for (unsigned i = 0; i < WFS_LANES * rows; i++)
		top[i] = (u16)(f.hi[i] << 8 | f.lo[i]);
	return wfs_words_finish(w->s, w->v->nr_modes ? w->v->mode[last] : 0, w->v->n, top, rest, w->v->literals,
				w->v->nr_literals, raw);
}

static WFS_TARGET_AVX512VBMI enum wfs_status decode_avx512vbmi(const struct wfs_wide_view *v,
							       const struct wfs_wide_decode_pool *pool,
							       struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
							       const char **reason_ret)
{
	struct work w = {.v = v, .pool = pool, .s = s, .cursor = wfs_wide_cursor_start(v, pool)};
	struct lanes l = {.x = {load(v->states), load(v->states + 64)}, .p = v->stream};
	merge_fn *const merge_plain = choose(s);
	const char *reason = WFS_SPLIT_UNPROVEN;
	const u8 *rest = v->rest;
	struct fields f;

	(void)scratch;
	for (unsigned i = 0; i < WFS_LANES; i++)
		w.lane_word[i] = (u8)wfs_lane_word(s.word, i);
	for (size_t super = 0; super < (v->n - 1) / WFS_SUPER; super++) {
		const unsigned mode = v->nr_modes ? v->mode[super] : 0;
		u8 *out = raw + super * WFS_SUPER * s.word;

		if (!decode_fields(&w, &l, super * WFS_SUPER, WFS_SUPER_ROWS, &f))
			goto out;
		if (merge_plain && !mode)
			merge_plain(&f, rest, out);
		else
			merge_moded(s, mode, &f, rest, out);
		rest += 8 * WFS_SUPER_ROWS * wfs_mode_rest_bits(s, mode);
	}
	reason = finish(&w, &l, rest, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

wfs_wide_decode_fn *wfs_wide_decode_avx512vbmi_get(void)
{
	return decode_avx512vbmi;
}

#else

wfs_wide_decode_fn *wfs_wide_decode_avx512vbmi_get(void)
{
	return NULL;
}

#endif
