/* faults.c - stands between a program and its system calls (LD_PRELOAD): counts those that change a tree, and at the
 * one that the environment names kills or stops the program, lets the call fail, or runs a command.
 *
 * FAULT_ROOT: only calls on what lies beneath this real path count.
 * FAULT_CALLS: their names, each between commas (",fsync,unlink,"); unset: all but open, pread and forget.
 * FAULT_AT: the number of the call at which it happens, before the call; "5+": at each from there on.
 * FAULT_ACTION: kill; torn (a write does its first half, then kill); stop; interrupt; run (FAULT_COMMAND); or an errno.
 * FAULT_LACKS: what the file system shall not have: "noreplace" (of renameat2, like NFS), "locks", "sync" (syncing does
 *	nothing, for speed where nothing depends on it), "local" (it says that it is NFS).
 * FAULT_LOG: a line for each counted call, and one for each that changed or synced something; crash.py reads them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Set by the constructor alone, but for the counter. */
static struct {
	char root[PATH_MAX];
	const char *calls, *action, *command;
	bool lacks_noreplace, lacks_locks, lacks_sync, lacks_local, each;
	unsigned at;
	int log_fd, error;
	atomic_uint nr;
} faults = {.log_fd = -1};

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define EXPORT	   __attribute__((visibility("default")))

static bool lists(const char *list, const char *word)
{
	return list && strstr(list, word);
}

static __attribute__((constructor)) void read_environment(void)
{
	const char *root = getenv("FAULT_ROOT"), *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
	const char *lacks = getenv("FAULT_LACKS");
	char *end = NULL;
	/* What is run from here is not meant. */
	unsetenv("LD_PRELOAD");
	if (!root)
		return;
	snprintf(faults.root, sizeof(faults.root), "%s", root);
	faults.calls = getenv("FAULT_CALLS");
	faults.action = getenv("FAULT_ACTION");
	faults.command = getenv("FAULT_COMMAND");
	faults.lacks_noreplace = lists(lacks, "noreplace");
	faults.lacks_locks = lists(lacks, "locks");
	faults.lacks_sync = lists(lacks, "sync");
	faults.lacks_local = lists(lacks, "local");
	faults.at = at ? (unsigned)strtoul(at, &end, 10) : 0;
	faults.each = end && *end == '+';
	faults.error = faults.action ? atoi(faults.action) : 0;
	if (log)
		faults.log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	char line[3 * PATH_MAX];
	va_list args;
	int len, saved = errno;
	if (faults.log_fd < 0)
		return;
	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	(void)!REAL(write)(faults.log_fd, line, (size_t)len);
	errno = saved;
}

