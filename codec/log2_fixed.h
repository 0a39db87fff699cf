/* log2_fixed.h - base-2 logarithms in fixed point, the same on every machine. Private. */
#ifndef WFS_LOG2_FIXED_H
#define WFS_LOG2_FIXED_H

#include "wfs_internal.h"

/* log2(1 + i / 256) in 1/65536. */
extern const u32 wfs_log2_mantissa[257];

/* log2(x) in 1/65536, x >= 1. Exact to the table's rounding for x < 512; above, linear interpolation between entries
 * 1/256 apart is short by at most (1/256)^2 / (8 ln 2) = 2.8e-6, which is less than one unit. */
static inline u32 wfs_log2_q16(u32 x)
{
	u32 exponent = 31 - (u32)__builtin_clz(x);
	u32 mantissa = x << (31 - exponent);
	const u32 *entry = &wfs_log2_mantissa[mantissa >> 23 & 255];
	u32 between = mantissa >> 7 & 0xffff;
	return (exponent << 16) + entry[0] + ((entry[1] - entry[0]) * between >> 16);
}

#endif
