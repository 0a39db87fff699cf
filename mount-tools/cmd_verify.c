/* cmd_verify.c - weightfs verify: prove containers, named ones and all those of a tree. */
#include "commands.h"
#include "json_out.h"
#include "mounted.h"
#include "tree.h"
#include "verify_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_FAST = 256, OPT_CPU, OPT_JSON };
enum { MAX_SMALL_WORKERS = 16 };
/* Containers below this are looked at side by side, one thread each; the others one after another by all threads. */
static const off_t small_file_bytes = 8 << 20;

static const struct option options[] = {
	{"fast", no_argument, NULL, OPT_FAST},	   {"threads", required_argument, NULL, 'j'},
	{"cpu", required_argument, NULL, OPT_CPU}, {"json", no_argument, NULL, OPT_JSON},
	{"quiet", no_argument, NULL, 'q'},	   COMMON_OPTIONS,
};

struct item {
	int root_fd;
	char *path;  /* beneath root_fd */
	char *shown; /* for people */
	off_t size;
	bool named; /* on the command line: must be a container */
};

struct verify {
	bool json, quiet;
	unsigned nr_threads;
	struct verify_opts opts;
	struct item *item; /* small ones first */
	size_t nr_items, nr_small, offset;
	pthread_mutex_t lock;
	/* protected by lock */
	struct json out;
	uint64_t nr[NR_VERDICTS], raw_bytes, stored_bytes;
};

static bool failed(enum verdict verdict)
{
	return verdict != VERDICT_OK;
}

static void print_json(struct verify *v, const char *shown, const struct verify_result *r)
{
	struct json *j = &v->out;
	json_object(j, NULL);
	json_string(j, "path", shown);
	json_string(j, "status", verdict_name(r->verdict));
	json_uint(j, "stored_bytes", r->stored_bytes);
	if (r->head_known) {
		json_uint(j, "raw_bytes", r->head.raw_len);
		json_hex(j, "sha256", r->head.sha256, SHA256_BYTES);
	}
	if (r->reason[0])
		json_string(j, "reason", r->reason);
	if (r->nr_bad_blocks) {
		json_uint(j, "blocks", r->nr_blocks);
		json_uint(j, "damaged_blocks", r->nr_bad_blocks);
		json_array(j, "first_damaged");
		for (uint64_t i = 0; i < MIN(r->nr_bad_blocks, (uint64_t)MAX_LISTED_BAD_BLOCKS); i++) {
			json_object(j, NULL);
			json_uint(j, "block", r->bad_block[i].index);
			json_uint(j, "raw_offset", r->bad_block[i].raw_off);
			json_uint(j, "raw_bytes", r->bad_block[i].raw_len);
			json_string(j, "reason", r->bad_block[i].reason);
			json_end(j);
		}
		json_end(j);
	}
	json_end(j);
}

static void add_result(struct verify *v, const struct item *item, const struct verify_result *r)
{
	pthread_mutex_lock(&v->lock);
	v->nr[r->verdict]++;
	if (r->head_known)
		v->raw_bytes += r->head.raw_len;
	v->stored_bytes += r->stored_bytes;
	if (failed(r->verdict) || !v->json)
		progress_clear(v->opts.progress);
	if (r->verdict == VERDICT_ERROR || r->verdict == VERDICT_NONE)
		msg("%s: %s", item->shown, r->reason);
	else if (failed(r->verdict))
		msg("%s: %s: %s", item->shown, verdict_name(r->verdict), r->reason);
	if (v->json)
		print_json(v, item->shown, r);
	else if (!failed(r->verdict) && !v->quiet)
		out_line("%s: ok", item->shown);
	pthread_mutex_unlock(&v->lock);
}

