/* test_fs_confine.c - what the confined daemon cannot do any more, tried from inside; and that threads still work. */
#include "test_util.h"

#include "confine.h"
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

static long last_errno(long ret)
{
	return ret < 0 ? errno : 0;
}

static void check_calls(void)
{
	char program[] = "/bin/true", *argv[] = {program, NULL}, *env[] = {NULL};

	CHECK(last_errno(execve(program, argv, env)) == EPERM);
	CHECK(last_errno(socket(AF_INET, SOCK_STREAM, 0)) == EAFNOSUPPORT);
	CHECK(last_errno(socket(AF_NETLINK, SOCK_RAW, 0)) == EAFNOSUPPORT);
	CHECK(last_errno(mount("none", "/", "tmpfs", 0, NULL)) == EPERM);
	CHECK(last_errno(umount2("/nowhere", MNT_DETACH)) == EPERM);
	CHECK(last_errno(setuid(getuid())) == EPERM);
	CHECK(last_errno(kill(getppid(), 0)) == EPERM);
	CHECK(last_errno(kill(getpid(), 0)) == 0);
	CHECK(last_errno(unshare(CLONE_NEWUSER)) == EPERM);
	CHECK(last_errno(syscall(SYS_open_by_handle_at, -1, NULL, 0)) == EPERM);
	CHECK(last_errno(syscall(SYS_io_uring_setup, 1, NULL)) == EPERM);
	CHECK(last_errno(syscall(SYS_bpf, 0, NULL, 0)) == EPERM);
	CHECK(last_errno(syscall(600)) == ENOSYS);
#ifdef __x86_64__
	CHECK(last_errno(syscall(0x40000000 + 39)) == ENOSYS); /* getpid of the other ABI */
#endif
	if (!SANITIZED) {
		CHECK(last_errno(fork()) == EPERM);
		CHECK(prctl(PR_GET_DUMPABLE) == 0);
	}
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
}

/* Threads inherit all of it, and can be started and cancelled. */
static void *in_thread(void *arg)
{
	check_calls();
	return arg;
}

static void check_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	CHECK(!syscall(SYS_capget, &header, data));
	uint64_t left = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	CHECK((left & ~(UINT64_C(1) << CAP_DAC_READ_SEARCH | UINT64_C(1) << CAP_DAC_OVERRIDE)) == 0);
	CHECK((left & (left - 1)) == 0); /* one, or none */
}

/* What serving takes. */
static void check_allowed(void)
{
	struct stat st;
	pthread_t thread;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ends[2];
	char path[32];

	CHECK(fd >= 0 && !fstat(fd, &st));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(again >= 0);
	close(again);
	close(fd);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	close(ends[0]);
	close(ends[1]);
	CHECK(!pthread_create(&thread, NULL, in_thread, NULL));
	CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
	struct wfsd_log log = {.max_level = WFSD_ERROR};
	const struct wfsd_mount none = {.weightfs = true};
	struct wfsd_keeper keeper;

	/* The keeper of a mount that is none: it unmounts nothing, and ends with us. */
	CHECK(!wfsd_keeper_start(&keeper, &log, -1, true));
	CHECK(wfsd_keeper_unmount(&keeper, false) == -ENOENT);
	wfsd_keeper_guard(&keeper, &none);
	CHECK(wfsd_keeper_unmount(&keeper, false) == -ENOENT);
	wfsd_keeper_end(&keeper);
	CHECK(keeper.pid == 0);
	CHECK(wfsd_keeper_start(&keeper, &log, -1, true) == 0);
	kill(keeper.pid, SIGKILL);
	int err = wfsd_keeper_unmount(&keeper, false);
	CHECK(err == -EPIPE || err == -ESRCH || err == -ECONNRESET);
	wfsd_keeper_end(&keeper);

	wfsd_confine(&log);
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) {
		puts("SKIP no filter of system calls can be had here");
		return 77;
	}
	check_calls();
	check_allowed();
	check_capabilities();
	PASS("confined, with threads, and no way out");
	return 0;
}
