/* classes.c - which split each kind of word gets, and which kind a dtype is. */
#include "classes.h"

struct wfs_split wfs_class_split(enum wfs_class class)
{
	/* Of floats the exponent and one mantissa bit are coded and the sign is rotated to the rest; of integers the
	 * top bits are coded as they are: measured best for every type (EVALUATION.md). */
	static const struct {
		u8 word, rot, field;
	} split[WFS_NR_CLASSES] = {
		[WFS_CLASS_NONE] = {1, 0, 1}, [WFS_CLASS_BF16] = {2, 1, 9},  [WFS_CLASS_F16] = {2, 1, 6},
		[WFS_CLASS_F32] = {4, 1, 9},  [WFS_CLASS_F64] = {8, 1, 12},  [WFS_CLASS_E4M3] = {1, 1, 5},
		[WFS_CLASS_E5M2] = {1, 1, 6}, [WFS_CLASS_I8] = {1, 0, 5},    [WFS_CLASS_I16] = {2, 0, 5},
		[WFS_CLASS_I32] = {4, 0, 12}, [WFS_CLASS_BYTES] = {1, 0, 8},
	};
	class = WFS_MIN(class, WFS_CLASS_BYTES); /* records, too, are bytes as a whole */
	return wfs_split_make(split[class].word, split[class].rot, split[class].field);
}

const struct wfs_records *wfs_class_records(enum wfs_class class)
{
	/* Each byte of a scale, packed scales and codes are parts of their own (ggml-common.h of ggml). */
	static const struct wfs_records records[WFS_NR_RECORDS] = {
		[WFS_CLASS_MXFP4 - WFS_FIRST_RECORDS] = {17, {1}},
		[WFS_CLASS_Q4_0 - WFS_FIRST_RECORDS] = {18, {1, 2}},
		[WFS_CLASS_Q4_1 - WFS_FIRST_RECORDS] = {20, {1, 2, 3, 4}},
		[WFS_CLASS_Q5_0 - WFS_FIRST_RECORDS] = {22, {1, 2, 6}},
		[WFS_CLASS_Q5_1 - WFS_FIRST_RECORDS] = {24, {1, 2, 3, 4, 8}},
		[WFS_CLASS_Q8_0 - WFS_FIRST_RECORDS] = {34, {1, 2}},
		[WFS_CLASS_NVFP4 - WFS_FIRST_RECORDS] = {36, {4}},
		[WFS_CLASS_Q4_K - WFS_FIRST_RECORDS] = {144, {1, 2, 3, 4, 8, 12, 16}},
	};

	return class < WFS_FIRST_RECORDS ? NULL : &records[class - WFS_FIRST_RECORDS];
}

unsigned wfs_class_step(enum wfs_class class)
{
	const struct wfs_records *records = wfs_class_records(class);

	return records ? records->bytes : wfs_class_split(class).word;
}

enum wfs_class wfs_class_of_dtype(const char *dtype)
{
	static const struct {
		const char *dtype;
		enum wfs_class class;
	} known[] = {
		{"BF16", WFS_CLASS_BF16},	 {"F16", WFS_CLASS_F16},	  {"F32", WFS_CLASS_F32},
		{"C64", WFS_CLASS_F32},		 {"F64", WFS_CLASS_F64},	  {"F8_E4M3", WFS_CLASS_E4M3},
		{"F8_E4M3FN", WFS_CLASS_E4M3},	 {"F8_E4M3FNUZ", WFS_CLASS_E4M3}, {"F8_E5M2", WFS_CLASS_E5M2},
		{"F8_E5M2FNUZ", WFS_CLASS_E5M2},
	};
	for (size_t i = 0; i < WFS_ARRAY_LEN(known); i++)
		if (!strcmp(dtype, known[i].dtype))
			return known[i].class;
	return WFS_CLASS_NONE;
}
