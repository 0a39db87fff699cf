/* cmd_unpack.c - weightfs unpack: its options. The work is in transfer.c and unpack_file.c. */
#include "commands.h"
#include "unpack.h"

#include <stdlib.h>

enum { OPT_IN_PLACE = 256, OPT_REFLINK, OPT_CPU, OPT_JSON };

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},    {"in-place", no_argument, NULL, OPT_IN_PLACE},
	{"force", no_argument, NULL, 'f'},	     {"threads", required_argument, NULL, 'j'},
	{"reflink", no_argument, NULL, OPT_REFLINK}, {"cpu", required_argument, NULL, OPT_CPU},
	{"json", no_argument, NULL, OPT_JSON},	     {"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},	     COMMON_OPTIONS,
};

/* One option. false: a message was printed. */
static bool take_option(int c, struct transfer_opts *opts, bool *in_place_ret)
{
	switch (c) {
	case 'o':
		opts->destination = optarg;
		return true;
	case OPT_IN_PLACE:
		return *in_place_ret = true;
	case 'f':
		return opts->force = true;
	case 'j':
		return parse_threads("unpack", optarg, &opts->nr_threads);
	case OPT_REFLINK:
		return opts->reflink = true;
	case OPT_CPU:
		return parse_cpu("unpack", optarg, &opts->cpu);
	case OPT_JSON:
		return opts->json = true;
	case 'q':
		return opts->quiet = true;
	default:
		return opts->verbose = true;
	}
}

int cmd_unpack(const struct command *self, int argc, char **argv)
{
	struct transfer_opts opts = {.nr_threads = nr_processors()};
	bool in_place = false;
	int c;
	while ((c = getopt_long(argc, argv, "o:fj:qvhV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(c, &opts, &in_place))
			return EXIT_USAGE;
	}
	if (!check_nr_arguments(self, argc - optind, 1, 1))
		return EXIT_USAGE;
	if (in_place == (opts.destination != NULL)) {
		msg(in_place ? "unpack: --in-place and -o exclude each other"
			     : "unpack: where to? Use -o DEST or --in-place");
		return EXIT_USAGE;
	}
	opts.source = argv[optind];
	if (!*opts.source || (opts.destination && !*opts.destination)) {
		msg("unpack: a path is empty");
		return EXIT_USAGE;
	}
	return transfer_run(&unpack_ops, &opts);
}
