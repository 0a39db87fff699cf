/* ops.c - one function a FUSE request: take the arguments, call, reply once (reply.h).
 *
 * Left out on purpose, so that libfuse answers ENOSYS, the kernel never asks again and does the right thing itself:
 * flush, fsync (nothing to write), access (default_permissions), getxattr and listxattr (EOPNOTSUPP, or no attributes),
 * flock and locks (local), ioctl (ENOTTY), lseek (no holes), poll, bmap, copy_file_range (falls back to copying).
 *
 * The mount is `ro`, so the kernel refuses writes with EROFS by itself; the op_* that answer EROFS are for the day
 * somebody remounts it rw.
 */
#include "ops.h"
#include "dir.h"
#include "file.h"
#include "fs.h"
#include "read.h"
#include "reply.h"
#include "signed.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct wfsd *begin(fuse_req_t req, struct wfsd_request *r)
{
	struct wfsd *d = fuse_req_userdata(req);
	wfsd_begin(d, r, req);
	return d;
}

/* The node of a request, kept from being forgotten until node_end: the watchdog may answer before we are done. */
static struct wfsd_node *node_begin(struct wfsd *d, fuse_ino_t ino)
{
	struct wfsd_node *node = wfsd_tree_node(d->tree, ino);
	wfsd_tree_ref(d->tree, node);
	return node;
}

static void node_end(struct wfsd *d, struct wfsd_node *node)
{
	wfsd_tree_unref(d->tree, node);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	wfsd_tune_init(userdata, conn);
}

/* ---- names and attributes -------------------------------------------------------------------------------------- */

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct wfsd_request r;
	struct fuse_entry_param entry;
	struct wfsd_node *node = node_begin(fuse_req_userdata(req), parent);
	struct wfsd *d = begin(req, &r);

	int err = wfsd_lookup(d, node, name, &entry);
	if (err)
		wfsd_reply_err(&r, err);
	else if (!wfsd_reply_entry(&r, &entry) && entry.ino)
		wfsd_tree_forget(d->tree, wfsd_tree_node(d->tree, entry.ino), 1);
	node_end(d, node);
}

/* The kernel forgets a container at once when its name leads nowhere or to another version: then it must not be kept
 * open, for its space in the store is free only when we let go of it. */