/* The path of an open file beneath the root, without the root and the slash behind it; false: it is elsewhere. */
static bool beneath(int fd, char path[PATH_MAX])
{
	char link[64];
	size_t len = strlen(faults.root);
	ssize_t got;
	int saved = errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	got = len ? readlink(link, path, PATH_MAX - 1) : -1;
	errno = saved;
	if (got < 0)
		return false;
	path[got] = '\0';
	if (strncmp(path, faults.root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return false;
	memmove(path, path + len + (path[len] == '/'), strlen(path + len + (path[len] == '/')) + 1);
	return true;
}

static unsigned long long inode(int fd)
{
	struct stat st;
	return fstat(fd, &st) ? 0 : st.st_ino;
}

static unsigned long long inode_of(int dir_fd, const char *name)
{
	struct stat st;
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_ino;
}

static bool counts(const char *call)
{
	char word[32];
	if (!faults.calls)
		return strcmp(call, "open") != 0 && strcmp(call, "pread") != 0 && strcmp(call, "forget") != 0;
	snprintf(word, sizeof(word), ",%s,", call);
	return strstr(faults.calls, word) != NULL;
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* A call on a file beneath the root is about to be made. Returns 0, or the errno with which it shall fail. torn: what
 * does half of it. */
static int step(const char *call, const char *what, void (*torn)(void *ctx), void *ctx)
{
	unsigned nr;
	if (!counts(call))
		return 0;
	nr = atomic_fetch_add(&faults.nr, 1) + 1;
	note("step\t%u\t%s\t%s\n", nr, call, what);
	if (!faults.action || !(nr == faults.at || (faults.each && faults.at && nr > faults.at)))
		return 0;
	if (faults.error)
		return faults.error;
	if (!strcmp(faults.action, "torn") && torn)
		torn(ctx);
	if (!strcmp(faults.action, "kill") || !strcmp(faults.action, "torn"))
		die();
	if (!strcmp(faults.action, "stop"))
		raise(SIGSTOP);
	if (!strcmp(faults.action, "interrupt"))
		kill(getpid(), SIGINT);
	if (!strcmp(faults.action, "run"))
		(void)!system(faults.command);
	return 0;
}

static bool refused(int error)
{
	errno = error;
	return error != 0;
}

struct piece {
	int fd;
	const void *data;
	size_t len;
	off64_t off;
};

static void write_half(void *ctx)
{
	const struct piece *p = ctx;
	(void)!REAL(pwrite64)(p->fd, p->data, p->len / 2, p->off);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t len, off64_t off)
{
	struct piece piece = {fd, data, len, off};
	char path[PATH_MAX];
	bool ours = beneath(fd, path);
	ssize_t ret;
	if (ours && refused(step("write", path, write_half, &piece)))
		return -1;
	ret = REAL(pwrite64)(fd, data, len, off);
	if (ours && ret >= 0)
		note("write\t%llu\n", inode(fd));
	return ret;
}

EXPORT ssize_t pread64(int fd, void *data, size_t len, off64_t off)
{
	char path[PATH_MAX];
	if (beneath(fd, path) && refused(step("pread", path, NULL, NULL)))
		return -1;
	return REAL(pread64)(fd, data, len, off);
}

EXPORT int posix_fadvise64(int fd, off64_t off, off64_t len, int advice)
{
	char path[PATH_MAX];
	int ret = REAL(posix_fadvise64)(fd, off, len, advice);
	/* After the call: what it made the kernel forget can be changed on the disk now. */
	if (advice == POSIX_FADV_DONTNEED && beneath(fd, path))
		(void)step("forget", path, NULL, NULL);
	return ret;
}

EXPORT int fsync(int fd)
{
	struct stat st;
	char path[PATH_MAX];
	if (!beneath(fd, path))
		return REAL(fsync)(fd);
	if (refused(step("fsync", path, NULL, NULL)))
		return -1;
	if (!faults.lacks_sync && REAL(fsync)(fd))
		return -1;
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		note("syncdir\t%s\n", path);
	else
		note("fsync\t%llu\n", (unsigned long long)st.st_ino);
	return 0;
}

EXPORT int syncfs(int fd)
{
	char path[PATH_MAX];
	if (!beneath(fd, path))
		return REAL(syncfs)(fd);
	if (refused(step("syncfs", path, NULL, NULL)))
		return -1;
	if (!faults.lacks_sync && REAL(syncfs)(fd))
		return -1;
	note("syncfs\n");
	return 0;
}

/* A call that changes an open file: count it, make it, log it. */
#define ON_FILE(call, logged, ...)                                                                                     \
	do {                                                                                                           \
		char path_[PATH_MAX];                                                                                  \
		bool ours_ = beneath(fd, path_);                                                                       \
		int ret_;                                                                                              \
		if (ours_ && refused(step(#logged, path_, NULL, NULL)))                                                \
			return -1;                                                                                     \
		ret_ = REAL(call)(fd, __VA_ARGS__);                                                                    \
		if (ours_ && !ret_)                                                                                    \
			note(#logged "\t%llu\n", inode(fd));                                                           \
		return ret_;                                                                                           \
	} while (0)

EXPORT int ftruncate64(int fd, off64_t len)
{
	ON_FILE(ftruncate64, truncate, len);
}

EXPORT int fallocate64(int fd, int mode, off64_t off, off64_t len)
{
	ON_FILE(fallocate64, fallocate, mode, off, len);
}

EXPORT int fchmod(int fd, mode_t mode)
{
	ON_FILE(fchmod, attributes, mode);
}

EXPORT int fchown(int fd, uid_t uid, gid_t gid)
{
	ON_FILE(fchown, attributes, uid, gid);
}

EXPORT int futimens(int fd, const struct timespec times[2])
{
	ON_FILE(futimens, attributes, times);
}

EXPORT int openat64(int dir_fd, const char *name, int flags, ...)
{
	char path[PATH_MAX];
	bool ours = beneath(dir_fd, path), is_new;
	mode_t mode = 0;
	int fd;
	if (flags & O_CREAT) {
		va_list args;
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	if (ours && refused(step(flags & O_CREAT ? "create" : "open", name, NULL, NULL)))
		return -1;
	is_new = (flags & O_CREAT) && ours && !inode_of(dir_fd, name);
	fd = REAL(openat64)(dir_fd, name, flags, mode);
	if (fd >= 0 && is_new)
		note("create\t%s\t%s\t%llu\n", path, name, inode(fd));
	return fd;
}

static int rename_counted(int dir_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	char path[PATH_MAX];
	bool ours = beneath(dir_fd, path);
	int ret;
	if (ours && refused(step("rename", to, NULL, NULL)))
		return -1;
	if (ours && flags && faults.lacks_noreplace)
		return refused(EINVAL) ? -1 : 0;
	ret = REAL(renameat2)(dir_fd, from, to_fd, to, flags);
	if (ours && !ret)
		note("rename\t%s\t%s\t%s\t%llu\n", path, from, to, inode_of(to_fd, to));
	return ret;
}

EXPORT int renameat2(int dir_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return rename_counted(dir_fd, from, to_fd, to, flags);
}

EXPORT int renameat(int dir_fd, const char *from, int to_fd, const char *to)
{
	return rename_counted(dir_fd, from, to_fd, to, 0);
}

EXPORT int linkat(int dir_fd, const char *from, int to_fd, const char *to, int flags)
{
	char path[PATH_MAX];
	bool ours = beneath(to_fd, path);
	int ret;
	if (ours && refused(step("link", to, NULL, NULL)))
		return -1;
	ret = REAL(linkat)(dir_fd, from, to_fd, to, flags);
	if (ours && !ret)
		note("link\t%s\t%s\t%llu\n", path, to, inode_of(to_fd, to));
	return ret;
}

EXPORT int unlinkat(int dir_fd, const char *name, int flags)
{
	char path[PATH_MAX];
	bool ours = beneath(dir_fd, path);
	int ret;
	if (ours && refused(step("unlink", name, NULL, NULL)))
		return -1;
	ret = REAL(unlinkat)(dir_fd, name, flags);
	if (ours && !ret)
		note("unlink\t%s\t%s\n", path, name);
	return ret;
}

EXPORT int symlinkat(const char *target, int dir_fd, const char *name)
{
	char path[PATH_MAX];
	bool ours = beneath(dir_fd, path);
	int ret;
	if (ours && refused(step("symlink", name, NULL, NULL)))
		return -1;
	ret = REAL(symlinkat)(target, dir_fd, name);
	if (ours && !ret)
		note("symlink\t%s\t%s\t%llu\n", path, name, inode_of(dir_fd, name));
	return ret;
}

EXPORT int mkdirat(int dir_fd, const char *name, mode_t mode)
{
	char path[PATH_MAX];
	bool ours = beneath(dir_fd, path);
	int ret;
	if (ours && refused(step("mkdir", name, NULL, NULL)))
		return -1;
	ret = REAL(mkdirat)(dir_fd, name, mode);
	if (ours && !ret)
		note("mkdir\t%s\t%s\n", path, name);
	return ret;
}

EXPORT int fcntl64(int fd, int command, ...)
{
	char path[PATH_MAX];
	va_list args;
	void *argument;
	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);
	if (faults.lacks_locks && command == F_OFD_SETLK && beneath(fd, path))
		return refused(ENOLCK) ? -1 : 0;
	return REAL(fcntl64)(fd, command, argument);
}

EXPORT int fstatfs64(int fd, struct statfs64 *fs)
{
	int ret = REAL(fstatfs64)(fd, fs);
	if (!ret && faults.lacks_local)
		fs->f_type = NFS_SUPER_MAGIC;
	return ret;
}

EXPORT int statfs64(const char *path, struct statfs64 *fs)
{
	int ret = REAL(statfs64)(path, fs);
	if (!ret && faults.lacks_local)
		fs->f_type = NFS_SUPER_MAGIC;
	return ret;
}
