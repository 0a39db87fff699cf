/* cmd_unpack.c - weightfs unpack: its options. The work is in transfer.c and unpack_file.c. */
#include "transfer_options.h"
#include "unpack.h"

static const struct option options[] = {TRANSFER_OPTIONS};

int cmd_unpack(const struct command *self, int argc, char **argv)
{
	struct transfer_opts opts = {.nr_threads = nr_processors()};
	bool in_place = false;
	int c;
	while ((c = getopt_long(argc, argv, TRANSFER_SHORT_OPTIONS, options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!transfer_option(self, c, &opts, &in_place))
			return EXIT_USAGE;
	}
	return transfer_start(self, argc - optind, argv + optind, in_place, &unpack_ops, &opts);
}
