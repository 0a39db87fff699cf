/* grid_expand_neon.c - codes to words for AArch64: grid_expand_128.h. */
#include "grid.h"

#ifdef __aarch64__
#include "grid_expand_128.h"

wfs_grid_expand_fn *wfs_grid_expand_neon_get(void)
{
	return expand_128;
}

#else

wfs_grid_expand_fn *wfs_grid_expand_neon_get(void)
{
	return NULL;
}

#endif
