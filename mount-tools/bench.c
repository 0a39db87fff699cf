/* bench.c - decode, memcpy and encode of a container's blocks, measured in the same way in the same run.
 *
 * Every block has its own place in one big output buffer, so that writes go to memory as they do for a reader. What
 * counts is the sum over the blocks of the shortest time each took in any pass: other work on the machine makes some
 * times longer and none shorter. The passes of all candidates alternate, so that a slow spell hits all alike.
 */
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Encoding is slower than decoding and needs no more than this to be known. */
static const uint64_t encode_sample_bytes = 256 << 20;
enum { MAX_ENCODE_PASSES = 3, MAX_BLOCK_BYTES = 1 << 20 };

struct sample {
	struct wfs_block block;
	uint64_t place; /* of its raw bytes in the buffers */
	uint64_t comp_place;
};

struct bench {
	const char *path;
	const struct bench_opts *opts;
	struct wfs_reader *reader[WFS_NR_CPUS]; /* NULL: not measured */
	struct sample *sample;
	size_t nr_samples;
	uint64_t raw_len, comp_len; /* of all samples */
	uint64_t room;		    /* of a buffer with a place for each */
	char *comp, *want, *out;    /* stored bytes; raw bytes as the reference decoder gives them; output */
	struct wfs_scratch *scratch;
	double *best_memcpy, *best_decode[WFS_NR_CPUS], *best_checked[WFS_NR_CPUS], *best_encode[WFS_NR_CPUS];
};

static bool fail(const struct bench *b, const struct wfs_reader *reader, const struct wfs_error *err)
{
	char reason[REASON_BYTES];
	wfs_reason(reason, reader, err);
	msg("bench: %s: %s", b->path, reason);
	return false;
}

/* Touched, so that no page fault is measured. Plain pages, as the buffers of most programs have them. */
static void *big_buffer(uint64_t len)
{
	static const size_t page_bytes = 4096;
	void *p = aligned_alloc(page_bytes, (len / page_bytes + 1) * page_bytes);
	if (p)
		memset(p, 0, len);
	return p;
}

static double *new_times(size_t nr)
{
	double *best = xcalloc(nr, sizeof(*best));
	for (size_t i = 0; i < nr; i++)
		best[i] = 1e9;
	return best;
}

static double gbps(const double *best, size_t nr, uint64_t bytes)
{
	double sum = 0;
	for (size_t i = 0; i < nr; i++)
		sum += best[i];
	return sum > 0 ? (double)bytes / sum / 1e9 : 0;
}

static bool open_readers(struct bench *b, int fd)
{
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		const struct wfs_reader_opts opts = {.cpu = cpu};
		struct wfs_error err = {0};
		bool wanted = b->opts->cpu == WFS_CPU_AUTO || b->opts->cpu == cpu;
		/* The reference decoder says what is right: it is always needed. */
		if (!wfs_cpu_supported(cpu) || (!wanted && cpu != WFS_CPU_SCALAR))
			continue;
		if (wfs_reader_open(fd, &opts, &b->reader[cpu], &err) != WFS_OK)
			return fail(b, NULL, &err);
	}
	return true;
}

/* Where a block goes in the buffers: as far into a page as it lies in the file, like in the page cache. */
static uint64_t place_of(const struct wfs_block *block, uint64_t taken)
{
	static const uint64_t page_bytes = 4096;
	return (taken + page_bytes - 1) / page_bytes * page_bytes + block->raw_off % page_bytes;
}

