/* cpu.c - which decoder and encoder variants this machine can run.
 *
 * Asked of the processor at each call: callers ask once, when they open something, and keep the answer, so that no
 * changing global is needed. A feature counts only when the OS saves its registers too (XCR0).
 *
 * AVX-512 is used with VBMI and VBMI2 only, and with them on every processor. Those without (Skylake-X, Cascade Lake,
 * Cooper Lake) lower the clock of a core, and with it of all else that runs there, when it works with 512-bit vectors;
 * they have no byte permutation either, and the kernel without it was no faster than AVX2. Those with it (Ice Lake,
 * Sapphire Rapids, Zen 4, Zen 5) hold their clock for such integer work, or lose a few percent of it, where the kernel
 * is more than twice as fast as AVX2's.
 */
#include "block.h"

#ifdef __x86_64__
#include <cpuid.h>

/* CPUID leaf 1 ecx, leaf 7 ebx and ecx, leaf 0x80000001 ecx (Intel SDM vol. 2A, CPUID; AMD APM vol. 3, appendix E). */
enum {
	L1_OSXSAVE = 1 << 27,
	L1_AVX = 1 << 28,
	L1_F16C = 1 << 29,
	L1_SSSE3 = 1 << 9,
	L1_POPCNT = 1 << 23,
	L7_AVX2 = 1 << 5,
	L7_BMI1 = 1 << 3,
	L7_BMI2 = 1 << 8,
	L7_AVX512F = 1 << 16,
	L7_AVX512DQ = 1 << 17,
	L7_AVX512BW = 1 << 30,
	L7C_AVX512VBMI = 1 << 1,
	L7C_AVX512VBMI2 = 1 << 6,
	L8_LZCNT = 1 << 5,
	XCR0_AVX = 0x06,    /* SSE and AVX state */
	XCR0_AVX512 = 0xe6, /* and opmask, ZMM0-15 high halves, ZMM16-31 */
};
#define L7_AVX512VL (1u << 31)

static bool has_all(u32 word, u32 bits)
{
	return (word & bits) == bits;
}

/* Which variants can run, as bits. */
static u32 detect(void)
{
	u32 a, b, c, d, ext_c = 0, xcr0_hi, xcr0, found = 1 << WFS_CPU_SCALAR;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, L1_SSSE3 | L1_POPCNT))
		return found;
	found |= 1 << WFS_CPU_SSSE3;
	/* Every processor with AVX2 has F16C, but a hypervisor may hide it. */
	if (!has_all(c, L1_OSXSAVE | L1_AVX | L1_F16C))
		return found;
	__asm__("xgetbv" : "=a"(xcr0), "=d"(xcr0_hi) : "c"(0));
	if (!has_all(xcr0, XCR0_AVX))
		return found;
	if (!__get_cpuid(0x80000001, &a, &b, &ext_c, &d) || !has_all(ext_c, L8_LZCNT))
		return found;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, L7_AVX2 | L7_BMI1 | L7_BMI2))
		return found;
	found |= 1 << WFS_CPU_AVX2;
	if (has_all(xcr0, XCR0_AVX512) && has_all(b, L7_AVX512F | L7_AVX512DQ | L7_AVX512BW | L7_AVX512VL) &&
	    has_all(c, L7C_AVX512VBMI | L7C_AVX512VBMI2))
		found |= 1 << WFS_CPU_AVX512VBMI;
	return found;
}
#elif defined(__aarch64__)
static u32 detect(void)
{
	return 1 << WFS_CPU_SCALAR | 1 << WFS_CPU_NEON; /* NEON is part of the architecture */
}
#else
static u32 detect(void)
{
	return 1 << WFS_CPU_SCALAR;
}
#endif

static const char *const names[WFS_NR_CPUS] = {"auto", "scalar", "ssse3", "avx2", "avx512vbmi", "neon"};

const char *wfs_cpu_name(enum wfs_cpu cpu)
{
	return (unsigned)cpu < WFS_NR_CPUS ? names[cpu] : "unknown";
}

int wfs_cpu_from_name(const char *name)
{
	for (int cpu = 0; cpu < WFS_NR_CPUS; cpu++) {
		if (!strcmp(name, names[cpu]))
			return cpu;
	}
	return -1;
}

enum wfs_cpu wfs_cpu_best(void)
{
	/* Of one architecture, the later one in the enum is the faster one. */
	return (enum wfs_cpu)(31 - __builtin_clz(detect()));
}

bool wfs_cpu_supported(enum wfs_cpu cpu)
{
	return (unsigned)cpu < WFS_NR_CPUS && (cpu == WFS_CPU_AUTO || detect() >> cpu & 1);
}

struct wfs_kernels wfs_kernels_for(enum wfs_cpu cpu)
{
	wfs_split_decode_fn *split = NULL;
	wfs_wide_decode_fn *wide = NULL;
	wfs_grid_unpack_fn *grid_scales = NULL;
	wfs_grid_expand_fn *grid = NULL;

	switch (cpu == WFS_CPU_AUTO ? wfs_cpu_best() : cpu) {
	case WFS_CPU_SSSE3:
		split = wfs_split_decode_ssse3_get();
		wide = wfs_wide_decode_ssse3_get();
		grid = wfs_grid_expand_ssse3_get();
		break;
	case WFS_CPU_AVX2:
		split = wfs_split_decode_avx2_get();
		wide = wfs_wide_decode_avx2_get();
		grid = wfs_grid_expand_avx2_get();
		break;
	case WFS_CPU_AVX512VBMI:
		split = wfs_split_decode_avx512vbmi_get();
		wide = wfs_wide_decode_avx512vbmi_get();
		grid_scales = wfs_grid_unpack_avx512_get();
		grid = wfs_grid_expand_avx512_get();
		break;
	case WFS_CPU_NEON:
		split = wfs_split_decode_neon_get();
		wide = wfs_wide_decode_neon_get();
		grid = wfs_grid_expand_neon_get();
		break;
	default:
		break;
	}
	return (struct wfs_kernels){
		.split = split ? split : wfs_split_decode_scalar,
		.wide = wide ? wide : wfs_wide_decode_scalar,
		.grid_scales = grid_scales ? grid_scales : wfs_grid_unpack_scalar,
		.grid = grid ? grid : wfs_grid_expand_scalar,
	};
}
