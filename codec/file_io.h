/* file_io.h - whole preads and pwrites. Private. */
#ifndef WFS_FILE_IO_H
#define WFS_FILE_IO_H

#include "wfs_internal.h"

#include <errno.h>
#include <unistd.h>

/* Linux moves at most 0x7ffff000 bytes a call; 1 GiB keeps every step aligned. */
#define WFS_IO_STEP ((size_t)1 << 30)

/* Read up to len bytes at off. *got_ret, also set on failure: the bytes read; fewer than len without a failure mean the
 * end of the file. Returns 0 or an errno. */
static inline int wfs_pread_full(int fd, void *buf, size_t len, u64 off, size_t *got_ret)
{
	int sys_errno = 0;
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, (u8 *)buf + got, WFS_MIN(len - got, WFS_IO_STEP), (off_t)(off + got));

		if (n > 0) {
			got += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			sys_errno = n ? errno : 0;
			break;
		}
	}
	*got_ret = got;
	return sys_errno;
}

/* Write all of buf at off. Returns 0 or an errno. */
static inline int wfs_pwrite_full(int fd, const void *buf, size_t len, u64 off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, (const u8 *)buf + done, WFS_MIN(len - done, WFS_IO_STEP), (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;
		done += (size_t)n;
	}
	return 0;
}

#endif
