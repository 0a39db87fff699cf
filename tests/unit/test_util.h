/* test_util.h - what the unit tests share: checks, a random generator, and buffers between guard pages.
 *
 * A test is one self-contained program. Each property is a function that ends in PASS(); a failed CHECK prints where
 * and exits 1, so a program that reaches its end has proven every line it printed.
 */
#ifndef TEST_UTIL_H
#define TEST_UTIL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			fprintf(stderr, "FAIL %s:%d: %s\n", __FILE__, __LINE__, #cond);                                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* Like CHECK, with a message that says which case failed. */
#define CHECK_MSG(cond, ...)                                                                                           \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			fprintf(stderr, "FAIL %s:%d: %s: ", __FILE__, __LINE__, #cond);                                \
			fprintf(stderr, __VA_ARGS__);                                                                  \
			fputc('\n', stderr);                                                                           \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define PASS(...)                                                                                                      \
	do {                                                                                                           \
		printf("ok " __VA_ARGS__);                                                                             \
		putchar('\n');                                                                                         \
	} while (0)

/* xorshift64*: the same numbers on every machine. The state must not be 0. */
static inline uint64_t test_rand(uint64_t *state)
{
	uint64_t x = *state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545F4914F6CDD1Dull;
}
/* 0..limit-1; limit >= 1. */
static inline uint64_t test_rand_below(uint64_t *state, uint64_t limit)
{
	return (test_rand(state) >> 11) % limit;
}
static inline void test_rand_fill(uint64_t *state, void *buf, size_t len)
{
	uint8_t *p = buf;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(test_rand(state) >> 56);
}

/* Memory with an inaccessible page on each side: a touch outside the pages is a SIGSEGV. test_guard_end(g, len) gives
 * len bytes whose end is the guard; test_guard_start(g) gives bytes that start right behind one. */
struct test_guard {
	uint8_t *map; /* the whole mapping, guards included */
	size_t cap;   /* accessible bytes, a multiple of the page size */
	size_t page;
};
static inline struct test_guard test_guard_new(size_t min_bytes)
{
	struct test_guard g;
	g.page = (size_t)sysconf(_SC_PAGESIZE);
	g.cap = (min_bytes + g.page - 1) / g.page * g.page;
	g.map = mmap(NULL, g.cap + 2 * g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(g.map != MAP_FAILED);
	CHECK(!mprotect(g.map, g.page, PROT_NONE));
	CHECK(!mprotect(g.map + g.page + g.cap, g.page, PROT_NONE));
	return g;
}
static inline uint8_t *test_guard_start(const struct test_guard *g)
{
	return g->map + g->page;
}
static inline uint8_t *test_guard_end(const struct test_guard *g, size_t len)
{
	CHECK(len <= g->cap);
	return g->map + g->page + g->cap - len;
}
static inline void test_guard_free(struct test_guard *g)
{
	munmap(g->map, g->cap + 2 * g->page);
	g->map = NULL;
}

#endif