static void verify_item(void *ctx, size_t i)
{
	struct verify *v = ctx;
	const struct item *item = &v->item[v->offset + i];
	struct verify_result *r = xcalloc(1, sizeof(*r));
	const char *name;
	int dir_fd = tree_open_parent(item->root_fd, item->path, &name);
	int fd = dir_fd < 0 ? -1 : tree_open_file(dir_fd, name);
	if (fd < 0) {
		r->verdict = VERDICT_ERROR;
		snprintf(r->reason, sizeof(r->reason), "cannot open: %s", strerror(errno));
	} else {
		verify_container(fd, name, &v->opts, r);
	}
	if (r->verdict == VERDICT_NONE && item->named)
		snprintf(r->reason, sizeof(r->reason), "%s",
			 in_weightfs_mount(fd) ? in_weightfs_mount_reason : "is not a weightfs container");
	/* In a tree an ordinary file may end in ".wfs". */
	if (r->verdict != VERDICT_NONE || item->named)
		add_result(v, item, r);
	if (fd >= 0)
		close(fd);
	if (dir_fd >= 0)
		close(dir_fd);
	free(r);
}

static void add_item(struct verify *v, int root_fd, const char *path, char *shown, off_t size, bool named)
{
	v->item = xrealloc(v->item, v->nr_items + 1, sizeof(*v->item));
	v->item[v->nr_items++] = (struct item){root_fd, xstrdup(path), shown, size, named};
}

static void add_failure(struct verify *v, const char *shown, const char *reason)
{
	struct verify_result r = {.verdict = VERDICT_ERROR};
	struct item item = {.shown = (char *)shown};
	snprintf(r.reason, sizeof(r.reason), "%s", reason);
	add_result(v, &item, &r);
}

static void add_error(struct verify *v, const char *shown, int sys_errno)
{
	add_failure(v, shown, strerror(sys_errno));
}

struct walk_ctx {
	struct verify *v;
	const char *root;
};

static void walk_error(void *ctx, const char *path, int sys_errno)
{
	const struct walk_ctx *w = ctx;
	char *shown = xasprintf("%s/%s", w->root, path);
	add_error(w->v, shown, sys_errno);
	free(shown);
}

/* Returns the root's descriptor, which must stay open; -1: a failure was noted. */
static int add_tree(struct verify *v, const char *path)
{
	struct walk_ctx ctx = {v, path};
	size_t nr_before = v->nr_items;
	int root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct tree tree;
	if (root_fd < 0) {
		add_error(v, path, errno);
		return -1;
	}
	tree_walk(root_fd, &tree, walk_error, &ctx);
	for (size_t i = 0; i < tree.nr; i++) {
		const struct tree_entry *e = &tree.entry[i];
		const char *slash = strrchr(e->path, '/');
		if (S_ISREG(e->st.st_mode) && e->first_link == i && container_name(slash ? slash + 1 : e->path, NULL))
			add_item(v, root_fd, e->path, xasprintf("%s/%s", path, e->path), e->st.st_size, false);
	}
	tree_free(&tree);
	if (v->nr_items == nr_before && in_weightfs_mount(root_fd))
		add_failure(v, path, in_weightfs_mount_reason);
	return root_fd;
}

static int add_path(struct verify *v, const char *path)
{
	char *real = NULL, *dir, *name;
	struct stat st;
	int fd, sys_errno = stat(path, &st) ? errno : 0;
	if (!sys_errno && S_ISDIR(st.st_mode))
		return add_tree(v, path);
	if (!sys_errno && !S_ISREG(st.st_mode))
		sys_errno = EINVAL;
	else if (!sys_errno && !(real = realpath(path, NULL)))
		sys_errno = errno;
	if (sys_errno) {
		add_error(v, path, sys_errno);
		return -1;
	}
	dir = path_dirname(real);
	name = path_basename(real);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		add_error(v, path, errno);
	else
		add_item(v, fd, name, xstrdup(path), st.st_size, true);
	free(real);
	free(dir);
	free(name);
	return fd;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	bool big_x = x->size >= small_file_bytes, big_y = y->size >= small_file_bytes;
	if (big_x != big_y)
		return big_x ? 1 : -1;
	return strcmp(x->shown, y->shown);
}

