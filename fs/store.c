/* store.c - see store.h. */
#include "store.h"
#include "access_list.h"
#include "fs.h"
#include "reply.h"
#include "signed.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- versions -------------------------------------------------------------------------------------------------- */

struct wfsd_ident wfsd_ident_of(const struct stat *st, bool versioned)
{
	struct wfsd_ident ident = {.dev = st->st_dev, .ino = st->st_ino, .type = st->st_mode & S_IFMT};
	if (versioned) {
		ident.versioned = 1;
		ident.size = (uint64_t)st->st_size;
		ident.mtime_sec = st->st_mtim.tv_sec;
		ident.mtime_nsec = (uint32_t)st->st_mtim.tv_nsec;
		ident.ctime_sec = st->st_ctim.tv_sec;
		ident.ctime_nsec = (uint32_t)st->st_ctim.tv_nsec;
	}
	return ident;
}

/* Users see these numbers (tar, rsync, find -inum) and compare them over remounts: the function must never change. Each
 * step is a bijection of h for a given word (odd multiplier, xor-shift), as in splitmix64. */
uint64_t wfsd_ident_ino(const struct wfsd_ident *ident)
{
	uint64_t words[sizeof(*ident) / sizeof(uint64_t)], h = 0x77667364; /* "wfsd" */
	memcpy(words, ident, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		h = (h ^ words[i]) * 0xbf58476d1ce4e5b9;
		h = (h ^ h >> 29) * 0x94d049bb133111eb;
		h ^= h >> 32;
	}
	return h > 1 ? h : h + 2;
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* openat2 keeps the whole way beneath the root, also against whoever renames in the store. */
static int open_beneath(int root_fd, const char *path, int flags)
{
	const struct open_how how = {.flags = (uint64_t)(unsigned)flags,
				     .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

bool wfsd_store_has_openat2(int root_fd)
{
	int fd = open_beneath(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The same, name by name: for older kernels, for filters that forbid openat2, and for paths longer than a system call
 * takes. */
static int walk(int root_fd, const char *path, int flags)
{
	int fd = openat(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && *path) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		if (len >= sizeof(name)) {
			close(fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + (path[len] == '/');
		int next = openat(fd, name, *path ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags);
		int err = errno;
		close(fd);
		errno = err;
		fd = next;
	}
	return fd;
}

int wfsd_store_open(const struct wfsd *d, const char *path, int flags, int *fd_ret)
{
	int fd;

	/* openat2 refuses what openat leaves aside. */
	flags |= O_NOFOLLOW | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY);
	if (wfsd_store_hangs(d))
		return -EIO;
	if (!*path)
		fd = openat(d->root_fd, ".", flags);
	else if (d->openat2 && strlen(path) < PATH_MAX)
		fd = open_beneath(d->root_fd, path, flags);
	else
		fd = walk(d->root_fd, path, flags);
	if (fd < 0)
		return -errno;
	*fd_ret = fd;
	return 0;
}

/* ---- heads ----------------------------------------------------------------------------------------------------- */

/* One version's head, or that it has none. 0 in ident.ino: an empty place. */
struct head {
	struct wfsd_ident ident;
	uint64_t raw_len;
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	uint16_t kind; /* enum wfsd_kind */
	uint16_t err;  /* DAMAGED: the errno */
};

/* Direct-mapped: a newcomer takes the place. 10 MiB when full, touched as it fills. */
enum { NR_HEADS = 1 << 17, NR_HEAD_LOCKS = 64 };
struct wfsd_heads {
	pthread_mutex_t lock[NR_HEAD_LOCKS]; /* place i is under lock i % NR_HEAD_LOCKS */
	struct head *head;
};

struct wfsd_heads *wfsd_heads_new(void)
{
	struct wfsd_heads *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	for (int i = 0; i < NR_HEAD_LOCKS; i++)
		pthread_mutex_init(&h->lock[i], NULL);
	h->head = mmap(NULL, NR_HEADS * sizeof(struct head), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->head == MAP_FAILED) {
		h->head = NULL;
		wfsd_heads_free(h);
		return NULL;
	}
	return h;
}

void wfsd_heads_free(struct wfsd_heads *h)
{
	if (!h)
		return;
	if (h->head)
		munmap(h->head, NR_HEADS * sizeof(struct head));
	for (int i = 0; i < NR_HEAD_LOCKS; i++)
		pthread_mutex_destroy(&h->lock[i]);
	free(h);
}

static bool heads_find(struct wfsd_heads *h, const struct wfsd_ident *ident, struct head *ret)
{
	uint64_t i = wfsd_ident_ino(ident) % NR_HEADS;
	pthread_mutex_lock(&h->lock[i % NR_HEAD_LOCKS]);
	*ret = h->head[i];
	pthread_mutex_unlock(&h->lock[i % NR_HEAD_LOCKS]);
	return wfsd_ident_equal(&ret->ident, ident);
}

static void heads_remember(struct wfsd_heads *h, const struct head *head)
{
	uint64_t i = wfsd_ident_ino(&head->ident) % NR_HEADS;
	pthread_mutex_lock(&h->lock[i % NR_HEAD_LOCKS]);
	h->head[i] = *head;
	pthread_mutex_unlock(&h->lock[i % NR_HEAD_LOCKS]);
}

bool wfsd_has_suffix(const char *stored)
{
	size_t len = strlen(stored);
	if (len <= WFSD_SUFFIX_LEN || strcmp(stored + len - WFSD_SUFFIX_LEN, WFSD_SUFFIX))
		return false;
	size_t base = len - WFSD_SUFFIX_LEN; /* "." and ".." cannot be shown */
	return !(stored[0] == '.' && (base == 1 || (base == 2 && stored[1] == '.')));
}

bool wfsd_add_suffix(const char *shown, char *stored_ret)
{
	return snprintf(stored_ret, NAME_MAX + 1, "%s" WFSD_SUFFIX, shown) <= NAME_MAX;
}

void wfsd_store_read_exactly(int fd)
{
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
}

/* Read the head of an open file of this version. What can be otherwise the next time is not remembered. */
static void head_read(struct wfsd *d, int fd, struct head *head, const char *dir, const char *stored)
{
	char remedy[WFSD_REMEDY_BYTES];
	struct wfs_head raw;
	struct wfs_error err;

	wfsd_count(&d->stats.heads_read, 1);
	wfsd_store_read_exactly(fd);
	switch (wfs_head_read_suffixed(fd, &raw, &err)) {
	case WFS_OK:
		head->kind = WFSD_CONTAINER;
		head->raw_len = raw.raw_len;
		head->mtime_sec = raw.mtime_sec;
		head->mtime_nsec = raw.mtime_nsec;
		break;
	case WFS_NOT_CONTAINER:
		head->kind = WFSD_ORDINARY;
		break;
	default:
		head->kind = WFSD_DAMAGED;
		head->err = (uint16_t)wfsd_errno(&err);
		wfsd_count(&d->stats.bad_files, 1);
		wfsd_log(&d->log, WFSD_ERROR, "container %s%s%s: %s: %s; %s", dir ? dir : "", dir && *dir ? "/" : "",
			 stored, err.reason, strerror(head->err), wfsd_remedy(remedy, d, err.status));
	}
	if (head->kind != WFSD_DAMAGED || (err.status != WFS_IO && err.status != WFS_NO_MEMORY))
		heads_remember(d->heads, head);
}

/* The head of a regular file whose name has the suffix; *st is brought up to date when the file had to be opened. */
static int head_get(struct wfsd *d, int dir_fd, const char *stored, struct stat *st, struct head *head, const char *dir)
{
	struct wfsd_ident ident = wfsd_ident_of(st, true);
	int fd, err = 0;

	if (heads_find(d->heads, &ident, head))
		return 0;
	/* O_NONBLOCK: should it be a FIFO by now. */
	fd = openat(dir_fd, stored, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st)) {
		err = -errno;
		/* Ours to show, but not to read: shown, and whoever asks for it gets the reason. */
		if (fd < 0 && (err == -EACCES || err == -EPERM || err == -EMFILE || err == -ENFILE || err == -EIO)) {
			*head = (struct head){.ident = ident, .kind = WFSD_DAMAGED, .err = (uint16_t)-err};
			return 0;
		}
		goto out;
	}
	if (!S_ISREG(st->st_mode)) {
		err = -ESTALE; /* replaced between the two calls */
		goto out;
	}
	*head = (struct head){.ident = wfsd_ident_of(st, true)};
	head_read(d, fd, head, dir, stored);
out:
	if (fd >= 0)
		close(fd);
	return err;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

void wfsd_store_limit_mode(const struct wfsd *d, int fd, const char *name, struct stat *st)
{
	char path[sizeof("/proc/self/fd/-2147483648/") + NAME_MAX], list[4096];

	if (!d->opts->allow_other || S_ISLNK(st->st_mode) || !(st->st_mode & 077))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d%s%s", fd, name ? "/" : "", name ? name : "");
	ssize_t len = name ? lgetxattr(path, WFS_ACCESS_LIST_XATTR, list, sizeof(list))
			   : getxattr(path, WFS_ACCESS_LIST_XATTR, list, sizeof(list));
	if (len >= 0 || (errno != ENODATA && errno != EOPNOTSUPP))
		st->st_mode = wfs_mode_of_access_list(st->st_mode, list, len > 0 ? (size_t)len : 0);
}

int wfsd_store_probe(struct wfsd *d, int dir_fd, const char *stored, struct wfsd_entry *e, enum wfsd_kind *kind_ret,
		     int *err_ret, const char *dir)
{
	struct head head = {.kind = WFSD_ORDINARY};
	int err;

	if (strlen(stored) > NAME_MAX)
		return -ENOENT;
	if (fstatat(dir_fd, stored, &e->st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT))
		return errno == ENAMETOOLONG ? -ENOENT : -errno;
	if (wfs_is_temporary(stored, e->st.st_mode))
		return -ENOENT;
	if (S_ISREG(e->st.st_mode) && wfsd_has_suffix(stored)) {
		err = head_get(d, dir_fd, stored, &e->st, &head, dir);
		if (err)
			return err;
	}
	memcpy(e->stored, stored, strlen(stored) + 1);
	*kind_ret = (enum wfsd_kind)head.kind;
	*err_ret = head.err;
	e->container = head.kind != WFSD_ORDINARY;
	e->ident = wfsd_ident_of(&e->st, e->container);
	e->st.st_ino = wfsd_ident_ino(&e->ident);
	wfsd_store_limit_mode(d, dir_fd, stored, &e->st);
	if (head.kind == WFSD_CONTAINER) {
		e->st.st_size = (off_t)head.raw_len;
		e->st.st_blocks = (blkcnt_t)((head.raw_len + 511) / 512);
		e->st.st_mtim = (struct timespec){head.mtime_sec, head.mtime_nsec};
	}
	return 0;
}

/* Whether it names an entry of its directory: not the directory itself, nor anything beyond. */
static bool is_name(const char *shown)
{
	return *shown && !strchr(shown, '/') && strcmp(shown, ".") && strcmp(shown, "..");
}

int wfsd_store_resolve(struct wfsd *d, int dir_fd, const char *shown, struct wfsd_entry *e, const char *dir)
{
	enum wfsd_kind kind;
	int err, bad = 0;
	char stored[NAME_MAX + 1];

	if (strlen(shown) > NAME_MAX) /* the kernel lets up to 1024 bytes through */
		return -ENAMETOOLONG;
	if (!is_name(shown)) /* the kernel never asks for one */
		return -ENOENT;
	if (d->signed_store)
		return wfsd_signed_resolve(d, dir_fd, shown, e, dir);
	err = wfsd_store_probe(d, dir_fd, shown, e, &kind, &bad, dir);
	if (err != -ENOENT && (err || kind == WFSD_ORDINARY))
		return err;
	if (!wfsd_add_suffix(shown, stored))
		return -ENOENT;
	err = wfsd_store_probe(d, dir_fd, stored, e, &kind, &bad, dir);
	if (err)
		return err;
	return kind == WFSD_CONTAINER ? 0 : kind == WFSD_DAMAGED ? -bad : -ENOENT;
}
