/* hand_over.c - see hand_over.h. */
#include "hand_over.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr header; /* for its alignment */
	char room[CMSG_SPACE(sizeof(int))];
};

int wfsd_send_fd(int socket, int fd)
{
	char byte = 'f';
	union control control = {.room = {0}};
	struct iovec part = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &m, MSG_NOSIGNAL) == 1 ? 0 : errno;
}

int wfsd_receive_fd(int socket)
{
	char byte;
	union control control;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = CMSG_LEN(sizeof(int))};
	int fd = -1;

	if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	/* There were more, which the kernel has closed: none of ours sends so. */
	if (fd >= 0 && m.msg_flags & MSG_CTRUNC) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool wfsd_peer_is_trusted(int socket)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) && (peer.uid == geteuid() || peer.uid == 0);
}
