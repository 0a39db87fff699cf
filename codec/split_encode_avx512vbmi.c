/* split_encode_avx512vbmi.c - the encoder's AVX-512 kernel (VBMI and VBMI2): words of 1, 2 and 4 bytes; 8 bytes take
 * the scalar functions.
 *
 * In lane order (FORMAT.md 2.1) the in-lane pack instructions bring the words of a row into position order: one vector
 * holds one byte of all 64 words. Tables of up to 512 bytes are looked up in registers. Loops over the bytes of a word
 * are unrolled by order: gcc -O2 would keep them, and their arrays in memory.
 */
#include "split_encode.h"

#ifdef __x86_64__
#include <immintrin.h>

#define INLINE_VBMI static WFS_TARGET_AVX512VBMI WFS_ALWAYS_INLINE

enum { MAP_FIELD = 9 }; /* widest field whose map fits in registers */

INLINE_VBMI __m512i load512(const void *p)
{
	return _mm512_loadu_si512(p);
}
INLINE_VBMI void store512(void *p, __m512i v)
{
	_mm512_storeu_si512(p, v);
}
/* Bits of a where mask is 1, of b where it is 0. */
INLINE_VBMI __m512i select512(__m512i mask, __m512i a, __m512i b)
{
	return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
}
INLINE_VBMI __m512i shift_right16(__m512i v, unsigned bits)
{
	return _mm512_srl_epi16(v, _mm_cvtsi32_si128((int)bits));
}
INLINE_VBMI __m512i shift_left16(__m512i v, unsigned bits)
{
	return _mm512_sll_epi16(v, _mm_cvtsi32_si128((int)bits));
}

/* ---- words ---- */

/* 64 bytes of words, rotated left by 0 or 1. */
INLINE_VBMI __m512i words_load(const unsigned word, unsigned rot, const u8 *p)
{
	__m512i x = load512(p);
	if (!rot)
		return x;
	if (word == 4)
		return _mm512_rol_epi32(x, 1);
	if (word == 2)
		return _mm512_shldi_epi16(x, x, 1);
	return select512(_mm512_set1_epi8(1), _mm512_srli_epi16(x, 7), _mm512_slli_epi16(x, 1));
}

/* Low and high halves of 32-bit words, low and high bytes of 16-bit words, in lane. */
INLINE_VBMI __m512i pack_lo16(__m512i a, __m512i b)
{
	const __m512i mask = _mm512_set1_epi32(0xffff);
	return _mm512_packus_epi32(_mm512_and_si512(a, mask), _mm512_and_si512(b, mask));
}
INLINE_VBMI __m512i pack_hi16(__m512i a, __m512i b)
{
	return _mm512_packus_epi32(_mm512_srli_epi32(a, 16), _mm512_srli_epi32(b, 16));
}
INLINE_VBMI __m512i pack_lo8(__m512i a, __m512i b)
{
	const __m512i mask = _mm512_set1_epi16(255);
	return _mm512_packus_epi16(_mm512_and_si512(a, mask), _mm512_and_si512(b, mask));
}
INLINE_VBMI __m512i pack_hi8(__m512i a, __m512i b)
{
	return _mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
}

/* The words' bytes as planes in position order, most significant first. */
INLINE_VBMI void planes_split(const unsigned word, const __m512i *x, __m512i *plane)
{
	if (word == 1) {
		plane[0] = x[0];
	} else if (word == 2) {
		plane[0] = pack_hi8(x[0], x[1]);
		plane[1] = pack_lo8(x[0], x[1]);
	} else {
		__m512i hi_a = pack_hi16(x[0], x[1]), hi_b = pack_hi16(x[2], x[3]);
		__m512i lo_a = pack_lo16(x[0], x[1]), lo_b = pack_lo16(x[2], x[3]);
		plane[0] = pack_hi8(hi_a, hi_b);
		plane[1] = pack_lo8(hi_a, hi_b);
		plane[2] = pack_hi8(lo_a, lo_b);
		plane[3] = pack_lo8(lo_a, lo_b);
	}
}

/* Stores 16-bit values of 64 positions: a holds the first 8 of each lane's 16 positions, b the second. */
INLINE_VBMI void field_store(u16 *field, __m512i a, __m512i b)
{
	const __m512i front = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
	const __m512i back = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
	store512(field, _mm512_permutex2var_epi64(a, front, b));
	store512(field + 32, _mm512_permutex2var_epi64(a, back, b));
}

