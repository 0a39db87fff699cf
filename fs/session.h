/* session.h - the mount, from where it is made with all rights we have to where it is taken away without any. */
#ifndef WFSD_SESSION_H
#define WFSD_SESSION_H

#include <stdbool.h>

#include "keeper.h"
#include "mount_check.h"

struct fuse_session;
struct wfsd;

struct wfsd_session {
	struct wfsd *d;
	struct fuse_session *fuse;
	struct wfsd_mount mount;
	struct wfsd_keeper keeper;
	int broken_pipe; /* an end without the other; -1: none */
};

/* Starts the keeper, mounts, tunes, and gives up all rights: before there are threads. log_fd: as wfsd_keeper_start.
 * False: logged why; close is due all the same. */
bool wfsd_session_open(struct wfsd_session *s, struct wfsd *d, int log_fd);
/* Takes the mount away if nobody else has, and closes the device: who asks from now on gets an error. No thread may
 * read the device any more. */
void wfsd_session_unmount(struct wfsd_session *s);
/* The same while threads hang in the store and may keep the device open; wfsd_session_unmount has not been called. */
void wfsd_session_abort(struct wfsd_session *s);
/* It is unmounted, or was never mounted. */
void wfsd_session_close(struct wfsd_session *s);

#endif
