/* transfer_options.h - the options and arguments that pack and unpack share. */
#ifndef TRANSFER_OPTIONS_H
#define TRANSFER_OPTIONS_H

#include "commands.h"
#include "transfer.h"

/* OPT_OWN: from here on the command's own. */
enum { OPT_IN_PLACE = 256, OPT_REFLINK, OPT_CPU, OPT_JSON, OPT_OWN };

/* For the command's option table and getopt_long's short options. */
#define TRANSFER_OPTIONS                                                                                               \
	{"output", required_argument, NULL, 'o'}, {"in-place", no_argument, NULL, OPT_IN_PLACE},                       \
		{"force", no_argument, NULL, 'f'}, {"threads", required_argument, NULL, 'j'},                          \
		{"reflink", no_argument, NULL, OPT_REFLINK}, {"cpu", required_argument, NULL, OPT_CPU},                \
		{"json", no_argument, NULL, OPT_JSON}, {"quiet", no_argument, NULL, 'q'},                              \
		{"verbose", no_argument, NULL, 'v'}, COMMON_OPTIONS
#define TRANSFER_SHORT_OPTIONS "o:fj:qvhV"

/* Take one of them. false: a message was printed. */
bool transfer_option(const struct command *self, int c, struct transfer_opts *opts, bool *in_place) MUST_CHECK;
/* After the options: check them and the nr arguments, and run. Returns the exit status. */
int transfer_start(const struct command *self, int nr, char **arguments, bool in_place, const struct transfer_ops *ops,
		   struct transfer_opts *opts);

#endif
