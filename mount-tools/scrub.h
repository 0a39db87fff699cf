/* scrub.h - what makes a verify bearable beside other work: a rate, low priority, and a place to go on from. */
#ifndef SCRUB_H
#define SCRUB_H

#include "util.h"

struct throttle;
/* bytes_per_second 0: no limit. */
struct throttle *throttle_new(uint64_t bytes_per_second);
/* Account for so many bytes, and wait until they were due. Any thread. */
void throttle_take(struct throttle *t, uint64_t bytes);
void throttle_free(struct throttle *t);

/* Let every other process have processor and disk first. Threads started from now on inherit it. */
void lower_priority(void);

/* The path that the last run ended with, or NULL: there is none, begin at the beginning. false: a message was printed.
 * The caller frees it. */
bool scrub_state_read(const char *file, char **last_ret) MUST_CHECK;
/* last NULL: the next run shall begin at the beginning. A path of more than 64 KiB cannot be kept: the state stays as
 * it was, before that container. */
bool scrub_state_write(const char *file, const char *last) MUST_CHECK;

#endif
