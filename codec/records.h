/* records.h - arrays of structures in part order (FORMAT.md section 5). Private.
 *
 * A record is cut in parts at borders; its bytes lie in the file part after part, but are coded with those of all
 * records together: part 0 of every record, then part 1 of every record.
 */
#ifndef WFS_RECORDS_H
#define WFS_RECORDS_H

#include "wide.h"

enum { WFS_MAX_BORDERS = 8, WFS_MIN_RECORD = 2, WFS_MAX_RECORD = 255 };

/* How records are cut: those borders that are not used are 0 and last. */
struct wfs_records {
	u8 bytes; /* of a record */
	u8 border[WFS_MAX_BORDERS];
};

/* Whether the length and the borders are as FORMAT.md 1.4 says. */
bool wfs_records_valid(const struct wfs_records *r);

/* One part: bytes first..first + len - 1 of each record. */
struct wfs_record_part {
	unsigned first, len;
};
/* All of them, in order; returns how many. */
static inline unsigned wfs_record_parts(const struct wfs_records *r, struct wfs_record_part part[WFS_MAX_BORDERS + 1])
{
	unsigned nr = 0, first = 0;

	for (unsigned i = 0; i < WFS_MAX_BORDERS && r->border[i]; i++) {
		part[nr++] = (struct wfs_record_part){first, r->border[i] - first};
		first = r->border[i];
	}
	part[nr++] = (struct wfs_record_part){first, r->bytes - first};
	return nr;
}

/* nr records at raw to their bytes in part order, and back. The ranges, nr * r->bytes each, do not overlap. */
void wfs_records_gather(const struct wfs_records *r, const u8 *raw, size_t nr, u8 *parts);
void wfs_records_scatter(const struct wfs_records *r, const u8 *parts, size_t nr, u8 *raw);

/* The segments for nr records in part order: those of a part are alike. */
void wfs_records_groups(const struct wfs_records *r, size_t nr, struct wfs_wide_groups *groups_ret);

#endif
