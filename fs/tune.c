/* tune.c - see tune.h.
 *
 * FUSE's INIT reply can only lower read-ahead, so it takes sysfs, and root, to raise it above 128 KiB: with that
 * default requests are 128 KiB and two or three are in flight, a few times slower than the daemon is.
 */
#include "tune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned read_value(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 ? (unsigned)strtoul(text, NULL, 10) : 0;
}

unsigned wfsd_tune_read_ahead(const struct wfsd_log *log, unsigned major, unsigned minor, unsigned kb)
{
	char path[64], text[32];
	unsigned now;
	int fd, err = 0;

	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major, minor);
	now = read_value(path);
	if (!kb || now == kb)
		return now;
	int len = snprintf(text, sizeof(text), "%u\n", kb);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		err = errno;
	if (fd >= 0)
		close(fd);
	if (!err)
		return read_value(path);
	wfsd_log(log, WFSD_WARNING,
		 "the kernel reads ahead only %u KiB on this mount (%s); for full speed run as root: echo %u > %s", now,
		 strerror(err), kb, path);
	return now;
}
