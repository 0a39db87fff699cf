/* test_safetensors.c - the scan of a safetensors header: what is found, what is left out, what is refused.
 *
 * The cases of the format's own reader are here by meaning; where that one refuses a whole file, ours may keep the
 * rest of it (codec/safetensors.c says when). */
#include "codec/wfs_internal.h"
#include "test_util.h"

#include <errno.h>

enum { WINDOW = 1 << 16 }; /* the tokenizer's, json_scan.h */

/* A file in memory that ends in nothing: data_len bytes after the header exist only as a number. */
struct file {
	uint8_t *bytes; /* length field and header */
	size_t len;
	uint64_t file_len;
	uint64_t fail_from; /* reads that reach this offset fail */
	enum wfs_status fail_status;
	size_t nr_reads;
};

static enum wfs_status file_pread(void *ctx, void *buf, size_t len, uint64_t off)
{
	struct file *file = ctx;
	file->nr_reads++;
	CHECK(off <= file->len && len <= file->len - off); /* never beyond the header */
	if (off + len > file->fail_from) {
		errno = EREMOTEIO;
		return file->fail_status;
	}
	memcpy(buf, file->bytes + off, len);
	return WFS_OK;
}

static struct file file_new(const void *header, size_t header_len, uint64_t data_len)
{
	struct file file = {.len = 8 + header_len, .file_len = 8 + header_len + data_len, .fail_from = UINT64_MAX};
	file.bytes = malloc(file.len);
	CHECK(file.bytes);
	wfs_store64(file.bytes, header_len);
	memcpy(file.bytes + 8, header, header_len);
	return file;
}

static enum wfs_status file_scan(struct file *file, struct wfs_tensors **tensors_ret)
{
	struct wfs_error err = {0};
	enum wfs_status status = wfs_safetensors_scan(file_pread, file, file->file_len, tensors_ret, &err);
	if (status != WFS_OK)
		CHECK(err.status == status && err.reason && err.reason[0]);
	return status;
}

static enum wfs_status scan_bytes(const void *header, size_t header_len, uint64_t data_len,
				  struct wfs_tensors **tensors_ret)
{
	struct file file = file_new(header, header_len, data_len);
	enum wfs_status status = file_scan(&file, tensors_ret);
	free(file.bytes);
	return status;
}

static struct wfs_tensors *scan_ok(const char *header, uint64_t data_len)
{
	struct wfs_tensors *tensors = NULL;
	enum wfs_status status = scan_bytes(header, strlen(header), data_len, &tensors);
	CHECK_MSG(status == WFS_OK, "%s: %s", header, wfs_status_name(status));
	CHECK(tensors && tensors->data_off == 8 + strlen(header));
	return tensors;
}

static void scan_refused(const char *header)
{
	struct wfs_tensors *tensors = NULL;
	CHECK_MSG(scan_bytes(header, strlen(header), 16, &tensors) == WFS_NOT_CONTAINER, "%s", header);
	CHECK(!tensors);
}

static void scan_finds(const char *header, uint64_t data_len, size_t nr)
{
	struct wfs_tensors *tensors = scan_ok(header, data_len);
	CHECK_MSG(tensors->nr == nr, "%s: %zu", header, tensors->nr);
	wfs_tensors_free(tensors);
}

static void check_tensor(const struct wfs_tensors *tensors, size_t i, const char *name, const char *dtype,
			 uint64_t begin, uint64_t len, uint32_t nr_dims, const uint64_t *shape)
{
	CHECK(i < tensors->nr);
	const struct wfs_tensor *t = &tensors->tensor[i];
	CHECK_MSG(!strcmp(t->name, name), "%zu is \"%s\", not \"%s\"", i, t->name, name);
	CHECK(!strcmp(t->dtype, dtype));
	CHECK(t->raw_off == tensors->data_off + begin && t->raw_len == len);
	CHECK(t->nr_dims == nr_dims);
	for (uint32_t d = 0; d < nr_dims; d++)
		CHECK(t->shape[d] == shape[d]);
}

#define SHAPE(...)                                                                                                     \
	(uint32_t)(sizeof((uint64_t[]){__VA_ARGS__}) / 8), (uint64_t[])                                                \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
#define SCALAR 0, NULL

