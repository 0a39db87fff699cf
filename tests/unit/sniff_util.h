/* sniff_util.h - words of every class for test_sniff.c and test_plan_sniff.c, distributed like those of models. */
#ifndef SNIFF_UTIL_H
#define SNIFF_UTIL_H

#include "encode_util.h"

#include "classes.h"

/* About normal, mean 0, standard deviation 37,837 = 65536 / sqrt(3). */
static inline int test_normal(uint64_t *seed)
{
	uint64_t r = test_rand(seed);

	return (int)((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48)) - 2 * 0xffff;
}

/* A normal number as a float: sign, exponent (the largest is `top`), mantissa. */
static inline u64 test_float(unsigned exponent_bits, unsigned mantissa_bits, unsigned top, uint64_t *seed)
{
	int value = test_normal(seed);
	u64 size = (u64)(value < 0 ? -value : value) << 20 | (test_rand(seed) & 0xfffff);
	unsigned log2 = 63 - (unsigned)__builtin_clzll(size | 1), drop = 36 - log2;
	u64 mantissa = size << (63 - log2) << 1 >> (64 - mantissa_bits), exponent = top > drop ? top - drop : 0;

	if (mantissa_bits > 36)
		mantissa ^= test_rand(seed) & 0xffff;
	return (u64)(value < 0) << (exponent_bits + mantissa_bits) | exponent << mantissa_bits | mantissa;
}

/* Integers are scaled so that they use their range as quantised weights do; bytes are two codes of 4 bits. */
static inline u64 test_word(enum wfs_class class, uint64_t *seed)
{
	switch (class) {
	case WFS_CLASS_BF16:
		return test_float(8, 7, 124, seed);
	case WFS_CLASS_F16:
		return test_float(5, 10, 12, seed);
	case WFS_CLASS_F32:
		return test_float(8, 23, 124, seed);
	case WFS_CLASS_F64:
		return test_float(11, 52, 1020, seed);
	case WFS_CLASS_E4M3:
		return test_float(4, 3, 14, seed);
	case WFS_CLASS_E5M2:
		return test_float(5, 2, 28, seed);
	case WFS_CLASS_I8:
		return (u8)(test_normal(seed) / 1500);
	case WFS_CLASS_I16:
		return (u16)(test_normal(seed) / 8);
	case WFS_CLASS_I32:
		return (u32)(test_normal(seed) * 64) ^ (test_rand(seed) & 0xffff);
	case WFS_CLASS_BYTES:
		return (u64)(8 + test_normal(seed) / 20000) << 4 | (u64)(8 + test_normal(seed) / 20000);
	default:
		return test_rand(seed);
	}
}

static inline void add_words(struct bytes *b, enum wfs_class class, size_t nr, uint64_t *seed)
{
	for (size_t i = 0; i < nr; i++) {
		u64 word = test_word(class, seed);

		bytes_add(b, &word, wfs_class_split(class).word);
	}
}

/* Records of a class: scales that are like those before, of 16 bits (parts of one byte) or of 8, codes of 4 bits, or of
 * 8 for Q8_0; the rest is noise. */
static inline void add_records(struct bytes *b, enum wfs_class class, size_t nr, uint64_t *seed)
{
	const struct wfs_records *r = wfs_class_records(class);
	const unsigned codes = class == WFS_CLASS_MXFP4	  ? 1
			       : class == WFS_CLASS_NVFP4 ? 4
			       : class == WFS_CLASS_Q4_K  ? 16
							  : r->bytes % 16u;

	for (size_t i = 0; i < nr; i++)
		for (unsigned k = 0; k < r->bytes; k++) {
			u8 byte = (u8)test_rand(seed);

			if (k >= codes && class == WFS_CLASS_Q8_0)
				byte = (u8)(test_normal(seed) / 1000);
			else if (k >= codes)
				byte = (u8)((unsigned)(8 + test_normal(seed) / 10000) << 4 |
					    ((8 + test_normal(seed) / 10000) & 15));
			else if (class == WFS_CLASS_MXFP4)
				byte = (u8)(121 + (byte & 1));
			else if (class == WFS_CLASS_NVFP4)
				byte = (u8)(0x50 + (byte & 7));
			else if (k % 2 && memchr(r->border, (int)k, WFS_MAX_BORDERS) &&
				 memchr(r->border, (int)k + 1, WFS_MAX_BORDERS))
				byte = (u8)(0x18 + k + (byte & 1));
			bytes_add(b, &byte, 1);
		}
}

/* Words of English that LZ4 finds again and again. */
static inline void add_text(struct bytes *b, size_t len, uint64_t *seed)
{
	static const char *const words[] = {"weight ", "layer ", "\"bias\": ", "attention.",
					    "0.5, ",   "\n",	 "the ",       "of "};

	for (size_t end = b->len + len; b->len < end;) {
		const char *word = words[test_rand_below(seed, WFS_ARRAY_LEN(words))];

		bytes_add(b, word, WFS_MIN(strlen(word), end - b->len));
	}
}

#endif
