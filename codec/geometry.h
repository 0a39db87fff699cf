/* geometry.h - the matrices of a file: where rows and tiles of weights lie. Private.
 *
 * A hint for encoders: what it gets wrong only compresses worse.
 */
#ifndef WFS_GEOMETRY_H
#define WFS_GEOMETRY_H

#include "wfs_internal.h"

/* A tensor of `word` bytes an element whose last dimension is `cols`; the dimensions before it count as rows. A grid's
 * tile has tile_rows by tile_cols elements and one scale; 0: all rows, all columns. */
struct wfs_matrix {
	u64 raw_off, raw_len;
	u64 cols;
	u32 tile_rows, tile_cols;
	u8 word;
};

/* In file order, without overlaps, none empty. */
struct wfs_geometry {
	struct wfs_matrix *matrix;
	size_t nr;
};

/* The first matrix that ends behind raw_off; geometry->nr when there is none. */
static inline size_t wfs_geometry_find(const struct wfs_geometry *geometry, u64 raw_off)
{
	size_t low = 0, high = geometry->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (geometry->matrix[mid].raw_off + geometry->matrix[mid].raw_len <= raw_off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
