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

/* Loops: of the splits that are frequent, without modes; of any other word and mode. */
enum shape { BF16, F16, F32, E4M3, E5M2, CODES, I8, I16, ANY8, ANY16, ANY32, ANY64, NR_SHAPES };
/* Word bytes, rotation, field, partial bits, byte planes. */
static const struct wfs_split shapes[NR_SHAPES] = {
	[BF16] = {2, 1, 9, 7, 0}, [F16] = {2, 1, 6, 2, 1},   [F32] = {4, 1, 9, 7, 2}, [E4M3] = {1, 1, 5, 3, 0},
	[E5M2] = {1, 1, 6, 2, 0}, [CODES] = {1, 1, 7, 1, 0}, [I8] = {1, 0, 5, 3, 0},  [I16] = {2, 0, 5, 3, 1},
	[ANY8] = {.word = 1},	  [ANY16] = {.word = 2},     [ANY32] = {.word = 4},   [ANY64] = {.word = 8},
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

/* One superrow of a split without modes. */
AVX2_INLINE void superrow(const struct wfs_split s, const struct constants *c, struct strand *k, u64 *escape_mask,
			  const struct wfs_decode_table *d, const u8 *rest, const u8 *ahead, u8 *raw)
{
	struct unit u;

	unit_start(&u, s, rest);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * s.word) {
		const struct row y = read_row(c, d, &k[r & 1], s.field > 8);

		wfs_prefetch_row(r, ahead, s.word, rest, 8 * s.word - s.field, k[r & 1].p);
		unit_row(&u, s, r, y.hi, y.lo, raw);
		memcpy(escape_mask + r, y.escapes, sizeof(u64));
		leave_row(c, d, &y, &k[r & 1]);
	}
}

/* One superrow of any split and mode; word is a constant. */
AVX2_INLINE void superrow_any(const unsigned word, struct wfs_split s, unsigned mode, const struct constants *c,
			      struct strand *k, u64 *escape_mask, const struct wfs_decode_table *d, const u8 *rest,
			      const u8 *ahead, u8 *raw)
{
	struct moded m;

	moded_start(&m, s, mode, rest);
#pragma GCC unroll 2
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * word) {
		const struct row y = read_row(c, d, &k[r & 1], true);

		wfs_prefetch_row(r, ahead, word, rest, 8 * m.planes + m.partial, k[r & 1].p);
		moded_row(&m, word, r, y.hi, y.lo, raw);
		memcpy(escape_mask + r, y.escapes, sizeof(u64));
		leave_row(c, d, &y, &k[r & 1]);
	}
}

/* All superrows but the last; false when a stream runs out. */
AVX2_INLINE bool decode_supers(const enum shape shape, struct work *w)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr = (v->n - 1) / WFS_SUPER;
	const unsigned seg_supers_log2 = w->pool->seg_log2 - 9, word = shapes[shape].word;
	const struct constants c = constants_make(w->scratch);
	struct strand k[2] = {w->k[0], w->k[1]};
	const u8 *rest = v->rest;
	u8 *raw = w->raw;

	for (size_t super = 0; super < nr; super++, raw += WFS_SUPER * word) {
		const struct wfs_decode_table *d = &w->pool->table[v->seg[super >> seg_supers_log2]];
		const u8 *ahead = wfs_prefetch_ahead(raw, nr - super, word);
		u64 *escape_mask = w->scratch->escape_mask + super * WFS_SUPER_ROWS;

		if (shape < ANY8) {
			superrow(shapes[shape], &c, k, escape_mask, d, rest, ahead, raw);
			rest += 8 * WFS_SUPER_ROWS * (8u * word - shapes[shape].field);
		} else {
			const unsigned mode = wfs_split_mode(v, super);

			superrow_any(word, w->s, mode, &c, k, escape_mask, d, rest, ahead, raw);
			rest += 8 * WFS_SUPER_ROWS * wfs_mode_rest_bits(w->s, mode);
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
 * word, already rotated back: it never reaches the lowest bit, which the rotation would take to the top. */
AVX2_INLINE void put_field(u8 *at, const unsigned word, unsigned top)
{
	if (word == 1)
		*at |= (u8)(top >> 8);
	else if (word == 2)
		wfs_store16(at, (u16)(wfs_load16(at) | top));
	else if (word == 4)
		wfs_store32(at, wfs_load32(at) | (u32)top << 16);
	else
		wfs_store64(at, wfs_load64(at) | (u64)top << 48);
}

AVX2_INLINE size_t name_escapes_of(const unsigned word, const struct work *w)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr_rows = (v->n - 1) / WFS_SUPER * WFS_SUPER_ROWS;
	const u64 *mask = w->scratch->escape_mask;
	const unsigned rot = w->s.rot;
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
				put_field(w->raw + word * number, word, tail_top[wfs_split_escape(v, used)] >> rot);
			}
		}
	}
	return used;
}

