/* safe_file.c - files that appear whole or not at all: temporaries, publishing, clearing up after dead runs. */
#include "safe_file.h"
#include "access_list.h"
#include "same_file.h"
#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TRIES = 100 };
static const long lock_retry_ns = 10 * 1000 * 1000;

/* How much of for_name a temporary's name keeps, so that it fits. A UTF-8 sequence is not cut in two: some file systems
 * refuse what is left. */
static size_t kept_len(int dir_fd, const char *for_name)
{
	long name_max = fpathconf(dir_fd, _PC_NAME_MAX);
	size_t room = (name_max < 64 || name_max > NAME_MAX ? NAME_MAX : (size_t)name_max) - 1 - WFS_TEMPORARY_TAIL_LEN;
	size_t len = strlen(for_name);
	if (len <= room)
		return len;
	while (room > 0 && ((unsigned char)for_name[room] & 0xc0) == 0x80)
		room--;
	return room;
}

static void compose_name(char name[NAME_MAX + 1], int dir_fd, const char *for_name, const char *chars)
{
	snprintf(name, NAME_MAX + 1, ".%.*s" WFS_TEMPORARY_MARK "%s" WFS_TEMPORARY_END, (int)kept_len(dir_fd, for_name),
		 for_name, chars);
}

static void temp_name(char name[NAME_MAX + 1], int dir_fd, const char *for_name)
{
	unsigned char bytes[WFS_TEMPORARY_NR_CHARS] = {0};
	char random[WFS_TEMPORARY_NR_CHARS + 1] = "";
	/* Six bytes are never cut short nor interrupted once the pool is up; if the call fails the name is merely
	 * the same each time, and O_EXCL still keeps it safe. */
	(void)!getrandom(bytes, sizeof(bytes), 0);
	for (unsigned i = 0; i < WFS_TEMPORARY_NR_CHARS; i++)
		random[i] = WFS_TEMPORARY_CHARS[bytes[i] % (sizeof(WFS_TEMPORARY_CHARS) - 1)];
	compose_name(name, dir_fd, for_name, random);
}

/* The same for every run, and looking like a temporary, so that a dead run's is removed like one. The hash (FNV-1a)
 * tells names apart that are too long to be kept whole. */
