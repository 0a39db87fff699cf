/* split_prefetch.h - asks for memory ahead of the x86 vector kernels. They are as fast as memory: 12 GB/s without this,
 * 24 with it on Zen 5, where plain memcpy gives 28. Distances were found there by trying; half and twice of each lose a
 * few percent. Private to the kernels.
 */
#ifndef WFS_SPLIT_PREFETCH_H
#define WFS_SPLIT_PREFETCH_H

#include "split.h"

/* How far ahead of their use lines are asked for, bytes. */
enum { WFS_AHEAD_RAW = 6144, WFS_AHEAD_REST = 3072, WFS_AHEAD_STREAM = 1536 };

/* prefetchw is older than any processor with AVX2, but has a feature bit of its own that targets would have to name. */
static WFS_ALWAYS_INLINE void wfs_prefetch_write(const u8 *p)
{
	__asm__ volatile("prefetchw %0" : : "m"(*p));
}

/* Where to ask for output while a superrow is written at raw, `left` bytes before the last unit: never beyond the
 * block, whose neighbour another thread may be writing. */
static WFS_ALWAYS_INLINE const u8 *wfs_prefetch_ahead(const u8 *raw, size_t left)
{
	return raw + WFS_MIN(left, (size_t)WFS_AHEAD_RAW);
}

/* A row's share. Reading ahead of the payload's end does no harm. */
static WFS_ALWAYS_INLINE void wfs_prefetch_row(const u8 *ahead, const unsigned word, const u8 *rest, const u8 *stream)
{
#pragma GCC unroll 4
	for (unsigned i = 0; i < word; i++)
		wfs_prefetch_write(ahead + 64 * i);
	__builtin_prefetch(rest + WFS_AHEAD_REST);
	__builtin_prefetch(stream + WFS_AHEAD_STREAM);
}

/* What the rows' shares come too late for. */
static WFS_ALWAYS_INLINE void wfs_prefetch_start(const struct wfs_split_view *v, size_t raw_len, const u8 *raw)
{
	for (unsigned i = 0; i < WFS_AHEAD_STREAM; i += 64) {
		__builtin_prefetch(v->stream[0] + i);
		__builtin_prefetch(v->stream[1] + i);
	}
	for (unsigned i = 0; i < WFS_AHEAD_REST; i += 64)
		__builtin_prefetch(v->rest + i);
	for (size_t i = 0; i < WFS_MIN(raw_len, (size_t)WFS_AHEAD_RAW / 2); i += 64)
		wfs_prefetch_write(raw + i);
}

#endif
