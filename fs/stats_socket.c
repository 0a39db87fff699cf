/* stats_socket.c - see stats_socket.h. */
#include "stats_socket.h"
#include "fs.h"
#include "hand_over.h"
#include "mount_check.h"
#include "printable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ---- where it lies --------------------------------------------------------------------------------------------- */

enum { NR_PLACES = 3, CLIENT_TIMEOUT_SEC = 2, BACKLOG = 8 };
/* A daemon that answers for ever is not one of ours. */
enum { ANSWER_LIMIT_SEC = 10, ANSWER_LIMIT_BYTES = 4 << 20 };
static const char store_command[] = "store\n";

/* The i-th directory to try for a user's sockets; false: there is none. */
static bool place(unsigned i, uid_t uid, char *dir_ret, size_t room)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int len = -1;

	if (i == 0 && uid == 0)
		len = snprintf(dir_ret, room, "/run/weightfs");
	else if (i == 1 && uid == geteuid() && runtime && runtime[0] == '/')
		len = snprintf(dir_ret, room, "%s/weightfs", runtime);
	else if (i == 1 && uid != geteuid())
		len = snprintf(dir_ret, room, "/run/user/%u/weightfs", (unsigned)uid);
	else if (i == 2)
		len = snprintf(dir_ret, room, "/tmp/weightfs-%u", (unsigned)uid);
	return len > 0 && (size_t)len < room;
}

/* Whether only uid can have put anything there. */
static bool is_private(const char *dir, uid_t uid)
{
	struct stat st;
	return !lstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 077);
}

static bool socket_addr(const char *dir, unsigned major, unsigned minor, struct sockaddr_un *addr_ret)
{
	*addr_ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	int len = snprintf(addr_ret->sun_path, sizeof(addr_ret->sun_path), "%s/%u-%u.sock", dir, major, minor);
	return len > 0 && (size_t)len < sizeof(addr_ret->sun_path);
}

static void set_timeouts(int fd)
{
	const struct timeval t = {.tv_sec = CLIENT_TIMEOUT_SEC};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* ---- server ---------------------------------------------------------------------------------------------------- */

struct wfsd_stats_server {
	struct wfsd *d;
	int fd;
	int stop_pipe[2]; /* closing the write end ends the thread */
	struct sockaddr_un addr;
	ino_t ino; /* of the socket at addr */
	bool started;
	pthread_t thread;
};

static void send_stats(struct wfsd *d, int fd, bool json)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	wfsd_stats_print(d, out, json);
	if (!fclose(out))
		for (size_t done = 0; done < len;) {
			ssize_t n = send(fd, text + done, len - done, MSG_NOSIGNAL);
			if (n <= 0)
				break;
			done += (size_t)n;
		}
	free(text);
}

/* To those who could open it themselves if the mount did not lie over it: who has entered our directory is trusted
 * already, and asked for his name all the same. */
static void send_store(struct wfsd *d, int fd)
{
	if (wfsd_peer_is_trusted(fd)) {
		int err = wfsd_send_fd(fd, d->root_fd);
		if (err)
			wfsd_log(&d->log, WFSD_INFO, "cannot hand the store over: %s", strerror(err));
	}
}

/* A client that does not read or write is given up after CLIENT_TIMEOUT_SEC; one that does not write, at our end. */
static void answer(const struct wfsd_stats_server *s, int fd)
{
	struct wfsd *d = s->d;
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = s->stop_pipe[0], .events = POLLIN}};
	char command[16] = "";

	set_timeouts(fd);
	if (poll(fds, 2, CLIENT_TIMEOUT_SEC * 1000) <= 0 || fds[1].revents)
		return;
	if (recv(fd, command, sizeof(command) - 1, MSG_DONTWAIT) <= 0)
		return;
	if (!strcmp(command, store_command))
		send_store(d, fd);
	else
		send_stats(d, fd, !strcmp(command, "json\n"));
}

static void *serve(void *arg)
{
	struct wfsd_stats_server *s = arg;
	struct pollfd fds[] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->stop_pipe[0], .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			return NULL;
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			answer(s, fd);
			close(fd);
		} else if (errno == EMFILE || errno == ENFILE) {
			poll(&fds[1], 1, 1000); /* the client stays in the queue: do not spin */
		}
	}
}

/* Whether it is a socket that no process has any more. Asked with the wrong type, so that no connection is made: that
 * would wake an idle daemon, and fill the queue of a stopped one. */