/* Every k-th block, so that the sample is as long as allowed and spread over the file. */
static bool choose_samples(struct bench *b)
{
	const struct wfs_reader *reader = b->reader[WFS_CPU_SCALAR];
	uint64_t step, block_bytes;
	struct wfs_info info;
	wfs_reader_info(reader, &info);
	block_bytes = UINT64_C(1) << info.head.block_log2;
	step = info.nr_blocks / MAX(b->opts->sample_bytes / block_bytes, UINT64_C(1)) +
	       (info.nr_blocks % MAX(b->opts->sample_bytes / block_bytes, UINT64_C(1)) != 0);
	step = MAX(step, UINT64_C(1));
	if (info.nr_blocks == 0) {
		msg("bench: %s: has no blocks to measure", b->path);
		return false;
	}
	b->sample = xcalloc((size_t)(info.nr_blocks / step + 1), sizeof(*b->sample));
	for (uint64_t i = 0; i < info.nr_blocks; i += step) {
		struct sample *s = &b->sample[b->nr_samples++];
		wfs_reader_block(reader, i, &s->block);
		s->place = place_of(&s->block, b->room);
		s->comp_place = b->comp_len;
		b->room = s->place + s->block.raw_len;
		b->raw_len += s->block.raw_len;
		b->comp_len += s->block.comp_len;
	}
	return true;
}

static bool load_samples(struct bench *b)
{
	const struct wfs_reader *reader = b->reader[WFS_CPU_SCALAR];
	b->comp = big_buffer(b->comp_len);
	b->want = big_buffer(b->room);
	b->out = big_buffer(b->room);
	b->scratch = wfs_scratch_new();
	if (!b->comp || !b->want || !b->out || !b->scratch) {
		msg("bench: out of memory: try a smaller --sample");
		return false;
	}
	for (size_t i = 0; i < b->nr_samples; i++) {
		const struct sample *s = &b->sample[i];
		struct wfs_error err = {0};
		if (wfs_block_load(reader, &s->block, &s->block, b->comp + s->comp_place, &err) != WFS_OK ||
		    wfs_block_decode(reader, &s->block, b->comp + s->comp_place, b->want + s->place, b->scratch, 0,
				     &err) != WFS_OK)
			return fail(b, reader, &err);
	}
	return true;
}

static void memcpy_pass(struct bench *b)
{
	for (size_t i = 0; i < b->nr_samples; i++) {
		const struct sample *s = &b->sample[i];
		double t = seconds_now();
		memcpy(b->out + s->place, b->want + s->place, s->block.raw_len);
		/* The compiler must not see that nobody reads the copy. */
		__asm__ volatile("" : : "r"(b->out) : "memory");
		b->best_memcpy[i] = MIN(b->best_memcpy[i], seconds_now() - t);
	}
}

static bool decode_pass(struct bench *b, enum wfs_cpu cpu, unsigned flags, double *best)
{
	for (size_t i = 0; i < b->nr_samples; i++) {
		const struct sample *s = &b->sample[i];
		struct wfs_error err = {0};
		double t = seconds_now();
		if (wfs_block_decode(b->reader[cpu], &s->block, b->comp + s->comp_place, b->out + s->place, b->scratch,
				     flags, &err) != WFS_OK)
			return fail(b, b->reader[cpu], &err);
		best[i] = MIN(best[i], seconds_now() - t);
	}
	return true;
}

static bool check_output(const struct bench *b, enum wfs_cpu cpu)
{
	for (size_t i = 0; i < b->nr_samples; i++) {
		const struct sample *s = &b->sample[i];
		if (!memcmp(b->out + s->place, b->want + s->place, s->block.raw_len))
			continue;
		msg("bench: %s: the variant %s decodes to other bytes: please report this", b->path, wfs_cpu_name(cpu));
		return false;
	}
	return true;
}

static bool decode_passes(struct bench *b)
{
	for (unsigned pass = 0; pass < b->opts->nr_passes; pass++) {
		memcpy_pass(b);
		for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
			if (!b->best_decode[cpu])
				continue;
			memset(b->out, 0xa5, pass ? 0 : b->room);
			if (!decode_pass(b, cpu, WFS_DECODE_UNCHECKED, b->best_decode[cpu]) ||
			    (!pass && !check_output(b, cpu)) || !decode_pass(b, cpu, 0, b->best_checked[cpu]))
				return false;
		}
	}
	return true;
}

/* Samples to encode: the first ones whose raw bytes do not exceed the limit, at least one. */
static size_t nr_encode_samples(const struct bench *b, uint64_t *bytes_ret)
{
	size_t nr = 0;
	*bytes_ret = 0;
	while (nr < b->nr_samples && (nr == 0 || *bytes_ret < encode_sample_bytes))
		*bytes_ret += b->sample[nr++].block.raw_len;
	return nr;
}

