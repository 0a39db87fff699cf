/* store_behind.c - see store_behind.h. A store is mostly mounted over itself: no path leads to it then, but its daemon
 * holds it open, and /proc shows that to root. */
#include "store_behind.h"
#include "commands.h"
#include "json_in.h"
#include "mounted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open the directory that the process holds open under this path. */
static int open_held(long pid, const char *path)
{
	char *fds = xasprintf("/proc/%ld/fd", pid), link[PATH_MAX];
	DIR *dir = opendir(fds);
	const struct dirent *d;
	int fd = -1;
	/* cppcheck-suppress readdirCalled ; no other thread has this stream */
	while (dir && fd < 0 && (d = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		if (len <= 0)
			continue;
		link[len] = '\0';
		if (!strcmp(link, path))
			fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && in_weightfs_mount(fd)) {
			close(fd);
			fd = -1;
		}
	}
	if (dir)
		closedir(dir);
	free(fds);
	return fd;
}

static int open_store(long pid, const char *path)
{
	int fd = pid > 0 ? open_held(pid, path) : -1;
	if (fd >= 0)
		return fd;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && in_weightfs_mount(fd)) {
		close(fd);
		fd = -1;
		errno = EACCES;
	}
	return fd;
}

/* Ask the daemon what it shows and who it is. */
static char *ask_daemon(const char *point, char **store_ret, long *pid_ret)
{
	const char *argv[] = {NULL, "--stats", "--json", "--", point, NULL};
	char *text, *said, *why = NULL;
	int status = run_daemon(argv, &text, &said);
	if (status || !json_valid(text)) {
		said[strcspn(said, "\n")] = '\0';
		why = xasprintf("a weightfs is mounted there, and its daemon does not tell its store: unmount it (%s)",
				said);
	} else {
		*store_ret = json_text(json_member(text, "store"));
		*pid_ret = (long)json_number_or(json_member(text, "pid"), 0);
	}
	free(text);
	free(said);
	return why;
}

char *store_behind_find(const char *path, struct store_behind *behind_ret)
{
	struct store_behind *b = behind_ret;
	struct mounted mount = {0};
	char *real = realpath(path, NULL), *why = NULL;
	size_t len;
	long pid = 0;
	*b = (struct store_behind){.fd = -1};
	if (!real || mounted_find(real, true, &mount) || !mounted_is_weightfs(&mount)) {
		why = xasprintf("a weightfs is mounted there, and cannot be found: unmount it first");
		goto out;
	}
	why = ask_daemon(mount.point, &b->store, &pid);
	if (why)
		goto out;
	b->fd = open_store(pid, b->store);
	if (b->fd < 0) {
		why = xasprintf("its store %s is covered by the mount: do this as root, or unmount it first", b->store);
		store_behind_free(b);
		goto out;
	}
	len = strlen(mount.point);
	b->rest = xstrdup(len == 1 ? real + 1 : real + len + (real[len] == '/'));
out:
	mounted_free(&mount);
	free(real);
	return why;
}

void store_behind_free(struct store_behind *behind)
{
	if (behind->fd >= 0)
		close(behind->fd);
	free(behind->store);
	free(behind->rest);
	*behind = (struct store_behind){.fd = -1};
}
