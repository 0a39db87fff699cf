/* printable.h - text that others have a hand in (names, paths, what a peer sends), fit for a terminal and a log: the
 * one rule, for the tools and for weightfsd.
 *
 * Control characters become '?': those of ASCII, and in UTF-8 those of C1 (U+0080 to U+009F, the bytes c2 80 to c2 9f),
 * of which U+009B begins a command to the terminal just as ESC [ does. A byte above 7f that stands elsewhere is part of
 * a letter. Source: ECMA-48, 5.3 and 5.4.
 */
#ifndef WFS_PRINTABLE_H
#define WFS_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Where one of C1 may begin whose second byte is not there yet. */
#define WFS_C1_LEAD '\xc2'

static inline bool wfs_is_c1(const char *text, size_t left)
{
	return left >= 2 && text[0] == WFS_C1_LEAD && ((unsigned char)text[1] & 0xe0) == 0x80;
}

/* Masks them in text. with_lines: but for newlines and tabs. */
static inline void wfs_mask_controls(char *text, size_t len, bool with_lines)
{
	for (size_t i = 0; i < len; i++) {
		if (wfs_is_c1(text + i, len - i))
			text[i] = text[i + 1] = '?';
		else if (((unsigned char)text[i] < 0x20 && !(with_lines && (text[i] == '\n' || text[i] == '\t'))) ||
			 text[i] == 0x7f)
			text[i] = '?';
	}
}

#endif
