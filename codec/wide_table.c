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

/* Bits (in 1/65536) that the slot saves which takes a name from f to f + 1 slots. */
static u64 slot_gain(u64 count, unsigned f)
{
	return count * (wfs_log2_q16(f + 1) - wfs_log2_q16(f));
}

/* The name that gains most from one more slot, or (more = false) loses least by one less; the lowest of equals. Returns
 * WFS_WIDE_NAMES when none can. */
static unsigned slot_best(const u64 *count, const u16 *freq, bool more, unsigned skip, u64 *gain_ret)
{
	unsigned best = WFS_WIDE_NAMES;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
		if (!freq[i] || i == skip || freq[i] == (more ? MOST : 1))
			continue;
		const u64 gain = slot_gain(count[i], more ? freq[i] : freq[i] - 1u);

		if (best == WFS_WIDE_NAMES || (more ? gain > *gain_ret : gain < *gain_ret)) {
			best = i;
			*gain_ret = gain;
		}
	}
	return best;
}

u64 wfs_wide_slots_allot(const u64 count[WFS_WIDE_NAMES], u16 freq[WFS_WIDE_NAMES])
{
	u64 total = 0, gain = 0, loss = 0, cost = 0;
	unsigned sum = 0;

	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		total += count[i];
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++) {
		const u64 share = total ? (count[i] * WFS_WIDE_SLOTS + total / 2) / total : 0;
		const bool has = count[i] || i == WFS_WIDE_ESCAPE;

		freq[i] = (u16)(has ? WFS_MAX((u64)1, WFS_MIN(share, (u64)MOST)) : 0);
		sum += freq[i];
	}
	/* The gain of a slot falls with f, so single slots moved while that pays lead to the optimum. */
	for (; sum < WFS_WIDE_SLOTS; sum++)
		freq[slot_best(count, freq, true, WFS_WIDE_NAMES, &gain)]++;
	for (; sum > WFS_WIDE_SLOTS; sum--)
		freq[slot_best(count, freq, false, WFS_WIDE_NAMES, &loss)]--;
	for (;;) {
		const unsigned to = slot_best(count, freq, true, WFS_WIDE_NAMES, &gain);
		const unsigned from = slot_best(count, freq, false, to, &loss);

		if (to == WFS_WIDE_NAMES || from == WFS_WIDE_NAMES || loss >= gain)
			break;
		freq[to]++;
		freq[from]--;
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
