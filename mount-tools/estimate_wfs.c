/* estimate_wfs.c - what weightfs makes of a file: its own encoder writes the container to memory, where nothing stays.
 *
 * The container goes to a file without a name in memory (memfd). Whenever a piece of the payload is there, its pages
 * are given back. What is left at the end is head and metadata: they tell what every block took.
 */
#include "estimate.h"
#include "info.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct sink {
	int fd;
	struct progress *progress;
	uint64_t raw_told, comp_dropped;
	int sys_errno; /* why memory could not be given back */
};

/* Drop everything that was written: nobody reads it again, and what follows is written behind it. */
static bool drop_payload(struct sink *s)
{
	struct stat st;
	if (!fstat(s->fd, &st) &&
	    (!st.st_size || !fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size)))
		return true;
	s->sys_errno = errno;
	return false;
}

static int on_progress(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	static const uint64_t drop_bytes = 4 << 20;
	struct sink *s = ctx;
	if (raw_done > s->raw_told) {
		progress_add(s->progress, raw_done - s->raw_told);
		s->raw_told = raw_done;
	}
	if (comp_done - s->comp_dropped < drop_bytes)
		return 0;
	s->comp_dropped = comp_done;
	return !drop_payload(s);
}

/* Divide payload by what each tensor's blocks took, the rest of the container by raw bytes. */
static bool divide(const struct source *source, int fd, uint64_t file_len, uint64_t stored_ret[NR_DTYPES + 1],
		   struct wfs_error *err_ret)
{
	double payload[NR_DTYPES] = {0}, raw[NR_DTYPES] = {0}, beside;
	struct wfs_reader *reader = NULL;
	struct info info;
	uint64_t left = file_len;
	if (wfs_reader_open(fd, NULL, &reader, err_ret) != WFS_OK)
		return false;
	info_open(&info, NULL, file_len, reader);
	for (size_t i = 0; i < source->nr_tensors; i++) {
		const struct tensor *t = &source->tensor[i];
		payload[t->dtype - dtypes] +=
			info_stored_before(&info, t->raw_off + t->raw_len) - info_stored_before(&info, t->raw_off);
		raw[t->dtype - dtypes] += (double)t->raw_len;
	}
	beside = (double)(file_len - info.wfs.head.payload_len);
	info_free(&info);
	wfs_reader_free(reader);
	for (unsigned d = 0; d < NR_DTYPES; d++) {
		double share = raw[d] > 0 ? payload[d] + beside * raw[d] / (double)source->raw_len : 0;
		stored_ret[d] = MIN((uint64_t)share, left);
		left -= stored_ret[d];
	}
	stored_ret[OTHER] = left;
	return true;
}

static bool encode(const struct source *source, const struct wfs_encode_opts *opts, struct sink *s,
		   uint64_t stored_ret[NR_DTYPES + 1], uint64_t *file_len_ret, struct wfs_error *err_ret)
{
	struct wfs_encode_result result;
	s->fd = memfd_create("weightfs-estimate", MFD_CLOEXEC);
	if (s->fd < 0) {
		*err_ret = (struct wfs_error){WFS_IO, errno, WFS_NO_BLOCK, "cannot make a file in memory"};
		return false;
	}
	if (wfs_encode_file(source->fd, s->fd, opts, &result, err_ret) != WFS_OK) {
		if (s->sys_errno)
			*err_ret = (struct wfs_error){WFS_IO, s->sys_errno, WFS_NO_BLOCK, "cannot give memory back"};
		return false;
	}
	*file_len_ret = result.file_len;
	if (result.raw_len != source->raw_len) {
		*err_ret = (struct wfs_error){WFS_CHANGED, 0, WFS_NO_BLOCK, "the file changed while it was read"};
		return false;
	}
	return divide(source, s->fd, result.file_len, stored_ret, err_ret);
}

bool estimate_wfs(const struct source *s, const struct estimate_opts *opts, uint64_t stored_ret[NR_DTYPES + 1],
		  uint64_t *file_len_ret, struct wfs_error *err_ret)
{
	struct sink sink = {.fd = -1, .progress = opts->progress};
	struct wfs_encode_opts encode_opts = {.level = opts->level,
					      .nr_threads = opts->nr_threads,
					      .cpu = opts->cpu,
					      .sample_bytes = opts->sample_bytes};
	struct wfs_encode_result result;
	bool ok;
	memset(stored_ret, 0, (NR_DTYPES + 1) * sizeof(*stored_ret));
	if (estimate_samples(opts, s->raw_len)) {
		ok = wfs_encode_estimate(s->fd, &encode_opts, &result, err_ret) == WFS_OK;
		*file_len_ret = ok ? result.file_len : 0;
	} else {
		encode_opts.progress = on_progress;
		encode_opts.ctx = &sink;
		ok = encode(s, &encode_opts, &sink, stored_ret, file_len_ret, err_ret);
	}
	if (sink.fd >= 0)
		close(sink.fd);
	if (ok)
		progress_add(opts->progress, s->raw_len - MIN(sink.raw_told, s->raw_len));
	return ok;
}
