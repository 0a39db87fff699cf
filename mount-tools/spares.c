/* spares.c - see spares.h. The codec itself proves what is written: head and metadata, put into a memory file, are
 * opened as a container that is cut off behind them. */
#include "spares.h"
#include "same_file.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096 };
static const char changed[] = "it changed while it was looked at: run again";
static const char not_read_back[] = "what was written cannot be read back";

static bool same_head(const struct wfs_head *a, const struct wfs_head *b)
{
	return a->raw_len == b->raw_len && a->mtime_sec == b->mtime_sec && a->mtime_nsec == b->mtime_nsec &&
	       a->block_log2 == b->block_log2 && a->file_len == b->file_len && a->payload_off == b->payload_off &&
	       a->payload_len == b->payload_len && a->meta_len == b->meta_len && a->meta_xxh == b->meta_xxh &&
	       !memcmp(a->sha256, b->sha256, sizeof(a->sha256));
}

static enum wfs_status fail(struct wfs_error *err, enum wfs_status status, int sys_errno, const char *reason)
{
	*err = (struct wfs_error){status, sys_errno, WFS_NO_BLOCK, reason};
	return status;
}

/* Whether the file fd gives this head, from its own first bytes, and metadata that match it, right behind it. */
static enum wfs_status opens_as(int fd, const struct wfs_head *head, bool whole, struct wfs_error *err)
{
	struct wfs_reader *reader = NULL;
	struct wfs_info info;
	enum wfs_status status = wfs_reader_open(fd, NULL, &reader, err);
	if (status == WFS_OK) {
		wfs_reader_info(reader, &info);
		if (info.head.from_tail || info.meta_from_copy_b || !same_head(&info.head, head) ||
		    (whole && info.truncated))
			status = WFS_BAD_CHECKSUM;
	}
	wfs_reader_free(reader);
	/* It was opened before: what is said of it now is not what is wrong with it. */
	return status == WFS_OK || status == WFS_IO || status == WFS_NO_MEMORY
		       ? status
		       : fail(err, WFS_BAD_CHECKSUM, 0, changed);
}

static enum wfs_status prove(const struct spares *s, const struct wfs_head *head, struct wfs_error *err)
{
	int fd = memfd_create("weightfs-image", MFD_CLOEXEC), ret = fd < 0 ? errno : 0;
	enum wfs_status status;
	if (!ret)
		ret = write_full(fd, s->image, s->image_bytes, 0);
	status = ret ? fail(err, WFS_IO, ret, "cannot make a copy of the head in memory")
		     : opens_as(fd, head, false, err);
	if (fd >= 0)
		close(fd);
	return status;
}

static const char *wanted(const struct spares *s, enum spare i)
{
	return i == SPARE_HEAD || i == SPARE_TAIL ? s->image : s->image + HEAD_BYTES;
}

/* 0: the copy on the disk is the one it should be. EIO: it is not, or the medium cannot give it. Another errno: that
 * could not be found out. */
static int compare_copy(int fd, const struct spares *s, enum spare i)
{
	enum { STEP = 64 << 10 };
	char buf[STEP];
	for (uint64_t done = 0; done < s->len[i]; done += STEP) {
		size_t want = (size_t)MIN((uint64_t)STEP, s->len[i] - done);
		ssize_t got = pread_full(fd, buf, want, (off_t)(s->off[i] + done));
		if (got < 0)
			return errno;
		if ((size_t)got != want || memcmp(buf, wanted(s, i) + done, want) != 0)
			return EIO;
	}
	return 0;
}

static enum wfs_status read_copy(int fd, const struct spares *s, enum spare i, char *to, struct wfs_error *err)
{
	ssize_t len = pread_full(fd, to, (size_t)s->len[i], (off_t)s->off[i]);
	if (len < 0)
		return fail(err, WFS_IO, errno, "cannot read head or metadata again");
	return (size_t)len == s->len[i] ? WFS_OK : fail(err, WFS_BAD_CHECKSUM, 0, changed);
}

