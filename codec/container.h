/* container.h - an open container in memory. Private to container_*.c, meta_read.c, reader.c, stream.c, reencode.c and
 * manifest_check.c.
 *
 * Everything here was checked at open against FORMAT.md section 1 and never changes afterwards: look-ups trust it.
 * A block costs 14 bytes: its hash, its offset relative to its group's, its coder selector.
 */
#ifndef WFS_CONTAINER_H
#define WFS_CONTAINER_H

#include "block.h"
#include "wfs_format.h"

#include <openssl/evp.h>

/* Blocks of a group share a 64-bit payload offset; their own are relative to it. 4095 lengths of at most 2^20 bytes
 * stay below 2^32. */
enum { WFS_GROUP_LOG2 = 12 };
_Static_assert((((u64)1 << WFS_GROUP_LOG2) - 1) * WFS_MAX_BLOCK <= UINT32_MAX, "relative offsets fit 32 bits");

struct wfs_reader_region {
	u64 raw_off;	   /* the region ends where the next one starts; a sentinel follows the last */
	u64 arg;	   /* constant: fill; copy: source */
	u64 first_block;   /* blocks of the regions before */
	u32 copies_before; /* copy regions before this one */
	u16 coder;
	u8 kind, phase;
};
_Static_assert(sizeof(struct wfs_reader_region) == 32, "regions are many in some files");

struct wfs_reader {
	int fd; /* the caller's */
	enum wfs_cpu cpu;
	struct wfs_kernels kernels;
	struct wfs_head head;
	u64 file_size; /* what fstat said at open */
	bool meta_from_copy_b;

	u64 nr_regions, nr_blocks;
	u32 nr_coders, nr_pools, nr_wide_pools, nr_grids;
	struct wfs_reader_region *region; /* nr_regions + 1 */
	struct wfs_coder *coder;
	struct wfs_decode_pool **pool;
	struct wfs_wide_decode_pool **wide_pool;
	struct wfs_grid_values *grid;

	u64 *group_off; /* payload offset of every group's first block */
	u32 *rel_off;	/* nr_blocks + 1 */
	u64 *hash;	/* nr_blocks */
	u16 *selector;	/* nr_blocks: 0 the region's default coder, else coder - 1 */
	bool has_sha256, check_sha256;
	u8 *block_sha256; /* nr_blocks times 32 bytes; NULL without check_sha256, as the next */
	EVP_MD *sha256;	  /* looked up once: a look-up takes locks */
	u8 meta_sha256[WFS_SHA256_BYTES];
	u64 memory_bytes; /* all of the above */
};

/* container_read.c: the stored metadata, from the first good copy. The caller frees it. */
enum wfs_status wfs_meta_load(const struct wfs_reader *reader, u8 **meta_ret, bool *from_copy_b_ret,
			      struct wfs_error *err);

/* meta_read.c: check the metadata and fill the reader from it. reader->head is set and checked. What was allocated
 * stays in the reader also on failure: wfs_reader_free gives it back. */
enum wfs_status wfs_meta_parse(struct wfs_reader *reader, const u8 *meta, size_t meta_len, struct wfs_error *err);

/* The bytes of the pools, or of the wide pools, inside the metadata of an open reader; none: NULL, 0. */
enum wfs_status wfs_meta_pools(const struct wfs_reader *reader, const u8 *meta, bool wide, const u8 **pools_ret,
			       size_t *len_ret, struct wfs_error *err);

/* The region that holds raw_off < raw_len. */
static inline u64 wfs_region_at(const struct wfs_reader *r, u64 raw_off)
{
	u64 low = 0, high = r->nr_regions; /* the answer is in low..high-1 */
	while (high - low > 1) {
		u64 mid = low + (high - low) / 2;
		if (r->region[mid].raw_off <= raw_off)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* Blocks of a coded range: cut at every multiple of the block size and at its ends. */
static inline u64 wfs_nr_blocks_of(u64 raw_off, u64 raw_len, unsigned block_log2)
{
	return ((raw_off + raw_len - 1) >> block_log2) - (raw_off >> block_log2) + 1;
}

/* Block index of region: all that wfs_reader_block gives. */
void wfs_block_of_region(const struct wfs_reader *r, u64 region, u64 index, struct wfs_block *block_ret);

/* Bytes that wfs_reader_read may need beside the caller's: one block's stored bytes and one whole decoded block. */
struct wfs_read_buffers {
	u8 comp[WFS_MAX_BLOCK], raw[WFS_MAX_BLOCK];
	u64 block; /* what raw holds, or WFS_NO_BLOCK: many short copies of one block decode it once */
};
struct wfs_read_buffers *wfs_read_buffers_new(void);
/* wfs_reader_read with the caller's buffers. */
enum wfs_status wfs_reader_read_with(const struct wfs_reader *reader, u64 off, u8 *buf, size_t len,
				     struct wfs_scratch *scratch, struct wfs_read_buffers *buffers,
				     struct wfs_error *err);

#endif
