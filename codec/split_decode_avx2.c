/* split_decode_avx2.c - the split decoder for AVX2: a row is two halves of 32 positions, one byte a position.
 *
 * No gathers: the bucket rule (FORMAT.md 2.3) finds a slot's run with four shuffles of 16 entries and three compares,
 * and what a run means comes from two shuffles each. Hot loops: superrow() and decode_supers() with all that they
 * inline.
 *
 * Slack: a stream pointer is clamped to end + 1 after each row and moves at most 56 bytes before the row's last load of
 * 8, so 65 bytes behind the streams may be read. A payload with fewer goes to the scalar decoder.
 */
#include "split_merge.h"

#ifdef __x86_64__
#include <immintrin.h>

#define INLINE static WFS_ALWAYS_INLINE WFS_TARGET_AVX2

enum {
	PREFETCH_RAW = 1024, /* how far ahead of the writes, bytes */
	PREFETCH_REST = 1536,
};

/* ---- shuffles that spread stream bytes ---- */

/* Byte i of entry m: how many of the bits below i are set in m when bit i is set, else 0x80 (a shuffle gives 0). */
#define BIT(m, i)    ((m) >> (i)&1)
#define SPREAD(m, i) ((u64)(BIT(m, i) ? (BELOW##i(m)) : 0x80) << (8 * i))
#define BELOW0(m)    0
#define BELOW1(m)    (BELOW0(m) + BIT(m, 0))
#define BELOW2(m)    (BELOW1(m) + BIT(m, 1))
#define BELOW3(m)    (BELOW2(m) + BIT(m, 2))
#define BELOW4(m)    (BELOW3(m) + BIT(m, 3))
#define BELOW5(m)    (BELOW4(m) + BIT(m, 4))
#define BELOW6(m)    (BELOW5(m) + BIT(m, 5))
#define BELOW7(m)    (BELOW6(m) + BIT(m, 6))
#define ENTRY(m)                                                                                                       \
	(SPREAD(m, 0) | SPREAD(m, 1) | SPREAD(m, 2) | SPREAD(m, 3) | SPREAD(m, 4) | SPREAD(m, 5) | SPREAD(m, 6) |      \
	 SPREAD(m, 7))
#define ENTRY4(m)  ENTRY(m), ENTRY(m + 1), ENTRY(m + 2), ENTRY(m + 3)
#define ENTRY16(m) ENTRY4(m), ENTRY4(m + 4), ENTRY4(m + 8), ENTRY4(m + 12)
#define ENTRY64(m) ENTRY16(m), ENTRY16(m + 16), ENTRY16(m + 32), ENTRY16(m + 48)
static const u64 spread[256] = {ENTRY64(0), ENTRY64(64), ENTRY64(128), ENTRY64(192)};

/* ---- small things ---- */

INLINE __m256i load(const void *p)
{
	return _mm256_loadu_si256(p);
}
INLINE void store(void *p, __m256i v)
{
	_mm256_storeu_si256(p, v);
}
INLINE __m256i load_both(const void *p)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}
/* a where the mask's bits are 0, b where they are 1. */
INLINE __m256i pick(__m256i a, __m256i b, __m256i mask)
{
	return _mm256_or_si256(_mm256_andnot_si256(mask, a), _mm256_and_si256(mask, b));
}
INLINE __m256i ror16(__m256i v)
{
	return _mm256_or_si256(_mm256_srli_epi16(v, 1), _mm256_slli_epi16(v, 15));
}
INLINE __m256i ror32(__m256i v)
{
	return _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31));
}
INLINE __m256i ror8(__m256i v)
{
	const __m256i low7 = _mm256_set1_epi8(0x7f);

	return pick(_mm256_slli_epi16(v, 7), _mm256_srli_epi16(v, 1), low7);
}
INLINE void prefetch_write(const u8 *p)
{
	__asm__ volatile("prefetchw %0" : : "m"(*p));
}

