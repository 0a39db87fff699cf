/* lost.c - see lost.h. Blocks are looked at side by side; ranges and tensors are worked out afterwards. */
#include "lost.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_BLOCK_BYTES = 1 << 20, BLOCKS_PER_STEP = 64 };

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

struct scan {
	const struct wfs_reader *reader;
	uint64_t nr_blocks;
	const char **reason; /* of every block; NULL: it is good */
	good_block_fn good;
	void *ctx;
	atomic_bool stopped;
	pthread_mutex_t lock;
	struct wfs_error first; /* of the first bad block so far; protected by lock */
};

static struct wfs_scratch *new_scratch(void)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	if (!scratch) {
		msg("out of memory");
		exit(EXIT_FAILED);
	}
	return scratch;
}

static void note_bad(struct scan *s, uint64_t block, const struct wfs_error *err)
{
	s->reason[block] = err->status == WFS_IO ? strerror(err->sys_errno) : err->reason;
	pthread_mutex_lock(&s->lock);
	if (block < s->first.block) {
		s->first = *err;
		s->first.block = block;
	}
	pthread_mutex_unlock(&s->lock);
}

static void scan_step(void *ctx, size_t step)
{
	struct scan *s = ctx;
	uint64_t first = (uint64_t)step * BLOCKS_PER_STEP, end = MIN(first + BLOCKS_PER_STEP, s->nr_blocks);
	struct wfs_scratch *scratch = new_scratch();
	char *comp = xcalloc(2, MAX_BLOCK_BYTES), *raw = comp + MAX_BLOCK_BYTES;
	for (uint64_t i = first; i < end && !atomic_load(&s->stopped); i++) {
		struct wfs_error err = {0};
		struct wfs_block block;
		wfs_reader_block(s->reader, i, &block);
		if (wfs_block_load(s->reader, &block, &block, comp, &err) != WFS_OK ||
		    wfs_block_decode(s->reader, &block, comp, raw, scratch, 0, &err) != WFS_OK)
			note_bad(s, i, &err);
		else if (s->good && !s->good(s->ctx, &block, raw))
			atomic_store(&s->stopped, true);
	}
	free(comp);
	wfs_scratch_free(scratch);
}

/* ---- ranges ---------------------------------------------------------------------------------------------------- */

static void add_range(struct lost *l, uint64_t off, uint64_t len)
{
	struct lost_range *last = l->range ? &l->range[l->nr_ranges - 1] : NULL;
	if (last && last->off + last->len == off) {
		last->len += len;
		return;
	}
	if (l->nr_ranges == l->range_room || !last) {
		l->range_room = MAX(2 * l->range_room, (size_t)16);
		l->range = xrealloc(l->range, l->range_room, sizeof(*l->range));
	}
	l->range[l->nr_ranges++] = (struct lost_range){.off = off, .len = len};
}

static void add_blocks(struct lost *l, const struct scan *s)
{
	for (uint64_t i = 0; i < s->nr_blocks; i++) {
		struct wfs_block b;
		if (!s->reason[i])
			continue;
		wfs_reader_block(s->reader, i, &b);
		if (l->nr_bad_blocks < MAX_FIRST_LOST)
			l->first[l->nr_bad_blocks] = (struct lost_block){i, b.raw_off, b.raw_len, s->reason[i]};
		l->nr_bad_blocks++;
		add_range(l, b.raw_off, b.raw_len);
	}
}

