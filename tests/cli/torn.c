/* torn.c - a dying disk (LD_PRELOAD), for files that have a name.
 *
 * TORN_AT=N: N bytes reach the disk by pwrite, then SIGKILL, in the middle of a call where it falls there.
 * TORN_EIO=FROM-END: reads that meet these bytes of a file fail with EIO, until they are written: disks put a good
 * sector in the place of a bad one then.
 * TORN_ERRNO=N: with this error instead.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_llong left, bad_from, bad_end;
static atomic_int bad_errno;
static atomic_ullong bad_ino; /* of the file that failed */

__attribute__((constructor)) static void start(void)
{
	const char *at = getenv("TORN_AT"), *eio = getenv("TORN_EIO"), *error = getenv("TORN_ERRNO");
	long long from = 0, end = 0;
	if (eio && sscanf(eio, "%lld-%lld", &from, &end) != 2)
		abort();
	left = at ? strtoll(at, NULL, 10) : 1LL << 62;
	bad_errno = error ? (int)strtol(error, NULL, 10) : EIO;
	bad_from = from;
	bad_end = end;
}

/* The inode number, or 0 for what has no name. */
static ino_t named_ino(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink > 0 ? st.st_ino : 0;
}

static bool meets_bad(size_t len, off_t off)
{
	return off < bad_end && off + (off_t)len > bad_from;
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
	ssize_t (*next)(int, void *, size_t, off_t) = (__typeof__(next))dlsym(RTLD_NEXT, "pread");
	ino_t ino = meets_bad(len, off) ? named_ino(fd) : 0;
	if (ino && (!bad_ino || bad_ino == ino)) {
		bad_ino = ino;
		errno = bad_errno;
		return -1;
	}
	return next(fd, buf, len, off);
}

__attribute__((visibility("default"))) ssize_t pread64(int fd, void *buf, size_t len, off_t off)
{
	return pread(fd, buf, len, off);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	ssize_t (*next)(int, const void *, size_t, off_t) = (__typeof__(next))dlsym(RTLD_NEXT, "pwrite");
	ino_t ino = named_ino(fd);
	if (!ino)
		return next(fd, buf, len, off);
	if ((long long)len >= left) {
		(void)!next(fd, buf, (size_t)left, off);
		kill(getpid(), SIGKILL);
	}
	left -= (long long)len;
	if (meets_bad(len, off) && ino == bad_ino)
		bad_end = 0;
	return next(fd, buf, len, off);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *buf, size_t len, off_t off)
{
	return pwrite(fd, buf, len, off);
}
