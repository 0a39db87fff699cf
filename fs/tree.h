/* tree.h - nodes: what the kernel knows of the store. A node is an inode of the mount; the node number that the kernel
 * uses is the node's address, the inode number that users see is wfsd_ident_ino.
 *
 * A node is reached by its parent and its stored name: the last place where it was found. Nothing else is opened or
 * kept for it, so the kernel may know a million of them. Whoever opens a node checks that it is still that version.
 *
 * References: one while the kernel knows the node (nlookup > 0), one a child, one an open file, one a running request
 * (the watchdog may have answered that request, and the kernel then be quick to forget).
 */
#ifndef WFSD_TREE_H
#define WFSD_TREE_H

#include <stdatomic.h>

#include "bits.h"
#include "store.h"

struct wfsd_file;

struct wfsd_node {
	/* constant */
	struct wfsd_ident ident;
	uint64_t id;	/* never used again: names the node's blocks in the cache */
	struct stat st; /* of a version (a container's): its attributes for ever */

	/* under the tree's lock */
	struct wfsd_node *chain;
	struct wfsd_node *parent; /* NULL: the root */
	char *name;		  /* stored; NULL: the root */
	uint64_t nlookup, refs;

	/* under the files' lock (file.c) */
	struct wfsd_file *file; /* open, or kept */
	int open_err;		/* errno: can never be opened */
	bool seen_valid;	/* seen: a plain file at its last open */
	struct timespec seen_mtime, seen_ctime;
	off_t seen_size;

	/* The blocks that are bad for ever. */
	wfsd_bits bad;
	atomic_bool io_logged; /* an I/O error was logged since the last open */
};

struct wfsd_tree;
/* root_st: of the store. NULL: out of memory. */
struct wfsd_tree *wfsd_tree_new(const struct stat *root_st);
void wfsd_tree_free(struct wfsd_tree *tree);

struct wfsd_node *wfsd_tree_root(struct wfsd_tree *tree);
/* The node of a kernel's node number. */
struct wfsd_node *wfsd_tree_node(struct wfsd_tree *tree, uint64_t nodeid);
uint64_t wfsd_tree_nodeid(struct wfsd_tree *tree, const struct wfsd_node *node);

/* The node of an entry of a directory, made if need be, with one more lookup. *new_ret (may be NULL): it was made.
 * NULL: out of memory. */
struct wfsd_node *wfsd_tree_enter(struct wfsd_tree *tree, struct wfsd_node *parent, const struct wfsd_entry *entry,
				  bool *new_ret);
/* The kernel gives back nlookup lookups. Returns whether it does not know the node any more; then the node may be gone
 * unless the caller holds it. */
bool wfsd_tree_forget(struct wfsd_tree *tree, struct wfsd_node *node, uint64_t nlookup);
void wfsd_tree_ref(struct wfsd_tree *tree, struct wfsd_node *node);
void wfsd_tree_unref(struct wfsd_tree *tree, struct wfsd_node *node);
uint64_t wfsd_tree_count(struct wfsd_tree *tree);

/* The node's path of stored names beneath the root, or NULL: out of memory, or renames in the store have left a
 * circle. To be freed. */
char *wfsd_tree_path(struct wfsd_tree *tree, const struct wfsd_node *node);

struct wfsd;
/* Open the node in the store: flags as openat's. -ESTALE: it is not there any more in this version (the kernel then
 * looks the name up again). *st_ret is the fstat. */
int wfsd_node_open(struct wfsd *d, struct wfsd_node *node, int flags, int *fd_ret, struct stat *st_ret);
/* The attributes of a node that is no container, as they are now. 0 or the errno. */
int wfsd_node_stat(struct wfsd *d, struct wfsd_node *node, struct stat *st_ret);
/* The inode number of the node's parent, as the mount shows it. */
uint64_t wfsd_node_parent_ino(struct wfsd_tree *tree, const struct wfsd_node *node);

#endif
