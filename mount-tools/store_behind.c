/* store_behind.c - see store_behind.h. A store is mostly mounted over itself: no path leads to it then, but its daemon
 * holds it open, and hands that to its own user and to root. */
#include "store_behind.h"
#include "commands.h"
#include "json_in.h"
#include "mounted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptor that came with a byte over the socket, or -1. */
static int receive_fd(int socket)
{
	char byte;
	union {
		struct cmsghdr header; /* for its alignment */
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = CMSG_LEN(sizeof(int))};
	const struct cmsghdr *c;
	int fd = -1;
	if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* The store's directory from the daemon, or -1. */
static int be_given(const char *point)
{
	const char *argv[] = {NULL, "--store", "--", point, NULL};
	char *said;
	int ends[2], fd = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -1;
	if (run_daemon_to(ends[1], argv, &said) == EXIT_OK)
		fd = receive_fd(ends[0]);
	close(ends[0]);
	close(ends[1]);
	free(said);
	return fd;
}

/* Whether whoever sent the descriptor had the right to read there: O_PATH takes none, and root must not be led by a
 * user's daemon to where that user could not look himself. */
static bool was_opened(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && !(flags & O_PATH);
}

/* What the daemon gives, never what the path leads to that it tells; -1: nothing of use. */
static int open_store(const char *point)
{
	int held = be_given(point), fd = -1;
	/* A position of its own: the descriptor shares the daemon's. */
	if (held >= 0 && was_opened(held))
		fd = openat(held, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (held >= 0)
		close(held);
	if (fd >= 0 && in_weightfs_mount(fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Ask the daemon what it shows and who it is. */
static char *ask_daemon(const char *point, char **store_ret)
{
	const char *argv[] = {NULL, "--stats", "--json", "--", point, NULL};
	char *text, *said, *why = NULL;
	int status = run_daemon(argv, &text, &said);
	if (status || !json_valid(text)) {
		said[strcspn(said, "\n")] = '\0';
		why = xasprintf("a weightfs is mounted there, and its daemon does not tell its store: unmount it (%s)",
				said);
	} else {
		*store_ret = json_text(json_member(text, "store"));
	}
	free(text);
	free(said);
	return why;
}

char *store_behind_find(const char *path, struct store_behind *behind_ret)
{
	struct store_behind *b = behind_ret;
	struct mounted mount = {0};
	char *real = realpath(path, NULL), *why = NULL;
	size_t len;
	*b = (struct store_behind){.fd = -1};
	if (!real || mounted_find(real, true, &mount) || !mounted_is_weightfs(&mount)) {
		why = xasprintf("a weightfs is mounted there, and cannot be found: unmount it first");
		goto out;
	}
	why = ask_daemon(mount.point, &b->store);
	if (why)
		goto out;
	b->fd = open_store(mount.point);
	if (b->fd < 0) {
		why = xasprintf(
			"the daemon does not hand over its store %s: do this as the user who mounted it or as root, "
			"or unmount it first",
			b->store);
		store_behind_free(b);
		goto out;
	}
	len = strlen(mount.point);
	b->rest = xstrdup(len == 1 ? real + 1 : real + len + (real[len] == '/'));
out:
	mounted_free(&mount);
	free(real);
	return why;
}

void store_behind_free(struct store_behind *behind)
{
	if (behind->fd >= 0)
		close(behind->fd);
	free(behind->store);
	free(behind->rest);
	*behind = (struct store_behind){.fd = -1};
}
