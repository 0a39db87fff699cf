/* verify_list.h - which containers a verify is about: those named, those of trees, and those behind mounts. */
#ifndef VERIFY_LIST_H
#define VERIFY_LIST_H

#include "util.h"

#include <sys/stat.h>

struct item {
	int root_fd;
	char *path;  /* beneath root_fd */
	char *shown; /* for people */
	struct stat st;
	bool named; /* on the command line: must be a container */
};

struct item_list {
	struct item *item;
	size_t nr;
	int *root; /* descriptors that the items need */
	size_t nr_roots;
	/* Called with what cannot be looked at, and with what the user may want to know. */
	void (*fail)(void *ctx, const char *shown, const char *reason);
	void (*tell)(void *ctx, const char *shown, const char *what);
	void *ctx;
};

/* fail, tell and ctx are set. A file that is met twice is in the list once, unless it was named twice, or has
 * names that are different SHA-256. */
void item_list_add(struct item_list *list, int nr_paths, char **paths);
void item_list_free(struct item_list *list);

#endif
