/* mounted.h - what is mounted where, as /proc/self/mountinfo tells it. */
#ifndef MOUNTED_H
#define MOUNTED_H

#include <stdbool.h>

/* Whether fd is open in a weightfs mount: there are the originals, read-only, and no containers. false when in doubt.
 */
bool in_weightfs_mount(int fd);
/* What to say of such a path. */
extern const char in_weightfs_mount_reason[];

struct mounted {
	char *point; /* absolute and resolved */
	char *type;  /* NULL: nothing is mounted there */
	unsigned major_nr, minor_nr;
};

/* The uppermost mount at exactly this path; within: failing that, the one that holds the path. The mount itself is not
 * asked: a dead one answers ENOTCONN and one that hangs nothing. Returns 0, or an errno when there is no such path. */
int mounted_find(const char *path, bool within, struct mounted *mounted_ret);
void mounted_free(struct mounted *mounted);
/* Whether the absolute path is the mount point or beneath it. */
bool mounted_covers(const struct mounted *mounted, const char *path);
bool mounted_is_weightfs(const struct mounted *mounted);

/* Asks the mount, for some seconds at most. 0, or why not: ENOTCONN when its daemon is gone, ETIMEDOUT. */
int mounted_ask(const struct mounted *mounted);

#endif
