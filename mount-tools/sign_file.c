/* sign_file.c - what a manifest says of one file: digests of plain files, proven containers, and containers that get
 * the SHA-256 of their blocks. */
#include "sign.h"
#include "lost.h"
#include "safe_file.h"
#include "same_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- plain files ---- */

int plain_file_hash(int fd, uint64_t size, uint8_t *piece, uint8_t *whole, struct progress *progress)
{
	struct hash_thread *h = whole ? hash_thread_new() : NULL;
	uint8_t *buf = xcalloc(1, WFS_MANIFEST_PIECE_BYTES);
	uint64_t done = 0;
	char beyond;
	int ret = 0;
	while (!ret && done < size) {
		size_t want = (size_t)MIN(size - done, (uint64_t)WFS_MANIFEST_PIECE_BYTES);
		ssize_t got = pread_full(fd, buf, want, (off_t)done);
		if (got != (ssize_t)want) {
			ret = got < 0 ? errno : FILE_CHANGED;
			break;
		}
		if (h)
			hash_thread_add(h, buf, want);
		if (piece) {
			struct sha256 *one = sha256_new();
			sha256_update(one, buf, want);
			sha256_final(one, piece + done / WFS_MANIFEST_PIECE_BYTES * SHA256_BYTES);
			sha256_free(one);
		}
		if (h)
			hash_thread_wait(h);
		done += want;
		progress_add(progress, 2 * want);
	}
	if (!ret && pread_full(fd, &beyond, 1, (off_t)size) != 0)
		ret = FILE_CHANGED;
	if (!ret && h)
		hash_thread_final(h, whole);
	hash_thread_free(h);
	free(buf);
	return ret;
}

static void fail_errno(struct signed_file *f, const char *what, int sys_errno)
{
	snprintf(f->reason, sizeof(f->reason), "%s: %s", what, file_error_text(sys_errno));
}

static void sign_plain(int fd, const struct stat *st, const struct sign_opts *opts, struct signed_file *f)
{
	int ret;
	f->size = (uint64_t)st->st_size;
	f->nr_pieces = (f->size + WFS_MANIFEST_PIECE_BYTES - 1) / WFS_MANIFEST_PIECE_BYTES;
	if (f->nr_pieces > WFS_MANIFEST_MAX_BYTES / (2 * SHA256_BYTES)) {
		snprintf(f->reason, sizeof(f->reason), "a manifest cannot hold so large a file that is no container");
		return;
	}
	if (f->nr_pieces > 1)
		f->piece = xcalloc(f->nr_pieces, SHA256_BYTES);
	ret = plain_file_hash(fd, f->size, f->piece, f->sha256, opts->progress);
	if (ret)
		fail_errno(f, "cannot read", ret);
	f->good = !ret;
}

/* ---- containers ---- */

static bool fail_container(struct signed_file *f, int fd, const struct wfs_reader *reader, const struct wfs_error *err)
{
	char advice[ADVICE_BYTES];
	size_t len;
	wfs_reason(f->reason, reader, err);
	len = strlen(f->reason);
	snprintf(f->reason + len, sizeof(f->reason) - len, "%s", damage_advice(fd, reader, err, advice));
	return false;
}

/* Prove every block by its SHA-256, and the whole; take down what the manifest says of it. fresh: just written here, so
 * that a failure is the disk's and not that of the store. */
static bool prove(int fd, bool fresh, const struct sign_opts *opts, struct signed_file *f, struct wfs_head *head_ret)
{
	const struct wfs_reader_opts reader_opts = {.cpu = opts->cpu, .check_sha256 = true};
	struct file_progress progress = {.progress = opts->progress, .passes = 1};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	struct wfs_info info;
	bool ok = wfs_reader_open(fd, &reader_opts, &reader, &err) == WFS_OK &&
		  wfs_reader_verify(reader, opts->nr_threads, file_progress_report, &progress, &err) == WFS_OK;
	if (ok) {
		wfs_reader_info(reader, &info);
		f->size = info.head.raw_len;
		memcpy(f->sha256, info.head.sha256, SHA256_BYTES);
		memcpy(f->meta_sha256, info.meta_sha256, SHA256_BYTES);
		*head_ret = info.head;
		file_progress_reach(&progress, info.head.raw_len);
	} else if (fresh) {
		wfs_reason(f->reason, reader, &err);
	} else {
		fail_container(f, fd, reader, &err);
	}
	wfs_reader_free(reader);
	return ok;
}

