/* landlock.c - see landlock.h.
 *
 * Only rights to change something are handled: limits on reading would have to know the whole store, with the mounts
 * inside it that come and go.
 */
#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of newer kernels than the one whose headers we may be built with. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif

/* struct landlock_ruleset_attr as of Linux 6.12. Older kernels know the beginning, and take zeros for the rest. */
struct ruleset {
	uint64_t fs;
	uint64_t net;	 /* 1: bind, 2: connect, of TCP */
	uint64_t scoped; /* to us and what we start: 1: connections to abstract UNIX sockets */
};

/* The rights to change something that this version of Landlock knows. */
static uint64_t changing(long abi)
{
	uint64_t rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
			  LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_CHAR |
			  LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_FIFO |
			  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
	if (abi >= 2)
		rights |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return rights;
}

/* What is not there needs no rule. 0 or the errno. */
static int allow(int rules, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights};

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT ? 0 : errno;
	int err = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) ? errno : 0;
	close(rule.parent_fd);
	return err;
}

/* systemd(1) may wait for READY=1 at such a socket. */
static bool is_notified_abstractly(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	return path && path[0] == '@';
}

int wfsd_landlock(const char *socket_dir)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return errno;
	struct ruleset handled = {.fs = changing(abi)};
	if (abi >= 4)
		handled.net = 1 | 2;
	/* Not signals, though it could: the kernel's own word of our end to the keeper (keeper.c) would be lost, too.
	 */
	if (abi >= 6)
		handled.scoped = is_notified_abstractly() ? 0 : 1;
	uint64_t on_files = handled.fs & (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
					  LANDLOCK_ACCESS_FS_IOCTL_DEV);
	int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	if (rules < 0)
		return errno;
	int err = allow(rules, "/dev/fuse", on_files);
	if (!err)
		err = allow(rules, "/dev/null", on_files);
	if (!err && socket_dir)
		err = allow(rules, socket_dir, LANDLOCK_ACCESS_FS_REMOVE_FILE);
	if (!err && syscall(SYS_landlock_restrict_self, rules, 0))
		err = errno;
	close(rules);
	return err;
}
