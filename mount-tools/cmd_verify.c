/* cmd_verify.c - weightfs verify and weightfs scrub: prove containers, named ones and all those of a tree. */
#include "commands.h"
#include "scrub.h"
#include "tree.h"
#include "verify_list.h"
#include "verify_manifest.h"
#include "verify_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_FAST = 256, OPT_REPAIR, OPT_CPU, OPT_JSON, OPT_RATE, OPT_MAX_SECONDS, OPT_STATE, OPT_PUBKEY };
enum { MAX_SMALL_WORKERS = 16 };
/* Containers below this are looked at side by side, one thread each; the others one after another by all threads. */
static const off_t small_file_bytes = 8 << 20;
/* Originals from here on take longer than noting in the state that they were begun. */
static const uint64_t long_file_bytes = 64 << 20;
/* Times --max-seconds that one container may take. */
static const double max_patience = 10;

#define SHARED_OPTIONS                                                                                                 \
	{"fast", no_argument, NULL, OPT_FAST}, {"repair", no_argument, NULL, OPT_REPAIR},                              \
		{"threads", required_argument, NULL, 'j'}, {"cpu", required_argument, NULL, OPT_CPU},                  \
		{"json", no_argument, NULL, OPT_JSON}, {"quiet", no_argument, NULL, 'q'}, COMMON_OPTIONS

static const struct option verify_options[] = {{"pubkey", required_argument, NULL, OPT_PUBKEY}, SHARED_OPTIONS};
static const struct option scrub_options[] = {{"rate", required_argument, NULL, OPT_RATE},
					      {"max-seconds", required_argument, NULL, OPT_MAX_SECONDS},
					      {"state", required_argument, NULL, OPT_STATE},
					      SHARED_OPTIONS};

struct verify {
	const char *command;
	unsigned nr_threads;
	uint64_t rate, max_seconds; /* scrub; 0: no limit */
	const char *state;	    /* scrub; NULL: begin at the beginning each time */
	const char *key_path;	    /* verify; not NULL: by the signed manifest */
	struct verify_opts opts;
	struct verify_report report;
	struct item_list list;
	size_t offset; /* of the items that run now */
	bool resumed;  /* not from the first item on */
};

static void verify_item(void *ctx, size_t i)
{
	struct verify *v = ctx;
	const struct item *item = &v->list.item[v->offset + i];
	struct verify_result *r = xcalloc(1, sizeof(*r));
	const char *name;
	int dir_fd, fd = tree_open_path(item->root_fd, item->path, &dir_fd, &name);
	if (fd < 0) {
		r->verdict = VERDICT_ERROR;
		snprintf(r->reason, sizeof(r->reason), "cannot open: %s", strerror(errno));
	} else {
		verify_container(dir_fd, name, fd, &v->opts, r);
	}
	if (r->verdict == VERDICT_NONE)
		snprintf(r->reason, sizeof(r->reason), "is not a weightfs container");
	/* In a tree an ordinary file may end in ".wfs". */
	if (r->verdict != VERDICT_NONE || item->named)
		verify_report_add(&v->report, item->shown, r);
	else
		verify_report_ordinary(&v->report, item->shown);
	if (fd >= 0) {
		close(fd);
		close(dir_fd);
	}
	verify_result_free(r);
	free(r);
}

static void on_failure(void *ctx, const char *shown, const char *reason)
{
	struct verify *v = ctx;
	struct verify_result r = {.verdict = VERDICT_ERROR};
	snprintf(r.reason, sizeof(r.reason), "%s", reason);
	verify_report_add(&v->report, shown, &r);
}

static void on_news(void *ctx, const char *shown, const char *what)
{
	struct verify *v = ctx;
	verify_report_note(&v->report, shown, what);
}

/* Of the item's original; 0: nobody can tell. */
static uint64_t claimed_bytes(const struct item *item)
{
	const char *name;
	struct wfs_head head;
	int dir_fd, fd = tree_open_path(item->root_fd, item->path, &dir_fd, &name);
	if (fd < 0)
		return 0;
	if (wfs_head_read(fd, &head, NULL) != WFS_OK)
		head.raw_len = 0;
	close(fd);
	close(dir_fd);
	return head.raw_len;
}

static void start_progress(struct verify *v, const char *label, size_t first)
{
	uint64_t total = 0;
	/* Each costs a read of a head, which nobody who sees no progress has to wait for. */
	if (v->report.json || v->report.quiet)
		return;
	for (size_t i = first; i < v->list.nr; i++)
		total += MIN(claimed_bytes(&v->list.item[i]), UINT64_MAX - total);
	v->opts.progress = v->report.progress = progress_new(label, total, 1);
}

/* ---- verify ---------------------------------------------------------------------------------------------------- */

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	bool big_x = x->st.st_size >= small_file_bytes, big_y = y->st.st_size >= small_file_bytes;
	if (big_x != big_y)
		return big_x ? 1 : -1;
	return strcmp(x->shown, y->shown);
}

static void run_verify(struct verify *v)
{
	size_t nr_small = 0;
	if (v->list.nr)
		qsort(v->list.item, v->list.nr, sizeof(*v->list.item), compare_items);
	while (nr_small < v->list.nr && v->list.item[nr_small].st.st_size < small_file_bytes)
		nr_small++;
	start_progress(v, "verifying", 0);
	v->opts.nr_threads = 1;
	parallel_for(nr_small, MIN(v->nr_threads, (unsigned)MAX_SMALL_WORKERS), verify_item, v);
	v->offset = nr_small;
	v->opts.nr_threads = v->nr_threads;
	parallel_for(v->list.nr - nr_small, 1, verify_item, v);
}

/* ---- scrub ----------------------------------------------------------------------------------------------------- */

