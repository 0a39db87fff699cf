/* safetensors.c - where the tensors of a safetensors file lie: the public scan of wfs.h.
 *
 * What it finds decides only how well a file compresses, so it is as tolerant as a useful answer allows. Refused is a
 * file whose length field or JSON is broken. An entry that makes no tensor (no dtype, not two offsets, a range that is
 * reversed or leaves the file) is left out, the others stay. Everything else is reported as the header has it: unknown
 * dtypes, shapes that do not match the range, holes, overlaps, any order, a name that comes twice. "__metadata__" needs
 * no rule of its own: a map of strings makes no tensor, and a tensor of that name (huggingface/safetensors#849) does.
 */
#include "json_scan.h"

#include <errno.h>
#include <stdlib.h>

enum { MAX_HEADER = 100000000 }; /* bytes, the limit of the format's own reader; keeps all text offsets in 32 bits */

/* A tensor while text and dims may still move: 32 bytes for an entry that takes at least 40 bytes of header. */
struct record {
	u64 begin, len; /* begin: after the header */
	u32 name_off, dtype_off, dims_off, nr_dims;
};

struct scan {
	struct record *record;
	size_t nr_records, record_room;
	u64 *dims;
	size_t nr_dims, dims_room;
	u64 data_len; /* bytes after the header */
	struct wfs_json json;
};

struct tensor_list {
	struct wfs_tensors list; /* first: the caller's pointer is this object's */
	char *text;
	u64 *dims;
	struct wfs_tensor tensor[];
};

/* Room for one more element; false: json.status says why. */
static bool grow(struct scan *scan, void **array, size_t nr, size_t *room, size_t elem_bytes)
{
	if (nr < *room)
		return true;
	size_t more = *room ? *room + *room / 2 : 64;
	void *bigger = realloc(*array, more * elem_bytes);
	if (!bigger) {
		scan->json.status = WFS_NO_MEMORY;
		scan->json.reason = "out of memory";
		return false;
	}
	*array = bigger;
	*room = more;
	return true;
}

/* An array of unsigned integers, or anything else. Appends its numbers to dims; *valid_ret: it is one. */
static bool scan_numbers(struct scan *scan, bool *valid_ret)
{
	struct wfs_json_token token;
	*valid_ret = false;
	if (wfs_json_next(&scan->json, &token) != WFS_JSON_ARRAY)
		return wfs_json_skip(&scan->json, &token);
	*valid_ret = true;
	while (wfs_json_next(&scan->json, &token) != WFS_JSON_ARRAY_END) {
		if (token.kind != WFS_JSON_NUMBER) {
			*valid_ret = false;
			if (!wfs_json_skip(&scan->json, &token))
				return false;
			continue;
		}
		if (!grow(scan, (void **)&scan->dims, scan->nr_dims, &scan->dims_room, sizeof(*scan->dims)))
			return false;
		scan->dims[scan->nr_dims++] = token.number;
	}
	return true;
}

static bool scan_shape(struct scan *scan, struct record *record)
{
	bool valid;
	scan->nr_dims = record->dims_off; /* of a key that comes twice the last one counts */
	if (!scan_numbers(scan, &valid))
		return false;
	if (!valid)
		scan->nr_dims = record->dims_off;
	record->nr_dims = (u32)(scan->nr_dims - record->dims_off);
	return true;
}

static bool scan_offsets(struct scan *scan, struct record *record, bool *valid_ret)
{
	size_t mark = scan->nr_dims;
	if (!scan_numbers(scan, valid_ret))
		return false;
	*valid_ret = *valid_ret && scan->nr_dims - mark == 2;
	if (*valid_ret) {
		const u64 *range = scan->dims + mark;
		*valid_ret = range[0] <= range[1] && range[1] <= scan->data_len;
		record->begin = range[0];
		record->len = *valid_ret ? range[1] - range[0] : 0;
	}
	scan->nr_dims = mark;
	return true;
}

/* The object of one top-level name. */
static bool scan_entry(struct scan *scan, u32 name_off)
{
	struct wfs_json *json = &scan->json;
	struct wfs_json_token token;
	struct record record = {.name_off = name_off, .dims_off = (u32)scan->nr_dims};
	bool has_dtype = false, has_offsets = false;

	while (wfs_json_next(json, &token) == WFS_JSON_KEY) {
		const char *key = json->text + token.text_off;
		json->text_len = token.text_off; /* the key's bytes stay readable until the next token */
		if (!strcmp(key, "shape")) {
			if (!scan_shape(scan, &record))
				return false;
		} else if (!strcmp(key, "data_offsets")) {
			if (!scan_offsets(scan, &record, &has_offsets))
				return false;
		} else {
			bool is_dtype = !strcmp(key, "dtype");
			size_t mark = json->text_len;
			wfs_json_next(json, &token);
			if (!wfs_json_skip(json, &token))
				return false;
			if (!is_dtype) {
				json->text_len = mark;
				continue;
			}
			has_dtype = token.kind == WFS_JSON_STRING;
			record.dtype_off = (u32)token.text_off;
		}
	}
	if (token.kind == WFS_JSON_FAIL)
		return false;
	if (!has_dtype || !has_offsets) {
		json->text_len = name_off;
		scan->nr_dims = record.dims_off;
		return true;
	}
	if (!grow(scan, (void **)&scan->record, scan->nr_records, &scan->record_room, sizeof(record)))
		return false;
	scan->record[scan->nr_records++] = record;
	return true;
}

