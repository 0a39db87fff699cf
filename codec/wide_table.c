/* wide_table.c - from counts of names to the frequencies of a wide table (FORMAT.md 4.1): which names have slots of
 * their own, and how many of the 4096. Integer arithmetic only.
 */
#include "wide_encode.h"
#include "log2_fixed.h"

enum {
	MOST = WFS_WIDE_SLOTS - 1, /* slots of one name */
	ESCAPE_BITS = 8,
	COPIES = 2, /* of the pools in a container */
};

/* log2((f + 1) / f) in 2^-30, rounded down: 2 / ln 2 * (y + y^3 / 3 + y^5 / 5 ...), y = 1 / (2 f + 1). Logarithms of
 * less precision would not fall with f everywhere, which is what finding the best slots relies on. */
static u64 slot_bits(unsigned f)
{
	const u64 square = (2 * (u64)f + 1) * (2 * f + 1);
	u64 power = UINT64_C(3172519945584) / (2 * f + 1), sum = power; /* 2 / ln 2 in 2^-40 */

	for (unsigned k = 3; (power /= square) > 0; k += 2)
		sum += power / k;
	return sum >> 10;
}

/* What one slot more saves and one less costs each name. */
struct prices {
	u64 gain[WFS_WIDE_NAMES], loss[WFS_WIDE_NAMES];
};

static void price_set(struct prices *p, unsigned i, u64 count, unsigned f)
{
	p->gain[i] = f && f < MOST ? count * slot_bits(f) + 1 : 0;
	p->loss[i] = f > 1 ? count * slot_bits(f - 1) + 1 : UINT64_MAX;
}

/* The name that gains most by a slot, the lowest of equals. */
static unsigned best_gain(const struct prices *p)
{
	unsigned best = 0;

	for (unsigned i = 1; i < WFS_WIDE_NAMES; i++)
		best = p->gain[i] > p->gain[best] ? i : best;
	return best;
}
/* The name that loses least. */
static unsigned best_loss(const struct prices *p)
{
	unsigned best = 0;

	for (unsigned i = 1; i < WFS_WIDE_NAMES; i++)
		best = p->loss[i] < p->loss[best] ? i : best;
	return best;
}

u64 wfs_wide_slots_allot(const u64 count[WFS_WIDE_NAMES], u16 freq[WFS_WIDE_NAMES])
{
	u64 total = 0, cost = 0;
	struct prices p;
	unsigned sum = 0;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		total += count[i];
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
		const u64 share = total ? (count[i] * WFS_WIDE_SLOTS + total / 2) / total : 0;
		const bool has = count[i] || i == WFS_WIDE_ESCAPE;

		freq[i] = (u16)(has ? WFS_MAX((u64)1, WFS_MIN(share, (u64)MOST)) : 0);
		price_set(&p, i, count[i], freq[i]);
		sum += freq[i];
	}
	/* Gains fall with every slot, so single slots moved while that pays lead to the optimum. */
	for (;;) {
		const unsigned to = best_gain(&p), from = best_loss(&p);

		if (sum == WFS_WIDE_SLOTS && (to == from || p.gain[to] <= p.loss[from]))
			break;
		if (sum <= WFS_WIDE_SLOTS) {
			price_set(&p, to, count[to], ++freq[to]);
			sum++;
		}
		if (sum > WFS_WIDE_SLOTS) {
			const unsigned least = best_loss(&p);

			price_set(&p, least, count[least], --freq[least]);
			sum--;
		}
	}
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		cost += freq[i] ? count[i] * ((WFS_WIDE_BITS << 16) - wfs_log2_q16(freq[i])) : 0;
	return cost;
}

/* Bits (in 1/65536) of the stored frequencies. */
static u64 stored_bits(const u16 freq[WFS_WIDE_NAMES])
{
	unsigned first = 0, end = WFS_WIDE_ESCAPE, bytes = 0;

	while (first < WFS_WIDE_ESCAPE && !freq[first])
		first++;
	while (end > first && !freq[end - 1])
		end--;
	for (unsigned i = first; i < end; i++)
		bytes += 1 + (freq[i] >= 128);
	return (u64)(8 * COPIES * bytes) << 16;
}

void wfs_wide_table_build(const u64 count[WFS_WIDE_NAMES], u16 freq[WFS_WIDE_NAMES])
{
	/* Names rarer than this become escapes, in quarters of a slot. */
	static const u8 rarest[] = {0, 1, 2, 4, 8};
	u64 total = 0, best_cost = UINT64_MAX;
	unsigned most = 0;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		total += count[i];
	for (unsigned i = 1; i < WFS_WIDE_ESCAPE; i++)
		most = count[i] > count[most] ? i : most;
	for (unsigned k = 0; k < WFS_ARRAY_LEN(rarest); k++) {
		u64 kept[WFS_WIDE_NAMES];
		u16 allotted[WFS_WIDE_NAMES];

		memcpy(kept, count, sizeof(kept));
		kept[most] += !kept[most];
		for (unsigned i = 0; i < WFS_WIDE_ESCAPE; i++)
			if (i != most && count[i] * 4 * WFS_WIDE_SLOTS < total * rarest[k]) {
				kept[WFS_WIDE_ESCAPE] += kept[i];
				kept[i] = 0;
			}
		u64 cost = wfs_wide_slots_allot(kept, allotted) + (kept[WFS_WIDE_ESCAPE] * ESCAPE_BITS << 16);

		cost += stored_bits(allotted);
		if (cost < best_cost) {
			best_cost = cost;
			memcpy(freq, allotted, sizeof(allotted));
		}
	}
}
