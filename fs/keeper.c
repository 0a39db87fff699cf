/* keeper.c - see keeper.h.
 *
 * Messages keep their borders (SOCK_SEQPACKET); the end of the daemon, however it comes, is the end of the stream. But
 * a thread that hangs in the store outlives SIGKILL, and keeps both the stream and the device of the mount open, so
 * that nobody answers and nobody knows. Of the end of the thread that has forked us, the daemon's first, the kernel
 * tells by a signal (prctl(2), PR_SET_PDEATHSIG).
 */
#include "keeper.h"
#include "confine.h"
#include "mount_end.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum {
	ANSWER_SECONDS = 10,
	KEEPER_FD = STDERR_FILENO + 1,
	DEATH_FD,
	PARENT_DIED = SIGUSR1,
	DYING_MS = 20,	  /* between the looks at a daemon that seems to die */
	DYING_LOOKS = 500 /* somebody else may have sent the signal */
};

struct request {
	enum { GUARD, FORGET, UNMOUNT, ABORT } what;
	struct wfsd_mount mount; /* GUARD */
};

/* ---- the keeper ------------------------------------------------------------------------------------------------ */

struct guard {
	struct wfsd_log log;
	pid_t daemon;
	bool hears_of_death; /* by DEATH_FD */
	bool armed;
	struct wfsd_mount mount;
};

/* 0 or -errno. */
static int take_away(struct guard *g, bool and_abort)
{
	int err = g->armed ? wfsd_mount_detach(&g->mount, and_abort) : -ENOENT;
	if (!err)
		g->armed = false;
	return err;
}

/* On the daemon's word that its mount lives: out of sight, or beneath another, it keeps its number while somebody uses
 * it, and the daemon itself may write there no more (Landlock). */
static int take_away_or_abort(struct guard *g)
{
	int err = take_away(g, true);
	if (err && g->armed)
		wfsd_mount_abort(g->mount.minor);
	return err;
}

/* Whether the daemon serves nothing any more, though threads of it may be left: its first thread is gone. */
static bool daemon_is_dead(const struct guard *g)
{
	char path[32], text[512];

	if (getppid() != g->daemon)
		return true;
	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)g->daemon);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false; /* nobody shows us */
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && strchr("ZX", name_end[2]);
}

/* Waits for a request or the daemon's end. Returns whether there is something to receive, be it the stream's end. */
static bool wait_for_request(const struct guard *g)
{
	struct pollfd fds[] = {{.fd = KEEPER_FD, .events = POLLIN},
			       {.fd = g->hears_of_death ? DEATH_FD : -1, .events = POLLIN}};
	int nr_looks = 0;

	for (;;) {
		if (poll(fds, 2, nr_looks ? DYING_MS : -1) < 0) {
			if (errno == EINTR)
				continue;
			return true;
		}
		if (fds[0].revents)
			return true;
		struct signalfd_siginfo sig;
		if (fds[1].revents && read(DEATH_FD, &sig, sizeof(sig)) == sizeof(sig))
			nr_looks = DYING_LOOKS;
		if (nr_looks && daemon_is_dead(g))
			return false;
		nr_looks -= nr_looks > 0;
	}
}

/* Answers the daemon until its end. Returns whether it has left threads behind. */
static bool serve_daemon(struct guard *g)
{
	struct request r;
	ssize_t n;

	while (wait_for_request(g)) {
		n = recv(KEEPER_FD, &r, sizeof(r), MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n != sizeof(r))
			return false;
		if (r.what == UNMOUNT || r.what == ABORT) {
			int err = r.what == ABORT ? take_away_or_abort(g) : take_away(g, false);
			if (send(KEEPER_FD, &err, sizeof(err), MSG_NOSIGNAL) != sizeof(err))
				return false; /* nobody is left who asks */
			continue;
		}
		g->armed = r.what == GUARD;
		g->mount = r.mount;
	}
	return true;
}

static void serve(struct guard *g)
{
	bool threads_left = serve_daemon(g);
	struct wfsd_mount now;

	if (!g->armed || !wfsd_mount_again(&g->mount, &now))
		return;
	/* Without a number of its own, that nobody serves it shows that it is the daemon's, not one of the same place.
	 */
	if (!now.unique_id && !threads_left && !wfsd_mount_is_dead(now.point))
		return;
	int err = take_away(g, threads_left);
	if (err)
		wfsd_log(&g->log, WFSD_ERROR, "%s: the daemon was killed, and its mount cannot be taken away: %s",
			 now.point, wfsd_mount_problem(err));
	else
		wfsd_log(&g->log, WFSD_ERROR, "%s: the daemon was killed; its mount was taken away", now.point);
}

/* Not handled: taken from DEATH_FD, which is the lowest free descriptor. Where there is none the stream's end tells. */
static void hear_of_death(struct guard *g)
{
	sigset_t death;

	sigemptyset(&death);
	sigaddset(&death, PARENT_DIED);
	sigprocmask(SIG_SETMASK, &death, NULL);
	g->hears_of_death =
		signalfd(-1, &death, SFD_CLOEXEC | SFD_NONBLOCK) == DEATH_FD && !prctl(PR_SET_PDEATHSIG, PARENT_DIED);
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
		atomic_store(&g->log.target, WFSD_TO_FILE);
	} else if (!foreground) {
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		openlog("weightfsd", LOG_PID, LOG_DAEMON);
		atomic_store(&g->log.target, WFSD_TO_SYSLOG);
	}
	/* As KEEPER_FD it is kept, and not given to fusermount3. */
	if (fd != KEEPER_FD)
		dup2(fd, KEEPER_FD);
	fcntl(KEEPER_FD, F_SETFD, FD_CLOEXEC);
	closefrom(KEEPER_FD + 1);
	hear_of_death(g);
}

static void keep(struct guard *g, int fd, int log_fd, bool foreground) __attribute__((noreturn));
static void keep(struct guard *g, int fd, int log_fd, bool foreground)
{
	/* A service manager that ends all processes of the service ends the daemon; the keeper goes when that is done.
	 */
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGPIPE, SIGXFSZ};
	const struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		sigaction(ignored[i], &ignore, NULL);
	sigaction(SIGCHLD, &standard, NULL); /* fusermount3 is waited for */
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

int wfsd_keeper_start(struct wfsd_keeper *k, const struct wfsd_log *log, int log_fd, bool foreground)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	const pid_t daemon = getpid();
	int ends[2], err = 0;

	*k = (struct wfsd_keeper){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	k->pid = fork();
	if (k->pid == 0) {
		struct guard g = {.log.max_level = log->max_level, .daemon = daemon};
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

void wfsd_keeper_guard(struct wfsd_keeper *k, const struct wfsd_mount *mount)
{
	tell(k, &(struct request){.what = GUARD, .mount = *mount});
}

void wfsd_keeper_forget(struct wfsd_keeper *k)
{
	tell(k, &(struct request){.what = FORGET});
}

int wfsd_keeper_unmount(struct wfsd_keeper *k, bool and_abort)
{
	int err = tell(k, &(struct request){.what = and_abort ? ABORT : UNMOUNT}), answer;

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
