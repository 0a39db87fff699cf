/* json_scan.c - the tokenizer of json_scan.h (grammar: RFC 8259). */
#include "json_scan.h"

#include <stdlib.h>

void wfs_json_init(struct wfs_json *json, wfs_pread_fn pread_fn, void *ctx, u64 off, u64 len)
{
	json->pread_fn = pread_fn;
	json->ctx = ctx;
	json->off = off;
	json->end = off + len;
	json->pos = json->len = 0;
	json->text = NULL;
	json->text_len = json->text_room = 0;
	json->objects = 0;
	json->depth = 0;
	json->expect = WFS_JSON_WANT_VALUE;
	json->status = WFS_OK;
	json->reason = NULL;
}

void wfs_json_destroy(struct wfs_json *json)
{
	free(json->text);
	json->text = NULL;
}

/* Remembers the first failure only: later ones follow from it. */
static bool fail(struct wfs_json *json, enum wfs_status status, const char *reason)
{
	if (json->status == WFS_OK) {
		json->status = status;
		json->reason = reason;
	}
	return false;
}

static bool bad_json(struct wfs_json *json)
{
	return fail(json, WFS_NOT_CONTAINER, "its header is not JSON");
}

/* Make the next `want` bytes lie side by side in the window, or all there are. Returns how many of them there are. */
static size_t have(struct wfs_json *json, size_t want)
{
	size_t rest = json->len - json->pos;
	if (wfs_likely(rest >= want))
		return want;
	memmove(json->window, json->window + json->pos, rest);
	json->pos = 0;
	json->len = rest;
	size_t more = (size_t)WFS_MIN((u64)(WFS_JSON_WINDOW - rest), json->end - json->off);
	if (more && json->status == WFS_OK) {
		enum wfs_status status = json->pread_fn(json->ctx, json->window + rest, more, json->off);
		if (status == WFS_OK) {
			json->off += more;
			json->len += more;
		} else {
			fail(json, status, "cannot read its header");
		}
	}
	return WFS_MIN(json->len, want);
}

/* The next byte without taking it, or -1 at the end and after a failure (no byte of JSON has that value). */
static int peek(struct wfs_json *json)
{
	return have(json, 1) ? json->window[json->pos] : -1;
}

static bool put(struct wfs_json *json, const void *bytes, size_t len)
{
	size_t need = json->text_len + len; /* both bounded by thrice the range's length */
	if (need > json->text_room) {
		size_t room = WFS_MAX(need, WFS_MAX(json->text_room + json->text_room / 2, (size_t)1024));
		char *text = realloc(json->text, room);
		if (!text)
			return fail(json, WFS_NO_MEMORY, "out of memory");
		json->text = text;
		json->text_room = room;
	}
	memcpy(json->text + json->text_len, bytes, len);
	json->text_len = need;
	return true;
}

static bool put_code_point(struct wfs_json *json, u32 c)
{
	u8 b[4];
	size_t len;
	if (c == 0 || (c >= 0xD800 && c < 0xE000))
		c = 0xFFFD;
	if (c < 0x80) {
		b[0] = (u8)c;
		len = 1;
	} else if (c < 0x800) {
		b[0] = (u8)(0xC0 | c >> 6);
		b[1] = (u8)(0x80 | (c & 63));
		len = 2;
	} else if (c < 0x10000) {
		b[0] = (u8)(0xE0 | c >> 12);
		b[1] = (u8)(0x80 | (c >> 6 & 63));
		b[2] = (u8)(0x80 | (c & 63));
		len = 3;
	} else {
		b[0] = (u8)(0xF0 | c >> 18);
		b[1] = (u8)(0x80 | (c >> 12 & 63));
		b[2] = (u8)(0x80 | (c >> 6 & 63));
		b[3] = (u8)(0x80 | (c & 63));
		len = 4;
	}
	return put(json, b, len);
}

/* Bytes of the well-formed UTF-8 sequence at p (Unicode, table 3-7), which begins with a byte of 0x80 or more; 0: it
 * is not one. */
static size_t utf8_len(const u8 *p, size_t len)
{
	u8 low = 0x80, high = 0xBF; /* of the second byte: no overlong forms, no surrogates, nothing above 10FFFF */
	size_t need;
	if (p[0] >= 0xC2 && p[0] <= 0xDF)
		need = 2;
	else if (p[0] >= 0xE0 && p[0] <= 0xEF)
		need = 3;
	else if (p[0] >= 0xF0 && p[0] <= 0xF4)
		need = 4;
	else
		return 0;
	if (p[0] == 0xE0)
		low = 0xA0;
	else if (p[0] == 0xED)
		high = 0x9F;
	else if (p[0] == 0xF0)
		low = 0x90;
	else if (p[0] == 0xF4)
		high = 0x8F;
	if (len < need || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++)
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	return need;
}

