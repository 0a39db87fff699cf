/* file.c - see file.h. */
#include "file.h"
#include "ahead.h"
#include "fs.h"
#include "signed.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Containers kept open without a handle, what their readers may hold together, and for how long: a container that is
 * removed from the store gives its space back only when we close it. */
enum { MAX_KEPT = 64, MAX_KEPT_BYTES = 64 << 20, KEEP_SECONDS = 10 };
/* Where descriptors are few they are for the files in use: kept ones take at most one in so many. */
enum { KEPT_SHARE = 8 };

/* Every file is in one of the two lists. */
struct wfsd_file_list {
	struct wfsd_file *oldest, *newest;
	uint64_t nr, bytes; /* bytes: of the readers */
};

struct wfsd_files {
	struct wfsd *d;
	pthread_t closer;
	uint64_t max_kept;
	pthread_mutex_t lock;		  /* covers what follows */
	struct wfsd_file_list used, kept; /* kept: without a reference, in the order of their ends */
	pthread_cond_t wake;		  /* the closer: one is kept, or stop */
	bool stop;
};

/* Close a file that nobody can reach any more. Without locks. */
static void file_free(struct wfsd *d, struct wfsd_file *file)
{
	wfs_reader_free(file->reader);
	wfsd_readers_free(file->readers);
	wfsd_bypass_close(file);
	close(file->fd);
	wfsd_tree_unref(d->tree, file->node);
	free(file);
	wfsd_uncount(&d->stats.open_files, 1);
}

static void list_add(struct wfsd_file_list *l, struct wfsd_file *file)
{
	file->list = l;
	file->newer = NULL;
	file->older = l->newest;
	*(l->newest ? &l->newest->newer : &l->oldest) = file;
	l->newest = file;
	l->nr++;
	l->bytes += file->memory_bytes;
}

static void list_remove(struct wfsd_file *file)
{
	struct wfsd_file_list *l = file->list;
	*(file->older ? &file->older->newer : &l->oldest) = file->newer;
	*(file->newer ? &file->newer->older : &l->newest) = file->older;
	l->nr--;
	l->bytes -= file->memory_bytes;
}

/* Under the lock: nobody finds the file any more; it is to be freed with those in `gone`. */
static struct wfsd_file *chain(struct wfsd_file *file, struct wfsd_file *gone)
{
	list_remove(file);
	file->node->file = NULL;
	file->newer = gone;
	return file;
}

static void free_all(struct wfsd *d, struct wfsd_file *gone)
{
	while (gone) {
		struct wfsd_file *next = gone->newer;
		file_free(d, gone);
		gone = next;
	}
}

static bool is_past(const struct timespec *end)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec);
}

/* The closer sleeps until the oldest kept file has had its time; when none is kept, without a timer. */
static void *close_kept(void *arg)
{
	struct wfsd_files *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		struct wfsd_file *gone = NULL;
		if (!f->kept.oldest) {
			pthread_cond_wait(&f->wake, &f->lock);
		} else {
			const struct timespec until = f->kept.oldest->keep_until;
			pthread_cond_timedwait(&f->wake, &f->lock, &until); /* at once when that is past */
		}
		while (f->kept.oldest && is_past(&f->kept.oldest->keep_until))
			gone = chain(f->kept.oldest, gone);
		pthread_mutex_unlock(&f->lock);
		free_all(f->d, gone);
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

struct wfsd_files *wfsd_files_new(struct wfsd *d)
{
	struct wfsd_files *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;
	struct rlimit limit;

	if (!f)
		return NULL;
	f->d = d;
	f->max_kept = MAX_KEPT;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / KEPT_SHARE < f->max_kept)
		f->max_kept = limit.rlim_cur / KEPT_SHARE;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&f->closer, NULL, close_kept, f)) {
		pthread_cond_destroy(&f->wake);
		pthread_mutex_destroy(&f->lock);
		free(f);
		return NULL;
	}
	return f;
}

void wfsd_files_free(struct wfsd *d, struct wfsd_files *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->closer, NULL);
	/* After a lazy unmount files may still be in use: the kernel will not release them any more. */
	struct wfsd_file_list *const lists[] = {&f->used, &f->kept};
	for (int i = 0; i < 2; i++)
		while (lists[i]->oldest) {
			struct wfsd_file *file = lists[i]->oldest;
			list_remove(file);
			file_free(d, file);
		}
	pthread_cond_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void wfsd_file_ref(struct wfsd_file *file)
{
	atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
}

