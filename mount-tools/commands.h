/* commands.h - the commands of weightfs and how they meet the dispatcher. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "util.h"

#include <getopt.h>

struct command {
	const char *name;
	/* argv[0] is "weightfs NAME", so that getopt's messages name the command. Returns the exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
	const char *summary; /* one line */
	const char *usage;   /* arguments after the name */
	const char *help;    /* the options, a line each */
};

int cmd_pack(const struct command *self, int argc, char **argv);
int cmd_unpack(const struct command *self, int argc, char **argv);
int cmd_verify(const struct command *self, int argc, char **argv);
int cmd_sign(const struct command *self, int argc, char **argv);
int cmd_scrub(const struct command *self, int argc, char **argv);
int cmd_info(const struct command *self, int argc, char **argv);
int cmd_cat(const struct command *self, int argc, char **argv);
int cmd_stats(const struct command *self, int argc, char **argv);
int cmd_mount(const struct command *self, int argc, char **argv);
int cmd_umount(const struct command *self, int argc, char **argv);
int cmd_doctor(const struct command *self, int argc, char **argv);
int cmd_estimate(const struct command *self, int argc, char **argv);
int cmd_bench(const struct command *self, int argc, char **argv);

/* What every command's option table ends with, and what it does with them: the exit status. */
#define COMMON_OPTIONS                                                                                                 \
	{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'},                                         \
	{                                                                                                              \
		NULL, 0, NULL, 0                                                                                       \
	}
int common_option(const struct command *self, int c);

/* Whether there are so many arguments after the options, none of them empty: all are paths. If not, a message was
 * printed. high < 0: no limit. */
bool check_arguments(const struct command *self, int nr, char **arguments, int low, int high) MUST_CHECK;

/* Become the daemon: the one beside this program, else the installed one, else the first in PATH. Returns the exit
 * status of the failure; a message was printed. argv[0] is set here. */
int exec_daemon(const char **argv);
/* The same in a process of its own. Returns its exit status; what it writes to stdout and to stderr is for the caller
 * to free. */
int run_daemon(const char **argv, char **out_ret, char **err_ret);
/* The same with a stdout of the caller's. */
int run_daemon_to(int out, const char **argv, char **err_ret);

#endif
