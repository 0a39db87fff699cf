/* cmd_estimate.c - weightfs estimate: what published ideas and weightfs would make of a file or a tree. */
#include "commands.h"
#include "estimate.h"
#include "tree_links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_SAMPLE = 256, OPT_LEVEL, OPT_CPU, OPT_JSON };

static const struct option options[] = {
	{"threads", required_argument, NULL, 'j'},     {"sample", required_argument, NULL, OPT_SAMPLE},
	{"level", required_argument, NULL, OPT_LEVEL}, {"cpu", required_argument, NULL, OPT_CPU},
	{"json", no_argument, NULL, OPT_JSON},	       COMMON_OPTIONS,
};

struct run {
	const char *path;
	struct estimate_opts opts;
	struct estimate estimate;
	uint64_t nr_containers, nr_failed;
};

/* file: beneath the path, or NULL for it itself. */
static void failure(struct run *r, const char *file, const char *reason)
{
	progress_clear(r->opts.progress);
	msg("estimate: %s%s%s: %s", r->path, file ? "/" : "", file ? file : "", reason);
	r->nr_failed++;
}

static void walk_error(void *ctx, const char *path, int sys_errno)
{
	failure(ctx, path, strerror(sys_errno));
}

static bool is_container(int fd, const char *path)
{
	struct wfs_head head;
	return container_path(path) && wfs_head_read_suffixed(fd, &head, NULL) != WFS_NOT_CONTAINER;
}

static void take_file(struct run *r, int fd, const char *file, uint64_t raw_len)
{
	struct wfs_error err = {0};
	char reason[REASON_BYTES];
	if (estimate_file(fd, raw_len, file, &r->opts, &r->estimate, &err))
		return;
	wfs_reason(reason, NULL, &err);
	failure(r, file, reason);
}

static void take_entry(struct run *r, int root_fd, const struct tree_entry *entry)
{
	const char *name;
	struct stat st;
	int dir_fd, fd = tree_open_path(root_fd, entry->path, &dir_fd, &name);
	if (fd < 0 || fstat(fd, &st)) {
		failure(r, entry->path, strerror(errno));
	} else if (is_container(fd, name)) {
		r->nr_containers++;
		estimate_plain(&r->estimate, (uint64_t)st.st_size);
	} else {
		take_file(r, fd, entry->path, (uint64_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	if (dir_fd >= 0)
		close(dir_fd);
}

/* A tree without files is a mistake, or a snapshot whose files are elsewhere. */
static void check_links(struct run *r, const struct tree *tree)
{
	struct tree_links links;
	char *dir, *reason;
	tree_links_count(tree, &links);
	if (links.nr_files || !links.example)
		return;
	dir = tree_links_source(r->path, links.example);
	reason = dir ? xasprintf("holds only symbolic links to files elsewhere: name %s", dir)
		     : xstrdup("holds only broken symbolic links");
	failure(r, NULL, reason);
	free(reason);
	free(dir);
}

static void start_progress(struct run *r, uint64_t raw_len, bool json)
{
	/* Read once to count and once to encode. */
	if (!json)
		r->opts.progress = progress_new("estimating", 2 * raw_len, 2);
}

static void run_tree(struct run *r, int root_fd, bool json)
{
	struct tree tree;
	uint64_t raw_len = 0;
	tree_walk(root_fd, &tree, walk_error, r);
	check_links(r, &tree);
	for (size_t i = 0; i < tree.nr; i++)
		if (S_ISREG(tree.entry[i].st.st_mode) && tree.entry[i].first_link == i)
			raw_len += (uint64_t)tree.entry[i].st.st_size;
	start_progress(r, raw_len, json);
	for (size_t i = 0; i < tree.nr; i++)
		if (S_ISREG(tree.entry[i].st.st_mode) && tree.entry[i].first_link == i)
			take_entry(r, root_fd, &tree.entry[i]);
	tree_free(&tree);
}

/* false: nothing could be counted. */
static bool run(struct run *r, bool json)
{
	struct stat st;
	int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool ok = false;
	if (fd < 0 || fstat(fd, &st)) {
		failure(r, NULL, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		run_tree(r, fd, json);
		ok = r->estimate.nr_files || !r->nr_failed;
	} else if (!S_ISREG(st.st_mode)) {
		failure(r, NULL, "is neither a file nor a directory");
	} else if (is_container(fd, r->path)) {
		failure(r, NULL, "is a weightfs container: name its original, which a mount shows");
	} else {
		start_progress(r, (uint64_t)st.st_size, json);
		take_file(r, fd, NULL, (uint64_t)st.st_size);
		ok = !r->nr_failed;
	}
	if (fd >= 0)
		close(fd);
	progress_free(r->opts.progress);
	return ok;
}

/* One option. false: a message was printed. */
static bool take_option(int c, struct estimate_opts *opts, bool *json)
{
	switch (c) {
	case 'j':
		return parse_threads("estimate", optarg, &opts->nr_threads);
	case OPT_SAMPLE:
		if (parse_number(optarg, 1 << 20, UINT64_C(1) << 40, true, &opts->sample_bytes)) {
			opts->sample_bytes = MAX(opts->sample_bytes, ESTIMATE_MIN_SAMPLE_BYTES);
			return true;
		}
		msg("estimate: '%s' is not a size (1M to 1T)", optarg);
		return false;
	case OPT_LEVEL:
		return parse_level("estimate", optarg, &opts->level);
	case OPT_CPU:
		return parse_cpu("estimate", optarg, &opts->cpu);
	default:
		return *json = true;
	}
}

int cmd_estimate(const struct command *self, int argc, char **argv)
{
	struct run r = {.opts.nr_threads = nr_processors()};
	double started = seconds_now();
	struct zstd *zstd;
	bool json = false;
	int c;
	while ((c = getopt_long(argc, argv, "j:hV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(c, &r.opts, &json))
			return EXIT_USAGE;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	r.path = argv[optind];
	r.opts.zstd = zstd = zstd_load();
	if (run(&r, json)) {
		const struct estimate_report report = {.path = r.path,
						       .e = &r.estimate,
						       .opts = &r.opts,
						       .nr_containers = r.nr_containers,
						       .nr_failed = r.nr_failed,
						       .seconds = seconds_now() - started};
		if (json)
			estimate_print_json(&report);
		else
			estimate_print(&report);
	}
	zstd_free(zstd);
	return close_stdout() && !r.nr_failed ? EXIT_OK : EXIT_FAILED;
}
