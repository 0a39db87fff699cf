/* sniff_records.c - which records unknown bytes may be (FORMAT.md section 5), and what they would cost.
 *
 * Scales that follow each other are alike, codes are not: where records begin shows in the places, modulo their length,
 * at which bytes often repeat those of the record before. The best places of a layout are judged by their cost.
 */
#include "sniff.h"

enum {
	MAX_SCALES = 4,
	NR_STARTS = 3, /* places of a layout whose cost is looked at: scales of several bytes repeat beside, too */
	/* Repeats among this many bytes of scales, plus some, that are worth a look; chance gives one of 256. */
	LOOK_AMONG = 20,
	LOOK_PLUS = 2,
	/* A part of the bytes that records have to save beyond words: they fit any bytes a little. */
	PART_OF_BYTES = 128,
	/* Where words save more than this part, bytes are no codes of blocks, which are nearly uniform. */
	MOST_SAVED = 7,
};

/* The bytes of a record that repeat: of a scale of 16 bits the high one. */
struct scales {
	u8 nr, at[MAX_SCALES];
};
static const struct scales scales[WFS_NR_RECORDS] = {
	[WFS_CLASS_MXFP4 - WFS_FIRST_RECORDS] = {1, {0}},	   [WFS_CLASS_Q4_0 - WFS_FIRST_RECORDS] = {1, {1}},
	[WFS_CLASS_Q4_1 - WFS_FIRST_RECORDS] = {2, {1, 3}},	   [WFS_CLASS_Q5_0 - WFS_FIRST_RECORDS] = {1, {1}},
	[WFS_CLASS_Q5_1 - WFS_FIRST_RECORDS] = {2, {1, 3}},	   [WFS_CLASS_Q8_0 - WFS_FIRST_RECORDS] = {1, {1}},
	[WFS_CLASS_NVFP4 - WFS_FIRST_RECORDS] = {4, {0, 1, 2, 3}}, [WFS_CLASS_Q4_K - WFS_FIRST_RECORDS] = {2, {1, 3}},
};

/* The places (file offset modulo step) where records most likely begin, best first; returns how many are worth a look.
 */
static unsigned find_starts(const struct wfs_sample *sample, unsigned step, const struct scales *s,
			    unsigned at_ret[NR_STARTS])
{
	const size_t least = sample->len / step * s->nr / LOOK_AMONG + LOOK_PLUS;
	const unsigned first = (unsigned)(sample->off % step);
	u16 repeats[WFS_MAX_RECORD] = {0}; /* by place in the sample modulo step */
	unsigned sum[NR_STARTS] = {0}, nr = 0;

	for (size_t i = 0; i + 2 * step <= sample->len; i += step)
		for (unsigned c = 0; c < step; c++)
			repeats[c] = (u16)(repeats[c] + (sample->raw[i + c] == sample->raw[i + c + step]));
	for (unsigned c = 0; c < step; c++) {
		unsigned here = 0, k;

		for (unsigned i = 0; i < s->nr; i++)
			here += repeats[(c + s->at[i]) % step];
		if (here < least || here <= sum[NR_STARTS - 1])
			continue;
		nr = WFS_MIN(nr + 1, (unsigned)NR_STARTS);
		for (k = NR_STARTS - 1; k > 0 && here > sum[k - 1]; k--) {
			sum[k] = sum[k - 1];
			at_ret[k] = at_ret[k - 1];
		}
		sum[k] = here;
		at_ret[k] = (first + c) % step;
	}
	return nr;
}

/* ---- costs ---- */

static struct wfs_block_cut records_of(unsigned step, unsigned at, const struct wfs_sample *sample)
{
	return wfs_block_cut(step, (unsigned)((sample->off + step - at) % step), sample->len);
}

/* The bytes of one part of nr records. */
static void count_part(struct wfs_sniffer *sniffer, unsigned step, struct wfs_record_part part, const u8 *raw,
		       size_t nr)
{
	memset(sniffer->hist, 0, 256 * sizeof(sniffer->hist[0]));
	raw += part.first;
	for (size_t i = 0; i < nr; i++, raw += step)
		for (unsigned k = 0; k < part.len; k++)
			sniffer->hist[raw[k]]++;
}

static u64 records_cost(struct wfs_sniffer *sniffer, const struct wfs_records *r, unsigned at,
			const struct wfs_sample *sample)
{
	const struct wfs_block_cut cut = records_of(r->bytes, at, sample);
	struct wfs_record_part part[WFS_MAX_BORDERS + 1];
	const unsigned nr_parts = wfs_record_parts(r, part);
	u64 cost = 0;

	for (unsigned i = 0; i < nr_parts; i++) {
		count_part(sniffer, r->bytes, part[i], sample->raw + cut.head, cut.nr_words);
		cost += wfs_sniff_counts(sniffer->hist, 256, cut.nr_words * part[i].len, WFS_WIDE_NAMES - 1,
					 WFS_WIDE_MAX_TAIL, 1);
	}
	return cost * sample->len / WFS_MAX(cut.nr_words * r->bytes, (size_t)1);
}

void wfs_sniff_records(struct wfs_sniffer *sniffer, const struct wfs_sample *sample, u64 saved, u32 *cost_ret)
{
	const u64 plain = (u64)sample->len * WFS_SNIFF_PLAIN;

	/* where nothing shows, blocks are stored */
	for (unsigned i = 0; i < WFS_NR_READINGS - WFS_NR_WORD_READINGS; i++)
		cost_ret[i] = (u32)plain;
	for (unsigned k = 0; k < WFS_NR_RECORDS; k++) {
		const struct wfs_records *r = wfs_class_records(WFS_FIRST_RECORDS + k);
		unsigned at[NR_STARTS] = {0};
		const unsigned nr = saved > plain / MOST_SAVED ? 0 : find_starts(sample, r->bytes, &scales[k], at);

		for (unsigned i = 0; i < nr; i++) {
			const u64 cost = records_cost(sniffer, r, at[i], sample) + plain / PART_OF_BYTES;

			cost_ret[at[i]] = (u32)WFS_MIN(cost, plain);
		}
		cost_ret += r->bytes;
	}
}

void wfs_sniff_record_bytes(struct wfs_sniffer *sniffer, struct wfs_reading reading, const struct wfs_sample *sample,
			    const struct wfs_sample *part, u16 *cost_ret)
{
	const struct wfs_records *r = wfs_class_records(reading.class);
	const struct wfs_block_cut cut = records_of(r->bytes, reading.at, sample);
	const size_t first = (size_t)((part->off + r->bytes - reading.at) % r->bytes);
	struct wfs_record_part parts[WFS_MAX_BORDERS + 1];
	const unsigned nr_parts = wfs_record_parts(r, parts);

	for (unsigned p = 0; p < nr_parts; p++) {
		count_part(sniffer, r->bytes, parts[p], sample->raw + cut.head, cut.nr_words);
		wfs_sniff_value_costs(sniffer, 256, cut.nr_words * parts[p].len, 0, 1);
		for (size_t i = 0; i < part->len; i++) {
			const size_t place = (first + i) % r->bytes;

			if (place >= parts[p].first && place < parts[p].first + parts[p].len)
				cost_ret[i] = sniffer->cost[part->raw[i]];
		}
	}
}
