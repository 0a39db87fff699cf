/* null_tree.h - the files of a store as the null daemon shows them: read once when it starts, constant from then on. */
#ifndef NULL_TREE_H
#define NULL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct null_node {
	size_t parent;	/* index of its directory */
	char *name;	/* as shown */
	struct stat st; /* as shown */
	int fd;		/* of what is stored; -1 for a directory */
	uint64_t stored_len;
	unsigned char *head; /* the file's true first bytes, those of a safetensors header, or NULL */
	size_t head_len;
};

/* Node 0 is the root. The children of a directory follow each other in no special order. */
struct null_tree {
	struct null_node *node;
	size_t nr, room;
};

/* Opens every file below path; containers get their original's name, size and header. Of their blocks no others are
 * looked at, so that the page cache holds no more of them than before. False: a message was printed. */
bool null_tree_load(struct null_tree *tree, const char *path);

#endif
