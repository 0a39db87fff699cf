/* daemon.c - find weightfsd, become it or run it. No shell takes part. */
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char daemon_name[] = "weightfsd";

/* Try one place. Returns, with an errno, only when the daemon is not there or cannot be run. */
static int try_dir(const char *dir, const char **argv)
{
	char *path = xasprintf("%s/%s", dir, daemon_name);
	int sys_errno;
	argv[0] = path;
	execv(path, (char *const *)argv);
	sys_errno = errno;
	free(path);
	return sys_errno;
}

/* The directory of the running program in self[PATH_MAX], or NULL. */
static const char *own_dir(char *self)
{
	ssize_t len = readlink("/proc/self/exe", self, PATH_MAX - 1);
	char *slash;
	if (len <= 0)
		return NULL;
	self[len] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	return slash ? self : NULL;
}

int exec_daemon(const char **argv)
{
	char self[PATH_MAX], *looked = xstrdup("");
	const char *const dirs[] = {own_dir(self), SBINDIR, BINDIR};
	const char *where = NULL;
	int sys_errno = ENOENT;
	for (unsigned i = 0; sys_errno == ENOENT && i < ARRAY_LEN(dirs); i++) {
		char *longer;
		if (!dirs[i] || (i && dirs[0] && !strcmp(dirs[i], dirs[0])))
			continue;
		where = dirs[i];
		sys_errno = try_dir(where, argv);
		longer = xasprintf("%s%s, ", looked, dirs[i]);
		free(looked);
		looked = longer;
	}
	if (sys_errno == ENOENT) {
		where = "PATH";
		argv[0] = daemon_name;
		execvp(daemon_name, (char *const *)argv);
		sys_errno = errno;
	}
	if (sys_errno == ENOENT)
		msg("cannot run the daemon: there is no %s in %sor PATH: install it with `make && sudo make install` "
		    "in the sources of weightfs",
		    daemon_name, looked);
	else
		msg("cannot run the daemon: %s in %s: %s", daemon_name, where, strerror(sys_errno));
	free(looked);
	return EXIT_FAILED;
}

/* The content of a file in memory, which is closed. The caller frees it. */
static char *take_text(int fd)
{
	struct stat st;
	size_t len = fstat(fd, &st) ? 0 : (size_t)st.st_size;
	char *text = xcalloc(len + 1, 1);
	if (pread_full(fd, text, len, 0) < 0)
		*text = '\0';
	close(fd);
	return text;
}

int run_daemon_to(int out, const char **argv, char **err_ret)
{
	int err = memfd_create("weightfs-err", MFD_CLOEXEC), status;
	pid_t child = out < 0 || err < 0 ? -1 : fork();
	if (child < 0) {
		msg("cannot run the daemon: %s", strerror(errno));
		exit(EXIT_FAILED);
	}
	if (child == 0) {
		if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
			_exit(EXIT_FAILED);
		_exit(exec_daemon(argv));
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR) {
			status = -1;
			break;
		}
	*err_ret = take_text(err);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

int run_daemon(const char **argv, char **out_ret, char **err_ret)
{
	int out = memfd_create("weightfs-out", MFD_CLOEXEC), status = run_daemon_to(out, argv, err_ret);
	*out_ret = take_text(out);
	return status;
}
