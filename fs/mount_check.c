/* mount_check.c - see mount_check.h. */
#include "mount_check.h"
#include "mount_end.h"
#include "stats_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_SECONDS = 5 }; /* for a mount that lives: more than enough */

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Undo the octal escapes of mountinfo ("\040" is a space), in place. */
static void unescape(char *text)
{
	char *out = text;
	for (const char *in = text; *in;) {
		if (in[0] == '\\' && is_octal(in[1]) && is_octal(in[2]) && is_octal(in[3])) {
			*out++ = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
			in += 4;
		} else {
			*out++ = *in++;
		}
	}
	*out = '\0';
}

/* One line, cut up in place: "id parent maj:min root point options [tag ...] - fstype source superoptions". */
static bool parse_line(char *line, struct wfsd_mount *m)
{
	char *save = NULL, *field[6] = {NULL}, *rest;

	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i ? NULL : line, " \n", &save);
		if (!field[i])
			return false;
	}
	while ((rest = strtok_r(NULL, " \n", &save)) && strcmp(rest, "-"))
		;
	char *fstype = rest ? strtok_r(NULL, " \n", &save) : NULL;
	char *source = fstype ? strtok_r(NULL, " \n", &save) : NULL;
	char *options = source ? strtok_r(NULL, " \n", &save) : NULL;
	if (!fstype || sscanf(field[2], "%u:%u", &m->major, &m->minor) != 2)
		return false;
	m->id = (unsigned)strtoul(field[0], NULL, 10);
	unescape(field[4]);
	if ((size_t)snprintf(m->point, sizeof(m->point), "%s", field[4]) >= sizeof(m->point))
		return false;
	snprintf(m->fstype, sizeof(m->fstype), "%s", fstype);
	m->weightfs = !strcmp(fstype, "fuse.weightfs");
	m->user_id = 0;
	m->unique_id = 0;
	const char *user = options ? strstr(options, "user_id=") : NULL;
	if (user)
		m->user_id = (unsigned)strtoul(user + strlen("user_id="), NULL, 10);
	return true;
}

typedef bool (*match_fn)(const struct wfsd_mount *m, const void *what, size_t *best);

/* The last line that matches: of mounts on one another it is the uppermost. */
static bool find_mount(match_fn match, const void *what, struct wfsd_mount *ret)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	struct wfsd_mount *m = malloc(sizeof(*m));
	char *line = NULL;
	size_t room = 0, best = 0;
	bool found = false;

	while (file && m && getline(&line, &room, file) > 0)
		if (parse_line(line, m) && match(m, what, &best)) {
			*ret = *m;
			found = true;
		}
	free(line);
	free(m);
	if (file)
		fclose(file);
	return found;
}

static bool match_point(const struct wfsd_mount *m, const void *what, size_t *best)
{
	(void)best;
	return !strcmp(m->point, what);
}

static bool match_prefix(const struct wfsd_mount *m, const void *what, size_t *best)
{
	const char *path = what;
	size_t len = strcmp(m->point, "/") ? strlen(m->point) : 0;
	if (strncmp(m->point, path, len) || (path[len] != '/' && path[len]) || len < *best)
		return false;
	*best = len;
	return true;
}

static bool match_dev(const struct wfsd_mount *m, const void *what, size_t *best)
{
	const dev_t *dev = what;
	(void)best;
	return m->major == major(*dev) && m->minor == minor(*dev);
}

static bool match_id(const struct wfsd_mount *m, const void *what, size_t *best)
{
	const unsigned *id = what;
	(void)best;
	return m->id == *id;
}

bool wfsd_mount_at(const char *point, struct wfsd_mount *ret)
{
	return find_mount(match_point, point, ret);
}

bool wfsd_mount_of(const char *path, struct wfsd_mount *ret)
{
	return find_mount(match_prefix, path, ret);
}

bool wfsd_mount_of_dev(dev_t dev, struct wfsd_mount *ret)
{
	return find_mount(match_dev, &dev, ret);
}

bool wfsd_mount_of_id(unsigned id, struct wfsd_mount *ret)
{
	return find_mount(match_id, &id, ret);
}

bool wfsd_mount_of_fd(int fd, struct wfsd_mount *ret)
{
	char path[48], line[128];
	unsigned id;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "mnt_id: %u", &id) == 1;
	if (file)
		fclose(file);
	return found && wfsd_mount_of_id(id, ret);
}

