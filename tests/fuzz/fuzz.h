/* fuzz.h - what the fuzz targets share. libFuzzer drives them (make fuzz), or replay.c over the files it is given. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for every input. */
#define FUZZ_CHECK(cond)                                                                                               \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #cond);                             \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* Exactly len bytes, so that the sanitizer sees the first one beyond. */
static inline uint8_t *fuzz_alloc(size_t len)
{
	uint8_t *p = malloc(len ? len : 1);
	FUZZ_CHECK(p);
	return p;
}

#endif