/* ---- rANS ---- */

/* A decode table's 16-entry pieces, the same in both 128-bit lanes. */
struct table {
	__m256i bucket, start1, start2, start3, escape_run;
	__m256i freq[2], c[2], hi[2], lo[2];
};
struct strand {
	__m256i l[2], h[2];
	const u8 *p, *end;
};
/* One row's field: top byte and the byte below, halves of 32 positions, and which positions are escapes. */
struct row {
	__m256i hi[2], lo[2];
	u64 escapes;
};
/* Run numbers as indices for the two halves of a 32-entry table: bit 7 set where the run is in the other half. */
struct index {
	__m256i low, high;
};

INLINE void load_table(struct table *t, const struct wfs_decode_table *d)
{
	t->bucket = load_both(d->bucket);
	t->start1 = load_both(d->start1);
	t->start2 = load_both(d->start2);
	t->start3 = load_both(d->start3);
	t->escape_run = _mm256_set1_epi8((char)d->escape_run);
	for (unsigned i = 0; i < 2; i++) {
		t->freq[i] = load_both(d->freq + 16 * i);
		t->c[i] = load_both(d->c + 16 * i);
		t->hi[i] = load_both(d->hi + 16 * i);
		t->lo[i] = load_both(d->lo + 16 * i);
	}
}

INLINE __m256i look_up(const __m256i table[2], struct index i)
{
	return _mm256_or_si256(_mm256_shuffle_epi8(table[0], i.low), _mm256_shuffle_epi8(table[1], i.high));
}

/* The next stream bytes at the 16 positions whose bits are set, 0 elsewhere. */
INLINE __m128i take16(u32 need, const u8 **p)
{
	const u32 low = need & 255, high = need >> 8 & 255;
	const u8 *p_high = *p + _mm_popcnt_u32(low);
	const __m128i from =
		_mm_unpacklo_epi64(_mm_loadl_epi64((const void *)*p), _mm_loadl_epi64((const void *)p_high));
	const __m128i order = _mm_unpacklo_epi64(_mm_loadl_epi64((const void *)&spread[low]),
						 _mm_loadl_epi64((const void *)&spread[high]));

	*p = p_high + _mm_popcnt_u32(high);
	/* The high half's bytes are at 8 to 15; 0x80 | 8 still gives 0. */
	return _mm_shuffle_epi8(from, _mm_or_si128(order, _mm_set_epi64x(0x0808080808080808, 0)));
}

/* 32 positions: the runs of their slots, and the states moved on. */
INLINE __m256i step(const struct table *t, __m256i *l_ret, __m256i *h_ret, const u8 **p, struct index *index_ret)
{
	const __m256i low8 = _mm256_set1_epi16(255), zero = _mm256_setzero_si256();
	const __m256i l = *l_ret, h = *h_ret, biased = _mm256_xor_si256(l, _mm256_set1_epi8((char)0x80));
	const __m256i b = _mm256_and_si256(_mm256_srli_epi16(l, 4), _mm256_set1_epi8(15));
	const __m256i past1 = _mm256_cmpgt_epi8(biased, _mm256_shuffle_epi8(t->start1, b));
	const __m256i past2 = _mm256_cmpgt_epi8(biased, _mm256_shuffle_epi8(t->start2, b));
	const __m256i past3 = _mm256_cmpgt_epi8(biased, _mm256_shuffle_epi8(t->start3, b));
	const __m256i run = _mm256_sub_epi8(_mm256_sub_epi8(_mm256_shuffle_epi8(t->bucket, b), past1),
					    _mm256_add_epi8(past2, past3));
	const struct index i = {_mm256_add_epi8(run, _mm256_set1_epi8(0x70)),
				_mm256_sub_epi8(run, _mm256_set1_epi8(16))};
	const __m256i f = look_up(t->freq, i), rank = _mm256_sub_epi8(l, look_up(t->c, i));
	/* x = f * h + rank, at most 255 * 255 + 254, in 16 bits: even positions and odd ones apart. */
	const __m256i even = _mm256_add_epi16(_mm256_mullo_epi16(_mm256_and_si256(f, low8), _mm256_and_si256(h, low8)),
					      _mm256_and_si256(rank, low8));
	const __m256i odd = _mm256_add_epi16(_mm256_mullo_epi16(_mm256_srli_epi16(f, 8), _mm256_srli_epi16(h, 8)),
					     _mm256_srli_epi16(rank, 8));
	const __m256i new_l = _mm256_or_si256(_mm256_and_si256(even, low8), _mm256_slli_epi16(odd, 8));
	const __m256i new_h = _mm256_or_si256(_mm256_srli_epi16(even, 8), _mm256_andnot_si256(low8, odd));
	const __m256i short_of_bits = _mm256_cmpeq_epi8(new_h, zero);
	const u32 need = (u32)_mm256_movemask_epi8(short_of_bits);
	const __m128i bytes0 = take16(need, p), bytes1 = take16(need >> 16, p);

	*h_ret = _mm256_blendv_epi8(new_h, new_l, short_of_bits);
	*l_ret = _mm256_or_si256(_mm256_andnot_si256(short_of_bits, new_l), _mm256_set_m128i(bytes1, bytes0));
	*index_ret = i;
	return run;
}

