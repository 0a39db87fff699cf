/* errno_map.c - what a reader of the mount sees of the codec's errors. */
#include "fs.h"

#include <errno.h>

int wfsd_errno(const struct wfs_error *err)
{
	switch (err->status) {
	case WFS_OK:
		return 0;
	case WFS_UNSUPPORTED:
		return EOPNOTSUPP;
	case WFS_IO:
		return err->sys_errno > 0 ? err->sys_errno : EIO;
	case WFS_NO_MEMORY:
		return ENOMEM;
	case WFS_BAD_ARGUMENT:
		return EINVAL;
	case WFS_BAD_DATA:
	case WFS_BAD_CHECKSUM:
	case WFS_NOT_CONTAINER:
	case WFS_CANCELLED:
	case WFS_CHANGED:
	case WFS_BUG:
		break;
	}
	return EIO;
}
