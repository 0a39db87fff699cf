/* verify_file.h - prove one container, and say exactly what is wrong with a damaged one. */
#ifndef VERIFY_FILE_H
#define VERIFY_FILE_H

#include "progress.h"
#include "sha256.h"

enum verdict {
	VERDICT_OK,
	VERDICT_DEGRADED,    /* every byte is right, but a spare copy of head or metadata is damaged */
	VERDICT_DAMAGED,     /* some bytes are lost */
	VERDICT_UNSUPPORTED, /* made by a newer weightfs */
	VERDICT_ERROR,	     /* could not be read: no word on its content */
	VERDICT_NONE,	     /* not a container */
	NR_VERDICTS,
};

struct bad_block {
	uint64_t index, raw_off;
	uint32_t raw_len;
	const char *reason; /* a constant string */
};

enum { MAX_LISTED_BAD_BLOCKS = 64 };

struct verify_result {
	enum verdict verdict;
	struct wfs_head head; /* zero when it could not be read */
	bool head_known;
	uint64_t stored_bytes, nr_blocks;
	uint64_t nr_bad_blocks; /* all of them; the first ones are listed */
	struct bad_block bad_block[MAX_LISTED_BAD_BLOCKS];
	char reason[REASON_BYTES + 64]; /* one clause; "" when ok */
};

struct verify_opts {
	bool fast; /* block hashes only */
	unsigned nr_threads;
	enum wfs_cpu cpu;
	struct progress *progress;
};

/* name: of the file, without directories; when it says what SHA-256 the original has, that must be so. */
void verify_container(int fd, const char *name, const struct verify_opts *opts, struct verify_result *result);
const char *verdict_name(enum verdict verdict);

#endif
