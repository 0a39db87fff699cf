/* reader.h - what the patterns of the reader share.
 *
 * The time of a pattern begins before its first open and ends with its last byte; memory is backed before, and what was
 * read is proven after (run->hash), but for one word a page, which is looked at as it comes, as any program would.
 */
#ifndef READER_H
#define READER_H

#include <stddef.h>
#include <stdint.h>

struct target {
	const char *path;
	uint64_t size;
};

struct run {
	/* what to do */
	struct target *file;
	int nr_files;
	uint64_t request; /* bytes of a call or a piece */
	uint64_t stride;  /* strided: from one piece to the next */
	uint64_t count;	  /* random patterns: operations */
	int nr_workers;	  /* threads or processes */
	/* what came of it */
	double seconds;
	uint64_t bytes;	 /* that the reader asked for and got */
	double *latency; /* seconds of each of `count` operations, or NULL */
	uint64_t hash;	 /* equal bytes, equal hash */
};

struct pattern {
	const char *name, *help;
	void (*run)(struct run *run);
};
extern const struct pattern reader_patterns[]; /* the last has no name */

/* reader.c. Whatever fails ends the program with a message. */
void reader_die(const char *what) __attribute__((noreturn));
double reader_now(void);
int reader_open(const struct target *file, int flags);
/* Exactly len bytes. */
void reader_pread(int fd, void *buf, uint64_t len, uint64_t off);
/* Zeroed memory of huge pages, backed already; for free(). */
void *reader_memory(uint64_t len);

/* reader_cache.c: look at and change what the page cache holds of files. */
int reader_resident(const struct target *file, int nr);
int reader_evict(const struct target *file, int nr);
int reader_load(const struct target *file, int nr);
/* Read past it. */
int reader_wake(const struct target *file, int nr);

#endif
