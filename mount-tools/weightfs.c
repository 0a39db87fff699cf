/* weightfs.c - the command: finds the subcommand and runs it. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
	{"pack", cmd_pack, "compress a file or a directory tree", "SRC -o DEST | SRC --in-place",
	 "  -o, --output DEST    a tree: the directory that gets its content\n"
	 "                       a file: the container, or a directory for it\n"
	 "      --in-place       replace each file by its container, once that is proven\n"
	 "  -n, --dry-run        estimate by samples, write nothing\n"
	 "  -f, --force          replace what is in the way\n"
	 "  -j, --threads N      threads (default: one a processor)\n"
	 "      --min-saving P   in a tree, pack only files that get P percent smaller (default 3)\n"
	 "      --reflink        share the blocks of files that are only copied, where the file system can\n"
	 "      --hardlink       hard link files that would only be copied\n"
	 "      --level NAME     fast, default or max: see the man page for what each is worth\n"
	 "      --block-size N   64k, 128k, 256k, 512k or 1M; default 256k, with --level max 1M\n"
	 "      --signable       containers as weightfs sign needs them: with the SHA-256 of every block\n"
	 "      --cpu NAME       auto, scalar, ssse3, avx2, avx512vbmi or neon\n"
	 "      --json           one JSON document on stdout\n"
	 "  -q, --quiet          only problems\n"
	 "  -v, --verbose        a line for every file\n"},
	{"unpack", cmd_unpack, "restore what was packed", "SRC -o DEST | SRC --in-place",
	 "  -o, --output DEST    a tree: the directory that gets its content\n"
	 "                       a container: the file, or a directory for it\n"
	 "      --in-place       replace each container by its original\n"
	 "      --keep-going     of a damaged container save what is good, as NAME.partial\n"
	 "  -f, --force          replace what is in the way\n"
	 "  -j, --threads N      threads (default: one a processor)\n"
	 "      --reflink        share the blocks of files that are only copied, where the file system can\n"
	 "      --cpu NAME       auto, scalar, ssse3, avx2, avx512vbmi or neon\n"
	 "      --json           one JSON document on stdout\n"
	 "  -q, --quiet          only problems\n"
	 "  -v, --verbose        a line for every file\n"},
	{"verify", cmd_verify, "prove that containers are whole", "PATH... | --pubkey KEY.pem STORE",
	 "      --fast           check the hash of every block, not the SHA-256 of the whole\n"
	 "      --repair         write a damaged copy of head or metadata anew, from the good one\n"
	 "      --pubkey KEY.pem prove a store by its signed manifest: see weightfs-sign(1)\n"
	 "  -j, --threads N      threads (default: one a processor)\n"
	 "      --cpu NAME       auto, scalar, ssse3, avx2, avx512vbmi or neon\n"
	 "      --json           one JSON document on stdout\n"
	 "  -q, --quiet          only problems\n"},
	{"scrub", cmd_scrub, "verify in the background: at a rate, in parts", "PATH...",
	 "      --rate SIZE      read at most so many stored bytes a second (k, M, G)\n"
	 "      --state FILE     go on where the last run with this file stopped\n"
	 "      --max-seconds N  begin no further container after so long; needs --state\n"
	 "      --fast           check the hash of every block, not the SHA-256 of the whole\n"
	 "      --repair         write a damaged copy of head or metadata anew, from the good one\n"
	 "  -j, --threads N      threads (default: one a processor)\n"
	 "      --cpu NAME       auto, scalar, ssse3, avx2, avx512vbmi or neon\n"
	 "      --json           one JSON document on stdout\n"
	 "  -q, --quiet          only problems\n"},
	{"sign", cmd_sign, "sign all that a store holds", "--key KEY.pem STORE",
	 "      --key KEY.pem    the private key (Ed25519)\n"
	 "  -j, --threads N      threads (default: one a processor)\n"
	 "      --cpu NAME       auto, scalar, ssse3, avx2, avx512vbmi or neon\n"
	 "      --json           one JSON document on stdout\n"
	 "  -q, --quiet          only problems\n"},
	{"info", cmd_info, "show what a container or a store holds", "PATH",
	 "      --tensors        list the tensors\n"
	 "      --json           one JSON document on stdout\n"},
	{"estimate", cmd_estimate, "compare what weightfs and others would save, without writing anything", "PATH",
	 "      --sample SIZE    try weightfs and zstd on so much of each file, 128M at least (default: all)\n"
	 "      --level NAME     of weightfs: fast, default or max\n"
	 "  -j, --threads N      threads (default: one a processor)\n"
	 "      --cpu NAME       auto, scalar, ssse3, avx2, avx512vbmi or neon\n"
	 "      --json           one JSON document on stdout\n"},
	{"cat", cmd_cat, "write the original bytes to standard output", "PATH...",
	 "  -j, --threads N      threads (default: one a processor)\n"
	 "      --cpu NAME       auto, scalar, ssse3, avx2, avx512vbmi or neon\n"},
	{"stats", cmd_stats, "show the counters of a mount", "MNT",
	 "      --json           as the daemon gives them\n"},
	{"doctor", cmd_doctor, "look at a mount and say what to improve", "MNT",
	 "      --json           one JSON document on stdout\n"},
	{"mount", cmd_mount, "mount a store", "STORE MNT",
	 "  -o OPTIONS           mount options, separated by commas: see weightfsd(8)\n"
	 "  -f, --foreground     do not go to the background\n"},
	{"umount", cmd_umount, "unmount a store", "MNT",
	 "  -l, --lazy           take it out of sight now, end it when the last file is closed\n"},
	{"bench", cmd_bench, "measure decoding and encoding speed on a file", "PATH",
	 "      --passes N       passes over the file; the best time of each block counts (default 7)\n"
	 "      --sample SIZE    take blocks of at most so many bytes, evenly spread (default 1G)\n"
	 "      --cpu NAME       only this variant\n"
	 "      --json           one JSON document on stdout\n"},
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int print_help(FILE *out)
{
	fprintf(out, "usage: weightfs COMMAND [OPTIONS] ARGUMENTS\n\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fprintf(out,
		"  %-8s explain a command\n\n"
		"weightfs COMMAND --help lists its options; weightfs(1) and weightfs-COMMAND(1) explain them.\n",
		"help");
	return close_stdout() ? EXIT_OK : EXIT_FAILED;
}

static int print_version(void)
{
	printf("weightfs %s\n", wfs_version());
	return close_stdout() ? EXIT_OK : EXIT_FAILED;
}

static int print_command_help(const struct command *c)
{
	printf("usage: weightfs %s [OPTIONS] %s\n%s.\n\n%s      --help, --version\n", c->name, c->usage, c->summary,
	       c->help);
	return close_stdout() ? EXIT_OK : EXIT_FAILED;
}

int common_option(const struct command *self, int c)
{
	if (c == 'h')
		return print_command_help(self);
	if (c == 'V')
		return print_version();
	return EXIT_USAGE; /* getopt has said why */
}

