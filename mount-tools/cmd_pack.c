/* cmd_pack.c - weightfs pack: its options. The work is in transfer.c and pack_file.c. */
#include "pack.h"
#include "transfer_options.h"

enum { OPT_MIN_SAVING = OPT_OWN, OPT_HARDLINK, OPT_BLOCK_SIZE, OPT_LEVEL, OPT_SIGNABLE };

static const struct option options[] = {
	{"dry-run", no_argument, NULL, 'n'},
	{"min-saving", required_argument, NULL, OPT_MIN_SAVING},
	{"hardlink", no_argument, NULL, OPT_HARDLINK},
	{"block-size", required_argument, NULL, OPT_BLOCK_SIZE},
	{"level", required_argument, NULL, OPT_LEVEL},
	{"signable", no_argument, NULL, OPT_SIGNABLE},
	TRANSFER_OPTIONS,
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
static bool take_option(const struct command *self, int c, struct transfer_opts *opts, bool *in_place)
{
	switch (c) {
	case 'n':
		return opts->dry_run = true;
	case OPT_MIN_SAVING:
		if (parse_percent(optarg, &opts->min_saving))
			return true;
		msg("pack: '%s' is not a percentage", optarg);
		return false;
	case OPT_HARDLINK:
		return opts->hardlink = true;
	case OPT_BLOCK_SIZE:
		return parse_block_size(optarg, &opts->block_log2);
	case OPT_LEVEL:
		return parse_level("pack", optarg, &opts->level);
	case OPT_SIGNABLE:
		return opts->signable = true;
	default:
		return transfer_option(self, c, opts, in_place);
	}
}

int cmd_pack(const struct command *self, int argc, char **argv)
{
	struct transfer_opts opts = {.nr_threads = nr_processors(), .min_saving = PACK_MIN_SAVING};
	bool in_place = false;
	int c;
	while ((c = getopt_long(argc, argv, "n" TRANSFER_SHORT_OPTIONS, options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(self, c, &opts, &in_place))
			return EXIT_USAGE;
	}
	return transfer_start(self, argc - optind, argv + optind, in_place, &pack_ops, &opts);
}
