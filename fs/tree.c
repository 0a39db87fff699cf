/* tree.c - see tree.h. One lock, held for a few pointers only. */
#include "tree.h"
#include "file.h"
#include "fs.h"
#include "reply.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* Deeper than any path can be (PATH_MAX / 2). Renames in the store, seen in an unlucky order, may make a node its own
 * ancestor until it is looked up again. */
enum { MAX_DEPTH = 2048 };

struct wfsd_tree {
	struct wfsd_node root; /* never freed: refs starts at 1 */
	pthread_mutex_t lock;  /* from here */
	struct wfsd_node **bucket;
	size_t nr_buckets, nr; /* a power of two; nodes without the root */
	uint64_t next_id;
};

struct wfsd_tree *wfsd_tree_new(const struct stat *root_st)
{
	struct wfsd_tree *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->nr_buckets = 1024;
	t->bucket = calloc(t->nr_buckets, sizeof(*t->bucket));
	if (!t->bucket) {
		free(t);
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->root.ident = wfsd_ident_of(root_st, false);
	t->root.refs = t->root.nlookup = 1;
	t->next_id = 1;
	return t;
}

static void node_free(struct wfsd_node *node)
{
	free(node->name);
	free(atomic_load(&node->bad));
	free(node);
}

void wfsd_tree_free(struct wfsd_tree *t)
{
	if (!t)
		return;
	/* The kernel need not forget what it knew before it unmounts. */
	for (size_t i = 0; i < t->nr_buckets; i++)
		while (t->bucket[i]) {
			struct wfsd_node *node = t->bucket[i];
			t->bucket[i] = node->chain;
			node_free(node);
		}
	free(t->bucket);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

struct wfsd_node *wfsd_tree_root(struct wfsd_tree *t)
{
	return &t->root;
}

struct wfsd_node *wfsd_tree_node(struct wfsd_tree *t, uint64_t nodeid)
{
	return nodeid == FUSE_ROOT_ID ? &t->root : (struct wfsd_node *)(uintptr_t)nodeid;
}

uint64_t wfsd_tree_nodeid(struct wfsd_tree *t, const struct wfsd_node *node)
{
	return node == &t->root ? FUSE_ROOT_ID : (uintptr_t)node;
}

/* ---- under the lock -------------------------------------------------------------------------------------------- */

static struct wfsd_node **chain_find(struct wfsd_tree *t, const struct wfsd_ident *ident)
{
	struct wfsd_node **p = &t->bucket[wfsd_ident_ino(ident) & (t->nr_buckets - 1)];
	while (*p && !wfsd_ident_equal(&(*p)->ident, ident))
		p = &(*p)->chain;
	return p;
}

/* Twice the buckets when there is a node a bucket; without memory the chains get longer, nothing else. */
static void grow(struct wfsd_tree *t)
{
	struct wfsd_node **bucket = t->nr < t->nr_buckets ? NULL : calloc(2 * t->nr_buckets, sizeof(*bucket));
	if (!bucket)
		return;
	for (size_t i = 0; i < t->nr_buckets; i++)
		while (t->bucket[i]) {
			struct wfsd_node *node = t->bucket[i];
			size_t j = wfsd_ident_ino(&node->ident) & (2 * t->nr_buckets - 1);
			t->bucket[i] = node->chain;
			node->chain = bucket[j];
			bucket[j] = node;
		}
	free(t->bucket);
	t->bucket = bucket;
	t->nr_buckets *= 2;
}

/* Drop one reference of the node, and of the ancestors that this leaves without any. */
static void unref(struct wfsd_tree *t, struct wfsd_node *node)
{
	while (node && --node->refs == 0) {
		struct wfsd_node *parent = node->parent;
		*chain_find(t, &node->ident) = node->chain;
		t->nr--;
		node_free(node);
		node = parent;
	}
}

/* It was found here: remember the place. Keeps the old place when there is no memory. */
static void move_to(struct wfsd_tree *t, struct wfsd_node *node, struct wfsd_node *parent, const char *name)
{
	if (node->parent == parent && !strcmp(node->name, name))
		return;
	char *copy = strdup(name);
	if (!copy)
		return;
	struct wfsd_node *old = node->parent;
	parent->refs++;
	node->parent = parent;
	free(node->name);
	node->name = copy;
	unref(t, old);
}

static struct wfsd_node *node_new(struct wfsd_tree *t, struct wfsd_node *parent, const struct wfsd_entry *e)
{
	struct wfsd_node *node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->name = strdup(e->stored);
	if (!node->name) {
		free(node);
		return NULL;
	}
	node->ident = e->ident;
	if (e->ident.versioned)
		node->st = e->st;
	node->id = t->next_id++;
	node->parent = parent;
	parent->refs++;
	grow(t);
	struct wfsd_node **p = chain_find(t, &e->ident);
	node->chain = *p;
	*p = node;
	t->nr++;
	return node;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

struct wfsd_node *wfsd_tree_enter(struct wfsd_tree *t, struct wfsd_node *parent, const struct wfsd_entry *e,
				  bool *new_ret)
{
	bool fresh = false;

	pthread_mutex_lock(&t->lock);
	struct wfsd_node *node = *chain_find(t, &e->ident);
	if (node && node != parent) {
		move_to(t, node, parent, e->stored);
	} else if (!node) {
		node = node_new(t, parent, e);
		fresh = node;
	}
	if (node && node->nlookup++ == 0)
		node->refs++;
	pthread_mutex_unlock(&t->lock);
	if (new_ret)
		*new_ret = fresh;
	return node;
}

bool wfsd_tree_forget(struct wfsd_tree *t, struct wfsd_node *node, uint64_t nlookup)
{
	if (node == &t->root || !nlookup)
		return false;
	pthread_mutex_lock(&t->lock);
	node->nlookup -= nlookup < node->nlookup ? nlookup : node->nlookup;
	bool forgotten = !node->nlookup;
	if (forgotten)
		unref(t, node);
	pthread_mutex_unlock(&t->lock);
	return forgotten;
}

void wfsd_tree_ref(struct wfsd_tree *t, struct wfsd_node *node)
{
	pthread_mutex_lock(&t->lock);
	node->refs++;
	pthread_mutex_unlock(&t->lock);
}

void wfsd_tree_unref(struct wfsd_tree *t, struct wfsd_node *node)
{
	pthread_mutex_lock(&t->lock);
	unref(t, node);
	pthread_mutex_unlock(&t->lock);
}

uint64_t wfsd_tree_count(struct wfsd_tree *t)
{
	pthread_mutex_lock(&t->lock);
	uint64_t nr = t->nr;
	pthread_mutex_unlock(&t->lock);
	return nr;
}

char *wfsd_tree_path(struct wfsd_tree *t, const struct wfsd_node *node)
{
	const struct wfsd_node *n;
	char *path = NULL;
	size_t len = 0;
	int depth = 0;

	pthread_mutex_lock(&t->lock);
	for (n = node; n->name && depth++ < MAX_DEPTH; n = n->parent)
		len += strlen(n->name) + 1;
	if (n->name)
		goto out;
	path = malloc(len + 1);
	if (!path)
		goto out;
	/* From the end: every name brings its slash, the last one's becomes the terminator. */
	char *p = path + len;
	*p = '\0';
	for (n = node; n->name; n = n->parent) {
		size_t name_len = strlen(n->name);
		*--p = '/';
		p -= name_len;
		memcpy(p, n->name, name_len);
	}
	if (len)
		path[len - 1] = '\0';
out:
	pthread_mutex_unlock(&t->lock);
	return path;
}

uint64_t wfsd_node_parent_ino(struct wfsd_tree *t, const struct wfsd_node *node)
{
	pthread_mutex_lock(&t->lock);
	uint64_t ino = wfsd_ident_ino(&(node->parent ? node->parent : node)->ident);
	pthread_mutex_unlock(&t->lock);
	return ino;
}

int wfsd_node_open(struct wfsd *d, struct wfsd_node *node, int flags, int *fd_ret, struct stat *st_ret)
{
	char *path = wfsd_tree_path(d->tree, node);
	int fd = -1, err;

	if (!path)
		return -ESTALE;
	err = wfsd_store_open(d, path, flags, &fd);
	free(path);
	if (!err && fstat(fd, st_ret))
		err = -errno;
	if (!err) {
		struct wfsd_ident ident = wfsd_ident_of(st_ret, node->ident.versioned);
		ident.entry = node->ident.entry;
		err = wfsd_ident_equal(&ident, &node->ident) ? 0 : -ESTALE;
	}
	if (!err)
		*fd_ret = fd;
	else if (fd >= 0)
		close(fd);
	/* It was here: then something on the way was replaced. */
	return err == -ENOENT || err == -ENOTDIR || err == -ELOOP ? -ESTALE : err;
}

int wfsd_node_stat(struct wfsd *d, struct wfsd_node *node, struct stat *st_ret)
{
	struct wfsd_file *file = wfsd_file_if_open(d, node);
	int fd = -1, err;

	if (file) { /* also when its name is gone */
		err = wfsd_store_hangs(d) ? EIO : fstat(file->fd, st_ret) ? errno : 0;
		if (!err)
			wfsd_store_limit_mode(d, file->fd, NULL, st_ret);
		wfsd_file_put(d, file);
	} else {
		err = -wfsd_node_open(d, node, O_PATH, &fd, st_ret);
		if (!err)
			wfsd_store_limit_mode(d, fd, NULL, st_ret);
		if (fd >= 0)
			close(fd);
	}
	st_ret->st_ino = wfsd_ident_ino(&node->ident);
	return err;
}
