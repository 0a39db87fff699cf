/* arena.c - see arena.h.
 *
 * The mapping is a row of chunks of WFSD_ARENA_MAX bytes, each of 256 units. A run of order k is 2^k units and starts
 * at a multiple of 2^k, so the only run it can have been cut from, its buddy's and its own, is found by one XOR.
 */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { NR_ORDERS = 9, TOP = NR_ORDERS - 1, NOT_FREE = 0xff };
_Static_assert((size_t)WFSD_ARENA_MIN << TOP == WFSD_ARENA_MAX, "the top order is a chunk");

#define NO_UNIT UINT32_MAX

struct unit {
	uint32_t prev, next; /* in the free list of its order */
	uint8_t order;	     /* of the free run that starts here, or NOT_FREE */
};

struct wfsd_arena {
	unsigned char *base; /* aligned to WFSD_ARENA_MAX */
	size_t bytes, used;
	uint32_t free_head[NR_ORDERS];
	struct unit unit[];
};

static void run_push(struct wfsd_arena *a, uint32_t u, unsigned order)
{
	uint32_t next = a->free_head[order];
	a->unit[u] = (struct unit){NO_UNIT, next, (uint8_t)order};
	if (next != NO_UNIT)
		a->unit[next].prev = u;
	a->free_head[order] = u;
}

static void run_remove(struct wfsd_arena *a, uint32_t u)
{
	struct unit *unit = &a->unit[u];
	if (unit->prev != NO_UNIT)
		a->unit[unit->prev].next = unit->next;
	else
		a->free_head[unit->order] = unit->next;
	if (unit->next != NO_UNIT)
		a->unit[unit->next].prev = unit->prev;
	unit->order = NOT_FREE;
}

/* A mapping of bytes aligned to WFSD_ARENA_MAX, so that each chunk can be one huge page. */
static void *map_aligned(size_t bytes)
{
	size_t room = bytes + WFSD_ARENA_MAX;
	unsigned char *map =
		mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	size_t before = (WFSD_ARENA_MAX - ((uintptr_t)map & (WFSD_ARENA_MAX - 1))) & (WFSD_ARENA_MAX - 1);
	if (before)
		munmap(map, before);
	munmap(map + before + bytes, room - before - bytes);
	madvise(map + before, bytes, MADV_HUGEPAGE); /* refused where huge pages are off: slower, not wrong */
	return map + before;
}

struct wfsd_arena *wfsd_arena_new(size_t bytes)
{
	if (bytes > SIZE_MAX / 4)
		return NULL;
	bytes = (bytes + WFSD_ARENA_MAX - 1) & ~((size_t)WFSD_ARENA_MAX - 1);
	size_t nr_units = bytes / WFSD_ARENA_MIN;
	if (nr_units >= NO_UNIT)
		return NULL;
	struct wfsd_arena *a = malloc(sizeof(*a) + nr_units * sizeof(a->unit[0]));
	if (!a)
		return NULL;
	a->base = map_aligned(bytes);
	if (!a->base) {
		free(a);
		return NULL;
	}
	a->bytes = bytes;
	a->used = 0;
	for (unsigned k = 0; k < NR_ORDERS; k++)
		a->free_head[k] = NO_UNIT;
	for (size_t u = 0; u < nr_units; u++)
		a->unit[u].order = NOT_FREE;
	for (size_t u = nr_units; u; u -= (size_t)1 << TOP)
		run_push(a, (uint32_t)(u - ((size_t)1 << TOP)), TOP);
	return a;
}

void wfsd_arena_free(struct wfsd_arena *a)
{
	if (!a)
		return;
	munmap(a->base, a->bytes);
	free(a);
}

static unsigned order_of(size_t len)
{
	unsigned k = 0;
	while ((size_t)WFSD_ARENA_MIN << k < len)
		k++;
	return k;
}

size_t wfsd_arena_round(size_t len)
{
	return (size_t)WFSD_ARENA_MIN << order_of(len);
}

void *wfsd_arena_get(struct wfsd_arena *a, size_t len)
{
	unsigned order = order_of(len), k = order;
	while (k < NR_ORDERS && a->free_head[k] == NO_UNIT)
		k++;
	if (k >= NR_ORDERS)
		return NULL;
	uint32_t u = a->free_head[k];
	run_remove(a, u);
	while (k > order) {
		k--;
		run_push(a, u + (1u << k), k);
	}
	a->used += (size_t)WFSD_ARENA_MIN << order;
	return a->base + (size_t)u * WFSD_ARENA_MIN;
}

void wfsd_arena_put(struct wfsd_arena *a, void *buf, size_t len)
{
	unsigned order = order_of(len);
	uint32_t u = (uint32_t)((size_t)((unsigned char *)buf - a->base) / WFSD_ARENA_MIN);
	a->used -= (size_t)WFSD_ARENA_MIN << order;
	while (order < TOP && a->unit[u ^ 1u << order].order == order) {
		run_remove(a, u ^ 1u << order);
		u &= ~(1u << order);
		order++;
	}
	run_push(a, u, order);
}

bool wfsd_arena_owns(const struct wfsd_arena *a, const void *buf)
{
	return (uintptr_t)buf - (uintptr_t)a->base < a->bytes;
}

size_t wfsd_arena_used(const struct wfsd_arena *a)
{
	return a->used;
}
