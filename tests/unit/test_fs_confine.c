/* test_fs_confine.c - what the confined daemon cannot do any more, tried from inside; and that threads still work. */
#include "test_util.h"

#include "confine.h"
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <asm/sockios.h>
#include <linux/btrfs.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/landlock.h>
#include <linux/random.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
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

/* Every call that changes who we are, what is mounted, other processes, the kernel, or owners, modes, times and links
 * of files; those that have arguments are called with such that nothing would happen. */
#define CALL(name)                                                                                                     \
	{                                                                                                              \
		SYS_##name, #name                                                                                      \
	}
static const struct {
	long number;
	const char *name;
} never[] = {
	CALL(execve),
	CALL(execveat),
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(process_madvise),
	CALL(process_mrelease),
	CALL(move_pages),
	CALL(migrate_pages),
	CALL(kcmp),
	CALL(pidfd_getfd),
	CALL(pidfd_send_signal),
	CALL(rt_sigqueueinfo),
	CALL(rt_tgsigqueueinfo),
	CALL(tkill),
	CALL(mount),
	CALL(umount2),
	CALL(pivot_root),
	CALL(chroot),
	CALL(move_mount),
	CALL(open_tree),
	CALL(fsopen),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fspick),
	CALL(mount_setattr),
	CALL(setns),
	CALL(unshare),
	CALL(swapon),
	CALL(swapoff),
	CALL(reboot),
	CALL(kexec_load),
	CALL(init_module),
	CALL(finit_module),
	CALL(delete_module),
	CALL(bpf),
	CALL(perf_event_open),
	CALL(userfaultfd),
	CALL(keyctl),
	CALL(add_key),
	CALL(request_key),
	CALL(acct),
	CALL(quotactl),
	CALL(quotactl_fd),
	CALL(syslog),
	CALL(setuid),
	CALL(setgid),
	CALL(setreuid),
	CALL(setregid),
	CALL(setresuid),
	CALL(setresgid),
	CALL(setfsuid),
	CALL(setfsgid),
	CALL(setgroups),
	CALL(capset),
	CALL(open_by_handle_at),
	CALL(io_uring_setup),
	CALL(io_uring_enter),
	CALL(io_uring_register),
	CALL(fchmod),
	CALL(fchmodat),
	CALL(fchown),
	CALL(fchownat),
	CALL(truncate),
	CALL(linkat),
	CALL(symlinkat),
	CALL(mknodat),
	CALL(renameat2),
	CALL(setxattr),
	CALL(lsetxattr),
	CALL(fsetxattr),
	CALL(removexattr),
	CALL(lremovexattr),
	CALL(fremovexattr),
	CALL(utimensat),
	CALL(sethostname),
	CALL(setdomainname),
	CALL(settimeofday),
	CALL(clock_settime),
	CALL(adjtimex),
	CALL(clock_adjtime),
	CALL(vhangup),
	CALL(lookup_dcookie),
	CALL(nfsservctl),
	CALL(personality),
	CALL(setpriority),
	CALL(ioprio_set),
	CALL(sched_setscheduler),
	CALL(sched_setparam),
	CALL(sched_setattr),
	CALL(sched_setaffinity),
	CALL(shmget),
	CALL(shmat),
	CALL(shmctl),
	CALL(semget),
	CALL(semctl),
	CALL(semop),
	CALL(semtimedop),
	CALL(msgget),
	CALL(msgctl),
	CALL(msgsnd),
	CALL(msgrcv),
	CALL(mq_open),
	CALL(mq_unlink),
	CALL(fanotify_init),
	CALL(mkdirat),
	CALL(prlimit64),
	CALL(kill),
	CALL(tgkill),
#ifdef __x86_64__
	CALL(iopl),
	CALL(ioperm),
	CALL(modify_ldt),
	CALL(chmod),
	CALL(chown),
	CALL(lchown),
	CALL(link),
	CALL(symlink),
	CALL(mknod),
	CALL(mkdir),
	CALL(rmdir),
	CALL(rename),
	CALL(renameat),
	CALL(utime),
	CALL(utimes),
	CALL(futimesat),
	CALL(uselib),
	CALL(ustat),
	CALL(kexec_file_load),
#endif
};

/* They change files and subvolumes through descriptors that only read. */
static const unsigned long of_file_systems[] = {
	FS_IOC_SETFLAGS,       FS_IOC_FSSETXATTR,      FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY,
	BTRFS_IOC_SNAP_CREATE, BTRFS_IOC_SNAP_DESTROY, FIDEDUPERANGE,	     FIFREEZE,
	_IOW('v', 2, long), /* FS_IOC_SETVERSION */
};