/* Under the lock: the file of the node, referenced and no longer merely kept. */
static struct wfsd_file *file_take(struct wfsd_files *f, struct wfsd_node *node)
{
	struct wfsd_file *file = node->file;
	if (!file)
		return NULL;
	if (file->list == &f->kept) {
		list_remove(file);
		list_add(&f->used, file);
	}
	wfsd_file_ref(file);
	return file;
}

/* Under the lock: the file's last reference is gone, but it may soon be asked for again. */
static void keep(struct wfsd_files *f, struct wfsd_file *file)
{
	list_remove(file);
	clock_gettime(CLOCK_MONOTONIC, &file->keep_until);
	file->keep_until.tv_sec += KEEP_SECONDS;
	list_add(&f->kept, file);
	if (f->kept.oldest == file)
		pthread_cond_signal(&f->wake);
}

void wfsd_file_put(struct wfsd *d, struct wfsd_file *file)
{
	struct wfsd_files *f = d->files;
	struct wfsd_file *gone = NULL;
	uint64_t refs = atomic_load_explicit(&file->refs, memory_order_relaxed);

	/* The last one goes under the lock, so that an open in between cannot revive what is being closed. */
	while (refs > 1)
		if (atomic_compare_exchange_weak_explicit(&file->refs, &refs, refs - 1, memory_order_release,
							  memory_order_relaxed))
			return;
	pthread_mutex_lock(&f->lock);
	if (atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) == 1) {
		if (file->reader)
			keep(f, file);
		else
			gone = chain(file, gone);
		while (f->kept.oldest && (f->kept.nr > f->max_kept || f->kept.bytes > MAX_KEPT_BYTES))
			gone = chain(f->kept.oldest, gone);
	}
	pthread_mutex_unlock(&f->lock);
	free_all(d, gone);
}

void wfsd_file_unkeep(struct wfsd *d, struct wfsd_node *node)
{
	struct wfsd_files *f = d->files;
	struct wfsd_file *gone = NULL;

	pthread_mutex_lock(&f->lock);
	if (node->file && node->file->list == &f->kept)
		gone = chain(node->file, NULL);
	pthread_mutex_unlock(&f->lock);
	free_all(d, gone);
}

struct wfsd_file *wfsd_file_if_open(struct wfsd *d, struct wfsd_node *node)
{
	pthread_mutex_lock(&d->files->lock);
	struct wfsd_file *file = file_take(d->files, node);
	pthread_mutex_unlock(&d->files->lock);
	return file;
}

/* Read a container's metadata. 0 or the errno; *final_ret: it will never be otherwise. */
static int reader_open(struct wfsd *d, struct wfsd_file *file, bool *final_ret)
{
	const struct wfs_reader_opts opts = {.cpu = d->cpu, .check_sha256 = file->entry};
	struct wfs_error err;
	struct wfs_info info;

	enum wfs_status status = wfs_reader_open(file->fd, &opts, &file->reader, &err);
	if (status == WFS_OK && file->entry)
		status = wfs_manifest_check_container(file->entry, file->reader, &err);
	if (status == WFS_OK) {
		wfs_reader_info(file->reader, &info);
		file->raw_len = info.head.raw_len;
		file->nr_blocks = info.nr_blocks;
		file->memory_bytes = info.memory_bytes;
		return 0;
	}
	*final_ret = status != WFS_IO && status != WFS_NO_MEMORY;
	if (file->entry && *final_ret)
		wfsd_count(&d->stats.refused_files, 1);
	char *path = wfsd_tree_path(d->tree, file->node), remedy[WFSD_REMEDY_BYTES];
	wfsd_log(&d->log, WFSD_ERROR, "container %s: cannot be opened: %s: %s; %s", path ? path : "?", err.reason,
		 strerror(wfsd_errno(&err)), wfsd_remedy(remedy, d, err.status));
	free(path);
	return wfsd_errno(&err);
}

