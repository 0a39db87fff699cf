/* transfer.c - pack and unpack as a whole: source and destination, the order of work, signals. */
#include "transfer.h"
#include "mounted.h"
#include "squash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

/* Signals that would end us are blocked and looked for, so that no temporary is left; ignored ones stay ignored. */
static void block_signals(struct transfer *t)
{
	sigemptyset(&t->signals);
	for (unsigned i = 0; i < ARRAY_LEN(stop_signals); i++) {
		struct sigaction now;
		if (!sigaction(stop_signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaddset(&t->signals, stop_signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, &t->signals, NULL);
	/* Sent when someone opens a file for writing that we look at (transfer_group.c); it would end us too. */
	signal(SIGIO, SIG_IGN);
	/* Whoever read our report may go away; the work goes on. close_stdout() tells. */
	signal(SIGPIPE, SIG_IGN);
}

bool transfer_stopped(struct transfer *t)
{
	sigset_t pending;
	if (atomic_load(&t->stop) != STOP_NONE)
		return true;
	if (sigpending(&pending))
		return false;
	for (unsigned i = 0; i < ARRAY_LEN(stop_signals); i++)
		if (sigismember(&t->signals, stop_signals[i]) == 1 && sigismember(&pending, stop_signals[i]) == 1)
			atomic_store(&t->stop, STOP_SIGNAL);
	return atomic_load(&t->stop) != STOP_NONE;
}

const char *transfer_hint(struct transfer *t, int fd, int sys_errno)
{
	const char *hint = squash_hint(fd, sys_errno);
	return *hint && !atomic_exchange(&t->hinted, true) ? hint : "";
}

static void walk_error(void *ctx, const char *path, int sys_errno)
{
	struct transfer *t = ctx;
	report_failure(t->report, path, "cannot read: %s%s", strerror(sys_errno),
		       transfer_hint(t, t->src_root, sys_errno));
}

static bool fail(const struct transfer *t, const char *path, const char *what)
{
	msg("%s: %s: %s", t->ops->command, path, what);
	return false;
}

static bool fail_errno(const struct transfer *t, const char *path, int sys_errno)
{
	msg("%s: %s: %s%s", t->ops->command, path, strerror(sys_errno), squash_hint_at(path, sys_errno));
	return false;
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A single file: its directory is the root. A symbolic link is followed to the file, but the link's name counts. */
static bool open_single(struct transfer *t)
{
	const char *source = t->opts->source;
	char *real = realpath(source, NULL), *dir = NULL, *name = NULL;
	bool ok = false;
	int ret;
	struct stat st;
	if (!real) {
		fail_errno(t, source, errno);
		goto out;
	}
	if (t->in_place && !lstat(source, &st) && S_ISLNK(st.st_mode)) {
		msg("%s: %s: is a symbolic link: name the file it leads to, %s", t->ops->command, source, real);
		goto out;
	}
	dir = path_dirname(real);
	name = path_basename(real);
	t->src_root = open_dir(dir);
	ret = t->src_root < 0 ? errno : tree_single(t->src_root, name, &t->tree);
	if (ret) {
		fail_errno(t, source, ret);
		goto out;
	}
	t->single_name = path_basename(source);
	ok = true;
out:
	free(real);
	free(dir);
	free(name);
	return ok;
}

static bool open_source(struct transfer *t)
{
	struct stat st;
	if (stat(t->opts->source, &st))
		return fail_errno(t, t->opts->source, errno);
	if (S_ISREG(st.st_mode)) {
		t->single = true;
		return open_single(t);
	}
	if (!S_ISDIR(st.st_mode))
		return fail(t, t->opts->source, "is neither a file nor a directory");
	t->src_root = open_dir(t->opts->source);
	return t->src_root >= 0 || fail_errno(t, t->opts->source, errno);
}

/* Whether path lies in dir or is it; both are real paths. */
static bool lies_in(const char *path, const char *dir)
{
	size_t len = strlen(dir);
	if (len == 1)
		return true;
	return !strncmp(path, dir, len) && (path[len] == '/' || path[len] == '\0');
}

/* Neither may lie in the other: the walk would meet what it made, or the result would cover the source. */
static bool check_nesting(const struct transfer *t)
{
	char *source = realpath(t->opts->source, NULL), *destination = realpath(t->opts->destination, NULL);
	bool ok = false;
	if (!source || !destination)
		fail_errno(t, source ? t->opts->destination : t->opts->source, errno);
	else if (!strcmp(source, destination))
		fail(t, t->opts->destination, "is the source itself: use --in-place instead of -o");
	else if (lies_in(destination, source))
		fail(t, t->opts->destination, "lies in the source");
	else if (lies_in(source, destination))
		fail(t, t->opts->destination, "holds the source");
	else
		ok = true;
	free(source);
	free(destination);
	return ok;
}

/* Create the destination directory of a tree, durably. */
static bool make_destination(struct transfer *t)
{
	const char *path = t->opts->destination;
	char *parent;
	int fd, ret;
	t->made_destination = !mkdir(path, 0700);
	if (!t->made_destination) {
		struct stat st;
		if (errno != EEXIST)
			return fail_errno(t, path, errno);
		if (stat(path, &st) || !S_ISDIR(st.st_mode))
			return fail(t, path, "is there and is not a directory");
		return true;
	}
	parent = path_dirname(path);
	fd = open_dir(parent);
	ret = fd < 0 ? errno : dir_sync(fd);
	if (fd >= 0)
		close(fd);
	free(parent);
	return !ret || fail_errno(t, path, ret);
}

static bool open_destination(struct transfer *t)
{
	const char *path = t->opts->destination;
	struct stat st;
	bool existed;
	char *dir;
	if (t->in_place) {
		if (in_weightfs_mount(t->src_root))
			return fail(t, t->opts->source, "a weightfs is mounted there: unmount it first");
		t->dst_root = t->src_root;
		return true;
	}
	existed = !stat(path, &st);
	if (!t->single) {
		if (!make_destination(t))
			return false;
		if (!check_nesting(t))
			return false;
	}
	if (!t->single || (existed && S_ISDIR(st.st_mode))) {
		t->dst_root = open_dir(path);
		return t->dst_root >= 0 || fail_errno(t, path, errno);
	}
	if (path[strlen(path) - 1] == '/')
		return fail(t, path, "there is no such directory");
	dir = path_dirname(path);
	t->dst_root = open_dir(dir);
	if (t->dst_root < 0)
		fail_errno(t, dir, errno);
	free(dir);
	t->single_target = path_basename(path);
	return t->dst_root >= 0;
}

static int compare_jobs(const void *a, const void *b, void *in_place)
{
	const struct job *x = a, *y = b;
	bool big_x = x->size >= SMALL_FILE_BYTES, big_y = y->size >= SMALL_FILE_BYTES;
	if (big_x != big_y)
		return big_x ? 1 : -1;
	/* In place each file frees space: on a full disk the small ones make room for the big ones. */
	if (*(const bool *)in_place && x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->entry < y->entry ? -1 : 1;
}

static void plan(struct transfer *t)
{
	uint64_t total_work = 0;
	t->job = xcalloc(t->tree.nr, sizeof(*t->job));
	for (size_t i = 0; i < t->tree.nr; i++) {
		const struct tree_entry *e = &t->tree.entry[i];
		if (!S_ISREG(e->st.st_mode) || e->first_link != i)
			continue;
		t->job[t->nr_jobs] = (struct job){.entry = i, .size = e->st.st_size, .work = t->ops->work(t, e)};
		t->nr_small_jobs += e->st.st_size < SMALL_FILE_BYTES;
		total_work += t->job[t->nr_jobs++].work;
	}
	qsort_r(t->job, t->nr_jobs, sizeof(*t->job), compare_jobs, &t->in_place);
	if (!t->opts->json && !t->opts->quiet)
		t->progress = progress_new(t->ops->gerund, total_work, t->ops->passes);
	report_set_progress(t->report, t->progress);
}

static void run_job(void *ctx, size_t i)
{
	struct transfer *t = ctx;
	transfer_group(t, t->job_offset + i);
}

static void run_files(struct transfer *t)
{
	t->job_offset = 0;
	t->threads_per_job = 1;
	parallel_for(t->nr_small_jobs, MIN(t->opts->nr_threads, (unsigned)MAX_FILES_AT_ONCE), run_job, t);
	t->alone = true;
	t->threads_per_job = t->opts->nr_threads;
	for (size_t i = 0; i < t->nr_small_jobs; i++)
		if (t->job[i].again)
			transfer_group(t, i);
	t->job_offset = t->nr_small_jobs;
	parallel_for(t->nr_jobs - t->nr_small_jobs, 1, run_job, t);
}

static void run_rest(struct transfer *t)
{
	for (size_t i = 0; i < t->tree.nr; i++) {
		const struct tree_entry *e = &t->tree.entry[i];
		struct outcome out = {.action = t->in_place ? ACTION_KEPT : ACTION_IGNORED};
		if (S_ISREG(e->st.st_mode) || S_ISDIR(e->st.st_mode) || S_ISLNK(e->st.st_mode))
			continue;
		if (!t->in_place)
			snprintf(out.note, sizeof(out.note), "left out: neither file, directory nor symbolic link");
		report_add(t->report, e->path, &out);
	}
	if (!t->opts->dry_run)
		transfer_make_symlinks(t);
	if (!t->opts->dry_run && !transfer_stopped(t))
		transfer_finish_directories(t);
	/* Whatever was not fsynced file by file (directories, links, their attributes) is on the disk after this. */
	if (!t->opts->dry_run && !t->in_place && syncfs(t->dst_root))
		report_failure(t->report, t->opts->destination, "cannot sync: %s", strerror(errno));
}

/* Make the directories and remove what dead runs left. false: a failure was reported that ends all. */
static bool prepare(struct transfer *t)
{
	if (t->opts->dry_run)
		return true;
	if (!t->single)
		return transfer_make_directories(t);
	temp_clean(t->dst_root);
	return true;
}

static const char *stop_text(struct transfer *t)
{
	transfer_stopped(t);
	switch (atomic_load(&t->stop)) {
	case STOP_SIGNAL:
		return "interrupted; run it again to go on";
	case STOP_DISK_FULL:
		return "the disk is full; make room and run it again to go on";
	default:
		return NULL;
	}
}

static bool run(struct transfer *t)
{
	const struct report_opts opts = {.command = t->ops->command,
					 .converted = t->ops->converted,
					 .restores = t->ops->restores,
					 .source = t->opts->source,
					 .destination = t->opts->destination,
					 .dry_run = t->opts->dry_run,
					 .json = t->opts->json,
					 .quiet = t->opts->quiet,
					 .verbose = t->opts->verbose};
	if (!open_source(t) || (!t->opts->dry_run && !open_destination(t)))
		return false;
	t->report = report_new(&opts);
	if (!t->single)
		tree_walk(t->src_root, &t->tree, walk_error, t);
	if (!t->ops->check_tree || t->ops->check_tree(t)) {
		t->touched = xcalloc(t->tree.nr, sizeof(*t->touched));
		plan(t);
		if (prepare(t)) {
			run_files(t);
			if (!t->single)
				run_rest(t);
		}
	}
	return report_end(t->report, stop_text(t));
}

/* A failure before anything was written leaves nothing. */
static void remove_empty_destination(const struct transfer *t)
{
	if (t->made_destination)
		rmdir(t->opts->destination);
}

int transfer_run(const struct transfer_ops *ops, const struct transfer_opts *opts)
{
	struct transfer t = {.ops = ops, .opts = opts, .in_place = !opts->destination, .src_root = -1, .dst_root = -1};
	bool ok;
	block_signals(&t);
	ok = run(&t);
	if (!ok)
		remove_empty_destination(&t);
	progress_free(t.progress);
	report_free(t.report);
	tree_free(&t.tree);
	if (t.dst_root >= 0 && t.dst_root != t.src_root)
		close(t.dst_root);
	if (t.src_root >= 0)
		close(t.src_root);
	free(t.single_name);
	free(t.single_target);
	free(t.job);
	free(t.touched);
	ok = close_stdout() && ok;
	/* The signal that stopped us takes its effect now: whoever started us sees that it ended us. */
	pthread_sigmask(SIG_UNBLOCK, &t.signals, NULL);
	return ok ? EXIT_OK : EXIT_FAILED;
}
