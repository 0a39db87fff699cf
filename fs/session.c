/* session.c - see session.h. */
#include "session.h"
#include "confine.h"
#include "fs.h"
#include "mount_end.h"
#include "ops.h"
#include "stats_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the mount lives, though perhaps out of sight: the kernel lets go of the device at its end. From then on path
 * and minor number may be somebody else's. */
static bool is_alive(const struct wfsd_session *s)
{
	struct pollfd device = {.fd = fuse_session_fd(s->fuse), .events = POLLIN};
	/* -1 after wfsd_session_unmount */
	return device.fd >= 0 && poll(&device, 1, 0) >= 0 && !(device.revents & (POLLERR | POLLNVAL));
}

/* 0 or -errno, of which -ENOENT is no failure: somebody has done it, perhaps lazily. */
static int detach(struct wfsd_session *s, bool and_abort)
{
	if (!is_alive(s)) {
		wfsd_keeper_forget(&s->keeper);
		return -ENOENT;
	}
	int err = wfsd_keeper_unmount(&s->keeper, and_abort);
	if (err && err != -ENOENT)
		wfsd_log(&s->d->log, WFSD_ERROR, "%s: cannot be unmounted: %s", s->d->mount_path,
			 wfsd_mount_problem(err));
	return err;
}

void wfsd_session_unmount(struct wfsd_session *s)
{
	detach(s, false);
	/* libfuse closes the device and unmounts the path, whatever lies there by now, unless poll finds an error.
	 * Where the limit of descriptors was lowered that cannot be had, and the device is closed with the session. */
	if (dup3(s->broken_pipe, fuse_session_fd(s->fuse), O_CLOEXEC) >= 0)
		fuse_session_unmount(s->fuse);
}

void wfsd_session_abort(struct wfsd_session *s)
{
	/* Our threads may hold the device until the store lets them go: free those who wait for us now. Where somebody
	 * has killed the keeper, and there is no Landlock, we can do so ourselves. */
	if (detach(s, true) && is_alive(s))
		wfsd_mount_abort(s->mount.minor);
}

/* The kernel asks INIT first, and it asks at once. What it grants depends on the rights of whoever answers. */
static bool answer_init(struct wfsd_session *s)
{
	struct fuse_buf buf = {.mem = NULL};
	int n;

	do
		n = fuse_session_receive_buf(s->fuse, &buf);
	while (n == -EINTR);
	if (n > 0)
		fuse_session_process_buf(s->fuse, &buf);
	free(buf.mem);
	return n > 0;
}

static bool mount_session(struct wfsd_session *s)
{
	struct wfsd *d = s->d;

	if (fuse_session_mount(s->fuse, d->mount_path)) {
		wfsd_log(&d->log, WFSD_ERROR, "cannot mount at %s", d->mount_path);
		return false;
	}
	if (!wfsd_mount_at(d->mount_path, &s->mount) || !s->mount.weightfs || !answer_init(s)) {
		wfsd_log(&d->log, WFSD_ERROR, "%s: the mount does not answer", d->mount_path);
		fuse_session_unmount(s->fuse);
		return false;
	}
	s->mount.unique_id = wfsd_mount_unique_id(d->mount_path);
	wfsd_keeper_guard(&s->keeper, &s->mount);
	d->major = s->mount.major;
	d->minor = s->mount.minor;
	wfsd_tune(d);
	d->stats_server = wfsd_stats_server_new(d);
	char *socket_dir = wfsd_stats_server_dir(d->stats_server);
	wfsd_confine(&d->log, socket_dir);
	free(socket_dir);
	return true;
}

/* An end of a pipe that has no other, or -1. */
static int break_pipe(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	close(ends[0]);
	return ends[1];
}

bool wfsd_session_open(struct wfsd_session *s, struct wfsd *d, int log_fd)
{
	char name[] = "weightfsd", flag[] = "-o", *argv[] = {name, flag, d->opts->mount_opts, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	int err;

	*s = (struct wfsd_session){.d = d, .broken_pipe = break_pipe()};
	err = s->broken_pipe < 0 ? errno : wfsd_keeper_start(&s->keeper, &d->log, log_fd, d->opts->foreground);
	if (err) {
		wfsd_log(&d->log, WFSD_ERROR, "cannot start the process that unmounts: %s", strerror(err));
		return false;
	}
	s->fuse = fuse_session_new(&args, &wfsd_ops, sizeof(wfsd_ops), d);
	fuse_opt_free_args(&args);
	return s->fuse && mount_session(s);
}

void wfsd_session_close(struct wfsd_session *s)
{
	if (s->fuse)
		fuse_session_destroy(s->fuse);
	wfsd_keeper_end(&s->keeper);
	if (s->broken_pipe >= 0)
		close(s->broken_pipe);
}
