/* classes.h - kinds of words, and how the words of each kind are split. Private. */
#ifndef WFS_CLASSES_H
#define WFS_CLASSES_H

#include "records.h"

/* Words of no class are left to LZ4. */
enum wfs_class {
	WFS_CLASS_NONE,
	WFS_CLASS_BF16,
	WFS_CLASS_F16,
	WFS_CLASS_F32,
	WFS_CLASS_F64,
	WFS_CLASS_E4M3,
	WFS_CLASS_E5M2,
	WFS_CLASS_I8,
	WFS_CLASS_I16,
	WFS_CLASS_I32,
	WFS_CLASS_BYTES, /* without parts: for the wide coding alone */
	/* blocks of ggml, by the names that its formats have there; IQ4_NL is cut as Q4_0 is */
	WFS_CLASS_MXFP4,
	WFS_CLASS_Q4_0,
	WFS_CLASS_Q4_1,
	WFS_CLASS_Q5_0,
	WFS_CLASS_Q5_1,
	WFS_CLASS_Q8_0,
	WFS_CLASS_NVFP4,
	WFS_CLASS_Q4_K,
	WFS_NR_CLASSES,
	WFS_FIRST_RECORDS = WFS_CLASS_MXFP4,
	WFS_NR_RECORDS = WFS_NR_CLASSES - WFS_FIRST_RECORDS,
};
/* Of records: of their bytes. */
struct wfs_split wfs_class_split(enum wfs_class class);
/* NULL: not a class of records. */
const struct wfs_records *wfs_class_records(enum wfs_class class);
/* Bytes of a word or a record: what begins is found again so many bytes later. */
unsigned wfs_class_step(enum wfs_class class);
/* The class of a safetensors dtype. */
enum wfs_class wfs_class_of_dtype(const char *dtype);

#endif