/* One row of a strand. lo is filled only when the field reaches into the second byte. */
INLINE struct row next_row(const struct table *t, struct strand *k, const bool with_lo)
{
	struct row r = {.escapes = 0};

#pragma GCC unroll 2
	for (unsigned half = 0; half < 2; half++) {
		struct index i;
		const __m256i run = step(t, &k->l[half], &k->h[half], &k->p, &i);

		r.escapes |= (u64)(u32)_mm256_movemask_epi8(_mm256_cmpeq_epi8(run, t->escape_run)) << (32 * half);
		r.hi[half] = look_up(t->hi, i);
		r.lo[half] = with_lo ? look_up(t->lo, i) : _mm256_setzero_si256();
	}
	/* Once past the end, always past the end: not clamped to end, or an overrun could be accepted. */
	k->p = k->p <= k->end ? k->p : k->end + 1;
	return r;
}

/* ---- escapes ---- */

struct escapes {
	const struct wfs_split_view *v;
	size_t used; /* grows beyond v->nr_escapes when they run out */
};

INLINE unsigned next_escape_top(struct escapes *e, const struct wfs_decode_table *d, const bool used)
{
	const size_t at = e->used < e->v->nr_escapes ? e->used : 0;

	e->used += used;
	return d->tail_top[wfs_split_escape(e->v, at)];
}

/* Put the field of the row's first escape into its word, where the field bits are 0 so far. No branch on whether there
 * is one: a quarter of all rows have. */
INLINE void patch_first(struct escapes *e, const struct wfs_decode_table *d, u64 which, const unsigned word, u8 *raw)
{
	const u32 top = next_escape_top(e, d, which != 0) & (which ? ~0u : 0u);
	u8 *at = raw + word * wfs_lane_word(word, (unsigned)_tzcnt_u64(which) & 63);

	/* A field never reaches the lowest bit, which the rotation takes to the top. */
	if (word == 1)
		*at |= (u8)(top >> 9);
	else if (word == 2)
		wfs_store16(at, (u16)(wfs_load16(at) | top >> 1));
	else
		wfs_store32(at, wfs_load32(at) | top << 15);
}

INLINE void patch(struct escapes *e, const struct wfs_decode_table *d, u64 which, const unsigned word, u8 *raw)
{
	patch_first(e, d, which, word, raw);
	for (which = _blsr_u64(which); wfs_unlikely(which); which = _blsr_u64(which))
		patch_first(e, d, which, word, raw);
}

/* ---- words ---- */

