/* file.h - open files of the store: one a node, shared by all handles that the kernel has on it.
 *
 * A container's descriptor and reader are kept some seconds after the last handle is gone (Ollama opens its file once a
 * tensor), while the kernel knows the node; how many, and with how much memory, is bounded. A plain file is closed at
 * once. A thread of its own closes what was kept long enough: closing may hang in the store.
 */
#ifndef WFSD_FILE_H
#define WFSD_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "load.h"
#include "manifest.h"
#include "wfs.h"

struct wfsd;
struct wfsd_node;

struct wfsd_file {
	/* constant; the file holds a reference of its node */
	struct wfsd_node *node;
	int fd;
	struct wfs_reader *reader;		/* NULL: a plain file */
	const struct wfs_manifest_entry *entry; /* what it was signed as; NULL: the mount is not signed */
	uint64_t raw_len;			/* if in blocks: the size the mount shows */
	uint64_t nr_blocks, memory_bytes;	/* likewise */
	uint64_t stored_len;			/* of the file as it was opened */

	struct wfsd_bypass bypass;
	_Atomic(struct wfsd_readers *) readers; /* containers; NULL until the first read */
	_Atomic int64_t hangs_until_nsec;	/* a read was given up (reply.h) */
	_Atomic uint64_t refs;			/* falls to 0 only under the files' lock */
	/* under the files' lock */
	struct wfsd_file_list *list;
	struct wfsd_file *older, *newer;
	struct timespec keep_until; /* CLOCK_MONOTONIC; kept files only */
};

/* Whether it is read in blocks, each of which is proven: a container, or a plain file of a signed mount, whose blocks
 * are the manifest's pieces. Other plain files are passed through. */
static inline bool wfsd_file_in_blocks(const struct wfsd_file *file)
{
	return file->reader || file->entry;
}

struct wfsd_files;
/* NULL: no memory or no thread. */
struct wfsd_files *wfsd_files_new(struct wfsd *d);
/* Closes all, also those still referenced. files may be NULL. */
void wfsd_files_free(struct wfsd *d, struct wfsd_files *files);

/* The node's file with one more reference, opened if need be. *keep_cache_ret: the kernel's pages of it are still
 * right. 0 or the errno (positive); a container that can never be opened is logged once. */
int wfsd_file_open(struct wfsd *d, struct wfsd_node *node, struct wfsd_file **file_ret, bool *keep_cache_ret);
/* One more reference, for a caller that knows there is one. */
void wfsd_file_ref(struct wfsd_file *file);
void wfsd_file_put(struct wfsd *d, struct wfsd_file *file);
/* The kernel has forgotten the node, which the caller holds: close its file if it is merely kept. */
void wfsd_file_unkeep(struct wfsd *d, struct wfsd_node *node);
/* The node's open plain file with one more reference, or NULL. */
struct wfsd_file *wfsd_file_if_open(struct wfsd *d, struct wfsd_node *node);

/* Bad blocks, remembered as long as the node. mark returns true for the first who finds this one. */
bool wfsd_file_block_is_bad(const struct wfsd_file *file, uint64_t block);
bool wfsd_file_mark_bad(struct wfsd_file *file, uint64_t block);

#endif
