/* json_out.c - writes one JSON document piece by piece. */
#include "json_out.h"

#include <inttypes.h>
#include <string.h>

void json_init(struct json *j, FILE *out)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
}

static void newline(struct json *j)
{
	fputc('\n', j->out);
	for (unsigned i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

/* Length of the well-formed UTF-8 sequence at s (RFC 3629), or 0. */
static unsigned utf8_len(const unsigned char *s)
{
	unsigned len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	for (unsigned i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong, surrogate, above U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static void put_string(struct json *j, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	fputc('"', j->out);
	while (*s) {
		unsigned len = utf8_len(s);
		if (len == 0)
			fprintf(j->out, "\\udc%02x", *s++);
		else if (len == 1 && (*s == '"' || *s == '\\'))
			fprintf(j->out, "\\%c", *s++);
		else if (len == 1 && (*s < 0x20 || *s == 0x7f))
			fprintf(j->out, "\\u%04x", *s++);
		else
			while (len--)
				fputc(*s++, j->out);
	}
	fputc('"', j->out);
}

static void begin_item(struct json *j, const char *key)
{
	if (j->depth) {
		if (j->filled[j->depth - 1])
			fputc(',', j->out);
		j->filled[j->depth - 1] = true;
		newline(j);
	}
	if (key) {
		put_string(j, key);
		fputs(": ", j->out);
	}
}

static void open_level(struct json *j, const char *key, char open, char close)
{
	begin_item(j, key);
	fputc(open, j->out);
	j->bracket[j->depth] = close;
	j->filled[j->depth] = false;
	j->depth++;
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, '{', '}');
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, '[', ']');
}

void json_end(struct json *j)
{
	j->depth--;
	if (j->filled[j->depth])
		newline(j);
	fputc(j->bracket[j->depth], j->out);
	if (j->depth == 0)
		fputc('\n', j->out);
}

void json_string(struct json *j, const char *key, const char *text)
{
	begin_item(j, key);
	if (text)
		put_string(j, text);
	else
		fputs("null", j->out);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	begin_item(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	begin_item(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_real(struct json *j, const char *key, double value, int decimals)
{
	begin_item(j, key);
	fprintf(j->out, "%.*f", decimals, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_item(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_raw(struct json *j, const char *key, const char *text)
{
	begin_item(j, key);
	fprintf(j->out, "%.*s", text ? (int)strcspn(text, "\n") : 4, text ? text : "null");
}

void json_hex(struct json *j, const char *key, const uint8_t *bytes, size_t len)
{
	begin_item(j, key);
	fputc('"', j->out);
	for (size_t i = 0; i < len; i++)
		fprintf(j->out, "%02x", bytes[i]);
	fputc('"', j->out);
}
