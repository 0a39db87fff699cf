/* util.h - what every command of weightfs needs: messages, memory, whole reads and writes, numbers for people. */
#ifndef UTIL_H
#define UTIL_H

#include "wfs.h"

#include <limits.h>
#include <sys/types.h>

#define MUST_CHECK	  __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define ARRAY_LEN(a)	  (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)	  ((a) < (b) ? (a) : (b))
#define MAX(a, b)	  ((a) > (b) ? (a) : (b))

/* Exit statuses of every command. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Print "weightfs: <message>" as one line to stderr. Control characters (printable.h; file names may hold any) become
 * '?', so a name can neither break the line nor steer the terminal. Any thread. */
void msg(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same for a line of results on stdout, without the prefix. */
void out_line(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Out of memory ends the program: a command has nothing better to do. */
void *xcalloc(size_t nr, size_t size);
void *xrealloc(void *p, size_t nr, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Write all of buf at off (off < 0: at the file's own position). Returns 0 or an errno. */
int write_full(int fd, const void *buf, size_t len, off_t off) MUST_CHECK;
/* Read up to len bytes at off; fewer only at the end of the file. Returns the bytes, or -1 with errno. */
ssize_t pread_full(int fd, void *buf, size_t len, off_t off) MUST_CHECK;

/* Decimal units as disks and networks use them: "482 B", "90.9 MB", "1.45 GB". buf holds the result. */
enum { SIZE_TEXT_BYTES = 32 };
const char *size_text(char buf[SIZE_TEXT_BYTES], uint64_t bytes);
/* ", 1.23 GB/s", to stand behind what was done; "" where that was too little or too quick to tell. bytes are those that
 * the time was spent on, 0 when that is not known, as of a run that failed. buf holds the result. */
enum { RATE_TEXT_BYTES = SIZE_TEXT_BYTES + 8 };
const char *rate_text(char buf[RATE_TEXT_BYTES], uint64_t bytes, double seconds);
/* "34.02": how much smaller stored is than raw; below zero when it is larger; 0 for an empty file. */
double saved_percent(uint64_t raw_bytes, uint64_t stored_bytes);
/* For people: "34.02 % saved", or "8.24 kB more than the original", as of a tiny file. buf holds the result. */
enum { SAVED_TEXT_BYTES = 64 };
const char *saved_text(char buf[SAVED_TEXT_BYTES], uint64_t raw_bytes, uint64_t stored_bytes, int decimals);

/* What follows a noun, and a verb, that nr of them are: "s" or "", "es" or "", "is" or "are". */
const char *plural(uint64_t nr);
const char *plural_es(uint64_t nr);
const char *is_or_are(uint64_t nr);

/* Parse all of text as a decimal number in low..high; "k", "M", "G", "T" (powers of 1024) may follow with units. */
bool parse_number(const char *text, uint64_t low, uint64_t high, bool units, uint64_t *value_ret) MUST_CHECK;
/* The same for a percentage in 0..100. */
bool parse_percent(const char *text, double *value_ret) MUST_CHECK;
/* A --cpu name that this machine can run; otherwise a message was printed. */
bool parse_cpu(const char *command, const char *text, enum wfs_cpu *cpu_ret) MUST_CHECK;
/* A --level name; otherwise a message was printed. */
bool parse_level(const char *command, const char *text, enum wfs_level *level_ret) MUST_CHECK;
/* A -j number of threads; otherwise a message was printed. */
bool parse_threads(const char *command, const char *text, unsigned *nr_ret) MUST_CHECK;

/* Processors this process may use, at least 1. */
unsigned nr_processors(void);
double seconds_now(void);

/* What went wrong with a container, without its name: "block 12 (bytes 3145728 to 3407871): ...". reader may be NULL.
 */
enum { REASON_BYTES = 320 };
void wfs_reason(char buf[REASON_BYTES], const struct wfs_reader *reader, const struct wfs_error *err);

/* Flush stdout and find out whether everything really was written; otherwise a message was printed. */
bool close_stdout(void) MUST_CHECK;

/* Files below SMALL_FILE_BYTES are handled side by side, one thread each, so that their fsyncs overlap; those above one
 * after another, each by all threads, so that memory stays bounded. */
enum { SMALL_FILE_BYTES = 8 << 20, MAX_FILES_AT_ONCE = 16 };

/* Call fn(ctx, i) for every i < nr on nr_workers threads; returns when all are done. */
void parallel_for(size_t nr, unsigned nr_workers, void (*fn)(void *ctx, size_t i), void *ctx);

/* Whether name is one that containers have: it ends in ".wfs" and something that can be a name is left without it. That
 * is written to original_ret (may be NULL; NAME_MAX + 1 bytes). */
bool container_name(const char *name, char *original_ret);
/* The same of the last component of a path. */
bool container_path(const char *path) MUST_CHECK;
/* Read the head of the open file of that path: what has a container's name and holds nothing is a damaged one. */
enum wfs_status named_head_read(const char *path, int fd, struct wfs_head *head_ret, struct wfs_error *err) MUST_CHECK;

/* The last component of a path, without trailing slashes; the caller frees it. "/" gives "/", "" gives "". */
char *path_basename(const char *path);
/* What precedes it: "." when there is none. */
char *path_dirname(const char *path);

#endif