static void test_plain(void)
{
	struct wfs_tensors *t;

	t = scan_ok("{}", 0);
	CHECK(t->nr == 0);
	wfs_tensors_free(t);

	t = scan_ok("{\"test\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}", 16);
	CHECK(t->nr == 1);
	check_tensor(t, 0, "test", "I32", 0, 16, SHAPE(2, 2));
	wfs_tensors_free(t);

	t = scan_ok("{\"test\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4);
	check_tensor(t, 0, "test", "I32", 0, 4, SCALAR);
	wfs_tensors_free(t);

	t = scan_ok("{\"test\":{\"dtype\":\"I32\",\"shape\":[2,0],\"data_offsets\":[0,0]}}", 0);
	check_tensor(t, 0, "test", "I32", 0, 0, SHAPE(2, 0));
	wfs_tensors_free(t);

	/* Half bytes, then a word at an odd place. */
	t = scan_ok("{\"a\":{\"dtype\":\"F4\",\"shape\":[1,2],\"data_offsets\":[0,1]},"
		    "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[1,7]},"
		    "\"c\":{\"dtype\":\"F6_E2M3\",\"shape\":[1,3],\"data_offsets\":[7,9]},"
		    "\"d\":{\"dtype\":\"Q9_NEW\",\"shape\":[1],\"data_offsets\":[9,12]}}",
		    12);
	CHECK(t->nr == 4);
	check_tensor(t, 0, "a", "F4", 0, 1, SHAPE(1, 2));
	check_tensor(t, 1, "b", "BF16", 1, 6, SHAPE(3));
	check_tensor(t, 2, "c", "F6_E2M3", 7, 2, SHAPE(1, 3));
	check_tensor(t, 3, "d", "Q9_NEW", 9, 3, SHAPE(1));
	wfs_tensors_free(t);
	PASS("empty, scalar, zero-sized, half-byte, misaligned and unknown tensors");
}

static void test_order(void)
{
	struct wfs_tensors *t;

	/* By place, then length, then header order: zero-sized ones share a place, the last two a range and the name.
	 */
	t = scan_ok("{\"z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
		    "\"e2\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]},"
		    "\"e1\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[8,8]},"
		    "\"same\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
		    "\"same\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
		    100);
	CHECK(t->nr == 5);
	check_tensor(t, 0, "same", "U8", 0, 8, SHAPE(8));
	check_tensor(t, 1, "same", "I8", 0, 8, SHAPE(8));
	check_tensor(t, 2, "e2", "F32", 8, 0, SHAPE(0));
	check_tensor(t, 3, "e1", "F32", 8, 0, SHAPE(0, 3));
	check_tensor(t, 4, "z", "F32", 8, 4, SHAPE(1));
	wfs_tensors_free(t);

	/* Many tensors on one range, the attack on readers that trust the sum of the lengths. */
	t = scan_ok("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
		    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
		    "\"c\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[4,20]}}",
		    20);
	CHECK(t->nr == 3);
	check_tensor(t, 2, "c", "F32", 4, 16, SHAPE(2, 2));
	wfs_tensors_free(t);
	PASS("order is by place, length, header; overlaps and duplicate names are reported");
}

static void test_metadata(void)
{
	const char *tensor = "\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}";
	static const char *const metadata[] = {
		"null",	 "{}",	"{\"format\":\"pt\"}", "[]",
		"\"x\"", "1.5", "{\"a\":[{}]}",	       "{\"dtype\":\"F32\",\"data_offsets\":\"[0,4]\"}"};
	char header[256];
	for (size_t i = 0; i < WFS_ARRAY_LEN(metadata); i++) {
		snprintf(header, sizeof(header), "{\"__metadata__\":%s,%s}", metadata[i], tensor);
		scan_finds(header, 1, 1);
		snprintf(header, sizeof(header), "{%s,\"__metadata__\":%s}", tensor, metadata[i]);
		scan_finds(header, 1, 1);
	}
	scan_finds("{\"__metadata__\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, 1);
	PASS("metadata of any kind, and a tensor of that name");
}

/* Entries that make no tensor leave the others alone. */
static void test_left_out(void)
{
	static const char *const entry[] = {
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,17]}",  /* leaves the file */
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,17]}", /* begins at its end */
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[17,17]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}", /* reversed */
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[18446744073709551615,3]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,18446744073709551616]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999999999]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,4]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.0]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,[4]]}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"0\":4}}",
		"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":null}",
		"{\"dtype\":\"F32\",\"shape\":[1]}",
		"{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}",
		"{\"dtype\":[\"F32\"],\"shape\":[1],\"data_offsets\":[0,4]}",
		"{\"shape\":[1],\"data_offsets\":[0,4]}",
		"{\"dtype\\u0000\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}",
		"{}",
		"[0,4]",
		"true",
		"-0.5E+10",
	};
	char header[512];
	for (size_t i = 0; i < WFS_ARRAY_LEN(entry); i++) {
		snprintf(header, sizeof(header),
			 "{\"before\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},\"odd\":%s,"
			 "\"after\":{\"shape\":[3],\"data_offsets\":[10,16],\"dtype\":\"BF16\"}}",
			 entry[i]);
		struct wfs_tensors *t = scan_ok(header, 16);
		CHECK_MSG(t->nr == 2, "%s", entry[i]);
		check_tensor(t, 0, "before", "F16", 0, 4, SHAPE(2, 1));
		check_tensor(t, 1, "after", "BF16", 10, 6, SHAPE(3));
		wfs_tensors_free(t);
	}
	PASS("what makes no tensor is left out alone");
}