static bool scan_header(struct scan *scan)
{
	struct wfs_json *json = &scan->json;
	struct wfs_json_token key, value;

	if (wfs_json_next(json, &key) != WFS_JSON_OBJECT) {
		if (key.kind != WFS_JSON_FAIL) {
			json->status = WFS_NOT_CONTAINER;
			json->reason = "its header is not a JSON object";
		}
		return false;
	}
	while (wfs_json_next(json, &key) == WFS_JSON_KEY) {
		if (wfs_json_next(json, &value) == WFS_JSON_OBJECT) {
			if (!scan_entry(scan, (u32)key.text_off))
				return false;
			continue;
		}
		if (!wfs_json_skip(json, &value))
			return false;
		json->text_len = key.text_off;
	}
	return key.kind == WFS_JSON_OBJECT_END && wfs_json_next(json, &key) == WFS_JSON_END;
}

static int compare_records(const void *a_void, const void *b_void)
{
	const struct record *a = a_void, *b = b_void;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return (a->name_off > b->name_off) - (a->name_off < b->name_off); /* ascends in header order */
}

/* Moves text and dims out of scan. */
static struct wfs_tensors *make_list(struct scan *scan, u64 data_off)
{
	struct tensor_list *list = malloc(sizeof(*list) + scan->nr_records * sizeof(list->tensor[0]));
	if (!list)
		return NULL;
	if (scan->nr_records)
		qsort(scan->record, scan->nr_records, sizeof(*scan->record), compare_records);
	for (size_t i = 0; i < scan->nr_records; i++) {
		const struct record *record = &scan->record[i];
		list->tensor[i] = (struct wfs_tensor){
			.name = scan->json.text + record->name_off,
			.dtype = scan->json.text + record->dtype_off,
			.raw_off = data_off + record->begin,
			.raw_len = record->len,
			.shape = record->nr_dims ? scan->dims + record->dims_off : NULL,
			.nr_dims = record->nr_dims,
		};
	}
	list->list = (struct wfs_tensors){scan->nr_records, list->tensor, data_off};
	list->text = scan->json.text;
	list->dims = scan->dims;
	scan->json.text = NULL;
	scan->dims = NULL;
	return &list->list;
}

static enum wfs_status fail_scan(struct wfs_error *err, enum wfs_status status, const char *reason)
{
	return status == WFS_IO ? wfs_fail_io(err, errno, reason) : wfs_fail(err, status, reason);
}

enum wfs_status wfs_safetensors_scan(wfs_pread_fn pread_fn, void *ctx, uint64_t file_len,
				     struct wfs_tensors **tensors_ret, struct wfs_error *err)
{
	enum wfs_status status;
	struct scan *scan = NULL;
	u8 length[8];

	if (file_len < sizeof(length))
		return wfs_fail(err, WFS_NOT_CONTAINER, "too short for a safetensors file");
	status = pread_fn(ctx, length, sizeof(length), 0);
	if (status != WFS_OK)
		return fail_scan(err, status, "cannot read its header");
	u64 header_len = wfs_load64(length);
	if (header_len > MAX_HEADER || header_len > file_len - sizeof(length))
		return wfs_fail(err, WFS_NOT_CONTAINER, "not the length of a safetensors header");

	scan = calloc(1, sizeof(*scan));
	if (!scan)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory");
	u64 data_off = sizeof(length) + header_len;
	scan->data_len = file_len - data_off;
	wfs_json_init(&scan->json, pread_fn, ctx, sizeof(length), header_len);
	if (scan_header(scan)) {
		struct wfs_tensors *tensors = make_list(scan, data_off);
		status = tensors ? WFS_OK : wfs_fail(err, WFS_NO_MEMORY, "out of memory");
		if (tensors)
			*tensors_ret = tensors;
	} else {
		status = fail_scan(err, scan->json.status, scan->json.reason);
	}
	wfs_json_destroy(&scan->json);
	free(scan->record);
	free(scan->dims);
	free(scan);
	return status;
}

void wfs_tensors_free(struct wfs_tensors *tensors)
{
	struct tensor_list *list = (struct tensor_list *)tensors;
	if (!list)
		return;
	free(list->text);
	free(list->dims);
	free(list);
}

unsigned wfs_dtype_bits(const char *dtype)
{
	static const struct {
		const char *name;
		unsigned bits;
	} known[] = {
		{"BOOL", 8},	    {"F4", 4},	    {"F6_E2M3", 6},    {"F6_E3M2", 6},	   {"U8", 8},
		{"I8", 8},	    {"F8_E4M3", 8}, {"F8_E4M3FN", 8},  {"F8_E4M3FNUZ", 8}, {"F8_E5M2", 8},
		{"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"F8_E8M0FNU", 8}, {"I16", 16},	   {"U16", 16},
		{"F16", 16},	    {"BF16", 16},   {"I32", 32},       {"U32", 32},	   {"F32", 32},
		{"I64", 64},	    {"U64", 64},    {"F64", 64},       {"C64", 64},
	};
	for (size_t i = 0; i < WFS_ARRAY_LEN(known); i++)
		if (!strcmp(known[i].name, dtype))
			return known[i].bits;
	return 0;
}
