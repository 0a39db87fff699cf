/* read.c - from a range of bytes to blocks, to pinned slots, to one reply.
 *
 * A request is cut into parts, each a piece of one block or of a constant region. In nearly every request all parts are
 * blocks that fit the pin budget: they are decoded where the cache keeps them and go out by one writev, without a copy.
 * The others (constant regions, hundreds of small copy regions) are put together piece by piece in a buffer.
 *
 * Memory: a read pins at most PIN_BYTES of blocks, or one block, beside one buffer of its own size. wfsd_read_limit
 * keeps the sum of these over all reads below the cache's cap. Few reads need as much; what they leave is enough for
 * stored bytes while they are decoded (load.h) and for blocks ahead of readers (ahead.c).
 */
#include "read.h"
#include "ahead.h"
#include "cache.h"
#include "fetch.h"
#include "file.h"
#include "fs.h"
#include "reply.h"
#include "tree.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PARTS = 32, PIN_BYTES = 3 << 20 };

unsigned wfsd_read_limit(uint64_t cache_bytes)
{
	uint64_t limit = cache_bytes / (PIN_BYTES + WFSD_MAX_READ);
	return limit < 64 ? (unsigned)limit : 64;
}

struct part {
	uint64_t block; /* WFS_NO_BLOCK: constant */
	uint32_t block_len, skip, len;
	uint8_t fill[8]; /* constant: of the part's first byte on */
	struct wfsd_slot *slot;
};

struct plan {
	struct part part[MAX_PARTS];
	unsigned nr;
	size_t len;    /* bytes covered */
	bool constant; /* at least one part is */
	bool late;     /* at least one block was not ready */
};

/* What the byte at off comes from; *block_len_ret: the length of its block, if it has one. */
static void extent_at(const struct wfsd_file *file, uint64_t off, struct wfs_extent *extent, uint32_t *block_len_ret)
{
	struct wfs_block block;

	if (!file->reader) {
		const uint64_t piece = off / WFS_MANIFEST_PIECE_BYTES;
		const uint32_t skip = off % WFS_MANIFEST_PIECE_BYTES;
		*block_len_ret = (uint32_t)wfs_manifest_piece_len(file->entry, piece);
		*extent = (struct wfs_extent){off, *block_len_ret - skip, piece, skip, {0}};
		return;
	}
	wfs_reader_extent(file->reader, off, extent);
	if (extent->block != WFS_NO_BLOCK) {
		wfs_reader_block(file->reader, extent->block, &block);
		*block_len_ret = block.raw_len;
	}
}

/* Cuts what begins at off, at most len bytes, into parts, as many as the budget allows (at least one). */
static void plan_make(const struct wfsd_file *file, uint64_t off, size_t len, struct plan *plan)
{
	size_t pinned = 0;

	plan->nr = 0;
	plan->len = 0;
	plan->constant = plan->late = false;
	while (plan->len < len && plan->nr < MAX_PARTS) {
		struct part *p = &plan->part[plan->nr];
		struct wfs_extent extent;
		uint32_t block_len = 0;

		extent_at(file, off + plan->len, &extent, &block_len);
		*p = (struct part){.block = extent.block, .block_len = block_len, .skip = extent.skip};
		p->len = (uint32_t)(extent.len < len - plan->len ? extent.len : len - plan->len);
		if (extent.block == WFS_NO_BLOCK) {
			plan->constant = true;
			memcpy(p->fill, extent.fill, sizeof(p->fill));
		} else {
			pinned += wfsd_cache_bytes(block_len);
			if (pinned > PIN_BYTES && plan->nr)
				break;
		}
		plan->len += p->len;
		plan->nr++;
	}
}

static void plan_put(struct wfsd *d, struct plan *plan, bool served)
{
	for (unsigned i = 0; i < plan->nr; i++)
		if (plan->part[i].slot)
			wfsd_cache_put(d->cache, plan->part[i].slot, served ? plan->part[i].len : 0);
}

/* Pins all blocks of the plan and sees to it that they are decoded. 0, or the errno and nothing is pinned. */
static int plan_get(struct wfsd *d, struct wfsd_file *file, struct plan *plan)
{
	struct wfsd_job jobs[MAX_PARTS];
	bool wait[MAX_PARTS] = {false};
	unsigned nr_jobs = 0;
	int err = 0;

	for (unsigned i = 0; i < plan->nr && !err; i++) {
		struct part *p = &plan->part[i];
		if (p->block == WFS_NO_BLOCK)
			continue;
		if (wfsd_file_block_is_bad(file, p->block)) {
			err = EIO;
			break;
		}
		switch (wfsd_cache_get(d->cache, file->node->id, p->block, p->block_len, &p->slot)) {
		case WFSD_HIT:
			break;
		case WFSD_FILL:
			jobs[nr_jobs++] = (struct wfsd_job){p->block, p->slot};
			wait[i] = true; /* for its error */
			break;
		case WFSD_WAIT:
			wait[i] = true;
			break;
		case WFSD_NO_MEMORY:
			err = ENOMEM;
		}
	}
	if (nr_jobs)
		wfsd_fetch_run(d, file, jobs, nr_jobs, plan->len);
	for (unsigned i = 0; i < plan->nr && !err; i++)
		if (wait[i]) {
			plan->late = true;
			err = wfsd_cache_wait(d->cache, plan->part[i].slot);
		}
	if (err)
		plan_put(d, plan, false);
	return err;
}

