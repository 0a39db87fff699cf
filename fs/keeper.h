/* keeper.h - a small process beside the daemon that takes its mount away.
 *
 * The daemon gives up the right to unmount, and to run the set-uid program that has it (confine.h). The keeper is
 * forked before that. It holds nothing of the store, reads no container, and does one thing: it unmounts this one
 * mount, when the daemon asks, or when the daemon has ended without, killed or crashed, or is about to, but for threads
 * that hang in the store; then it ends, too.
 */
#ifndef WFSD_KEEPER_H
#define WFSD_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "log.h"
#include "mount_check.h"

/* pid 0: there is none. */
struct wfsd_keeper {
	pid_t pid;
	int fd;
};

/* Forks: before there are threads, and before the mount is made, of whose device the keeper must have no descriptor.
 * log: for the keeper's messages, which go to log_fd, or with -1 to syslog or, in the foreground, to stderr.
 * 0 or the errno. */
int wfsd_keeper_start(struct wfsd_keeper *k, const struct wfsd_log *log, int log_fd, bool foreground);
/* The mount is made: from now on the keeper takes it away when we are gone. */
void wfsd_keeper_guard(struct wfsd_keeper *k, const struct wfsd_mount *mount);
/* Somebody else has unmounted it: what is mounted there from now on is not ours. */
void wfsd_keeper_forget(struct wfsd_keeper *k);
/* Unmounts as wfsd_mount_detach does. and_abort: the mount lives, and whoever waits for an answer from it gets an error
 * also when it cannot be unmounted. 0 or -errno. */
int wfsd_keeper_unmount(struct wfsd_keeper *k, bool and_abort);
/* Lets the keeper go and waits for its end, a few seconds at most. */
void wfsd_keeper_end(struct wfsd_keeper *k);

#endif
