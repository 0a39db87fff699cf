/* errno_map.c - what readers of the mount see of the codec's errors, and what the log says of them. */
#include "fs.h"

#include <errno.h>
#include <stdio.h>

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

const char *wfsd_remedy(char buf[WFSD_REMEDY_BYTES], const struct wfsd *d, enum wfs_status status)
{
	const char *key = d->opts->pubkey;

	switch (status) {
	case WFS_UNSUPPORTED:
		return "a newer weightfs made it: update weightfs";
	case WFS_IO:
		return "look after the disk or the server of the store";
	case WFS_NO_MEMORY:
		return "give the daemon more memory, or mount again with a smaller cache=";
	case WFS_BUG:
		return "please report this";
	default:
		snprintf(buf, WFSD_REMEDY_BYTES, "run weightfs verify %s%s%s%s, and restore this file from a copy%s",
			 key ? "--pubkey " : "", key ? key : "", key ? " " : "", d->store_path,
			 key ? "" : "; weightfs unpack --keep-going saves what is good of it");
		return buf;
	}
}