/* The first of the sorted ranges 0..nr-1 that ends behind off. */
static size_t range_at(const struct lost *l, size_t nr, uint64_t off)
{
	size_t low = 0, high = nr;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (l->range[mid].off + l->range[mid].len <= off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* A copy lacks what its source lacks. Its source holds no copies, so the ranges of blocks tell. A hostile container may
 * copy a torn range ever again: when the list has grown beyond all proportion, a copy gets one range from its first
 * lost byte to its last. */
static void add_copies(struct lost *l, const struct wfs_reader *reader, uint64_t nr_regions)
{
	size_t nr_of_blocks = l->nr_ranges, room = 4096 + 4 * (size_t)(l->nr_blocks + nr_regions);
	for (uint64_t i = 0; i < nr_regions && nr_of_blocks; i++) {
		struct wfs_region g;
		size_t begin, end;
		wfs_reader_region(reader, i, &g);
		if (g.kind != WFS_REGION_COPY)
			continue;
		begin = range_at(l, nr_of_blocks, g.copy_of);
		end = range_at(l, nr_of_blocks, g.copy_of + g.raw_len - 1);
		end += end < nr_of_blocks && l->range[end].off < g.copy_of + g.raw_len;
		for (size_t r = begin; r < end; r++) {
			size_t to = end - begin > room || l->nr_ranges > room - (end - begin) ? end - 1 : r;
			uint64_t from = MAX(l->range[r].off, g.copy_of);
			uint64_t until = MIN(l->range[to].off + l->range[to].len, g.copy_of + g.raw_len);
			add_range(l, g.raw_off + (from - g.copy_of), until - from);
			r = to;
		}
	}
}

static int compare_ranges(const void *a, const void *b)
{
	const struct lost_range *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Sort, join neighbours, count. */
static void finish_ranges(struct lost *l)
{
	size_t nr = 0;
	if (!l->nr_ranges)
		return;
	qsort(l->range, l->nr_ranges, sizeof(*l->range), compare_ranges);
	for (size_t i = 1; i < l->nr_ranges; i++) {
		if (l->range[nr].off + l->range[nr].len == l->range[i].off)
			l->range[nr].len += l->range[i].len;
		else
			l->range[++nr] = l->range[i];
	}
	l->nr_ranges = nr + 1;
	for (size_t i = 0; i < l->nr_ranges; i++) {
		l->range[i].before = l->bytes;
		l->bytes += l->range[i].len;
	}
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

struct header {
	const struct wfs_reader *reader;
	struct wfs_scratch *scratch;
};

static enum wfs_status read_header(void *ctx, void *buf, size_t len, uint64_t off)
{
	const struct header *h = ctx;
	return wfs_reader_read(h->reader, off, buf, len, h->scratch, NULL);
}

/* Lost bytes below off. */
static uint64_t lost_below(const struct lost *l, uint64_t off)
{
	size_t i = range_at(l, l->nr_ranges, off);
	if (i == l->nr_ranges)
		return l->bytes;
	return l->range[i].before + (off > l->range[i].off ? off - l->range[i].off : 0);
}

static void find_tensors(struct lost *l, const struct wfs_reader *reader, uint64_t raw_len)
{
	struct header h = {reader, new_scratch()};
	enum wfs_status status = wfs_safetensors_scan(read_header, &h, raw_len, &l->tensors, NULL);
	wfs_scratch_free(h.scratch);
	if (status != WFS_OK) {
		l->names = status == WFS_NOT_CONTAINER ? LOST_NAMES_NONE : LOST_NAMES_DAMAGED;
		return;
	}
	l->names = LOST_NAMES_KNOWN;
	l->tensor = xcalloc(l->tensors->nr, sizeof(*l->tensor));
	for (size_t i = 0; i < l->tensors->nr; i++) {
		const struct wfs_tensor *t = &l->tensors->tensor[i];
		uint64_t bytes = lost_below(l, t->raw_off + t->raw_len) - lost_below(l, t->raw_off);
		if (bytes)
			l->tensor[l->nr_tensors++] = (struct lost_tensor){t, bytes};
	}
}

/* ---- together -------------------------------------------------------------------------------------------------- */

void lost_find(struct lost *lost_ret, const struct wfs_reader *reader, unsigned nr_threads, good_block_fn good,
	       void *ctx)
{
	struct wfs_info info;
	struct scan s = {.reader = reader,
			 .good = good,
			 .ctx = ctx,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .first = {.block = WFS_NO_BLOCK}};
	struct lost *l = lost_ret;
	wfs_reader_info(reader, &info);
	*l = (struct lost){.nr_blocks = info.nr_blocks};
	s.nr_blocks = info.nr_blocks;
	s.reason = xcalloc((size_t)info.nr_blocks, sizeof(*s.reason));
	parallel_for((size_t)((info.nr_blocks + BLOCKS_PER_STEP - 1) / BLOCKS_PER_STEP), nr_threads, scan_step, &s);
	l->err = s.first;
	add_blocks(l, &s);
	add_copies(l, reader, info.nr_regions);
	finish_ranges(l);
	if (l->nr_ranges)
		find_tensors(l, reader, info.head.raw_len);
	free(s.reason);
}

void lost_free(struct lost *lost)
{
	free(lost->range);
	free(lost->tensor);
	wfs_tensors_free(lost->tensors);
	*lost = (struct lost){0};
}

static const char *advice(const struct wfs_reader *reader, const struct wfs_error *err)
{
	if (reader && err->block != WFS_NO_BLOCK)
		return "; restore it from elsewhere, or save the rest with weightfs unpack --keep-going";
	if (err->status != WFS_BAD_DATA && err->status != WFS_BAD_CHECKSUM)
		return "";
	return reader ? "; restore it from elsewhere" : "; nothing of it can be read: restore it from elsewhere";
}

const char *damage_advice(int fd, const struct wfs_reader *reader, const struct wfs_error *err, char buf[ADVICE_BYTES])
{
	struct wfs_head head;
	struct stat st;
	if (!reader && err->status == WFS_BAD_DATA && wfs_head_read(fd, &head, NULL) == WFS_OK && !fstat(fd, &st) &&
	    (uint64_t)st.st_size > head.file_len)
		snprintf(buf, ADVICE_BYTES, "; cut it to %llu bytes and verify it again",
			 (unsigned long long)head.file_len);
	else
		snprintf(buf, ADVICE_BYTES, "%s", advice(reader, err));
	return buf;
}
