/* estimate_dtype.c - the dtypes of safetensors files, as words with fields. */
#include "estimate.h"

#include <string.h>

const struct dtype dtypes[NR_DTYPES] = {
	{"BF16", 2, 8, 7, true},	{"F16", 2, 5, 10, false},	 {"F32", 4, 8, 23, true},
	{"F64", 8, 11, 52, false},	{"C64", 4, 8, 23, true}, /* two F32 */
	{"F8_E4M3", 1, 4, 3, false},	{"F8_E4M3FN", 1, 4, 3, false},	 {"F8_E4M3FNUZ", 1, 4, 3, false},
	{"F8_E5M2", 1, 5, 2, false},	{"F8_E5M2FNUZ", 1, 5, 2, false}, {"F8_E8M0", 1, 8, 0, false},
	{"F8_E8M0FNU", 1, 8, 0, false}, {"F4", 1, 0, 0, false},		 {"F6_E2M3", 1, 0, 0, false},
	{"F6_E3M2", 1, 0, 0, false},	{"BOOL", 1, 0, 0, false},	 {"I8", 1, 0, 0, false},
	{"U8", 1, 0, 0, false},		{"I16", 2, 0, 0, false},	 {"U16", 2, 0, 0, false},
	{"I32", 4, 0, 0, false},	{"U32", 4, 0, 0, false},	 {"I64", 8, 0, 0, false},
	{"U64", 8, 0, 0, false},
};

int dtype_index(const char *name)
{
	for (int i = 0; i < NR_DTYPES; i++)
		if (!strcmp(dtypes[i].name, name))
			return i;
	return -1;
}
