/* checksum.c - XXH3-64 for the baseline instruction set (SSE2, NEON), and the choice among the variants. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "checksum.h"

u64 wfs_hash64(enum wfs_cpu cpu, const void *buf, size_t len)
{
#ifdef __x86_64__
	if (cpu == WFS_CPU_AVX512VBMI)
		return wfs_hash64_avx512(buf, len);
	if (cpu == WFS_CPU_AVX2)
		return wfs_hash64_avx2(buf, len);
#else
	(void)cpu;
#endif
	return XXH3_64bits(buf, len);
}
