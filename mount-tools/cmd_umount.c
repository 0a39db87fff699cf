/* cmd_umount.c - weightfs umount: takes a mount away, also a dead daemon's, as root or as the user who mounted it. */
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct option options[] = {{"lazy", no_argument, NULL, 'l'}, COMMON_OPTIONS};

/* The absolute path of a mount point, without looking at it: a dead mount answers ENOTCONN and a hanging one nothing.
 * The caller frees it; NULL with errno. */
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

/* The type of the file system mounted at exactly this path; the uppermost one counts. The caller frees it; NULL: none.
 */
static char *mounted_type(const char *path)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *type = NULL;
	size_t room = 0;
	if (!f)
		return NULL;
	while (getline(&line, &room, f) > 0) {
		/* id parent major:minor root POINT options [tags] - TYPE source superoptions */
		char *rest, *point = line, *dash = strstr(line, " - ");
		for (unsigned i = 0; point && i < 4; i++)
			point = (point = strchr(point, ' ')) ? point + 1 : NULL;
		if (!point || !dash || dash < point)
			continue;
		rest = strchr(point, ' ');
		*rest = '\0';
		unescape(point);
		if (strcmp(point, path) != 0)
			continue;
		free(type);
		dash += strlen(" - ");
		dash[strcspn(dash, " \n")] = '\0';
		type = xstrdup(dash);
	}
	free(line);
	fclose(f);
	return type;
}

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

static int unmount(const char *path, bool lazy)
{
	if (!umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)))
		return EXIT_OK;
	if (errno == EPERM)
		return run_fusermount(path, lazy);
	if (errno == EBUSY)
		msg("umount: %s: is busy: close the files that are open there, or use --lazy", path);
	else
		msg("umount: %s: %s", path, strerror(errno));
	return EXIT_FAILED;
}

int cmd_umount(const struct command *self, int argc, char **argv)
{
	bool lazy = false;
	char *path, *type = NULL;
	int c, status = EXIT_FAILED;
	while ((c = getopt_long(argc, argv, "lhV", options, NULL)) >= 0) {
		if (c != 'l')
			return common_option(self, c);
		lazy = true;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	path = resolve(argv[optind]);
	if (!path) {
		msg("umount: %s: %s", argv[optind], strerror(errno));
		return EXIT_FAILED;
	}
	type = mounted_type(path);
	/* Perhaps the mount point is named through a symbolic link. */
	if (!type) {
		char *followed = realpath(path, NULL);
		if (followed) {
			free(path);
			path = followed;
			type = mounted_type(path);
		}
	}
	if (!type || strcmp(type, "fuse.weightfs") != 0)
		msg("umount: %s: no weightfs is mounted there", argv[optind]);
	else
		status = unmount(path, lazy);
	free(type);
	free(path);
	return status;
}
