/* status.c - what statuses and versions are called: the only table of such strings. */
#include "wfs_internal.h"

static const struct {
	const char *name, *message;
} statuses[] = {
	[WFS_OK] = {"OK", "No error."},
	[WFS_BAD_DATA] = {"BAD_DATA", "The container is damaged or cut short: it breaks a rule of the format."},
	[WFS_BAD_CHECKSUM] = {"BAD_CHECKSUM", "The container is damaged: a checksum does not match."},
	[WFS_UNSUPPORTED] = {"UNSUPPORTED", "The container was made by a newer weightfs: update weightfs to read it."},
	[WFS_NOT_CONTAINER] = {"NOT_CONTAINER", "The file is not a weightfs container."},
	[WFS_IO] = {"IO", "The operating system reported an input or output error."},
	[WFS_NO_MEMORY] = {"NO_MEMORY", "Out of memory."},
	[WFS_BAD_ARGUMENT] = {"BAD_ARGUMENT", "The request is not valid."},
	[WFS_CANCELLED] = {"CANCELLED", "The operation was cancelled."},
	[WFS_CHANGED] = {"CHANGED", "The source file changed while it was read."},
	[WFS_BUG] = {"BUG", "weightfs contradicts itself: please report this."},
};

const char *wfs_status_name(enum wfs_status status)
{
	return (unsigned)status < WFS_ARRAY_LEN(statuses) ? statuses[status].name : "UNKNOWN";
}

const char *wfs_status_message(enum wfs_status status)
{
	return (unsigned)status < WFS_ARRAY_LEN(statuses) ? statuses[status].message : "Unknown status.";
}

const char *wfs_version(void)
{
	return "1.0.0";
}
