/* checksum_avx2.c - XXH3-64 for AVX2.
 *
 * The header's functions must be compiled for the instruction set that its intrinsics need, and a target attribute of
 * the function that calls them does not reach them: hence a file of its own, with a target for all that follows. The
 * system headers come first, so that they are compiled as everywhere.
 */
#ifdef __x86_64__
#include <immintrin.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2")
#endif

#define XXH_INLINE_ALL
#define XXH_VECTOR 2 /* XXH_AVX2 */
#include <xxhash.h>

u64 wfs_hash64_avx2(const void *buf, size_t len)
{
	return XXH3_64bits(buf, len);
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
