/* dir.c - see dir.h.
 *
 * An open directory is a snapshot of stored names, taken when it is opened and again after rewinddir, so an offset (the
 * number of a name) always means the same name. What a name is, is asked when its turn comes; a name
 * that is gone by then, or a temporary (temporary.h), is left out.
 */
#include "dir.h"
#include "fs.h"
#include "reply.h"
#include "signed.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct listing {
	atomic_uint refs; /* the directory's, and one a request at work */
	size_t nr, room, bytes, bytes_room;
	size_t *name; /* offsets in text, in the order of the names' bytes */
	char *text;
};

static bool listing_has(const struct listing *l, const char *name)
{
	size_t low = 0, high = l->nr;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(name, l->text + l->name[mid]);
		if (!order)
			return true;
		*(order < 0 ? &high : &low) = order < 0 ? mid : mid + 1;
	}
	return false;
}

/* ---- lookups --------------------------------------------------------------------------------------------------- */

/* Seconds that the kernel may keep attributes: of one version, as a container is, for ever (ten years). */
static double attr_timeout(const struct wfsd_entry *e)
{
	return e->ident.versioned ? 3e8 : 1.0;
}

/* x lies beside x.wfs: the plain file is shown. Said when the kernel gets to know x. l: the directory's names when they
 * are at hand, else NULL. */
static void warn_if_shadowing(struct wfsd *d, int dir_fd, const struct wfsd_entry *e, const char *dir,
			      const struct listing *l)
{
	char stored[NAME_MAX + 1];
	struct wfsd_entry other;
	enum wfsd_kind kind;
	int bad;

	if (e->container || !S_ISREG(e->st.st_mode) || !wfsd_add_suffix(e->stored, stored) ||
	    (l && !listing_has(l, stored)))
		return;
	if (!wfsd_store_probe(d, dir_fd, stored, &other, &kind, &bad, dir) && kind != WFSD_ORDINARY)
		wfsd_log(&d->log, WFSD_WARNING, "%s%s%s and its container lie side by side: the plain file is shown",
			 dir, *dir ? "/" : "", e->stored);
}

/* Make the entry known to the tree, with one lookup. */
static int enter(struct wfsd *d, struct wfsd_node *parent, int dir_fd, const struct wfsd_entry *e, const char *dir,
		 const struct listing *l, struct fuse_entry_param *ret)
{
	bool fresh;
	struct wfsd_node *node = wfsd_tree_enter(d->tree, parent, e, &fresh);
	if (!node)
		return ENOMEM;
	if (fresh && !d->signed_store)
		warn_if_shadowing(d, dir_fd, e, dir, l);
	wfsd_count(&d->stats.lookups, 1);
	*ret = (struct fuse_entry_param){.ino = wfsd_tree_nodeid(d->tree, node),
					 .attr = e->st,
					 .attr_timeout = attr_timeout(e),
					 .entry_timeout = d->opts->entry_timeout};
	return 0;
}

/* The directory's path for messages and an O_PATH descriptor of it, after a check that it is still this one. */
static int dir_enter(struct wfsd *d, struct wfsd_node *node, char **path_ret, int *fd_ret)
{
	struct stat st;
	*path_ret = wfsd_tree_path(d->tree, node);
	if (!*path_ret)
		return ESTALE;
	return -wfsd_node_open(d, node, O_PATH | O_DIRECTORY, fd_ret, &st);
}

