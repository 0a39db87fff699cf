/* notify.c - see notify.h. */
#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void wfsd_notify(const char *lines)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");

	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, strlen(path));
	if (path[0] == '@') /* the abstract name space */
		addr.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	/* systemd notices when nothing arrives; there is no better place to complain. */
	ssize_t sent = sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (struct sockaddr *)&addr, len);
	(void)sent;
	close(fd);
}
