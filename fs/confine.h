/* confine.h - what the daemon gives up once its mount is made, so that a hostile container that gets hold of it gains
 * little: capabilities, new privileges by execution, writing to file systems, and system calls that it has no use for.
 */
#ifndef WFSD_CONFINE_H
#define WFSD_CONFINE_H

#include <stdint.h>

#include "log.h"

/* Keeps these capabilities (bits of their numbers, CAP_*) of those that the process has, and no others. Before there
 * are threads: each has its own. 0 or the errno. */
int wfsd_capabilities_keep(uint64_t wanted);

/* Gives up all that serving does not take, for good; threads started from now on inherit that. What the system does
 * not let us give up is logged, and the daemon goes on. socket_dir: as wfsd_landlock. */
void wfsd_confine(const struct wfsd_log *log, const char *socket_dir);

#endif
