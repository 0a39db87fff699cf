/* lifecycle.c - see lifecycle.h.
 *
 *   parent                child (in the foreground: the only one)    keeper
 *   checks, opens the store
 *   fork  -------------->  fork ----------------------------------->  waits for orders, or for our end
 *   waits                  mount, answer INIT, tune, make the statistics socket: what takes rights
 *                          give up all rights, start threads; the loop runs in its own thread
 *                          stat of the mount point returns: the kernel is answered
 *      <-- ready pipe ---  statistics are answered, let go of the terminal, READY=1
 *   exits 0                the main thread waits for signals
 *
 * SIGTERM and SIGINT: no new requests, those at work are finished, then the mount is taken away lazily, also with files
 * open. A request that hangs in the store cannot hold this up for longer than EXIT_SECONDS, and neither can it when
 * somebody else has unmounted: the watchdog tells the main thread (reply.h).
 *
 * All signals are blocked in all threads, except KICK in the loop's, whose handler does nothing: fuse_session_loop_mt
 * waits on a semaphore and looks at its exit flag only when a signal interrupts that.
 */
#include "lifecycle.h"
#include "ahead.h"
#include "fetch.h"
#include "file.h"
#include "fs.h"
#include "mount_check.h"
#include "notify.h"
#include "read.h"
#include "reply.h"
#include "session.h"
#include "signed.h"
#include "stats_socket.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum { EXIT_SECONDS = 10, KICK = SIGUSR2, ENDED = WFSD_SIGNAL_ENDED };
/* Threads that decode ahead, beyond one a processor: so many reads of the store may wait for the disk. */
enum { AHEAD_EXTRA_THREADS = 3 };

struct serving {
	struct wfsd *d;
	struct wfsd_session session;
	pthread_t loop;
	atomic_bool loop_ended; /* then ENDED comes; without it that signal is somebody else's */
	int loop_ret;
	int log_fd;   /* of log=FILE; -1: none */
	int ready_fd; /* the parent waits for a byte; -1: none */
};

/* ---- before the fork ------------------------------------------------------------------------------------------- */

static bool resolve_paths(struct wfsd *d)
{
	char path[PATH_MAX];
	struct wfsd_mount mount;
	int err = wfsd_mount_resolve(d->opts->mountpoint, path);

	if (err) {
		wfsd_log(&d->log, WFSD_ERROR, "mount point %s: %s", d->opts->mountpoint, strerror(-err));
		return false;
	}
	d->mount_path = strdup(path);
	/* First: a dead mount may cover the store. */
	if (!d->mount_path || !wfsd_mount_prepare(&d->log, d->mount_path))
		return false;
	d->store_path = realpath(d->opts->store, NULL);
	if (d->store_path)
		d->root_fd = open(d->store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->root_fd >= 0 && wfsd_mount_of_fd(d->root_fd, &mount))
		snprintf(d->store_fs, sizeof(d->store_fs), "%s", mount.fstype);
	if (!d->store_path || d->root_fd < 0) {
		wfsd_log(&d->log, WFSD_ERROR, "store %s: %s", d->opts->store, strerror(errno));
		return false;
	}
	d->openat2 = wfsd_store_has_openat2(d->root_fd);
	return wfsd_store_allowed(&d->log, d->store_path, d->root_fd, d->mount_path);
}

/* Files of the store are open as long as loaders have them open: take what the system allows. */
static void raise_file_limit(void)
{
	struct rlimit limit;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void *cancel_self(void *arg)
{
	pthread_cancel(pthread_self());
	return arg;
}

/* libfuse ends its threads with pthread_cancel. The first call makes glibc load a library, and abort when it cannot:
 * now, not at the end, when every descriptor may be in use. */
static void prepare_cancel(void)
{
	pthread_t thread;
	if (!pthread_create(&thread, NULL, cancel_self, NULL))
		pthread_join(thread, NULL);
}

static void on_kick(int sig)
{
	(void)sig;
}

static void prepare_signals(sigset_t *wait_ret)
{
	const struct sigaction kick = {.sa_handler = on_kick}; /* no SA_RESTART: it must interrupt */
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t block;

	sigaction(KICK, &kick, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL); /* the log has reached a limit: no reason to end */
	sigemptyset(wait_ret);
	sigaddset(wait_ret, SIGTERM);
	sigaddset(wait_ret, SIGINT);
	sigaddset(wait_ret, ENDED);
	block = *wait_ret;
	sigaddset(&block, KICK);
	pthread_sigmask(SIG_BLOCK, &block, NULL);
}

/* ---- serving --------------------------------------------------------------------------------------------------- */

static bool state_new(struct wfsd *d)
{
	const struct wfsd_opts *o = d->opts;
	struct stat st;

	d->crowd.limit_bytes = (uint64_t)WFSD_CROWD_BYTES * o->nr_threads;
	if (fstat(d->root_fd, &st))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &d->started);
	d->cpu = o->cpu == WFS_CPU_AUTO ? wfs_cpu_best() : o->cpu;
	d->tree = wfsd_tree_new(&st);
	d->files = wfsd_files_new(d);
	d->heads = wfsd_heads_new();
	d->cache = wfsd_cache_new(o->cache_bytes);
	d->requests = wfsd_requests_new(d, o->io_timeout);
	d->fetch = wfsd_fetch_new(o->nr_threads);
	d->ahead = wfsd_ahead_new(d, o->nr_threads + AHEAD_EXTRA_THREADS);
	return d->tree && d->files && d->heads && d->cache && d->requests && d->fetch && d->ahead;
}