/* Partial bits of a superrow, rows of two halves. */
INLINE void unpack_partial(const u8 *rest, const unsigned partial, __m256i part[8][2])
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

/* Byte vectors of half a row, most significant first, to words rotated right by 1. Neighbouring words come from
 * interleaving within 128-bit lanes: what the lane order is made for. */
INLINE void write16(u8 *raw, unsigned half, __m256i b1, __m256i b0)
{
	store(raw + 32 * half, ror16(_mm256_unpacklo_epi8(b0, b1)));
	store(raw + 64 + 32 * half, ror16(_mm256_unpackhi_epi8(b0, b1)));
}
INLINE void write32(u8 *raw, unsigned half, __m256i b3, __m256i b2, __m256i b1, __m256i b0)
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
INLINE struct moded moded_make(struct wfs_split s, unsigned mode)
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
INLINE __m256i expand16(const struct moded *m, __m256i field, __m256i v)
{
	const __m256i mantissa = _mm256_sll_epi16(_mm256_srl_epi16(v, m->skip), m->up);
	const __m256i sign = _mm256_or_si256(_mm256_sll_epi16(v, m->keep), m->sign);

	return _mm256_or_si256(_mm256_or_si256(ror16(field), mantissa), sign);
}
INLINE __m256i expand32(const struct moded *m, __m256i field, __m256i v)
{
	const __m256i mantissa = _mm256_sll_epi32(_mm256_srl_epi32(v, m->skip), m->up);
	const __m256i sign = _mm256_or_si256(_mm256_sll_epi32(v, m->keep), m->sign);

	return _mm256_or_si256(_mm256_or_si256(ror32(field), mantissa), sign);
}
/* b[0..3]: v's bytes, least significant first. */
INLINE void write16_moded(u8 *raw, unsigned half, const struct moded *m, __m256i hi, __m256i lo, const __m256i *b)
{
	raw += 32 * half;
	store(raw, expand16(m, _mm256_unpacklo_epi8(lo, hi), _mm256_unpacklo_epi8(b[0], b[1])));
	store(raw + 64, expand16(m, _mm256_unpackhi_epi8(lo, hi), _mm256_unpackhi_epi8(b[0], b[1])));
}
INLINE void write32_moded(u8 *raw, unsigned half, const struct moded *m, __m256i hi, __m256i lo, const __m256i *b)
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

/* Any superrow of 2- and 4-byte words with rotation. Not inlined: the state is copied in and out, so that in the hot
 * loops it has no address and stays in registers. */
static __attribute__((noinline)) WFS_TARGET_AVX2 void superrow_moded(struct wfs_split s, unsigned mode,
								     const struct wfs_decode_table *d,
								     struct strand *strands, struct escapes *escapes,
								     const u8 *rest, u8 *raw)
{
	const struct moded m = moded_make(s, mode);
	const u8 *plane = rest + 64 * m.partial;
	const __m256i zero = _mm256_setzero_si256();
	struct strand k[2] = {strands[0], strands[1]};
	struct escapes e = *escapes;
	struct table t;
	__m256i part[8][2];

	load_table(&t, d);
	unpack_partial(rest, m.partial, part);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * s.word) {
		const struct row y = next_row(&t, &k[r & 1], true);

#pragma GCC unroll 2
		for (unsigned half = 0; half < 2; half++) {
			__m256i b[4] = {zero, zero, zero, zero};

			for (unsigned i = 0; i < m.planes; i++)
				b[m.planes - 1 - i] = load(plane + WFS_SUPER * i + 64 * r + 32 * half);
			b[m.planes] = part[r][half];
			if (s.word == 4)
				write32_moded(raw, half, &m, y.hi[half], y.lo[half], b);
			else
				write16_moded(raw, half, &m, y.hi[half], y.lo[half], b);
		}
		if (s.word == 4)
			patch(&e, d, y.escapes, 4, raw);
		else
			patch(&e, d, y.escapes, 2, raw);
	}
	strands[0] = k[0];
	strands[1] = k[1];
	*escapes = e;
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
	struct strand k[2];
	struct escapes e;
	const u8 *rest;
	u8 *raw;
};

