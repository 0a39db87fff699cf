/* verify_list.c - see verify_list.h. */
#include "verify_list.h"
#include "mounted.h"
#include "same_file.h"
#include "sha256.h"
#include "store_behind.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Each directory that files are named in keeps a descriptor. */
static void allow_many_files(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Returns fd, or, when it is the directory that was kept last, closes it and returns that. */
static int keep_root(struct item_list *l, int fd)
{
	struct stat st, last;
	if (l->nr_roots && !fstat(fd, &st) && !fstat(l->root[l->nr_roots - 1], &last) && same_inode(&st, &last)) {
		close(fd);
		return l->root[l->nr_roots - 1];
	}
	l->root = xrealloc(l->root, l->nr_roots + 1, sizeof(*l->root));
	l->root[l->nr_roots++] = fd;
	return fd;
}

/* The array is full whenever nr is a power of two. shown is from now on the list's. */
static void add_item(struct item_list *l, int root_fd, const char *path, char *shown, const struct stat *st, bool named)
{
	if ((l->nr & (l->nr - 1)) == 0)
		l->item = xrealloc(l->item, l->nr ? 2 * l->nr : 1, sizeof(*l->item));
	l->item[l->nr++] = (struct item){root_fd, xstrdup(path), shown, *st, named};
}

struct walk_ctx {
	struct item_list *list;
	const char *root;
};

static void walk_error(void *ctx, const char *path, int sys_errno)
{
	const struct walk_ctx *w = ctx;
	char *shown = xasprintf("%s/%s", w->root, path);
	w->list->fail(w->list->ctx, shown, strerror(sys_errno));
	free(shown);
}

static void add_behind(struct item_list *l, const char *path, bool directory);

/* Whether the directory is the root of a weightfs mount within the tree. */
static bool is_mount_root(int root_fd, const struct tree *tree, const struct tree_entry *e)
{
	int fd;
	bool found;
	if (e->parent == TREE_NONE || e->st.st_dev == tree->entry[e->parent].st.st_dev)
		return false;
	fd = tree_open_dir(root_fd, e->path);
	found = fd >= 0 && in_weightfs_mount(fd);
	if (fd >= 0)
		close(fd);
	return found;
}

/* root_fd stays open as long as the list. */
static void add_tree(struct item_list *l, int root_fd, const char *path)
{
	struct walk_ctx ctx = {l, path};
	struct tree tree;
	tree_walk(root_fd, &tree, walk_error, &ctx);
	for (size_t i = 0; i < tree.nr; i++) {
		const struct tree_entry *e = &tree.entry[i];
		const char *slash = strrchr(e->path, '/');
		char *shown = xasprintf("%s/%s", path, e->path);
		if (S_ISREG(e->st.st_mode) && container_name(slash ? slash + 1 : e->path, NULL)) {
			add_item(l, root_fd, e->path, shown, &e->st, false);
			continue;
		}
		if (S_ISDIR(e->st.st_mode) && is_mount_root(root_fd, &tree, e))
			add_behind(l, shown, true);
		free(shown);
	}
	tree_free(&tree);
}

/* What a mount shows as NAME may be the container NAME.wfs of the store. */
static void add_file_behind(struct item_list *l, struct store_behind *b, const char *path)
{
	char *stored = xasprintf("%s.wfs", b->rest);
	const char *name;
	struct stat st;
	int dir_fd = tree_open_parent(b->fd, b->rest, &name);
	bool plain = dir_fd >= 0 && !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
	const char *last = strrchr(stored, '/');
	if (!plain && dir_fd >= 0 && !fstatat(dir_fd, last ? last + 1 : stored, &st, AT_SYMLINK_NOFOLLOW)) {
		add_item(l, keep_root(l, b->fd), stored, xasprintf("%s/%s", b->store, stored), &st, true);
		b->fd = -1;
	} else {
		l->fail(l->ctx, path, "is not a weightfs container");
	}
	if (dir_fd >= 0)
		close(dir_fd);
	free(stored);
}

static void add_dir_behind(struct item_list *l, struct store_behind *b, const char *path)
{
	char *shown = *b->rest ? xasprintf("%s/%s", b->store, b->rest) : xstrdup(b->store), *what;
	int fd = tree_open_dir(b->fd, b->rest);
	if (fd < 0) {
		l->fail(l->ctx, shown, strerror(errno));
	} else {
		what = xasprintf("is a mount of %s: that is what is looked at", shown);
		l->tell(l->ctx, path, what);
		free(what);
		add_tree(l, keep_root(l, fd), shown);
	}
	free(shown);
}

/* path is in a weightfs mount, which shows the originals: look at the store that it stands for. */
static void add_behind(struct item_list *l, const char *path, bool directory)
{
	struct store_behind b;
	char *why = store_behind_find(path, &b);
	if (why) {
		l->fail(l->ctx, path, why);
		free(why);
		return;
	}
	if (directory)
		add_dir_behind(l, &b, path);
	else
		add_file_behind(l, &b, path);
	store_behind_free(&b);
}

static void add_directory(struct item_list *l, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		l->fail(l->ctx, path, strerror(errno));
	} else if (in_weightfs_mount(fd)) {
		close(fd);
		add_behind(l, path, true);
	} else {
		add_tree(l, keep_root(l, fd), path);
	}
}

