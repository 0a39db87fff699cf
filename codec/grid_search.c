/* grid_search.c - the scale of a tile: what is tried and in which order. The work on words is a kernel's. */
#include "grid_search.h"

#include <float.h>
#include <math.h>

enum {
	SIGN = 0x80000000,
	MIN_SCALE = (127 - 100) << WFS_MANTISSA_BITS, /* 2^-100 */
	MAX_SCALE = ((127 + 100) << WFS_MANTISSA_BITS) - 1,
	FEW_VALUES = 16,   /* all are tried in order */
	MISFIT_PART = 64,  /* of a tile's words may be misfits */
	MISFIT_TRIES = 3,  /* largest words that may be misfits themselves */
	EARLY_MISFITS = 8, /* and one word in so many that was looked at: soon too many where a value is wrong */
	DENSE_VALUES = 48, /* below, a BF16 word tells its value whatever the scale */
};

/* ---- rules ---- */

/* Magnitudes of one sign, ascending, and how their codes follow from their numbers. false: they do not. */
static bool magnitudes(const struct wfs_grid_values *values, unsigned sign, u32 *m, struct wfs_search_rule *r)
{
	unsigned nr = 0, first = 0;

	for (unsigned code = 0; code < WFS_ARRAY_LEN(values->value); code++) {
		const u32 value = values->value[code];

		if (value >> 31 != sign || !(value & ~(u32)SIGN))
			continue;
		if (!nr)
			first = code;
		if (code != first + nr)
			return false;
		m[nr++] = value & ~(u32)SIGN;
	}
	r->nr_values[sign] = nr;
	r->step[sign] = nr > 1 && m[1] < m[0] ? -1 : 1;
	r->origin[sign] = r->step[sign] > 0 ? (int)first - 1 : (int)(first + nr);
	for (unsigned i = 0; r->step[sign] < 0 && i < nr / 2; i++) {
		const u32 swapped = m[i];

		m[i] = m[nr - 1 - i];
		m[nr - 1 - i] = swapped;
	}
	for (unsigned i = 1; i < nr; i++)
		if (m[i] <= m[i - 1])
			return false;
	return true;
}

/* The codes of 0 and -0. Without one of its own a zero becomes a literal: any code will do. */
static void set_zero(const struct wfs_grid_values *values, struct wfs_search_rule *r)
{
	for (unsigned code = WFS_ARRAY_LEN(values->value); code-- > 0;)
		if (!values->value[code])
			r->zero[0] = (u8)code;
	r->zero[1] = r->zero[0];
	for (unsigned code = WFS_ARRAY_LEN(values->value); code-- > 0;)
		if (values->value[code] == SIGN)
			r->zero[1] = (u8)code;
}

static float value_of(const struct wfs_search_rule *r, unsigned sign, unsigned i)
{
	return r->looked_up ? r->value[sign][i - 1] : wfs_rounded_value(r, i);
}

/* Whether the magnitudes are those of numbers with a mantissa of so many bits and a smallest exponent. */
static bool rounding_fits(struct wfs_search_rule *r, unsigned mantissa, u32 unit, u32 m[2][WFS_GRID_MAX_BASE])
{
	if (unit & ((1u << WFS_MANTISSA_BITS) - 1) || unit >> WFS_MANTISSA_BITS > 200)
		return false;
	r->mantissa = (u8)mantissa;
	r->min_normal = unit + (mantissa << WFS_MANTISSA_BITS);
	for (unsigned sign = 0; sign < 2; sign++)
		for (unsigned i = 0; i < r->nr_values[sign]; i++)
			if (wfs_f32_bits(wfs_rounded_value(r, i + 1)) != m[sign][i])
				return false;
	return true;
}

static bool look_up(struct wfs_search_rule *r, u32 m[2][WFS_GRID_MAX_BASE])
{
	r->looked_up = true;
	for (unsigned sign = 0; sign < 2; sign++) {
		if (r->nr_values[sign] > WFS_SEARCH_TABLE)
			return false;
		for (unsigned i = 0; i < WFS_SEARCH_TABLE; i++) {
			bool there = i < r->nr_values[sign];
			float before = i ? r->value[sign][i - 1] : 0;

			r->value[sign][i] = there ? wfs_f32_of_bits(m[sign][i]) : before;
			r->limit[sign][i] = there ? before + (r->value[sign][i] - before) / 2 : FLT_MAX;
		}
	}
	return true;
}

/* Products with every value must be normal numbers below 2^127. */
static void set_valid(struct wfs_search_rule *r, u32 smallest, u32 largest)
{
	const float low = 0x1p-126f / wfs_f32_of_bits(smallest), high = 0x1p127f / wfs_f32_of_bits(largest);

	r->valid.low = WFS_MAX(wfs_f32_bits(low) + 1, (u32)MIN_SCALE);
	r->valid.high = WFS_MIN(wfs_f32_bits(high) - 1, (u32)MAX_SCALE);
}