/* One superrow in mode 0. */
INLINE void superrow(const enum shape shape, const struct table *t, struct strand *k, struct escapes *e,
		     const struct wfs_decode_table *d, const u8 *rest, u8 *raw)
{
	const unsigned word = shapes[shape].word, partial = shapes[shape].partial;
	const u8 *plane = rest + 64 * partial;
	const __m256i low7 = _mm256_set1_epi8(0x7f);
	__m256i part[8][2], row7[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};

	if (partial && partial < 7)
		unpack_partial(rest, partial, part);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += 64 * word) {
		const struct row y = next_row(t, &k[r & 1], partial == 7);

#pragma GCC unroll 2
		for (unsigned half = 0; half < 2; half++) {
			const unsigned at = 64 * r + 32 * half;
			__m256i low = y.lo[half];

			if (partial == 7) { /* row 7 grows at the top of row7, one bit from each vector */
				__m256i v = _mm256_srli_epi16(row7[half], 1);

				if (r < 7) {
					const __m256i bits = load(rest + at);

					row7[half] = pick(bits, v, low7);
					v = bits;
				}
				low = _mm256_or_si256(low, _mm256_and_si256(v, low7));
			}
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
		patch(e, d, y.escapes, word, raw);
	}
}

/* All superrows but the last. */
INLINE void decode_supers(const enum shape shape, struct work *w)
{
	const struct wfs_split_view *v = w->v;
	const size_t nr = (v->n - 1) / WFS_SUPER;
	const unsigned seg_supers_log2 = w->pool->seg_log2 - 9, word = shape == OTHER ? w->s.word : shapes[shape].word;
	const struct wfs_decode_table *d = &w->pool->table[v->seg[0]];
	struct strand k[2] = {w->k[0], w->k[1]};
	struct escapes e = w->e;
	struct table t;
	const u8 *rest = w->rest;
	u8 *raw = w->raw;

	load_table(&t, d);
	for (size_t super = 0; super < nr; super++, raw += WFS_SUPER * word) {
		const struct wfs_decode_table *next = &w->pool->table[v->seg[super >> seg_supers_log2]];
		const unsigned mode = wfs_split_mode(v, super);
		const size_t rest_bytes = shape == OTHER || mode ? 64 * wfs_mode_rest_bits(w->s, mode)
								 : 64u * (8 * word - shapes[shape].field);

		if (next != d) {
			d = next;
			load_table(&t, d);
		}
		for (unsigned i = 0; i < WFS_SUPER * word; i += 64)
			prefetch_write(raw + PREFETCH_RAW + i);
		for (size_t i = 0; i < rest_bytes; i += 64)
			_mm_prefetch(rest + PREFETCH_REST + i, _MM_HINT_T0);
		if (shape == OTHER || wfs_unlikely(mode)) {
			struct strand k2[2] = {k[0], k[1]};
			struct escapes e2 = e;

			superrow_moded(w->s, mode, d, k2, &e2, rest, raw);
			k[0] = k2[0];
			k[1] = k2[1];
			e = e2;
		} else {
			superrow(shape, &t, k, &e, d, rest, raw);
		}
		rest += rest_bytes;
	}
	w->k[0] = k[0];
	w->k[1] = k[1];
	w->e = e;
	w->rest = rest;
	w->raw = raw;
}

