/* cmd_info.c - weightfs info: what a container holds and what it costs, by dtype, coding and tensor; of a tree, sums.
 */
#include "commands.h"
#include "info.h"
#include "mounted.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_TENSORS = 256, OPT_JSON };

static const struct option options[] = {
	{"tensors", no_argument, NULL, OPT_TENSORS}, {"json", no_argument, NULL, OPT_JSON}, COMMON_OPTIONS};

struct store {
	const char *path;
	uint64_t nr_containers, nr_damaged, nr_others, nr_symlinks, nr_directories;
	uint64_t raw_bytes, stored_bytes, other_bytes;
	bool failed;
};

static void walk_error(void *ctx, const char *path, int sys_errno)
{
	struct store *s = ctx;
	msg("info: %s/%s: %s", s->path, path, strerror(sys_errno));
	s->failed = true;
}

static void add_file(struct store *s, int root_fd, const struct tree_entry *e)
{
	const char *name;
	struct wfs_head head;
	struct wfs_error err = {.status = WFS_NOT_CONTAINER};
	char reason[REASON_BYTES];
	int dir_fd = tree_open_parent(root_fd, e->path, &name), fd = -1;
	if (dir_fd >= 0 && container_name(name, NULL)) {
		fd = tree_open_file(dir_fd, name);
		if (fd < 0)
			walk_error(s, e->path, errno);
		else if (wfs_head_read_suffixed(fd, &head, &err) == WFS_OK)
			err = (uint64_t)e->st.st_size >= head.file_len
				      ? (struct wfs_error){.status = WFS_OK}
				      : (struct wfs_error){WFS_BAD_DATA, 0, WFS_NO_BLOCK, "the container is cut short"};
	}
	if (err.status == WFS_OK) {
		s->nr_containers++;
		s->raw_bytes += head.raw_len;
		s->stored_bytes += (uint64_t)e->st.st_size;
	} else if (err.status == WFS_NOT_CONTAINER) {
		s->nr_others++;
		s->other_bytes += (uint64_t)e->st.st_size;
	} else {
		wfs_reason(reason, NULL, &err);
		msg("info: %s/%s: %s", s->path, e->path, reason);
		s->nr_damaged++;
		s->failed = true;
	}
	if (fd >= 0)
		close(fd);
	if (dir_fd >= 0)
		close(dir_fd);
}

static void print_store_json(const struct store *s)
{
	struct json j;
	json_init(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "path", s->path);
	json_uint(&j, "containers", s->nr_containers);
	json_uint(&j, "damaged", s->nr_damaged);
	json_uint(&j, "other_files", s->nr_others);
	json_uint(&j, "symlinks", s->nr_symlinks);
	json_uint(&j, "directories", s->nr_directories);
	json_uint(&j, "raw_bytes", s->raw_bytes);
	json_uint(&j, "stored_bytes", s->stored_bytes);
	json_uint(&j, "other_bytes", s->other_bytes);
	json_real(&j, "saved_percent", saved_percent(s->raw_bytes, s->stored_bytes), 4);
	json_end(&j);
}

static void print_store(const struct store *s)
{
	char raw[SIZE_TEXT_BYTES], stored[SIZE_TEXT_BYTES], other[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES];
	char saved[SAVED_TEXT_BYTES];
	out_line("%s", s->path);
	printf("  containers   %llu: %s stored as %s, %s\n", (unsigned long long)s->nr_containers,
	       size_text(raw, s->raw_bytes), size_text(stored, s->stored_bytes),
	       saved_text(saved, s->raw_bytes, s->stored_bytes, 2));
	if (s->nr_damaged)
		printf("  damaged      %llu\n", (unsigned long long)s->nr_damaged);
	printf("  other files  %llu: %s\n", (unsigned long long)s->nr_others, size_text(other, s->other_bytes));
	printf("  links, dirs  %llu, %llu\n", (unsigned long long)s->nr_symlinks,
	       (unsigned long long)s->nr_directories);
	printf("  in all       %s saved, %.2f %%\n",
	       size_text(all, s->raw_bytes > s->stored_bytes ? s->raw_bytes - s->stored_bytes : 0),
	       saved_percent(s->raw_bytes + s->other_bytes, s->stored_bytes + s->other_bytes));
}

static bool info_store(const char *path, int root_fd, bool json)
{
	struct store s = {.path = path};
	struct tree tree;
	tree_walk(root_fd, &tree, walk_error, &s);
	for (size_t i = 0; i < tree.nr; i++) {
		mode_t mode = tree.entry[i].st.st_mode;
		if (S_ISREG(mode) && tree.entry[i].first_link == i)
			add_file(&s, root_fd, &tree.entry[i]);
		s.nr_symlinks += S_ISLNK(mode);
		s.nr_directories += S_ISDIR(mode);
	}
	tree_free(&tree);
	if (!s.nr_containers && !s.nr_damaged && in_weightfs_mount(root_fd)) {
		msg("info: %s: %s", path, in_weightfs_mount_reason);
		return false;
	}
	if (json)
		print_store_json(&s);
	else
		print_store(&s);
	return !s.failed;
}

static bool info_container(const char *path, int fd, const struct info_opts *opts)
{
	const struct wfs_reader_opts reader_opts = {.suffixed = container_path(path)};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	char reason[REASON_BYTES];
	struct info info;
	struct stat st;
	bool ok = false;
	if (fstat(fd, &st)) {
		msg("info: %s: %s", path, strerror(errno));
		return false;
	}
	if (wfs_reader_open(fd, &reader_opts, &reader, &err) != WFS_OK) {
		wfs_reason(reason, NULL, &err);
		msg("info: %s: %s", path,
		    err.status == WFS_NOT_CONTAINER && in_weightfs_mount(fd) ? in_weightfs_mount_reason : reason);
	} else {
		ok = info_collect(&info, path, (uint64_t)st.st_size, reader) && !info.wfs.truncated;
		if (opts->json)
			info_print_json(&info, opts);
		else
			info_print(&info, opts);
		info_free(&info);
	}
	wfs_reader_free(reader);
	return ok;
}

/* The exit status. */
static int run(const char *path, const struct info_opts *opts)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), status = EXIT_FAILED;
	if (fd < 0 || fstat(fd, &st)) {
		msg("info: %s: %s", path, strerror(errno));
	} else if (S_ISDIR(st.st_mode) && opts->tensors) {
		msg("info: --tensors lists those of a container: %s is a directory", path);
		status = EXIT_USAGE;
	} else if (S_ISDIR(st.st_mode)) {
		status = info_store(path, fd, opts->json) ? EXIT_OK : EXIT_FAILED;
	} else if (S_ISREG(st.st_mode)) {
		status = info_container(path, fd, opts) ? EXIT_OK : EXIT_FAILED;
	} else {
		msg("info: %s: is neither a file nor a directory", path);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

int cmd_info(const struct command *self, int argc, char **argv)
{
	struct info_opts opts = {0};
	int c, status;
	while ((c = getopt_long(argc, argv, "hV", options, NULL)) >= 0) {
		if (c == OPT_TENSORS)
			opts.tensors = true;
		else if (c == OPT_JSON)
			opts.json = true;
		else
			return common_option(self, c);
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	status = run(argv[optind], &opts);
	return close_stdout() ? status : EXIT_FAILED;
}
