/* dir.h - names: lookups, and listings of directories. */
#ifndef WFSD_DIR_H
#define WFSD_DIR_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

struct wfsd;
struct wfsd_node;
struct wfsd_request;
struct wfsd_dir; /* an open directory */

/* Finds the name in a directory and makes *entry_ret for the kernel, with one lookup on its node. 0 or the errno. */
int wfsd_lookup(struct wfsd *d, struct wfsd_node *parent, const char *name, struct fuse_entry_param *entry_ret);

/* 0 or the errno. */
int wfsd_dir_open(struct wfsd *d, struct wfsd_node *node, struct wfsd_dir **dir_ret);
/* One more reference, for a caller that knows there is one; and one less. */
void wfsd_dir_ref(struct wfsd_dir *dir);
void wfsd_dir_put(struct wfsd *d, struct wfsd_dir *dir);
/* Replies with entries from offset off on, at most size bytes; plus: with all attributes, and a lookup each. */
void wfsd_dir_read(struct wfsd_request *r, struct wfsd_dir *dir, uint64_t off, size_t size, bool plus);

#endif
