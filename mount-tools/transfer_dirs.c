/* transfer_dirs.c - directories and symbolic links of a tree, and the attributes they end with. */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Make one directory of the destination, or make sure that we can work in the one that is there. Returns an errno. */
static int make_directory(const struct transfer *t, const char *path)
{
	const char *name;
	int parent, fd = -1, ret = 0;
	struct stat st;
	parent = tree_open_parent(t->dst_root, path, &name);
	if (parent < 0)
		return errno;
	if (!*name) { /* the root */
		close(parent);
		return 0;
	}
	if (!mkdirat(parent, name, 0700))
		goto out;
	ret = errno;
	if (ret != EEXIST)
		goto out;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ret = fd < 0 ? errno : 0;
	/* What an earlier run finished may be closed to us: transfer_finish_directories gives it its mode again. */
	if (!ret && !fstat(fd, &st) && (st.st_mode & 0700) != 0700 && st.st_uid == geteuid() &&
	    fchmod(fd, (st.st_mode & 07777) | 0700))
		ret = errno;
out:
	if (fd >= 0)
		close(fd);
	close(parent);
	return ret;
}

struct directory_id {
	dev_t dev;
	ino_t ino;
};

static int compare_ids(const void *a, const void *b)
{
	const struct directory_id *x = a, *y = b;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* The directories of the source, sorted; the caller frees them. */
static struct directory_id *source_directories(const struct tree *tree, size_t *nr_ret)
{
	struct directory_id *id = xcalloc(tree->nr, sizeof(*id));
	size_t nr = 0;
	for (size_t i = 0; i < tree->nr; i++)
		if (S_ISDIR(tree->entry[i].st.st_mode))
			id[nr++] = (struct directory_id){tree->entry[i].st.st_dev, tree->entry[i].st.st_ino};
	qsort(id, nr, sizeof(*id), compare_ids);
	*nr_ret = nr;
	return id;
}

/* Bind mounts: a directory of the destination may be one of the source by another path, which no comparison of paths
 * tells. */
static bool is_directory_of(const struct directory_id *id, size_t nr, int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return false;
	return bsearch(&(struct directory_id){st.st_dev, st.st_ino}, id, nr, sizeof(*id), compare_ids) != NULL;
}

/* Of the entries from the first on, parents first: nothing is made in a directory before it was looked at. false: the
 * destination is the source. */
static bool make_directories(struct transfer *t, const struct directory_id *source, size_t nr_source)
{
	unsigned nr_alive = 0;
	for (size_t i = 0; i < t->tree.nr && !transfer_stopped(t); i++) {
		const struct tree_entry *e = &t->tree.entry[i];
		int ret = 0, fd;
		if (!S_ISDIR(e->st.st_mode))
			continue;
		if (!t->in_place)
			ret = make_directory(t, e->path);
		if (ret) {
			report_failure(t->report, e->path, "cannot make the directory: %s%s", strerror(ret),
				       transfer_hint(t, t->dst_root, ret));
			continue;
		}
		fd = tree_open_dir(t->dst_root, e->path);
		if (fd < 0)
			continue; /* reported by the walk, or by each file in it */
		if (!t->in_place && is_directory_of(source, nr_source, fd)) {
			close(fd);
			report_failure(t->report, e->path,
				       "the destination is the source by another path: use --in-place instead of -o");
			return false;
		}
		nr_alive += temp_clean(fd);
		close(fd);
		report_other(t->report, true);
	}
	if (nr_alive)
		report_notice(t->report, t->opts->destination ? t->opts->destination : t->opts->source,
			      "another weightfs is at work here");
	return true;
}

bool transfer_make_directories(struct transfer *t)
{
	size_t nr;
	struct directory_id *source = source_directories(&t->tree, &nr);
	bool ok = make_directories(t, source, nr);
	free(source);
	return ok;
}

static bool same_link(int dir_fd, const char *name, const char *target)
{
	size_t room = strlen(target) + 2;
	char *text = xcalloc(1, room);
	ssize_t len = readlinkat(dir_fd, name, text, room - 1);
	bool same = len >= 0 && !strcmp(text, target);
	free(text);
	return same;
}

static int make_symlink(const struct transfer *t, const struct tree_entry *e)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, e->st.st_mtim};
	const char *name;
	int dir_fd = tree_open_parent(t->dst_root, e->path, &name), ret = 0;
	if (dir_fd < 0)
		return errno;
	if (!same_link(dir_fd, name, e->link_target))
		ret = symlink_publish(e->link_target, dir_fd, name, t->opts->force);
	if (!ret && fchownat(dir_fd, name, e->st.st_uid, e->st.st_gid, AT_SYMLINK_NOFOLLOW) && geteuid() == 0)
		ret = errno;
	if (!ret && utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) && errno != EOPNOTSUPP)
		ret = errno;
	close(dir_fd);
	return ret;
}

void transfer_make_symlinks(struct transfer *t)
{
	for (size_t i = 0; i < t->tree.nr && !transfer_stopped(t); i++) {
		const struct tree_entry *e = &t->tree.entry[i];
		int ret;
		if (!S_ISLNK(e->st.st_mode))
			continue;
		ret = t->in_place ? 0 : make_symlink(t, e);
		if (ret == EEXIST)
			report_failure(t->report, e->path, "something else is there already (--force replaces it)");
		else if (ret)
			report_failure(t->report, e->path, "cannot make the symbolic link: %s%s", strerror(ret),
				       transfer_hint(t, t->dst_root, ret));
		else
			report_other(t->report, false);
	}
}

/* fd: the entry's directory in the destination, which in place is the source's own. Returns 0 or an errno. */
static int finish_directory(const struct transfer *t, const struct tree_entry *e, int fd)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, e->st.st_mtim};
	int from_fd, ret;
	if (t->in_place)
		return futimens(fd, times) ? errno : 0;
	from_fd = tree_open_dir(t->src_root, e->path);
	if (from_fd < 0 && errno != EACCES) /* what may not be read was reported, and keeps to its owner */
		return errno;
	ret = attributes_set(fd, from_fd, &e->st, e->st.st_mtim);
	if (from_fd >= 0)
		close(from_fd);
	return ret;
}

/* From the leaves up, so that no work in a directory follows its time. */
void transfer_finish_directories(struct transfer *t)
{
	for (size_t i = t->tree.nr; i-- > 0;) {
		const struct tree_entry *e = &t->tree.entry[i];
		int fd, ret;
		if (!S_ISDIR(e->st.st_mode) || (t->in_place && !atomic_load(&t->touched[i])))
			continue;
		fd = tree_open_dir(t->dst_root, e->path);
		if (fd < 0)
			continue; /* reported when it could not be made */
		ret = finish_directory(t, e, fd);
		/* A destination that was there may be another's, who let us write into it. */
		if (ret && !(ret == EPERM && i == 0))
			report_failure(t->report, e->path, "cannot set mode, owner and time: %s", strerror(ret));
		close(fd);
	}
}
