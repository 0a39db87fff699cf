/* split_encode_avx2.c - the encoder's AVX2 kernel: words of 1, 2 and 4 bytes; 8 bytes take the scalar functions.
 *
 * A row is handled as two halves of 32 positions. In lane order (FORMAT.md 2.1) the 16-byte groups of words that one
 * 128-bit lane needs lie 64 bytes apart, so the in-lane pack instructions bring words into position order. Loops over
 * the bytes of a word are unrolled by order: gcc -O2 would keep them, and their arrays in memory.
 */
#include "split_encode.h"

#ifdef __x86_64__
#include <immintrin.h>

#define INLINE_AVX2 static WFS_TARGET_AVX2 WFS_ALWAYS_INLINE

/* Indices of the set bits of a mask, in the last bytes: keeps bytes of 8 lanes, right-aligned. */
static const u64 keep_right[256] = {
	0x0000000000000000, 0x0000000000000000, 0x0100000000000000, 0x0100000000000000, 0x0200000000000000,
	0x0200000000000000, 0x0201000000000000, 0x0201000000000000, 0x0300000000000000, 0x0300000000000000,
	0x0301000000000000, 0x0301000000000000, 0x0302000000000000, 0x0302000000000000, 0x0302010000000000,
	0x0302010000000000, 0x0400000000000000, 0x0400000000000000, 0x0401000000000000, 0x0401000000000000,
	0x0402000000000000, 0x0402000000000000, 0x0402010000000000, 0x0402010000000000, 0x0403000000000000,
	0x0403000000000000, 0x0403010000000000, 0x0403010000000000, 0x0403020000000000, 0x0403020000000000,
	0x0403020100000000, 0x0403020100000000, 0x0500000000000000, 0x0500000000000000, 0x0501000000000000,
	0x0501000000000000, 0x0502000000000000, 0x0502000000000000, 0x0502010000000000, 0x0502010000000000,
	0x0503000000000000, 0x0503000000000000, 0x0503010000000000, 0x0503010000000000, 0x0503020000000000,
	0x0503020000000000, 0x0503020100000000, 0x0503020100000000, 0x0504000000000000, 0x0504000000000000,
	0x0504010000000000, 0x0504010000000000, 0x0504020000000000, 0x0504020000000000, 0x0504020100000000,
	0x0504020100000000, 0x0504030000000000, 0x0504030000000000, 0x0504030100000000, 0x0504030100000000,
	0x0504030200000000, 0x0504030200000000, 0x0504030201000000, 0x0504030201000000, 0x0600000000000000,
	0x0600000000000000, 0x0601000000000000, 0x0601000000000000, 0x0602000000000000, 0x0602000000000000,
	0x0602010000000000, 0x0602010000000000, 0x0603000000000000, 0x0603000000000000, 0x0603010000000000,
	0x0603010000000000, 0x0603020000000000, 0x0603020000000000, 0x0603020100000000, 0x0603020100000000,
	0x0604000000000000, 0x0604000000000000, 0x0604010000000000, 0x0604010000000000, 0x0604020000000000,
	0x0604020000000000, 0x0604020100000000, 0x0604020100000000, 0x0604030000000000, 0x0604030000000000,
	0x0604030100000000, 0x0604030100000000, 0x0604030200000000, 0x0604030200000000, 0x0604030201000000,
	0x0604030201000000, 0x0605000000000000, 0x0605000000000000, 0x0605010000000000, 0x0605010000000000,
	0x0605020000000000, 0x0605020000000000, 0x0605020100000000, 0x0605020100000000, 0x0605030000000000,
	0x0605030000000000, 0x0605030100000000, 0x0605030100000000, 0x0605030200000000, 0x0605030200000000,
	0x0605030201000000, 0x0605030201000000, 0x0605040000000000, 0x0605040000000000, 0x0605040100000000,
	0x0605040100000000, 0x0605040200000000, 0x0605040200000000, 0x0605040201000000, 0x0605040201000000,
	0x0605040300000000, 0x0605040300000000, 0x0605040301000000, 0x0605040301000000, 0x0605040302000000,
	0x0605040302000000, 0x0605040302010000, 0x0605040302010000, 0x0700000000000000, 0x0700000000000000,
	0x0701000000000000, 0x0701000000000000, 0x0702000000000000, 0x0702000000000000, 0x0702010000000000,
	0x0702010000000000, 0x0703000000000000, 0x0703000000000000, 0x0703010000000000, 0x0703010000000000,
	0x0703020000000000, 0x0703020000000000, 0x0703020100000000, 0x0703020100000000, 0x0704000000000000,
	0x0704000000000000, 0x0704010000000000, 0x0704010000000000, 0x0704020000000000, 0x0704020000000000,
	0x0704020100000000, 0x0704020100000000, 0x0704030000000000, 0x0704030000000000, 0x0704030100000000,
	0x0704030100000000, 0x0704030200000000, 0x0704030200000000, 0x0704030201000000, 0x0704030201000000,
	0x0705000000000000, 0x0705000000000000, 0x0705010000000000, 0x0705010000000000, 0x0705020000000000,
	0x0705020000000000, 0x0705020100000000, 0x0705020100000000, 0x0705030000000000, 0x0705030000000000,
	0x0705030100000000, 0x0705030100000000, 0x0705030200000000, 0x0705030200000000, 0x0705030201000000,
	0x0705030201000000, 0x0705040000000000, 0x0705040000000000, 0x0705040100000000, 0x0705040100000000,
	0x0705040200000000, 0x0705040200000000, 0x0705040201000000, 0x0705040201000000, 0x0705040300000000,
	0x0705040300000000, 0x0705040301000000, 0x0705040301000000, 0x0705040302000000, 0x0705040302000000,
	0x0705040302010000, 0x0705040302010000, 0x0706000000000000, 0x0706000000000000, 0x0706010000000000,
	0x0706010000000000, 0x0706020000000000, 0x0706020000000000, 0x0706020100000000, 0x0706020100000000,
	0x0706030000000000, 0x0706030000000000, 0x0706030100000000, 0x0706030100000000, 0x0706030200000000,
	0x0706030200000000, 0x0706030201000000, 0x0706030201000000, 0x0706040000000000, 0x0706040000000000,
	0x0706040100000000, 0x0706040100000000, 0x0706040200000000, 0x0706040200000000, 0x0706040201000000,
	0x0706040201000000, 0x0706040300000000, 0x0706040300000000, 0x0706040301000000, 0x0706040301000000,
	0x0706040302000000, 0x0706040302000000, 0x0706040302010000, 0x0706040302010000, 0x0706050000000000,
	0x0706050000000000, 0x0706050100000000, 0x0706050100000000, 0x0706050200000000, 0x0706050200000000,
	0x0706050201000000, 0x0706050201000000, 0x0706050300000000, 0x0706050300000000, 0x0706050301000000,
	0x0706050301000000, 0x0706050302000000, 0x0706050302000000, 0x0706050302010000, 0x0706050302010000,
	0x0706050400000000, 0x0706050400000000, 0x0706050401000000, 0x0706050401000000, 0x0706050402000000,
	0x0706050402000000, 0x0706050402010000, 0x0706050402010000, 0x0706050403000000, 0x0706050403000000,
	0x0706050403010000, 0x0706050403010000, 0x0706050403020000, 0x0706050403020000, 0x0706050403020100,
	0x0706050403020100,
};

