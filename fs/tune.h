/* tune.h - the kernel's side of a mount: its read-ahead decides the size and the number of requests. */
#ifndef WFSD_TUNE_H
#define WFSD_TUNE_H

#include "log.h"

/* Set the read-ahead of the mount with this device number to kb. Returns the value in force afterwards (KiB), or 0 when
 * it cannot be read. Without the right to set it: one log line that says what to run. */
unsigned wfsd_tune_read_ahead(const struct wfsd_log *log, unsigned major, unsigned minor, unsigned kb);

#endif