/* A BF16 word is known up to 2^-8 of it, and so is a scale that only the largest word tells. */
static void set_dense(struct wfs_search_rule *r, u32 smallest, u32 largest)
{
	r->unit = wfs_f32_of_bits(smallest);
	r->dense = r->output == WFS_GRID_BF16 && !r->looked_up &&
		   wfs_f32_of_bits(r->min_normal) > DENSE_VALUES * r->unit &&
		   wfs_f32_of_bits(largest) > DENSE_VALUES * r->unit;
}

bool wfs_search_rule_make(const struct wfs_grid_values *values, struct wfs_search_rule *rule_ret)
{
	struct wfs_search_rule r = {.op = values->op, .output = values->output};
	const u32 smallest = values->min_abs, largest = values->max_abs;
	u32 m[2][WFS_GRID_MAX_BASE];
	bool fits = false;

	/* Values below 2^-64 or above 2^64 would lead to quotients out of range. */
	if (values->op == WFS_GRID_PALETTE || smallest < (127 - 64) << WFS_MANTISSA_BITS ||
	    largest > (127 + 64) << WFS_MANTISSA_BITS)
		return false;
	for (unsigned sign = 0; sign < 2; sign++) {
		if (!magnitudes(values, sign, m[sign], &r) || r.nr_values[sign] > WFS_SEARCH_MAX_VALUES)
			return false;
		if (r.nr_values[sign])
			r.largest[sign] = m[sign][r.nr_values[sign] - 1];
	}
	for (unsigned mantissa = 8; mantissa-- > 0 && !fits;)
		fits = rounding_fits(&r, mantissa, smallest, m);
	if (!fits && !look_up(&r, m))
		return false;
	r.linear = !r.looked_up && wfs_f32_of_bits(r.min_normal) >= wfs_f32_of_bits(largest);
	set_dense(&r, smallest, largest);
	/* Two words compared, each known up to half a unit of its last bit; some for rounding. */
	r.doubt = r.output == WFS_GRID_BF16 ? 0x1.02p-7f : r.output == WFS_GRID_F16 ? 0x1.02p-10f : 0x1p-21f;
	set_zero(values, &r);
	set_valid(&r, smallest, largest);
	*rule_ret = r;
	return r.valid.low <= r.valid.high;
}

/* ---- scales ---- */

unsigned wfs_scale_bits(const struct wfs_scale_range *range)
{
	u32 differ = (range->low - 1) ^ range->high; /* not 0 */
	unsigned zeros = 31 - (unsigned)__builtin_clz(differ);

	return zeros < WFS_MANTISSA_BITS ? WFS_MANTISSA_BITS - zeros : 0;
}

/* The scales under which the value gives the word. false: none that is valid. */
static bool range_of(const struct wfs_search_rule *r, u32 x, float value, struct wfs_scale_range *range_ret)
{
	u32 low, high;

	wfs_word_borders(r->op, r->output, x, &low, &high);
	range_ret->low = (u32)WFS_MAX(wfs_scale_from(low, value), (int32_t)r->valid.low);
	range_ret->high = (u32)WFS_MIN(wfs_scale_to(high, value), (int32_t)r->valid.high);
	return range_ret->low <= range_ret->high;
}

/* Cuts a range to the scales under which the value gives the word. false: none, range is as it was. */
static bool cut(const struct wfs_search_rule *r, u32 x, float value, struct wfs_scale_range *range)
{
	const u32 lowest = wfs_f32_bits(wfs_f32_of_bits(range->low) * value);
	const u32 highest = wfs_f32_bits(wfs_f32_of_bits(range->high) * value);
	struct wfs_scale_range both = *range;
	u32 low, high;

	wfs_word_borders(r->op, r->output, x, &low, &high);
	if (highest < low || lowest > high)
		return false;
	/* Divisions are only for the few words that do cut. */
	if (lowest < low)
		both.low = (u32)wfs_scale_from(low, value);
	if (highest > high)
		both.high = (u32)wfs_scale_to(high, value);
	if (both.low > both.high)
		return false;
	*range = both;
	return true;
}

static u32 unrotated(u32 key)
{
	return key >> 1 | key << 31;
}

/* The words as if the largest one were its sign's value number i. */
static bool try_value(struct wfs_search *s, const u32 *x, size_t nr, u32 largest, unsigned i,
		      struct wfs_scale_range *range_ret)
{
	return range_of(s->rule, largest, value_of(s->rule, largest >> 31, i), range_ret) &&
	       s->kernel->narrow(s->rule, x, nr, range_ret, &s->work);
}

/* The largest word is value number i. Integers fit with all of them doubled, too, where the list goes far enough: the
 * smallest ones are meant. range becomes theirs. */
static void found(struct wfs_search *s, const u32 *x, size_t nr, u32 largest, unsigned i, struct wfs_scale_range *range)
{
	static const u8 primes[] = {2, 3, 5, 7};
	struct wfs_scale_range wider;

	for (unsigned k = 0; s->rule->linear && k < WFS_ARRAY_LEN(primes); k++)
		while (i % primes[k] == 0 && try_value(s, x, nr, largest, i / primes[k], &wider)) {
			i /= primes[k];
			*range = wider;
		}
	s->hint = i;
}

/* ---- misfits ---- */