#define DEFINE_SUPERS(name, shape)                                                                                     \
	static __attribute__((noinline)) WFS_TARGET_AVX2 void name(struct work *w)                                     \
	{                                                                                                              \
		decode_supers(shape, w);                                                                               \
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
static void (*choose(struct wfs_split s))(struct work *)
{
	static void (*const fn[])(struct work *) = {
		[W2_F9] = decode_w2_f9, [W2_F8] = decode_w2_f8, [W2_F6] = decode_w2_f6, [W4_F9] = decode_w4_f9,
		[W1_F5] = decode_w1_f5, [W1_F6] = decode_w1_f6, [W1_F7] = decode_w1_f7,
	};

	for (unsigned i = 0; i < WFS_ARRAY_LEN(shapes); i++) {
		if (s.word == shapes[i].word && s.rot == shapes[i].rot && s.field == shapes[i].field)
			return fn[i];
	}
	return (s.word == 2 || s.word == 4) && s.rot == 1 ? decode_other : NULL;
}

/* The last unit's rows; true when states, streams and escapes end as they must. */
static WFS_TARGET_AVX2 bool decode_last(struct work *w, u16 *top, u8 *final_l)
{
	const struct wfs_decode_table *d = &w->pool->table[w->v->seg[(w->v->n - 1) >> w->pool->seg_log2]];
	const __m256i one = _mm256_set1_epi8(1);
	__m256i wrong = _mm256_setzero_si256();
	struct strand k[2] = {w->k[0], w->k[1]};
	struct escapes e = w->e;
	struct table t;

	load_table(&t, d);
	for (unsigned r = 0; r < wfs_last_rows(w->v->n); r++, top += WFS_LANES) {
		const struct row y = next_row(&t, &k[r & 1], true);

		for (unsigned i = 0; i < 4; i++) {
			const __m256i hi = y.hi[i / 2], lo = y.lo[i / 2];
			const __m128i hi16 = i & 1 ? _mm256_extracti128_si256(hi, 1) : _mm256_castsi256_si128(hi);
			const __m128i lo16 = i & 1 ? _mm256_extracti128_si256(lo, 1) : _mm256_castsi256_si128(lo);

			_mm_storeu_si128((void *)(top + 16 * i), _mm_unpacklo_epi8(lo16, hi16));
			_mm_storeu_si128((void *)(top + 16 * i + 8), _mm_unpackhi_epi8(lo16, hi16));
		}
		for (u64 which = y.escapes; which; which = _blsr_u64(which))
			top[_tzcnt_u64(which)] = (u16)next_escape_top(&e, d, true);
	}
	for (unsigned i = 0; i < 4; i++) {
		store(final_l + 32 * i, k[i / 2].l[i & 1]);
		wrong = _mm256_or_si256(wrong, _mm256_xor_si256(k[i / 2].h[i & 1], one));
	}
	return _mm256_testz_si256(wrong, wrong) && k[0].p == k[0].end && k[1].p == k[1].end &&
	       e.used == w->v->nr_escapes;
}

static WFS_TARGET_AVX2 enum wfs_status decode_avx2(const struct wfs_split_view *v, const struct wfs_decode_pool *pool,
						   struct wfs_split s, u8 *raw, struct wfs_scratch *scratch,
						   const char **reason_ret)
{
	void (*const supers)(struct work *) = choose(s);
	struct work w = {.v = v, .pool = pool, .s = s, .e = {.v = v}, .rest = v->rest, .raw = raw};
	const char *reason = WFS_SPLIT_UNPROVEN;
	u16 top[WFS_SUPER];
	u8 final_l[WFS_CARRIED];

	if (!supers || v->edges - v->escapes < WFS_VECTOR_SLACK)
		return wfs_split_decode_scalar(v, pool, s, raw, scratch, reason_ret);
	for (unsigned i = 0; i < WFS_STRANDS; i++) {
#pragma GCC unroll 2
		for (unsigned half = 0; half < 2; half++) {
			w.k[i].l[half] = load(v->states + 128 * i + 32 * half);
			w.k[i].h[half] = load(v->states + 128 * i + 64 + 32 * half);
		}
		w.k[i].p = v->stream[i];
		w.k[i].end = v->stream_end[i];
	}
	supers(&w);
	if (decode_last(&w, top, final_l))
		reason = wfs_split_finish(v, s, top, final_l, raw);
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
