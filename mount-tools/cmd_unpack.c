/* cmd_unpack.c - weightfs unpack: its options. The work is in transfer.c, unpack_file.c and unpack_partial.c. */
#include "transfer_options.h"
#include "unpack.h"

enum { OPT_KEEP_GOING = OPT_OWN };

static const struct option options[] = {{"keep-going", no_argument, NULL, OPT_KEEP_GOING}, TRANSFER_OPTIONS};

int cmd_unpack(const struct command *self, int argc, char **argv)
{
	struct transfer_opts opts = {.nr_threads = nr_processors()};
	bool in_place = false, keep_going = false;
	int c;
	while ((c = getopt_long(argc, argv, TRANSFER_SHORT_OPTIONS, options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (c == OPT_KEEP_GOING)
			keep_going = true;
		else if (!transfer_option(self, c, &opts, &in_place))
			return EXIT_USAGE;
	}
	if (keep_going && in_place) {
		msg("unpack: --keep-going needs -o: in place a damaged container stays as it is");
		return EXIT_USAGE;
	}
	return transfer_start(self, argc - optind, argv + optind, in_place,
			      keep_going ? &unpack_keep_going_ops : &unpack_ops, &opts);
}
