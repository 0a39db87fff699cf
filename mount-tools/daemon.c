/* daemon.c - find weightfsd and become it. No shell takes part. */
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int exec_daemon(const char **argv)
{
	static const char *const installed[] = {SBINDIR, BINDIR};
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	int sys_errno = ENOENT;
	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		if (slash) {
			*slash = '\0';
			sys_errno = try_dir(self, argv);
		}
	}
	for (unsigned i = 0; sys_errno == ENOENT && i < ARRAY_LEN(installed); i++)
		sys_errno = try_dir(installed[i], argv);
	if (sys_errno == ENOENT) {
		argv[0] = daemon_name;
		execvp(daemon_name, (char *const *)argv);
		sys_errno = errno;
	}
	msg("cannot run the daemon %s: %s", daemon_name, strerror(sys_errno));
	return EXIT_FAILED;
}
