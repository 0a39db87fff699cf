/* wide_decode_ssse3.c - the wide decoder for x86 with SSSE3: wide_decode_128.h. */
#include "wide.h"

#ifdef __x86_64__
#include "wide_decode_128.h"

wfs_wide_decode_fn *wfs_wide_decode_ssse3_get(void)
{
	return decode_128;
}

#else

wfs_wide_decode_fn *wfs_wide_decode_ssse3_get(void)
{
	return NULL;
}

#endif