/* The value of the escape "\uXXXX" at p, or -1. */
static int hex_escape(const u8 *p, size_t len)
{
	int value = 0;
	if (len < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		int lower = p[i] | 0x20;
		if (p[i] >= '0' && p[i] <= '9')
			value = value << 4 | (p[i] - '0');
		else if (lower >= 'a' && lower <= 'f')
			value = value << 4 | (lower - 'a' + 10);
		else
			return -1;
	}
	return value;
}

/* An escape, the backslash being next. */
static bool scan_escape(struct wfs_json *json)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	size_t len = have(json, 12);
	const u8 *p = json->window + json->pos;
	if (len < 2)
		return bad_json(json);
	const char *simple = p[1] ? strchr(from, p[1]) : NULL;
	if (simple) {
		json->pos += 2;
		return put(json, &to[simple - from], 1);
	}
	int unit = hex_escape(p, len), low;
	if (unit < 0)
		return bad_json(json);
	json->pos += 6;
	if (unit >= 0xD800 && unit < 0xDC00) {
		low = hex_escape(p + 6, len - 6);
		if (low >= 0xDC00 && low < 0xE000) {
			json->pos += 6;
			return put_code_point(json, 0x10000 + ((u32)(unit - 0xD800) << 10) + (u32)(low - 0xDC00));
		}
	}
	return put_code_point(json, (u32)unit);
}

/* A string, its opening quote being next. */
static bool scan_string(struct wfs_json *json, size_t *text_off_ret)
{
	*text_off_ret = json->text_len;
	json->pos++;
	for (;;) {
		if (!have(json, 1))
			return bad_json(json);
		const u8 *p = json->window + json->pos;
		size_t rest = json->len - json->pos, plain = 0;
		while (plain < rest && p[plain] >= 0x20 && p[plain] < 0x80 && p[plain] != '"' && p[plain] != '\\')
			plain++;
		if (plain) {
			if (!put(json, p, plain))
				return false;
			json->pos += plain;
		} else if (*p == '"') {
			json->pos++;
			return put(json, "", 1);
		} else if (*p == '\\') {
			if (!scan_escape(json))
				return false;
		} else if (*p < 0x20) {
			return bad_json(json);
		} else {
			size_t len = have(json, 4), seq = utf8_len(json->window + json->pos, len);
			if (!(seq ? put(json, json->window + json->pos, seq) : put_code_point(json, 0xFFFD)))
				return false;
			json->pos += seq ? seq : 1;
		}
	}
}

/* Take a run of digits. Returns how many; 0 is a failure. *fits is cleared when the value is beyond u64. */
static u64 scan_digits(struct wfs_json *json, u64 *value_ret, bool *fits)
{
	u64 value = 0, nr = 0;
	for (int c = peek(json); c >= '0' && c <= '9'; c = peek(json), nr++) {
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (u64)(c - '0'), &value))
			*fits = false;
		json->pos++;
	}
	*value_ret = value;
	if (!nr)
		bad_json(json);
	return nr;
}

static bool scan_number(struct wfs_json *json, struct wfs_json_token *token)
{
	bool fits = true;
	u64 ignored, nr;
	if (peek(json) == '-') {
		json->pos++;
		fits = false;
	}
	bool zero = peek(json) == '0';
	nr = scan_digits(json, &token->number, &fits);
	if (!nr)
		return false;
	if (zero && nr > 1)
		return bad_json(json); /* leading zero */
	if (peek(json) == '.') {
		json->pos++;
		fits = false;
		if (!scan_digits(json, &ignored, &fits))
			return false;
	}
	if (peek(json) == 'e' || peek(json) == 'E') {
		json->pos++;
		fits = false;
		if (peek(json) == '+' || peek(json) == '-')
			json->pos++;
		if (!scan_digits(json, &ignored, &fits))
			return false;
	}
	token->kind = fits ? WFS_JSON_NUMBER : WFS_JSON_OTHER;
	return true;
}

static bool scan_word(struct wfs_json *json, const char *word)
{
	size_t len = strlen(word);
	if (have(json, len) < len || memcmp(json->window + json->pos, word, len) != 0)
		return bad_json(json);
	json->pos += len;
	return true;
}