/* Lies that touch no range: reported as the header has them. */
static void test_as_they_are(void)
{
	struct wfs_tensors *t;

	t = scan_ok("{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808,18446744073709551615],"
		    "\"data_offsets\":[0,16]}}",
		    16);
	check_tensor(t, 0, "a", "F32", 0, 16, SHAPE(9223372036854775808u, UINT64_MAX));
	wfs_tensors_free(t);

	t = scan_ok("{\"a\":{\"dtype\":\"F32\",\"shape\":[\"x\"],\"data_offsets\":[0,16]},"
		    "\"b\":{\"dtype\":\"F32\",\"shape\":{\"dtype\":\"U8\"},\"extra\":[[{\"dtype\":1}]],"
		    "\"data_offsets\":[0,16]},"
		    "\"c\":{\"dtype\":\"F32\",\"data_offsets\":[0,16]}}",
		    16);
	check_tensor(t, 0, "a", "F32", 0, 16, SCALAR);
	check_tensor(t, 1, "b", "F32", 0, 16, SCALAR);
	check_tensor(t, 2, "c", "F32", 0, 16, SCALAR);
	wfs_tensors_free(t);

	/* The last one of a key that comes twice. */
	t = scan_ok("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F64\",\"shape\":[1,2,3],\"data_offsets\":[0,1],"
		    "\"shape\":[4,5],\"data_offsets\":[8,16]}}",
		    16);
	check_tensor(t, 0, "a", "F64", 8, 8, SHAPE(4, 5));
	wfs_tensors_free(t);

	/* Offsets far beyond 4 GiB. */
	t = scan_ok(
		"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1152921504606846975,1152921504606846976]}}",
		1152921504606846976u);
	check_tensor(t, 0, "a", "U8", 1152921504606846975u, 1, SHAPE(1));
	wfs_tensors_free(t);
	PASS("shapes and dtypes are reported as they are");
}

static void test_length_field(void)
{
	struct wfs_tensors *t = NULL;
	struct file file = file_new("{}", 2, 100);

	for (size_t len = 0; len < 8; len++) {
		file.file_len = len;
		CHECK(file_scan(&file, &t) == WFS_NOT_CONTAINER);
	}
	static const uint64_t lies[] = {0,	    1,		3 + 100,	100000001,	    1ull << 32,
					1ull << 63, UINT64_MAX, UINT64_MAX - 7, 0x0A0A0A0A0A0A0Aull};
	file.file_len = 8 + 2 + 100;
	for (size_t i = 0; i < WFS_ARRAY_LEN(lies); i++) {
		wfs_store64(file.bytes, lies[i]);
		file.len = lies[i] <= 1 ? 10 : 8; /* the others must be refused before anything else is read */
		CHECK_MSG(file_scan(&file, &t) == WFS_NOT_CONTAINER, "%llu", (unsigned long long)lies[i]);
	}
	/* Above the limit although the file is long enough. */
	wfs_store64(file.bytes, 100000001);
	file.file_len = UINT64_MAX;
	CHECK(file_scan(&file, &t) == WFS_NOT_CONTAINER);
	free(file.bytes);
	CHECK(!t);
	PASS("header lengths that lie");
}

