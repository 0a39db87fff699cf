/* mounted.h - whether a file is seen through a mounted weightfs. */
#ifndef MOUNTED_H
#define MOUNTED_H

#include <stdbool.h>

/* Whether fd is open in a weightfs mount: there are the originals, read-only, and no containers. false when in doubt.
 */
bool in_weightfs_mount(int fd);

#endif
