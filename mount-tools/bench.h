/* bench.h - the measurements of `weightfs bench`. */
#ifndef BENCH_H
#define BENCH_H

#include "util.h"

struct bench_opts {
	unsigned nr_passes;
	uint64_t sample_bytes; /* at most so many raw bytes */
	enum wfs_cpu cpu;      /* AUTO: every variant this machine can run */
};

struct bench_variant {
	enum wfs_cpu cpu;
	double decode_gbps, checked_gbps, encode_gbps;
};

struct bench_result {
	uint64_t raw_bytes, stored_bytes, sample_bytes;
	unsigned nr_passes;
	double memcpy_gbps;
	unsigned nr_variants;
	struct bench_variant variant[WFS_NR_CPUS];
};

/* Measure the container fd on the calling thread, which is bound to the processor it runs on. false: a message was
 * printed. */
bool bench_run(const char *path, int fd, const struct bench_opts *opts, struct bench_result *result_ret) MUST_CHECK;

#endif
