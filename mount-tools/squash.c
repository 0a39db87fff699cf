/* squash.c - see squash.h. Servers mostly take root for nobody (root_squash); the client cannot ask whether they do. */
#include "squash.h"
#include "util.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *hint(const struct statfs *fs, int sys_errno)
{
	if (fs->f_type != NFS_SUPER_MAGIC || (sys_errno != EACCES && sys_errno != EPERM) || geteuid())
		return "";
	return " (the NFS server may take root for nobody: run this as the owner of the files)";
}

const char *squash_hint(int fd, int sys_errno)
{
	struct statfs fs;
	return fd >= 0 && !fstatfs(fd, &fs) ? hint(&fs, sys_errno) : "";
}

const char *squash_hint_at(const char *path, int sys_errno)
{
	struct statfs fs;
	char *dir = path_dirname(path);
	bool known = !statfs(path, &fs) || !statfs(dir, &fs);
	free(dir);
	return known ? hint(&fs, sys_errno) : "";
}
