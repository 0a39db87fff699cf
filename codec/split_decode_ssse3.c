/* split_decode_ssse3.c - the split decoder for x86 with SSSE3: split_decode_128.h. */
#include "split.h"

#ifdef __x86_64__
#include "split_decode_128.h"

wfs_split_decode_fn *wfs_split_decode_ssse3_get(void)
{
	return decode_128;
}

#else

wfs_split_decode_fn *wfs_split_decode_ssse3_get(void)
{
	return NULL;
}

#endif