static void forget(struct wfsd *d, fuse_ino_t ino, uint64_t nlookup)
{
	struct wfsd_node *node = node_begin(d, ino);
	if (wfsd_tree_forget(d->tree, node, nlookup))
		wfsd_file_unkeep(d, node);
	node_end(d, node);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	forget(fuse_req_userdata(req), ino, nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget(fuse_req_userdata(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct wfsd_request r;
	struct wfsd_node *node = node_begin(fuse_req_userdata(req), ino);
	struct wfsd *d = begin(req, &r);
	struct stat st;
	int err;

	(void)fi;
	if (node->ident.versioned) {
		wfsd_reply_attr(&r, &node->st, 3e8);
	} else {
		err = wfsd_node_stat(d, node, &st);
		if (err)
			wfsd_reply_err(&r, err);
		else
			wfsd_reply_attr(&r, &st, 1.0);
	}
	node_end(d, node);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct wfsd_request r;
	struct wfsd_node *node = node_begin(fuse_req_userdata(req), ino);
	struct wfsd *d = begin(req, &r);
	char target[PATH_MAX + 1];
	struct stat st;
	ssize_t len = 0;
	int fd = -1;

	int err = -wfsd_node_open(d, node, O_PATH, &fd, &st);
	if (!err) {
		len = readlinkat(fd, "", target, sizeof(target) - 1);
		err = len < 0 ? errno : 0;
		close(fd);
	}
	target[len < 0 ? 0 : len] = '\0';
	const struct wfs_manifest_entry *entry = wfsd_signed_entry(d, &node->ident);
	if (!err && entry)
		err = wfsd_signed_check_link(d, entry, target);
	if (err)
		wfsd_reply_err(&r, err);
	else
		wfsd_reply_readlink(&r, target);
	node_end(d, node);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct wfsd_request r;
	struct wfsd *d = begin(req, &r);
	struct statvfs st;
	int err = wfsd_store_hangs(d) ? EIO : 0;

	(void)ino;
	if (!err && fstatvfs(d->root_fd, &st))
		err = errno;
	if (err)
		wfsd_reply_err(&r, err);
	else
		wfsd_reply_statfs(&r, &st);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static struct wfsd_file *file_of(const struct fuse_file_info *fi)
{
	return (struct wfsd_file *)(uintptr_t)fi->fh;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct wfsd_request r;
	struct wfsd_node *node = node_begin(fuse_req_userdata(req), ino);
	struct wfsd *d = begin(req, &r);
	struct wfsd_file *file = NULL;
	bool keep_cache = false;
	int err = EROFS;

	if ((fi->flags & O_ACCMODE) == O_RDONLY && !(fi->flags & O_TRUNC))
		err = wfsd_file_open(d, node, &file, &keep_cache);
	if (err) {
		wfsd_reply_err(&r, err);
		goto out;
	}
	fi->fh = (uintptr_t)file;
	fi->keep_cache = keep_cache;
	wfsd_count(&d->stats.opens, 1);
	wfsd_count(&d->stats.open_handles, 1);
	if (!wfsd_reply_open(&r, fi)) {
		wfsd_uncount(&d->stats.open_handles, 1);
		wfsd_file_put(d, file);
	}
out:
	node_end(d, node);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct wfsd *d = fuse_req_userdata(req);
	(void)ino;
	wfsd_file_put(d, file_of(fi));
	wfsd_uncount(&d->stats.open_handles, 1);
	fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct wfsd_request r;
	struct wfsd_file *file = file_of(fi);

	(void)ino;
	wfsd_file_ref(file); /* after the watchdog's answer the handle may be released */
	struct wfsd *d = fuse_req_userdata(req);
	wfsd_begin_read(d, &r, req, file);
	wfsd_read(&r, file, (uint64_t)off, size, fi->flags & O_DIRECT);
	wfsd_file_put(d, file);
}

/* ---- directories ----------------------------------------------------------------------------------------------- */

static struct wfsd_dir *dir_of(const struct fuse_file_info *fi)
{
	return (struct wfsd_dir *)(uintptr_t)fi->fh;
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct wfsd_request r;
	struct wfsd_node *node = node_begin(fuse_req_userdata(req), ino);
	struct wfsd *d = begin(req, &r);
	struct wfsd_dir *dir = NULL;

	int err = wfsd_dir_open(d, node, &dir);
	fi->fh = (uintptr_t)dir;
	if (err)
		wfsd_reply_err(&r, err);
	else if (!wfsd_reply_open(&r, fi))
		wfsd_dir_put(d, dir);
	node_end(d, node);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	wfsd_dir_put(fuse_req_userdata(req), dir_of(fi));
	fuse_reply_err(req, 0);
}

static void dir_read(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi, bool plus)
{
	struct wfsd_request r;
	struct wfsd_dir *dir = dir_of(fi);

	wfsd_dir_ref(dir);
	struct wfsd *d = begin(req, &r);
	wfsd_dir_read(&r, dir, (uint64_t)off, size, plus);
	wfsd_dir_put(d, dir);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	dir_read(req, size, off, fi, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	dir_read(req, size, off, fi, true);
}

/* ---- writes: never --------------------------------------------------------------------------------------------- */

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set, struct fuse_file_info *fi)
{
	(void)ino, (void)st, (void)to_set, (void)fi;
	fuse_reply_err(req, EROFS);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)parent, (void)name, (void)mode, (void)rdev;
	fuse_reply_err(req, EROFS);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent, (void)name, (void)mode;
	fuse_reply_err(req, EROFS);
}

static void op_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	fuse_reply_err(req, EROFS);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target, (void)parent, (void)name;
	fuse_reply_err(req, EROFS);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
		      unsigned flags)
{
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	fuse_reply_err(req, EROFS);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	(void)ino, (void)new_parent, (void)new_name;
	fuse_reply_err(req, EROFS);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	(void)parent, (void)name, (void)mode, (void)fi;
	fuse_reply_err(req, EROFS);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino, (void)buf, (void)size, (void)off, (void)fi;
	fuse_reply_err(req, EROFS);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	(void)ino, (void)name, (void)value, (void)size, (void)flags;
	fuse_reply_err(req, EROFS);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	(void)ino, (void)name;
	fuse_reply_err(req, EROFS);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi)
{
	(void)ino, (void)mode, (void)off, (void)len, (void)fi;
	fuse_reply_err(req, EROFS);
}

const struct fuse_lowlevel_ops wfsd_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.readlink = op_readlink,
	.statfs = op_statfs,
	.open = op_open,
	.release = op_release,
	.read = op_read,
	.opendir = op_opendir,
	.releasedir = op_releasedir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.setattr = op_setattr,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_remove,
	.rmdir = op_remove,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.create = op_create,
	.write = op_write,
	.setxattr = op_setxattr,
	.removexattr = op_removexattr,
	.fallocate = op_fallocate,
};
