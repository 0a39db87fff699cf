/* report.h - what pack and unpack did with each file: lines for people or one JSON document, and the totals. */
#ifndef REPORT_H
#define REPORT_H

#include "json_out.h"
#include "progress.h"
#include "sha256.h"

enum action {
	ACTION_NONE,	  /* not reached: interrupted before */
	ACTION_CONVERTED, /* packed or unpacked */
	ACTION_COPIED,
	ACTION_LINKED,	/* a hard link to what another name of the same file became */
	ACTION_PRESENT, /* its equal was there already */
	ACTION_KEPT,	/* in place: nothing to do */
	ACTION_IGNORED, /* not a file, directory or symbolic link */
	ACTION_FAILED,
	NR_ACTIONS,
};

enum { NOTE_BYTES = 512 };

struct outcome {
	enum action action;
	uint64_t raw_bytes, stored_bytes; /* of the original, and what it takes in the store */
	bool again;			  /* another name of a file whose bytes are counted already */
	bool has_sha256;
	uint8_t sha256[SHA256_BYTES];
	char note[NOTE_BYTES]; /* why it failed, or what the user should know; "" */
};

struct report_opts {
	const char *command, *converted;  /* "pack", "packed" */
	const char *source, *destination; /* destination NULL: in place */
	bool restores;			  /* unpack: stored bytes become raw ones */
	bool dry_run, json, quiet, verbose;
};

struct report;
struct report *report_new(const struct report_opts *opts);
void report_set_progress(struct report *r, struct progress *p);
/* Any thread. */
void report_add(struct report *r, const char *path, const struct outcome *out);
/* A failure that concerns no single file, or one that has no outcome. path "": the top of the tree. Any thread. */
void report_failure(struct report *r, const char *path, const char *fmt, ...) PRINTF_LIKE(3, 4);
void report_notice(struct report *r, const char *path, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Count a directory or symbolic link that is in the result. */
void report_other(struct report *r, bool directory);
/* Print the totals. stopped: NULL, or why the rest was not done. Returns whether all went well. */
bool report_end(struct report *r, const char *stopped) MUST_CHECK;
void report_free(struct report *r);

#endif
