/* mounted.c - see mounted.h. */
#include "mounted.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
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

/* A store is mostly mounted over itself. A command that wants its containers would find the originals there and report
 * success without having done anything. */

const char in_weightfs_mount_reason[] = "a weightfs is mounted there and shows the originals: unmount it first";

bool in_weightfs_mount(int fd)
{
	struct stat st;
	FILE *f = NULL;
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	if (fstat(fd, &st) || !(f = fopen("/proc/self/mountinfo", "re")))
		goto out;
	while (!found && getline(&line, &room, f) > 0) {
		/* id parent MAJOR:MINOR root point options [tags] - TYPE source superoptions */
		static const char type[] = " - fuse.weightfs ";
		unsigned major_nr, minor_nr;
		found = sscanf(line, "%*u %*u %u:%u ", &major_nr, &minor_nr) == 2 &&
			makedev(major_nr, minor_nr) == st.st_dev && strstr(line, type);
	}
out:
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Undo the octal escapes of mountinfo ("\040" is a space), in place. */
static void unescape(char *text)
{
	char *out = text;
	for (const char *in = text; *in; out++) {
		if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' && in[3] >= '0' &&
		    in[3] <= '7') {
			*out = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
}

/* Length of the part of path that the mount point covers; 0: it does not hold the path. */
static size_t covers(const char *point, const char *path)
{
	size_t len = strlen(point);
	if (len == 1)
		return 1;
	return !strncmp(path, point, len) && (path[len] == '/' || !path[len]) ? len : 0;
}

/* Fills in what is mounted at the absolute path, or holds it. Of mounts on one another the uppermost counts. */
static void look(const char *path, bool within, struct mounted *m)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0, best = 1;
	if (!f)
		return;
	while (getline(&line, &room, f) > 0) {
		/* id parent MAJOR:MINOR root POINT options [tags] - TYPE source superoptions */
		char *rest, *point = line, *dash = strstr(line, " - ");
		size_t len;
		for (unsigned i = 0; point && i < 4; i++)
			point = (point = strchr(point, ' ')) ? point + 1 : NULL;
		if (!point || !dash || dash < point)
			continue;
		rest = strchr(point, ' ');
		*rest = '\0';
		unescape(point);
		len = covers(point, path);
		if (within ? len < best : strcmp(point, path) != 0)
			continue;
		best = MAX(best, len);
		mounted_free(m);
		dash += strlen(" - ");
		dash[strcspn(dash, " \n")] = '\0';
		m->point = xstrdup(point);
		m->type = xstrdup(dash);
		if (sscanf(line, "%*u %*u %u:%u ", &m->major_nr, &m->minor_nr) != 2)
			mounted_free(m);
	}
	free(line);
	fclose(f);
}

/* The absolute path of a mount point, without looking at it. The caller frees it; NULL with errno. */
static char *resolve(const char *path)
{
	char *dir = path_dirname(path), *name = path_basename(path), *real_dir, *real;
	if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "/")) {
		real = realpath(path, NULL);
	} else {
		real_dir = realpath(dir, NULL);
		real = real_dir ? xasprintf("%s/%s", strcmp(real_dir, "/") ? real_dir : "", name) : NULL;
		free(real_dir);
	}
	free(dir);
	free(name);
	return real;
}

int mounted_find(const char *path, bool within, struct mounted *m)
{
	char *real = resolve(path), *followed;
	int ret = real ? 0 : errno;
	*m = (struct mounted){0};
	if (ret)
		return ret;
	look(real, false, m);
	/* Perhaps the mount point is named through a symbolic link. */
	if (!m->type && (followed = realpath(real, NULL))) {
		free(real);
		real = followed;
		look(real, false, m);
	} else if (!m->type && within) {
		ret = errno;
	}
	if (!m->type && !ret && within)
		look(real, true, m);
	free(real);
	return ret;
}

void mounted_free(struct mounted *m)
{
	free(m->point);
	free(m->type);
	*m = (struct mounted){0};
}

bool mounted_covers(const struct mounted *m, const char *path)
{
	return covers(m->point, path) > 0;
}

bool mounted_is_weightfs(const struct mounted *m)
{
	return m->type && !strcmp(m->type, "fuse.weightfs");
}

int mounted_ask(const struct mounted *m)
{
	int ends[2], status, answer = ETIMEDOUT, got;
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	/* A child asks: whoever asks a daemon that is stopped waits for ever. */
	pid_t child = fork();
	if (child < 0)
		answer = errno;
	if (child == 0) {
		struct statfs fs;
		got = statfs(m->point, &fs) ? errno : 0;
		_exit(write(ends[1], &got, sizeof(got)) == sizeof(got) ? 0 : 1);
	}
	close(ends[1]);
	if (child > 0) {
		struct pollfd fd = {.fd = ends[0], .events = POLLIN};
		bool answered = poll(&fd, 1, ANSWER_SECONDS * 1000) == 1;
		if (answered)
			answer = read(ends[0], &got, sizeof(got)) == sizeof(got) ? got : EIO;
		else
			kill(child, SIGKILL);
		/* One whose request is out already does not end before it: it is left to init. */
		waitpid(child, &status, answered ? 0 : WNOHANG);
	}
	close(ends[0]);
	return answer;
}
