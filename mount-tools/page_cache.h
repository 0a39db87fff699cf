/* page_cache.h - leave the kernel's page cache as it was: drop what reading a file has brought in, and only that. */
#ifndef PAGE_CACHE_H
#define PAGE_CACHE_H

#include "util.h"

struct page_cache;

/* Remember which pages of the file are cached. NULL: that cannot be told, and nothing will be dropped. The kernel tells
 * only who may write the file or owns it; to others all pages look cached. */
struct page_cache *page_cache_remember(int fd);
/* Drop what was not cached from where the last call stopped up to this offset. cache may be NULL. */
void page_cache_drop(struct page_cache *cache, uint64_t end);
/* The same up to the end, and forget it all. */
void page_cache_free(struct page_cache *cache);

#endif
