/* plan_geometry.c - tensors as matrices: what encoders want to know of rows.
 *
 * Rows of a tensor have scales of their own: output channels, tokens. Very short last dimensions, as of convolution
 * kernels, are taken together with those before them.
 */
#include "plan.h"

#include <stdlib.h>

enum { MIN_COLS = 64 };

static u64 row_elements(const struct wfs_tensor *t)
{
	u64 cols = 1;

	for (u32 d = t->nr_dims; d > 0 && (d == t->nr_dims || (d > 1 && cols < MIN_COLS)); d--)
		cols *= t->shape[d - 1]; /* their product fits: it divides the tensor's elements */
	return cols;
}

/* false: the elements are not whole words. */
static bool matrix_of(const struct wfs_tensor *t, struct wfs_matrix *matrix_ret)
{
	u64 elements = 1;

	for (u32 d = 0; d < t->nr_dims; d++)
		if (__builtin_mul_overflow(elements, t->shape[d], &elements))
			return false;
	if (!elements || t->raw_len % elements)
		return false;
	u64 word = t->raw_len / elements;
	if (word != 1 && word != 2 && word != 4 && word != 8)
		return false;
	*matrix_ret = (struct wfs_matrix){
		.raw_off = t->raw_off,
		.raw_len = t->raw_len,
		.cols = row_elements(t),
		.word = (u8)word,
	};
	return true;
}

bool wfs_geometry_make(const struct wfs_tensors *tensors, u64 raw_len, struct wfs_geometry *geometry_ret)
{
	struct wfs_matrix *matrix = calloc(tensors->nr + 1, sizeof(*matrix)), m;
	size_t nr = 0;
	u64 at = 0;

	if (!matrix)
		return false;
	for (size_t i = 0; i < tensors->nr; i++) {
		const struct wfs_tensor *t = &tensors->tensor[i];

		if (t->raw_off < at || t->raw_off > raw_len || t->raw_len > raw_len - t->raw_off || !matrix_of(t, &m))
			continue;
		matrix[nr++] = m;
		at = t->raw_off + t->raw_len;
	}
	*geometry_ret = (struct wfs_geometry){matrix, nr};
	return true;
}
