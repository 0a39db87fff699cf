/* grid_search_vec.h - finding codes and scales with vectors, whatever their width: included by the file of an
 * instruction set after it has defined the operations named v_* (numbers), f_* (binary32) and m_* (masks), TARGET and
 * LANES. The same operations on each word as in grid_search_scalar.c, in the same order.
 */

#define INLINE static WFS_ALWAYS_INLINE TARGET

enum { ONE = 127 << 23, MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000, MIN_NORMAL = 0x00800000 };
#define SIGN (~(u32)MAGNITUDE)

static const u32 lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- words ---- */

INLINE vint finite_or_zero(vint x)
{
	const vint m = v_and(x, v_set(MAGNITUDE));
	const vmask good = m_and(v_gt(m, v_set(MIN_NORMAL - 1)), v_gt(v_set(INFINITE), m));

	return v_select(good, x, v_and(x, v_set(SIGN)));
}

/* Words of 16 bits in 32. */
INLINE vint f16_to_f32(vint w)
{
	const vint m = v_and(w, v_set(0x7fff)), sign = v_sll(v_and(w, v_set(0x8000)), 16);
	const vint small = f_bits(f_mul(f_of_int(m), f_set(0x1p-24f)));
	vint x = v_select(v_gt(v_set(0x400), m), small, v_add(v_sll(m, 13), v_set(112u << 23)));

	x = v_select(v_gt(v_set(0x7c00), m), x, v_set(0));
	return v_or(sign, x);
}

TARGET static void load_words(unsigned output, const u8 *raw, size_t nr, u32 *x)
{
	const unsigned word = output == WFS_GRID_F32 ? 4 : 2;
	size_t i = 0;

	for (; i + LANES <= nr; i += LANES) {
		vint w = output == WFS_GRID_F32 ? v_load(raw + 4 * i) : v_load16(raw + 2 * i);

		if (output == WFS_GRID_F16)
			w = f16_to_f32(w);
		else
			w = finite_or_zero(output == WFS_GRID_BF16 ? v_sll(w, 16) : w);
		v_store(x + i, w);
	}
	if (i < nr)
		wfs_search_kernel_scalar.load(output, raw + i * word, nr - i, x + i);
}

TARGET static u32 largest_word(const u32 *x, size_t nr)
{
	vint largest = v_set(0);

	for (size_t i = 0; i < nr; i += LANES) {
		vint w = v_load(x + i);
		largest = v_max_unsigned(largest, v_or(v_sll(w, 1), v_srl(w, 31)));
	}
	return v_reduce_max_unsigned(largest);
}

/* wfs_word_borders */
INLINE void borders(const unsigned op, const unsigned output, vint m, vint *low, vint *high)
{
	if (output == WFS_GRID_F32) {
		*low = *high = m;
	} else if (op == WFS_GRID_TRUNCATE) {
		*low = m;
		*high = v_or(m, v_set(0xffff));
	} else if (output == WFS_GRID_BF16) {
		vint odd = v_and(v_srl(m, 16), v_set(1));
		*low = v_add(v_sub(m, v_set(0x8000)), odd);
		*high = v_sub(v_add(m, v_set(0x8000)), odd);
	} else {
		vmask normal = v_gt(m, v_set(WFS_F16_MIN_NORMAL));
		vflt f = f_of_bits(m);
		vint odd = v_and(v_srl(m, 13), v_set(1));
		vint small_odd = v_and(v_of_float(f_mul(f, f_set(0x1p24f))), v_set(1));
		*low = v_select(normal, v_sub(m, v_set(0x1000)), f_bits(f_sub(f, f_set(0x1p-25f))));
		*high = v_select(normal, v_add(m, v_set(0x1000)), f_bits(f_add(f, f_set(0x1p-25f))));
		odd = v_select(normal, odd, small_odd);
		*low = v_add(*low, odd);
		*high = v_sub(*high, odd);
	}
}

/* ---- values ---- */