static void test_white_space(void)
{
	const char *tensor = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
	char header[256];
	snprintf(header, sizeof(header), "    %s", tensor);
	scan_finds(header, 1, 1);
	snprintf(header, sizeof(header), "%s \n\t\r   ", tensor);
	scan_finds(header, 1, 1);
	scan_finds("\n{\t\"a\" : {\r\"dtype\" :\"U8\" , \"shape\" : [ 1 , 2 ] , \"data_offsets\"\n:\n[ 0 , 1 ] } } ", 1,
		   1);
	snprintf(header, sizeof(header), "%s\v", tensor);
	scan_refused(header);
	snprintf(header, sizeof(header), "\xEF\xBB\xBF%s", tensor);
	scan_refused(header);
	scan_refused("[]");
	scan_refused("null");
	scan_refused("not JSON");
	PASS("white space before, after and between; other JSON and other text refused");
}

/* Every kind of text across the border of the window that the tokenizer reads through. */
static void test_window_border(void)
{
	static const char text[] = "k\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\\u20AC\\uD83D\\uDE00\\n\xFF";
	static const char want[] = "k\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xE2\x82\xAC\xF0\x9F\x98\x80\n\xEF\xBF\xBD";
	char *header = malloc(3 * WINDOW);
	CHECK(header);
	for (size_t shift = 0; shift < 160; shift++) {
		size_t pad = WINDOW - 150 + shift;
		memset(header, ' ', pad);
		int n = sprintf(header + pad,
				"{\"%s\":{\"dtype\":\"F32\",\"shape\":[12345678901,true,2],\"x\":[null,false,1e5],"
				"\"shape\":[7,8],\"data_offsets\":[1234,5678]}}",
				text);
		struct wfs_tensors *t = NULL;
		CHECK(scan_bytes(header, pad + (size_t)n, 5678, &t) == WFS_OK);
		check_tensor(t, 0, want, "F32", 1234, 5678 - 1234, SHAPE(7, 8));
		wfs_tensors_free(t);
	}
	free(header);
	PASS("tokens across the window's border");
}

static void test_many(void)
{
	enum { NR = 100000 };
	char *header = malloc((size_t)NR * 128);
	size_t len = 0;
	CHECK(header);
	header[len++] = '{';
	for (size_t i = 0; i < NR; i++) { /* backwards, so that sorting has work */
		size_t at = NR - 1 - i;
		len += (size_t)sprintf(header + len,
				       "%s\"layer.%zu.weight\":{\"dtype\":\"BF16\",\"shape\":[1,%zu],"
				       "\"data_offsets\":[%zu,%zu]}",
				       i ? "," : "", i, i, at * 2, at * 2 + 2);
	}
	header[len++] = '}';
	struct file file = file_new(header, len, 2 * NR);
	struct wfs_tensors *t = NULL;
	CHECK(file_scan(&file, &t) == WFS_OK);
	CHECK(t->nr == NR);
	CHECK(file.nr_reads <= 2 + WFS_CEIL_DIV(len, WINDOW / 2)); /* each byte is read once */
	for (size_t at = 0; at < NR; at++) {
		char name[64];
		sprintf(name, "layer.%zu.weight", NR - 1 - at);
		check_tensor(t, at, name, "BF16", at * 2, 2, SHAPE(1, NR - 1 - at));
	}
	wfs_tensors_free(t);
	free(file.bytes);
	free(header);
	PASS("%d tensors", NR);
}

