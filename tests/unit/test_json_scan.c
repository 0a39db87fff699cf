/* test_json_scan.c - the JSON tokenizer: what it takes, what it refuses, and what becomes of strings. */
#include "codec/json_scan.h"
#include "test_util.h"

struct text {
	const char *bytes;
	size_t len;
};

static enum wfs_status text_pread(void *ctx, void *buf, size_t len, uint64_t off)
{
	const struct text *text = ctx;
	CHECK(off <= text->len && len <= text->len - off);
	memcpy(buf, text->bytes + off, len);
	return WFS_OK;
}

/* All tokens of a text as one line: { } [ ], k"key", "string", numbers, ? for other scalars; "!" last: refused. Every
 * container is read in full, or skipped as one _ when `skip` is set (except the outermost). */
static void render(const char *bytes, size_t len, bool skip, char *out, size_t out_bytes)
{
	struct text text = {bytes, len};
	struct wfs_json *json = malloc(sizeof(*json));
	struct wfs_json_token token;
	size_t n = 0;
	CHECK(json);
	wfs_json_init(json, text_pread, &text, 0, len);
	out[0] = 0;
	while (wfs_json_next(json, &token) != WFS_JSON_END && token.kind != WFS_JSON_FAIL) {
		const char *string = json->text ? json->text + token.text_off : "";
		bool opens = token.kind == WFS_JSON_OBJECT || token.kind == WFS_JSON_ARRAY;
		if (skip && opens && json->depth > 1) {
			size_t mark = json->text_len;
			bool skipped = wfs_json_skip(json, &token);
			CHECK(json->text_len == mark || !skipped);
			n += (size_t)snprintf(out + n, out_bytes - n, skipped ? "_" : "");
		} else if (token.kind == WFS_JSON_KEY || token.kind == WFS_JSON_STRING) {
			CHECK(json->text_len == token.text_off + strlen(string) + 1); /* no NUL inside */
			n += (size_t)snprintf(out + n, out_bytes - n, "%s\"%s\"", token.kind == WFS_JSON_KEY ? "k" : "",
					      string);
		} else if (token.kind == WFS_JSON_NUMBER) {
			n += (size_t)snprintf(out + n, out_bytes - n, "%llu ", (unsigned long long)token.number);
		} else {
			n += (size_t)snprintf(out + n, out_bytes - n, "%c", "!.{}[]..#?"[token.kind]);
		}
		CHECK(n < out_bytes);
	}
	if (token.kind == WFS_JSON_FAIL) {
		CHECK(json->status == WFS_NOT_CONTAINER && json->reason);
		CHECK(wfs_json_next(json, &token) == WFS_JSON_FAIL); /* for good */
		snprintf(out + n, out_bytes - n, "!");
	}
	wfs_json_destroy(json);
	free(json);
}

static void check_tokens(const char *text, const char *want)
{
	char got[4096];
	render(text, strlen(text), false, got, sizeof(got));
	CHECK_MSG(!strcmp(got, want), "%s gives %s, not %s", text, got, want);
}

static void check_refused(const char *text, size_t len)
{
	char got[8192];
	for (int skip = 0; skip < 2; skip++) {
		render(text, len, skip, got, sizeof(got));
		CHECK_MSG(strchr(got, '!'), "%s gives %s", text, got);
	}
}

static void test_values(void)
{
	check_tokens("{}", "{}");
	check_tokens("[]", "[]");
	check_tokens(" \t\r\n[ \t\r\n] \t\r\n", "[]");
	check_tokens("null", "?");
	check_tokens("\"a\"", "\"a\"");
	check_tokens("17", "17 ");
	check_tokens("[0,7,18446744073709551615]", "[0 7 18446744073709551615 ]");
	check_tokens("[18446744073709551616,99999999999999999999999]", "[??]");
	check_tokens("[-0,-1,0.5,1e9,1E-2,1.25e+10,true,false,null]", "[?????????]");
	check_tokens("{\"a\":[{},[],[[1]],{\"b\":{}}],\"c\":\"d\"}", "{k\"a\"[{}[][[1 ]]{k\"b\"{}}]k\"c\"\"d\"}");
	check_tokens("{ \"a\" : 1 , \"a\" : 2 }", "{k\"a\"1 k\"a\"2 }");

	char got[256];
	static const char nested[] = "{\"a\":[1,{\"x\":[\"y\"]}],\"b\":{\"z\":{}},\"c\":3}";
	render(nested, strlen(nested), true, got, sizeof(got));
	CHECK(!strcmp(got, "{k\"a\"_k\"b\"_k\"c\"3 }"));
	PASS("values, white space, numbers, skipping");
}

