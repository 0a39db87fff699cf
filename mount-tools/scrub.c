/* scrub.c - see scrub.h. */
#include "scrub.h"
#include "safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- rate ------------------------------------------------------------------------------------------------------ */

struct throttle {
	uint64_t rate;
	pthread_mutex_t lock;
	double due; /* when all that was taken may be done; protected by lock */
};

struct throttle *throttle_new(uint64_t bytes_per_second)
{
	struct throttle *t = xcalloc(1, sizeof(*t));
	t->rate = bytes_per_second;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void throttle_take(struct throttle *t, uint64_t bytes)
{
	struct timespec until;
	double due;
	if (!t || !t->rate || !bytes)
		return;
	pthread_mutex_lock(&t->lock);
	/* Time that was not used is no credit: a burst afterwards is what nobody wants. */
	t->due = MAX(t->due, seconds_now()) + (double)bytes / (double)t->rate;
	due = t->due;
	pthread_mutex_unlock(&t->lock);
	until.tv_sec = (time_t)due;
	until.tv_nsec = (long)((due - (double)until.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void throttle_free(struct throttle *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void lower_priority(void)
{
	/* ioprio_set(2) has no wrapper and no header: the process itself, class idle. */
	enum { WHO_PROCESS = 1, CLASS_IDLE = 3, CLASS_SHIFT = 13 };
	/* Where either is not allowed or not known the work is done all the same. */
	(void)syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE << CLASS_SHIFT);
	(void)setpriority(PRIO_PROCESS, 0, 19);
}

/* ---- state ----------------------------------------------------------------------------------------------------- */

/* This line, then a path, which may hold any bytes, then a newline; nothing: from the beginning. */
static const char state_line[] = "weightfs scrub: the last container that was looked at\n";
enum { MAX_STATE_BYTES = 64 << 10 };

static bool state_failed(const char *file, const char *why)
{
	msg("scrub: %s: %s", file, why);
	return false;
}

/* What killed runs have left beside the state. */
static void clean_beside(const char *file)
{
	char *dir = path_dirname(file);
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0) {
		temp_clean(dir_fd);
		close(dir_fd);
	}
	free(dir);
}

bool scrub_state_read(const char *file, char **last_ret)
{
	const size_t start = sizeof(state_line) - 1;
	char *text;
	ssize_t len;
	clean_beside(file);
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*last_ret = NULL;
	if (fd < 0)
		return errno == ENOENT || state_failed(file, strerror(errno));
	text = xcalloc(1, MAX_STATE_BYTES + 1);
	len = pread_full(fd, text, MAX_STATE_BYTES, 0);
	close(fd);
	if (len < 0 || (len > 0 && ((size_t)len < start || memcmp(text, state_line, start) != 0 ||
				    text[len - 1] != '\n' || len == MAX_STATE_BYTES))) {
		free(text);
		return state_failed(file,
				    len < 0 ? strerror(errno) : "is not a state of weightfs scrub: name another file");
	}
	if ((size_t)len > start)
		*last_ret = xasprintf("%.*s", (int)((size_t)len - start - 1), text + start);
	free(text);
	return true;
}

bool scrub_state_write(const char *file, const char *last)
{
	/* It could not be read back. */
	if (last && sizeof(state_line) + strlen(last) >= MAX_STATE_BYTES)
		return true;
	char *dir = path_dirname(file), *name = path_basename(file);
	char *text = last ? xasprintf("%s%s\n", state_line, last) : xstrdup(state_line);
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct temp_file temp = {.fd = -1};
	int ret = dir_fd < 0 ? errno : temp_create(&temp, dir_fd, name);
	if (!ret)
		ret = write_full(temp.fd, text, strlen(text), 0);
	if (!ret && fsync(temp.fd))
		ret = errno;
	if (!ret)
		ret = temp_publish(&temp, name, true);
	temp_discard(&temp);
	if (dir_fd >= 0)
		close(dir_fd);
	free(text);
	free(dir);
	free(name);
	return !ret || state_failed(file, strerror(ret));
}
