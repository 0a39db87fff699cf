/* cmd_mount.c - weightfs mount: becomes weightfsd, which does the rest. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct option options[] = {{"foreground", no_argument, NULL, 'f'}, COMMON_OPTIONS};

/* What can be said more clearly here than by the daemon. A mount point may be a dead mount: the daemon's business. */
static bool check_store(const char *store)
{
	struct stat st;
	int sys_errno = stat(store, &st) ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	if (sys_errno)
		msg("mount: %s: %s", store, strerror(sys_errno));
	return !sys_errno;
}

int cmd_mount(const struct command *self, int argc, char **argv)
{
	const char **args = xcalloc((size_t)argc + 4, sizeof(*args)), **next = args + 1;
	int c, status;
	while ((c = getopt_long(argc, argv, "o:fhV", options, NULL)) >= 0) {
		if (c != 'o' && c != 'f') {
			free(args);
			return common_option(self, c);
		}
		*next++ = c == 'o' ? "-o" : "-f";
		if (c == 'o')
			*next++ = optarg;
	}
	if (!check_nr_arguments(self, argc - optind, 2, 2)) {
		status = EXIT_USAGE;
	} else if (!check_store(argv[optind])) {
		status = EXIT_FAILED;
	} else {
		*next++ = "--";
		*next++ = argv[optind];
		*next = argv[optind + 1];
		status = exec_daemon(args);
	}
	free(args);
	return status;
}
