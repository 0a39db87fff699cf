/* mount_weightfs.c - mount.weightfs, what mount(8) runs for the type weightfs: `mount.weightfs spec dir [-sfnv] [-o
 * ...]`.
 *
 * It takes out of the options what only fstab and mount(8) understand and becomes the daemon. No shell takes part.
 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dropped[] = {
	"rw",	    "ro",	  "defaults", "auto",	     "noauto",	      "nofail",	    "_netdev",
	"user",	    "nouser",	  "users",    "owner",	     "group",	      "exec",	    "suid",
	"nosuid",   "dev",	  "nodev",    "sync",	     "async",	      "dirsync",    "atime",
	"diratime", "nodiratime", "relatime", "norelatime",  "lazytime",      "nolazytime", "silent",
	"loud",	    "mand",	  "nomand",   "strictatime", "nostrictatime", "iversion",   "noiversion",
	"bootwait", "nobootwait",
};
static const char usage[] = "usage: mount.weightfs STORE MNT [-sfnv] [-o OPTIONS] [-N NAMESPACE] [-t TYPE]";
static const char help[] = "mount a store, as mount(8) and fstab call it; `weightfs mount` is for people.\n\n"
			   "  -o OPTIONS      options of fstab, which are left out, and of weightfsd(8)\n"
			   "  -f              fake: do all but mount\n"
			   "  -v              print the command that is run\n"
			   "  -s, -n, -N, -t  for mount(8): without effect\n"
			   "      --help, --version\n";
static const char *const dropped_prefixes[] = {"x-", "X-", "user=", "comment=", "uhelper=", "helper="};

static bool is_dropped(const char *option)
{
	for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
		if (!strcmp(option, dropped[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(dropped_prefixes); i++)
		if (!strncmp(option, dropped_prefixes[i], strlen(dropped_prefixes[i])))
			return true;
	return false;
}

/* Append to *kept (NULL: nothing yet) what the daemon should see of a list of options. false: a message was printed. */
static bool filter_options(const char *list, char **kept)
{
	char *copy = xstrdup(list), *save = NULL;
	bool ok = true;
	for (char *option = strtok_r(copy, ",", &save); option && ok; option = strtok_r(NULL, ",", &save)) {
		char *longer;
		if (!strcmp(option, "remount")) {
			msg("a mounted weightfs cannot be remounted: unmount it and mount it again");
			ok = false;
		} else if (!is_dropped(option)) {
			longer = *kept ? xasprintf("%s,%s", *kept, option) : xstrdup(option);
			free(*kept);
			*kept = longer;
		}
	}
	free(copy);
	return ok;
}

struct request {
	bool fake, verbose;
	char *kept;
	const char *word[2]; /* spec, dir */
	int nr_words;
};

/* mount(8) puts the options after the words; '+' and '-' as first letter of getopt's string would reorder or stop. */
static bool parse(int argc, char **argv, struct request *r)
{
	int c;
	opterr = 0;
	while ((c = getopt(argc, argv, "-sfnvN:t:o:")) >= 0) {
		if (c == '?') {
			msg("option '-%c' is unknown or lacks its value: %s", optopt, usage);
			return false;
		}
		if (c == 'o' && !filter_options(optarg, &r->kept))
			return false;
		r->fake |= c == 'f';
		r->verbose |= c == 'v';
		if (c != 1)
			continue;
		if (r->nr_words == 2) {
			msg("too many arguments: '%s'", optarg);
			return false;
		}
		r->word[r->nr_words++] = optarg;
	}
	for (; optind < argc && r->nr_words < 2; optind++)
		r->word[r->nr_words++] = argv[optind];
	if (r->nr_words == 2 && optind == argc)
		return true;
	msg("%s", usage);
	return false;
}

int main(int argc, char **argv)
{
	struct request r = {0};
	const char *args[7] = {NULL}, **next = args + 1;
	int status = EXIT_USAGE;
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		printf("%s\n%s", usage, help);
		return close_stdout() ? EXIT_OK : EXIT_FAILED;
	}
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("mount.weightfs %s\n", wfs_version());
		return close_stdout() ? EXIT_OK : EXIT_FAILED;
	}
	if (!parse(argc, argv, &r))
		goto out;
	if (r.kept) {
		*next++ = "-o";
		*next++ = r.kept;
	}
	*next++ = "--";
	*next++ = r.word[0];
	*next = r.word[1];
	if (r.verbose) {
		printf("weightfsd%s%s -- %s %s\n", r.kept ? " -o " : "", r.kept ? r.kept : "", r.word[0], r.word[1]);
		(void)fflush(stdout);
	}
	status = r.fake ? EXIT_OK : exec_daemon(args);
out:
	free(r.kept);
	return status;
}
