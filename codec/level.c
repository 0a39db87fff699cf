/* level.c - the names of levels. What a level does is decided where it matters: in the plan and where blocks are coded.
 */
#include "wfs_internal.h"

static const char *const names[WFS_NR_LEVELS] = {"default", "fast", "max"};

const char *wfs_level_name(enum wfs_level level)
{
	return (unsigned)level < WFS_NR_LEVELS ? names[level] : "unknown";
}

int wfs_level_from_name(const char *name)
{
	for (int level = 0; level < WFS_NR_LEVELS; level++) {
		if (!strcmp(name, names[level]))
			return level;
	}
	return -1;
}