/* Write the container anew into temp, with the SHA-256 of its blocks, and prove that on the disk. */
static bool write_new(int old_fd, const struct wfs_reader *reader, const struct stat *st, const struct sign_opts *opts,
		      struct temp_file *temp, struct signed_file *f)
{
	struct file_progress progress = {.progress = opts->progress, .passes = 1};
	struct wfs_error err = {0};
	struct wfs_info old;
	struct wfs_head head;
	int ret, fd;
	bool ok;
	if (wfs_container_add_sha256(reader, temp->fd, opts->nr_threads, file_progress_report, &progress, &err) !=
	    WFS_OK)
		return fail_container(f, old_fd, reader, &err);
	wfs_reader_info(reader, &old);
	file_progress_reach(&progress, old.head.raw_len);
	ret = attributes_set(temp->fd, old_fd, st, st->st_mtim);
	fd = ret ? -1 : temp_reopen(temp);
	if (fd < 0) {
		fail_errno(f, "cannot write the new container", ret ? ret : errno);
		return false;
	}
	ok = prove(fd, true, opts, f, &head);
	close(fd);
	if (ok && (head.raw_len != old.head.raw_len || memcmp(head.sha256, old.head.sha256, SHA256_BYTES) ||
		   head.mtime_sec != old.head.mtime_sec || head.mtime_nsec != old.head.mtime_nsec || head.from_tail)) {
		snprintf(f->reason, sizeof(f->reason), "the new container does not hold what the old one does");
		ok = false;
	}
	return ok;
}

/* Lock a container's name, as pack and unpack do, if the old file still lies there unchanged. It is opened, as NFS
 * looks at the server then. */
static int lock_old(struct temp_file *lock, int dir_fd, const char *name, const struct stat *old)
{
	char original[NAME_MAX + 1];
	struct stat now;
	int fd, ret = name_lock(lock, dir_fd, container_name(name, original) ? original : name);
	if (ret)
		return ret;
	fd = tree_open_file(dir_fd, name);
	if (fd < 0)
		ret = errno == ENOENT || errno == ELOOP || errno == EINVAL ? FILE_CHANGED : errno;
	else if (fstat(fd, &now))
		ret = errno;
	else if (!same_file(&now, old))
		ret = FILE_CHANGED;
	if (fd >= 0)
		close(fd);
	if (ret)
		temp_discard(lock);
	return ret;
}

/* Let the new container take the place of the old one, unless that changed meanwhile. */
static bool replace(const struct stat *old, const char *name, struct temp_file *temp, struct signed_file *f)
{
	struct temp_file lock;
	int ret = lock_old(&lock, temp->dir_fd, name, old);
	if (!ret) {
		ret = temp_publish(temp, name, true);
		temp_discard(&lock);
	}
	if (ret)
		fail_errno(f, "cannot replace it", ret);
	return !ret;
}

/* Let a link of it take the place of one more name of the old one. */
static int relink_one(int root_fd, const char *path, const struct stat *old, const struct temp_file *temp)
{
	struct stat renewed;
	struct temp_file lock;
	const char *name;
	int dir_fd = tree_open_parent(root_fd, path, &name), ret;
	if (dir_fd < 0)
		return errno;
	if (fstat(temp->fd, &renewed)) {
		ret = errno;
		close(dir_fd);
		return ret;
	}
	ret = lock_old(&lock, dir_fd, name, old);
	if (!ret) {
		ret = link_publish(temp->dir_fd, temp->name, &renewed, dir_fd, name, true);
		temp_discard(&lock);
	}
	close(dir_fd);
	return ret;
}

/* Its other names in the store become links of the new container, as they were of the old one. They come first, while
 * the new one has its temporary name, which nobody else gives to another file. */