static void check_calls(void)
{
	char program[] = "/bin/true", *argv[] = {program, NULL}, *env[] = {NULL};
	const struct f_owner_ex owner = {F_OWNER_PID, 1};

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (last_errno(syscall(never[i].number, -1L, -1L, -1L, -1L, -1L, -1L)) != EPERM) {
			fprintf(stderr, "%s is not forbidden\n", never[i].name);
			CHECK(0);
		}
	CHECK(last_errno(execve(program, argv, env)) == EPERM);
	CHECK(last_errno(socket(AF_INET, SOCK_STREAM, 0)) == EAFNOSUPPORT);
	CHECK(last_errno(socket(AF_NETLINK, SOCK_RAW, 0)) == EAFNOSUPPORT);
	CHECK(last_errno(syscall(SYS_setuid, getuid())) == EPERM); /* libc would ask every thread */
	CHECK(last_errno(socket(AF_UNIX, SOCK_STREAM, 0)) == EPERM);
	CHECK(last_errno(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) == EPERM);
	CHECK(last_errno(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0)) == EPERM);
	CHECK(last_errno(socket(AF_UNIX, SOCK_RAW, 0)) == EPERM); /* Linux takes it for SOCK_DGRAM */
	CHECK(last_errno(kill(getppid(), 0)) == EPERM);
	CHECK(last_errno(kill(getpid(), 0)) == 0);
	CHECK(last_errno(unshare(CLONE_NEWUSER)) == EPERM);
	CHECK(last_errno(syscall(600)) == ENOSYS);
	CHECK(last_errno(prlimit(getppid(), RLIMIT_CORE, NULL, NULL)) == EPERM);
	CHECK(last_errno(fcntl(0, F_SETOWN, 1)) == EPERM);
	CHECK(last_errno(fcntl(0, F_SETOWN_EX, &owner)) == EPERM);
	CHECK(last_errno(fcntl(0, F_SETSIG, SIGTERM)) == EPERM);
	CHECK(last_errno(ioctl(-1, TIOCSTI, "x")) == EPERM);
	CHECK(last_errno(ioctl(-1, TIOCLINUX, "x")) == EPERM);
	CHECK(last_errno(ioctl(-1, FIOSETOWN, &owner.pid)) == EPERM);
	CHECK(last_errno(ioctl(-1, SIOCSPGRP, &owner.pid)) == EPERM);
	int fd = open(".", O_RDONLY | O_CLOEXEC);
	long flags = 0;
	for (size_t i = 0; i < sizeof(of_file_systems) / sizeof(of_file_systems[0]); i++)
		CHECK(last_errno(ioctl(fd, of_file_systems[i], &flags)) == EPERM);
	close(fd);
#ifdef __x86_64__
	CHECK(last_errno(syscall(0x40000000 + 39)) == ENOSYS); /* getpid of the other ABI */
#endif
	if (!SANITIZED) {
		CHECK(last_errno(fork()) == EPERM);
		CHECK(last_errno(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)) == EPERM);
		CHECK(last_errno(syscall(SYS_clone3, NULL, 0)) == ENOSYS);
		CHECK(last_errno(syscall(SYS_ptrace, 0, 0, 0, 0)) == EPERM);
		CHECK(prctl(PR_GET_DUMPABLE) == 0);
	}
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
}