static bool encode_passes(struct bench *b, enum wfs_cpu cpu, size_t nr)
{
	struct wfs_reencoder *reencoder = NULL;
	struct wfs_error err = {0};
	char *comp = xcalloc(1, MAX_BLOCK_BYTES);
	if (wfs_reencoder_new(b->reader[cpu], cpu, &reencoder, &err) != WFS_OK) {
		free(comp);
		return fail(b, NULL, &err);
	}
	for (unsigned pass = 0; pass < MIN(b->opts->nr_passes, (unsigned)MAX_ENCODE_PASSES); pass++) {
		for (size_t i = 0; i < nr; i++) {
			const struct sample *s = &b->sample[i];
			double t = seconds_now();
			if (!wfs_block_reencode(reencoder, &s->block, b->want + s->place, comp))
				err = (struct wfs_error){
					.status = WFS_NO_MEMORY, .block = s->block.index, .reason = "out of memory"};
			b->best_encode[cpu][i] = MIN(b->best_encode[cpu][i], seconds_now() - t);
		}
	}
	wfs_reencoder_free(reencoder);
	free(comp);
	return err.status == WFS_OK || fail(b, NULL, &err);
}

static bool measure(struct bench *b, struct bench_result *r)
{
	uint64_t encode_bytes;
	size_t nr_encode = nr_encode_samples(b, &encode_bytes);
	b->best_memcpy = new_times(b->nr_samples);
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		if (!b->reader[cpu] || (b->opts->cpu != WFS_CPU_AUTO && b->opts->cpu != cpu))
			continue;
		b->best_decode[cpu] = new_times(b->nr_samples);
		b->best_checked[cpu] = new_times(b->nr_samples);
		b->best_encode[cpu] = new_times(nr_encode);
	}
	if (!decode_passes(b))
		return false;
	r->memcpy_gbps = gbps(b->best_memcpy, b->nr_samples, b->raw_len);
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		if (!b->best_decode[cpu])
			continue;
		if (!encode_passes(b, cpu, nr_encode))
			return false;
		r->variant[r->nr_variants++] = (struct bench_variant){
			.cpu = cpu,
			.decode_gbps = gbps(b->best_decode[cpu], b->nr_samples, b->raw_len),
			.checked_gbps = gbps(b->best_checked[cpu], b->nr_samples, b->raw_len),
			.encode_gbps = gbps(b->best_encode[cpu], nr_encode, encode_bytes),
		};
	}
	return true;
}

/* Where the thread runs now, it stays: a move costs caches and may meet another clock rate. */
static void bind_to_processor(void)
{
	int processor = sched_getcpu();
	cpu_set_t set;
	if (processor < 0 || processor >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

bool bench_run(const char *path, int fd, const struct bench_opts *opts, struct bench_result *result_ret)
{
	struct bench b = {.path = path, .opts = opts};
	struct wfs_info info;
	struct stat st;
	bool ok;
	*result_ret = (struct bench_result){.nr_passes = opts->nr_passes};
	bind_to_processor();
	ok = open_readers(&b, fd) && choose_samples(&b) && load_samples(&b) && measure(&b, result_ret);
	if (ok && fstat(fd, &st)) {
		msg("bench: %s: %s", path, strerror(errno));
		ok = false;
	}
	if (ok) {
		wfs_reader_info(b.reader[WFS_CPU_SCALAR], &info);
		result_ret->raw_bytes = info.head.raw_len;
		result_ret->sample_bytes = b.raw_len;
		result_ret->stored_bytes = (uint64_t)st.st_size;
	}
	free(b.comp);
	free(b.want);
	free(b.out);
	wfs_scratch_free(b.scratch);
	free(b.sample);
	free(b.best_memcpy);
	for (unsigned cpu = 0; cpu < WFS_NR_CPUS; cpu++) {
		free(b.best_decode[cpu]);
		free(b.best_checked[cpu]);
		free(b.best_encode[cpu]);
		wfs_reader_free(b.reader[cpu]);
	}
	return ok;
}
