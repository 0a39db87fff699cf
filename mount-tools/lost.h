/* lost.h - what of a damaged container's original is lost: which blocks, which bytes, which tensors. */
#ifndef LOST_H
#define LOST_H

#include "json_out.h"
#include "util.h"

struct lost_block {
	uint64_t index, raw_off;
	uint32_t raw_len;
	const char *reason; /* a constant string */
};

struct lost_range {
	uint64_t off, len, before; /* before: lost bytes in the ranges before this one */
};

struct lost_tensor {
	const struct wfs_tensor *tensor;
	uint64_t lost_bytes;
};

enum lost_names {
	LOST_NAMES_NONE, /* the original is no safetensors file, or nothing is lost */
	LOST_NAMES_KNOWN,
	LOST_NAMES_DAMAGED, /* its header is lost as well, so nobody can tell the tensors */
};

enum { MAX_FIRST_LOST = 64 };

struct lost {
	uint64_t nr_blocks, nr_bad_blocks;
	struct lost_block first[MAX_FIRST_LOST]; /* the first bad ones */
	struct wfs_error err;			 /* of the very first */
	struct lost_range *range;		 /* sorted, apart from each other; copies of lost bytes are in it */
	size_t nr_ranges, range_room;
	uint64_t bytes;
	enum lost_names names;
	struct wfs_tensors *tensors;
	struct lost_tensor *tensor; /* those hit */
	size_t nr_tensors;
};

/* Gets each good block, on any thread and in any order. false: look at no more of them, the result does not matter. */
typedef bool (*good_block_fn)(void *ctx, const struct wfs_block *block, const void *raw);

/* Look at every block of the container, and find out what the bad ones cost. good may be NULL. The caller frees it. */
void lost_find(struct lost *lost_ret, const struct wfs_reader *reader, unsigned nr_threads, good_block_fn good,
	       void *ctx);
void lost_free(struct lost *lost);

/* What to do about the container fd, which failed with err, as an end of the message; "" where it is not its fault.
 * reader NULL: it could not be opened, then nothing of it can be read, unless it is merely too long. */
enum { ADVICE_BYTES = 96 };
const char *damage_advice(int fd, const struct wfs_reader *reader, const struct wfs_error *err, char buf[ADVICE_BYTES]);

/* lost_print.c: members of the open JSON object, and indented lines on stdout; at most so many of each kind. */
void lost_print_json(const struct lost *lost, struct json *j, size_t max_listed);
void lost_print_lines(const struct lost *lost, size_t max_listed);

#endif
