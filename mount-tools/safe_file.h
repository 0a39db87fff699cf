/* safe_file.h - files that appear whole or not at all.
 *
 * A new file is written under a temporary name in its own directory, ".NAME.weightfs-XXXXXX.tmp", which a live program
 * holds locked (an open-file-description lock, so it works over NFS too). A dead program's temporaries carry no lock:
 * the next run removes them. Functions return 0 or an errno unless said otherwise.
 */
#ifndef SAFE_FILE_H
#define SAFE_FILE_H

#include "util.h"

#include <limits.h>
#include <sys/stat.h>

/* What is no errno, but returned beside them. Those of the system keep their own meaning: ESTALE is that of NFS. */
enum file_error { FILE_CHANGED = -1, NAME_BUSY = -2, NAME_LOCKED = -3 };
/* The text of both. */
const char *file_error_text(int error);

struct temp_file {
	int dir_fd; /* the caller's */
	int fd;	    /* open for reading and writing; -1: none */
	char name[NAME_MAX + 1];
};

/* Create a temporary, readable by its owner only, for a file that will be called for_name. */
int temp_create(struct temp_file *t, int dir_fd, const char *for_name) MUST_CHECK;
/* Have all of it on the disk and out of the page cache (file_settle), and open it anew for reading: what is read comes
 * from the disk. Returns a descriptor, or -1 with errno, or FILE_CHANGED in its place: another file took its name. */
int temp_reopen(const struct temp_file *t) MUST_CHECK;
/* Give the file its name, and the directory the news, durably. Without replace an existing name is EEXIST and keeps
 * what it has. The content must have been fsynced. t is closed by success only. */
int temp_publish(struct temp_file *t, const char *name, bool replace) MUST_CHECK;
/* Remove the temporary, if there still is one, and close it. */
void temp_discard(struct temp_file *t);

/* Lock a name in a directory, which need not exist: whoever replaces or removes a file because another one stands for
 * it holds the lock of both from the last look at them on. NAME_BUSY: another run has held it for a second;
 * NAME_LOCKED: the lock is another user's, whose run may be dead.
 * temp_discard() gives it back. A file system without locks gives it to everyone. */
int name_lock(struct temp_file *lock, int dir_fd, const char *name) MUST_CHECK;

/* Make a hard link of src_name, which must still be the file of want with the same content (else FILE_CHANGED): the
 * same promise as temp_publish. */
int link_publish(int src_dir, const char *src_name, const struct stat *want, int dst_dir, const char *name,
		 bool replace) MUST_CHECK;
/* Make a symbolic link: the same, but that a new one is durable only once the caller has synced the directory. */
int symlink_publish(const char *target, int dst_dir, const char *name, bool replace) MUST_CHECK;

/* Remove the temporaries of dead runs from a directory. Returns how many belong to a run that is alive. What cannot be
 * removed is left. */
unsigned temp_clean(int dir_fd);

/* Give the file permission bits and owner of st, the access control list of from_fd, and mtime. Another owner is best
 * effort unless we are root; where it fails, the set-id bits go, as they would hand rights to the wrong one. So is the
 * list; where it fails, the bits give nobody what it denied; from_fd -1, whose list is not known: only the owner gets
 * any. Returns 0 or an errno. */
int attributes_set(int fd, int from_fd, const struct stat *st, struct timespec mtime) MUST_CHECK;

/* Whether name is that of the open file. */
bool file_is_named(int fd, int dir_fd, const char *name);

/* Have all of the file on the disk, and none of it in the page cache, as far as the kernel lets us: what is read next
 * comes from the disk. */
int file_settle(int fd) MUST_CHECK;

/* fsync a directory. File systems that cannot are no error: they have nothing to lose. */
int dir_sync(int dir_fd) MUST_CHECK;

#endif
