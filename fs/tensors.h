/* tensors.h - where the long tensors of a container are: a hint for decoding ahead, never needed for a right byte. */
#ifndef WFSD_TENSORS_H
#define WFSD_TENSORS_H

#include <stddef.h>

#include "streams.h"

struct wfsd_file;

struct wfsd_tensors {
	size_t nr;
	struct wfsd_span span[]; /* by start; they do not overlap */
};

/* Reads the header of an open container: I/O, and up to some 20 MiB of memory for as long as it takes. NULL: it is not
 * a safetensors file, has no long tensors, or its header is too long or cannot be read. The caller frees it; it takes
 * at most a byte for each block. */
struct wfsd_tensors *wfsd_tensors_read(const struct wfsd_file *file);

#endif
