/* cmd_stats.c - weightfs stats: the daemon is the client of its own statistics socket. */
#include "commands.h"
#include "doctor.h"

#include <stdlib.h>

enum { OPT_JSON = 256 };

static const struct option options[] = {{"json", no_argument, NULL, OPT_JSON}, COMMON_OPTIONS};

/* A weightfs whose daemon gives no counters: say why and what to do, as doctor does. */
static bool explain_silence(const char *path)
{
	struct mounted mount;
	struct doctor d;
	bool silent = false;
	if (!mounted_find(path, true, &mount) && mounted_is_weightfs(&mount)) {
		doctor_examine(&d, &mount);
		silent = !d.stats;
		if (silent)
			msg("stats: %s: %s: %s", mount.point, d.reason,
			    d.nr_advice ? d.advice[0].run : "see weightfs doctor");
		doctor_free(&d);
	}
	mounted_free(&mount);
	return silent;
}

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
	if (explain_silence(argv[optind]))
		return EXIT_FAILED;
	const char *with_json[] = {NULL, "--stats", "--json", "--", argv[optind], NULL};
	const char *without[] = {NULL, "--stats", "--", argv[optind], NULL};
	return exec_daemon(json ? with_json : without);
}
