/* mount_check.h - what is mounted where, from /proc/self/mountinfo, and whether a mount may be made. */
#ifndef WFSD_MOUNT_CHECK_H
#define WFSD_MOUNT_CHECK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "log.h"

struct wfsd_mount {
	unsigned id;
	uint64_t unique_id;    /* wfsd_mount_unique_id, where somebody has asked for it, or 0 */
	unsigned major, minor; /* st_dev of everything beneath */
	unsigned user_id;      /* who mounted it (FUSE only, else 0) */
	bool weightfs;
	char fstype[64];
	char point[PATH_MAX];
};

/* The uppermost mount at exactly this absolute, resolved path. False: nothing is mounted there. */
bool wfsd_mount_at(const char *point, struct wfsd_mount *mount_ret);
/* The mount that holds this absolute, resolved path. */
bool wfsd_mount_of(const char *path, struct wfsd_mount *mount_ret);
/* The mount of this device. */
bool wfsd_mount_of_dev(dev_t dev, struct wfsd_mount *mount_ret);
/* The mount of this number of mountinfo. */
bool wfsd_mount_of_id(unsigned id, struct wfsd_mount *mount_ret);
/* The mount through which this descriptor was opened. */
bool wfsd_mount_of_fd(int fd, struct wfsd_mount *mount_ret);

/* Resolve the mount point into the absolute path[PATH_MAX], also when a dead mount covers it. 0 or -errno. */
int wfsd_mount_resolve(const char *point, char *path_ret);
/* Make the resolved mount point usable: take a dead weightfs mount away; refuse a live one, one that does not answer
 * within some seconds, and one that is no directory. False: refused, and logged why. Forks: before threads start. */
bool wfsd_mount_prepare(const struct wfsd_log *log, const char *point);
/* Whether the open directory may be shown at the prepared mount point: it must not lie in a weightfs mount, nor may
 * the mount point lie beneath it. False: refused, and logged why. */
bool wfsd_store_allowed(const struct wfsd_log *log, const char *store, int store_fd, const char *point);

/* Whether nobody serves the mount at this path any more. Forks, like prepare. */
bool wfsd_mount_is_dead(const char *point);

#endif
