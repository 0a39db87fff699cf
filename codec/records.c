/* records.c - records to part order and back. */
#include "records.h"

bool wfs_records_valid(const struct wfs_records *r)
{
	unsigned last = 0;
	bool ended = false;

	for (unsigned i = 0; i < WFS_MAX_BORDERS; i++) {
		ended |= !r->border[i];
		if (ended ? r->border[i] : r->border[i] <= last || r->border[i] >= r->bytes)
			return false;
		last = r->border[i];
	}
	return r->bytes >= WFS_MIN_RECORD;
}

/* Bytes from one place to another, a step apart. Parts are a byte or two of a scale, or many codes: the first are worth
 * a loop without calls, the others go 16 bytes at a time. */
static void copy_strided(u8 *to, size_t to_step, const u8 *from, size_t from_step, size_t len, size_t nr)
{
	if (len == 1) {
		for (size_t i = 0; i < nr; i++)
			to[i * to_step] = from[i * from_step];
		return;
	}
	for (size_t i = 0; i < nr; i++, to += to_step, from += from_step) {
		size_t k = 0;

		for (; k + 16 <= len; k += 16)
			memcpy(to + k, from + k, 16);
		for (; k < len; k++)
			to[k] = from[k];
	}
}

void wfs_records_gather(const struct wfs_records *r, const u8 *raw, size_t nr, u8 *parts)
{
	struct wfs_record_part part[WFS_MAX_BORDERS + 1];
	const unsigned nr_parts = wfs_record_parts(r, part);

	for (unsigned i = 0; i < nr_parts; parts += nr * part[i++].len)
		copy_strided(parts, part[i].len, raw + part[i].first, r->bytes, part[i].len, nr);
}

void wfs_records_scatter(const struct wfs_records *r, const u8 *parts, size_t nr, u8 *raw)
{
	struct wfs_record_part part[WFS_MAX_BORDERS + 1];
	const unsigned nr_parts = wfs_record_parts(r, part);

	for (unsigned i = 0; i < nr_parts; parts += nr * part[i++].len)
		copy_strided(raw + part[i].first, r->bytes, parts, part[i].len, part[i].len, nr);
}

void wfs_records_groups(const struct wfs_records *r, size_t nr, struct wfs_wide_groups *groups_ret)
{
	struct wfs_record_part part[WFS_MAX_BORDERS + 1];
	const unsigned nr_parts = wfs_record_parts(r, part);

	*groups_ret = (struct wfs_wide_groups){.nr = nr_parts};
	for (unsigned i = 0; i < nr_parts; i++) {
		groups_ret->group[i].first = (u32)(nr * part[i].first);
		groups_ret->group[i].seg_len = (u16)wfs_wide_segment_words(0);
	}
}
