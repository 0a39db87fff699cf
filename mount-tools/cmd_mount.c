/* cmd_mount.c - weightfs mount: becomes weightfsd, which does the rest. It looks at neither path: a mount that does not
 * answer may be there.
 */
#include "commands.h"

#include <stdlib.h>

static const struct option options[] = {{"foreground", no_argument, NULL, 'f'}, COMMON_OPTIONS};

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
	if (!check_arguments(self, argc - optind, argv + optind, 2, 2)) {
		status = EXIT_USAGE;
	} else {
		*next++ = "--";
		*next++ = argv[optind];
		*next = argv[optind + 1];
		status = exec_daemon(args);
	}
	free(args);
	return status;
}
