/* classes.h - kinds of words, and how the words of each kind are split. Private. */
#ifndef WFS_CLASSES_H
#define WFS_CLASSES_H

#include "split.h"

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
	WFS_NR_CLASSES,
};
struct wfs_split wfs_class_split(enum wfs_class class);
/* The class of a safetensors dtype. */
enum wfs_class wfs_class_of_dtype(const char *dtype);

#endif