/* In the working directory, which is ours: what lies in "sockets" can be removed, and that is all. */
static void check_no_writing(long abi, const struct sockaddr_un *abstract)
{
	const struct sockaddr_un within = {AF_UNIX, "sockets/new"}, outside = {AF_UNIX, "s"};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(last_errno(open("new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == EACCES);
	CHECK(last_errno(open("file", O_WRONLY | O_CLOEXEC)) == EACCES);
	CHECK(last_errno(open("file", O_RDWR | O_CLOEXEC)) == EACCES);
	CHECK(last_errno(open("sockets/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == EACCES);
	long err = last_errno(open(".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
	CHECK(err == EACCES || err == EOPNOTSUPP); /* overlays have none */
	CHECK(last_errno(unlink("file")) == EACCES);
	CHECK(last_errno(unlinkat(AT_FDCWD, "empty", AT_REMOVEDIR)) == EACCES);
	CHECK(last_errno(bind(fd, (const struct sockaddr *)&outside, sizeof(outside))) == EACCES);
	CHECK(last_errno(bind(fd, (const struct sockaddr *)&within, sizeof(within))) == EACCES);
	CHECK(!unlink("sockets/s"));
	/* A device that is there everywhere, and a command that takes no right. */
	int device = open("/dev/random", O_RDONLY | O_CLOEXEC), bits;
	CHECK(device >= 0 && last_errno(ioctl(device, RNDGETENTCNT, &bits)) == (abi >= 5 ? EACCES : 0));
	close(device);
	CHECK(last_errno(sendto(fd, "x", 1, 0, (const struct sockaddr *)abstract, sizeof(*abstract))) ==
	      (abi >= 6 ? EPERM : 0));
	close(fd);
}

/* Threads inherit all of it. */
static void *in_thread(void *arg)
{
	check_calls();
	return arg;
}

static void *wait_for_ever(void *arg)
{
	char byte;
	ssize_t n = read(*(int *)arg, &byte, 1);
	(void)n;
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
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ends[2], unread;
	char path[32];

	CHECK(fd >= 0 && !fstat(fd, &st));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(again >= 0);
	close(again);
	close(fd);
	fd = open("file", O_RDONLY | O_CLOEXEC); /* by root, another user's */
	CHECK(fd >= 0);
	close(fd);
	for (int i = 0; i < 2; i++) {
		fd = open(i ? "/dev/null" : "/dev/fuse", O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0 || (i == 0 && errno == ENOENT));
		CHECK(fd < 0 || i == 0 || write(fd, "x", 1) == 1);
		close(fd);
	}
	struct rlimit limit;
	cpu_set_t cpus;
	CHECK(!sched_getaffinity(0, sizeof(cpus), &cpus) && !sched_setaffinity(0, sizeof(cpus), &cpus));
	CHECK(!ioctl(ends[0], FIONREAD, &unread));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); /* READY=1 */
	CHECK(fd >= 0);
	close(fd);
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && !setrlimit(RLIMIT_NOFILE, &limit));
	syslog(LOG_DEBUG, "a test"); /* opens its socket anew */
	closelog();
	syslog(LOG_DEBUG, "a test");
	CHECK(!pthread_create(&thread, NULL, in_thread, NULL));
	CHECK(!pthread_join(thread, NULL));
	if (!SANITIZED) { /* clang's lose track of a stack that is unwound so */
		void *ret;
		CHECK(!pthread_create(&thread, NULL, wait_for_ever, &ends[0]));
		CHECK(!pthread_cancel(thread));
		CHECK(!pthread_join(thread, &ret) && ret == PTHREAD_CANCELED);
	}
	close(ends[0]);
	close(ends[1]);
}

/* A working directory, with what check_no_writing tries. */
static void make_room(char *room)
{
	CHECK(mkdtemp(room) && !chdir(room) && !mkdir("sockets", 0700) && !mkdir("empty", 0700));
	int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && (getuid() || !fchown(fd, 65534, 65534)));
	close(fd);
	CHECK((fd = open("sockets/s", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) >= 0);
	close(fd);
}

/* By a process that stays free. Returns the status of the confined one, which this function returns into. */
static int clean_up_after(const char *room, struct sockaddr_un *abstract_ret)
{
	int status = 0;
	int server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	*abstract_ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(abstract_ret->sun_path + 1, sizeof(abstract_ret->sun_path) - 1, "%s", room);
	CHECK(!bind(server, (const struct sockaddr *)abstract_ret, sizeof(*abstract_ret)));
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		return -1;
	CHECK(waitpid(child, &status, 0) == child);
	unlink("sockets/s"); /* is there still where nothing could be tried */
	CHECK(!close(server) && !rmdir("sockets") && !rmdir("empty") && !unlink("file") && !rmdir(room));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
	struct wfsd_log log = {.max_level = WFSD_ERROR};
	const struct wfsd_mount none = {.weightfs = true};
	struct wfsd_keeper keeper;
	struct sockaddr_un abstract;
	char room[] = "/tmp/test_fs_confine.XXXXXX";

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

	make_room(room);
	int status = clean_up_after(room, &abstract);
	if (status >= 0)
		return status;
	wfsd_confine(&log, "sockets");
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) {
		puts("SKIP no filter of system calls can be had here");
		return 77;
	}
	check_calls();
	check_allowed();
	check_capabilities();
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		puts("no Landlock can be had here: that nothing can be written was not tried");
	else if (!SANITIZED)
		check_no_writing(abi, &abstract);
	PASS("confined, with threads, and no way out");
	return 0;
}
