/* squash.h - why root may be refused on NFS. */
#ifndef SQUASH_H
#define SQUASH_H

/* What to add to the text of an error: "" or, where root was refused on NFS, that the server may not know him as root,
 * and what to do. fd: anything open on that file system. */
const char *squash_hint(int fd, int sys_errno);
/* The same for what could not be opened or made. */
const char *squash_hint_at(const char *path, int sys_errno);

#endif
