/* split_prefetch.h - asks for memory ahead of the vector kernels. Those with AVX-512 are as fast as memory: 12 GB/s
 * without this, 24 with it on Zen 5, where plain memcpy gives 25. Distances were found there by trying; half and twice
 * of each lose a few percent. Private to block_decode.c, split_parse.c and the kernels.
 */
#ifndef WFS_SPLIT_PREFETCH_H
#define WFS_SPLIT_PREFETCH_H

#include "split.h"

/* How far ahead of their use lines are asked for, in bytes of the output, of the rest bits and of each stream; and how
 * much of the payload's header with its states, and of the escapes. */
enum {
	WFS_AHEAD_OUTPUT = 7 << 10,
	WFS_AHEAD_REST = 4 << 10,
	WFS_AHEAD_STREAM = 3 << 9,
	WFS_AHEAD_HEADER = 1 << 10,
	WFS_AHEAD_ESCAPES = 384,
};

/* prefetchw has a feature bit of its own that targets would have to name. Processors with SSSE3 that do not know it
 * take it for a no-op. */
static WFS_ALWAYS_INLINE void wfs_prefetch_write(const u8 *p)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* Where to ask for output while a superrow is written at raw, nr_supers superrows before the last unit: never beyond
 * the block, whose neighbour another thread may be writing. */
static WFS_ALWAYS_INLINE const u8 *wfs_prefetch_ahead(const u8 *raw, size_t nr_supers, unsigned word)
{
	return raw + WFS_MIN(nr_supers * WFS_SUPER * word, (size_t)WFS_AHEAD_OUTPUT);
}

/* Row r's share of a superrow's lines: `word` of output, one for each 8 rest bits a word, and a stream's next. Reading
 * ahead of the payload's end does no harm. */
static WFS_ALWAYS_INLINE void wfs_prefetch_row(unsigned r, const u8 *ahead, unsigned word, const u8 *rest,
					       unsigned rest_bits, const u8 *stream)
{
	rest += WFS_AHEAD_REST;
#pragma GCC unroll 4
	for (unsigned i = 0; i < word; i++)
		wfs_prefetch_write(ahead + 64 * (word * r + i));
#pragma GCC unroll 4
	for (unsigned i = 0; i < rest_bits; i += 8)
		__builtin_prefetch(rest + 64 * (r + i));
	__builtin_prefetch(stream + WFS_AHEAD_STREAM);
}

/* What will be made of a superrow. Asking for it while codes of grids are decoded, which waits for no memory, took
 * grids of FP8 in AVX-512 from 13.6 to 19.2 GB/s; asking for it when it is made gained little. */
static WFS_ALWAYS_INLINE void wfs_prefetch_later(const struct wfs_split_view *v, size_t super)
{
	const size_t bytes = (size_t)WFS_SUPER * v->later_bytes;

	for (size_t i = 0; i < bytes; i += 64)
		wfs_prefetch_write(v->later + super * bytes + i);
}

/* What the rows' shares come too late for. All is asked for as soon as its place is known, and once more by the kernel:
 * what comes while too much is under way is dropped. Beginning late costs a block of 256 KiB 5 % of its time. */

/* Before anything is known of a block but where it is and goes. */
static WFS_ALWAYS_INLINE void wfs_prefetch_block(const u8 *comp, const u8 *raw, size_t raw_len)
{
	for (unsigned i = 0; i < WFS_AHEAD_HEADER; i += 64)
		__builtin_prefetch(comp + i);
	for (size_t i = 0; i < WFS_MIN(raw_len, (size_t)WFS_AHEAD_OUTPUT / 2); i += 64)
		wfs_prefetch_write(raw + i);
}

/* Where streams and rest bits begin. */
static WFS_ALWAYS_INLINE void wfs_prefetch_input(const struct wfs_split_view *v)
{
	for (unsigned i = 0; i < WFS_AHEAD_STREAM; i += 64) {
		__builtin_prefetch(v->stream[0] + i);
		__builtin_prefetch(v->stream[1] + i);
	}
	for (unsigned i = 0; i < WFS_AHEAD_REST; i += 64)
		__builtin_prefetch(v->rest + i);
}

/* Once the places of the pieces are known: what is looked at before the kernel begins comes first. */
static WFS_ALWAYS_INLINE void wfs_prefetch_pieces(const struct wfs_split_view *v)
{
	for (unsigned i = 0; i < WFS_AHEAD_ESCAPES; i += 64)
		__builtin_prefetch(v->escapes + i);
	__builtin_prefetch(v->literals);
	wfs_prefetch_input(v);
}

/* When a kernel begins. */
static WFS_ALWAYS_INLINE void wfs_prefetch_start(const struct wfs_split_view *v, struct wfs_split s, const u8 *raw)
{
	const size_t raw_len = v->n * s.word;

	wfs_prefetch_input(v);
	for (size_t i = 0; i < WFS_MIN(raw_len, (size_t)WFS_AHEAD_OUTPUT); i += 64)
		wfs_prefetch_write(raw + i);
}

#endif