/* The value next to a number of a sign, and for lists that are looked up its number. */
INLINE vflt nearest(const struct wfs_search_rule *rule, const bool looked_up, vmask negative, vflt number,
		    vint *number_ret)
{
	if (looked_up) {
		vint nr = v_set(0);
#pragma GCC unroll 8
		for (unsigned i = 0; i < WFS_SEARCH_TABLE; i++) {
			vflt limit = f_select(negative, f_set(rule->limit[1][i]), f_set(rule->limit[0][i]));
			nr = v_add_if(f_ge(number, limit), nr, v_set(1));
		}
		*number_ret = nr;
		return f_look_up(rule->value[0], rule->value[1], negative, nr);
	}
	const vint exponent = v_max(v_and(f_bits(number), v_set(INFINITE)), v_set(rule->min_normal));
	const u32 up = (u32)(WFS_MANTISSA_BITS - rule->mantissa) << WFS_MANTISSA_BITS;
	const vflt unit = f_of_bits(v_add(exponent, v_set(up)));
	const vflt largest = f_of_bits(v_select(negative, v_set(rule->largest[1]), v_set(rule->largest[0])));

	return f_min(f_sub(f_add(number, unit), unit), largest);
}

INLINE vflt middle(const unsigned op, vint m)
{
	return f_of_bits(op == WFS_GRID_TRUNCATE ? v_or(m, v_set(0x8000)) : m);
}

/* ---- candidates ---- */

/* wfs_rounded_value of LANES numbers from `first` on. */
INLINE vflt rounded_values(const struct wfs_search_rule *rule, u32 first)
{
	const vint i = v_add(v_set(first), v_load(lane_numbers)), normal = v_set(1u << rule->mantissa);
	const vflt min_normal = f_set(wfs_f32_of_bits(rule->min_normal));
	const vmask is_normal = v_gt(i, v_sub(normal, v_set(1)));
	vint bits = v_select(is_normal, v_sub(i, normal), i);

	bits = v_add(v_set(rule->min_normal), v_sll_by(bits, WFS_MANTISSA_BITS - rule->mantissa));
	return f_select(is_normal, f_of_bits(bits), f_sub(f_of_bits(bits), min_normal));
}

TARGET static void candidate_values(const struct wfs_search_rule *rule, const u32 *x, u32 largest, u64 *mask)
{
	const vflt inverse = f_set(1 / wfs_word_middle(rule->op, largest));
	const u32 nr = rule->nr_values[largest >> 31], min = rule->output == WFS_GRID_F16 ? WFS_F16_MIN_NORMAL : 1;

	mask[0] = mask[1] = 0;
	for (u32 k = 0; k < nr; k += LANES) {
		const vflt part = f_mul(rounded_values(rule, k + 1), inverse);
		unsigned alive = m_bits(v_gt(v_set(nr), v_add(v_set(k), v_load(lane_numbers))));

		for (unsigned i = 0; i < WFS_SEARCH_STEP && alive; i++) {
			const u32 m = x[i] & MAGNITUDE;
			vflt number, off;
			vint unused;

			if (m < min || m == (largest & MAGNITUDE))
				continue;
			number = f_mul(f_set(wfs_word_middle(rule->op, x[i])), part);
			off = f_sub(number, nearest(rule, false, v_negative(v_set(x[i])), number, &unused));
			off = f_of_bits(v_and(f_bits(off), v_set(MAGNITUDE)));
			alive &= m_bits(f_ge(f_mul(number, f_set(rule->doubt)), off));
		}
		mask[k / 64] |= (u64)alive << k % 64;
	}
}

/* ---- narrow ---- */

/* wfs_scale_from, wfs_scale_to */
INLINE vint scale_from(vint low, vflt value)
{
	const vint q = f_bits(f_div(f_of_bits(low), value)), below = v_sub(q, v_set(1));
	const vmask too_low = v_gt(low, f_bits(f_mul(f_of_bits(q), value)));
	const vmask below_too_low = v_gt(low, f_bits(f_mul(f_of_bits(below), value)));

	return v_select(below_too_low, v_add_if(too_low, q, v_set(1)), below);
}
INLINE vint scale_to(vint high, vflt value)
{
	const vint q = f_bits(f_div(f_of_bits(high), value)), above = v_add(q, v_set(1));
	const vmask too_high = v_gt(f_bits(f_mul(f_of_bits(q), value)), high);
	const vmask above_too_high = v_gt(f_bits(f_mul(f_of_bits(above), value)), high);

	return v_select(above_too_high, v_add_if(too_high, q, v_set(~(u32)0)), above);
}