static int compare_paths(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return strcmp(x->shown, y->shown);
}

static bool find_start(struct verify *v, size_t *first_ret)
{
	char *last = NULL;
	size_t first = 0;
	if (v->state && !scrub_state_read(v->state, &last))
		return false;
	if (v->list.nr)
		qsort(v->list.item, v->list.nr, sizeof(*v->list.item), compare_paths);
	while (last && first < v->list.nr && strcmp(v->list.item[first].shown, last) <= 0)
		first++;
	if (first == v->list.nr)
		first = 0; /* what was behind the last one is gone */
	free(last);
	v->resumed = first > 0;
	*first_ret = first;
	return true;
}

/* One after another in the order of their paths, so that one path tells how far the last run has come. Files may come
 * and go between the runs. The state names a container before it is begun: one that a run does not survive must not be
 * what every run meets first. nr_left_ret: containers that are left for the next run. */
static bool run_scrub(struct verify *v, size_t *nr_left_ret)
{
	static const double save_interval = 1;
	double started = seconds_now(), saved = 0;
	size_t first, i;
	bool ok = true;
	if (!find_start(v, &first))
		return false;
	v->opts.throttle = throttle_new(v->rate);
	v->opts.nr_threads = v->nr_threads;
	if (v->max_seconds)
		v->opts.give_up_at = started + max_patience * (double)v->max_seconds;
	start_progress(v, "scrubbing", first);
	for (i = first; i < v->list.nr; i++) {
		const struct item *item = &v->list.item[i];
		double now = seconds_now();
		if (i > first && v->max_seconds && now - started >= (double)v->max_seconds)
			break;
		if (v->state && (now - saved >= save_interval || claimed_bytes(item) >= long_file_bytes)) {
			ok = scrub_state_write(v->state, item->shown);
			saved = now;
		}
		if (!ok)
			break;
		verify_item(v, i);
	}
	if (ok && v->state)
		ok = scrub_state_write(v->state, i < v->list.nr ? v->list.item[i - 1].shown : NULL);
	*nr_left_ret = v->list.nr - i;
	throttle_free(v->opts.throttle);
	return ok;
}

/* ---- together -------------------------------------------------------------------------------------------------- */

static bool take_size(const char *option, const char *text, bool units, uint64_t *value_ret)
{
	if (parse_number(text, 1, UINT64_MAX, units, value_ret))
		return true;
	msg("scrub: '%s' is not a number for --%s: it is at least 1%s", text, option,
	    units ? ", and k, M, G or T may follow" : "");
	return false;
}

static bool take_option(int c, struct verify *v)
{
	switch (c) {
	case OPT_FAST:
		return v->report.fast = v->opts.fast = true;
	case OPT_REPAIR:
		return v->report.repair = v->opts.repair = true;
	case 'j':
		return parse_threads(v->command, optarg, &v->nr_threads);
	case OPT_CPU:
		return parse_cpu(v->command, optarg, &v->opts.cpu);
	case OPT_JSON:
		return v->report.json = true;
	case OPT_RATE:
		return take_size("rate", optarg, true, &v->rate);
	case OPT_MAX_SECONDS:
		return take_size("max-seconds", optarg, false, &v->max_seconds);
	case OPT_STATE:
		v->state = optarg;
		return true;
	case OPT_PUBKEY:
		v->key_path = optarg;
		return true;
	default:
		return v->report.quiet = true;
	}
}

static bool check_options(const struct verify *v)
{
	if (v->opts.repair && v->opts.fast) {
		msg("%s: --repair needs the whole proof: leave out --fast", v->command);
		return false;
	}
	if (v->opts.repair && v->key_path) {
		msg("%s: --repair and --pubkey exclude each other: repair first", v->command);
		return false;
	}
	if (v->max_seconds && !v->state) {
		msg("scrub: --max-seconds needs --state, or every run would look at the same containers");
		return false;
	}
	return true;
}

static int run(const struct command *self, int argc, char **argv, const struct option *options, bool scrub)
{
	struct verify v = {.command = self->name, .nr_threads = nr_processors()};
	size_t nr_left = 0;
	bool ok = true, nothing;
	int c;
	while ((c = getopt_long(argc, argv, "j:qhV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(c, &v))
			return EXIT_USAGE;
	}
	if (!check_options(&v) || !check_arguments(self, argc - optind, argv + optind, 1, v.key_path ? 1 : -1))
		return EXIT_USAGE;
	if (v.key_path)
		return verify_manifest(argv[optind], &(struct verify_manifest_opts){self->name, v.key_path, v.opts.fast,
										    v.report.json, v.report.quiet,
										    v.nr_threads, v.opts.cpu});
	if (scrub)
		lower_priority();
	v.report.command = self->name;
	verify_report_begin(&v.report);
	v.list.fail = on_failure;
	v.list.tell = on_news;
	v.list.ctx = &v;
	item_list_add(&v.list, argc - optind, argv + optind);
	if (scrub)
		ok = run_scrub(&v, &nr_left);
	else
		run_verify(&v);
	progress_free(v.opts.progress);
	v.report.progress = NULL;
	nothing = ok && !v.resumed && verify_report_is_empty(&v.report);
	ok = verify_report_end(&v.report, nr_left) && ok;
	if (nothing)
		msg("%s: no container was found", self->name);
	item_list_free(&v.list);
	return close_stdout() && ok ? EXIT_OK : EXIT_FAILED;
}

int cmd_verify(const struct command *self, int argc, char **argv)
{
	return run(self, argc, argv, verify_options, false);
}

int cmd_scrub(const struct command *self, int argc, char **argv)
{
	return run(self, argc, argv, scrub_options, true);
}
