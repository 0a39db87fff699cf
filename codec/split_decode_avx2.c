/* split_decode_avx2.c - the split decoder for AVX2: whole superrows, from rows (split_row_avx2.h) to words.
 *
 * Hot loops: superrow() and decode_supers() with all that they inline.
 *
 * Slack: whether a stream ran out is looked at after each unit of 8 rows, of which a strand has 4. They take 4 * 64
 * bytes at most, the last 16 of them by one load, so 256 bytes behind the streams may be read. A payload with fewer
 * goes to the scalar decoder.
 */
#include "split_merge.h"

#ifdef __x86_64__
#include "split_prefetch.h"
#include "split_row_avx2.h"

/* a where the mask's bits are 0, b where they are 1. */
AVX2_INLINE __m256i pick(__m256i a, __m256i b, __m256i mask)
{
	return _mm256_or_si256(_mm256_andnot_si256(mask, a), _mm256_and_si256(mask, b));
}
AVX2_INLINE __m256i ror16(__m256i v)
{
	return _mm256_or_si256(_mm256_srli_epi16(v, 1), _mm256_slli_epi16(v, 15));
}
AVX2_INLINE __m256i ror32(__m256i v)
{
	return _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31));
}
AVX2_INLINE __m256i ror8(__m256i v)
{
	const __m256i low7 = _mm256_set1_epi8(0x7f);

	return pick(_mm256_slli_epi16(v, 7), _mm256_srli_epi16(v, 1), low7);
}

/* ---- words ---- */

/* Partial bits of a superrow, rows of two halves. */
AVX2_INLINE void unpack_partial(const u8 *rest, const unsigned partial, __m256i part[8][2])
{
	const __m256i mask = _mm256_set1_epi8((char)((1 << partial) - 1));

#pragma GCC unroll 2
	for (unsigned half = 0; half < 2; half++) {
		const u8 *p = rest + 32 * half;

		for (unsigned i = 0; i < partial; i++)
			part[i][half] = _mm256_and_si256(load(p + 64 * i), mask);
		for (unsigned j = partial; j < 8; j++) {
			__m256i row = _mm256_setzero_si256();

			for (unsigned i = 0; i < partial; i++) {
				__m256i bit = _mm256_srl_epi16(load(p + 64 * i), _mm_cvtsi32_si128((int)(j - i)));

				row = _mm256_or_si256(row, _mm256_and_si256(bit, _mm256_set1_epi8((char)(1 << i))));
			}
			part[j][half] = row;
		}
	}
}

/* Row 7 of a plane of 7 partial bits: bit 7 of vector i is its bit i. */
AVX2_INLINE __m256i unpack_row7(const u8 *rest)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i row = zero;

#pragma GCC unroll 7
	for (unsigned i = 7; i-- > 0;)
		row = _mm256_sub_epi8(_mm256_add_epi8(row, row), _mm256_cmpgt_epi8(zero, load(rest + 64 * i)));
	return row;
}

/* Byte vectors of half a row, most significant first, to words rotated right by 1. Neighbouring words come from
 * interleaving within 128-bit lanes: what the lane order is made for. */
AVX2_INLINE void write16(u8 *raw, unsigned half, __m256i b1, __m256i b0)
{
	store(raw + 32 * half, ror16(_mm256_unpacklo_epi8(b0, b1)));
	store(raw + 64 + 32 * half, ror16(_mm256_unpackhi_epi8(b0, b1)));
}
AVX2_INLINE void write32(u8 *raw, unsigned half, __m256i b3, __m256i b2, __m256i b1, __m256i b0)
{
	const __m256i top_a = _mm256_unpacklo_epi8(b2, b3), top_b = _mm256_unpackhi_epi8(b2, b3);
	const __m256i low_a = _mm256_unpacklo_epi8(b0, b1), low_b = _mm256_unpackhi_epi8(b0, b1);

	raw += 32 * half;
	store(raw, ror32(_mm256_unpacklo_epi16(low_a, top_a)));
	store(raw + 64, ror32(_mm256_unpackhi_epi16(low_a, top_a)));
	store(raw + 128, ror32(_mm256_unpacklo_epi16(low_b, top_b)));
	store(raw + 192, ror32(_mm256_unpackhi_epi16(low_b, top_b)));
}

/* How a superrow of a mode (or of a split without a loop of its own) is put together. */
struct moded {
	unsigned partial, planes;
	__m128i skip, up, keep; /* word = v >> skip << up | v << keep | sign: see moded_make */
	__m256i sign;
};