enum wfs_status spares_check(int fd, const struct wfs_info *info, struct spares *spares_ret, struct wfs_error *err)
{
	const struct wfs_head *h = &info->head;
	struct spares *s = spares_ret;
	enum wfs_status status;
	*s = (struct spares){
		.off = {0, HEAD_BYTES, h->payload_off + h->payload_len, h->file_len - HEAD_BYTES},
		.len = {HEAD_BYTES, h->meta_len, h->meta_len, HEAD_BYTES},
		.image_bytes = HEAD_BYTES + (size_t)h->meta_len,
	};
	s->image = xcalloc(1, s->image_bytes);
	status = read_copy(fd, s, h->from_tail ? SPARE_TAIL : SPARE_HEAD, s->image, err);
	if (status == WFS_OK)
		status = read_copy(fd, s, info->meta_from_copy_b ? SPARE_META_B : SPARE_META_A, s->image + HEAD_BYTES,
				   err);
	if (status == WFS_OK)
		status = prove(s, h, err);
	if (status != WFS_OK)
		return status;
	for (enum spare i = SPARE_HEAD; i < NR_SPARES; i++) {
		int ret = compare_copy(fd, s, i);
		if (ret && ret != EIO)
			return fail(err, WFS_IO, ret, "cannot read the copies of head and metadata");
		s->damaged[i] = ret != 0;
		s->nr_damaged += s->damaged[i];
	}
	return WFS_OK;
}

void spares_free(struct spares *spares)
{
	free(spares->image);
	*spares = (struct spares){0};
}

const char *spares_text(const struct spares *spares, char buf[SPARES_TEXT_BYTES])
{
	static const char *const names[NR_SPARES] = {"the head", "the first copy of the metadata",
						     "the second copy of the metadata",
						     "the copy of the head at the end"};
	unsigned nr = 0;
	int len = 0;
	*buf = '\0';
	for (enum spare i = SPARE_HEAD; i < NR_SPARES; i++)
		if (spares->damaged[i]) {
			const char *joint = nr == 0 ? "" : nr + 1 == spares->nr_damaged ? " and " : ", ";
			len += snprintf(buf + len, SPARES_TEXT_BYTES - (size_t)len, "%s%s", joint, names[i]);
			nr++;
		}
	return buf;
}

/* ---- repair ---------------------------------------------------------------------------------------------------- */

/* Open for writing what fd is open on, which must be as it was when it was proven. */
static int open_again(int dir_fd, const char *name, const struct stat *st, const char **why_ret)
{
	int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat now;
	if (fd < 0) {
		*why_ret = strerror(errno);
		return -1;
	}
	if (!fstat(fd, &now) && same_file(&now, st) && same_time(now.st_ctim, st->st_ctim))
		return fd;
	*why_ret = changed;
	close(fd);
	return -1;
}

/* In the order of the file, so that one that was cut short grows without a gap. */
static int write_copies(int fd, const struct spares *s, struct timespec mtime)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime};
	for (enum spare i = SPARE_HEAD; i < NR_SPARES; i++) {
		int ret = s->damaged[i] ? write_full(fd, wanted(s, i), (size_t)s->len[i], (off_t)s->off[i]) : 0;
		if (ret)
			return ret;
	}
	/* Packing gave it the original's time, which tools that compare trees look at. */
	if (fsync(fd) || futimens(fd, times) || fsync(fd))
		return errno;
	return 0;
}

const char *spares_repair(int dir_fd, const char *name, int fd, const struct stat *st, const struct spares *spares,
			  const struct wfs_info *info)
{
	struct wfs_error err;
	const char *why = NULL;
	int write_fd, ret;
	/* The last look before anything is written: the copies that were good are so still. */
	for (enum spare i = SPARE_HEAD; i < NR_SPARES; i++) {
		ret = spares->damaged[i] ? 0 : compare_copy(fd, spares, i);
		if (ret)
			return ret == EIO ? changed : strerror(ret);
	}
	write_fd = open_again(dir_fd, name, st, &why);
	if (write_fd < 0)
		return why;
	ret = write_copies(write_fd, spares, st->st_mtim);
	/* Advice: from the disk, where there is one. */
	(void)posix_fadvise(write_fd, 0, 0, POSIX_FADV_DONTNEED);
	if (ret)
		why = strerror(ret);
	else if (opens_as(write_fd, &info->head, true, &err) != WFS_OK)
		why = err.status == WFS_NO_MEMORY ? err.reason : not_read_back;
	for (enum spare i = SPARE_HEAD; !why && i < NR_SPARES; i++) {
		ret = compare_copy(write_fd, spares, i);
		if (ret)
			why = ret == EIO ? not_read_back : strerror(ret);
	}
	if (close(write_fd) && !why)
		why = strerror(errno);
	return why;
}
