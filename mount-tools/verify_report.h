/* verify_report.h - what verify and scrub found: lines for people or one JSON document, and the totals. */
#ifndef VERIFY_REPORT_H
#define VERIFY_REPORT_H

#include "verify_file.h"

#include <pthread.h>

struct verify_report {
	const char *command; /* "verify" or "scrub" */
	bool fast, repair, json, quiet;
	struct progress *progress;
	double started;
	pthread_mutex_t lock;
	/* protected by lock */
	struct json out;
	uint64_t nr[NR_VERDICTS], raw_bytes, stored_bytes;
	char **ordinary; /* for JSON */
	size_t nr_ordinary;
};

/* The first four members are set. */
void verify_report_begin(struct verify_report *r);
/* Any thread. */
void verify_report_add(struct verify_report *r, const char *shown, const struct verify_result *result);
/* Something the user may want to know that is no failure; only for people. Any thread. */
void verify_report_note(struct verify_report *r, const char *shown, const char *what);
/* A file that has a container's name and is none. Any thread. */
void verify_report_ordinary(struct verify_report *r, const char *shown);
/* nr_left: containers that were not reached. Returns whether every container is whole. */
bool verify_report_end(struct verify_report *r, uint64_t nr_left) MUST_CHECK;

/* Whether nothing at all was added. No thread adds. */
bool verify_report_is_empty(const struct verify_report *r) MUST_CHECK;

#endif