/* One name, one shape and one metadata text of 25 MB, as large as real headers come. */
static void test_big_header(void)
{
	size_t len = 25 << 20;
	char *header = malloc(len + 256);
	struct wfs_tensors *t = NULL;
	CHECK(header);

	int head = sprintf(header, "{\"__metadata__\":{\"x\":\"");
	memset(header + head, 'y', len);
	int tail = sprintf(header + head + len, "\"},\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}");
	CHECK(scan_bytes(header, (size_t)head + len + (size_t)tail, 1, &t) == WFS_OK);
	CHECK(t->nr == 1);
	wfs_tensors_free(t);

	head = sprintf(header, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[0");
	for (size_t i = 0; i < len; i += 2)
		memcpy(header + head + i, ",1", 2);
	tail = sprintf(header + head + len, "]}}");
	CHECK(scan_bytes(header, (size_t)head + len + (size_t)tail, 1, &t) == WFS_OK);
	CHECK(t->tensor[0].nr_dims == 1 + len / 2 && t->tensor[0].shape[len / 2] == 1);
	wfs_tensors_free(t);
	free(header);
	PASS("headers of 25 MB");
}

static void test_read_failure(void)
{
	size_t pad = 3 * WINDOW;
	char *header = malloc(pad + 2);
	struct wfs_tensors *t = NULL;
	struct wfs_error err;
	static const enum wfs_status statuses[] = {WFS_IO, WFS_BAD_DATA, WFS_CHANGED};
	CHECK(header);
	memset(header, ' ', pad);
	memcpy(header + pad, "{}", 2);
	struct file file = file_new(header, pad + 2, 0);
	for (uint64_t from = 0; from < file.len; from += from < 16 ? 1 : 4001) {
		for (size_t i = 0; i < WFS_ARRAY_LEN(statuses); i++) {
			file.fail_from = from;
			file.fail_status = statuses[i];
			CHECK(wfs_safetensors_scan(file_pread, &file, file.file_len, &t, &err) == statuses[i]);
			CHECK(err.status == statuses[i] && err.sys_errno == (statuses[i] == WFS_IO ? EREMOTEIO : 0));
			CHECK(wfs_safetensors_scan(file_pread, &file, file.file_len, &t, NULL) == statuses[i]);
		}
	}
	CHECK(!t);
	free(file.bytes);
	free(header);
	PASS("failing reads keep their status");
}

/* Cut and changed headers: any answer but a crash, and whatever is found lies inside the file. */
static void test_damage(void)
{
	static const char good[] =
		"{\"__metadata__\":{\"f\":\"p\\u00e9\"},\"a\":{\"dtype\":\"BF16\",\"shape\":[2,2],"
		"\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}";
	uint64_t seed = 20;
	char header[sizeof(good)];
	struct wfs_tensors *t = NULL;
	for (size_t len = 0; len < sizeof(good) - 1; len++)
		CHECK(scan_bytes(good, len, 12, &t) == WFS_NOT_CONTAINER);
	for (int round = 0; round < 200000; round++) {
		memcpy(header, good, sizeof(good));
		for (uint64_t n = 1 + test_rand_below(&seed, 3); n; n--)
			header[test_rand_below(&seed, sizeof(good) - 1)] = (char)test_rand_below(&seed, 256);
		if (scan_bytes(header, sizeof(good) - 1, 12, &t) != WFS_OK)
			continue;
		for (size_t i = 0; i < t->nr; i++) {
			CHECK(t->tensor[i].raw_off >= t->data_off);
			CHECK(t->tensor[i].raw_off + t->tensor[i].raw_len <= t->data_off + 12);
			CHECK(!i || t->tensor[i - 1].raw_off <= t->tensor[i].raw_off);
			CHECK(strlen(t->tensor[i].name) < 3 * sizeof(good) && t->tensor[i].dtype);
		}
		wfs_tensors_free(t);
	}
	wfs_tensors_free(NULL);
	PASS("cut and damaged headers");
}

static void test_dtype_bits(void)
{
	static const struct {
		const char *dtype;
		unsigned bits;
	} want[] = {{"BOOL", 8},    {"F4", 4},		{"F6_E2M3", 6}, {"F6_E3M2", 6},	    {"U8", 8},
		    {"I8", 8},	    {"F8_E5M2", 8},	{"F8_E4M3", 8}, {"F8_E4M3FN", 8},   {"F8_E8M0FNU", 8},
		    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"I16", 16},	{"F8_E5M2FNUZ", 8}, {"U16", 16},
		    {"F16", 16},    {"BF16", 16},	{"I32", 32},	{"U32", 32},	    {"F32", 32},
		    {"C64", 64},    {"F64", 64},	{"I64", 64},	{"U64", 64},	    {"", 0},
		    {"bf16", 0},    {"F", 0},		{"F322", 0},	{"F128", 0}};
	for (size_t i = 0; i < WFS_ARRAY_LEN(want); i++)
		CHECK_MSG(wfs_dtype_bits(want[i].dtype) == want[i].bits, "%s", want[i].dtype);
	PASS("bits of every dtype");
}

int main(void)
{
	test_plain();
	test_order();
	test_metadata();
	test_left_out();
	test_as_they_are();
	test_length_field();
	test_white_space();
	test_window_border();
	test_many();
	test_big_header();
	test_read_failure();
	test_damage();
	test_dtype_bits();
	return 0;
}
