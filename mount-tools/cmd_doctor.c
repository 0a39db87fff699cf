/* cmd_doctor.c - weightfs doctor: how a mount does, and what would make it better. */
#include "commands.h"
#include "doctor.h"
#include "json_in.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON = 256, BAR_CHARS = 30, COUNT_TEXT_BYTES = 64 };

static const struct option options[] = {{"json", no_argument, NULL, OPT_JSON}, COMMON_OPTIONS};

/* ---- for people ------------------------------------------------------------------------------------------------ */

/* A number of the daemon's document as text; valid until the next one of the same buffer. */
static const char *number_text(char buf[SIZE_TEXT_BYTES], const struct doctor *d, const char *name)
{
	double value = doctor_number(d, name);
	snprintf(buf, SIZE_TEXT_BYTES, value < 0 ? "unknown" : "%.0f", value);
	return buf;
}

/* "3 bad blocks", "1 miss", "unknown hits". */
static const char *count_text(char buf[COUNT_TEXT_BYTES], const struct doctor *d, const char *name, const char *noun)
{
	char number[SIZE_TEXT_BYTES];
	uint64_t nr = doctor_number(d, name) == 1 ? 1 : 2; /* as far as grammar goes */
	snprintf(buf, COUNT_TEXT_BYTES, "%s %s%s", number_text(number, d, name), noun,
		 noun[strlen(noun) - 1] == 's' ? plural_es(nr) : plural(nr));
	return buf;
}

static const char *bytes_text(char buf[SIZE_TEXT_BYTES], const struct doctor *d, const char *name)
{
	double value = doctor_number(d, name);
	return value < 0 ? number_text(buf, d, name) : size_text(buf, (uint64_t)value);
}

static void print_daemon(const struct doctor *d)
{
	char *store = json_text(json_member(d->stats, "store")), *fs = json_text(json_member(d->stats, "store_fs"));
	char *direct = json_text(json_member(d->stats, "store_direct"));
	char *cpu = json_text(json_member(d->stats, "cpu")), *best = json_text(json_member(d->stats, "cpu_best"));
	char *version = json_text(json_member(d->stats, "version"));
	char a[COUNT_TEXT_BYTES], b[COUNT_TEXT_BYTES];
	out_line("mount        %s: weightfsd %s, process %s, up for %.0f s", d->mount->point, version,
		 number_text(a, d, "pid"), doctor_number(d, "uptime_seconds"));
	out_line("store        %s, on %s; O_DIRECT reads: %s", store, *fs ? fs : "an unknown file system",
		 !strcmp(direct, "works")     ? "work"
		 : !strcmp(direct, "refused") ? "are refused"
					      : "not tried before a file is opened");
	out_line("decoder      %s, best here %s; %s on %s", cpu, best, count_text(a, d, "threads", "thread"),
		 count_text(b, d, "processors", "processor"));
	free(store);
	free(fs);
	free(direct);
	free(cpu);
	free(best);
	free(version);
}

static void print_kernel(const struct doctor *d)
{
	char a[COUNT_TEXT_BYTES], b[SIZE_TEXT_BYTES], c[COUNT_TEXT_BYTES];
	printf("read-ahead   %s KiB, ", number_text(a, d, "read_ahead_kb"));
	if (doctor_number(d, "read_ahead_kb_wanted") > 0)
		printf("wanted %s\n", number_text(a, d, "read_ahead_kb_wanted"));
	else
		printf("left as it was\n");
	printf("at once      %s, wanted %s; ", count_text(a, d, "max_background", "request"),
	       number_text(b, d, "max_background_wanted"));
	printf("congested from %s, wanted %s%s\n", number_text(a, d, "congestion_threshold"),
	       number_text(b, d, "congestion_threshold_wanted"),
	       doctor_number(d, "max_background") < 0 ? " (the kernel tells where fusectl is mounted)" : "");
	printf("INIT         FUSE 7.%s, reads up to %s, %s a request", number_text(a, d, "fuse_protocol_minor"),
	       bytes_text(b, d, "max_read_bytes"), count_text(c, d, "max_pages", "page"));
	printf(", read-ahead %s\n", bytes_text(a, d, "max_readahead_bytes"));
}