static void state_free(struct wfsd *d)
{
	wfsd_ahead_free(d, d->ahead);
	wfsd_fetch_free(d->fetch);
	wfsd_requests_free(d->requests);
	wfsd_files_free(d, d->files);
	wfsd_cache_free(d->cache);
	wfsd_heads_free(d->heads);
	wfsd_tree_free(d->tree);
}

/* A descriptor of /dev/fuse for each thread keeps many of them out of each other's way, where there is one for each.
 * (With two processors nothing was faster for it, and nothing slower.) */
static bool descriptors_abound(void)
{
	struct rlimit limit;
	return !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur >= (rlim_t)4 * WFSD_MAX_THREADS;
}

static void *loop(void *arg)
{
	struct serving *s = arg;
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	sigset_t kick;

	sigemptyset(&kick);
	sigaddset(&kick, KICK);
	s->loop_ret = -ENOMEM;
	if (config) {
		fuse_loop_cfg_set_clone_fd(config, descriptors_abound());
		fuse_loop_cfg_set_max_threads(config, WFSD_MAX_THREADS);
		pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
		s->loop_ret = fuse_session_loop_mt(s->session.fuse, config);
		pthread_sigmask(SIG_BLOCK, &kick, NULL);
		fuse_loop_cfg_destroy(config);
	}
	wfsd_session_unmount(&s->session);
	atomic_store(&s->loop_ended, true);
	pthread_kill(s->d->main, ENDED);
	return NULL;
}

/* The terminal is no longer ours. */
static void let_go(struct serving *s)
{
	struct wfsd *d = s->d;

	if (s->log_fd >= 0) {
		dup2(s->log_fd, STDERR_FILENO);
		atomic_store(&d->log.target, WFSD_TO_FILE);
	}
	if (d->opts->foreground)
		return;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		if (s->log_fd < 0)
			dup2(null, STDERR_FILENO);
		close(null);
	}
	if (s->log_fd < 0) {
		openlog("weightfsd", LOG_PID, LOG_DAEMON);
		atomic_store(&d->log.target, WFSD_TO_SYSLOG);
	}
}

/* Returns when the kernel gets answers from us: then the mount serves. */
static bool become_ready(struct serving *s)
{
	struct wfsd *d = s->d;
	char lines[64];
	struct stat st;

	if (stat(d->mount_path, &st)) {
		wfsd_log(&d->log, WFSD_ERROR, "%s: the mount does not answer", d->mount_path);
		return false;
	}
	wfsd_stats_server_start(d->stats_server);
	let_go(s);
	wfsd_log(&d->log, WFSD_INFO, "%s: serving %s, decoder %s, %u thread%s", d->mount_path, d->store_path,
		 wfs_cpu_name(d->cpu), d->opts->nr_threads, d->opts->nr_threads > 1 ? "s" : "");
	if (d->signed_store)
		wfsd_log(&d->log, WFSD_INFO, "%s: only what is signed is shown, manifest %s", d->mount_path,
			 wfsd_signed_sha256(d->signed_store));
	if (s->ready_fd >= 0) {
		ssize_t n = write(s->ready_fd, "r", 1);
		(void)n; /* the parent was killed: we serve all the same */
		close(s->ready_fd);
		s->ready_fd = -1;
	}
	snprintf(lines, sizeof(lines), "READY=1\nMAINPID=%ld", (long)getpid());
	wfsd_notify(lines);
	return true;
}

/* A request hangs in the store, and with it a thread that cannot be waited for. */
static void exit_now(struct serving *s) __attribute__((noreturn));
static void exit_now(struct serving *s)
{
	wfsd_log(&s->d->log, WFSD_WARNING, "%s: a request hangs in the store; leaving without it", s->d->mount_path);
	wfsd_session_abort(&s->session);
	wfsd_stats_server_unlink(s->d->stats_server);
	wfsd_keeper_end(&s->session.keeper);
	_exit(0);
}

/* Ends the loop and waits for that. */
static void end_loop(struct serving *s)
{
	const struct timespec patience = {.tv_nsec = 20 * 1000 * 1000};
	struct timespec start, now;
	sigset_t ended;

	sigemptyset(&ended);
	sigaddset(&ended, ENDED);
	fuse_session_exit(s->session.fuse);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		/* Again and again: one that comes just before the loop waits is lost. */
		pthread_kill(s->loop, KICK);
		if (sigtimedwait(&ended, NULL, &patience) == ENDED && atomic_load(&s->loop_ended))
			return;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < EXIT_SECONDS);
	exit_now(s);
}

