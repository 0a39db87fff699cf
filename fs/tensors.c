/* tensors.c - see tensors.h.
 *
 * A tensor of 4 MiB and more is 16 blocks of the usual size or more, so 16 bytes for each keep the bound. Shorter ones
 * end before decoding ahead of a reader of one would begin.
 */
#include "tensors.h"
#include "file.h"

#include <errno.h>
#include <stdlib.h>

enum {
	MIN_TENSOR = 4 << 20,
	MAX_HEADER = 4 << 20,
	MAX_EXTENTS = 256, /* of a header: copies make each byte another block to decode, where somebody wants that */
};

struct source {
	const struct wfsd_file *file;
	struct wfs_scratch *scratch;
};

static bool is_cheap(const struct wfsd_file *file, uint64_t off, uint64_t len)
{
	struct wfs_extent extent;
	unsigned nr = 0;

	for (const uint64_t end = off + len; off < end && nr < MAX_EXTENTS; off += extent.len, nr++)
		wfs_reader_extent(file->reader, off, &extent);
	return nr < MAX_EXTENTS;
}

static enum wfs_status source_read(void *ctx, void *buf, size_t len, uint64_t off)
{
	const struct source *src = ctx;

	if (off + len > MAX_HEADER || !is_cheap(src->file, off, len)) {
		errno = EFBIG;
		return WFS_IO;
	}
	enum wfs_status status = wfs_reader_read(src->file->reader, off, buf, len, src->scratch, NULL);
	if (status == WFS_IO)
		errno = EIO;
	return status;
}

static struct wfsd_tensors *pick_long(const struct wfs_tensors *all)
{
	struct wfsd_tensors *t;
	uint64_t end = 0;
	size_t nr = 0;

	for (size_t i = 0; i < all->nr; i++)
		nr += all->tensor[i].raw_len >= MIN_TENSOR;
	t = nr ? malloc(sizeof(*t) + nr * sizeof(t->span[0])) : NULL;
	if (!t)
		return NULL;
	t->nr = 0;
	for (size_t i = 0; i < all->nr; i++) {
		const struct wfs_tensor *tensor = &all->tensor[i];
		if (tensor->raw_len < MIN_TENSOR || tensor->raw_off < end)
			continue; /* those that overlap another: nobody's model */
		end = tensor->raw_off + tensor->raw_len;
		t->span[t->nr++] = (struct wfsd_span){tensor->raw_off, end};
	}
	return t;
}

struct wfsd_tensors *wfsd_tensors_read(const struct wfsd_file *file)
{
	struct source src = {.file = file, .scratch = wfs_scratch_new()};
	struct wfsd_tensors *picked = NULL;
	struct wfs_tensors *all = NULL;

	if (src.scratch && wfs_safetensors_scan(source_read, &src, file->raw_len, &all, NULL) == WFS_OK)
		picked = pick_long(all);
	wfs_tensors_free(all);
	wfs_scratch_free(src.scratch);
	return picked;
}
