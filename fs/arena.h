/* arena.h - memory for decoded blocks: one mapping with huge pages, cut by halving (a buddy allocator).
 *
 * Buffers are reused, never given back to the kernel: faulting and clearing fresh pages costs more than decoding into
 * them. Halving keeps blocks of 8 KiB and of 1 MiB in one pool without a size class ever hoarding memory.
 * The caller locks.
 */
#ifndef WFSD_ARENA_H
#define WFSD_ARENA_H

#include <stdbool.h>
#include <stddef.h>

enum { WFSD_ARENA_MIN = 8 << 10, WFSD_ARENA_MAX = 2 << 20 }; /* bytes of the smallest and the largest buffer */

struct wfsd_arena;

/* bytes is rounded up to WFSD_ARENA_MAX. NULL: out of memory. Pages are touched only when buffers are. */
struct wfsd_arena *wfsd_arena_new(size_t bytes);
/* arena may be NULL. Buffers still out are gone. */
void wfsd_arena_free(struct wfsd_arena *arena);

/* What a buffer of len bytes (1..WFSD_ARENA_MAX) takes: the next power of two. */
size_t wfsd_arena_round(size_t len);
/* NULL: no free run is long enough. The last buffers given back are given out first: they are still in the CPU cache.
 */
void *wfsd_arena_get(struct wfsd_arena *arena, size_t len);
/* len as it was asked for. */
void wfsd_arena_put(struct wfsd_arena *arena, void *buf, size_t len);
bool wfsd_arena_owns(const struct wfsd_arena *arena, const void *buf);
size_t wfsd_arena_used(const struct wfsd_arena *arena);

#endif