/* Returns the signal that ends the serving. */
static int wait_for_end(struct serving *s, const sigset_t *wait)
{
	int sig;
	/* ENDED from a stranger means nothing. */
	while (sigwait(wait, &sig) ||
	       (sig == ENDED && !atomic_load(&s->loop_ended) && !fuse_session_exited(s->session.fuse)))
		;
	return sig;
}

/* From the mounted session to the unmounted one. */
static int serve(struct serving *s, const sigset_t *wait)
{
	struct wfsd *d = s->d;
	bool ready;
	int ret;

	ret = state_new(d) ? pthread_create(&s->loop, NULL, loop, s) : ENOMEM;
	if (ret) {
		wfsd_log(&d->log, WFSD_ERROR, "not enough memory or threads: %s", strerror(ret));
		wfsd_session_unmount(&s->session);
		return 1;
	}
	ready = become_ready(s);
	if (ready) {
		int sig = wait_for_end(s, wait);
		wfsd_log(&d->log, WFSD_INFO, "%s: %s", d->mount_path, sig == ENDED ? "unmounted" : "stopping");
		wfsd_notify("STOPPING=1");
	}
	if (!atomic_load(&s->loop_ended))
		end_loop(s);
	pthread_join(s->loop, NULL);
	if (!wfsd_ahead_stop(d, d->ahead, EXIT_SECONDS))
		exit_now(s);
	return ready && s->loop_ret == 0 ? 0 : 1;
}

static int mount_and_serve(struct serving *s)
{
	struct wfsd *d = s->d;
	sigset_t wait;
	int ret = 1;

	raise_file_limit();
	prepare_signals(&wait);
	prepare_cancel();
	wfsd_log_take_fuse(&d->log);
	d->main = pthread_self();
	bool mounted = wfsd_session_open(&s->session, d, s->log_fd);
	d->session = s->session.fuse;
	if (mounted)
		ret = serve(s, &wait);
	wfsd_stats_server_free(d->stats_server);
	state_free(d);
	wfsd_session_close(&s->session);
	return ret;
}

/* ---- the two processes ----------------------------------------------------------------------------------------- */

/* Returns when the child is ready or has failed: the exit status. */
static int wait_until_ready(pid_t child, int ready_fd)
{
	char byte;
	ssize_t n;
	int status;

	do
		n = read(ready_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return 0;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
}

static int start(struct serving *s)
{
	int ready[2];

	if (s->d->opts->foreground)
		return mount_and_serve(s);
	if (pipe2(ready, O_CLOEXEC)) {
		wfsd_log(&s->d->log, WFSD_ERROR, "cannot make a pipe: %s", strerror(errno));
		return 1;
	}
	pid_t child = fork();
	if (child < 0) {
		wfsd_log(&s->d->log, WFSD_ERROR, "cannot fork: %s", strerror(errno));
		return 1;
	}
	if (child) {
		close(ready[1]);
		int ret = wait_until_ready(child, ready[0]);
		close(ready[0]);
		return ret;
	}
	close(ready[0]);
	s->ready_fd = ready[1];
	setsid();
	if (chdir("/"))
		wfsd_log(&s->d->log, WFSD_WARNING, "cannot change to /: %s", strerror(errno));
	return mount_and_serve(s);
}

int wfsd_mount(const struct wfsd_opts *opts)
{
	struct wfsd *d = calloc(1, sizeof(*d));
	struct serving s = {.d = d, .log_fd = -1, .ready_fd = -1};
	int ret = 1;

	if (!d)
		return 1;
	/* A daemon must not keep what its starter had open: a lock, the end of a pipe. */
	if (!opts->foreground)
		closefrom(STDERR_FILENO + 1);
	d->opts = opts;
	d->root_fd = -1;
	sem_init(&d->reads, 0, wfsd_read_limit(opts->cache_bytes)); /* fails for huge numbers only */
	d->log.max_level = opts->log_level;
	if (!resolve_paths(d))
		goto out;
	if (opts->pubkey && !(d->signed_store = wfsd_signed_new(d)))
		goto out;
	if (opts->log_file) {
		s.log_fd = open(opts->log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
		if (s.log_fd < 0) {
			wfsd_log(&d->log, WFSD_ERROR, "log %s: %s", opts->log_file, strerror(errno));
			goto out;
		}
	}
	ret = start(&s);
out:
	if (s.log_fd >= 0)
		close(s.log_fd);
	if (d->root_fd >= 0)
		close(d->root_fd);
	wfsd_signed_free(d->signed_store);
	sem_destroy(&d->reads);
	free(d->store_path);
	free(d->mount_path);
	free(d);
	return ret;
}
