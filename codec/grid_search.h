/* grid_search.h - from words to the codes and the scale of their tile: the reverse of FORMAT.md 3. Private to the grid
 * encoder and the plan.
 *
 * A word that is round(value * scale) tells an interval of scales for each value that it may be. The largest word of a
 * tile is tried with each value of the list, the largest value first; the interval that this gives is cut by those of
 * the other words, whose values are certain by then. Any scale that is left gives back all words.
 *
 * Numbers are binary32. Intervals hold the bits of scales, which ascend with them. They are exact, but for ambiguous
 * words of dense lists; the encoder still compares every word with what the decoder will make of its code. Only single
 * IEEE operations whose results are neither subnormal nor infinite decide anything, so that every variant has the same
 * results.
 */
#ifndef WFS_GRID_SEARCH_H
#define WFS_GRID_SEARCH_H

#include "grid.h"

enum {
	WFS_F16_MIN_NORMAL = (127 - 14) << 23, /* bits of the smallest normal binary16 number */
	WFS_SEARCH_MAX_VALUES = 128,	       /* of one sign, beside 0 */
	WFS_SEARCH_TABLE = 8,		       /* values of one sign, beside 0, of lists that are looked up */
	WFS_SEARCH_STEP = 16,		       /* words of a tile are followed by zeros up to a multiple of this */
	WFS_DENSE_ROUNDS = 4, /* over all words of a dense list, at most: each makes more of them certain */
	WFS_MANTISSA_BITS = 23,
};

/* Scales as bits of positive numbers, both ends included. */
struct wfs_scale_range {
	u32 low, high;
};

/* A grid as the search sees it. Values of one sign (0 positive, 1 negative) are numbered from 1 by magnitude; number 0
 * is the value 0. */
struct wfs_search_rule {
	u8 op, output;
	bool looked_up;	       /* by `limit`; else values are made by rounding to `mantissa` bits */
	bool linear;	       /* values are multiples of the smallest one */
	bool dense;	       /* words may be hardly more precise than the distance of values */
	u8 mantissa;	       /* bits of a value's mantissa */
	u32 min_normal;	       /* bits of the number below which values are multiples of min_normal >> mantissa */
	u32 largest[2];	       /* bits of the largest magnitude of a sign */
	unsigned nr_values[2]; /* of a sign, beside 0 */
	float value[2][WFS_SEARCH_TABLE];
	float limit[2][WFS_SEARCH_TABLE]; /* the border between value number i and i + 1 */
	int origin[2], step[2];		  /* code of number i: origin + step * i */
	u8 zero[2];			  /* codes of 0 and -0 */
	float unit;			  /* the distance of values of a dense list */
	float doubt;		      /* how far a word's number may be off, as a part of it, if it is not subnormal */
	struct wfs_scale_range valid; /* scales that FORMAT.md 3.2 allows */
};

/* false: a list whose words this search cannot find. */
bool wfs_search_rule_make(const struct wfs_grid_values *values, struct wfs_search_rule *rule_ret);

/* The work on words. Every variant gives the same results. Words are handed on as bits of binary32 numbers; infinite,
 * NaN and subnormal ones count as 0 and come out as misfits of the comparison at the end. nr: a multiple of
 * WFS_SEARCH_STEP but in load. */
struct wfs_search_kernel {
	/* nr words at raw, any nr. */
	void (*load)(unsigned output, const u8 *raw, size_t nr, u32 *x);
	/* The values of its sign that the largest word may have, as bits number - 1 of mask[0..1]: all that any scale
	 * allows and few others. Only the first WFS_SEARCH_STEP words of x are looked at. Not for lists that are looked
	 * up. */
	void (*candidates)(const struct wfs_search_rule *rule, const u32 *x, u32 largest, u64 *mask);
	/* The largest magnitude, rotated left by one: the sign at the bottom, a negative number before its opposite. */
	u32 (*largest)(const u32 *x, size_t nr);
	/* Cuts a range of scales to those that explain the words as well as the range's middle does. false: none. Adds
	 * the words looked at to *work, in steps of WFS_SEARCH_STEP. */
	bool (*narrow)(const struct wfs_search_rule *rule, const u32 *x, size_t nr, struct wfs_scale_range *range,
		       u64 *work);
	/* The words' codes under a valid scale; returns how many words it does not give back. */
	size_t (*assign)(const struct wfs_search_rule *rule, const u32 *x, size_t nr, u32 scale, u8 *code);
};
extern const struct wfs_search_kernel wfs_search_kernel_scalar;
/* NULL when this build has no such kernel. The CPU must support it. */
const struct wfs_search_kernel *wfs_search_kernel_avx2_get(void);
const struct wfs_search_kernel *wfs_search_kernel_avx512_get(void);
/* The fastest for a variant. */
const struct wfs_search_kernel *wfs_search_kernel_for(enum wfs_cpu cpu);

/* What a tile is. */
enum wfs_tile_kind {
	WFS_TILE_ZERO,	 /* no words but 0: any scale */
	WFS_TILE_FITS,	 /* the range's scales explain every word or all but a few */
	WFS_TILE_MISFIT, /* no scale does */
};
/* A search through tiles that are like each other. The work is bounded by counts of words, which are the same on every
 * CPU: tiles that are nearly on a grid would cost a look at all words for each value otherwise. */