static void run(struct verify *v)
{
	uint64_t total = 0;
	if (v->nr_items)
		qsort(v->item, v->nr_items, sizeof(*v->item), compare_items);
	for (size_t i = 0; i < v->nr_items; i++) {
		const char *name;
		struct wfs_head head;
		int dir_fd = tree_open_parent(v->item[i].root_fd, v->item[i].path, &name);
		int fd = dir_fd < 0 ? -1 : tree_open_file(dir_fd, name);
		v->nr_small += v->item[i].size < small_file_bytes;
		if (fd >= 0 && wfs_head_read(fd, &head, NULL) == WFS_OK)
			total += head.raw_len;
		if (fd >= 0)
			close(fd);
		if (dir_fd >= 0)
			close(dir_fd);
	}
	if (!v->json && !v->quiet)
		v->opts.progress = progress_new("verifying", total, 1);
	v->opts.nr_threads = 1;
	parallel_for(v->nr_small, MIN(v->nr_threads, (unsigned)MAX_SMALL_WORKERS), verify_item, v);
	v->offset = v->nr_small;
	v->opts.nr_threads = v->nr_threads;
	parallel_for(v->nr_items - v->nr_small, 1, verify_item, v);
	progress_free(v->opts.progress);
}

static uint64_t nr_failures(const struct verify *v)
{
	uint64_t nr = 0;
	for (enum verdict i = VERDICT_OK; i < NR_VERDICTS; i++)
		nr += failed(i) ? v->nr[i] : 0;
	return nr;
}

static void print_totals(struct verify *v, double seconds)
{
	char raw[SIZE_TEXT_BYTES], stored[SIZE_TEXT_BYTES], rate[SIZE_TEXT_BYTES];
	uint64_t bad = nr_failures(v);
	if (v->json) {
		json_end(&v->out);
		json_object(&v->out, "totals");
		for (enum verdict i = VERDICT_OK; i < VERDICT_NONE; i++)
			json_uint(&v->out, verdict_name(i), v->nr[i]);
		json_uint(&v->out, "not_containers", v->nr[VERDICT_NONE]);
		json_uint(&v->out, "raw_bytes", v->raw_bytes);
		json_uint(&v->out, "stored_bytes", v->stored_bytes);
		json_real(&v->out, "seconds", seconds, 3);
		json_end(&v->out);
		json_end(&v->out);
	} else if (!v->quiet) {
		uint64_t all = v->nr[VERDICT_OK] + bad;
		printf("%llu of %llu container%s %s whole (%s, stored as %s), %.1f s, %s/s\n",
		       (unsigned long long)v->nr[VERDICT_OK], (unsigned long long)all, plural(all), is_or_are(all),
		       size_text(raw, v->raw_bytes), size_text(stored, v->stored_bytes), seconds,
		       size_text(rate, (uint64_t)((double)v->raw_bytes / MAX(seconds, 1e-6))));
	}
}

static bool take_option(int c, struct verify *v)
{
	switch (c) {
	case OPT_FAST:
		return v->opts.fast = true;
	case 'j':
		return parse_threads("verify", optarg, &v->nr_threads);
	case OPT_CPU:
		return parse_cpu("verify", optarg, &v->opts.cpu);
	case OPT_JSON:
		return v->json = true;
	default:
		return v->quiet = true;
	}
}

int cmd_verify(const struct command *self, int argc, char **argv)
{
	struct verify v = {.nr_threads = nr_processors(), .lock = PTHREAD_MUTEX_INITIALIZER};
	double started = seconds_now();
	int c, *root_fd, nr_paths;
	bool ok;
	while ((c = getopt_long(argc, argv, "j:qhV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(c, &v))
			return EXIT_USAGE;
	}
	nr_paths = argc - optind;
	if (!check_arguments(self, nr_paths, argv + optind, 1, -1))
		return EXIT_USAGE;
	if (v.json) {
		json_init(&v.out, stdout);
		json_object(&v.out, NULL);
		json_string(&v.out, "command", "verify");
		json_string(&v.out, "version", wfs_version());
		json_bool(&v.out, "fast", v.opts.fast);
		json_array(&v.out, "files");
	}
	root_fd = xcalloc((size_t)nr_paths, sizeof(*root_fd));
	for (int i = 0; i < nr_paths; i++)
		root_fd[i] = add_path(&v, argv[optind + i]);
	run(&v);
	print_totals(&v, seconds_now() - started);
	ok = !nr_failures(&v);
	for (int i = 0; i < nr_paths; i++)
		if (root_fd[i] >= 0)
			close(root_fd[i]);
	for (size_t i = 0; i < v.nr_items; i++) {
		free(v.item[i].path);
		free(v.item[i].shown);
	}
	free(v.item);
	free(root_fd);
	return close_stdout() && ok ? EXIT_OK : EXIT_FAILED;
}
