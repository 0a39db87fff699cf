/* opts.c - see opts.h. The names are those of weightfsd(8). */
#include "opts.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 1024 }; /* `values` says so, too */

/* What a mount always has. max_read must be the same in op_init. */
#define FIXED_MOUNT_OPTS "ro,nosuid,nodev,default_permissions,fsname=weightfs,subtype=weightfs,max_read=1048576"

enum kind {
	IGNORE, /* means something to mount(8) or fstab, or is what we do anyway */
	PASS,	/* goes to libfuse as it is */
	READ_WRITE,
	ALLOW_OTHER,
	CACHE,
	THREADS,
	CPU,
	ENTRY_TIMEOUT,
	IO_TIMEOUT,
	READ_AHEAD,
	LOG_LEVEL,
	LOG_FILE,
	PUBKEY,
};

static const struct {
	const char *name; /* ends in '=': has a value; in '*': a prefix */
	enum kind kind;
} table[] = {
	{"cache=", CACHE},
	{"threads=", THREADS},
	{"cpu=", CPU},
	{"entry_timeout=", ENTRY_TIMEOUT},
	{"io_timeout=", IO_TIMEOUT},
	{"read_ahead_kb=", READ_AHEAD},
	{"log_level=", LOG_LEVEL},
	{"log=", LOG_FILE},
	{"pubkey=", PUBKEY},
	{"allow_other", ALLOW_OTHER},
	{"allow_root", PASS},
	{"noexec", PASS},
	{"noatime", PASS},
	{"context=", PASS},
	{"fscontext=", PASS},
	{"defcontext=", PASS},
	{"rootcontext=", PASS},
	{"ro", IGNORE},
	{"rw", READ_WRITE},
	{"default_permissions", IGNORE},
	{"fsname=weightfs", IGNORE},
	{"subtype=weightfs", IGNORE},
	{"defaults", IGNORE},
	{"auto", IGNORE},
	{"noauto", IGNORE},
	{"nofail", IGNORE},
	{"_netdev", IGNORE},
	{"user", IGNORE},
	{"user=", IGNORE},
	{"users", IGNORE},
	{"nouser", IGNORE},
	{"owner", IGNORE},
	{"group", IGNORE},
	{"exec", IGNORE},
	{"suid", IGNORE},
	{"nosuid", IGNORE},
	{"dev", IGNORE},
	{"nodev", IGNORE},
	{"sync", IGNORE},
	{"async", IGNORE},
	{"dirsync", IGNORE},
	{"atime", IGNORE},
	{"diratime", IGNORE},
	{"nodiratime", IGNORE},
	{"relatime", IGNORE},
	{"norelatime", IGNORE},
	{"strictatime", IGNORE},
	{"nostrictatime", IGNORE},
	{"lazytime", IGNORE},
	{"nolazytime", IGNORE},
	{"silent", IGNORE},
	{"loud", IGNORE},
	{"comment=", IGNORE},
	{"x-*", IGNORE},
	{"X-*", IGNORE},
};

/* What may be given, for the message about what may not. */
static const char *const values[] = {
	[CACHE] = "16M to 1T",
	[THREADS] = "1 to 1024",
	[CPU] = "auto, scalar, ssse3, avx2, avx512vbmi or neon",
	[ENTRY_TIMEOUT] = "0 to 100000000 seconds",
	[IO_TIMEOUT] = "0 to 86400 seconds",
	[READ_AHEAD] = "0, or 4 to 1048576 KiB",
	[LOG_LEVEL] = "error, warning, info or debug",
	[LOG_FILE] = "an absolute path",
	[PUBKEY] = "the file of a public key",
};

static int __attribute__((format(printf, 1, 2))) usage_error(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("weightfsd: ", stderr);
	vfprintf(stderr, fmt, args);
	fputs(" (see weightfsd --help)\n", stderr);
	va_end(args);
	return 2;
}

/* A decimal number in min..max, with a suffix K, M, G or T when `unit` allows it. */
static bool parse_number(const char *text, bool unit, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const char units[] = "KMGT";
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (unit && *end) {
		const char *u = strchr(units, toupper((unsigned char)*end));
		if (!u)
			return false;
		unsigned shift = 10 * (unsigned)(u - units + 1);
		if (value > UINT64_MAX >> shift)
			return false;
		value <<= shift;
		end++;
	}
	*ret = value;
	return !*end && value >= min && value <= max;
}

