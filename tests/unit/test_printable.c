/* test_printable.c - no control character of ASCII or of C1 is left of a text, and all else stays as it was. */
#include "test_util.h"

#include "printable.h"

#include <string.h>

static void check(const char *text, const char *want, bool with_lines)
{
	char buf[64];
	size_t len = strlen(text);

	memcpy(buf, text, len + 1);
	wfs_mask_controls(buf, len, with_lines);
	CHECK_MSG(!strcmp(buf, want), "%s, not %s", buf, want);
}

/* Every character of two bytes, those of C1 among them. */
static void check_two_bytes(void)
{
	for (unsigned c = 0x80; c < 0x800; c++) {
		const char text[] = {'a', (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)), 'z', '\0'};

		check(text, c < 0xa0 ? "a??z" : text, false);
	}
}

int main(void)
{
	for (char c = 1; c < 0x20; c++) {
		const char text[] = {'a', c, 'z', '\0'};

		check(text, "a?z", false);
		check(text, c == '\n' || c == '\t' ? text : "a?z", true);
	}
	check("\x7f", "?", true);
	check_two_bytes();
	check("", "", false);
	check("\xc2", "\xc2", false); /* alone, no terminal takes it for anything */
	check("\xc2\xc2\x9b", "\xc2??", false);
	check("\xe2\x82\xac \xf0\x9f\x98\x80 \xff", "\xe2\x82\xac \xf0\x9f\x98\x80 \xff", false);
	PASS("control characters are masked, and nothing else");
	return 0;
}
