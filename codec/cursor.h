/* cursor.h - a bounded cursor over bytes that nobody has checked yet. Private.
 *
 * Every take either gives a pointer to that many readable bytes or NULL; lengths are 64-bit values straight from the
 * file, so no caller has to think about overflow.
 */
#ifndef WFS_CURSOR_H
#define WFS_CURSOR_H

#include "wfs_internal.h"

struct wfs_cursor {
	const u8 *at;
	size_t left;
};

static inline struct wfs_cursor wfs_cursor_make(const u8 *bytes, size_t len)
{
	return (struct wfs_cursor){bytes, len};
}

/* The next len bytes, or NULL (and no move) when fewer are left. */
static inline const u8 *wfs_cursor_take(struct wfs_cursor *c, u64 len)
{
	const u8 *taken = c->at;
	if (len > c->left)
		return NULL;
	c->at += len;
	c->left -= (size_t)len;
	return taken;
}

/* Copies the next len bytes to out; false when fewer are left. */
static inline bool wfs_cursor_copy(struct wfs_cursor *c, void *out, size_t len)
{
	const u8 *taken = wfs_cursor_take(c, len);
	if (taken)
		memcpy(out, taken, len);
	return taken != NULL;
}

#endif