static void lock_name(char name[NAME_MAX + 1], int dir_fd, const char *for_name)
{
	uint64_t hash = 0xcbf29ce484222325;
	char chars[WFS_TEMPORARY_NR_CHARS + 1] = "";
	for (const char *c = for_name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	for (unsigned i = 0; i < WFS_TEMPORARY_NR_CHARS; i++, hash /= sizeof(WFS_TEMPORARY_CHARS) - 1)
		chars[i] = WFS_TEMPORARY_CHARS[hash % (sizeof(WFS_TEMPORARY_CHARS) - 1)];
	compose_name(name, dir_fd, for_name, chars);
}

/* Take the lock that says we live. EAGAIN: someone else holds it. A file system without locks is no reason to fail. */
static int lock_file(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

const char *file_error_text(int error)
{
	switch (error) {
	case FILE_CHANGED:
		return "changed or was replaced meanwhile";
	case NAME_BUSY:
		return "another weightfs is at work on it";
	case NAME_LOCKED:
		return "a lock of another user's weightfs lies beside it, .NAME.weightfs-XXXXXX.tmp: remove that when "
		       "no "
		       "run of theirs is left";
	default:
		return strerror(error);
	}
}

/* The name is opened, as NFS looks at the server then: what stat says may be half a minute old, and another client may
 * have removed what we have locked. */
bool file_is_named(int fd, int dir_fd, const char *name)
{
	struct stat open_file, named;
	int named_fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool same =
		named_fd >= 0 && !fstat(fd, &open_file) && !fstat(named_fd, &named) && same_inode(&open_file, &named);
	if (named_fd >= 0)
		close(named_fd);
	return same;
}

int temp_create(struct temp_file *t, int dir_fd, const char *for_name)
{
	*t = (struct temp_file){.dir_fd = dir_fd, .fd = -1};
	for (unsigned i = 0; i < MAX_TRIES; i++) {
		temp_name(t->name, dir_fd, for_name);
		t->fd = openat(dir_fd, t->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (t->fd < 0 && errno == EEXIST)
			continue;
		if (t->fd < 0)
			return errno;
		/* Another run may have taken the new, not yet locked file for a dead one's. */
		if (lock_file(t->fd, F_WRLCK) != EAGAIN && file_is_named(t->fd, dir_fd, t->name))
			return 0;
		close(t->fd);
		t->fd = -1;
	}
	return EEXIST;
}

int name_lock(struct temp_file *lock, int dir_fd, const char *name)
{
	const struct timespec pause = {.tv_nsec = lock_retry_ns};
	*lock = (struct temp_file){.dir_fd = dir_fd, .fd = -1};
	lock_name(lock->name, dir_fd, name);
	for (unsigned i = 0; i < MAX_TRIES; i++) {
		int ret;
		lock->fd = openat(dir_fd, lock->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
		if (lock->fd < 0)
			return errno == EACCES && !faccessat(dir_fd, lock->name, F_OK, AT_SYMLINK_NOFOLLOW)
				       ? NAME_LOCKED
				       : errno;
		ret = lock_file(lock->fd, F_WRLCK);
		/* Its last holder removes it: then what we have locked is nobody's. */
		if (ret != EAGAIN && file_is_named(lock->fd, dir_fd, lock->name))
			return 0;
		close(lock->fd);
		lock->fd = -1;
		if (ret == EAGAIN)
			nanosleep(&pause, NULL);
	}
	return NAME_BUSY;
}

int temp_reopen(const struct temp_file *t)
{
	struct stat written, opened;
	int ret = file_settle(t->fd), fd;
	if (ret) {
		errno = ret;
		return -1;
	}
	fd = openat(t->dir_fd, t->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(t->fd, &written) || fstat(fd, &opened))
		ret = errno;
	else if (!same_inode(&written, &opened))
		ret = FILE_CHANGED;
	if (ret) {
		close(fd);
		errno = ret;
		return -1;
	}
	return fd;
}

void temp_discard(struct temp_file *t)
{
	if (t->fd < 0)
		return;
	unlinkat(t->dir_fd, t->name, 0);
	close(t->fd);
	t->fd = -1;
}

/* Move from to name without ever replacing a file. */
static int rename_no_replace(int dir_fd, const char *from, const char *name)
{
	struct stat st;
	if (!renameat2(dir_fd, from, dir_fd, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return errno;
	/* NFS and some others lack the flag: a link fails for an existing name just as well. */
	if (!linkat(dir_fd, from, dir_fd, name, 0)) {
		unlinkat(dir_fd, from, 0);
		return 0;
	}
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
		return errno;
	/* Neither flag nor links (FAT): the best there is. */
	if (!fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return EEXIST;
	return renameat(dir_fd, from, dir_fd, name) ? errno : 0;
}

/* A device, FIFO or socket: no file can stand for it, so it is never replaced. */
static bool is_special(int dir_fd, const char *name)
{
	struct stat st;
	return !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) &&
	       !S_ISDIR(st.st_mode);
}

static int publish(int dir_fd, const char *from, const char *name, bool replace)
{
	int ret;
	if (replace && is_special(dir_fd, name))
		return EEXIST;
	ret = replace ? (renameat(dir_fd, from, dir_fd, name) ? errno : 0) : rename_no_replace(dir_fd, from, name);
	return ret ? ret : dir_sync(dir_fd);
}

int temp_publish(struct temp_file *t, const char *name, bool replace)
{
	int ret = publish(t->dir_fd, t->name, name, replace);
	if (ret)
		return ret;
	close(t->fd);
	t->fd = -1;
	return 0;
}

int link_publish(int src_dir, const char *src_name, const struct stat *want, int dst_dir, const char *name,
		 bool replace)
{
	char temp[NAME_MAX + 1];
	struct stat st;
	int ret;
	temp_name(temp, dst_dir, name);
	if (linkat(src_dir, src_name, dst_dir, temp, 0))
		return errno;
	/* src_name may have become another file's: it gets no second name from us. */
	if (fstatat(dst_dir, temp, &st, AT_SYMLINK_NOFOLLOW))
		ret = errno;
	else
		ret = same_file(&st, want) ? publish(dst_dir, temp, name, replace) : FILE_CHANGED;
	/* rename does nothing when both names are links of one file already. */
	unlinkat(dst_dir, temp, 0);
	return ret;
}

int symlink_publish(const char *target, int dst_dir, const char *name, bool replace)
{
	char temp[NAME_MAX + 1];
	int ret;
	if (!symlinkat(target, dst_dir, name))
		return 0;
	if (errno != EEXIST || !replace)
		return errno;
	temp_name(temp, dst_dir, name);
	if (symlinkat(target, dst_dir, temp))
		return errno;
	ret = publish(dst_dir, temp, name, true);
	if (ret)
		unlinkat(dst_dir, temp, 0);
	return ret;
}

/* Remove a temporary unless its run is alive. Returns whether it is. */
static bool clean_one(int dir_fd, const char *name)
{
	struct stat st;
	bool alive = false;
	short type = F_WRLCK;
	int fd;
	/* A symbolic link cannot be locked; it is a temporary for microseconds only. */
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	if (S_ISLNK(st.st_mode)) {
		unlinkat(dir_fd, name, 0);
		return false;
	}
	if (!S_ISREG(st.st_mode))
		return false;
	fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == EACCES) {
		/* Killed when it had the mode of a read-only file already: a shared lock tells as well. */
		type = F_RDLCK;
		fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	if (fd < 0)
		return false;
	switch (lock_file(fd, type)) {
	case 0:
		/* Still the file we locked, not a new one under the same name? */
		if (file_is_named(fd, dir_fd, name))
			unlinkat(dir_fd, name, 0);
		break;
	case EAGAIN:
		alive = true;
		break;
	default: /* no locks here: nobody can tell */
		break;
	}
	close(fd);
	return alive;
}

unsigned temp_clean(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	unsigned nr_alive = 0;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	/* cppcheck-suppress readdirCalled ; no other thread has this stream */
	while ((d = readdir(dir)))
		if (wfs_temporary_name(d->d_name))
			nr_alive += clean_one(dir_fd, d->d_name);
	closedir(dir);
	return nr_alive;
}

/* Before the mode is set, which must not open the file to those whom a list that was inherited from the directory
 * names. *mode is what is left where the list cannot be kept. */
static int list_copy(int fd, int from_fd, mode_t *mode)
{
	char *list;
	int ret = 0;
	ssize_t len = from_fd < 0 ? 0 : fgetxattr(from_fd, WFS_ACCESS_LIST_XATTR, NULL, 0);
	if (len < 0 && errno != ENODATA && errno != EOPNOTSUPP)
		return errno;
	if (len <= 0) {
		(void)fremovexattr(fd, WFS_ACCESS_LIST_XATTR);
		if (from_fd < 0)
			*mode = wfs_mode_of_access_list(*mode, "", 0);
		return 0;
	}
	list = xcalloc(1, (size_t)len);
	len = fgetxattr(from_fd, WFS_ACCESS_LIST_XATTR, list, (size_t)len);
	if (len < 0)
		ret = errno;
	else if (fsetxattr(fd, WFS_ACCESS_LIST_XATTR, list, (size_t)len, 0))
		*mode = wfs_mode_of_access_list(*mode, list, (size_t)len);
	free(list);
	return ret;
}

int attributes_set(int fd, int from_fd, const struct stat *st, struct timespec mtime)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime};
	mode_t mode = st->st_mode & 07777;
	struct stat now;
	int ret;
	if (fstat(fd, &now))
		return errno;
	if (now.st_uid != st->st_uid || now.st_gid != st->st_gid) {
		if (fchown(fd, st->st_uid, st->st_gid)) {
			if (geteuid() == 0)
				return errno;
			/* One of our other groups perhaps. */
			(void)!fchown(fd, (uid_t)-1, st->st_gid);
			mode &= 01777;
		}
	}
	ret = list_copy(fd, from_fd, &mode);
	if (ret)
		return ret;
	/* After the owner: a change of owner drops the set-id bits. */
	if (fchmod(fd, mode))
		return errno;
	return futimens(fd, times) ? errno : 0;
}

int file_settle(int fd)
{
	if (fsync(fd))
		return errno;
	/* Advice: where it is not taken (tmpfs) there is no disk to ask. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

int dir_sync(int dir_fd)
{
	if (!fsync(dir_fd) || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)
		return 0;
	return errno;
}
