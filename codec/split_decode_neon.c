/* split_decode_neon.c - the split decoder for AArch64: split_decode_128.h. */
#include "split.h"

#ifdef __aarch64__
#include "split_decode_128.h"

wfs_split_decode_fn *wfs_split_decode_neon_get(void)
{
	return decode_128;
}

#else

wfs_split_decode_fn *wfs_split_decode_neon_get(void)
{
	return NULL;
}

#endif
