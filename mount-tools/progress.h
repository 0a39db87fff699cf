/* progress.h - shows how far a long command is: a bar on a terminal, now and then a line elsewhere, both on stderr. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "util.h"

struct progress; /* NULL is a silent one */

/* label: "packing". total_work: bytes that progress_add will add up to. passes: how often each byte of the files is
 * counted in it, so that rates speak of the files' own bytes. */
struct progress *progress_new(const char *label, uint64_t total_work, unsigned passes);
/* Any thread. */
void progress_add(struct progress *p, uint64_t work);
/* For "saved so far": raw bytes became comp bytes; negative to take back what came to nothing. Any thread. */
void progress_coded(struct progress *p, int64_t raw_bytes, int64_t comp_bytes);
/* Take the bar off the screen before another line is printed; it comes back by itself. Any thread. */
void progress_clear(struct progress *p);
void progress_free(struct progress *p);

/* How much of one file a progress knows of, so that each byte counts once; progress and passes are set. One thread. */
struct file_progress {
	struct progress *progress;
	unsigned passes; /* each raw byte counts so often at once */
	uint64_t raw_told;
};
/* So many raw bytes of the file are done. */
void file_progress_reach(struct file_progress *p, uint64_t raw_done);
/* The same for calls of the codec (wfs_progress_fn), with the file_progress as context; goes on always. */
int file_progress_report(void *ctx, uint64_t raw_done, uint64_t comp_done);

#endif