INLINE_AVX2 __m256i load256(const void *p)
{
	return _mm256_loadu_si256(p);
}
INLINE_AVX2 void store256(void *p, __m256i v)
{
	_mm256_storeu_si256(p, v);
}

/* ---- words ---- */

/* 32 bytes of words, rotated left by 0 or 1. */
INLINE_AVX2 __m256i words_load(const unsigned word, unsigned rot, const u8 *p)
{
	__m256i x = load256(p);
	if (!rot)
		return x;
	if (word == 4)
		return _mm256_or_si256(_mm256_slli_epi32(x, 1), _mm256_srli_epi32(x, 31));
	if (word == 2)
		return _mm256_or_si256(_mm256_slli_epi16(x, 1), _mm256_srli_epi16(x, 15));
	__m256i one = _mm256_set1_epi8(1);
	return _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(x, 7), one),
			       _mm256_andnot_si256(one, _mm256_slli_epi16(x, 1)));
}

/* Low and high halves of 32-bit words, low and high bytes of 16-bit words, in lane. */
INLINE_AVX2 __m256i pack_lo16(__m256i a, __m256i b)
{
	const __m256i mask = _mm256_set1_epi32(0xffff);
	return _mm256_packus_epi32(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
}
INLINE_AVX2 __m256i pack_hi16(__m256i a, __m256i b)
{
	return _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
}
INLINE_AVX2 __m256i pack_lo8(__m256i a, __m256i b)
{
	const __m256i mask = _mm256_set1_epi16(255);
	return _mm256_packus_epi16(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
}
INLINE_AVX2 __m256i pack_hi8(__m256i a, __m256i b)
{
	return _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
}

/* The words' bytes as planes in position order, most significant first. */
INLINE_AVX2 void planes_split(const unsigned word, const __m256i *x, __m256i *plane)
{
	if (word == 1) {
		plane[0] = x[0];
	} else if (word == 2) {
		plane[0] = pack_hi8(x[0], x[1]);
		plane[1] = pack_lo8(x[0], x[1]);
	} else {
		__m256i hi_a = pack_hi16(x[0], x[1]), hi_b = pack_hi16(x[2], x[3]);
		__m256i lo_a = pack_lo16(x[0], x[1]), lo_b = pack_lo16(x[2], x[3]);
		plane[0] = pack_hi8(hi_a, hi_b);
		plane[1] = pack_lo8(hi_a, hi_b);
		plane[2] = pack_hi8(lo_a, lo_b);
		plane[3] = pack_lo8(lo_a, lo_b);
	}
}

/* Stores 16-bit values of 32 positions: a holds the first 8 of both lanes, b the second. */
INLINE_AVX2 void field_store(u16 *field, __m256i a, __m256i b)
{
	store256(field, _mm256_permute2x128_si256(a, b, 0x20));
	store256(field + 16, _mm256_permute2x128_si256(a, b, 0x31));
}

INLINE_AVX2 void fields_load(const unsigned word, struct wfs_split s, const u8 *raw, size_t nr_supers, u16 *field)
{
	const __m128i shift = _mm_cvtsi32_si128(word == 1 ? 8 - s.field : 16 - s.field);

	for (size_t i = 0; i < nr_supers * WFS_SUPER_ROWS * 2; i++, field += WFS_LANES / 2) {
		const u8 *p = raw + i / 2 * WFS_LANES * word + i % 2 * 32;
		__m256i x[4];
#pragma GCC unroll 8
		for (unsigned g = 0; g < word; g++)
			x[g] = words_load(word, s.rot, p + 64 * g);
		if (word == 1) {
			__m256i zero = _mm256_setzero_si256();
			field_store(field, _mm256_srl_epi16(_mm256_unpacklo_epi8(x[0], zero), shift),
				    _mm256_srl_epi16(_mm256_unpackhi_epi8(x[0], zero), shift));
			continue;
		}
		__m256i a = word == 2 ? x[0] : pack_hi16(x[0], x[1]), b = word == 2 ? x[1] : pack_hi16(x[2], x[3]);
		field_store(field, _mm256_srl_epi16(a, shift), _mm256_srl_epi16(b, shift));
	}
}

static WFS_TARGET_AVX2 void fields_avx2(struct wfs_split s, const u8 *raw, size_t nr_supers, u16 *field)
{
	if (s.word == 1)
		fields_load(1, s, raw, nr_supers, field);
	else if (s.word == 2)
		fields_load(2, s, raw, nr_supers, field);
	else if (s.word == 4)
		fields_load(4, s, raw, nr_supers, field);
	else
		wfs_encode_fields_scalar(s, raw, nr_supers * WFS_SUPER, field);
}

/* The stored bits of words in a mode (FORMAT.md 2.5), with the field's bits still above them. */
INLINE_AVX2 __m256i words_in_mode(const unsigned word, unsigned mode, __m256i x)
{
	const __m128i shift = _mm_cvtsi32_si128((int)wfs_mode_zeros(mode) + 1);
	const __m256i one = word == 4 ? _mm256_set1_epi32(1) : _mm256_set1_epi16(1);
	__m256i v = word == 4 ? _mm256_srl_epi32(x, shift) : _mm256_srl_epi16(x, shift);

	if (wfs_mode_sign(mode))
		return v;
	v = word == 4 ? _mm256_slli_epi32(v, 1) : _mm256_slli_epi16(v, 1);
	return _mm256_or_si256(v, _mm256_and_si256(x, one));
}

/* partial: 8 rows in two halves. Vector i keeps row i in its low bits; its bit j >= bits is bit i of row j. */
INLINE_AVX2 void partial_pack(const __m256i (*partial)[2], unsigned bits, u8 *out)
{
	for (unsigned i = 0; i < bits; i++)
		for (unsigned h = 0; h < 2; h++) {
			__m256i v = partial[i][h];
			for (unsigned j = bits; j < WFS_SUPER_ROWS; j++) {
				__m256i moved = _mm256_sll_epi16(partial[j][h], _mm_cvtsi32_si128((int)(j - i)));
				v = _mm256_or_si256(v, _mm256_and_si256(moved, _mm256_set1_epi8((char)(1 << j))));
			}
			store256(out + WFS_LANES * i + 32 * h, v);
		}
}

INLINE_AVX2 u8 *rest_pack(const unsigned word, struct wfs_split s, unsigned mode, const u8 *raw, u8 *rest)
{
	const struct wfs_split packing = wfs_split_in_mode(s, mode);
	const __m256i mask = _mm256_set1_epi8((char)((1 << packing.partial) - 1));
	u8 *planes = rest + WFS_LANES * packing.partial;
	__m256i partial[WFS_SUPER_ROWS][2], plane[4], x[4];

	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++) {
#pragma GCC unroll 8
		for (unsigned h = 0; h < 2; h++) {
			u8 *out = planes + WFS_LANES * r + 32 * h;
#pragma GCC unroll 8
			for (unsigned g = 0; g < word; g++) {
				x[g] = words_load(word, s.rot, raw + (r * word + g) * WFS_LANES + 32 * h);
				if (word > 1 && mode)
					x[g] = words_in_mode(word, mode, x[g]);
			}
			planes_split(word, x, plane);
			partial[r][h] = plane[0];
#pragma GCC unroll 8
			for (unsigned k = 0; k < word; k++) {
				unsigned left = word - k; /* planes from this one on */
				if (left == packing.planes + 1u)
					partial[r][h] = plane[k];
				if (left <= packing.planes)
					store256(out + (packing.planes - left) * WFS_SUPER, plane[k]);
			}
			partial[r][h] = _mm256_and_si256(partial[r][h], mask);
		}
	}
	partial_pack(partial, packing.partial, rest);
	return planes + (size_t)WFS_SUPER * packing.planes;
}

static WFS_TARGET_AVX2 u8 *superrow_avx2(struct wfs_split s, const struct wfs_encode_table *table, unsigned mode,
					 const u8 *raw, const u16 *field, u8 *sym, u8 *rest)
{
	const u8 *map = table->map;

	if (s.word == 8)
		return wfs_encode_unit_scalar(s, table, mode, raw, WFS_SUPER, WFS_SUPER_ROWS, sym, rest);
	for (unsigned p = 0; p < WFS_SUPER; p += 4) {
		u64 four = wfs_load64(field + p);
		sym[p] = map[four & 0xffff];
		sym[p + 1] = map[four >> 16 & 0xffff];
		sym[p + 2] = map[four >> 32 & 0xffff];
		sym[p + 3] = map[four >> 48];
	}
	if (s.word == 1)
		return rest_pack(1, s, mode, raw, rest);
	if (s.word == 2)
		return rest_pack(2, s, mode, raw, rest);
	return rest_pack(4, s, mode, raw, rest);
}

/* ---- decisions ---- */

static WFS_TARGET_AVX2 unsigned choose_avx2(const struct wfs_encode_pool *pool, const u16 *field, size_t nr,
					    u16 (*hist)[WFS_FIELD_VALUES])
{
	const unsigned nr_tables = pool->nr_tables;
	__m256i sum[WFS_MAX_TABLES];
	u32 best = 0, best_cost = UINT32_MAX;

	if (nr_tables == 1)
		return 0;
	for (unsigned t = 0; t < nr_tables; t++)
		sum[t] = _mm256_setzero_si256();
	wfs_hist_count(field, nr, pool->nr_chunks * WFS_COST_CHUNK, hist);
	for (u32 c = 0; c < pool->nr_chunks; c++) {
		__m256i count[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
		for (unsigned k = 0; k < WFS_HISTS; k++)
			for (unsigned h = 0; h < 2; h++)
				count[h] = _mm256_add_epi16(count[h], load256(&hist[k][c * WFS_COST_CHUNK + 16 * h]));
		__m256i any = _mm256_or_si256(count[0], count[1]);
		if (_mm256_testz_si256(any, any))
			continue;
		const u16 *cost = pool->cost + (size_t)c * nr_tables * WFS_COST_CHUNK;
		for (unsigned t = 0; t < nr_tables; t++, cost += WFS_COST_CHUNK)
			sum[t] = _mm256_add_epi32(sum[t],
						  _mm256_add_epi32(_mm256_madd_epi16(count[0], load256(cost)),
								   _mm256_madd_epi16(count[1], load256(cost + 16))));
	}
	for (unsigned t = 0; t < nr_tables; t++) {
		__m128i v = _mm_add_epi32(_mm256_castsi256_si128(sum[t]), _mm256_extracti128_si256(sum[t], 1));
		v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
		v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
		u32 cost = (u32)_mm_cvtsi128_si32(v);
		if (cost < best_cost) {
			best_cost = cost;
			best = t;
		}
	}
	return best;
}

static WFS_TARGET_AVX2 size_t escapes_avx2(const u8 *sym, size_t nr_rows, u8 *nibble)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_rows * WFS_LANES; i += 32) {
		/* ids from WFS_TAIL_BASE on have bit 5: bring it to the sign */
		u32 escaped = (u32)_mm256_movemask_epi8(_mm256_slli_epi16(load256(sym + i), 2));
		for (; escaped; escaped &= escaped - 1)
			nibble[nr++] = sym[i + (unsigned)__builtin_ctz(escaped)] - WFS_TAIL_BASE;
	}
	return nr;
}

