/* tree.h - a directory tree as a list, and safe ways into it.
 *
 * Everything is reached from the root's descriptor one component at a time without following symbolic links, so
 * whoever may write in the tree cannot lead a program run by root out of it.
 */
#ifndef TREE_H
#define TREE_H

#include "util.h"

#include <sys/stat.h>

#define TREE_NONE SIZE_MAX
/* What lies in more directories than this is an error of the walk (ENAMETOOLONG), for all tools alike. */
enum { TREE_MAX_DEPTH = 2048 };

struct tree_entry {
	char *path; /* relative to the root; "" is the root itself */
	struct stat st;
	char *link_target; /* of a symbolic link */
	size_t parent;	   /* entry of the directory it lies in; TREE_NONE for the root */
	size_t first_link; /* regular file: first entry of the same inode (itself, mostly) */
	size_t next_link;  /* the next one, or TREE_NONE */
};

struct tree {
	struct tree_entry *entry; /* directories before what they hold; names of one directory in byte order */
	size_t nr;
};

/* Called for what could not be read: the walk goes on without it. */
typedef void (*tree_error_fn)(void *ctx, const char *path, int sys_errno);

/* List everything beneath root_fd (the entry 0). Temporaries (temporary.h) are left out. */
void tree_walk(int root_fd, struct tree *tree_ret, tree_error_fn error, void *ctx);
/* The same with them. */
void tree_walk_all(int root_fd, struct tree *tree_ret, tree_error_fn error, void *ctx);
bool tree_entry_is_temporary(const struct tree_entry *e);
/* A tree of one regular file called name. Returns 0 or an errno. */
int tree_single(int root_fd, const char *name, struct tree *tree_ret) MUST_CHECK;
void tree_free(struct tree *tree);

/* Open the directory that a path (relative to root_fd) lies in; *name_ret points to the last component. The path of the
 * root itself has neither. Returns a descriptor, or -1 with errno. */
int tree_open_parent(int root_fd, const char *path, const char **name_ret) MUST_CHECK;
/* Open the directory itself. */
int tree_open_dir(int root_fd, const char *path) MUST_CHECK;
/* Open a regular file for reading, without blocking on anything else that may have taken its place. */
int tree_open_file(int dir_fd, const char *name) MUST_CHECK;
/* Both: the regular file at a path, and the directory that it lies in. Returns the file's descriptor, and the caller
 * closes both; or -1 with errno, and *dir_fd_ret is -1. */
int tree_open_path(int root_fd, const char *path, int *dir_fd_ret, const char **name_ret) MUST_CHECK;

#endif