/* v = mantissa bits >> zeros, then the sign bit when it is stored. After the rotation back, the mantissa stands at bit
 * `zeros` and the sign on top: mantissa = v >> skip << zeros, sign = v << keep (or a shift that gives 0). */
AVX2_INLINE struct moded moded_make(struct wfs_split s, unsigned mode)
{
	const struct wfs_split in_mode = wfs_split_in_mode(s, mode);
	const unsigned sign = wfs_mode_sign(mode);
	const __m256i minus = s.word == 4 ? _mm256_set1_epi32(INT32_MIN) : _mm256_set1_epi16(INT16_MIN);

	return (struct moded){
		.partial = in_mode.partial,
		.planes = in_mode.planes,
		.skip = _mm_cvtsi32_si128(sign ? 0 : 1),
		.up = _mm_cvtsi32_si128((int)wfs_mode_zeros(mode)),
		.keep = _mm_cvtsi32_si128(sign ? 64 : 8 * s.word - 1),
		.sign = sign == 2 ? minus : _mm256_setzero_si256(),
	};
}
AVX2_INLINE __m256i expand16(const struct moded *m, __m256i field, __m256i v)
{
	const __m256i mantissa = _mm256_sll_epi16(_mm256_srl_epi16(v, m->skip), m->up);
	const __m256i sign = _mm256_or_si256(_mm256_sll_epi16(v, m->keep), m->sign);

	return _mm256_or_si256(_mm256_or_si256(ror16(field), mantissa), sign);
}
AVX2_INLINE __m256i expand32(const struct moded *m, __m256i field, __m256i v)
{
	const __m256i mantissa = _mm256_sll_epi32(_mm256_srl_epi32(v, m->skip), m->up);
	const __m256i sign = _mm256_or_si256(_mm256_sll_epi32(v, m->keep), m->sign);

	return _mm256_or_si256(_mm256_or_si256(ror32(field), mantissa), sign);
}
/* b[0..3]: v's bytes, least significant first. */
AVX2_INLINE void write16_moded(u8 *raw, unsigned half, const struct moded *m, __m256i hi, __m256i lo, const __m256i *b)
{
	raw += 32 * half;
	store(raw, expand16(m, _mm256_unpacklo_epi8(lo, hi), _mm256_unpacklo_epi8(b[0], b[1])));
	store(raw + 64, expand16(m, _mm256_unpackhi_epi8(lo, hi), _mm256_unpackhi_epi8(b[0], b[1])));
}
AVX2_INLINE void write32_moded(u8 *raw, unsigned half, const struct moded *m, __m256i hi, __m256i lo, const __m256i *b)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i top_a = _mm256_unpacklo_epi8(lo, hi), top_b = _mm256_unpackhi_epi8(lo, hi);
	const __m256i v0_a = _mm256_unpacklo_epi8(b[0], b[1]), v0_b = _mm256_unpackhi_epi8(b[0], b[1]);
	const __m256i v1_a = _mm256_unpacklo_epi8(b[2], b[3]), v1_b = _mm256_unpackhi_epi8(b[2], b[3]);

	raw += 32 * half;
	store(raw, expand32(m, _mm256_unpacklo_epi16(zero, top_a), _mm256_unpacklo_epi16(v0_a, v1_a)));
	store(raw + 64, expand32(m, _mm256_unpackhi_epi16(zero, top_a), _mm256_unpackhi_epi16(v0_a, v1_a)));
	store(raw + 128, expand32(m, _mm256_unpacklo_epi16(zero, top_b), _mm256_unpacklo_epi16(v0_b, v1_b)));
	store(raw + 192, expand32(m, _mm256_unpackhi_epi16(zero, top_b), _mm256_unpackhi_epi16(v0_b, v1_b)));
}

/* Splits with a loop of their own: word bytes, partial bits, byte planes. */
enum shape { W2_F9, W2_F8, W2_F6, W4_F9, W1_F5, W1_F6, W1_F7, OTHER };
static const struct wfs_split shapes[] = {
	[W2_F9] = {2, 1, 9, 7, 0}, [W2_F8] = {2, 1, 8, 0, 1}, [W2_F6] = {2, 1, 6, 2, 1}, [W4_F9] = {4, 1, 9, 7, 2},
	[W1_F5] = {1, 1, 5, 3, 0}, [W1_F6] = {1, 1, 6, 2, 0}, [W1_F7] = {1, 1, 7, 1, 0},
};

/* The state of a block's decoding. */
struct work {
	const struct wfs_split_view *v;
	const struct wfs_decode_pool *pool;
	struct wfs_split s;
	struct wfs_scratch *scratch;
	struct strand k[2];
	u8 *raw;
};