/* ---- the rANS pass ---- */

/* A table of 32 bytes as two vectors for pshufb, each doubled; struct wfs_encode_sym says what they are. */
struct pass_table {
	__m256i freq[2], base[2], first[2], jump[2], recip_lo[2], recip_hi[2], escape;
};

INLINE_AVX2 void half_tables_load(__m256i *out, const u8 *from)
{
	for (unsigned i = 0; i < 2; i++)
		out[i] = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(from + 16 * i)));
}

INLINE_AVX2 void pass_table_load(struct pass_table *t, const struct wfs_encode_table *from)
{
	half_tables_load(t->freq, from->freq);
	half_tables_load(t->base, from->base);
	half_tables_load(t->first, from->first);
	half_tables_load(t->jump, from->jump);
	half_tables_load(t->recip_lo, from->recip16_lo);
	half_tables_load(t->recip_hi, from->recip16_hi);
	t->escape = _mm256_set1_epi8((char)from->escape);
}

/* Entry 0..31 of a table. lo: index + 0x70, which has bit 7 set from 16 on; hi: index - 16, set below 16. */
INLINE_AVX2 __m256i look_up(const __m256i *table, __m256i lo, __m256i hi)
{
	return _mm256_or_si256(_mm256_shuffle_epi8(table[0], lo), _mm256_shuffle_epi8(table[1], hi));
}