int wfsd_mount_resolve(const char *point, char *path_ret)
{
	char dir[PATH_MAX], base[PATH_MAX], parent[PATH_MAX];

	if (realpath(point, path_ret))
		return 0;
	if (errno != ENOTCONN || strlen(point) >= PATH_MAX)
		return -errno;
	/* A dead mount: everything but its own name resolves. dirname and basename write on their arguments. */
	memcpy(dir, point, strlen(point) + 1);
	memcpy(base, point, strlen(point) + 1);
	if (!realpath(dirname(dir), parent))
		return -errno;
	if (snprintf(path_ret, PATH_MAX, "%s/%s", strcmp(parent, "/") ? parent : "", basename(base)) >= PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}

struct life {
	int err; /* why the directory does not answer, or 0 */
	bool is_dir;
};

/* The kernel may answer stat for a dead daemon, but not statfs. */
static struct life look(const char *point)
{
	struct statfs fs;
	struct stat st;

	if (stat(point, &st) || statfs(point, &fs))
		return (struct life){.err = errno};
	return (struct life){.is_dir = S_ISDIR(st.st_mode)};
}

/* A child looks: whoever asks a daemon that is stopped waits for ever. ETIMEDOUT: no answer within ANSWER_SECONDS. */
static struct life check_alive(const char *point)
{
	struct life life = {.err = ETIMEDOUT};
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC))
		return (struct life){.err = errno};
	pid_t child = fork();
	if (child < 0)
		life.err = errno;
	if (child == 0) {
		life = look(point);
		ssize_t n = write(ends[1], &life, sizeof(life));
		_exit(n == sizeof(life) ? 0 : 1);
	}
	close(ends[1]);
	if (child > 0) {
		struct pollfd fd = {.fd = ends[0], .events = POLLIN};
		struct life got;
		bool answered = poll(&fd, 1, ANSWER_SECONDS * 1000) == 1;
		if (answered)
			life = read(ends[0], &got, sizeof(got)) == sizeof(got) ? got : (struct life){.err = EIO};
		else
			kill(child, SIGKILL);
		/* Where the request is out already the child does not end before it: it is left to init. */
		waitpid(child, &status, answered ? 0 : WNOHANG);
	}
	close(ends[0]);
	return life;
}

bool wfsd_mount_is_dead(const char *point)
{
	enum { TRIES = 6 }; /* the daemon may be dying just now */
	int err = ETIMEDOUT;

	for (int i = 0; err == ETIMEDOUT && i < TRIES; i++)
		err = check_alive(point).err;
	return err == ENOTCONN || err == ECONNABORTED;
}

static void log_silent(const struct wfsd_log *log, const char *point)
{
	struct wfsd_mount m;
	pid_t pid = 0;

	if (!wfsd_mount_at(point, &m) || !m.weightfs) {
		wfsd_log(log, WFSD_ERROR, "mount point %s: does not answer within %d s", point, ANSWER_SECONDS);
		return;
	}
	pid = wfsd_stats_server_pid(&m);
	if (pid)
		wfsd_log(log, WFSD_ERROR,
			 "mount point %s: a weightfs is mounted there and does not answer: its process %ld is stopped "
			 "or hangs; run kill -CONT %ld, or kill -KILL %ld, and mount again",
			 point, (long)pid, (long)pid, (long)pid);
	else
		wfsd_log(log, WFSD_ERROR,
			 "mount point %s: a weightfs is mounted there and does not answer: its process is stopped or "
			 "hangs; run weightfs umount --lazy, and mount again",
			 point);
}

bool wfsd_mount_prepare(const struct wfsd_log *log, const char *point)
{
	struct wfsd_mount m;
	struct life life;
	int err;

	/* Dead mounts may lie on one another. */
	while (life = check_alive(point), err = life.err) {
		if (err == ETIMEDOUT) {
			log_silent(log, point);
			return false;
		}
		/* ECONNABORTED: it died while we asked. */
		if ((err != ENOTCONN && err != ECONNABORTED) || !wfsd_mount_at(point, &m) || !m.weightfs) {
			wfsd_log(log, WFSD_ERROR, "mount point %s: %s", point, strerror(err));
			return false;
		}
		err = wfsd_mount_detach(&m, false);
		if (err) {
			wfsd_log(log, WFSD_ERROR, "mount point %s: cannot take the dead mount away: %s", point,
				 strerror(-err));
			return false;
		}
		wfsd_log(log, WFSD_INFO, "took away the dead weightfs mount at %s", point);
	}
	if (!life.is_dir) {
		wfsd_log(log, WFSD_ERROR, "mount point %s: not a directory", point);
		return false;
	}
	if (wfsd_mount_at(point, &m) && m.weightfs) {
		wfsd_log(log, WFSD_ERROR, "mount point %s: a weightfs is mounted there already", point);
		return false;
	}
	return true;
}

/* Whether `point` lies strictly beneath the directory st: climb from it to the root. */
static bool lies_beneath(const char *point, const struct stat *st)
{
	struct stat here, above;
	bool found = false;
	int fd = open(point, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &here))
		goto out;
	for (;;) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
		if (fd < 0 || fstat(fd, &above) || (above.st_dev == here.st_dev && above.st_ino == here.st_ino))
			break;
		if (above.st_dev == st->st_dev && above.st_ino == st->st_ino) {
			found = true;
			break;
		}
		here = above;
	}
out:
	if (fd >= 0)
		close(fd);
	return found;
}

bool wfsd_store_allowed(const struct wfsd_log *log, const char *store, int store_fd, const char *point)
{
	struct wfsd_mount m;
	struct stat st;

	if (fstat(store_fd, &st)) {
		wfsd_log(log, WFSD_ERROR, "store %s: %s", store, strerror(errno));
		return false;
	}
	if (wfsd_mount_of_dev(st.st_dev, &m) && m.weightfs) {
		wfsd_log(log, WFSD_ERROR, "store %s: lies in the weightfs mount %s; give the store itself", store,
			 m.point);
		return false;
	}
	if (lies_beneath(point, &st)) {
		wfsd_log(log, WFSD_ERROR,
			 "mount point %s: lies inside the store %s; mount over the store itself or outside it", point,
			 store);
		return false;
	}
	return true;
}