/* Any superrow of 2- and 4-byte words with rotation. Not inlined: the state is copied in and out, so that in the hot
 * loops it has no address and stays in registers. */
static __attribute__((noinline)) WFS_TARGET_AVX2 void superrow_moded(struct work *w, unsigned mode,
								     const struct wfs_decode_table *d, const u8 *rest,
								     u64 *escape_mask, const u8 *ahead, u8 *raw)
{
	const unsigned word = w->s.word;
	const struct moded m = moded_make(w->s, mode);
	const struct constants c = constants_make(w->scratch);
	const u8 *plane = rest + 64 * m.partial;
	const __m256i zero = _mm256_setzero_si256();
	struct strand k[2] = {w->k[0], w->k[1]};
	__m256i part[8][2];

	unpack_partial(rest, m.partial, part);
#pragma GCC unroll 2
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * word) {
		const struct row y = read_row(&c, d, &k[r & 1], true);

		wfs_prefetch_row(r, ahead, word, rest, 8 * m.planes + m.partial, k[r & 1].p);
#pragma GCC unroll 2
		for (unsigned half = 0; half < 2; half++) {
			__m256i b[4] = {zero, zero, zero, zero};

			for (unsigned i = 0; i < m.planes; i++)
				b[m.planes - 1 - i] = load(plane + WFS_SUPER * i + 64 * r + 32 * half);
			b[m.planes] = part[r][half];
			if (word == 4)
				write32_moded(raw, half, &m, y.hi[half], y.lo[half], b);
			else
				write16_moded(raw, half, &m, y.hi[half], y.lo[half], b);
		}
		memcpy(escape_mask + r, y.escapes, sizeof(u64));
		leave_row(&c, d, &y, &k[r & 1]);
	}
	w->k[0] = k[0];
	w->k[1] = k[1];
}

/* One superrow in mode 0. */
AVX2_INLINE void superrow(const enum shape shape, const struct constants *c, struct strand *k, u64 *escape_mask,
			  const struct wfs_decode_table *d, const u8 *rest, const u8 *ahead, u8 *raw)
{
	const unsigned word = shapes[shape].word, partial = shapes[shape].partial;
	const u8 *plane = rest + 64 * partial;
	const __m256i low7 = _mm256_set1_epi8(0x7f);
	__m256i part[8][2], row7[2];

	if (partial == 7) {
		row7[0] = unpack_row7(rest);
		row7[1] = unpack_row7(rest + 32);
	} else if (partial) {
		unpack_partial(rest, partial, part);
	}
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * word) {
		const struct row y = read_row(c, d, &k[r & 1], partial == 7);

		wfs_prefetch_row(r, ahead, word, rest, 8 * word - shapes[shape].field, k[r & 1].p);
#pragma GCC unroll 2
		for (unsigned half = 0; half < 2; half++) {
			const unsigned at = 64 * r + 32 * half;
			__m256i low = y.lo[half];

			if (partial == 7)
				low = _mm256_or_si256(low,
						      r < 7 ? _mm256_and_si256(load(rest + at), low7) : row7[half]);
			if (shape == W2_F9)
				write16(raw, half, y.hi[half], low);
			else if (shape == W2_F8)
				write16(raw, half, y.hi[half], load(plane + at));
			else if (shape == W2_F6)
				write16(raw, half, _mm256_or_si256(y.hi[half], part[r][half]), load(plane + at));
			else if (shape == W4_F9)
				write32(raw, half, y.hi[half], low, load(plane + at), load(plane + WFS_SUPER + at));
			else
				store(raw + 32 * half, ror8(_mm256_or_si256(y.hi[half], part[r][half])));
		}
		memcpy(escape_mask + r, y.escapes, sizeof(u64));
		leave_row(c, d, &y, &k[r & 1]);
	}
}

