/* mount_end.h - taking one very mount away, wherever it is by now, and never another that got its path or number.
 */
#ifndef WFSD_MOUNT_END_H
#define WFSD_MOUNT_END_H

#include <stdbool.h>

#include "mount_check.h"

/* The number that the kernel gives to this mount and never again (since Linux 6.8; statx(2), STATX_MNT_ID_UNIQUE), or
 * 0: it has none, or does not tell us. Asks nobody who serves the mount. */
uint64_t wfsd_mount_unique_id(const char *point);

/* Where that mount is now: the directory it lies on may have been renamed. False: it is mounted nowhere in sight. */
bool wfsd_mount_again(const struct wfsd_mount *m, struct wfsd_mount *now_ret);

/* Unmounts lazily; with fusermount3 when that takes more rights than we have. and_abort: whoever waits for an answer
 * from it gets an error, where the kernel lets us. 0 or -errno: -ENOENT it is gone, -EBUSY another mount lies over it.
 */
int wfsd_mount_detach(const struct wfsd_mount *m, bool and_abort);
/* Whoever waits for an answer from the mount of this minor number gets an error, where the kernel lets us. The mount is
 * known to be in use: else the number may be another's. */
void wfsd_mount_abort(unsigned minor);
/* What the -errno of wfsd_mount_detach means, for people. */
const char *wfsd_mount_problem(int err);

#endif
