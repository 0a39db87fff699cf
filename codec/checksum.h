/* checksum.h - XXH3-64 (seed 0) with a main loop of our own for each instruction set: twice the speed of xxhash.h
 * compiled for the same one. Private.
 */
#ifndef WFS_CHECKSUM_H
#define WFS_CHECKSUM_H

#include "wfs_internal.h"

/* cpu: a variant that this machine supports; AUTO means the baseline. Every one gives the same value. */
u64 wfs_hash64(enum wfs_cpu cpu, const void *buf, size_t len);

/* ---- main loops, for wfs_hash64 only ---- */

/* Of more than 240 bytes, XXH3 takes stripes of 64 bytes into 8 sums, with bytes of a secret that move on from stripe
 * to stripe, and mixes the sums after each block of 16 stripes. The last stripe is what the buffer ends with, in
 * addition to the whole stripes before its last byte. To a sum is added the product of the halves of word ^ secret, and
 * the neighbour's word.
 *
 * All neighbours' words of a block are summed up first and change places once, instead of in every stripe: fewer
 * instructions, and two short dependency chains instead of a long one. */
enum {
	WFS_HASH_STRIPE = 64,
	WFS_HASH_BLOCK = 16 * WFS_HASH_STRIPE,
	WFS_HASH_STEP = 8, /* what the secret moves on by */
	WFS_HASH_SECRET = 192,
	WFS_HASH_MIX = WFS_HASH_SECRET - WFS_HASH_STRIPE, /* places in the secret: for mixing, */
	WFS_HASH_LAST = WFS_HASH_MIX - 7,		  /* for the last stripe, */
	WFS_HASH_MERGE = 11,				  /* and for the end */
};
#define WFS_HASH_PRIME 0x9E3779B1u
extern const u8 wfs_hash_secret[WFS_HASH_SECRET];

/* All of buf into the sums; len > WFS_HASH_STRIPE. */
void wfs_hash_sums_avx2(u64 sum[8], const u8 *buf, size_t len);
void wfs_hash_sums_avx512(u64 sum[8], const u8 *buf, size_t len);

#endif
