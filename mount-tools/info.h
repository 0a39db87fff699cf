/* info.h - everything `weightfs info` says about one container. */
#ifndef INFO_H
#define INFO_H

#include "json_out.h"
#include "util.h"

enum { NR_CODINGS = WFS_RECORDS + 1, DTYPE_TEXT_BYTES = 16 };

struct info_opts {
	bool json, tensors;
};

struct coding_sum {
	uint64_t nr_blocks, raw_bytes, stored_bytes;
};

struct dtype_sum {
	char name[DTYPE_TEXT_BYTES];
	uint64_t nr_tensors, nr_weights; /* 0 weights: bits an element unknown */
	uint64_t raw_bytes;
	double stored_bytes; /* a block that several tensors share is divided by their bytes */
};

struct info {
	const char *path;
	uint64_t stored_bytes;
	uint64_t present_bytes;		 /* of them; fewer when the container is cut short */
	const struct wfs_reader *reader; /* the caller's */
	struct wfs_info wfs;
	struct coding_sum coding[NR_CODINGS];
	uint64_t constant_bytes, copied_bytes; /* in regions that need no blocks */
	double *region_stored;		       /* payload bytes before each region */
	struct wfs_tensors *tensors;	       /* NULL: not a safetensors file */
	double *tensor_stored;
	struct dtype_sum *dtype;
	size_t nr_dtypes;
};

/* Fill what the container's metadata tell, no tensors and dtypes; info must be freed. */
void info_open(struct info *info, const char *path, uint64_t present_bytes, const struct wfs_reader *reader);
/* The same and the rest. false: the original's header could not be decoded; a message was printed, the rest is filled.
 * info must be freed in any case. */
bool info_collect(struct info *info, const char *path, uint64_t present_bytes,
		  const struct wfs_reader *reader) MUST_CHECK;
void info_free(struct info *info);
/* Payload bytes that stand for the raw bytes before raw_off: within a block in proportion. */
double info_stored_before(const struct info *info, uint64_t raw_off);
void info_print(const struct info *info, const struct info_opts *opts);
void info_print_json(const struct info *info, const struct info_opts *opts);

const char *coding_name(unsigned coding);
/* Elements of a tensor, 0 when its dtype is unknown. */
uint64_t tensor_weights(const struct wfs_tensor *t);
double bits_per_weight(double stored_bytes, uint64_t nr_weights);

#endif
