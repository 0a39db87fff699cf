/* ahead.h - decodes blocks before they are asked for, on threads of its own.
 *
 * streams.h decides what; here it is done: the blocks go to the cache, where reads find them ready or wait for them as
 * for any other. A thread reads and decodes a MiB at a time, so several such reads of the store are under way.
 */
#ifndef WFSD_AHEAD_H
#define WFSD_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wfsd;
struct wfsd_file;

struct wfsd_ahead;
/* NULL: no memory or no threads. */
struct wfsd_ahead *wfsd_ahead_new(struct wfsd *d, unsigned nr_threads);
/* Drops what is still to do and waits for the threads. False: one hangs in the store, for longer than these seconds;
 * then nothing of it may be freed. */
bool wfsd_ahead_stop(struct wfsd *d, struct wfsd_ahead *ahead, unsigned seconds);
/* It is stopped, or idle, or NULL. */
void wfsd_ahead_free(struct wfsd *d, struct wfsd_ahead *ahead);

/* raw[off, off + len) of a container was read. o_direct: past the kernel's read-ahead. late: not all of it was ready.
 * Any thread; returns at once. */
void wfsd_ahead_note(struct wfsd *d, struct wfsd_file *file, uint64_t off, size_t len, bool o_direct, bool late);

/* What is known of the readers of a file; made at its first read. */
struct wfsd_readers;
/* readers may be NULL. */
void wfsd_readers_free(struct wfsd_readers *readers);

#endif