/* All superrows but the last; false when a stream runs out. */
AVX2_INLINE bool decode_supers(const enum shape shape, struct work *w)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr = (v->n - 1) / WFS_SUPER;
	const unsigned seg_supers_log2 = w->pool->seg_log2 - 9, word = shape == OTHER ? w->s.word : shapes[shape].word;
	const struct constants c = constants_make(w->scratch);
	struct strand k[2] = {w->k[0], w->k[1]};
	const u8 *rest = v->rest;
	u8 *raw = w->raw;

	for (size_t super = 0; super < nr; super++, raw += WFS_SUPER * word) {
		const struct wfs_decode_table *d = &w->pool->table[v->seg[super >> seg_supers_log2]];
		const unsigned mode = wfs_split_mode(v, super);
		const u8 *ahead = wfs_prefetch_ahead(raw, nr - super, word);
		u64 *escape_mask = w->scratch->escape_mask + super * WFS_SUPER_ROWS;

		if (shape == OTHER || wfs_unlikely(mode)) {
			w->k[0] = k[0];
			w->k[1] = k[1];
			superrow_moded(w, mode, d, rest, escape_mask, ahead, raw);
			k[0] = w->k[0];
			k[1] = w->k[1];
			rest += 8 * WFS_SUPER_ROWS * wfs_mode_rest_bits(w->s, mode);
		} else {
			superrow(shape, &c, k, escape_mask, d, rest, ahead, raw);
			rest += 8 * WFS_SUPER_ROWS * (8u * word - shapes[shape].field);
		}
		if (wfs_unlikely(k[0].p > v->stream_end[0] || k[1].p > v->stream_end[1]))
			return false;
	}
	w->k[0] = k[0];
	w->k[1] = k[1];
	return true;
}

/* ---- escapes ---- */

/* Bit i: row i of 64 holds escapes. */
AVX2_INLINE u64 rows_with_escapes(const u64 *escape_mask)
{
	u64 without = 0;

	for (unsigned i = 0; i < 64; i += 4) {
		const __m256i none = _mm256_cmpeq_epi64(load(escape_mask + i), _mm256_setzero_si256());

		without |= (u64)(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(none)) << i;
	}
	return ~without;
}

/* Put the field of an escape into its word, where the field's bits are still 0. top: the field as the top 16 bits of a
 * rotated word; it never reaches the lowest bit, which the rotation back would take to the top. */
AVX2_INLINE void put_field(u8 *at, const unsigned word, unsigned top)
{
	if (word == 1)
		*at |= (u8)(top >> 9);
	else if (word == 2)
		wfs_store16(at, (u16)(wfs_load16(at) | top >> 1));
	else
		wfs_store32(at, wfs_load32(at) | (u32)top << 15);
}

AVX2_INLINE size_t name_escapes_of(const unsigned word, const struct work *w)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr_rows = (v->n - 1) / WFS_SUPER * WFS_SUPER_ROWS;
	const u64 *mask = w->scratch->escape_mask;
	size_t used = 0;

	for (size_t first = 0; first < nr_rows; first += 64) {
		u64 rows = _bzhi_u64(rows_with_escapes(mask + first), (unsigned)WFS_MIN(nr_rows - first, (size_t)64));

		for (; rows; rows = _blsr_u64(rows)) {
			const size_t row = first + _tzcnt_u64(rows), at = row * WFS_LANES;
			const u16 *tail_top = w->pool->table[v->seg[at >> w->pool->seg_log2]].tail_top;

			for (u64 which = mask[row]; which; which = _blsr_u64(which), used++) {
				const size_t number = at + wfs_lane_word(word, (unsigned)_tzcnt_u64(which));

				if (used == v->nr_escapes)
					return SIZE_MAX;
				put_field(w->raw + word * number, word, tail_top[wfs_split_escape(v, used)]);
			}
		}
	}
	return used;
}

/* Name the escapes of all superrows but the last: within the loops even a well predicted branch on them costs more than
 * everything that is done here. Returns how many there are, or SIZE_MAX when they run out. */
static __attribute__((noinline)) WFS_TARGET_AVX2 size_t name_escapes(const struct work *w)
{
	if (w->s.word == 1)
		return name_escapes_of(1, w);
	return w->s.word == 2 ? name_escapes_of(2, w) : name_escapes_of(4, w);
}

/* ---- blocks ---- */

#define DEFINE_SUPERS(name, shape)                                                                                     \
	static __attribute__((noinline)) WFS_TARGET_AVX2 bool name(struct work *w)                                     \
	{                                                                                                              \
		return decode_supers(shape, w);                                                                        \
	}
DEFINE_SUPERS(decode_w2_f9, W2_F9)
DEFINE_SUPERS(decode_w2_f8, W2_F8)
DEFINE_SUPERS(decode_w2_f6, W2_F6)
DEFINE_SUPERS(decode_w4_f9, W4_F9)
DEFINE_SUPERS(decode_w1_f5, W1_F5)
DEFINE_SUPERS(decode_w1_f6, W1_F6)
DEFINE_SUPERS(decode_w1_f7, W1_F7)
DEFINE_SUPERS(decode_other, OTHER)