INLINE_VBMI void fields_load(const unsigned word, struct wfs_split s, const u8 *raw, size_t nr_supers, u16 *field)
{
	const unsigned shift = word == 1 ? 8u - s.field : 16u - s.field;

	for (size_t r = 0; r < nr_supers * WFS_SUPER_ROWS; r++, field += WFS_LANES, raw += WFS_LANES * word) {
		__m512i x[4], a, b;
#pragma GCC unroll 8
		for (unsigned g = 0; g < word; g++)
			x[g] = words_load(word, s.rot, raw + 64 * g);
		if (word == 1) {
			a = _mm512_unpacklo_epi8(x[0], _mm512_setzero_si512());
			b = _mm512_unpackhi_epi8(x[0], _mm512_setzero_si512());
		} else {
			a = word == 2 ? x[0] : pack_hi16(x[0], x[1]);
			b = word == 2 ? x[1] : pack_hi16(x[2], x[3]);
		}
		field_store(field, shift_right16(a, shift), shift_right16(b, shift));
	}
}

static WFS_TARGET_AVX512VBMI void fields_vbmi(struct wfs_split s, const u8 *raw, size_t nr_supers, u16 *field)
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

/* The symbol ids of a row whose words have these top bytes; s.field <= MAP_FIELD. map: the table's, 512 entries. */
INLINE_VBMI __m512i map_look_up(struct wfs_split s, const __m512i *map, __m512i top, __m512i below)
{
	__m512i y;
	__mmask64 high = 0;

	if (s.field <= 8) {
		y = _mm512_and_si512(shift_right16(top, 8u - s.field), _mm512_set1_epi8((char)((1 << s.field) - 1)));
	} else {
		y = select512(_mm512_set1_epi8(1), _mm512_srli_epi16(below, 7), _mm512_slli_epi16(top, 1));
		high = _mm512_movepi8_mask(top);
	}
	__m512i id = _mm512_permutex2var_epi8(map[0], y, map[1]);
	if (s.field <= 7)
		return id;
	__mmask64 second = _mm512_movepi8_mask(y);
	id = _mm512_mask_mov_epi8(id, second, _mm512_permutex2var_epi8(map[2], y, map[3]));
	if (!high)
		return id; /* no word of magnitude 2 or more: the usual case for BF16 and F32 */
	__m512i far = _mm512_permutex2var_epi8(map[4], y, map[5]);
	far = _mm512_mask_mov_epi8(far, second, _mm512_permutex2var_epi8(map[6], y, map[7]));
	return _mm512_mask_mov_epi8(id, high, far);
}

/* The stored bits of words in a mode (FORMAT.md 2.5), with the field's bits still above them. */
INLINE_VBMI __m512i words_in_mode(const unsigned word, unsigned mode, __m512i x)
{
	const __m128i shift = _mm_cvtsi32_si128((int)wfs_mode_zeros(mode) + 1);
	__m512i v = word == 4 ? _mm512_srl_epi32(x, shift) : _mm512_srl_epi16(x, shift);

	if (wfs_mode_sign(mode))
		return v;
	if (word == 4)
		return select512(_mm512_set1_epi32(1), x, _mm512_slli_epi32(v, 1));
	return select512(_mm512_set1_epi16(1), x, _mm512_slli_epi16(v, 1));
}

/* Vector i keeps row i in its low bits; its bit j >= bits is bit i of row j. */
INLINE_VBMI void partial_pack(const __m512i *partial, unsigned bits, u8 *out)
{
	for (unsigned i = 0; i < bits; i++) {
		__m512i v = partial[i];
		for (unsigned j = bits; j < WFS_SUPER_ROWS; j++)
			v = select512(_mm512_set1_epi8((char)(1 << j)), shift_left16(partial[j], j - i), v);
		store512(out + WFS_LANES * i, v);
	}
}

INLINE_VBMI u8 *superrow_cut(const unsigned word, struct wfs_split s, const struct wfs_encode_table *table,
			     unsigned mode, const u8 *raw, u8 *sym, u8 *rest)
{
	const struct wfs_split packing = wfs_split_in_mode(s, mode);
	const __m512i mask = _mm512_set1_epi8((char)((1 << packing.partial) - 1));
	u8 *planes = rest + WFS_LANES * packing.partial;
	__m512i partial[WFS_SUPER_ROWS], map[8];
#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++)
		map[i] = load512(table->map + 64 * i);
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++) {
		__m512i x[4], plane[4];
#pragma GCC unroll 8
		for (unsigned g = 0; g < word; g++)
			x[g] = words_load(word, s.rot, raw + (r * word + g) * WFS_LANES);
		planes_split(word, x, plane);
		if (s.field <= MAP_FIELD)
			store512(sym + r * WFS_LANES, map_look_up(s, map, plane[0], plane[word > 1]));
		if (word > 1 && mode) {
#pragma GCC unroll 8
			for (unsigned g = 0; g < word; g++)
				x[g] = words_in_mode(word, mode, x[g]);
			planes_split(word, x, plane);
		}
		u8 *out = planes + WFS_LANES * r;
		partial[r] = plane[0];
#pragma GCC unroll 8
		for (unsigned k = 0; k < word; k++) {
			unsigned left = word - k; /* planes from this one on */
			if (left == packing.planes + 1u)
				partial[r] = plane[k];
			if (left <= packing.planes)
				store512(out + (packing.planes - left) * WFS_SUPER, plane[k]);
		}
		partial[r] = _mm512_and_si512(partial[r], mask);
	}
	partial_pack(partial, packing.partial, rest);
	return planes + (size_t)WFS_SUPER * packing.planes;
}

