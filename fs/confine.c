/* confine.c - see confine.h.
 *
 * The filter of system calls lists what is forbidden, not what is allowed: a list of the allowed ones would have to
 * know what every libc, sanitizer, valgrind and GPU library calls, and would stop readers the day one calls something
 * else. To make up for that, calls newer than the list are refused, too, as by an older kernel; all libraries know
 * what to do then. What is forbidden fails with an error, for it is better to serve on than to die.
 *
 * Forbidden is what starts programs or processes, changes identities, mounts or owners, reaches other processes, the
 * network or the kernel's configuration, and what gets around all this: io_uring, which the filter does not see,
 * open_by_handle_at, with which CAP_DAC_READ_SEARCH opens files anywhere, commands that change a file or remove a
 * subvolume through a descriptor that only reads, of which Landlock knows nothing, and local sockets that make
 * connections: at the other end sit those who start programs for whoever is root. Logs and READY=1 are datagrams.
 */
#include "confine.h"
#include "landlock.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Leaks are looked for by a process that traces this one; sanitizers exist for builds that nobody deploys. */
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

/* ---- capabilities ---------------------------------------------------------------------------------------------- */

int wfsd_capabilities_keep(uint64_t wanted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(wanted >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) ? errno : 0;
}

/* Whether the process may use this capability. */
static bool has_capability(unsigned cap)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) && data[cap / 32].permitted & 1u << cap % 32;
}

/* Root reads its whole store, also what belongs to others with mode 0600, and the kernel checks who may see that
 * (default_permissions). Where the right to just that is not to be had, in containers, it takes the larger one. */
static uint64_t reading_capability(void)
{
	return UINT64_C(1) << (has_capability(CAP_DAC_READ_SEARCH) ? CAP_DAC_READ_SEARCH : CAP_DAC_OVERRIDE);
}

/* ---- the filter ------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__) && defined(__LP64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef OUR_ARCH

enum {
	LAST_KNOWN = 450, /* set_mempolicy_home_node, of Linux 5.17; x86's other ABI begins far above */
	MAX_FILTER = 512,
};

/* The architectures differ in which of the older ones they have. */
static const uint32_t forbidden[] = {
	SYS_execve,
	SYS_execveat,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_process_madvise,
	SYS_process_mrelease,
	SYS_move_pages,
	SYS_migrate_pages,
	SYS_kcmp,
	SYS_pidfd_getfd,
	SYS_pidfd_send_signal,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_tkill,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_mount_setattr,
	SYS_setns,
	SYS_unshare,
	SYS_swapon,
	SYS_swapoff,
	SYS_reboot,
	SYS_kexec_load,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_acct,
	SYS_quotactl,
	SYS_quotactl_fd,
	SYS_syslog,
	SYS_setuid,
	SYS_setgid,
	SYS_setreuid,
	SYS_setregid,
	SYS_setresuid,
	SYS_setresgid,
	SYS_setfsuid,
	SYS_setfsgid,
	SYS_setgroups,
	SYS_capset,
	SYS_open_by_handle_at,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_fchown,
	SYS_fchownat,
	SYS_truncate,
	SYS_linkat,
	SYS_symlinkat,
	SYS_mknodat,
	SYS_renameat2,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_fsetxattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
	SYS_utimensat,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_adjtimex,
	SYS_clock_adjtime,
	SYS_vhangup,
	SYS_lookup_dcookie,
	SYS_nfsservctl,
	SYS_personality,
	SYS_setpriority,
	SYS_ioprio_set,
	SYS_shmget,
	SYS_shmat,
	SYS_shmctl,
	SYS_semget,
	SYS_semctl,
	SYS_semop,
	SYS_semtimedop,
	SYS_msgget,
	SYS_msgctl,
	SYS_msgsnd,
	SYS_msgrcv,
	SYS_mq_open,
	SYS_mq_unlink,
	SYS_fanotify_init,
	SYS_mkdirat,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
#ifdef __x86_64__
	SYS_iopl,
	SYS_ioperm,
	SYS_modify_ldt,
	SYS_chmod,
	SYS_chown,
	SYS_lchown,
	SYS_link,
	SYS_symlink,
	SYS_mknod,
	SYS_mkdir,
	SYS_rmdir,
	SYS_rename,
	SYS_utime,
	SYS_utimes,
	SYS_futimesat,
	SYS_uselib,
	SYS_ustat,
#endif
#ifdef SYS_renameat
	SYS_renameat,
#endif
};

