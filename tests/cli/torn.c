/* torn.c - loaded before a program (LD_PRELOAD), kills it in the middle of its writing: TORN_AT bytes reach named files
 * by pwrite, then SIGKILL. Memory files and the like do not count. */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_llong left = -1;

__attribute__((constructor)) static void start(void)
{
	const char *at = getenv("TORN_AT");
	left = at ? atoll(at) : 1LL << 62;
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	static ssize_t (*next)(int, const void *, size_t, off_t);
	struct stat st;
	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "pwrite");
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink == 0)
		return next(fd, buf, len, off);
	if ((long long)len >= left) {
		(void)!next(fd, buf, (size_t)left, off);
		kill(getpid(), SIGKILL);
	}
	left -= (long long)len;
	return next(fd, buf, len, off);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *buf, size_t len, off_t off)
{
	return pwrite(fd, buf, len, off);
}
