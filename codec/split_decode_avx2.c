/* split_decode_avx2.c - the split decoder for AVX2. */
#include "split_merge.h"

wfs_split_decode_fn *wfs_split_decode_avx2_get(void)
{
	return NULL;
}
