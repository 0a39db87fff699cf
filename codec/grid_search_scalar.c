/* grid_search_scalar.c - the reference for finding codes and scales: what every variant's results must be. */
#include "grid_search.h"

#include <float.h>
#include <math.h>

enum { MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000, MIN_NORMAL = 0x00800000 };

static u32 word_load(unsigned output, const u8 *raw)
{
	u32 w, m, x;

	if (output == WFS_GRID_F16) {
		w = wfs_load16(raw);
		m = w & 0x7fff;
		x = m < 0x400 ? wfs_f32_bits((float)m * 0x1p-24f) : (m << 13) + (112u << 23);
		return (w & 0x8000) << 16 | (m < 0x7c00 ? x : 0);
	}
	x = output == WFS_GRID_BF16 ? (u32)wfs_load16(raw) << 16 : wfs_load32(raw);
	m = x & MAGNITUDE;
	return m >= MIN_NORMAL && m < INFINITE ? x : x & ~(u32)MAGNITUDE;
}

static void load_scalar(unsigned output, const u8 *raw, size_t nr, u32 *x)
{
	const unsigned word = output == WFS_GRID_F32 ? 4 : 2;

	for (size_t i = 0; i < nr; i++)
		x[i] = word_load(output, raw + i * word);
}

/* Whether the number that a word is relative to the largest one is near a value. Of subnormal words nothing is known.
 */
static bool near_value(const struct wfs_search_rule *rule, u32 x, u32 largest, float part)
{
	const u32 m = x & MAGNITUDE;
	float number = wfs_word_middle(rule->op, x) * part;

	if (!m || m == (largest & MAGNITUDE) || (rule->output == WFS_GRID_F16 && m < WFS_F16_MIN_NORMAL))
		return true;
	return fabsf(number - wfs_nearest_value(rule, x >> 31, number)) <= number * rule->doubt;
}

static void candidates_scalar(const struct wfs_search_rule *rule, const u32 *x, u32 largest, u64 *mask)
{
	const float inverse = 1 / wfs_word_middle(rule->op, largest);

	mask[0] = mask[1] = 0;
	for (unsigned k = 0; k < rule->nr_values[largest >> 31]; k++) {
		const float part = wfs_rounded_value(rule, k + 1) * inverse;
		unsigned i = 0;

		while (i < WFS_SEARCH_STEP && near_value(rule, x[i], largest, part))
			i++;
		mask[k / 64] |= (u64)(i == WFS_SEARCH_STEP) << k % 64;
	}
}

static u32 largest_scalar(const u32 *x, size_t nr)
{
	u32 largest = 0;

	for (size_t i = 0; i < nr; i++) {
		u32 key = x[i] << 1 | x[i] >> 31;
		largest = WFS_MAX(largest, key);
	}
	return largest;
}

/* One round over all words, but for ambiguous ones of a dense list. *all_ret: there were none of these. */
static bool narrow_round(const struct wfs_search_rule *rule, const u32 *x, size_t nr, struct wfs_scale_range *range,
			 bool *all_ret, u64 *work)
{
	const float inverse = 1 / wfs_f32_of_bits(range->low + (range->high - range->low) / 2);
	const float doubt = wfs_range_doubt(range);
	struct wfs_scale_range out = *range;

	*all_ret = true;
	for (size_t i = 0; i < nr; i++) {
		float number = wfs_word_middle(rule->op, x[i]) * inverse, value;
		u32 low, high;
		int32_t from, to;

		*work += i % WFS_SEARCH_STEP ? 0 : WFS_SEARCH_STEP;
		if (!(x[i] & MAGNITUDE))
			continue;
		value = wfs_nearest_value(rule, x[i] >> 31, number);
		if (rule->dense && fabsf(number - value) > wfs_dense_near(rule, value, doubt)) {
			*all_ret = false;
			continue;
		}
		if (!(value > 0))
			return false;
		wfs_word_borders(rule->op, rule->output, x[i], &low, &high);
		from = wfs_scale_from(low, value);
		to = wfs_scale_to(high, value);
		if (from > (int32_t)range->high || to < (int32_t)range->low)
			return false;
		out.low = (u32)WFS_MAX((int32_t)out.low, from);
		out.high = (u32)WFS_MIN((int32_t)out.high, to);
	}
	*range = out;
	return out.low <= out.high;
}

static bool narrow_scalar(const struct wfs_search_rule *rule, const u32 *x, size_t nr, struct wfs_scale_range *range,
			  u64 *work)
{
	bool all = false;

	for (unsigned round = 0; round < WFS_DENSE_ROUNDS && !all; round++)
		if (!narrow_round(rule, x, nr, range, &all, work))
			return false;
	return true;
}

/* The number of a value (grid_search.h). */
static unsigned value_number(const struct wfs_search_rule *rule, unsigned sign, float value)
{
	const float min_normal = wfs_f32_of_bits(rule->min_normal);
	unsigned number = 0;

	if (rule->looked_up) {
		for (unsigned i = 0; i < WFS_SEARCH_TABLE; i++)
			number += value >= rule->limit[sign][i];
		return number;
	}
	if (value >= min_normal)
		number = 1u << rule->mantissa;
	else
		value += min_normal;
	return number + ((wfs_f32_bits(value) - rule->min_normal) >> (WFS_MANTISSA_BITS - rule->mantissa));
}

static size_t assign_scalar(const struct wfs_search_rule *rule, const u32 *x, size_t nr, u32 scale, u8 *code)
{
	const float s = wfs_f32_of_bits(scale), inverse = 1 / s;
	size_t misfits = 0;

	for (size_t i = 0; i < nr; i++) {
		const unsigned sign = x[i] >> 31;
		float value = wfs_nearest_value(rule, sign, wfs_word_middle(rule->op, x[i]) * inverse);
		u32 low, high, product = wfs_f32_bits(value * s);
		unsigned number;

		code[i] = rule->zero[sign];
		if (!(x[i] & MAGNITUDE))
			continue;
		wfs_word_borders(rule->op, rule->output, x[i], &low, &high);
		if (product < low || product > high) {
			misfits++;
			continue;
		}
		number = value_number(rule, sign, value);
		code[i] = (u8)(rule->origin[sign] + rule->step[sign] * (int)number);
	}
	return misfits;
}

const struct wfs_search_kernel wfs_search_kernel_scalar = {load_scalar, candidates_scalar, largest_scalar,
							   narrow_scalar, assign_scalar};
