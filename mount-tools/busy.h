/* busy.h - who keeps a mount busy. */
#ifndef BUSY_H
#define BUSY_H

#include "mounted.h"

/* "process 4711 (python3), 4712 (bash) and 3 more": those that have files of the mount open or mapped, or stand in it;
 * the caller frees it. NULL: none was found. Those of other users only root sees. */
char *busy_processes(const struct mounted *mount);

#endif
