/* checksum.h - XXH3-64 (seed 0), compiled once an instruction set: four times the speed of a shared library that is
 * built for every processor. Private.
 */
#ifndef WFS_CHECKSUM_H
#define WFS_CHECKSUM_H

#include "wfs_internal.h"

/* cpu: a variant that this machine supports; AUTO means the baseline. Every one gives the same value. */
u64 wfs_hash64(enum wfs_cpu cpu, const void *buf, size_t len);

/* For wfs_hash64 only. */
u64 wfs_hash64_avx2(const void *buf, size_t len);
u64 wfs_hash64_avx512(const void *buf, size_t len);

#endif
