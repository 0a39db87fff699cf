/* page_cache.c - see page_cache.h. The file is mapped to ask the kernel, never to be read. */
#include "page_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGES_PER_STEP = 64 << 10 };

struct page_cache {
	int fd;
	uint64_t nr_pages, dropped, page_bytes; /* dropped: pages that are dealt with */
	uint8_t *cached;			/* a bit a page */
};

static bool is_cached(const struct page_cache *c, uint64_t page)
{
	return c->cached[page / 8] >> page % 8 & 1;
}

static bool ask_step(struct page_cache *c, uint64_t first, uint64_t nr, unsigned char *resident)
{
	size_t len = (size_t)(nr * c->page_bytes);
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, c->fd, (off_t)(first * c->page_bytes));
	bool ok = map != MAP_FAILED && !mincore(map, len, resident);
	if (map != MAP_FAILED)
		munmap(map, len);
	for (uint64_t i = 0; ok && i < nr; i++)
		c->cached[(first + i) / 8] |= (uint8_t)((resident[i] & 1) << (first + i) % 8);
	return ok;
}

struct page_cache *page_cache_remember(int fd)
{
	struct page_cache *c;
	unsigned char *resident;
	struct stat st;
	bool ok;
	if (fstat(fd, &st) || st.st_size <= 0)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->fd = fd;
	c->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	c->nr_pages = ((uint64_t)st.st_size + c->page_bytes - 1) / c->page_bytes;
	/* Its size is the file's: no reason to end a run that can do without. */
	c->cached = calloc((size_t)(c->nr_pages / 8 + 1), 1);
	ok = c->cached;
	resident = xcalloc(PAGES_PER_STEP, 1);
	for (uint64_t page = 0; ok && page < c->nr_pages; page += PAGES_PER_STEP)
		ok = ask_step(c, page, MIN(c->nr_pages - page, (uint64_t)PAGES_PER_STEP), resident);
	free(resident);
	if (ok)
		return c;
	free(c->cached);
	free(c);
	return NULL;
}

static void drop_pages(struct page_cache *c, uint64_t end)
{
	while (c->dropped < end) {
		uint64_t first = c->dropped;
		while (c->dropped < end && !is_cached(c, c->dropped))
			c->dropped++;
		/* Advice: a file system that does not take it keeps the pages, no more. */
		if (c->dropped > first)
			(void)posix_fadvise(c->fd, (off_t)(first * c->page_bytes),
					    (off_t)((c->dropped - first) * c->page_bytes), POSIX_FADV_DONTNEED);
		while (c->dropped < end && is_cached(c, c->dropped))
			c->dropped++;
	}
}

void page_cache_drop(struct page_cache *cache, uint64_t end)
{
	/* What the kernel reads in one piece it drops in one piece only, and each step is a system call. */
	static const uint64_t step_bytes = 4 << 20;
	if (cache)
		drop_pages(cache, MIN(end / step_bytes * step_bytes / cache->page_bytes, cache->nr_pages));
}

void page_cache_free(struct page_cache *cache)
{
	if (!cache)
		return;
	/* Once more from the start: some parts were read again, and some were in use. */
	cache->dropped = 0;
	drop_pages(cache, cache->nr_pages);
	free(cache->cached);
	free(cache);
}
