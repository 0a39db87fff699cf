/* wfs_internal.h - private helpers of the codec: short types, little-endian access, checked arithmetic, errors. */
#ifndef WFS_INTERNAL_H
#define WFS_INTERNAL_H

#include "wfs.h"

#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define WFS_MIN(a, b)	   ((a) < (b) ? (a) : (b))
#define WFS_MAX(a, b)	   ((a) > (b) ? (a) : (b))
#define WFS_CEIL_DIV(a, b) (((a) + (b)-1) / (b))
#define WFS_ARRAY_LEN(a)   (sizeof(a) / sizeof((a)[0]))
#define wfs_likely(x)	   __builtin_expect(!!(x), 1)
#define wfs_unlikely(x)	   __builtin_expect(!!(x), 0)
#define WFS_ALWAYS_INLINE  inline __attribute__((always_inline))
#define WFS_NOINLINE	   __attribute__((noinline))

/* Instruction sets are chosen a function, not a file, so that the codec compiles with one plain command line and every
 * helper of a kernel carries the same attribute. */
#define WFS_TARGET(isa)	 __attribute__((target(isa)))
#define WFS_TARGET_SSSE3 WFS_TARGET("ssse3,popcnt")
#define WFS_TARGET_AVX2	 WFS_TARGET("avx2,f16c,bmi,bmi2,popcnt,lzcnt")
#define WFS_TARGET_AVX512VBMI                                                                                          \
	WFS_TARGET("avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2")

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weightfs supports little-endian machines only"
#endif

static inline u16 wfs_load16(const void *p)
{
	u16 v;
	memcpy(&v, p, sizeof(v));
	return v;
}
static inline u32 wfs_load24(const u8 *p)
{
	return p[0] | (u32)p[1] << 8 | (u32)p[2] << 16;
}
static inline u32 wfs_load32(const void *p)
{
	u32 v;
	memcpy(&v, p, sizeof(v));
	return v;
}
static inline u64 wfs_load64(const void *p)
{
	u64 v;
	memcpy(&v, p, sizeof(v));
	return v;
}
static inline void wfs_store16(void *p, u16 v)
{
	memcpy(p, &v, sizeof(v));
}
static inline void wfs_store24(u8 *p, u32 v)
{
	p[0] = (u8)v;
	p[1] = (u8)(v >> 8);
	p[2] = (u8)(v >> 16);
}
static inline void wfs_store32(void *p, u32 v)
{
	memcpy(p, &v, sizeof(v));
}
static inline void wfs_store64(void *p, u64 v)
{
	memcpy(p, &v, sizeof(v));
}

/* Fill *err (may be NULL) and return its status, so that a failing function ends in `return wfs_fail(...)`. */
static inline enum wfs_status wfs_fail(struct wfs_error *err, enum wfs_status status, const char *reason)
{
	if (err)
		*err = (struct wfs_error){.status = status, .block = WFS_NO_BLOCK, .reason = reason};
	return status;
}
static inline enum wfs_status wfs_fail_io(struct wfs_error *err, int sys_errno, const char *reason)
{
	if (err)
		*err = (struct wfs_error){
			.status = WFS_IO, .sys_errno = sys_errno, .block = WFS_NO_BLOCK, .reason = reason};
	return WFS_IO;
}
static inline enum wfs_status wfs_fail_block(struct wfs_error *err, enum wfs_status status, u64 block,
					     const char *reason)
{
	if (err)
		*err = (struct wfs_error){.status = status, .block = block, .reason = reason};
	return status;
}

#endif