static int set_value(struct wfsd_opts *o, enum kind kind, const char *value, const char *text)
{
	uint64_t n = 0;
	bool good = false;
	char *end;
	int found;

	switch (kind) {
	case CACHE:
		good = parse_number(value, true, 16 << 20, (uint64_t)1 << 40, &o->cache_bytes);
		break;
	case THREADS:
		good = parse_number(value, false, 1, MAX_THREADS, &n);
		o->nr_threads = (unsigned)n;
		break;
	case IO_TIMEOUT:
		good = parse_number(value, false, 0, 86400, &n);
		o->io_timeout = (unsigned)n;
		break;
	case READ_AHEAD:
		good = parse_number(value, false, 0, 1 << 20, &n) && (n == 0 || n >= 4); /* a page */
		o->read_ahead_kb = (unsigned)n;
		break;
	case ENTRY_TIMEOUT:
		o->entry_timeout = strtod(value, &end);
		good = isdigit((unsigned char)value[0]) && !*end && o->entry_timeout >= 0 && o->entry_timeout <= 1e8;
		break;
	case CPU:
		found = wfs_cpu_from_name(value);
		if (found >= 0 && !wfs_cpu_supported((enum wfs_cpu)found))
			return usage_error("option '%s': this machine lacks it", text);
		good = found >= 0;
		o->cpu = good ? (enum wfs_cpu)found : WFS_CPU_AUTO;
		break;
	case LOG_LEVEL:
		found = wfsd_level_from_name(value);
		good = found >= 0;
		o->log_level = good ? (enum wfsd_level)found : WFSD_INFO;
		break;
	case PUBKEY:
		free(o->pubkey);
		o->pubkey = strdup(value);
		good = *value && o->pubkey;
		break;
	default:
		free(o->log_file);
		o->log_file = strdup(value);
		good = *value == '/' && o->log_file;
	}
	return good ? 0 : usage_error("option '%s': bad value: use %s", text, values[kind]);
}

static int add_mount_opt(struct wfsd_opts *o, const char *text)
{
	char *longer;
	if (asprintf(&longer, "%s,%s", o->mount_opts, text) < 0)
		return usage_error("out of memory");
	free(o->mount_opts);
	o->mount_opts = longer;
	return 0;
}

static int apply_option(struct wfsd_opts *o, char *text)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *name = table[i].name;
		size_t len = strlen(name);
		bool open_end = name[len - 1] == '=' || name[len - 1] == '*';
		size_t fixed = len - (name[len - 1] == '*');

		if (strncmp(text, name, fixed) || (!open_end && text[len]))
			continue;
		switch (table[i].kind) {
		case IGNORE:
			return 0;
		case READ_WRITE: /* mount(8) adds it when fstab says nothing */
			fputs("weightfsd: option 'rw' has no effect: a mounted weightfs is always read-only\n", stderr);
			return 0;
		case ALLOW_OTHER:
			o->allow_other = true;
			return add_mount_opt(o, text);
		case PASS:
			return add_mount_opt(o, text);
		default:
			return set_value(o, table[i].kind, text + len, text);
		}
	}
	return usage_error("unknown option '%s'", text);
}

/* list: options separated by commas. */
static int apply_list(struct wfsd_opts *o, const char *list)
{
	char *copy = strdup(list), *save = NULL;
	int ret = copy ? 0 : usage_error("out of memory");
	for (char *text = copy ? strtok_r(copy, ",", &save) : NULL; text && !ret; text = strtok_r(NULL, ",", &save))
		ret = apply_option(o, text);
	free(copy);
	return ret;
}

unsigned wfsd_nr_processors(void)
{
	cpu_set_t set;
	long nr = sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);

	if (nr < 1) /* more processors than a cpu_set_t holds */
		nr = sysconf(_SC_NPROCESSORS_ONLN);
	return nr < 1 ? 1 : nr > MAX_THREADS ? MAX_THREADS : (unsigned)nr;
}

