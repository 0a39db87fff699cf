/* json_in.c - see json_in.h. */
#include "json_in.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* The functions skip_* return what follows, or NULL when it is not what it should be. */
static const char *skip_string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	while (*p != '"') {
		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p != '\\') {
			p++;
		} else if (p[1] == 'u') {
			if (strspn(p + 2, "0123456789abcdefABCDEF") < 4)
				return NULL;
			p += 6;
		} else if (p[1] && strchr("\"\\/bfnrt", p[1])) {
			p += 2;
		} else {
			return NULL;
		}
	}
	return p + 1;
}

static const char *skip_digits(const char *p)
{
	size_t len = strspn(p, "0123456789");
	return len ? p + len : NULL;
}

static const char *skip_number(const char *p)
{
	p += *p == '-';
	p = *p == '0' ? p + 1 : skip_digits(p);
	if (p && *p == '.')
		p = skip_digits(p + 1);
	if (p && (*p == 'e' || *p == 'E')) {
		p++;
		p = skip_digits(p + (*p == '+' || *p == '-'));
	}
	return p;
}

static const char *skip_value(const char *p, unsigned depth)
{
	static const char *const words[] = {"true", "false", "null"};
	const bool object = *p == '{';
	char close = object ? '}' : ']';
	if (*p == '"')
		return skip_string(p);
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (!strncmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	if (!object && *p != '[')
		return skip_number(p);
	p = skip_space(p + 1);
	if (*p == close)
		return p + 1;
	while (depth < MAX_DEPTH) {
		if (object) {
			p = skip_string(p);
			p = p ? skip_space(p) : NULL;
			if (!p || *p != ':')
				return NULL;
			p = skip_space(p + 1);
		}
		p = skip_value(p, depth + 1);
		p = p ? skip_space(p) : NULL;
		if (!p || *p == close)
			return p ? p + 1 : NULL;
		if (*p != ',')
			return NULL;
		p = skip_space(p + 1);
	}
	return NULL;
}

bool json_valid(const char *text)
{
	const char *end = skip_value(skip_space(text), 0);
	return end && !*skip_space(end);
}

/* Of a valid array or object: the first item, or the one after p, which ends an item. NULL: there is none. */
static const char *next_item(const char *p)
{
	if (!p)
		return NULL;
	p = skip_space(p);
	if (*p != ',' && *p != '{' && *p != '[')
		return NULL;
	p = skip_space(p + 1);
	return *p == '}' || *p == ']' ? NULL : p;
}

const char *json_member(const char *value, const char *name)
{
	size_t len = strlen(name);
	if (!value || *skip_space(value) != '{')
		return NULL;
	for (const char *p = next_item(value); p; p = next_item(p)) {
		const char *end = skip_string(p), *found = skip_space(skip_space(end) + 1);
		if ((size_t)(end - p) == len + 2 && !memcmp(p + 1, name, len))
			return found;
		p = skip_value(found, 0);
	}
	return NULL;
}

const char *json_element(const char *value, size_t i)
{
	const char *p;
	if (!value || *skip_space(value) != '[')
		return NULL;
	for (p = next_item(value); p && i; i--)
		p = next_item(skip_value(p, 0));
	return p;
}

double json_number_or(const char *value, double otherwise)
{
	return value && (*value == '-' || (*value >= '0' && *value <= '9')) ? strtod(value, NULL) : otherwise;
}

static unsigned hex4(const char *p)
{
	char digits[5] = {p[0], p[1], p[2], p[3]};
	return (unsigned)strtoul(digits, NULL, 16);
}

/* One \uXXXX of a string: a byte that was not UTF-8, or a character below U+10000. */
static char *put_escaped(char *out, unsigned c)
{
	if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

char *json_text(const char *value)
{
	static const char names[] = "bfnrt", meant[] = "\b\f\n\r\t";
	char *text, *out;
	if (!value || *value != '"')
		return xstrdup("");
	/* What is decoded is never longer. */
	out = text = xcalloc(1, (size_t)(skip_string(value) - value));
	for (const char *p = value + 1; *p != '"';) {
		const char *name = *p == '\\' ? strchr(names, p[1]) : NULL;
		if (*p != '\\') {
			*out++ = *p++;
		} else if (p[1] == 'u') {
			out = put_escaped(out, hex4(p + 2));
			p += 6;
		} else {
			*out++ = name ? meant[name - names] : p[1];
			p += 2;
		}
	}
	return text;
}
