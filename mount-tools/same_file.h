/* same_file.h - two looks at a file compared: whether it is the same one, and whether its content can have changed. */
#ifndef SAME_FILE_H
#define SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

static inline bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static inline bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Size and time of the content. A writer can set the time back: where that matters look at st_ctim too. */
static inline bool same_content(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && same_time(a->st_mtim, b->st_mtim);
}

/* One file, whose content did not change between the looks. */
static inline bool same_file(const struct stat *a, const struct stat *b)
{
	return same_inode(a, b) && same_content(a, b);
}

#endif