/* All parts are pinned blocks: out they go from where they lie. */
static bool reply_parts(struct wfsd_request *r, const struct plan *plan)
{
	struct iovec iov[MAX_PARTS];
	for (unsigned i = 0; i < plan->nr; i++) {
		const struct part *p = &plan->part[i];
		iov[i] = (struct iovec){.iov_base = p->slot->raw + p->skip, .iov_len = p->len};
	}
	wfsd_active_begin(&r->d->crowd);
	bool sent = wfsd_reply_iov(r, iov, (int)plan->nr);
	wfsd_active_end(&r->d->crowd);
	return sent;
}

static void copy_parts(const struct plan *plan, unsigned char *out)
{
	for (unsigned i = 0; i < plan->nr; i++) {
		const struct part *p = &plan->part[i];
		if (p->slot)
			memcpy(out, p->slot->raw + p->skip, p->len);
		else
			for (size_t k = 0; k < p->len; k++)
				out[k] = p->fill[k % sizeof(p->fill)];
		out += p->len;
	}
}

/* Put the whole range together in buf, plan after plan. 0 or the errno. `plan` is the first one, not yet pinned. */
static int read_pieces(struct wfsd *d, struct wfsd_file *file, uint64_t off, size_t len, struct plan *plan,
		       unsigned char *buf)
{
	bool late = false;

	for (size_t done = 0; done < len; done += plan->len) {
		if (done)
			plan_make(file, off + done, len - done, plan);
		int err = plan_get(d, file, plan);
		if (err)
			return err;
		late |= plan->late;
		copy_parts(plan, buf + done);
		plan_put(d, plan, true);
	}
	plan->late = late;
	return 0;
}

/* Before the reply: whoever has his bytes may ask for the counters. */
static void note(struct wfsd *d, struct wfsd_file *file, uint64_t off, size_t size, bool o_direct, bool late)
{
	if (file->reader)
		wfsd_ahead_note(d, file, off, size, o_direct, late);
	else
		wfsd_count(&d->stats.plain_reads, 1);
}

static void count_served(struct wfsd *d, const struct wfsd_file *file, size_t size)
{
	wfsd_count(&d->stats.bytes_served, size);
	if (!file->reader)
		wfsd_count(&d->stats.plain_bytes, size);
}

/* Both return the errno, or 0 when the request is answered. */
static int read_blocks(struct wfsd_request *r, struct wfsd_file *file, uint64_t off, size_t size, bool o_direct)
{
	struct wfsd *d = r->d;
	struct plan plan;
	int err;

	if (off >= file->raw_len) {
		wfsd_reply_buf(r, NULL, 0);
		return 0;
	}
	if (size > file->raw_len - off)
		size = (size_t)(file->raw_len - off);
	plan_make(file, off, size, &plan);
	if (plan.len == size && !plan.constant) {
		err = plan_get(d, file, &plan);
		if (err)
			return err;
		note(d, file, off, size, o_direct, plan.late);
		if (reply_parts(r, &plan))
			count_served(d, file, size);
		plan_put(d, &plan, true);
		return 0;
	}
	unsigned char *buf = wfsd_cache_buffer_get(d->cache, size);
	if (!buf)
		return ENOMEM;
	err = read_pieces(d, file, off, size, &plan, buf);
	if (!err)
		note(d, file, off, size, o_direct, plan.late);
	if (!err && wfsd_reply_buf(r, buf, size))
		count_served(d, file, size);
	wfsd_cache_buffer_put(d->cache, buf, size);
	return err;
}

static int read_plain(struct wfsd_request *r, struct wfsd_file *file, uint64_t off, size_t size)
{
	struct wfsd *d = r->d;
	size_t done = 0;
	int err = 0;

	unsigned char *buf = wfsd_cache_buffer_get(d->cache, size);
	if (!buf)
		return ENOMEM;
	while (done < size) {
		ssize_t n = pread(file->fd, buf + done, size - done, (off_t)(off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = errno;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	/* What came before an error goes out; the kernel asks again for the rest, and gets the error. */
	if (done)
		err = 0;
	wfsd_count(&d->stats.plain_reads, 1);
	if (!err && wfsd_reply_buf(r, buf, done))
		count_served(d, file, done);
	wfsd_cache_buffer_put(d->cache, buf, size);
	return err;
}

void wfsd_read(struct wfsd_request *r, struct wfsd_file *file, uint64_t off, size_t size, bool o_direct)
{
	struct wfsd *d = r->d;
	int err = 0;

	wfsd_count(&d->stats.reads, 1);
	wfsd_count_size(&d->stats, size);
	if (wfsd_file_hangs(file) || wfsd_store_hangs(d)) {
		wfsd_count(&d->stats.read_errors, 1);
		wfsd_reply_err(r, EIO);
		return;
	}
	while (sem_wait(&d->reads)) /* EINTR: once more */
		;
	wfsd_crowd_enter(&d->crowd, size);
	if (!size)
		wfsd_reply_buf(r, NULL, 0);
	else if (size > WFSD_MAX_READ) /* never: it is the limit that the kernel was given */
		err = EINVAL;
	else
		err = wfsd_file_in_blocks(file) ? read_blocks(r, file, off, size, o_direct)
						: read_plain(r, file, off, size);
	if (err) {
		wfsd_count(&d->stats.read_errors, 1);
		wfsd_reply_err(r, err);
	}
	wfsd_crowd_leave(&d->crowd, size);
	sem_post(&d->reads);
}