/* The bytes of v whose mask bit is set, in order, in front of end; returns their start. Writes up to 16 bytes. */
INLINE_AVX2 u8 *bytes_push(__m128i v, u32 mask, u8 *end)
{
	u32 a = mask & 255, b = mask >> 8 & 255;
	__m128i index = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)&keep_right[a]),
					   _mm_loadl_epi64((const __m128i *)&keep_right[b]));
	__m128i kept = _mm_shuffle_epi8(v, _mm_or_si128(index, _mm_set_epi64x(0x0808080808080808, 0)));

	_mm_storel_epi64((__m128i *)(end - 8), _mm_unpackhi_epi64(kept, kept));
	end -= _mm_popcnt_u32(b);
	_mm_storel_epi64((__m128i *)(end - 8), kept);
	return end - _mm_popcnt_u32(a);
}

/* 16-bit quotient and remainder of 16 states by reciprocal and one correction: x recip / 2^16 falls short of x / freq
 * by less than x / 2^16 < 1, so q is right or one too small. */
INLINE_AVX2 void states_divide(__m256i x, __m256i freq, __m256i recip, __m256i *quotient, __m256i *rank)
{
	__m256i q = _mm256_mulhi_epu16(x, recip), r = _mm256_sub_epi16(x, _mm256_mullo_epi16(q, freq));
	__m256i done = _mm256_cmpgt_epi16(freq, r); /* both below 2^9 */
	*quotient = _mm256_sub_epi16(_mm256_add_epi16(q, _mm256_set1_epi16(1)), _mm256_srli_epi16(done, 15));
	*rank = _mm256_sub_epi16(r, _mm256_andnot_si256(done, freq));
}

