/* tree.c - a directory tree as a list, walked breadth first, one component at a time, so that paths may be longer than
 * the kernel takes at once. Each path is held whole and walked from the root again for each file, which a chain of tens
 * of thousands of directories makes quadratic: the depth has a limit.
 */
#include "tree.h"

#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tree_open_parent(int root_fd, const char *path, const char **name_ret)
{
	int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *slash;
	while (fd >= 0 && (slash = strchr(path, '/'))) {
		char component[NAME_MAX + 1];
		size_t len = (size_t)(slash - path);
		int next = -1;
		if (len <= NAME_MAX) {
			memcpy(component, path, len);
			component[len] = '\0';
			next = openat(fd, component, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		} else {
			errno = ENAMETOOLONG;
		}
		int sys_errno = errno;
		close(fd);
		errno = sys_errno;
		fd = next;
		path = slash + 1;
	}
	*name_ret = path;
	return fd;
}

int tree_open_dir(int root_fd, const char *path)
{
	const char *name;
	int parent = tree_open_parent(root_fd, path, &name), fd, sys_errno;
	if (parent < 0 || !*name)
		return parent;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	sys_errno = errno;
	close(parent);
	errno = sys_errno;
	return fd;
}

int tree_open_file(int dir_fd, const char *name)
{
	struct stat st;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

int tree_open_path(int root_fd, const char *path, int *dir_fd_ret, const char **name_ret)
{
	int dir_fd = tree_open_parent(root_fd, path, name_ret), fd, sys_errno;
	*dir_fd_ret = -1;
	if (dir_fd < 0)
		return -1;
	fd = tree_open_file(dir_fd, *name_ret);
	if (fd >= 0) {
		*dir_fd_ret = dir_fd;
		return fd;
	}
	sys_errno = errno;
	close(dir_fd);
	errno = sys_errno;
	return -1;
}

/* Directories above an entry, to the limit. */
static bool is_too_deep(const char *path)
{
	size_t depth = 0;
	for (const char *c = path; *c && depth < TREE_MAX_DEPTH; c++)
		depth += *c == '/';
	return depth == TREE_MAX_DEPTH;
}

static size_t add_entry(struct tree *tree, char *path, const struct stat *st, size_t parent)
{
	/* Grows by doubling: the array is full whenever nr is a power of two. */
	if ((tree->nr & (tree->nr - 1)) == 0)
		tree->entry = xrealloc(tree->entry, tree->nr ? 2 * tree->nr : 1, sizeof(*tree->entry));
	tree->entry[tree->nr] = (struct tree_entry){
		.path = path, .st = *st, .parent = parent, .first_link = tree->nr, .next_link = TREE_NONE};
	return tree->nr++;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, sorted; the caller frees each and the array. */
static int read_names(int dir_fd, char ***names_ret, size_t *nr_ret)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	char **names = NULL;
	size_t nr = 0;
	if (!dir) {
		ret = errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	/* cppcheck-suppress readdirCalled ; no other thread has this stream */
	while (errno = 0, (d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if ((nr & (nr - 1)) == 0)
			names = xrealloc(names, nr ? 2 * nr : 1, sizeof(*names));
		names[nr++] = xstrdup(d->d_name);
	}
	ret = errno;
	closedir(dir);
	if (nr)
		qsort(names, nr, sizeof(*names), compare_names);
	*names_ret = names;
	*nr_ret = nr;
	return ret;
}

static char *read_link(int dir_fd, const char *name, const struct stat *st)
{
	/* st_size may be 0 (procfs) or change meanwhile: no link is longer than PATH_MAX. */
	size_t room = (st->st_size > 0 ? (size_t)st->st_size : PATH_MAX) + 1;
	char *text = xcalloc(1, room);
	ssize_t len = readlinkat(dir_fd, name, text, room);
	if (len < 0 || (size_t)len >= room) {
		errno = len < 0 ? errno : EAGAIN;
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

struct walk {
	struct tree *tree;
	bool temporaries; /* are listed */
	tree_error_fn error;
	void *ctx;
};

static void walk_name(const struct walk *w, size_t parent, int dir_fd, const char *name)
{
	struct tree *tree = w->tree;
	const char *base = tree->entry[parent].path;
	char *path = *base ? xasprintf("%s/%s", base, name) : xstrdup(name), *target = NULL;
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    (S_ISLNK(st.st_mode) && !(target = read_link(dir_fd, name, &st)))) {
		/* Temporaries go at any time. */
		if (errno != ENOENT || !wfs_temporary_name(name))
			w->error(w->ctx, path, errno);
		free(path);
		return;
	}
	if (!w->temporaries && wfs_is_temporary(name, st.st_mode)) {
		free(target);
		free(path);
		return;
	}
	size_t i = add_entry(tree, path, &st, parent); /* moves the array */
	tree->entry[i].link_target = target;
}

static void walk_dir(const struct walk *w, int root_fd, size_t i)
{
	const char *path = w->tree->entry[i].path; /* stays where it is when the array moves */
	char **names = NULL;
	size_t nr = 0;
	int dir_fd, ret;
	if (is_too_deep(path)) {
		w->error(w->ctx, path, ENAMETOOLONG);
		return;
	}
	dir_fd = tree_open_dir(root_fd, path);
	ret = dir_fd < 0 ? errno : read_names(dir_fd, &names, &nr);
	if (ret)
		w->error(w->ctx, *path ? path : ".", ret);
	for (size_t n = 0; n < nr; n++) {
		walk_name(w, i, dir_fd, names[n]);
		free(names[n]);
	}
	free(names);
	if (dir_fd >= 0)
		close(dir_fd);
}

struct inode_ref {
	dev_t dev;
	ino_t ino;
	size_t entry;
};

static int compare_inodes(const void *a, const void *b)
{
	const struct inode_ref *x = a, *y = b;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->entry < y->entry ? -1 : 1;
}

static void chain_links(struct tree *tree)
{
	struct inode_ref *ref = xcalloc(tree->nr, sizeof(*ref));
	size_t nr = 0;
	for (size_t i = 0; i < tree->nr; i++)
		if (S_ISREG(tree->entry[i].st.st_mode) && tree->entry[i].st.st_nlink > 1)
			ref[nr++] = (struct inode_ref){tree->entry[i].st.st_dev, tree->entry[i].st.st_ino, i};
	qsort(ref, nr, sizeof(*ref), compare_inodes);
	for (size_t r = 1; r < nr; r++) {
		if (ref[r].dev != ref[r - 1].dev || ref[r].ino != ref[r - 1].ino)
			continue;
		tree->entry[ref[r].entry].first_link = tree->entry[ref[r - 1].entry].first_link;
		tree->entry[ref[r - 1].entry].next_link = ref[r].entry;
	}
	free(ref);
}

static void walk(int root_fd, bool temporaries, struct tree *tree_ret, tree_error_fn error, void *ctx)
{
	struct tree tree = {0};
	const struct walk w = {&tree, temporaries, error, ctx};
	struct stat st = {0};
	if (fstat(root_fd, &st))
		error(ctx, ".", errno);
	add_entry(&tree, xstrdup(""), &st, TREE_NONE);
	for (size_t i = 0; i < tree.nr; i++)
		if (S_ISDIR(tree.entry[i].st.st_mode))
			walk_dir(&w, root_fd, i);
	chain_links(&tree);
	*tree_ret = tree;
}

void tree_walk(int root_fd, struct tree *tree_ret, tree_error_fn error, void *ctx)
{
	walk(root_fd, false, tree_ret, error, ctx);
}

void tree_walk_all(int root_fd, struct tree *tree_ret, tree_error_fn error, void *ctx)
{
	walk(root_fd, true, tree_ret, error, ctx);
}

bool tree_entry_is_temporary(const struct tree_entry *e)
{
	const char *slash = strrchr(e->path, '/');
	return wfs_is_temporary(slash ? slash + 1 : e->path, e->st.st_mode);
}

int tree_single(int root_fd, const char *name, struct tree *tree_ret)
{
	struct tree tree = {0};
	struct stat st;
	if (fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno;
	add_entry(&tree, xstrdup(name), &st, TREE_NONE);
	*tree_ret = tree;
	return 0;
}

void tree_free(struct tree *tree)
{
	for (size_t i = 0; i < tree->nr; i++) {
		free(tree->entry[i].path);
		free(tree->entry[i].link_target);
	}
	free(tree->entry);
	*tree = (struct tree){0};
}