static void add_file(struct item_list *l, const char *path, const struct stat *st)
{
	char *real = realpath(path, NULL), *dir, *name;
	int fd;
	if (!real) {
		l->fail(l->ctx, path, strerror(errno));
		return;
	}
	dir = path_dirname(real);
	name = path_basename(real);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		l->fail(l->ctx, path, strerror(errno));
	} else if (in_weightfs_mount(fd)) {
		close(fd);
		add_behind(l, path, false);
	} else {
		add_item(l, keep_root(l, fd), name, xstrdup(path), st, true);
	}
	free(real);
	free(dir);
	free(name);
}

/* ---- once each ------------------------------------------------------------------------------------------------- */

static bool names_sha256(const struct item *item, uint8_t digest_ret[SHA256_BYTES])
{
	const char *slash = strrchr(item->path, '/');
	char original[NAME_MAX + 1];
	return container_name(slash ? slash + 1 : item->path, original) && sha256_from_name(original, digest_ret);
}

/* By inode; the named ones first, then the names that say what the file must hold. */
static int compare_inodes(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	uint8_t digest_x[SHA256_BYTES], digest_y[SHA256_BYTES];
	bool sha256_x, sha256_y;
	int order;
	if (x->st.st_dev != y->st.st_dev)
		return x->st.st_dev < y->st.st_dev ? -1 : 1;
	if (x->st.st_ino != y->st.st_ino)
		return x->st.st_ino < y->st.st_ino ? -1 : 1;
	if (x->named != y->named)
		return x->named ? -1 : 1;
	sha256_x = names_sha256(x, digest_x);
	sha256_y = names_sha256(y, digest_y);
	if (sha256_x != sha256_y)
		return sha256_x ? -1 : 1;
	order = sha256_x ? memcmp(digest_x, digest_y, SHA256_BYTES) : 0;
	return order ? order : strcmp(x->shown, y->shown);
}

static void free_item(struct item *item)
{
	free(item->path);
	free(item->shown);
}

/* Whether looking at kept, a file of the same inode or NULL, says all that looking at item would. A name that demands
 * another SHA-256 is a question of its own: at most one of them can be right. */
static bool is_repeated(const struct item *item, const struct item *kept)
{
	uint8_t demanded[SHA256_BYTES], kept_demanded[SHA256_BYTES];
	if (!kept || item->named || !same_inode(&kept->st, &item->st))
		return false;
	return !names_sha256(item, demanded) ||
	       (names_sha256(kept, kept_demanded) && !memcmp(demanded, kept_demanded, SHA256_BYTES));
}

static void drop_repeated(struct item_list *l)
{
	size_t nr = 0;
	if (l->nr)
		qsort(l->item, l->nr, sizeof(*l->item), compare_inodes);
	for (size_t i = 0; i < l->nr; i++) {
		if (is_repeated(&l->item[i], nr ? &l->item[nr - 1] : NULL))
			free_item(&l->item[i]);
		else
			l->item[nr++] = l->item[i];
	}
	l->nr = nr;
}

void item_list_add(struct item_list *list, int nr_paths, char **paths)
{
	allow_many_files();
	for (int i = 0; i < nr_paths; i++) {
		struct stat st;
		if (stat(paths[i], &st))
			list->fail(list->ctx, paths[i], strerror(errno));
		else if (S_ISDIR(st.st_mode))
			add_directory(list, paths[i]);
		else if (S_ISREG(st.st_mode))
			add_file(list, paths[i], &st);
		else
			list->fail(list->ctx, paths[i], "is neither a file nor a directory");
	}
	drop_repeated(list);
}

void item_list_free(struct item_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free_item(&list->item[i]);
	for (size_t i = 0; i < list->nr_roots; i++)
		close(list->root[i]);
	free(list->item);
	free(list->root);
	list->item = NULL;
	list->root = NULL;
	list->nr = list->nr_roots = 0;
}