/* Pushes 32 symbols on states lo | hi << 8; returns the new end of the stream. */
INLINE_AVX2 u8 *symbols_push(const struct pass_table *t, const u8 *sym, __m256i *lo, __m256i *hi, u8 *end)
{
	const __m256i low_bytes = _mm256_set1_epi16(255);
	__m256i s = load256(sym), l = *lo, h = *hi;
	s = _mm256_blendv_epi8(s, t->escape, _mm256_cmpgt_epi8(s, _mm256_set1_epi8(WFS_TAIL_BASE - 1)));
	__m256i a = _mm256_add_epi8(s, _mm256_set1_epi8(0x70)), b = _mm256_sub_epi8(s, _mm256_set1_epi8(16));
	__m256i freq = look_up(t->freq, a, b);

	__m256i whole = _mm256_cmpeq_epi8(_mm256_max_epu8(h, freq), h); /* h >= freq: a byte leaves */
	u32 mask = (u32)_mm256_movemask_epi8(whole);
	end = bytes_push(_mm256_extracti128_si256(l, 1), mask >> 16, end);
	end = bytes_push(_mm256_castsi256_si128(l), mask, end);
	l = _mm256_blendv_epi8(l, h, whole);
	h = _mm256_andnot_si256(whole, h);

	__m256i r_lo = look_up(t->recip_lo, a, b), r_hi = look_up(t->recip_hi, a, b), q[2], r[2];
	states_divide(_mm256_or_si256(_mm256_and_si256(l, low_bytes), _mm256_slli_epi16(h, 8)),
		      _mm256_and_si256(freq, low_bytes),
		      _mm256_or_si256(_mm256_and_si256(r_lo, low_bytes), _mm256_slli_epi16(r_hi, 8)), &q[0], &r[0]);
	states_divide(_mm256_or_si256(_mm256_srli_epi16(l, 8), _mm256_andnot_si256(low_bytes, h)),
		      _mm256_srli_epi16(freq, 8),
		      _mm256_or_si256(_mm256_srli_epi16(r_lo, 8), _mm256_andnot_si256(low_bytes, r_hi)), &q[1], &r[1]);
	*hi = _mm256_or_si256(q[0], _mm256_slli_epi16(q[1], 8));
	__m256i rank = _mm256_or_si256(r[0], _mm256_slli_epi16(r[1], 8)), first = look_up(t->first, a, b);
	__m256i second = _mm256_cmpeq_epi8(_mm256_max_epu8(rank, first), rank);
	*lo = _mm256_add_epi8(_mm256_add_epi8(rank, look_up(t->base, a, b)),
			      _mm256_and_si256(look_up(t->jump, a, b), second));
	return end;
}