struct wfs_search {
	const struct wfs_search_rule *rule;
	const struct wfs_search_kernel *kernel;
	unsigned hint;	 /* number of the value that the largest word of the last tile was, or 0 */
	u64 misfit_work; /* words that may still be looked at to find misfits; 0: they are not looked for, which is
			  * quick for words that are no grid's */
	u64 work;	 /* words looked at so far */
};
/* Words of work, for each word of a tile and for any tile, after which no more values are tried without misfits. One
 * value takes WFS_DENSE_ROUNDS for each word at most, and reducing it some more. */
enum { WFS_SEARCH_PASSES = 16, WFS_SEARCH_ANY_TILE = 1 << 14 };
/* The scales of a tile's words x[0..nr), a multiple of WFS_SEARCH_STEP. Words that are found to be misfits become 0 in
 * x. */
enum wfs_tile_kind wfs_tile_search(struct wfs_search *search, u32 *x, size_t nr, struct wfs_scale_range *range_ret);

/* Mantissa bits of the shortest scale in a range. */
unsigned wfs_scale_bits(const struct wfs_scale_range *range);

/* ---- shared by the kernels ---- */

/* The numbers that round to the word |x|, as bits; x as kernels get it, not 0. */
static inline void wfs_word_borders(unsigned op, unsigned output, u32 x, u32 *low_ret, u32 *high_ret)
{
	const u32 m = x & 0x7fffffff;
	u32 odd;

	switch (output) {
	case WFS_GRID_BF16:
		odd = m >> 16 & 1; /* ties go to even words */
		*low_ret = op == WFS_GRID_TRUNCATE ? m : m - 0x8000 + odd;
		*high_ret = op == WFS_GRID_TRUNCATE ? m | 0xffff : m + 0x8000 - odd;
		return;
	case WFS_GRID_F16:
		if (m > WFS_F16_MIN_NORMAL) {
			odd = m >> 13 & 1;
			*low_ret = m - 0x1000 + odd;
			*high_ret = m + 0x1000 - odd;
		} else {
			/* a multiple of 2^-24 */
			float f = wfs_f32_of_bits(m);
			odd = (u32)(f * 0x1p24f) & 1;
			*low_ret = wfs_f32_bits(f - 0x1p-25f) + odd;
			*high_ret = wfs_f32_bits(f + 0x1p-25f) - odd;
		}
		return;
	default:
		*low_ret = *high_ret = m;
	}
}

/* The bits of the smallest scale whose product with a value is at least low, and of the largest whose product is at
 * most high. A quotient is at most one off: it has an error of half a unit, and so has the product. */
static inline int32_t wfs_scale_from(u32 low, float value)
{
	const u32 q = wfs_f32_bits(wfs_f32_of_bits(low) / value);

	if (wfs_f32_bits(wfs_f32_of_bits(q - 1) * value) >= low)
		return (int32_t)(q - 1);
	return (int32_t)(wfs_f32_bits(wfs_f32_of_bits(q) * value) >= low ? q : q + 1);
}
static inline int32_t wfs_scale_to(u32 high, float value)
{
	const u32 q = wfs_f32_bits(wfs_f32_of_bits(high) / value);

	if (wfs_f32_bits(wfs_f32_of_bits(q + 1) * value) <= high)
		return (int32_t)(q + 1);
	return (int32_t)(wfs_f32_bits(wfs_f32_of_bits(q) * value) <= high ? q : q - 1);
}

/* What a word's value is looked for with: the middle of what it may have been. */
static inline float wfs_word_middle(unsigned op, u32 x)
{
	return wfs_f32_of_bits((x & 0x7fffffff) | (op == WFS_GRID_TRUNCATE ? 0x8000 : 0));
}

/* Number i of the values that rounding to rule->mantissa bits makes. */
static inline float wfs_rounded_value(const struct wfs_search_rule *rule, unsigned i)
{
	const unsigned normal = 1u << rule->mantissa, shift = WFS_MANTISSA_BITS - rule->mantissa;

	if (i >= normal)
		return wfs_f32_of_bits(rule->min_normal + ((i - normal) << shift));
	return wfs_f32_of_bits(rule->min_normal + (i << shift)) - wfs_f32_of_bits(rule->min_normal);
}

/* The part by which the middle of a range may be off. */
static inline float wfs_range_doubt(const struct wfs_scale_range *range)
{
	return (float)(range->high - range->low) * 0x1p-24f;
}

/* Of a dense list: a number not farther than this from the value next to it stands for it. Others may stand for the
 * value behind it, and fit nearly every scale. A BF16 word is off by 2^-8 of it and by less than half a unit; the
 * number by `doubt` of it, too. */
static inline float wfs_dense_near(const struct wfs_search_rule *rule, float value, float doubt)
{
	const float word_off = value * 0x1p-8f, half = 0.5f * rule->unit;

	return rule->unit - WFS_MIN(word_off, half) - value * doubt;
}

/* The value next to a number of a sign. */
static inline float wfs_nearest_value(const struct wfs_search_rule *rule, unsigned sign, float number)
{
	u32 exponent;
	float unit, value;

	if (rule->looked_up) {
		value = 0;
		for (unsigned i = 0; i < WFS_SEARCH_TABLE; i++)
			if (number >= rule->limit[sign][i])
				value = rule->value[sign][i];
		return value;
	}
	/* Adding a number whose last bit is worth as much as the value's last bit rounds to that bit. */
	exponent = WFS_MAX(wfs_f32_bits(number) & 0x7f800000, rule->min_normal);
	unit = wfs_f32_of_bits(exponent + ((u32)(WFS_MANTISSA_BITS - rule->mantissa) << WFS_MANTISSA_BITS));
	value = number + unit - unit;
	return WFS_MIN(value, wfs_f32_of_bits(rule->largest[sign]));
}

#endif
