/* encode_util.h - sources in memory, safetensors files put together by hand, and round trips: for test_encode_file.c
 * and test_plan.c.
 */
#ifndef ENCODE_UTIL_H
#define ENCODE_UTIL_H

#include "test_util.h"

#include "wfs_internal.h"

#include <sys/mman.h>

struct bytes {
	u8 *p;
	size_t len, room;
};

static inline void bytes_add(struct bytes *b, const void *p, size_t len)
{
	if (b->len + len > b->room) {
		b->room = (b->len + len) * 2;
		b->p = realloc(b->p, b->room);
		CHECK(b->p);
	}
	if (p)
		memcpy(b->p + b->len, p, len);
	else
		memset(b->p + b->len, 0, len);
	b->len += len;
}

/* Words like those of a trained matrix: sign, an exponent that falls off like a bell, a random mantissa. */
static inline void add_weights(struct bytes *b, unsigned word, size_t nr, uint64_t *seed)
{
	for (size_t i = 0; i < nr; i++) {
		uint64_t r = test_rand(seed), mantissa = test_rand(seed);
		unsigned steps = (unsigned)__builtin_ctzll(r | 1 << 20);
		u64 sign = r >> 63, v;

		if (word == 2)
			v = sign << 15 | (u64)(120 - steps) << 7 | (mantissa & 0x7f);
		else if (word == 4)
			v = sign << 31 | (u64)(120 - steps) << 23 | (mantissa & 0x7fffff);
		else if (word == 8)
			v = sign << 63 | (u64)(1020 - steps) << 52 | (mantissa & 0xfffffffffffff);
		else
			v = sign << 7 | (u64)(8 - steps % 8) << 3 | (mantissa & 7);
		bytes_add(b, &v, word);
	}
}

/* A safetensors file: tensors are named by tensors_add, data is added by the caller in any way. */
struct model {
	char header[1 << 18];
	size_t header_len;
	struct bytes data;
};
static inline void model_tensor_at(struct model *m, const char *dtype, size_t begin, size_t end)
{
	unsigned bits = wfs_dtype_bits(dtype);

	m->header_len += (size_t)snprintf(m->header + m->header_len, sizeof(m->header) - m->header_len,
					  "%s\"t%zu\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
					  m->header_len ? "," : "{", m->header_len, dtype,
					  bits ? (end - begin) * 8 / bits : end - begin, begin, end);
	CHECK(m->header_len < sizeof(m->header) - 64);
}
/* The tensor that the data added since `begin` is. */
static inline void model_tensor(struct model *m, const char *dtype, size_t begin)
{
	model_tensor_at(m, dtype, begin, m->data.len);
}
/* header_mod8: where the data starts, mod 8. Frees the model's data. */
static inline struct bytes model_file(struct model *m, unsigned header_mod8)
{
	struct bytes b = {0};
	u64 len;

	m->header[m->header_len++] = '}';
	while (m->header_len % 8 != header_mod8)
		m->header[m->header_len++] = ' ';
	len = m->header_len;
	bytes_add(&b, &len, 8);
	bytes_add(&b, m->header, m->header_len);
	bytes_add(&b, m->data.p, m->data.len);
	free(m->data.p);
	return b;
}

static inline int memory_file(const void *p, size_t len)
{
	int fd = memfd_create("file", MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, p, len, 0) == (ssize_t)len);
	return fd;
}

struct collect {
	const u8 *expected;
	size_t at;
};
static inline int collect_and_compare(void *ctx, const void *raw, size_t len)
{
	struct collect *c = ctx;

	CHECK(!memcmp(c->expected + c->at, raw, len));
	c->at += len;
	return 0;
}

/* Encode, open, compare every byte and the SHA-256; gives the reader and its file. */
static inline struct wfs_reader *round_trip(const struct bytes *b, const struct wfs_encode_opts *opts, int *fd_ret,
					    struct wfs_encode_result *result)
{
	int src = memory_file(b->p, b->len), dst = memory_file(NULL, 0);
	struct collect c = {b->p, 0};
	struct wfs_reader *reader;
	struct wfs_error err = {0};

	CHECK_MSG(wfs_encode_file(src, dst, opts, result, &err) == WFS_OK, "%s", err.reason);
	CHECK(result->raw_len == b->len && result->file_len == (u64)lseek(dst, 0, SEEK_END));
	CHECK_MSG(wfs_reader_open(dst, NULL, &reader, &err) == WFS_OK, "%s", err.reason);
	CHECK_MSG(wfs_reader_stream(reader, 0, b->len, 2, collect_and_compare, &c, &err) == WFS_OK, "%s", err.reason);
	CHECK(c.at == b->len);
	CHECK_MSG(wfs_reader_verify(reader, 1, NULL, NULL, &err) == WFS_OK, "%s", err.reason);
	close(src);
	*fd_ret = dst;
	return reader;
}

#endif
