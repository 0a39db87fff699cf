/* estimate_file.c - one file: its tensors and the rest, each scheme's bytes of both. */
#include "estimate.h"
#include "info.h"
#include "pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum wfs_status scan_pread(void *ctx, void *buf, size_t len, uint64_t off)
{
	const struct source *s = ctx;
	ssize_t got = pread_full(s->fd, buf, len, (off_t)off);
	if (got < 0)
		return WFS_IO;
	errno = EIO; /* the file became shorter */
	return (size_t)got == len ? WFS_OK : WFS_IO;
}

/* Rows as Split12 counts them: all but the last dimension. */
static uint64_t rows_of(const struct wfs_tensor *t, uint64_t nr_weights)
{
	uint64_t columns = t->nr_dims ? t->shape[t->nr_dims - 1] : 0;
	return columns && nr_weights && nr_weights % columns == 0 ? nr_weights / columns : 1;
}

/* Take those tensors whose words can be counted. A header may lie: what overlaps another tensor or holds no whole words
 * stays among the other bytes. */
static void take_tensors(struct source *s, const struct wfs_tensors *list)
{
	uint64_t end = 0;
	s->tensor = xcalloc(list->nr, sizeof(*s->tensor));
	for (size_t i = 0; i < list->nr; i++) {
		const struct wfs_tensor *t = &list->tensor[i];
		int d = dtype_index(t->dtype);
		uint64_t nr_weights = tensor_weights(t);
		if (d < 0 || t->raw_off < end || t->raw_len % dtypes[d].word_bytes)
			continue;
		end = t->raw_off + t->raw_len;
		s->tensor[s->nr_tensors++] = (struct tensor){.dtype = &dtypes[d],
							     .raw_off = t->raw_off,
							     .raw_len = t->raw_len,
							     .nr_rows = rows_of(t, nr_weights),
							     .nr_weights = nr_weights};
	}
}

/* A file that is not safetensors has no tensors: that is no failure. */
static bool find_tensors(struct source *s, struct wfs_error *err_ret)
{
	struct wfs_tensors *list = NULL;
	enum wfs_status status = wfs_safetensors_scan(scan_pread, s, s->raw_len, &list, err_ret);
	if (status != WFS_OK)
		return status == WFS_NOT_CONTAINER;
	take_tensors(s, list);
	wfs_tensors_free(list);
	return true;
}

static void add_sums(struct sums *sums, const struct sums *more)
{
	sums->nr_tensors += more->nr_tensors;
	sums->nr_weights += more->nr_weights;
	sums->raw_bytes += more->raw_bytes;
	for (enum scheme s = 0; s < NR_SCHEMES; s++)
		sums->bytes[s] += more->bytes[s];
}

static struct sums plain_sums(uint64_t raw_len)
{
	struct sums sums = {.raw_bytes = raw_len};
	for (enum scheme s = 0; s < NR_SCHEMES; s++)
		sums.bytes[s] = raw_len;
	return sums;
}

/* What the file takes with weightfs, and each dtype's share when that is known. */
static bool weightfs_sums(const struct source *source, bool in_tree, const struct estimate_opts *opts,
			  struct sums sums[NR_DTYPES + 1], uint64_t *file_len_ret, struct wfs_error *err_ret)
{
	uint64_t stored[NR_DTYPES + 1];
	bool packed = !in_tree || source->raw_len >= PACK_MIN_FILE_BYTES;
	*file_len_ret = source->raw_len;
	if (packed) {
		if (!estimate_wfs(source, opts, stored, file_len_ret, err_ret))
			return false;
		packed = !in_tree || saved_percent(source->raw_len, *file_len_ret) >= PACK_MIN_SAVING;
	} else {
		progress_add(opts->progress, source->raw_len);
	}
	if (!packed)
		*file_len_ret = source->raw_len;
	for (unsigned d = 0; d <= OTHER; d++)
		sums[d].bytes[SCHEME_WEIGHTFS] = packed ? stored[d] : sums[d].raw_bytes;
	return true;
}

static bool count_file(struct source *source, bool in_tree, const struct estimate_opts *opts, struct estimate *e,
		       struct wfs_error *err_ret)
{
	struct sums sums[NR_DTYPES + 1], total = {0};
	uint64_t file_len, in_tensors = 0;
	if (!find_tensors(source, err_ret) || !estimate_tensors(source, opts, sums, err_ret))
		return false;
	for (unsigned d = 0; d < NR_DTYPES; d++)
		in_tensors += sums[d].raw_bytes;
	sums[OTHER] = plain_sums(source->raw_len - in_tensors);
	progress_add(opts->progress, source->raw_len - in_tensors);
	if (!weightfs_sums(source, in_tree, opts, sums, &file_len, err_ret))
		return false;
	for (unsigned d = 0; d <= OTHER; d++) {
		add_sums(&e->dtype[d], &sums[d]);
		add_sums(&total, &sums[d]);
	}
	total.bytes[SCHEME_WEIGHTFS] = file_len;
	e->sampled |= estimate_samples(opts, source->raw_len);
	add_sums(&e->total, &total);
	e->nr_files++;
	return true;
}

bool estimate_file(int fd, uint64_t raw_len, bool in_tree, const struct estimate_opts *opts, struct estimate *e,
		   struct wfs_error *err_ret)
{
	struct source source = {.fd = fd, .raw_len = raw_len};
	bool ok = count_file(&source, in_tree, opts, e, err_ret);
	free(source.tensor);
	return ok;
}

void estimate_plain(struct estimate *e, uint64_t raw_len)
{
	struct sums sums = plain_sums(raw_len);
	add_sums(&e->dtype[OTHER], &sums);
	add_sums(&e->total, &sums);
	e->plain_bytes += raw_len;
	e->nr_files++;
}