/* One word that starts with '-'. *used_ret: whether it took the next word, `next` (NULL at the end), as its value. */
static int parse_flag(struct wfsd_opts *o, const char *arg, const char *next, bool *used_ret)
{
	if (!strcmp(arg, "-h") || !strcmp(arg, "--help")) {
		o->command = WFSD_HELP;
	} else if (!strcmp(arg, "-V") || !strcmp(arg, "--version")) {
		o->command = WFSD_VERSION;
	} else if (!strcmp(arg, "-f")) {
		o->foreground = true;
	} else if (!strcmp(arg, "--stats")) {
		o->command = WFSD_STATS;
	} else if (!strcmp(arg, "--store")) {
		o->command = WFSD_STORE;
	} else if (!strcmp(arg, "--json")) {
		o->json = true;
	} else if (!strncmp(arg, "-o", 2)) {
		*used_ret = !arg[2];
		if (!arg[2] && !next)
			return usage_error("option '-o' needs a value");
		return apply_list(o, arg[2] ? arg + 2 : next);
	} else {
		return usage_error("unknown option '%s'", arg);
	}
	return 0;
}

static int parse_args(int argc, char **argv, struct wfsd_opts *o)
{
	const char *words[2] = {NULL, NULL};
	int nr_words = 0, nr_needed;
	bool options_end = false;

	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		if (!options_end && !strcmp(arg, "--")) {
			options_end = true;
		} else if (!options_end && arg[0] == '-' && arg[1]) {
			bool used = false;
			int ret = parse_flag(o, arg, argv[i + 1], &used);
			if (ret || o->command == WFSD_HELP || o->command == WFSD_VERSION)
				return ret;
			i += used;
		} else if (nr_words == 2) {
			return usage_error("too many arguments: '%s'", arg);
		} else {
			words[nr_words++] = arg;
		}
	}
	nr_needed = o->command == WFSD_MOUNT ? 2 : 1;
	if (nr_words < nr_needed)
		return usage_error(nr_needed == 1 ? "missing mount point" : "missing store or mount point");
	if (nr_words > nr_needed)
		return usage_error("too many arguments: '%s'", words[1]);
	if (o->json && o->command != WFSD_STATS)
		return usage_error("option '--json' goes with --stats");
	o->store = nr_needed == 2 ? words[0] : NULL;
	o->mountpoint = words[nr_needed - 1];
	return 0;
}

int wfsd_opts_parse(int argc, char **argv, struct wfsd_opts *o)
{
	int ret;

	*o = (struct wfsd_opts){
		.command = WFSD_MOUNT,
		.cache_bytes = 256 << 20,
		.nr_threads = wfsd_nr_processors(),
		.cpu = WFS_CPU_AUTO,
		.entry_timeout = 1.0,
		.io_timeout = 60,
		.read_ahead_kb = 2048,
		.log_level = WFSD_INFO,
		.mount_opts = strdup(FIXED_MOUNT_OPTS),
	};
	if (!o->mount_opts)
		return usage_error("out of memory");
	ret = parse_args(argc, argv, o);
	if (ret)
		wfsd_opts_free(o);
	return ret;
}

void wfsd_opts_free(struct wfsd_opts *o)
{
	free(o->mount_opts);
	free(o->log_file);
	free(o->pubkey);
	o->mount_opts = NULL;
	o->log_file = NULL;
	o->pubkey = NULL;
}

void wfsd_opts_help(void)
{
	fputs("usage: weightfsd STORE MOUNTPOINT [-f] [-o OPTION,...]\n"
	      "       weightfsd --stats MOUNTPOINT [--json]\n"
	      "       weightfsd --store MOUNTPOINT\n"
	      "Show the weightfs containers below STORE under their original names, read-only.\n"
	      "\n"
	      "  -f                   stay in the foreground, log to stderr\n"
	      "  --stats [--json]     print the counters of a mount\n"
	      "  --store              pass a descriptor of its store over the socket that stdout is\n"
	      "  --version, --help\n"
	      "\n"
	      "Options for -o, besides those of mount(8):\n"
	      "  cache=SIZE           memory for decoded blocks, 16M or more (256M)\n"
	      "  threads=N            threads that decode (one a processor)\n"
	      "  cpu=VARIANT          auto, scalar, ssse3, avx2, avx512vbmi, neon (auto)\n"
	      "  entry_timeout=SEC    how long the kernel may trust a name (1)\n"
	      "  io_timeout=SEC       fail a request that the store does not answer; 0: never (60)\n"
	      "  read_ahead_kb=N      the kernel's read-ahead on the mount; 0: leave it (2048)\n"
	      "  log_level=LEVEL      error, warning, info, debug (info)\n"
	      "  log=FILE             append messages to FILE instead of syslog\n"
	      "  pubkey=FILE          show only what was signed with this key (weightfs sign)\n"
	      "  allow_other          let other users in\n",
	      stdout);
}