/* Starting a process, and tracing one. */
static const uint32_t forbidden_unless_sanitized[] = {
	SYS_ptrace,
#ifdef SYS_fork
	SYS_fork,
	SYS_vfork,
#endif
};

/* Their first argument names a process: 0, the one that calls. */
static const uint32_t of_ourselves[] = {
	SYS_prlimit64, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr, SYS_sched_setaffinity,
};

/* Text typed into the terminal of whoever started us, or pasted; signals sent to others by way of a file. */
static const uint32_t forbidden_ioctls[] = {TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP};
/* All of a kind: of file systems (flags, fs-verity, encryption, versions; XFS, freezing; btrfs and its subvolumes). */
#define IOCTL_KIND(type) ((uint32_t)(type) << _IOC_TYPESHIFT)
static const uint32_t forbidden_ioctl_kinds[] = {IOCTL_KIND('f'), IOCTL_KIND('v'), IOCTL_KIND('X'), IOCTL_KIND(0x94)};
static const uint32_t forbidden_fcntls[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};
#define NR_OF(array) (sizeof(array) / sizeof((array)[0]))

struct filter {
	struct sock_filter code[MAX_FILTER];
	unsigned short len;
};

static void add(struct filter *f, struct sock_filter instruction)
{
	if (f->len < MAX_FILTER)
		f->code[f->len] = instruction;
	f->len++;
}

static struct sock_filter load(size_t place)
{
	return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)place);
}

static struct sock_filter answer(int err)
{
	return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					    err ? SECCOMP_RET_ERRNO | (uint32_t)err : SECCOMP_RET_ALLOW);
}

/* Goes on with the next instruction when the comparison holds, else skips so many. */
static struct sock_filter unless(unsigned short comparison, uint32_t value, uint8_t skip)
{
	return (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0, skip);
}

/* What was loaded last is none of these. */
static void forbid(struct filter *f, const uint32_t *values, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		add(f, unless(BPF_JEQ, values[i], 1));
		add(f, answer(EPERM));
	}
}

static struct sock_filter load_argument(unsigned i)
{
	return load(offsetof(struct seccomp_data, args) + i * sizeof(uint64_t)); /* its lower half */
}

/* The call is refused unless its first argument is value. */
static void demand(struct filter *f, uint32_t number, uint32_t value)
{
	add(f, unless(BPF_JEQ, number, 4));
	add(f, load_argument(0));
	add(f, unless(BPF_JEQ, value, 1));
	add(f, answer(0));
	add(f, answer(EPERM));
}

static struct sock_filter mask(uint32_t bits)
{
	return (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits);
}

/* Local sockets that send datagrams are all that is left. */
static void forbid_sockets(struct filter *f)
{
	const uint32_t without_flags = ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK);

	add(f, unless(BPF_JEQ, SYS_socket, 8));
	add(f, load_argument(0));
	add(f, unless(BPF_JEQ, AF_UNIX, 5));
	add(f, load_argument(1));
	add(f, mask(without_flags));
	add(f, unless(BPF_JEQ, SOCK_DGRAM, 1));
	add(f, answer(0));
	add(f, answer(EPERM));
	add(f, answer(EAFNOSUPPORT));
}