/* A plain file of a signed mount. 0 or the errno, for ever. */
static int pieces_open(struct wfsd *d, struct wfsd_file *file, const struct stat *st)
{
	file->raw_len = file->entry->size;
	file->nr_blocks = file->entry->nr_pieces;
	if ((uint64_t)st->st_size == file->raw_len)
		return 0;
	return wfsd_signed_refuse(d, file->entry, "it is longer or shorter than the signed one");
}

/* A new file for the node, not yet known to others. 0 or the errno. */
static int file_new(struct wfsd *d, struct wfsd_node *node, struct wfsd_file **file_ret, bool *final_ret)
{
	struct wfsd_file *file = calloc(1, sizeof(*file));
	struct stat st;
	int err;

	if (!file)
		return ENOMEM;
	file->node = node;
	file->entry = wfsd_signed_entry(d, &node->ident);
	file->refs = 1;
	file->bypass.fd = WFSD_BYPASS_UNKNOWN;
	err = -wfsd_node_open(d, node, O_RDONLY | O_NONBLOCK, &file->fd, &st);
	if (err) {
		free(file);
		return err;
	}
	file->stored_len = (uint64_t)st.st_size;
	wfsd_tree_ref(d->tree, node);
	wfsd_count(&d->stats.open_files, 1);
	if (file->entry ? file->entry->kind == WFS_MANIFEST_CONTAINER : node->ident.versioned) {
		wfsd_store_read_exactly(file->fd);
		err = reader_open(d, file, final_ret);
	} else if (file->entry) {
		err = pieces_open(d, file, &st);
		*final_ret = err;
	}
	if (!err && node->ident.versioned && file->raw_len != (uint64_t)node->st.st_size)
		err = ESTALE; /* two heads under one version: written in place, in one tick of the clock */
	if (err) {
		file_free(d, file);
		return err;
	}
	*file_ret = file;
	return 0;
}

/* Under the lock: whether the plain file is as it was when it was last opened; remembers how it is now. */
static bool unchanged(struct wfsd_node *node, const struct stat *st)
{
	bool same = node->seen_valid && node->seen_size == st->st_size &&
		    !memcmp(&node->seen_mtime, &st->st_mtim, sizeof(st->st_mtim)) &&
		    !memcmp(&node->seen_ctime, &st->st_ctim, sizeof(st->st_ctim));
	node->seen_valid = true;
	node->seen_size = st->st_size;
	node->seen_mtime = st->st_mtim;
	node->seen_ctime = st->st_ctim;
	return same;
}

int wfsd_file_open(struct wfsd *d, struct wfsd_node *node, struct wfsd_file **file_ret, bool *keep_cache_ret)
{
	struct wfsd_files *f = d->files;
	struct wfsd_file *file, *fresh = NULL;
	bool final = false;
	struct stat st;
	int err;

	pthread_mutex_lock(&f->lock);
	file = file_take(f, node);
	err = node->open_err;
	pthread_mutex_unlock(&f->lock);
	if (!file && err)
		return err;
	if (!file) {
		err = file_new(d, node, &fresh, &final);
		pthread_mutex_lock(&f->lock);
		file = file_take(f, node); /* another thread may have been faster */
		if (!file && fresh) {
			node->file = file = fresh;
			list_add(&f->used, file);
			fresh = NULL;
		}
		if (final)
			node->open_err = err;
		pthread_mutex_unlock(&f->lock);
		if (fresh)
			file_free(d, fresh);
		if (!file)
			return err;
		if (file->entry)
			wfsd_signed_found_good(d, file->entry);
		atomic_store_explicit(&node->io_logged, false, memory_order_relaxed);
	}
	*keep_cache_ret = true;
	if (!wfsd_file_in_blocks(file)) {
		bool known = !fstat(file->fd, &st);
		pthread_mutex_lock(&f->lock);
		*keep_cache_ret = known && unchanged(node, &st);
		pthread_mutex_unlock(&f->lock);
	}
	*file_ret = file;
	return 0;
}

/* ---- bad blocks ------------------------------------------------------------------------------------------------ */

bool wfsd_file_block_is_bad(const struct wfsd_file *file, uint64_t block)
{
	return wfsd_bits_test(&file->node->bad, block);
}

bool wfsd_file_mark_bad(struct wfsd_file *file, uint64_t block)
{
	return wfsd_bits_set(&file->node->bad, file->nr_blocks, block) !=
	       1; /* without memory it is found anew every time */
}
