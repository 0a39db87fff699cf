/* split_encode_avx2.c - the encoder's AVX2 kernel. */
#include "split_encode.h"

const struct wfs_encode_kernel *wfs_encode_kernel_avx2_get(void)
{
	return NULL;
}