static bool relink(const struct signed_store *s, const struct tree_entry *first, const struct stat *old,
		   const struct temp_file *temp, struct signed_file *f)
{
	for (size_t i = first->next_link; i != TREE_NONE; i = s->tree.entry[i].next_link) {
		const struct tree_entry *e = &s->tree.entry[i];
		int ret = container_path(e->path) ? relink_one(s->root_fd, e->path, old, temp) : 0;
		if (ret) {
			snprintf(f->reason, sizeof(f->reason), "cannot renew its other name (%s): %s",
				 file_error_text(ret), e->path);
			return false;
		}
	}
	return true;
}

/* What is not as it was, though all went well. */
static void note_losses(const struct signed_store *s, const struct tree_entry *first, const struct stat *old,
			struct signed_file *f)
{
	nlink_t nr_names = 1;
	for (size_t i = first->next_link; i != TREE_NONE; i = s->tree.entry[i].next_link)
		nr_names += container_path(s->tree.entry[i].path);
	if (f->st.st_uid != old->st_uid || f->st.st_gid != old->st_gid)
		snprintf(f->reason, sizeof(f->reason), "written anew, but its owner or group could not be kept");
	else if (old->st_nlink > nr_names)
		snprintf(f->reason, sizeof(f->reason),
			 "written anew, but it has other hard links, which stay with the old file");
}

static bool rewrite(const struct signed_store *s, const struct tree_entry *e, int dir_fd, const char *name, int fd,
		    const struct wfs_reader *reader, const struct sign_opts *opts, struct signed_file *f)
{
	struct temp_file temp;
	struct stat st;
	bool ok;
	int ret = fstat(fd, &st) ? errno : temp_create(&temp, dir_fd, name);
	if (ret) {
		fail_errno(f, "cannot write a new container", ret);
		return false;
	}
	ok = write_new(fd, reader, &st, opts, &temp, f);
	if (ok && fstat(temp.fd, &f->st)) {
		fail_errno(f, "cannot write the new container", errno);
		ok = false;
	}
	ok = ok && relink(s, e, &st, &temp, f) && replace(&st, name, &temp, f);
	temp_discard(&temp);
	if (ok)
		note_losses(s, e, &st, f);
	f->rewritten = ok;
	return ok;
}

static void sign_container(const struct signed_store *s, const struct tree_entry *e, int dir_fd, const char *name,
			   int fd, const struct sign_opts *opts, struct signed_file *f)
{
	const struct wfs_reader_opts reader_opts = {.cpu = opts->cpu, .suffixed = true};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	struct wfs_info info;
	struct wfs_head head;
	f->container = true;
	if (wfs_reader_open(fd, &reader_opts, &reader, &err) != WFS_OK) {
		fail_container(f, fd, NULL, &err);
		return;
	}
	wfs_reader_info(reader, &info);
	if (info.has_sha256)
		progress_add(opts->progress, info.head.raw_len);
	f->good = info.has_sha256 ? prove(fd, false, opts, f, &head) : rewrite(s, e, dir_fd, name, fd, reader, opts, f);
	wfs_reader_free(reader);
}

void sign_file(const struct signed_store *s, const struct tree_entry *e, const struct sign_opts *opts,
	       struct signed_file *file_ret)
{
	struct wfs_error err = {0};
	struct wfs_head head;
	const char *name;
	struct stat st;
	int dir_fd, fd = tree_open_path(s->root_fd, e->path, &dir_fd, &name);
	*file_ret = (struct signed_file){0};
	if (fd < 0) {
		fail_errno(file_ret, "cannot open", errno);
		return;
	}
	if (fstat(fd, &st))
		fail_errno(file_ret, "cannot open", errno);
	else if (!container_path(e->path) || wfs_head_read_suffixed(fd, &head, &err) == WFS_NOT_CONTAINER)
		sign_plain(fd, &st, opts, file_ret);
	else
		sign_container(s, e, dir_fd, name, fd, opts, file_ret);
	close(fd);
	close(dir_fd);
}