static WFS_TARGET_AVX2 void pass_avx2(const struct wfs_encode_pool *pool, const u8 *sym, size_t nr_rows, const u8 *seg,
				      const u8 *carried, u8 *states, u8 **end)
{
	const unsigned rows_log2 = pool->seg_log2 - 6u;
	__m256i lo[WFS_STRANDS][2], hi[WFS_STRANDS][2];
	struct pass_table table;
	u8 *end0 = end[0], *end1 = end[1];
	unsigned current = seg[(nr_rows - 1) >> rows_log2];

	pass_table_load(&table, &pool->table[current]);
	for (unsigned k = 0; k < WFS_STRANDS; k++)
		for (unsigned h = 0; h < 2; h++) {
			lo[k][h] = load256(carried + k * WFS_LANES + 32 * h);
			hi[k][h] = _mm256_set1_epi8(1);
		}
	for (size_t r = nr_rows; r > 0;) {
		size_t g = (r - 1) >> rows_log2, first_row = g << rows_log2;
		if (seg[g] != current) {
			current = seg[g];
			pass_table_load(&table, &pool->table[current]);
		}
		if (r % 2) {
			const u8 *row = sym + --r * WFS_LANES;
			end0 = symbols_push(&table, row + 32, &lo[0][1], &hi[0][1], end0);
			end0 = symbols_push(&table, row, &lo[0][0], &hi[0][0], end0);
		}
		for (; r > first_row; r -= 2) {
			const u8 *rows = sym + (r - 2) * WFS_LANES;
			end1 = symbols_push(&table, rows + 96, &lo[1][1], &hi[1][1], end1);
			end0 = symbols_push(&table, rows + 32, &lo[0][1], &hi[0][1], end0);
			end1 = symbols_push(&table, rows + 64, &lo[1][0], &hi[1][0], end1);
			end0 = symbols_push(&table, rows, &lo[0][0], &hi[0][0], end0);
		}
	}
	for (unsigned k = 0; k < WFS_STRANDS; k++)
		for (unsigned h = 0; h < 2; h++) {
			store256(states + 2 * WFS_LANES * k + 32 * h, lo[k][h]);
			store256(states + 2 * WFS_LANES * k + WFS_LANES + 32 * h, hi[k][h]);
		}
	end[0] = end0;
	end[1] = end1;
}

static const struct wfs_encode_kernel kernel_avx2 = {
	.fields = fields_avx2,
	.choose = choose_avx2,
	.superrow = superrow_avx2,
	.escapes = escapes_avx2,
	.pass = pass_avx2,
};

const struct wfs_encode_kernel *wfs_encode_kernel_avx2_get(void)
{
	return &kernel_avx2;
}

#else

const struct wfs_encode_kernel *wfs_encode_kernel_avx2_get(void)
{
	return NULL;
}

#endif