/* Cuts range by the words one after the other, forward or backward, and counts those that do not agree with the ones
 * before; these become 0 if `drop` is set. false: more than most, or soon many. */
static bool agree(struct wfs_search *s, u32 *x, size_t nr, bool backward, bool drop, size_t most,
		  struct wfs_scale_range *range)
{
	const struct wfs_search_rule *rule = s->rule;
	size_t misfits = 0, k;

	for (k = 0; k < nr && misfits <= WFS_MIN(most, EARLY_MISFITS + k / EARLY_MISFITS); k++) {
		u32 *word = &x[backward ? nr - 1 - k : k];
		float scale = wfs_f32_of_bits(range->low + (range->high - range->low) / 2);
		float number = wfs_word_middle(rule->op, *word) / scale;
		float value = wfs_nearest_value(rule, *word >> 31, number);

		if (!(*word & ~(u32)SIGN) ||
		    (rule->dense && fabsf(number - value) > wfs_dense_near(rule, value, wfs_range_doubt(range))))
			continue;
		if (value > 0 && cut(rule, *word, value, range))
			continue;
		if (drop)
			*word = 0;
		misfits++;
	}
	s->work += k;
	return k == nr && misfits <= most;
}

/* The largest key (wfs_search_kernel.largest) below one. */
static u32 next_largest(const u32 *x, size_t nr, u32 below)
{
	u32 best = 0;

	for (size_t i = 0; i < nr; i++) {
		u32 key = x[i] << 1 | x[i] >> 31;

		if (key > best && key < below)
			best = key;
	}
	return best;
}

/* The words but for misfits as if the largest one were its sign's value number i. */
static bool try_with_misfits(struct wfs_search *s, u32 *x, size_t nr, u32 largest, unsigned i,
			     struct wfs_scale_range *range_ret)
{
	const size_t most = 2 + nr / MISFIT_PART;
	struct wfs_scale_range first;

	if (!range_of(s->rule, largest, value_of(s->rule, largest >> 31, i), &first))
		return false;
	for (unsigned backward = 0; backward < 2; backward++) {
		*range_ret = first;
		if (!agree(s, x, nr, backward, false, most, range_ret))
			continue;
		*range_ret = first;
		(void)agree(s, x, nr, backward, true, most, range_ret);
		if (s->kernel->narrow(s->rule, x, nr, range_ret, &s->work))
			return true;
	}
	return false;
}

static bool search_with_misfits(struct wfs_search *s, u32 *x, size_t nr, u32 key, struct wfs_scale_range *range_ret)
{
	const u64 end = s->work + s->misfit_work;
	bool done = false;

	for (unsigned tries = 0; tries < MISFIT_TRIES && key > 1; tries++, key = next_largest(x, nr, key)) {
		const u32 largest = unrotated(key);

		for (unsigned i = s->rule->nr_values[largest >> 31]; i > 0 && s->work < end && !done; i--) {
			done = try_with_misfits(s, x, nr, largest, i, range_ret);
			if (done)
				found(s, x, nr, largest, i, range_ret);
		}
		if (s->work >= end || done)
			break;
	}
	s->misfit_work = end - WFS_MIN(s->work, end);
	return done;
}

/* ---- tiles ---- */

enum wfs_tile_kind wfs_tile_search(struct wfs_search *s, u32 *x, size_t nr, struct wfs_scale_range *range_ret)
{
	const struct wfs_search_rule *rule = s->rule;
	const u32 key = s->kernel->largest(x, nr), largest = unrotated(key);
	const unsigned nr_values = rule->nr_values[largest >> 31];
	const unsigned first = (rule->linear || nr_values > FEW_VALUES) && s->hint <= nr_values ? s->hint : 0;
	const u64 most_work = s->work + WFS_SEARCH_PASSES * (u64)nr + WFS_SEARCH_ANY_TILE;
	u64 mask[2] = {~(u64)0, ~(u64)0};

	if (key <= 1)
		return WFS_TILE_ZERO;
	if (first && try_value(s, x, nr, largest, first, range_ret)) {
		found(s, x, nr, largest, first, range_ret);
		return WFS_TILE_FITS;
	}
	if (nr_values > FEW_VALUES)
		s->kernel->candidates(rule, x, largest, mask);
	for (unsigned i = nr_values; i > 0 && s->work < most_work; i--) {
		if (i != first && mask[(i - 1) / 64] >> (i - 1) % 64 & 1 &&
		    try_value(s, x, nr, largest, i, range_ret)) {
			found(s, x, nr, largest, i, range_ret);
			return WFS_TILE_FITS;
		}
	}
	return s->misfit_work && search_with_misfits(s, x, nr, key, range_ret) ? WFS_TILE_FITS : WFS_TILE_MISFIT;
}

const struct wfs_search_kernel *wfs_search_kernel_for(enum wfs_cpu cpu)
{
	const struct wfs_search_kernel *kernel = NULL;

	if (cpu == WFS_CPU_AVX512VBMI)
		kernel = wfs_search_kernel_avx512_get();
	else if (cpu == WFS_CPU_AVX2)
		kernel = wfs_search_kernel_avx2_get();
	return kernel ? kernel : &wfs_search_kernel_scalar;
}
