/* temporary.h - which names in a store are temporaries of weightfs: the one rule, for its tools and for weightfsd.
 *
 * ".NAME.weightfs-XXXXXX.tmp", NAME of at least one character, six letters or digits of ASCII, and a regular file or a
 * symbolic link: nothing else is ever made under such a name. A directory, device, FIFO or socket that is called so is
 * somebody's, and is treated like any other. The tools do not take temporaries for files of a tree and remove those
 * that no live run holds; the daemon does not show them.
 */
#ifndef WFS_TEMPORARY_H
#define WFS_TEMPORARY_H

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define WFS_TEMPORARY_MARK  ".weightfs-"
#define WFS_TEMPORARY_END   ".tmp"
#define WFS_TEMPORARY_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
enum {
	WFS_TEMPORARY_NR_CHARS = 6,
	WFS_TEMPORARY_TAIL_LEN =
		sizeof(WFS_TEMPORARY_MARK) - 1 + WFS_TEMPORARY_NR_CHARS + sizeof(WFS_TEMPORARY_END) - 1,
};

/* By the name alone. */
static inline bool wfs_temporary_name(const char *name)
{
	const size_t mark_len = sizeof(WFS_TEMPORARY_MARK) - 1;
	size_t len = strlen(name);
	const char *tail = name + len;

	if (name[0] != '.' || len < WFS_TEMPORARY_TAIL_LEN + 2)
		return false;
	tail -= WFS_TEMPORARY_TAIL_LEN;
	return !strncmp(tail, WFS_TEMPORARY_MARK, mark_len) &&
	       strspn(tail + mark_len, WFS_TEMPORARY_CHARS) == WFS_TEMPORARY_NR_CHARS &&
	       !strcmp(tail + mark_len + WFS_TEMPORARY_NR_CHARS, WFS_TEMPORARY_END);
}

/* By the name and what lies there. */
static inline bool wfs_is_temporary(const char *name, mode_t mode)
{
	return (S_ISREG(mode) || S_ISLNK(mode)) && wfs_temporary_name(name);
}

#endif