static void skip_space(struct wfs_json *json)
{
	for (int c = peek(json); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(json))
		json->pos++;
}

/* What may follow a whole value at the present depth. */
static void value_done(struct wfs_json *json)
{
	json->expect = json->depth ? WFS_JSON_WANT_COMMA_OR_END : WFS_JSON_WANT_NOTHING;
}

static bool open_level(struct wfs_json *json, bool object)
{
	if (json->depth == WFS_JSON_DEPTH)
		return fail(json, WFS_NOT_CONTAINER, "its header is nested too deeply");
	u64 bit = (u64)1 << json->depth++;
	json->objects = object ? json->objects | bit : json->objects & ~bit;
	json->expect = object ? WFS_JSON_WANT_KEY_OR_END : WFS_JSON_WANT_VALUE_OR_END;
	json->pos++;
	return true;
}

static bool in_object(const struct wfs_json *json)
{
	return json->depth && (json->objects >> (json->depth - 1) & 1);
}

static bool scan_value(struct wfs_json *json, struct wfs_json_token *token)
{
	int c = peek(json);
	bool ok;
	if (c == '{' || c == '[') {
		token->kind = c == '{' ? WFS_JSON_OBJECT : WFS_JSON_ARRAY;
		return open_level(json, c == '{');
	}
	token->kind = WFS_JSON_OTHER;
	if (c == '"') {
		token->kind = WFS_JSON_STRING;
		ok = scan_string(json, &token->text_off);
	} else if (c == 't') {
		ok = scan_word(json, "true");
	} else if (c == 'f') {
		ok = scan_word(json, "false");
	} else if (c == 'n') {
		ok = scan_word(json, "null");
	} else {
		ok = scan_number(json, token);
	}
	if (ok)
		value_done(json);
	return ok;
}

static bool scan_key(struct wfs_json *json, struct wfs_json_token *token)
{
	token->kind = WFS_JSON_KEY;
	if (peek(json) != '"')
		return bad_json(json);
	if (!scan_string(json, &token->text_off))
		return false;
	skip_space(json);
	if (peek(json) != ':')
		return bad_json(json);
	json->pos++;
	json->expect = WFS_JSON_WANT_VALUE;
	return true;
}

/* One token, white space before it being skipped. */
static bool scan_token(struct wfs_json *json, struct wfs_json_token *token)
{
	int c = peek(json);
	bool object = in_object(json);
	if (json->expect == WFS_JSON_WANT_NOTHING) {
		token->kind = WFS_JSON_END;
		return c < 0 || bad_json(json);
	}
	if (json->expect == WFS_JSON_WANT_COMMA_OR_END && c == ',') {
		json->pos++;
		skip_space(json);
		json->expect = object ? WFS_JSON_WANT_KEY : WFS_JSON_WANT_VALUE;
	} else if (json->expect != WFS_JSON_WANT_VALUE && json->expect != WFS_JSON_WANT_KEY &&
		   c == (object ? '}' : ']')) {
		json->pos++;
		json->depth--;
		token->kind = object ? WFS_JSON_OBJECT_END : WFS_JSON_ARRAY_END;
		value_done(json);
		return true;
	}
	switch (json->expect) {
	case WFS_JSON_WANT_KEY:
	case WFS_JSON_WANT_KEY_OR_END:
		return scan_key(json, token);
	case WFS_JSON_WANT_VALUE:
	case WFS_JSON_WANT_VALUE_OR_END:
		return scan_value(json, token);
	default:
		return bad_json(json);
	}
}

enum wfs_json_kind wfs_json_next(struct wfs_json *json, struct wfs_json_token *token_ret)
{
	*token_ret = (struct wfs_json_token){.kind = WFS_JSON_FAIL};
	if (json->status == WFS_OK)
		skip_space(json);
	/* A failed read looks like the end of the text: the status decides. */
	if (json->status != WFS_OK || !scan_token(json, token_ret) || json->status != WFS_OK)
		token_ret->kind = WFS_JSON_FAIL;
	return token_ret->kind;
}

bool wfs_json_skip(struct wfs_json *json, const struct wfs_json_token *token)
{
	size_t mark = json->text_len;
	struct wfs_json_token t;
	if (token->kind != WFS_JSON_OBJECT && token->kind != WFS_JSON_ARRAY)
		return token->kind != WFS_JSON_FAIL;
	for (unsigned outside = json->depth - 1; json->depth > outside; json->text_len = mark)
		if (wfs_json_next(json, &t) == WFS_JSON_FAIL)
			return false;
	return true;
}