static WFS_TARGET_AVX512VBMI u8 *superrow_vbmi(struct wfs_split s, const struct wfs_encode_table *table, unsigned mode,
					       const u8 *raw, const u16 *field, u8 *sym, u8 *rest)
{
	if (s.word == 8)
		return wfs_encode_unit_scalar(s, table, mode, raw, WFS_SUPER, WFS_SUPER_ROWS, sym, rest);
	if (s.field > MAP_FIELD)
		for (unsigned p = 0; p < WFS_SUPER; p++)
			sym[p] = table->map[field[p]];
	if (s.word == 1)
		return superrow_cut(1, s, table, mode, raw, sym, rest);
	if (s.word == 2)
		return superrow_cut(2, s, table, mode, raw, sym, rest);
	return superrow_cut(4, s, table, mode, raw, sym, rest);
}

/* ---- decisions ---- */

static WFS_TARGET_AVX512VBMI unsigned choose_vbmi(const struct wfs_encode_pool *pool, const u16 *field, size_t nr,
						  u16 (*hist)[WFS_FIELD_VALUES])
{
	const unsigned nr_tables = pool->nr_tables;
	__m512i sum[WFS_MAX_TABLES];
	u32 best = 0, best_cost = UINT32_MAX;

	if (nr_tables == 1)
		return 0;
	for (unsigned t = 0; t < nr_tables; t++)
		sum[t] = _mm512_setzero_si512();
	wfs_hist_count(field, nr, pool->nr_chunks * WFS_COST_CHUNK, hist);
	for (u32 c = 0; c < pool->nr_chunks; c++) {
		__m512i count = _mm512_setzero_si512();
		for (unsigned k = 0; k < WFS_HISTS; k++)
			count = _mm512_add_epi16(count, load512(&hist[k][c * WFS_COST_CHUNK]));
		if (!_mm512_test_epi32_mask(count, count))
			continue;
		const u16 *cost = pool->cost + (size_t)c * nr_tables * WFS_COST_CHUNK;
		for (unsigned t = 0; t < nr_tables; t++)
			sum[t] = _mm512_add_epi32(sum[t], _mm512_madd_epi16(count, load512(cost + t * WFS_COST_CHUNK)));
	}
	for (unsigned t = 0; t < nr_tables; t++) {
		u32 cost = (u32)_mm512_reduce_add_epi32(sum[t]);
		if (cost < best_cost) {
			best_cost = cost;
			best = t;
		}
	}
	return best;
}

static WFS_TARGET_AVX512VBMI size_t escapes_vbmi(const u8 *sym, size_t nr_rows, u8 *nibble)
{
	size_t nr = 0;

	for (size_t r = 0; r < nr_rows; r++) {
		__m512i id = load512(sym + r * WFS_LANES);
		__mmask64 escaped = _mm512_test_epi8_mask(id, _mm512_set1_epi8(WFS_TAIL_BASE));
		id = _mm512_and_si512(id, _mm512_set1_epi8(15));
		store512(nibble + nr, _mm512_maskz_compress_epi8(escaped, id));
		nr += (size_t)_mm_popcnt_u64(escaped);
	}
	return nr;
}

/* ---- the rANS pass ---- */

/* struct wfs_encode_sym by symbol id. */
struct pass_table {
	__m512i freq, base, first, jump, recip_lo, recip_hi;
};

INLINE_VBMI struct pass_table pass_table_load(const struct wfs_encode_table *from)
{
	return (struct pass_table){load512(from->freq), load512(from->base),	   load512(from->first),
				   load512(from->jump), load512(from->recip16_lo), load512(from->recip16_hi)};
}

/* 16-bit quotient and remainder of 32 states by reciprocal and one correction: x recip / 2^16 falls short of x / freq
 * by less than x / 2^16 < 1, so q is right or one too small. */
