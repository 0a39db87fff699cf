/* load.c - see load.h. */
#include "load.h"
#include "file.h"
#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PAGE = 4096,  /* direct reads begin, end and land on multiples of this; every disk takes it */
	FD_SHARE = 4, /* the descriptors for direct reads stay below this part of the limit */
};

/* ---- around the page cache ------------------------------------------------------------------------------------- */

/* A second descriptor of the same inode, since O_DIRECT belongs to the open file. */
static int direct_open(struct wfsd *d, const struct wfsd_file *file)
{
	char path[32];
	struct rlimit limit;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd >= 0)
		atomic_store_explicit(&d->store_direct, WFSD_DIRECT_WORKS, memory_order_relaxed);
	else if (errno == EINVAL)
		atomic_store_explicit(&d->store_direct, WFSD_DIRECT_REFUSED, memory_order_relaxed);
	/* Descriptors are given from the lowest on: a high one means that they are running out. */
	if (fd >= 0 && !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd >= limit.rlim_cur / FD_SHARE) {
		close(fd);
		fd = -1;
	}
	return fd < 0 ? WFSD_BYPASS_NONE : fd;
}

static int direct_fd(struct wfsd *d, struct wfsd_file *file)
{
	int fd = atomic_load_explicit(&file->bypass.fd, memory_order_acquire);

	if (fd != WFSD_BYPASS_UNKNOWN)
		return fd;
	int fresh = direct_open(d, file);
	if (atomic_compare_exchange_strong(&file->bypass.fd, &fd, fresh))
		return fresh;
	if (fresh >= 0)
		close(fresh); /* another thread was faster */
	return fd;
}

static const unsigned char *direct_map(struct wfsd_file *file)
{
	void *map = atomic_load_explicit(&file->bypass.map, memory_order_acquire);

	if (map)
		return map;
	void *fresh = mmap(NULL, file->stored_len, PROT_NONE, MAP_SHARED, file->fd, 0);
	if (fresh == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(&file->bypass.map, &map, fresh))
		return fresh;
	munmap(fresh, file->stored_len);
	return map;
}

void wfsd_bypass_close(struct wfsd_file *file)
{
	if (file->bypass.map)
		munmap(file->bypass.map, file->stored_len);
	if (file->bypass.fd >= 0)
		close(file->bypass.fd);
	free(file->bypass.met);
}

static bool page_is_cached(const unsigned char *map, uint64_t off)
{
	unsigned char resident;
	return mincore((void *)(map + off / PAGE * PAGE), PAGE, &resident) || resident & 1;
}

/* Whether the kernel tells us which pages of the file are in memory: only if it is ours or we may write to it
 * (mincore(2)). Of others it claims that all are. */
static bool is_told(struct wfsd_file *file)
{
	int told = atomic_load_explicit(&file->bypass.told, memory_order_relaxed);

	if (!told) {
		char path[32];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
		told = !fstat(file->fd, &st) && (st.st_uid == geteuid() || !faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
			       ? 1
			       : -1;
		atomic_store_explicit(&file->bypass.told, told, memory_order_relaxed);
	}
	return told > 0;
}

/* Whether [off, off + len) is in the page cache, going by the first, the middle and the last page: a wrong guess costs
 * time, as asking for all would. Where nobody knows, it is not: kept twice would be worse than read again. */
static bool is_cached(struct wfsd_file *file, uint64_t off, size_t len)
{
	const unsigned char *map;

	if (!is_told(file))
		return false;
	map = direct_map(file);
	if (!map || off + len > file->stored_len)
		return true;
	return page_is_cached(map, off) + page_is_cached(map, off + len / 2) + page_is_cached(map, off + len - 1) >= 2;
}

/* Reads [off, off + len) of the container into buf, which begins on a page and is two pages longer than len. Returns
 * where the first byte is; NULL: it could not be read so. */
static const unsigned char *direct_read(int fd, uint64_t off, size_t len, unsigned char *buf)
{
	const uint64_t from = off / PAGE * PAGE;
	const size_t skip = off - from, want = (skip + len + PAGE - 1) / PAGE * PAGE;

	for (size_t done = 0; done < skip + len;) {
		ssize_t n = pread(fd, buf + done, want - done, (off_t)(from + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || (done + (size_t)n < skip + len && n % PAGE))
			return NULL;
		done += (size_t)n;
	}
	return buf + skip;
}

/* Whether the block was read singly before, or that cannot be remembered; from now on it was. */
static bool met_before(struct wfsd_file *file, uint64_t block)
{
	return wfsd_bits_set(&file->bypass.met, file->nr_blocks, block) != 0;
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

bool wfsd_load_span(struct wfsd *d, struct wfsd_file *file, const struct wfs_block *first, const struct wfs_block *last,
		    bool stream, struct wfsd_loaded *loaded_ret)
{
	const size_t len = (size_t)(last->comp_off - first->comp_off) + last->comp_len;
	const bool single = !stream && first->index == last->index;
	const int fd = direct_fd(d, file);
	const bool on_disk = fd < 0 || !is_cached(file, first->comp_off, len);

	atomic_store_explicit(&file->bypass.on_disk, on_disk, memory_order_relaxed);
	if (fd < 0 && !single) /* then let the disk at least begin with all of it */
		posix_fadvise(file->fd, (off_t)first->comp_off, (off_t)len, POSIX_FADV_WILLNEED);
	if (fd < 0 || !on_disk || (single && met_before(file, first->index)))
		return false;
	loaded_ret->buf_len = len + 2 * PAGE;
	loaded_ret->buf = wfsd_cache_buffer_get(d->cache, loaded_ret->buf_len);
	if (!loaded_ret->buf)
		return false;
	loaded_ret->comp = direct_read(fd, first->comp_off, len, loaded_ret->buf);
	if (!loaded_ret->comp) {
		wfsd_loaded_put(d, loaded_ret);
		return false;
	}
	wfsd_count(&d->stats.direct_bytes_read, len);
	wfsd_count(&d->stats.comp_bytes_read, len);
	return true;
}

enum wfs_status wfsd_load_block(struct wfsd *d, struct wfsd_file *file, const struct wfs_block *block,
				struct wfsd_loaded *loaded_ret, struct wfs_error *err)
{
	loaded_ret->buf_len = block->comp_len;
	loaded_ret->buf = wfsd_cache_buffer_get(d->cache, loaded_ret->buf_len);
	loaded_ret->comp = loaded_ret->buf;
	if (!loaded_ret->buf) {
		*err = (struct wfs_error){WFS_NO_MEMORY, 0, block->index, "no memory for its stored bytes"};
		return WFS_NO_MEMORY;
	}
	enum wfs_status status = wfs_block_load(file->reader, block, block, loaded_ret->buf, err);
	if (status == WFS_OK)
		wfsd_count(&d->stats.comp_bytes_read, block->comp_len);
	else
		wfsd_loaded_put(d, loaded_ret);
	return status;
}

void wfsd_loaded_put(struct wfsd *d, struct wfsd_loaded *loaded)
{
	wfsd_cache_buffer_put(d->cache, loaded->buf, loaded->buf_len);
}
