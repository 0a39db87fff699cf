/* wide_decode_neon.c - the wide decoder for AArch64: wide_decode_128.h. */
#include "wide.h"

#ifdef __aarch64__
#include "wide_decode_128.h"

wfs_wide_decode_fn *wfs_wide_decode_neon_get(void)
{
	return decode_128;
}

#else

wfs_wide_decode_fn *wfs_wide_decode_neon_get(void)
{
	return NULL;
}

#endif
