/* transfer_options.c - the options and arguments that pack and unpack share. */
#include "transfer_options.h"

bool transfer_option(const struct command *self, int c, struct transfer_opts *opts, bool *in_place)
{
	switch (c) {
	case 'o':
		opts->destination = optarg;
		return true;
	case OPT_IN_PLACE:
		return *in_place = true;
	case 'f':
		return opts->force = true;
	case 'j':
		return parse_threads(self->name, optarg, &opts->nr_threads);
	case OPT_REFLINK:
		return opts->reflink = true;
	case OPT_CPU:
		return parse_cpu(self->name, optarg, &opts->cpu);
	case OPT_JSON:
		return opts->json = true;
	case 'q':
		return opts->quiet = true;
	default:
		return opts->verbose = true;
	}
}

int transfer_start(const struct command *self, int nr, char **arguments, bool in_place, const struct transfer_ops *ops,
		   struct transfer_opts *opts)
{
	if (!check_arguments(self, nr, arguments, 1, 1))
		return EXIT_USAGE;
	if (in_place && opts->destination) {
		msg("%s: --in-place and -o exclude each other", self->name);
		return EXIT_USAGE;
	}
	if (!in_place && !opts->destination && !opts->dry_run) {
		msg("%s: where to? Use -o DEST or --in-place", self->name);
		return EXIT_USAGE;
	}
	opts->source = arguments[0];
	if (opts->destination && !*opts->destination) {
		msg("%s: a path is empty", self->name);
		return EXIT_USAGE;
	}
	return transfer_run(ops, opts);
}
