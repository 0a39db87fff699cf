/* landlock.h - the daemon gives up writing: where the kernel has Landlock, it can change no file system any more,
 * whoever its user is.
 */
#ifndef WFSD_LANDLOCK_H
#define WFSD_LANDLOCK_H

/* Forbids this thread and those that it starts, for good, to write, cut, make, remove, rename, link or execute files,
 * and to command devices; but for /dev/fuse, /dev/null, and removing what lies in socket_dir (NULL: nothing). Also,
 * where the kernel can, TCP, and abstract sockets of others. What is open stays as it is, and reading is
 * free. No new privileges are to be had already (PR_SET_NO_NEW_PRIVS). 0 or the errno: ENOSYS or EOPNOTSUPP where there
 * is no Landlock. Source: Linux, Documentation/userspace-api/landlock.rst. */
int wfsd_landlock(const char *socket_dir);

#endif
