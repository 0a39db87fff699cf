/* keeper.c - see keeper.h.
 *
 * Messages keep their borders (SOCK_SEQPACKET); the end of the daemon, however it comes, is the end of the stream. That
 * the mount which is found then is the daemon's, and not one that was made in its place and got the same device number,
 * shows in that nobody serves it any more.
 */
#include "keeper.h"
#include "confine.h"
#include "mount_check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum { ANSWER_SECONDS = 10, KEEPER_FD = STDERR_FILENO + 1 };

struct request {
	enum { GUARD, FORGET, UNMOUNT } what;
	unsigned major, minor; /* of the mount: GUARD */
};

/* ---- the keeper ------------------------------------------------------------------------------------------------ */

struct guard {
	struct wfsd_log log;
	const char *point;
	bool armed;
	unsigned major, minor;
};

static bool is_there(const struct guard *g)
{
	struct wfsd_mount now;
	return g->armed && wfsd_mount_at(g->point, &now) && now.weightfs && now.major == g->major &&
	       now.minor == g->minor;
}

/* 0 or -errno. */
static int take_away(struct guard *g)
{
	int err = is_there(g) ? wfsd_mount_detach(g->point) : -ENOENT;
	if (!err)
		g->armed = false;
	return err;
}

static void serve(struct guard *g)
{
	struct request r;
	ssize_t n;

	while ((n = recv(KEEPER_FD, &r, sizeof(r), 0)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(r))
			break;
		if (r.what == UNMOUNT) {
			int err = take_away(g);
			if (send(KEEPER_FD, &err, sizeof(err), MSG_NOSIGNAL) != sizeof(err))
				break; /* nobody is left who asks */
			continue;
		}
		g->armed = r.what == GUARD;
		g->major = r.major;
		g->minor = r.minor;
	}
	if (!is_there(g) || !wfsd_mount_is_dead(g->point))
		return;
	int err = take_away(g);
	if (err)
		wfsd_log(&g->log, WFSD_ERROR, "%s: the daemon was killed, and its mount cannot be taken away: %s",
			 g->point, strerror(-err));
	else
		wfsd_log(&g->log, WFSD_ERROR, "%s: the daemon was killed; its mount was taken away", g->point);
}

/* Whoever started us shall not wait for the keeper, and nothing be in use for it. */
static void let_go(struct guard *g, int fd, int log_fd, bool foreground)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (chdir("/"))
		wfsd_log(&g->log, WFSD_WARNING, "cannot change to /: %s", strerror(errno));
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (log_fd >= 0) {
		dup2(log_fd, STDERR_FILENO);
	} else if (!foreground) {
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		openlog("weightfsd", LOG_PID, LOG_DAEMON);
		atomic_store(&g->log.to_syslog, true);
	}
	/* As KEEPER_FD it is kept, and not given to fusermount3. */
	if (fd != KEEPER_FD)
		dup2(fd, KEEPER_FD);
	fcntl(KEEPER_FD, F_SETFD, FD_CLOEXEC);
	closefrom(KEEPER_FD + 1);
}

static void keep(struct guard *g, int fd, int log_fd, bool foreground) __attribute__((noreturn));
static void keep(struct guard *g, int fd, int log_fd, bool foreground)
{
	/* A service manager that ends all processes of the service ends the daemon; the keeper goes when that is done.
	 */
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
	const struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		sigaction(ignored[i], &ignore, NULL);
	sigaction(SIGCHLD, &standard, NULL); /* fusermount3 is waited for */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "weightfs-keeper");
	let_go(g, fd, log_fd, foreground);
	int err = wfsd_capabilities_keep(UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_DAC_READ_SEARCH |
					 UINT64_C(1) << CAP_DAC_OVERRIDE);
	if (err)
		wfsd_log(&g->log, WFSD_WARNING, "cannot drop capabilities: %s", strerror(err));
	serve(g);
	_exit(0);
}

/* ---- the daemon's side ------------------------------------------------------------------------------------------ */

int wfsd_keeper_start(struct wfsd_keeper *k, const struct wfsd_log *log, int log_fd, bool foreground, const char *point)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	int ends[2], err = 0;

	*k = (struct wfsd_keeper){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	k->pid = fork();
	if (k->pid == 0) {
		struct guard g = {.log.max_level = log->max_level, .point = point};
		close(ends[0]);
		keep(&g, ends[1], log_fd, foreground);
	}
	if (k->pid < 0) {
		err = errno;
		k->pid = 0;
		close(ends[0]);
	} else {
		k->fd = ends[0];
		setsockopt(k->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(k->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	}
	close(ends[1]);
	return err;
}

/* 0 or -errno. */
static int tell(struct wfsd_keeper *k, const struct request *r)
{
	if (!k->pid)
		return -ESRCH;
	return send(k->fd, r, sizeof(*r), MSG_NOSIGNAL) == sizeof(*r) ? 0 : -errno;
}

void wfsd_keeper_guard(struct wfsd_keeper *k, unsigned major, unsigned minor)
{
	tell(k, &(struct request){.what = GUARD, .major = major, .minor = minor});
}

void wfsd_keeper_forget(struct wfsd_keeper *k)
{
	tell(k, &(struct request){.what = FORGET});
}

int wfsd_keeper_unmount(struct wfsd_keeper *k)
{
	int err = tell(k, &(struct request){.what = UNMOUNT}), answer;

	if (err)
		return err;
	ssize_t n = recv(k->fd, &answer, sizeof(answer), 0);
	return n == sizeof(answer) ? answer : n < 0 ? -errno : -ESRCH;
}

void wfsd_keeper_end(struct wfsd_keeper *k)
{
	struct pollfd fd = {.fd = k->fd};

	if (!k->pid)
		return;
	shutdown(k->fd, SHUT_WR);
	/* Its end closes its side. One that is stopped is left to init. */
	bool ended = poll(&fd, 1, ANSWER_SECONDS * 1000) == 1;
	waitpid(k->pid, NULL, ended ? 0 : WNOHANG);
	close(k->fd);
	k->pid = 0;
}
