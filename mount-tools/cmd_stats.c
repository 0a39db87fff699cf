/* cmd_stats.c - weightfs stats: the daemon is the client of its own statistics socket. */
#include "commands.h"

#include <stdlib.h>

enum { OPT_JSON = 256 };

static const struct option options[] = {{"json", no_argument, NULL, OPT_JSON}, COMMON_OPTIONS};

int cmd_stats(const struct command *self, int argc, char **argv)
{
	bool json = false;
	int c;
	while ((c = getopt_long(argc, argv, "hV", options, NULL)) >= 0) {
		if (c != OPT_JSON)
			return common_option(self, c);
		json = true;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	const char *with_json[] = {NULL, "--stats", "--json", "--", argv[optind], NULL};
	const char *without[] = {NULL, "--stats", "--", argv[optind], NULL};
	return exec_daemon(json ? with_json : without);
}
