/* spares.h - head and metadata lie twice in a container: find the damaged copies, and write them anew from the good
 * ones.
 */
#ifndef SPARES_H
#define SPARES_H

#include "util.h"

#include <sys/stat.h>

enum spare { SPARE_HEAD, SPARE_META_A, SPARE_META_B, SPARE_TAIL, NR_SPARES };

struct spares {
	uint64_t off[NR_SPARES], len[NR_SPARES]; /* in the container */
	bool damaged[NR_SPARES];
	unsigned nr_damaged;
	char *image; /* head and metadata as they should be, proven by their hashes */
	size_t image_bytes;
};

enum { SPARES_TEXT_BYTES = 160 };

/* Read the copies that the reader with this info was opened from, prove them, and compare the others with them.
 * WFS_BAD_CHECKSUM: they are not as they were read (something changed). WFS_IO, WFS_NO_MEMORY: that could not be found
 * out. The caller frees spares in any case. */
enum wfs_status spares_check(int fd, const struct wfs_info *info, struct spares *spares_ret,
			     struct wfs_error *err) MUST_CHECK;
void spares_free(struct spares *spares);
/* "the head and the second copy of the metadata". */
const char *spares_text(const struct spares *spares, char buf[SPARES_TEXT_BYTES]);

/* Write the damaged copies anew, in place, and read them back: nothing else of the file changes, neither do its
 * modification time nor its content. st: of fd, before the container was proven. Good copies are never written to, so
 * whoever is killed here leaves them. Returns NULL, or why not. */
const char *spares_repair(int dir_fd, const char *name, int fd, const struct stat *st, const struct spares *spares,
			  const struct wfs_info *info);

#endif
