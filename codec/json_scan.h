/* json_scan.h - a strict pull tokenizer for JSON that lies in a range of a file. Private; serves safetensors.c.
 *
 * Linear time, no recursion, one fixed window of the file in memory. Only the text of strings is kept, one after
 * another in json->text; whoever needs no string cuts text_len back to where it was. Every string is valid UTF-8
 * without a NUL inside and NUL-terminated: what is not (a broken sequence, a lone surrogate, an escaped NUL) becomes
 * U+FFFD, so a damaged name costs a character and not the whole header.
 */
#ifndef WFS_JSON_SCAN_H
#define WFS_JSON_SCAN_H

#include "wfs_internal.h"

enum {
	WFS_JSON_WINDOW = 1 << 16, /* bytes read at once */
	WFS_JSON_DEPTH = 64,	   /* deepest nesting: one bit of json->objects a level */
};

enum wfs_json_kind {
	WFS_JSON_FAIL, /* json->status and json->reason tell why; every further call fails as well */
	WFS_JSON_END,
	WFS_JSON_OBJECT,
	WFS_JSON_OBJECT_END,
	WFS_JSON_ARRAY,
	WFS_JSON_ARRAY_END,
	WFS_JSON_KEY,	 /* text_off */
	WFS_JSON_STRING, /* text_off */
	WFS_JSON_NUMBER, /* an integer that fits u64: number */
	WFS_JSON_OTHER,	 /* another number, true, false, null */
};

struct wfs_json_token {
	enum wfs_json_kind kind;
	size_t text_off; /* in json->text, which moves as it grows */
	u64 number;
};

enum wfs_json_expect {
	WFS_JSON_WANT_VALUE,
	WFS_JSON_WANT_VALUE_OR_END, /* after '[' */
	WFS_JSON_WANT_KEY,
	WFS_JSON_WANT_KEY_OR_END, /* after '{' */
	WFS_JSON_WANT_COMMA_OR_END,
	WFS_JSON_WANT_NOTHING, /* after the outermost value */
};

struct wfs_json {
	wfs_pread_fn pread_fn;
	void *ctx;
	u64 off, end;	 /* file range that is not in the window yet */
	size_t pos, len; /* unread part of the window */
	char *text;
	size_t text_len, text_room;
	u64 objects; /* bit d: level d is an object, else an array */
	unsigned depth;
	enum wfs_json_expect expect;
	enum wfs_status status;
	const char *reason;
	u8 window[WFS_JSON_WINDOW];
};

/* Start at file range [off, off + len). Destroy frees the text, unless the caller took it and set json->text = NULL. */
void wfs_json_init(struct wfs_json *json, wfs_pread_fn pread_fn, void *ctx, u64 off, u64 len);
void wfs_json_destroy(struct wfs_json *json);

/* The next token. END comes when one whole value and only white space after it have been read. Bad JSON:
 * WFS_NOT_CONTAINER; else the status of pread_fn, or WFS_NO_MEMORY. */
enum wfs_json_kind wfs_json_next(struct wfs_json *json, struct wfs_json_token *token_ret);

/* Read on to the end of the value that begins with `token`; keeps no text. False on failure. */
bool wfs_json_skip(struct wfs_json *json, const struct wfs_json_token *token);

#endif
