/* lifecycle.h - from the command line to a serving mount, and to its end. */
#ifndef WFSD_LIFECYCLE_H
#define WFSD_LIFECYCLE_H

#include <signal.h>

struct wfsd_opts;

/* Tells the main thread that the session may have ended. */
enum { WFSD_SIGNAL_ENDED = SIGUSR1 };

/* Mounts and serves. In the foreground it returns when the mount has ended. Otherwise the caller's process returns when
 * the mount serves, and a child serves on. The exit status; after a failure a line was logged. */
int wfsd_mount(const struct wfsd_opts *opts);

#endif
