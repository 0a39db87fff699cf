/* mount_end.c - see mount_end.h.
 *
 * Between a look at a path and umount(2) of it somebody may mount there, or swap a parent for a link. So the mount's
 * root is opened, what was opened is compared, and that is unmounted. The descriptor keeps the mount busy, but not
 * against a lazy unmount, and is open for no longer.
 */
#include "mount_end.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* <linux/stat.h> of Linux 6.8. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif

extern char **environ;

static int open_point(const char *point)
{
	return open(point, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static uint64_t unique_id_of(int fd)
{
	struct statx st;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID_UNIQUE, &st) ||
	    !(st.stx_mask & STATX_MNT_ID_UNIQUE))
		return 0;
	return st.stx_mnt_id;
}

uint64_t wfsd_mount_unique_id(const char *point)
{
	int fd = open_point(point);
	if (fd < 0)
		return 0;
	uint64_t id = unique_id_of(fd);
	close(fd);
	return id;
}

static bool is_same(const struct wfsd_mount *a, const struct wfsd_mount *b)
{
	return a->weightfs && b->weightfs && a->id == b->id && a->major == b->major && a->minor == b->minor;
}

/* An open root of m, the mount that lies at m->point by now, or -errno. */
static int open_root(const struct wfsd_mount *m)
{
	struct wfsd_mount opened;
	int fd = open_point(m->point);

	if (fd < 0)
		return -errno;
	if (!wfsd_mount_of_fd(fd, &opened) || !is_same(m, &opened)) {
		close(fd);
		return -EBUSY;
	}
	if (m->unique_id && unique_id_of(fd) != m->unique_id) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

bool wfsd_mount_again(const struct wfsd_mount *m, struct wfsd_mount *now_ret)
{
	if (!wfsd_mount_of_id(m->id, now_ret) || !is_same(m, now_ret))
		return false;
	now_ret->unique_id = m->unique_id;
	return true;
}

void wfsd_mount_abort(unsigned minor)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", minor);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = write(fd, "1", 1);
		(void)n;
		close(fd);
	}
}

/* It takes paths only, and of mounts only those of its user. */
static int run_fusermount(const char *point)
{
	const char *argv[] = {"fusermount3", "-u", "-z", "-q", "--", point, NULL};
	pid_t pid;
	int status;

	int err = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);
	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

int wfsd_mount_detach(const struct wfsd_mount *m, bool and_abort)
{
	struct wfsd_mount now;
	char opened[32];

	if (!wfsd_mount_again(m, &now))
		return -ENOENT;
	int fd = open_root(&now);
	if (fd < 0)
		return fd;
	snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	/* MNT_FORCE is what aborts the connection of a FUSE file system. */
	int err = umount2(opened, and_abort ? MNT_DETACH | MNT_FORCE : MNT_DETACH) ? -errno : 0;
	if (err == -EPERM) {
		if (and_abort)
			wfsd_mount_abort(now.minor);
		err = run_fusermount(now.point);
	}
	close(fd);
	return err;
}

const char *wfsd_mount_problem(int err)
{
	return err == -EBUSY ? "another mount lies over it; unmount that, then run weightfs umount" : strerror(-err);
}
