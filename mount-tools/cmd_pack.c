/* cmd_pack.c - weightfs pack: its options. The work is in transfer.c and pack_file.c. */
#include "commands.h"
#include "pack.h"

#include <stdlib.h>

enum { OPT_IN_PLACE = 256, OPT_MIN_SAVING, OPT_REFLINK, OPT_HARDLINK, OPT_BLOCK_SIZE, OPT_CPU, OPT_JSON };

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"in-place", no_argument, NULL, OPT_IN_PLACE},
	{"dry-run", no_argument, NULL, 'n'},
	{"force", no_argument, NULL, 'f'},
	{"threads", required_argument, NULL, 'j'},
	{"min-saving", required_argument, NULL, OPT_MIN_SAVING},
	{"reflink", no_argument, NULL, OPT_REFLINK},
	{"hardlink", no_argument, NULL, OPT_HARDLINK},
	{"block-size", required_argument, NULL, OPT_BLOCK_SIZE},
	{"cpu", required_argument, NULL, OPT_CPU},
	{"json", no_argument, NULL, OPT_JSON},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	COMMON_OPTIONS,
};

static bool parse_block_size(const char *text, unsigned *log2_ret)
{
	uint64_t size;
	if (parse_number(text, 64 << 10, 1 << 20, true, &size) && (size & (size - 1)) == 0) {
		*log2_ret = (unsigned)__builtin_ctzll(size);
		return true;
	}
	msg("pack: '%s' is not a block size: use 64k, 128k, 256k, 512k or 1M", text);
	return false;
}

/* One option. false: a message was printed. */
static bool take_option(int c, struct transfer_opts *opts, bool *in_place_ret)
{
	switch (c) {
	case 'o':
		opts->destination = optarg;
		return true;
	case OPT_IN_PLACE:
		return *in_place_ret = true;
	case 'n':
		return opts->dry_run = true;
	case 'f':
		return opts->force = true;
	case 'j':
		return parse_threads("pack", optarg, &opts->nr_threads);
	case OPT_MIN_SAVING:
		if (parse_percent(optarg, &opts->min_saving))
			return true;
		msg("pack: '%s' is not a percentage", optarg);
		return false;
	case OPT_REFLINK:
		return opts->reflink = true;
	case OPT_HARDLINK:
		return opts->hardlink = true;
	case OPT_BLOCK_SIZE:
		return parse_block_size(optarg, &opts->block_log2);
	case OPT_CPU:
		return parse_cpu("pack", optarg, &opts->cpu);
	case OPT_JSON:
		return opts->json = true;
	case 'q':
		return opts->quiet = true;
	default:
		return opts->verbose = true;
	}
}

int cmd_pack(const struct command *self, int argc, char **argv)
{
	struct transfer_opts opts = {.nr_threads = nr_processors(), .min_saving = 3};
	bool in_place = false;
	int c;
	while ((c = getopt_long(argc, argv, "o:nfj:qvhV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(c, &opts, &in_place))
			return EXIT_USAGE;
	}
	if (!check_nr_arguments(self, argc - optind, 1, 1))
		return EXIT_USAGE;
	if (in_place && opts.destination) {
		msg("pack: --in-place and -o exclude each other");
		return EXIT_USAGE;
	}
	if (!in_place && !opts.destination && !opts.dry_run) {
		msg("pack: where to? Use -o DEST or --in-place");
		return EXIT_USAGE;
	}
	opts.source = argv[optind];
	if (!*opts.source || (opts.destination && !*opts.destination)) {
		msg("pack: a path is empty");
		return EXIT_USAGE;
	}
	return transfer_run(&pack_ops, &opts);
}