static bool is_abandoned(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool refused = fd >= 0 && !lstat(addr->sun_path, &st) && S_ISSOCK(st.st_mode) &&
		       connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return refused;
}

/* Remove what killed daemons have left. The directory is locked: nobody takes a name that is just found abandoned. */
static void remove_abandoned(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct sockaddr_un addr;
	unsigned major_nr, minor_nr;
	char c;

	while (dir && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "%u-%u.soc%c", &major_nr, &minor_nr, &c) != 3 || c != 'k' ||
		    !socket_addr(path, major_nr, minor_nr, &addr))
			continue;
		if (!strcmp(strrchr(addr.sun_path, '/') + 1, entry->d_name) && is_abandoned(&addr))
			unlink(addr.sun_path);
	}
	if (dir)
		closedir(dir);
}

/* Whoever binds or removes holds the lock of the directory. -1: somebody holds it for too long, being stopped. */
static int lock_dir(const char *path)
{
	enum { LOCK_TRIES = 100, LOCK_PAUSE_MSEC = 10 };
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		poll(NULL, 0, LOCK_PAUSE_MSEC);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* 0 or the errno. */
static int bind_in(const char *dir, int fd, const struct sockaddr_un *addr, ino_t *ino_ret)
{
	int lock = lock_dir(dir), err = 0;
	struct stat st = {0};

	if (lock >= 0)
		remove_abandoned(dir);
	unlink(addr->sun_path); /* device numbers are unique: whoever had it serves no longer */
	if (bind(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		err = errno;
	else if (listen(fd, BACKLOG) || lstat(addr->sun_path, &st)) {
		err = errno;
		unlink(addr->sun_path);
	}
	*ino_ret = st.st_ino;
	if (lock >= 0)
		close(lock);
	return err;
}

/* The directory for our user's sockets, made if there is none: the first of them that can be used. */
static bool find_dir(char *dir_ret, size_t room)
{
	for (unsigned i = 0; i < NR_PLACES; i++)
		if (place(i, geteuid(), dir_ret, room) && (!mkdir(dir_ret, 0700) || errno == EEXIST) &&
		    is_private(dir_ret, geteuid()) && !access(dir_ret, W_OK | X_OK))
			return true;
	return false;
}

/* 0 or the errno. */
static int bind_server(struct wfsd_stats_server *s)
{
	char dir[sizeof(s->addr.sun_path)];

	if (!find_dir(dir, sizeof(dir)))
		return EACCES;
	if (!socket_addr(dir, s->d->major, s->d->minor, &s->addr))
		return ENAMETOOLONG;
	return bind_in(dir, s->fd, &s->addr, &s->ino);
}

struct wfsd_stats_server *wfsd_stats_server_new(struct wfsd *d)
{
	struct wfsd_stats_server *s = malloc(sizeof(*s));
	int err;

	if (!s)
		return NULL;
	*s = (struct wfsd_stats_server){.d = d, .stop_pipe = {-1, -1}};
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0) {
		err = errno;
		goto fail;
	}
	err = bind_server(s);
	if (err)
		goto fail;
	if (pipe2(s->stop_pipe, O_CLOEXEC)) {
		err = errno;
		wfsd_stats_server_unlink(s);
		goto fail;
	}
	return s;
fail:
	wfsd_log(&d->log, WFSD_WARNING, "no socket for statistics: %s", strerror(err));
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	return NULL;
}

char *wfsd_stats_server_dir(const struct wfsd_stats_server *s)
{
	return s ? strndup(s->addr.sun_path, (size_t)(strrchr(s->addr.sun_path, '/') - s->addr.sun_path)) : NULL;
}

void wfsd_stats_server_start(struct wfsd_stats_server *s)
{
	int err = s ? pthread_create(&s->thread, NULL, serve, s) : 0;

	if (err)
		wfsd_log(&s->d->log, WFSD_WARNING, "nobody answers for statistics: %s", strerror(err));
	else if (s)
		s->started = true;
}

void wfsd_stats_server_unlink(struct wfsd_stats_server *s)
{
	char *dir = wfsd_stats_server_dir(s);
	struct stat st;

	if (!dir)
		return;
	int lock = lock_dir(dir);
	/* The mount is gone already: a new one may have got its device number, and with it this name. */
	if (!lstat(s->addr.sun_path, &st) && st.st_ino == s->ino)
		unlink(s->addr.sun_path);
	if (lock >= 0)
		close(lock);
	free(dir);
}

void wfsd_stats_server_free(struct wfsd_stats_server *s)
{
	if (!s)
		return;
	wfsd_stats_server_unlink(s);
	close(s->stop_pipe[1]);
	if (s->started)
		pthread_join(s->thread, NULL);
	close(s->stop_pipe[0]);
	close(s->fd);
	free(s);
}

/* ---- client ---------------------------------------------------------------------------------------------------- */

static struct ucred peer_of(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ? (struct ucred){.uid = (uid_t)-1} : peer;
}

/* A connection to the daemon of the mount, or -errno. */
static int connect_to(const struct wfsd_mount *m)
{
	struct sockaddr_un addr;
	char dir[sizeof(addr.sun_path)];
	int err = ENOENT;

	for (unsigned i = 0; i < NR_PLACES; i++) {
		if (!place(i, m->user_id, dir, sizeof(dir)) || !socket_addr(dir, m->major, m->minor, &addr) ||
		    !is_private(dir, m->user_id))
			continue;
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return -errno;
		set_timeouts(fd);
		bool connected = !connect(fd, (struct sockaddr *)&addr, sizeof(addr));
		/* Also when the directory was changed since we looked: nobody else answers for this user. */
		if (connected && peer_of(fd).uid == m->user_id)
			return fd;
		err = connected ? EACCES : errno;
		close(fd);
	}
	return -err;
}

pid_t wfsd_stats_server_pid(const struct wfsd_mount *m)
{
	int fd = connect_to(m);
	pid_t pid = fd < 0 ? 0 : peer_of(fd).pid;
	if (fd >= 0)
		close(fd);
	return pid;
}

/* Sends the command. A connected socket; or -1, after a message. */
static int ask(const char *mountpoint, const char *command)
{
	struct wfsd_mount m;
	char path[PATH_MAX];

	int err = wfsd_mount_resolve(mountpoint, path);
	if (err || !wfsd_mount_of(path, &m) || !m.weightfs) {
		fprintf(stderr, "weightfsd: %s: %s\n", mountpoint, err ? strerror(-err) : "not a weightfs mount");
		return -1;
	}
	int fd = connect_to(&m);
	if (fd >= 0 && send(fd, command, strlen(command), MSG_NOSIGNAL) < 0) {
		int sys_errno = errno;
		close(fd);
		fd = -sys_errno;
	}
	if (fd < 0) {
		fprintf(stderr, "weightfsd: %s: the daemon does not answer: %s\n", mountpoint, strerror(-fd));
		return -1;
	}
	return fd;
}

static time_t now_sec(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void say_silent(const char *mountpoint, int fd)
{
	fprintf(stderr, "weightfsd: %s: the daemon, process %ld, does not answer: it is stopped or hangs\n", mountpoint,
		(long)peer_of(fd).pid);
}

int wfsd_stats_client(const char *mountpoint, int json)
{
	const time_t end = now_sec() + ANSWER_LIMIT_SEC;
	char buf[4096];
	ssize_t n;
	size_t total = 0, held = 0; /* held: the first byte of a character, at the beginning of buf */
	int fd = ask(mountpoint, json ? "json\n" : "text\n");

	if (fd < 0)
		return 1;
	while ((n = recv(fd, buf + held, sizeof(buf) - held, 0)) > 0) {
		size_t len = held + (size_t)n;
		/* Another user's daemon may send what moves our terminal's cursor, or worse. */
		wfs_mask_controls(buf, len, true);
		held = buf[len - 1] == WFS_C1_LEAD;
		total += fwrite(buf, 1, len - held, stdout);
		if (held)
			buf[0] = WFS_C1_LEAD;
		if (total > ANSWER_LIMIT_BYTES || now_sec() > end) {
			n = -1;
			break;
		}
	}
	if (n < 0 || !total)
		say_silent(mountpoint, fd);
	close(fd);
	if (n < 0 || !total)
		return 1;
	if (!fflush(stdout))
		return 0;
	fprintf(stderr, "weightfsd: cannot write the output: %s\n", strerror(errno));
	return 1;
}

int wfsd_store_client(const char *mountpoint)
{
	int fd = ask(mountpoint, store_command);

	if (fd < 0)
		return 1;
	int store = wfsd_receive_fd(fd);
	int err = store < 0 ? 0 : wfsd_send_fd(STDOUT_FILENO, store);
	if (store < 0)
		say_silent(mountpoint, fd);
	else if (err)
		fprintf(stderr, "weightfsd: cannot hand the store over to standard output: %s\n", strerror(err));
	if (store >= 0)
		close(store);
	close(fd);
	return store < 0 || err;
}