static void print_sizes(const struct doctor *d)
{
	const char *sizes = json_member(d->stats, "request_sizes"), *e;
	char a[COUNT_TEXT_BYTES], b[SIZE_TEXT_BYTES], c[SIZE_TEXT_BYTES];
	double most = 0, limit = 0;
	printf("requests     %s, %s failed, %s served\n", count_text(a, d, "reads", "read"),
	       number_text(b, d, "read_errors"), bytes_text(c, d, "bytes_served"));
	for (size_t i = 0; (e = json_element(sizes, i)); i++)
		most = MAX(most, json_number_or(json_member(e, "reads"), 0));
	for (size_t i = 0; (e = json_element(sizes, i)); i++) {
		double up_to = json_number_or(json_member(e, "up_to"), -1);
		double reads = json_number_or(json_member(e, "reads"), 0);
		int bar = most > 0 ? (int)(reads / most * BAR_CHARS + 0.5) : 0;
		limit = MAX(limit, up_to);
		if (reads > 0)
			printf("  %s %5.0f KiB %9.0f %.*s\n", up_to < 0 ? "above" : "up to", limit / 1024, reads, bar,
			       "##############################");
	}
}

static void print_blocks(const struct doctor *d)
{
	char a[COUNT_TEXT_BYTES], b[COUNT_TEXT_BYTES], c[COUNT_TEXT_BYTES];
	printf("cache        %s of %s", bytes_text(a, d, "cache_bytes"), bytes_text(b, d, "cache_cap_bytes"));
	printf(", %s, %s, %s", count_text(a, d, "cache_hits", "hit"), count_text(b, d, "cache_misses", "miss"),
	       count_text(c, d, "cache_evictions", "eviction"));
	printf(", %s above the cap\n", bytes_text(a, d, "cache_overflow_bytes"));
	if (doctor_number(d, "ahead_blocks") >= 0)
		printf("ahead        %s decoded ahead, %s used, %s wasted\n", count_text(a, d, "ahead_blocks", "block"),
		       number_text(b, d, "ahead_used"), number_text(c, d, "ahead_wasted"));
	printf("trouble      %s, %s, %s\n", count_text(a, d, "bad_blocks", "bad block"),
	       count_text(b, d, "bad_files", "bad container"), count_text(c, d, "timeouts", "timeout"));
}

static void print_lines(const struct doctor *d)
{
	if (d->stats) {
		print_daemon(d);
		print_kernel(d);
		print_sizes(d);
		print_blocks(d);
	} else {
		out_line("mount        %s: %s: %s", d->mount->point, mount_state_name(d->state), d->reason);
	}
	printf(d->nr_advice ? "\nwhat to improve\n" : "\nnothing to improve\n");
	for (size_t i = 0; i < d->nr_advice; i++) {
		out_line("* %s:", d->advice[i].what);
		out_line("    %s", d->advice[i].run);
	}
}

/* ---- for machines ---------------------------------------------------------------------------------------------- */

static void print_json(const struct doctor *d)
{
	struct json j;
	json_init(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "command", "doctor");
	json_string(&j, "version", wfs_version());
	json_string(&j, "mount", d->mount->point);
	json_string(&j, "state", mount_state_name(d->state));
	json_string(&j, "reason", d->reason);
	json_raw(&j, "stats", d->stats);
	json_array(&j, "improve");
	for (size_t i = 0; i < d->nr_advice; i++) {
		json_object(&j, NULL);
		json_string(&j, "what", d->advice[i].what);
		json_string(&j, "run", d->advice[i].run);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

int cmd_doctor(const struct command *self, int argc, char **argv)
{
	struct mounted mount;
	struct doctor d;
	bool json = false, ok;
	int c;
	while ((c = getopt_long(argc, argv, "hV", options, NULL)) >= 0) {
		if (c != OPT_JSON)
			return common_option(self, c);
		json = true;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	c = mounted_find(argv[optind], true, &mount);
	if (c || !mounted_is_weightfs(&mount)) {
		msg("doctor: %s: %s", argv[optind], c ? strerror(c) : "no weightfs is mounted there");
		mounted_free(&mount);
		return EXIT_USAGE;
	}
	doctor_examine(&d, &mount);
	(json ? print_json : print_lines)(&d);
	ok = !d.nr_advice;
	doctor_free(&d);
	mounted_free(&mount);
	return close_stdout() && ok ? EXIT_OK : EXIT_FAILED;
}
