/* sign_store.c - keys, and a store as the list of all that lies in it. */
#include "sign.h"
#include "mounted.h"
#include "squash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- keys ---- */

static int key_open(const char *command, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		msg("%s: %s: %s", command, path, strerror(errno));
	return fd;
}

static void key_failed(const char *command, const char *path, const struct wfs_error *err)
{
	msg("%s: %s: %s%s%s", command, path, err->reason, err->status == WFS_IO ? ": " : "",
	    err->status == WFS_IO ? strerror(err->sys_errno) : "");
}

bool public_key_load(const char *command, const char *path, uint8_t key_ret[WFS_PUBLIC_KEY_BYTES])
{
	struct wfs_error err = {0};
	int fd = key_open(command, path);
	bool ok;
	if (fd < 0)
		return false;
	ok = wfs_public_key_read(fd, key_ret, &err) == WFS_OK;
	if (!ok)
		key_failed(command, path, &err);
	close(fd);
	return ok;
}

struct wfs_signing_key *signing_key_load(const char *command, const char *path)
{
	struct wfs_signing_key *key = NULL;
	struct wfs_error err = {0};
	int fd = key_open(command, path);
	if (fd < 0)
		return NULL;
	if (wfs_signing_key_read(fd, &key, &err) != WFS_OK)
		key_failed(command, path, &err);
	close(fd);
	return key;
}

/* ---- the store ---- */

static void walk_error(void *ctx, const char *path, int sys_errno)
{
	struct signed_store *s = ctx;
	msg("%s/%s: %s%s", s->path, path, strerror(sys_errno), squash_hint(s->root_fd, sys_errno));
	s->complete = false;
}

static int compare_entries(const void *a, const void *b, void *ctx)
{
	const struct tree *tree = ctx;
	return strcmp(tree->entry[*(const size_t *)a].path, tree->entry[*(const size_t *)b].path);
}

/* Neither the manifest itself nor a temporary. */
static bool is_signable(const struct tree_entry *e)
{
	return strcmp(e->path, WFS_MANIFEST_NAME) != 0 && !tree_entry_is_temporary(e);
}

static void sort_entries(struct signed_store *s)
{
	s->order = xcalloc(s->tree.nr, sizeof(*s->order));
	for (size_t i = 1; i < s->tree.nr; i++)
		if (is_signable(&s->tree.entry[i]))
			s->order[s->nr++] = i;
	qsort_r(s->order, s->nr, sizeof(*s->order), compare_entries, &s->tree);
}

bool signed_store_open(struct signed_store *s, const char *command, const char *path)
{
	*s = (struct signed_store){.path = path, .complete = true};
	s->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root_fd < 0) {
		int sys_errno = errno;
		msg("%s: %s: %s%s", command, path, strerror(sys_errno), squash_hint_at(path, sys_errno));
		return false;
	}
	if (in_weightfs_mount(s->root_fd)) {
		msg("%s: %s: %s", command, path, in_weightfs_mount_reason);
		close(s->root_fd);
		return false;
	}
	tree_walk_all(s->root_fd, &s->tree, walk_error, s);
	sort_entries(s);
	return true;
}

void signed_store_close(struct signed_store *s)
{
	tree_free(&s->tree);
	free(s->order);
	close(s->root_fd);
}

size_t signed_store_leader(const struct signed_store *s, size_t entry)
{
	const struct tree_entry *e = s->tree.entry;
	bool container = container_path(e[entry].path);
	size_t leader = e[entry].first_link;
	while (leader != entry && (!is_signable(&e[leader]) || container_path(e[leader].path) != container))
		leader = e[leader].next_link;
	return leader;
}

uint64_t signed_store_work(const struct signed_store *s)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->nr; i++) {
		const struct tree_entry *e = &s->tree.entry[s->order[i]];
		struct wfs_head head;
		const char *name;
		int dir_fd, fd = -1;
		if (!S_ISREG(e->st.st_mode))
			continue;
		if (container_path(e->path))
			fd = tree_open_path(s->root_fd, e->path, &dir_fd, &name);
		bytes += fd >= 0 && wfs_head_read(fd, &head, NULL) == WFS_OK ? head.raw_len : (uint64_t)e->st.st_size;
		if (fd >= 0) {
			close(dir_fd);
			close(fd);
		}
	}
	return 2 * bytes;
}

struct files {
	void (*fn)(void *ctx, size_t i, unsigned nr_threads);
	void *ctx;
	const size_t *index;
	unsigned nr_threads;
};

static void run_file(void *ctx, size_t i)
{
	const struct files *f = ctx;
	f->fn(f->ctx, f->index[i], f->nr_threads);
}

void signed_store_for_files(const struct signed_store *s, unsigned nr_threads,
			    void (*fn)(void *ctx, size_t i, unsigned nr_threads), void *ctx)
{
	size_t *index = xcalloc(s->nr + 1, sizeof(*index)), nr_small = 0, nr = 0;
	struct files f = {fn, ctx, index, 1};
	for (int big = 0; big <= 1; big++) {
		for (size_t i = 0; i < s->nr; i++) {
			const struct stat *st = &s->tree.entry[s->order[i]].st;
			if (S_ISREG(st->st_mode) && (st->st_size >= SMALL_FILE_BYTES) == big)
				index[nr++] = i;
		}
		nr_small = big ? nr_small : nr;
	}
	parallel_for(nr_small, MIN(nr_threads, (unsigned)MAX_FILES_AT_ONCE), run_file, &f);
	f.index += nr_small;
	f.nr_threads = nr_threads;
	parallel_for(nr - nr_small, 1, run_file, &f);
	free(index);
}
