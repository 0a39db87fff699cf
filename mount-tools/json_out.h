/* json_out.h - writes one JSON document piece by piece, correctly escaped and indented. */
#ifndef JSON_OUT_H
#define JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MAX_DEPTH = 8 };

struct json {
	FILE *out;
	unsigned depth;
	char bracket[JSON_MAX_DEPTH]; /* that closes each open level */
	bool filled[JSON_MAX_DEPTH];
};

void json_init(struct json *j, FILE *out);
/* key is NULL within an array and for the document itself. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
/* Close the innermost object or array; after the outermost a newline ends the document. */
void json_end(struct json *j);
/* Bytes that are not UTF-8 become lone surrogates U+DC80..U+DCFF, as Python's surrogateescape has them, so any file
 * name survives. text NULL: null. */
void json_string(struct json *j, const char *key, const char *text);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_int(struct json *j, const char *key, int64_t value);
void json_real(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);
/* text: a JSON value of somebody else, or NULL: null. */
void json_raw(struct json *j, const char *key, const char *text);
void json_hex(struct json *j, const char *key, const uint8_t *bytes, size_t len);

#endif
