/* bits.h - a bit for each block of a container, in memory that is taken when the first is set. Any thread, no locks. */
#ifndef WFSD_BITS_H
#define WFSD_BITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* NULL: none is set. Whoever holds it frees it. */
typedef _Atomic(atomic_uchar *) wfsd_bits;

static inline bool wfsd_bits_test(const wfsd_bits *bits, uint64_t i)
{
	const atomic_uchar *byte = atomic_load_explicit(bits, memory_order_acquire);
	return byte && (atomic_load_explicit(&byte[i / 8], memory_order_relaxed) & 1u << i % 8);
}

/* Sets bit i of nr. 1: it was set before; 0: it was not; -1: there is no memory for it. */
static inline int wfsd_bits_set(wfsd_bits *bits, uint64_t nr, uint64_t i)
{
	atomic_uchar *byte = atomic_load_explicit(bits, memory_order_acquire);
	const unsigned char bit = (unsigned char)(1u << i % 8);

	if (!byte) {
		atomic_uchar *fresh = calloc(nr / 8 + 1, sizeof(*fresh));
		if (!fresh)
			return -1;
		if (atomic_compare_exchange_strong(bits, &byte, fresh))
			byte = fresh;
		else
			free(fresh); /* another thread was faster */
	}
	return (atomic_fetch_or_explicit(&byte[i / 8], bit, memory_order_relaxed) & bit) != 0;
}

static inline void wfsd_bits_clear(wfsd_bits *bits, uint64_t i)
{
	if (wfsd_bits_test(bits, i))
		atomic_fetch_and_explicit(&(*bits)[i / 8], (unsigned char)~(1u << i % 8), memory_order_relaxed);
}

#endif
