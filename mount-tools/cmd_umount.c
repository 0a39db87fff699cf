/* cmd_umount.c - weightfs umount: takes a mount away, also a dead daemon's, as root or as the user who mounted it. */
#include "busy.h"
#include "commands.h"
#include "mounted.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct option options[] = {{"lazy", no_argument, NULL, 'l'}, COMMON_OPTIONS};

/* Without the right to unmount there is fusermount3, which is set-uid root and asks whose mount it is. Its own message,
 * if any, stands for ours. */
static int run_fusermount(const char *path, bool lazy)
{
	static const char *const programs[] = {"fusermount3", "fusermount"};
	int status, ret = ENOENT;
	pid_t pid;
	for (unsigned i = 0; ret == ENOENT && i < ARRAY_LEN(programs); i++) {
		const char *const args[] = {programs[i], lazy ? "-uz" : "-u", "--", path, NULL};
		ret = posix_spawnp(&pid, programs[i], NULL, NULL, (char *const *)args, environ);
	}
	if (ret) {
		msg("umount: %s: neither allowed to unmount nor able to run fusermount3: %s", path, strerror(ret));
		return EXIT_FAILED;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? EXIT_OK : EXIT_FAILED;
}

/* known_busy: it is said also when nobody is found who uses the mount. */
static void say_busy(const struct mounted *m, bool known_busy)
{
	char *processes = busy_processes(m);
	if (processes)
		msg("umount: %s: is busy: in use by %s; end that, or use --lazy, which ends the mount when they do",
		    m->point, processes);
	else if (known_busy)
		msg("umount: %s: is busy, and no process was found that uses it: fuser -vm or findmnt -R there, as "
		    "root, "
		    "may tell more; or use --lazy",
		    m->point);
	free(processes);
}

static int unmount(const struct mounted *m, bool lazy)
{
	int status = EXIT_FAILED;
	if (!umount2(m->point, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)))
		return EXIT_OK;
	if (errno == EPERM) {
		status = run_fusermount(m->point, lazy);
		if (status != EXIT_OK)
			say_busy(m, false);
	} else if (errno == EBUSY) {
		say_busy(m, true);
	} else {
		msg("umount: %s: %s", m->point, strerror(errno));
	}
	return status;
}

int cmd_umount(const struct command *self, int argc, char **argv)
{
	bool lazy = false;
	struct mounted m;
	int c, status = EXIT_FAILED;
	while ((c = getopt_long(argc, argv, "lhV", options, NULL)) >= 0) {
		if (c != 'l')
			return common_option(self, c);
		lazy = true;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	c = mounted_find(argv[optind], false, &m);
	if (c)
		msg("umount: %s: %s", argv[optind], strerror(c));
	else if (!mounted_is_weightfs(&m))
		msg("umount: %s: no weightfs is mounted there", argv[optind]);
	else
		status = unmount(&m, lazy);
	mounted_free(&m);
	return status;
}