INLINE bool narrow_round(const struct wfs_search_rule *rule, const unsigned op, const unsigned output,
			 const bool looked_up, const bool dense, const u32 *x, size_t nr, struct wfs_scale_range *range,
			 bool *all_ret, u64 *work)
{
	const vflt inverse = f_set(1 / wfs_f32_of_bits(range->low + (range->high - range->low) / 2));
	const vint range_low = v_set(range->low), range_high = v_set(range->high);
	const vflt doubt = f_set(wfs_range_doubt(range)), unit = f_set(rule->unit), half = f_set(0.5f * rule->unit);
	vint out_low = range_low, out_high = range_high;
	unsigned left_out = 0;

	for (size_t i = 0; i < nr; i += LANES) {
		const vint w = v_load(x + i), m = v_and(w, v_set(MAGNITUDE));
		const vmask negative = v_negative(w);
		const vflt number = f_mul(middle(op, m), inverse);
		vint number_unused, low, high;
		const vflt value = nearest(rule, looked_up, negative, number, &number_unused);
		const vmask there = v_gt(m, v_set(0));
		vmask look = there, misfit;
		vflt divisor;

		if (dense) {
			vflt off = f_of_bits(v_and(f_bits(f_sub(number, value)), v_set(MAGNITUDE)));
			vflt near = f_sub(unit, f_min(f_mul(value, f_set(0x1p-8f)), half));
			look = m_and(there, f_ge(f_sub(near, f_mul(value, doubt)), off));
			left_out |= m_bits(m_and_not(there, look));
		}
		/* Lanes of the word 0 take part with 1: subnormal numbers and quotients of 0 are slow. */
		borders(op, output, v_select(there, m, v_set(ONE)), &low, &high);
		divisor = f_select(there, value, f_of_bits(v_set(ONE)));
		low = scale_from(low, divisor);
		high = scale_to(high, divisor);
		misfit = m_or(v_gt(low, range_high), v_gt(range_low, high));
		if (m_any(m_and(look, m_or(misfit, v_gt(v_set(1), f_bits(value)))))) {
			*work += i / WFS_SEARCH_STEP * WFS_SEARCH_STEP + WFS_SEARCH_STEP;
			return false;
		}
		out_low = v_select(look, v_max(out_low, low), out_low);
		out_high = v_select(look, v_min(out_high, high), out_high);
	}
	*work += nr;
	range->low = v_reduce_max(out_low);
	range->high = v_reduce_min(out_high);
	*all_ret = !left_out;
	return range->low <= range->high;
}

INLINE bool narrow_as(const struct wfs_search_rule *rule, const unsigned op, const unsigned output,
		      const bool looked_up, const u32 *x, size_t nr, struct wfs_scale_range *range, u64 *work)
{
	const bool may_be_dense = output == WFS_GRID_BF16 && !looked_up;
	bool all = false;

	if (!may_be_dense || !rule->dense)
		return narrow_round(rule, op, output, looked_up, false, x, nr, range, &all, work);
	for (unsigned round = 0; round < WFS_DENSE_ROUNDS && !all; round++)
		if (!narrow_round(rule, op, output, false, true, x, nr, range, &all, work))
			return false;
	return true;
}