static void test_refusals(void)
{
	/* A space parts the cases, so none has one inside. */
	static const char bad[] =
		"x { } [ ] {}} {}{} [][] {}, {,} {\"a\"} {\"a\":} {\"a\":1,} {\"a\"1} {\"a\":1\"b\":2} [1,] [,1] [1} "
		"{]} "
		"[1\n2] [\"a\"\"b\"] {\"a\":1:2} {\"a\",1} [1:2] [01] [00] [-] [+1] [1.] [.5] [1e] [1e+] [0x1] [-01] "
		"[--1] [NaN] "
		"[Infinity] [tru] [nul] [True] [nullx] {a:1} {'a':1} {1:1} {null:1} {[]:1} [\"] [\"\\x\"] "
		"[\"\\u12G4\"] "
		"[\"\\u123\"] [\"\\\"] [\"\n\"] [\"\t\"] [\"\\'\"] []/**/ [\"\\ [\"\\u [\"\\ud800\\u12\"] - 1. \"a tr";
	char copy[sizeof(bad)], *save = NULL;
	memcpy(copy, bad, sizeof(bad));
	for (char *text = strtok_r(copy, " ", &save); text; text = strtok_r(NULL, " ", &save))
		check_refused(text, strlen(text));
	check_refused("", 0);
	check_refused(" ", 1);
	check_refused("[]\0", 3);
	check_refused("[\"\0\"]", 5);
	check_refused("[\0]", 3);
	check_refused("\xEF\xBB\xBF[]", 5);
	check_refused("[]\v", 3);
	PASS("what is not JSON");
}

static void test_nesting(void)
{
	char text[1024];
	for (size_t depth = 1; depth <= 2 * WFS_JSON_DEPTH; depth++) {
		for (int object = 0; object < 2; object++) {
			size_t n = 0;
			for (size_t i = 0; i < depth; i++)
				n += (size_t)sprintf(text + n, "%s", object ? "{\"\":" : "[");
			text[n++] = '0';
			memset(text + n, object ? '}' : ']', depth);
			n += depth;
			text[n] = 0;
			char got[1024];
			render(text, n, false, got, sizeof(got));
			CHECK(!strchr(got, '!') == (depth <= WFS_JSON_DEPTH));
			/* One end too many, one of the wrong kind. */
			text[n] = object ? '}' : ']';
			check_refused(text, n + 1);
			text[n - 1] = object ? ']' : '}';
			check_refused(text, n);
		}
	}
	size_t len = 1 << 20;
	char *deep = malloc(len);
	CHECK(deep);
	memset(deep, '[', len);
	check_refused(deep, len);
	free(deep);
	PASS("nesting up to %d levels", WFS_JSON_DEPTH);
}

static void check_string(const char *json, const char *want)
{
	char text[256], tokens[256];
	snprintf(text, sizeof(text), "\"%s\"", json);
	snprintf(tokens, sizeof(tokens), "\"%s\"", want);
	check_tokens(text, tokens);
}

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

static void test_strings(void)
{
	check_string("", "");
	check_string("a.b/c d", "a.b/c d");
	check_string("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t");
	check_string("\\u0041\\u00e9\\u20AC\\uD83D\\uDE00", "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	check_string("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	check_string("\x7F\xDF\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF", "\x7F\xDF\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF");
	/* Lone surrogates, an escaped NUL. */
	check_string("a\\ud83d.", "a" BAD ".");
	check_string("\\ude00\\ud83d", BAD BAD);
	check_string("\\ud83d\\u0041", BAD "A");
	check_string("\\ud83d\\ud83d\\ude00", BAD "\xF0\x9F\x98\x80");
	check_string("x\\u0000y", "x" BAD "y");
	/* Each byte that is not UTF-8: stray, overlong, surrogate, too large, cut. */
	check_string("\x80", BAD);
	check_string("\xC0\x80", BAD BAD);
	check_string("\xE0\x80\x80", BAD BAD BAD);
	check_string("\xED\xA0\x80", BAD BAD BAD);
	check_string("\xF0\x80\x80\x80", BAD BAD BAD BAD);
	check_string("\xF4\x90\x80\x80", BAD BAD BAD BAD);
	check_string("\xFF\xF5", BAD BAD);
	check_string("\xE2\x82z", BAD BAD "z");
	check_string("\xC3", BAD);
	PASS("strings: escapes, surrogates, UTF-8 and what is not");
}

int main(void)
{
	test_values();
	test_refusals();
	test_nesting();
	test_strings();
	return 0;
}
