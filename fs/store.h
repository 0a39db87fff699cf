/* store.h - the store as it lies on the disk: versions of its objects, paths beneath its root, heads of containers.
 *
 * All functions return 0 or -errno, are safe on any thread, and do their I/O without locks.
 */
#ifndef WFSD_STORE_H
#define WFSD_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

struct wfsd;

/* What makes a node the same node. A container is one version: another size or time is another node, with other pages
 * in the kernel's cache. Anything else may change in place: size and times are 0. In a signed mount all but directories
 * are versions, and each name is a node of its own: what it was signed as. No padding: compared with memcmp. */
struct wfsd_ident {
	uint64_t dev, ino, size;
	int64_t mtime_sec, ctime_sec;
	uint32_t mtime_nsec, ctime_nsec;
	uint32_t type; /* S_IFMT */
	uint32_t versioned : 1;
	uint32_t entry : 31; /* signed mount: which of the manifest's, from 1 on; else 0 */
};
_Static_assert(sizeof(struct wfsd_ident) == 56, "no padding");

struct wfsd_ident wfsd_ident_of(const struct stat *st, bool versioned);
static inline bool wfsd_ident_equal(const struct wfsd_ident *a, const struct wfsd_ident *b)
{
	return !memcmp(a, b, sizeof(*a));
}
/* The inode number the mount shows: the same after a remount. Never 0 or 1. */
uint64_t wfsd_ident_ino(const struct wfsd_ident *ident);

/* One name of a directory as the mount shows it. */
struct wfsd_entry {
	char stored[NAME_MAX + 1]; /* its name in the store */
	bool container;
	struct wfsd_ident ident;
	struct stat st; /* as the mount shows it: of a container with size and mtime of the original */
};

/* Open a path of stored names beneath the store's root ("" is the root) with openat's flags. It never leaves the root:
 * no symlink is followed, the last name's included, whatever is renamed meanwhile. -EIO: so many requests hang in the
 * store that it is not asked. */
int wfsd_store_open(const struct wfsd *d, const char *path, int flags, int *fd_ret);
/* Whether openat2 is there and allowed, for struct wfsd. */
bool wfsd_store_has_openat2(int root_fd);

/* What a stored name is. -ENOENT: nothing, or a temporary. */
enum wfsd_kind { WFSD_ORDINARY, WFSD_CONTAINER, WFSD_DAMAGED };
/* Fills the entry for a stored name. *kind_ret tells how it is to be shown: ordinary under its own name, the others
 * without the suffix. DAMAGED: *err_ret is the errno for whoever asks; st is that of the container. dir: for messages
 * (may be NULL). */
int wfsd_store_probe(struct wfsd *d, int dir_fd, const char *stored, struct wfsd_entry *entry, enum wfsd_kind *kind_ret,
		     int *err_ret, const char *dir);
/* Finds what the mount shows under a name: the plain file before the container. */
int wfsd_store_resolve(struct wfsd *d, int dir_fd, const char *shown, struct wfsd_entry *entry, const char *dir);

/* Whether a stored name could be a container's: ends in the suffix, and something is left without it. */
bool wfsd_has_suffix(const char *stored);
#define WFSD_SUFFIX	".wfs"
#define WFSD_SUFFIX_LEN 4
/* The stored name of a container shown as `shown`, into stored_ret[NAME_MAX + 1]. False: too long to be one. */
bool wfsd_add_suffix(const char *shown, char *stored_ret);

/* From now on reads of this open container bring in what they ask for and no more. Before the first of them: what the
 * kernel has read ahead bears marks that make it go on, whoever meets them. */
void wfsd_store_read_exactly(int fd);
/* Where other users are let in, the kernel looks at the mode bits of *st alone: take from them what the access control
 * list denies (access_list.h), of the open file fd, or of name in the directory fd. */
void wfsd_store_limit_mode(const struct wfsd *d, int fd, const char *name, struct stat *st);

/* What is known of containers' heads, by version: bounded memory, a lost entry costs one pread. */
struct wfsd_heads *wfsd_heads_new(void);
void wfsd_heads_free(struct wfsd_heads *heads);

#endif
