/* store_behind.h - the way from a weightfs mount to the store that it shows. */
#ifndef STORE_BEHIND_H
#define STORE_BEHIND_H

#include <stdbool.h>

struct store_behind {
	int fd;	     /* the store's directory, also when the mount covers it */
	char *store; /* its path, as the daemon knows it */
	char *rest;  /* of the path asked for, beneath it; "" is the store itself */
};

/* path leads into a weightfs mount. Returns NULL, or why the store cannot be reached: the caller frees that, and the
 * result of success with store_behind_free. */
char *store_behind_find(const char *path, struct store_behind *behind_ret);
void store_behind_free(struct store_behind *behind);

#endif
