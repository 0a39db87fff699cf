/* grid_expand_ssse3.c - codes to words for x86 with SSSE3: grid_expand_128.h. */
#include "grid.h"

#ifdef __x86_64__
#include "grid_expand_128.h"

wfs_grid_expand_fn *wfs_grid_expand_ssse3_get(void)
{
	return expand_128;
}

#else

wfs_grid_expand_fn *wfs_grid_expand_ssse3_get(void)
{
	return NULL;
}

#endif