/* Superrow loop of a split, or NULL when the scalar decoder must do it. */
static bool (*choose(struct wfs_split s))(struct work *)
{
	static bool (*const fn[])(struct work *) = {
		[W2_F9] = decode_w2_f9, [W2_F8] = decode_w2_f8, [W2_F6] = decode_w2_f6, [W4_F9] = decode_w4_f9,
		[W1_F5] = decode_w1_f5, [W1_F6] = decode_w1_f6, [W1_F7] = decode_w1_f7,
	};

	for (unsigned i = 0; i < WFS_ARRAY_LEN(shapes); i++) {
		if (s.word == shapes[i].word && s.rot == shapes[i].rot && s.field == shapes[i].field)
			return fn[i];
	}
	return (s.word == 2 || s.word == 4) && s.rot == 1 ? decode_other : NULL;
}

/* The last unit's rows; true when states, streams and escapes end as they must. used: escapes before them. */
static WFS_TARGET_AVX2 bool decode_last(struct work *w, size_t used, u16 *top, u8 *final_l)
{
	const struct wfs_split_view *v = w->v;
	const struct wfs_decode_table *d = &w->pool->table[v->seg[(v->n - 1) >> w->pool->seg_log2]];
	const struct constants c = constants_make(w->scratch);
	const __m256i one = _mm256_set1_epi8(1);
	__m256i wrong = _mm256_setzero_si256();
	struct strand k[2] = {w->k[0], w->k[1]};

	for (unsigned r = 0; r < wfs_last_rows(v->n); r++, top += WFS_LANES) {
		const struct row y = read_row(&c, d, &k[r & 1], true);

		for (unsigned i = 0; i < 4; i++) {
			const __m256i hi = y.hi[i / 2], lo = y.lo[i / 2];
			const __m128i hi16 = i & 1 ? _mm256_extracti128_si256(hi, 1) : _mm256_castsi256_si128(hi);
			const __m128i lo16 = i & 1 ? _mm256_extracti128_si256(lo, 1) : _mm256_castsi256_si128(lo);

			_mm_storeu_si128((void *)(top + 16 * i), _mm_unpacklo_epi8(lo16, hi16));
			_mm_storeu_si128((void *)(top + 16 * i + 8), _mm_unpackhi_epi8(lo16, hi16));
		}
		for (u64 which = y.escapes[0] | (u64)y.escapes[1] << 32; which; which = _blsr_u64(which), used++) {
			if (used == v->nr_escapes)
				return false;
			top[_tzcnt_u64(which)] = d->tail_top[wfs_split_escape(v, used)];
		}
		leave_row(&c, d, &y, &k[r & 1]);
	}
	for (unsigned i = 0; i < 4; i++) {
		store(final_l + 32 * i, k[i / 2].l[i & 1]);
		wrong = _mm256_or_si256(wrong, _mm256_xor_si256(k[i / 2].h[i & 1], one));
	}
	return _mm256_testz_si256(wrong, wrong) && k[0].p == v->stream_end[0] && k[1].p == v->stream_end[1] &&
	       used == v->nr_escapes;
}

static WFS_TARGET_AVX2 enum wfs_status decode_avx2(const struct wfs_split_view *v, const struct wfs_decode_pool *pool,
						   struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
						   const char **reason_ret)
{
	bool (*const supers)(struct work *) = choose(s);
	struct work w = {.v = v, .pool = pool, .s = s, .scratch = scratch, .raw = raw};
	const char *reason = WFS_SPLIT_UNPROVEN;
	u16 top[WFS_SUPER];
	u8 final_l[WFS_CARRIED];
	size_t used;

	if (!supers || v->edges - v->escapes < WFS_VECTOR_SLACK)
		return wfs_split_decode_scalar(v, pool, s, raw, scratch, reason_ret);
	wfs_prefetch_start(v, s, raw);
	for (unsigned i = 0; i < WFS_STRANDS; i++) {
#pragma GCC unroll 2
		for (unsigned half = 0; half < 2; half++) {
			w.k[i].l[half] = load(v->states + 128 * i + 32 * half);
			w.k[i].h[half] = load(v->states + 128 * i + 64 + 32 * half);
		}
		w.k[i].p = v->stream[i];
	}
	if (!supers(&w))
		goto out;
	used = name_escapes(&w);
	if (used <= v->nr_escapes && decode_last(&w, used, top, final_l))
		reason = wfs_split_finish(v, s, top, final_l, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}

wfs_split_decode_fn *wfs_split_decode_avx2_get(void)
{
	return decode_avx2;
}

#else

wfs_split_decode_fn *wfs_split_decode_avx2_get(void)
{
	return NULL;
}

#endif