bool check_arguments(const struct command *self, int nr, char **arguments, int low, int high)
{
	bool empty = false;
	for (int i = 0; i < nr; i++)
		empty |= !*arguments[i];
	if (nr >= low && (high < 0 || nr <= high)) {
		if (empty)
			msg("%s: a path is empty", self->name);
		return !empty;
	}
	msg("%s: %s: usage: weightfs %s [OPTIONS] %s", self->name, nr < low ? "missing argument" : "too many arguments",
	    self->name, self->usage);
	return false;
}

static int help_command(const char *name)
{
	const struct command *c;
	if (!name)
		return print_help(stdout);
	c = find(name);
	if (c)
		return print_command_help(c);
	msg("no command is called '%s': weightfs --help lists them", name);
	return EXIT_USAGE;
}

/* A file opened as descriptor 1 or 2 would get our messages written into it. What is closed gets a descriptor that
 * fails like a closed one. */
static void keep_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(EXIT_FAILED);
}

int main(int argc, char **argv)
{
	const struct command *c;
	int status;
	keep_standard_descriptors();
	/* A file that grows over the limit is an error to report (EFBIG), for the daemon of a mount as well. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		msg("which command? weightfs --help lists them");
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help(stdout);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return print_version();
	if (!strcmp(argv[1], "help"))
		return help_command(argv[2]);
	c = find(argv[1]);
	if (!c) {
		msg("no command is called '%s': weightfs --help lists them", argv[1]);
		return EXIT_USAGE;
	}
	argv[1] = xasprintf("weightfs %s", c->name);
	status = c->run(c, argc - 1, argv + 1);
	free(argv[1]);
	return status;
}