/* The commands that are the second arguments of these calls. */
static void forbid_commands(struct filter *f)
{
	const size_t nr_fcntls = NR_OF(forbidden_fcntls), nr_ioctls = NR_OF(forbidden_ioctls),
		     nr_kinds = NR_OF(forbidden_ioctl_kinds);

	add(f, unless(BPF_JEQ, SYS_fcntl, (uint8_t)(2 * nr_fcntls + 2)));
	add(f, load_argument(1));
	forbid(f, forbidden_fcntls, nr_fcntls);
	add(f, answer(0));
	add(f, unless(BPF_JEQ, SYS_ioctl, (uint8_t)(2 * (nr_ioctls + nr_kinds) + 3)));
	add(f, load_argument(1));
	forbid(f, forbidden_ioctls, nr_ioctls);
	add(f, mask((uint32_t)_IOC_TYPEMASK << _IOC_TYPESHIFT));
	forbid(f, forbidden_ioctl_kinds, nr_kinds);
	add(f, answer(0));
}

static void filter_make(struct filter *f)
{
	add(f, load(offsetof(struct seccomp_data, arch)));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0));
	add(f, answer(ENOSYS));
	add(f, load(offsetof(struct seccomp_data, nr)));
	add(f, unless(BPF_JGT, LAST_KNOWN, 1));
	add(f, answer(ENOSYS));
	forbid(f, forbidden, NR_OF(forbidden));
	forbid_sockets(f);
	demand(f, SYS_kill, (uint32_t)getpid());
	demand(f, SYS_tgkill, (uint32_t)getpid());
	for (size_t i = 0; i < NR_OF(of_ourselves); i++)
		demand(f, of_ourselves[i], 0);
	forbid_commands(f);
	if (!SANITIZED) {
		forbid(f, forbidden_unless_sanitized, NR_OF(forbidden_unless_sanitized));
		/* Threads only. clone3 keeps its flags where a filter cannot look; libc then takes clone. */
		add(f, unless(BPF_JEQ, SYS_clone3, 1));
		add(f, answer(ENOSYS));
		add(f, unless(BPF_JEQ, SYS_clone, 4));
		add(f, load(offsetof(struct seccomp_data, args)));
		add(f, unless(BPF_JSET, CLONE_THREAD, 1));
		add(f, answer(0));
		add(f, answer(EPERM));
	}
	add(f, answer(0));
}

/* 0 or the errno. */
static int filter_calls(void)
{
	struct filter f = {.len = 0};

	filter_make(&f);
	if (f.len > MAX_FILTER)
		return E2BIG;
	const struct sock_fprog program = {.len = f.len, .filter = f.code};
	/* Kernels before 5.16 would slow us down against attacks by code that runs inside the process; we run none. */
	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) ||
	    (errno == EINVAL && !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)))
		return 0;
	return errno;
}

#else

/* This machine's numbers of system calls were never tried. */
static int filter_calls(void)
{
	return ENOSYS;
}

#endif

/* ---- all of it ------------------------------------------------------------------------------------------------- */

/* Kernels without it are in wide use: no reason to warn. */
static void give_up_writing(const struct wfsd_log *log, const char *socket_dir)
{
	int err = wfsd_landlock(socket_dir);
	if (err == ENOSYS || err == EOPNOTSUPP)
		wfsd_log(log, WFSD_INFO, "the kernel has no Landlock: the daemon's user can still write");
	else if (err)
		wfsd_log(log, WFSD_WARNING, "cannot give up writing (Landlock): %s", strerror(err));
}

void wfsd_confine(const struct wfsd_log *log, const char *socket_dir)
{
	int err = wfsd_capabilities_keep(reading_capability());
	if (err)
		wfsd_log(log, WFSD_WARNING, "cannot drop capabilities: %s", strerror(err));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		wfsd_log(log, WFSD_WARNING, "cannot give up new privileges: %s", strerror(errno));
	/* No memory with other people's files in a core file, and no tracing by the user's other processes. */
	if (!SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		wfsd_log(log, WFSD_WARNING, "cannot forbid core files: %s", strerror(errno));
	if (!SANITIZED) /* their reports go to files */
		give_up_writing(log, socket_dir);
	err = filter_calls();
	if (err)
		wfsd_log(log, WFSD_WARNING, "serving without a filter of system calls: %s", strerror(err));
}
