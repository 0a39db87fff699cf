/* read.h - answers read requests. */
#ifndef WFSD_READ_H
#define WFSD_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wfsd_request;
struct wfsd_file;

/* Reads at most this many may be at work with a cache of that size (struct wfsd, reads). */
unsigned wfsd_read_limit(uint64_t cache_bytes);

/* Replies with the bytes of [off, off + size), fewer at the end of the file, or with an error.
 * o_direct: the reader has opened the file so. */
void wfsd_read(struct wfsd_request *r, struct wfsd_file *file, uint64_t off, size_t size, bool o_direct);

#endif
