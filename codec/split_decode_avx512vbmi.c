/* split_decode_avx512vbmi.c - the split decoder for AVX-512 VBMI. */
#include "split_merge.h"

wfs_split_decode_fn *wfs_split_decode_avx512vbmi_get(void)
{
	return NULL;
}