int wfsd_lookup(struct wfsd *d, struct wfsd_node *parent, const char *name, struct fuse_entry_param *ret)
{
	struct wfsd_entry e;
	char *path = NULL;
	int fd = -1, err;

	err = dir_enter(d, parent, &path, &fd);
	if (!err)
		err = -wfsd_store_resolve(d, fd, name, &e, path);
	if (!err) {
		err = enter(d, parent, fd, &e, path, NULL, ret);
	} else if (err == ENOENT) { /* remembered, for a second at most: a download may be under way */
		double timeout = d->opts->entry_timeout < 1.0 ? d->opts->entry_timeout : 1.0;
		*ret = (struct fuse_entry_param){.entry_timeout = timeout};
		err = 0;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return err;
}

/* ---- listings -------------------------------------------------------------------------------------------------- */

struct wfsd_dir {
	struct wfsd_node *node;
	atomic_uint refs; /* the handle's, and one a request at work */
	pthread_mutex_t lock;
	struct listing *listing; /* from here: under the lock */
	bool was_read;
};

static void listing_put(struct listing *l)
{
	if (!l || atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	free(l->name);
	free(l->text);
	free(l);
}

static bool listing_add(struct listing *l, const char *name)
{
	size_t len = strlen(name) + 1;
	if (l->nr == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		size_t *longer = realloc(l->name, room * sizeof(*longer));
		if (!longer)
			return false;
		l->name = longer;
		l->room = room;
	}
	if (l->bytes + len > l->bytes_room) {
		size_t room = 2 * (l->bytes_room + len) + 1024;
		char *longer = realloc(l->text, room);
		if (!longer)
			return false;
		l->text = longer;
		l->bytes_room = room;
	}
	memcpy(l->text + l->bytes, name, len);
	l->name[l->nr++] = l->bytes;
	l->bytes += len;
	return true;
}

static int by_name(const void *a, const void *b, void *text)
{
	return strcmp((const char *)text + *(const size_t *)a, (const char *)text + *(const size_t *)b);
}

/* In a signed mount: all names that the manifest has for it. 0 or the errno. */
static int listing_signed(const struct wfsd *d, struct wfsd_node *node, struct listing *l)
{
	char *path = wfsd_tree_path(d->tree, node);
	size_t at = path ? wfsd_signed_first(d, path) : 0;
	const char *name;
	bool good = path;

	while (good && (name = wfsd_signed_next(d, path, &at)))
		good = listing_add(l, name);
	free(path);
	return good ? 0 : ENOMEM;
}

/* Read all names of the store's directory. 0 or the errno. */
static int listing_read(struct wfsd *d, struct wfsd_node *node, struct listing **ret)
{
	struct listing *l = calloc(1, sizeof(*l));
	struct dirent *entry;
	struct stat st;
	DIR *stream = NULL;
	int fd = -1, err;

	if (!l)
		return ENOMEM;
	l->refs = 1;
	err = -wfsd_node_open(d, node, O_RDONLY | O_DIRECTORY, &fd, &st);
	if (!err && d->signed_store) {
		close(fd);
		err = listing_signed(d, node, l);
		goto out;
	}
	if (err)
		goto out;
	stream = fdopendir(fd);
	if (!stream) {
		err = errno;
		close(fd);
		goto out;
	}
	/* cppcheck-suppress readdirCalled ; no other thread has this stream */
	while (errno = 0, (entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!listing_add(l, entry->d_name)) {
			err = ENOMEM;
			goto out;
		}
	}
	err = errno;
	if (!err && l->nr)
		qsort_r(l->name, l->nr, sizeof(*l->name), by_name, l->text);
out:
	if (stream)
		closedir(stream);
	if (err)
		listing_put(l);
	else
		*ret = l;
	return err;
}

int wfsd_dir_open(struct wfsd *d, struct wfsd_node *node, struct wfsd_dir **ret)
{
	struct wfsd_dir *dir = calloc(1, sizeof(*dir));
	struct listing *l = NULL;
	int err;

	if (!dir)
		return ENOMEM;
	err = listing_read(d, node, &l);
	if (err) {
		free(dir);
		return err;
	}
	dir->node = node;
	dir->refs = 1;
	dir->listing = l;
	wfsd_tree_ref(d->tree, node);
	pthread_mutex_init(&dir->lock, NULL);
	*ret = dir;
	return 0;
}

void wfsd_dir_ref(struct wfsd_dir *dir)
{
	atomic_fetch_add(&dir->refs, 1);
}

void wfsd_dir_put(struct wfsd *d, struct wfsd_dir *dir)
{
	if (atomic_fetch_sub(&dir->refs, 1) != 1)
		return;
	listing_put(dir->listing);
	wfsd_tree_unref(d->tree, dir->node);
	pthread_mutex_destroy(&dir->lock);
	free(dir);
}

/* The names for a request from this offset on, read anew when the reader has begun again. 0 or the errno. */
static int listing_get(struct wfsd *d, struct wfsd_dir *dir, uint64_t off, struct listing **ret)
{
	struct listing *fresh = NULL, *old = NULL;
	bool again;
	int err;

	pthread_mutex_lock(&dir->lock);
	again = dir->was_read && !off;
	dir->was_read = true;
	pthread_mutex_unlock(&dir->lock);
	err = again ? listing_read(d, dir->node, &fresh) : 0;
	if (err)
		return err;
	pthread_mutex_lock(&dir->lock);
	if (fresh) {
		old = dir->listing;
		dir->listing = fresh;
	}
	*ret = dir->listing;
	atomic_fetch_add(&(*ret)->refs, 1);
	pthread_mutex_unlock(&dir->lock);
	listing_put(old);
	return 0;
}

/* One READDIR or READDIRPLUS at work. */
struct filling {
	struct wfsd *d;
	fuse_req_t req; /* only to add entries; the reply goes through struct wfsd_request */
	struct wfsd_dir *dir;
	struct listing *l;
	const char *path;
	int fd;
	bool plus;
	char *buf;
	size_t len, size;
	struct wfsd_node **entered; /* with a lookup each */
	size_t nr_entered;
};

/* How the i-th stored name is shown. False: not at all. */
static bool shown_as(struct filling *f, size_t i, struct wfsd_entry *e, char *shown, bool *damaged_ret)
{
	const char *stored = f->l->text + f->l->name[i];
	struct wfsd_entry other;
	enum wfsd_kind kind;
	int bad;

	if (f->d->signed_store) {
		bool good = false, is_shown = wfsd_signed_show(f->d, f->fd, stored, e, shown, &good, f->path);
		*damaged_ret = !good;
		return is_shown;
	}
	if (wfsd_store_probe(f->d, f->fd, stored, e, &kind, &bad, f->path))
		return false;
	size_t len = strlen(stored) - (kind == WFSD_ORDINARY ? 0 : WFSD_SUFFIX_LEN);
	memcpy(shown, stored, len);
	shown[len] = '\0';
	*damaged_ret = kind == WFSD_DAMAGED;
	if (kind == WFSD_ORDINARY)
		return true;
	if (!listing_has(f->l, shown))
		return true;
	/* There is a file of that name; unless it is a container itself, it is the one that is shown. */
	return wfsd_has_suffix(shown) && !wfsd_store_probe(f->d, f->fd, shown, &other, &kind, &bad, f->path) &&
	       kind != WFSD_ORDINARY;
}

/* Add one entry; next: the offset behind it. A node number of 0 makes the kernel look the name up when it is used.
 * False: no room left. */
static bool add_entry(struct filling *f, const char *name, const struct wfsd_entry *e, bool known, uint64_t next)
{
	struct fuse_entry_param param = {.attr = e->st};
	char *at = f->buf + f->len;
	size_t room = f->size - f->len, need;

	need = f->plus ? fuse_add_direntry_plus(f->req, NULL, 0, name, NULL, 0)
		       : fuse_add_direntry(f->req, NULL, 0, name, NULL, 0);
	if (need > room)
		return false;
	if (!f->plus) {
		fuse_add_direntry(f->req, at, room, name, &e->st, (off_t)next);
	} else {
		if (known && !enter(f->d, f->dir->node, f->fd, e, f->path, f->l, &param))
			f->entered[f->nr_entered++] = wfsd_tree_node(f->d->tree, param.ino);
		fuse_add_direntry_plus(f->req, at, room, name, &param, (off_t)next);
	}
	f->len += need;
	return true;
}

/* Offsets 0 and 1 are "." and "..", offset 2 + i is the i-th name. */
static void fill(struct filling *f, uint64_t off)
{
	struct wfsd_entry dot = {.st.st_mode = S_IFDIR};

	for (; off < 2; off++) {
		dot.st.st_ino =
			off ? wfsd_node_parent_ino(f->d->tree, f->dir->node) : wfsd_ident_ino(&f->dir->node->ident);
		if (!add_entry(f, off ? ".." : ".", &dot, false, off + 1))
			return;
	}
	for (; off - 2 < f->l->nr; off++) {
		char shown[NAME_MAX + 1];
		struct wfsd_entry e;
		bool damaged;
		if (shown_as(f, off - 2, &e, shown, &damaged) && !add_entry(f, shown, &e, !damaged, off + 1))
			return;
	}
}

void wfsd_dir_read(struct wfsd_request *r, struct wfsd_dir *dir, uint64_t off, size_t size, bool plus)
{
	struct wfsd *d = r->d;
	struct filling f = {.d = d, .req = r->req, .dir = dir, .fd = -1, .plus = plus, .size = size};
	char *path = NULL;
	int err;

	err = listing_get(d, dir, off, &f.l);
	if (err)
		goto out;
	err = dir_enter(d, dir->node, &path, &f.fd);
	if (err)
		goto out;
	f.path = path;
	f.buf = malloc(size);
	f.entered = malloc((size / fuse_add_direntry_plus(f.req, NULL, 0, "", NULL, 0) + 1) * sizeof(*f.entered));
	err = f.buf && f.entered ? 0 : ENOMEM;
	if (!err)
		fill(&f, off);
out:
	if (err)
		wfsd_reply_err(r, err);
	else if (!wfsd_reply_buf(r, f.buf, f.len))
		while (f.nr_entered)
			wfsd_tree_forget(d->tree, f.entered[--f.nr_entered], 1);
	if (f.fd >= 0)
		close(f.fd);
	free(f.buf);
	free(f.entered);
	free(path);
	listing_put(f.l);
}