/* Name the escapes of all superrows but the last: within the loops even a well predicted branch on them costs more than
 * everything that is done here. Returns how many there are, or SIZE_MAX when they run out. */
static __attribute__((noinline)) WFS_TARGET_AVX2 size_t name_escapes(const struct work *w)
{
	switch (w->s.word) {
	case 1:
		return name_escapes_of(1, w);
	case 2:
		return name_escapes_of(2, w);
	case 4:
		return name_escapes_of(4, w);
	default:
		return name_escapes_of(8, w);
	}
}

/* ---- blocks ---- */

#define DEFINE_SUPERS(name, shape)                                                                                     \
	static __attribute__((noinline)) WFS_TARGET_AVX2 bool name(struct work *w)                                     \
	{                                                                                                              \
		return decode_supers(shape, w);                                                                        \
	}
DEFINE_SUPERS(decode_bf16, BF16)
DEFINE_SUPERS(decode_f16, F16)
DEFINE_SUPERS(decode_f32, F32)
DEFINE_SUPERS(decode_e4m3, E4M3)
DEFINE_SUPERS(decode_e5m2, E5M2)
DEFINE_SUPERS(decode_codes, CODES)
DEFINE_SUPERS(decode_i8, I8)
DEFINE_SUPERS(decode_i16, I16)
DEFINE_SUPERS(decode_any8, ANY8)
DEFINE_SUPERS(decode_any16, ANY16)
DEFINE_SUPERS(decode_any32, ANY32)
DEFINE_SUPERS(decode_any64, ANY64)

/* Superrow loop of a block. */
static bool (*choose(struct wfs_split s, bool moded))(struct work *)
{
	static bool (*const fn[NR_SHAPES])(struct work *) = {
		[BF16] = decode_bf16, [F16] = decode_f16,     [F32] = decode_f32,     [E4M3] = decode_e4m3,
		[E5M2] = decode_e5m2, [CODES] = decode_codes, [I8] = decode_i8,	      [I16] = decode_i16,
		[ANY8] = decode_any8, [ANY16] = decode_any16, [ANY32] = decode_any32, [ANY64] = decode_any64,
	};

	for (unsigned i = moded ? ANY8 : 0; i < NR_SHAPES; i++) {
		const struct wfs_split c = shapes[i];

		if (s.word == c.word && (i >= ANY8 || (s.rot == c.rot && s.field == c.field)))
			return fn[i];
	}
	return NULL; /* not reached: there are no other words */
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
	bool (*const supers)(struct work *) = choose(s, v->nr_modes);
	struct work w = {.v = v, .pool = pool, .s = s, .scratch = scratch, .raw = raw};
	const char *reason = WFS_SPLIT_UNPROVEN;
	u16 top[WFS_SUPER];
	u8 final_l[WFS_CARRIED];
	size_t used;

	if (v->edges - v->escapes < WFS_VECTOR_SLACK)
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