/* One compiled body for each kind of words. */
#define FOR_EACH_KIND(rule, call)                                                                                      \
	do {                                                                                                           \
		switch ((rule)->output * 4u + (rule)->op * 2u + (rule)->looked_up) {                                   \
		case WFS_GRID_BF16 * 4 + WFS_GRID_NEAREST * 2:                                                         \
			return call(WFS_GRID_NEAREST, WFS_GRID_BF16, false);                                           \
		case WFS_GRID_BF16 * 4 + WFS_GRID_NEAREST * 2 + 1:                                                     \
			return call(WFS_GRID_NEAREST, WFS_GRID_BF16, true);                                            \
		case WFS_GRID_BF16 * 4 + WFS_GRID_TRUNCATE * 2:                                                        \
			return call(WFS_GRID_TRUNCATE, WFS_GRID_BF16, false);                                          \
		case WFS_GRID_BF16 * 4 + WFS_GRID_TRUNCATE * 2 + 1:                                                    \
			return call(WFS_GRID_TRUNCATE, WFS_GRID_BF16, true);                                           \
		case WFS_GRID_F16 * 4:                                                                                 \
			return call(WFS_GRID_NEAREST, WFS_GRID_F16, false);                                            \
		case WFS_GRID_F16 * 4 + 1:                                                                             \
			return call(WFS_GRID_NEAREST, WFS_GRID_F16, true);                                             \
		case WFS_GRID_F32 * 4:                                                                                 \
			return call(WFS_GRID_NEAREST, WFS_GRID_F32, false);                                            \
		default:                                                                                               \
			return call(WFS_GRID_NEAREST, WFS_GRID_F32, true);                                             \
		}                                                                                                      \
	} while (0)

TARGET static bool narrow_words(const struct wfs_search_rule *rule, const u32 *x, size_t nr,
				struct wfs_scale_range *range, u64 *work)
{
#define CALL(op, output, looked_up) narrow_as(rule, op, output, looked_up, x, nr, range, work)
	FOR_EACH_KIND(rule, CALL);
#undef CALL
}

/* ---- assign ---- */

INLINE vint value_number(const struct wfs_search_rule *rule, vflt value)
{
	const vflt min_normal = f_set(wfs_f32_of_bits(rule->min_normal));
	const vmask normal = f_ge(value, min_normal);
	vint nr = f_bits(f_select(normal, value, f_add(value, min_normal)));

	nr = v_srl_by(v_sub(nr, v_set(rule->min_normal)), WFS_MANTISSA_BITS - rule->mantissa);
	return v_add_if(normal, nr, v_set(1u << rule->mantissa));
}

INLINE size_t assign_as(const struct wfs_search_rule *rule, const unsigned op, const unsigned output,
			const bool looked_up, const u32 *x, size_t nr, u32 scale, u8 *code)
{
	const float s = wfs_f32_of_bits(scale);
	const vflt inverse = f_set(1 / s);
	size_t misfits = 0;

	for (size_t i = 0; i < nr; i += LANES) {
		const vint w = v_load(x + i), m = v_and(w, v_set(MAGNITUDE));
		const vmask negative = v_negative(w), there = v_gt(m, v_set(0));
		vint number, low, high, c;
		const vflt value = nearest(rule, looked_up, negative, f_mul(middle(op, m), inverse), &number);
		const vint product = f_bits(f_mul(value, f_set(s)));
		vmask misfit;

		borders(op, output, m, &low, &high);
		misfit = m_and(there, m_or(v_gt(low, product), v_gt(product, high)));
		misfits += (unsigned)__builtin_popcount(m_bits(misfit));
		if (!looked_up)
			number = value_number(rule, value);
		c = v_select(negative,
			     v_add(v_set((u32)rule->origin[1]), rule->step[1] < 0 ? v_sub(v_set(0), number) : number),
			     v_add(v_set((u32)rule->origin[0]), number));
		c = v_select(m_and_not(there, misfit), c,
			     v_select(negative, v_set(rule->zero[1]), v_set(rule->zero[0])));
		v_store_bytes(code + i, c);
	}
	return misfits;
}

TARGET static size_t assign_words(const struct wfs_search_rule *rule, const u32 *x, size_t nr, u32 scale, u8 *code)
{
#define CALL(op, output, looked_up) assign_as(rule, op, output, looked_up, x, nr, scale, code)
	FOR_EACH_KIND(rule, CALL);
#undef CALL
}
