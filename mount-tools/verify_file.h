/* verify_file.h - prove one container, say exactly what is wrong with a damaged one, and heal what can be healed. */
#ifndef VERIFY_FILE_H
#define VERIFY_FILE_H

#include "lost.h"
#include "progress.h"
#include "scrub.h"
#include "sha256.h"

enum verdict {
	VERDICT_OK,
	VERDICT_REPAIRED,    /* it was degraded, and is ok now */
	VERDICT_DEGRADED,    /* every byte is right, but a spare copy of head or metadata is damaged */
	VERDICT_DAMAGED,     /* some bytes are lost */
	VERDICT_UNSUPPORTED, /* made by a newer weightfs */
	VERDICT_ERROR,	     /* could not be read: no word on its content */
	VERDICT_NONE,	     /* not a container */
	NR_VERDICTS,
};

struct verify_result {
	enum verdict verdict;
	struct wfs_head head; /* zero when it could not be read */
	bool head_known;
	uint64_t stored_bytes;
	struct lost lost;		 /* nothing in it unless blocks are bad */
	char reason[REASON_BYTES + 256]; /* one clause; "" when ok */
};

struct verify_opts {
	bool fast; /* block hashes only */
	bool repair;
	unsigned nr_threads;
	enum wfs_cpu cpu;
	struct progress *progress;
	struct throttle *throttle; /* scrub; NULL: as fast as it goes */
	double give_up_at;	   /* scrub: by seconds_now(), even within a container; 0: never */
};

/* Prove the container fd, which lies in dir_fd under name; when that name says what SHA-256 the original has, that must
 * be so. The caller frees the result. */
void verify_container(int dir_fd, const char *name, int fd, const struct verify_opts *opts,
		      struct verify_result *result);
void verify_result_free(struct verify_result *result);
const char *verdict_name(enum verdict verdict);

#endif