INLINE_VBMI void states_divide(__m512i x, __m512i freq, __m512i recip, __m512i *quotient, __m512i *rank)
{
	__m512i q = _mm512_mulhi_epu16(x, recip), r = _mm512_sub_epi16(x, _mm512_mullo_epi16(q, freq));
	__mmask32 short_by_one = _mm512_cmpge_epu16_mask(r, freq);
	*quotient = _mm512_mask_add_epi16(q, short_by_one, q, _mm512_set1_epi16(1));
	*rank = _mm512_mask_sub_epi16(r, short_by_one, r, freq);
}

/* Pushes a row of symbols on states lo | hi << 8; returns the new end of the stream. */
INLINE_VBMI u8 *symbols_push(const struct pass_table *t, const u8 *sym, __m512i *lo, __m512i *hi, u8 *end)
{
	const __m512i low_bytes = _mm512_set1_epi16(255);
	__m512i s = load512(sym), freq = _mm512_permutexvar_epi8(s, t->freq);

	__mmask64 whole = _mm512_cmpge_epu8_mask(*hi, freq); /* a byte leaves */
	unsigned nr = (unsigned)_mm_popcnt_u64(whole);
	end -= nr;
	/* compress in a register, then store: compressing to memory is many times slower on Zen */
	_mm512_mask_storeu_epi8(end, _bzhi_u64(~0ull, nr), _mm512_maskz_compress_epi8(whole, *lo));
	__m512i l = _mm512_mask_mov_epi8(*lo, whole, *hi), h = _mm512_maskz_mov_epi8(~whole, *hi);

	__m512i r_lo = _mm512_permutexvar_epi8(s, t->recip_lo), r_hi = _mm512_permutexvar_epi8(s, t->recip_hi);
	__m512i q[2], r[2];
	states_divide(select512(low_bytes, l, _mm512_slli_epi16(h, 8)), _mm512_and_si512(freq, low_bytes),
		      select512(low_bytes, r_lo, _mm512_slli_epi16(r_hi, 8)), &q[0], &r[0]);
	states_divide(select512(low_bytes, _mm512_srli_epi16(l, 8), h), _mm512_srli_epi16(freq, 8),
		      select512(low_bytes, _mm512_srli_epi16(r_lo, 8), r_hi), &q[1], &r[1]);
	*hi = _mm512_or_si512(q[0], _mm512_slli_epi16(q[1], 8));
	__m512i rank = _mm512_or_si512(r[0], _mm512_slli_epi16(r[1], 8));
	__mmask64 second = _mm512_cmpge_epu8_mask(rank, _mm512_permutexvar_epi8(s, t->first));
	__m512i slot = _mm512_add_epi8(rank, _mm512_permutexvar_epi8(s, t->base));
	*lo = _mm512_mask_add_epi8(slot, second, slot, _mm512_permutexvar_epi8(s, t->jump));
	return end;
}

static WFS_TARGET_AVX512VBMI void pass_vbmi(const struct wfs_encode_pool *pool, const u8 *sym, size_t nr_rows,
					    const u8 *seg, const u8 *carried, u8 *states, u8 **end)
{
	const unsigned rows_log2 = pool->seg_log2 - 6u;
	__m512i lo0 = load512(carried), lo1 = load512(carried + WFS_LANES), hi0 = _mm512_set1_epi8(1), hi1 = hi0;
	u8 *end0 = end[0], *end1 = end[1];
	unsigned current = seg[(nr_rows - 1) >> rows_log2];
	struct pass_table table = pass_table_load(&pool->table[current]);

	for (size_t r = nr_rows; r > 0;) {
		size_t g = (r - 1) >> rows_log2, first_row = g << rows_log2;
		if (seg[g] != current) {
			current = seg[g];
			table = pass_table_load(&pool->table[current]);
		}
		if (r % 2)
			end0 = symbols_push(&table, sym + --r * WFS_LANES, &lo0, &hi0, end0);
		for (; r > first_row; r -= 2) {
			end1 = symbols_push(&table, sym + (r - 1) * WFS_LANES, &lo1, &hi1, end1);
			end0 = symbols_push(&table, sym + (r - 2) * WFS_LANES, &lo0, &hi0, end0);
		}
	}
	store512(states, lo0);
	store512(states + WFS_LANES, hi0);
	store512(states + 2 * WFS_LANES, lo1);
	store512(states + 3 * WFS_LANES, hi1);
	end[0] = end0;
	end[1] = end1;
}

static const struct wfs_encode_kernel kernel_vbmi = {
	.fields = fields_vbmi,
	.choose = choose_vbmi,
	.superrow = superrow_vbmi,
	.escapes = escapes_vbmi,
	.pass = pass_vbmi,
};

const struct wfs_encode_kernel *wfs_encode_kernel_avx512vbmi_get(void)
{
	return &kernel_vbmi;
}

#else

const struct wfs_encode_kernel *wfs_encode_kernel_avx512vbmi_get(void)
{
	return NULL;
}

#endif
