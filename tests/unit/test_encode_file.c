/* test_encode_file.c - whatever bytes a file has, it comes back; the same container from any number of threads and
 * every CPU variant; sources that change, outputs that fail and callers that cancel end an encoding cleanly.
 */
#include "encode_util.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>

static void round_trip_only(const struct bytes *b, const struct wfs_encode_opts *opts)
{
	struct wfs_encode_result result;
	int fd;

	wfs_reader_free(round_trip(b, opts, &fd, &result));
	close(fd);
}

/* BF16, F32, F16, F64, FP8, integers and text, every tensor at an odd place when mod8 is odd. */
static struct bytes mixed_model(unsigned mod8, size_t scale)
{
	struct model m = {0};
	uint64_t seed = 5;
	size_t at;

	for (int layer = 0; layer < 3; layer++) {
		at = m.data.len;
		add_weights(&m.data, 2, 40000 * scale, &seed);
		model_tensor(&m, "BF16", at);
		at = m.data.len;
		bytes_add(&m.data, "\1\2\3\4\5\6\7", 8);
		model_tensor(&m, "I64", at);
		at = m.data.len;
		add_weights(&m.data, 4, 9000 * scale, &seed);
		model_tensor(&m, "F32", at);
	}
	at = m.data.len;
	add_weights(&m.data, 8, 9000 * scale, &seed);
	model_tensor(&m, "F64", at);
	at = m.data.len;
	add_weights(&m.data, 1, 50001 * scale, &seed);
	model_tensor(&m, "F8_E4M3", at);
	at = m.data.len;
	for (size_t i = 0; i < 5000 * scale; i++)
		bytes_add(&m.data, "text and more text ", 19);
	model_tensor(&m, "U8", at);
	return model_file(&m, mod8);
}

static void test_sizes(void)
{
	static const size_t sizes[] = {0,     1,     2,	     7,	     8,	     9,	      63,      64,	65,	65535,
				       65536, 65537, 262143, 262144, 262145, 1048575, 1048576, 1048577, 3000001};
	struct bytes random = {0};
	uint64_t seed = 3;

	bytes_add(&random, NULL, 3000001);
	test_rand_fill(&seed, random.p, random.len);
	for (size_t i = 0; i < WFS_ARRAY_LEN(sizes); i++) {
		struct wfs_encode_opts opts = {.block_log2 = 16 + (unsigned)i % 5, .nr_threads = 1 + (unsigned)i % 3};
		struct bytes b = {random.p, sizes[i], 0};

		round_trip_only(&b, &opts);
		round_trip_only(&b, NULL);
	}
	free(random.p);
	PASS("files of any size come back");
}

static void test_contents(void)
{
	static const struct {
		const char *name;
		u8 step, mask;
	} kinds[] = {{"zeros", 0, 0xff}, {"ramp", 1, 0xff}, {"ramp of 3", 3, 0x7f}, {"pairs", 128, 0xff}};

	for (size_t k = 0; k < WFS_ARRAY_LEN(kinds); k++) {
		struct bytes b = {0};

		bytes_add(&b, NULL, 700003);
		for (size_t i = 0; i < b.len; i++)
			b.p[i] = (u8)(i * kinds[k].step) & kinds[k].mask;
		round_trip_only(&b, NULL);
		free(b.p);
	}
	PASS("regular contents come back");
}

static void test_models(void)
{
	for (unsigned mod8 = 0; mod8 < 8; mod8++) {
		for (unsigned log2 = 16; log2 <= 20; log2 += 2) {
			struct wfs_encode_opts opts = {.block_log2 = log2};
			struct bytes b = mixed_model(mod8, 1);

			round_trip_only(&b, &opts);
			free(b.p);
		}
	}
	PASS("models of every dtype come back, whatever the place of their words");
}

static void test_determinism(void)
{
	struct bytes b = mixed_model(3, 12), first = {0};

	for (int cpu = WFS_CPU_AUTO; cpu < WFS_NR_CPUS; cpu++) {
		for (unsigned threads = 1; threads <= 7; threads += 3) {
			struct wfs_encode_opts opts = {.nr_threads = threads, .cpu = (enum wfs_cpu)cpu, .mtime_sec = 9};
			struct wfs_encode_result result;
			u8 *got;
			int fd;

			if (!wfs_cpu_supported(opts.cpu))
				continue;
			wfs_reader_free(round_trip(&b, &opts, &fd, &result));
			got = malloc(result.file_len);
			CHECK(got && pread(fd, got, result.file_len, 0) == (ssize_t)result.file_len);
			if (!first.p)
				bytes_add(&first, got, result.file_len);
			CHECK_MSG(result.file_len == first.len && !memcmp(got, first.p, first.len), "%s, %u threads",
				  wfs_cpu_name(opts.cpu), threads);
			free(got);
			close(fd);
		}
	}
	free(first.p);
	free(b.p);
	PASS("every CPU variant and number of threads gives the same container");
}

static void test_result(void)
{
	struct wfs_encode_opts opts = {.mtime_sec = -123456789, .mtime_nsec = 999999999, .block_log2 = 17};
	struct wfs_encode_result result, estimate, sampled;
	struct bytes b = mixed_model(0, 2);
	int fd, src = memory_file(b.p, b.len);
	struct wfs_reader *reader = round_trip(&b, &opts, &fd, &result);
	struct wfs_info info;
	u8 sha256[32];

	SHA256(b.p, b.len, sha256);
	wfs_reader_info(reader, &info);
	CHECK(!memcmp(result.sha256, sha256, 32) && !memcmp(info.head.sha256, sha256, 32));
	CHECK(info.head.mtime_sec == opts.mtime_sec && info.head.mtime_nsec == opts.mtime_nsec);
	CHECK(info.head.block_log2 == 17 && info.head.file_len == result.file_len);
	CHECK(info.nr_blocks == result.nr_blocks && info.nr_regions == result.nr_regions);
	CHECK(result.file_len < b.len * 85 / 100);
	CHECK(wfs_encode_estimate(src, &opts, &estimate, NULL) == WFS_OK);
	CHECK(estimate.raw_len == b.len && estimate.nr_blocks == result.nr_blocks);
	CHECK(estimate.file_len > result.file_len * 98 / 100 && estimate.file_len < result.file_len * 102 / 100);
	opts.sample_bytes = b.len / 4;
	CHECK(wfs_encode_estimate(src, &opts, &sampled, NULL) == WFS_OK && sampled.file_len != estimate.file_len);
	CHECK(sampled.file_len > result.file_len * 80 / 100 && sampled.file_len < result.file_len * 120 / 100);
	wfs_reader_free(reader);
	close(src);
	close(fd);
	free(b.p);
	PASS("result, head and estimate say what was written");
}

static void test_reencode(void)
{
	struct bytes b = mixed_model(1, 2);
	struct wfs_encode_result result;
	int fd;
	struct wfs_reader *reader = round_trip(&b, NULL, &fd, &result);
	struct wfs_reencoder *reencoder;
	u8 *comp = malloc(1 << 20), *stored = malloc(1 << 20);

	CHECK(comp && stored);
	CHECK(wfs_reencoder_new(reader, WFS_NR_CPUS, &reencoder, NULL) == WFS_BAD_ARGUMENT);
	for (int cpu = WFS_CPU_AUTO; cpu < WFS_NR_CPUS; cpu++) {
		if (!wfs_cpu_supported((enum wfs_cpu)cpu))
			continue;
		CHECK(wfs_reencoder_new(reader, (enum wfs_cpu)cpu, &reencoder, NULL) == WFS_OK);
		for (u64 i = 0; i < result.nr_blocks; i++) {
			struct wfs_block block;

			wfs_reader_block(reader, i, &block);
			CHECK(wfs_block_load(reader, &block, &block, stored, NULL) == WFS_OK);
			CHECK(wfs_block_reencode(reencoder, &block, b.p + block.raw_off, comp) == block.comp_len);
			CHECK(block.coding == WFS_STORED || !memcmp(comp, stored, block.comp_len));
		}
		wfs_reencoder_free(reencoder);
	}
	free(stored);
	free(comp);
	wfs_reader_free(reader);
	close(fd);
	free(b.p);
	PASS("blocks encoded again are the stored ones");
}

/* ---- endings ---- */

struct disturb {
	int fd;
	u64 after; /* raw bytes done */
	enum { CANCEL, CUT, GROW, OVERWRITE } how;
	u64 last_raw, last_comp;
};

static int disturb(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	struct disturb *d = ctx;

	/* 0 while the plan is made, then more each time. */
	CHECK(raw_done ? raw_done > d->last_raw : !d->last_raw);
	CHECK(comp_done >= d->last_comp);
	d->last_raw = raw_done;
	d->last_comp = comp_done;
	if (raw_done < d->after)
		return 0;
	d->after = UINT64_MAX;
	if (d->how == CUT)
		CHECK(!ftruncate(d->fd, 5000));
	else if (d->how == GROW)
		CHECK(pwrite(d->fd, "x", 1, 40 << 20) == 1);
	else if (d->how == OVERWRITE)
		CHECK(pwrite(d->fd, "x", 1, 0) == 1);
	return d->how == CANCEL;
}

static void test_disturbed(void)
{
	static const enum wfs_status expected[] = {WFS_CANCELLED, WFS_CHANGED, WFS_CHANGED, WFS_CHANGED};
	static const u64 moments[] = {0, 1, (23 << 20) + 1}; /* in the plan, at the first window, near the end */
	struct bytes b = {0};
	uint64_t seed = 8;

	bytes_add(&b, NULL, 24 << 20);
	test_rand_fill(&seed, b.p, b.len);
	for (int how = CANCEL; how <= OVERWRITE; how++) {
		for (size_t i = 0; i < WFS_ARRAY_LEN(moments); i++) {
			const struct timespec times[2] = {{1, 0},
							  {1, 0}}; /* a write must show whatever the clock's step */
			int src = memory_file(b.p, b.len), dst = memory_file(NULL, 0);
			struct disturb d = {.fd = src, .after = moments[i], .how = how};
			struct wfs_encode_opts opts = {.nr_threads = 2, .progress = disturb, .ctx = &d};
			struct wfs_encode_result result;
			struct wfs_error err = {0};
			struct wfs_head head;
			enum wfs_status status;

			CHECK(!futimens(src, times));
			status = wfs_encode_file(src, dst, &opts, &result, &err);
			CHECK_MSG(status == expected[how] && err.status == status && err.reason, "%d %s", how,
				  wfs_status_name(status));
			CHECK(how != CANCEL || moments[i] || !d.last_raw);
			CHECK(wfs_head_read(dst, &head, NULL) == WFS_NOT_CONTAINER);
			close(src);
			close(dst);
		}
	}
	free(b.p);
	PASS("cancelled encodings and changed sources leave no container");
}

static void test_outputs(void)
{
	struct bytes b = mixed_model(0, 4);
	int src = memory_file(b.p, b.len), dst = memory_file("x", 1), pipes[2], read_only;
	struct wfs_encode_opts bad = {.block_log2 = 21}, bad_time = {.mtime_nsec = 1000000000}, bad_cpu = {.cpu = 77};
	struct wfs_encode_result result;
	struct wfs_error err = {0};
	char path[64];

	CHECK(wfs_encode_file(src, dst, NULL, &result, &err) == WFS_BAD_ARGUMENT); /* not empty */
	CHECK(!ftruncate(dst, 0) && !pipe(pipes));
	CHECK(wfs_encode_file(src, pipes[1], NULL, &result, &err) == WFS_BAD_ARGUMENT);
	CHECK(wfs_encode_file(pipes[0], dst, NULL, &result, &err) == WFS_BAD_ARGUMENT);
	CHECK(wfs_encode_file(-1, dst, NULL, &result, &err) == WFS_IO && err.sys_errno == EBADF);
	CHECK(wfs_encode_file(src, dst, &bad, &result, &err) == WFS_BAD_ARGUMENT);
	CHECK(wfs_encode_file(src, dst, &bad_time, &result, &err) == WFS_BAD_ARGUMENT);
	CHECK(wfs_encode_file(src, dst, &bad_cpu, &result, &err) == WFS_BAD_ARGUMENT);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dst);
	read_only = open(path, O_RDONLY);
	CHECK(read_only >= 0);
	CHECK(wfs_encode_file(src, read_only, NULL, &result, &err) == WFS_IO && err.sys_errno == EBADF);
	CHECK(!fcntl(dst, F_ADD_SEALS, F_SEAL_GROW)); /* an output that cannot grow, like a full disk */
	CHECK(wfs_encode_file(src, dst, NULL, &result, &err) == WFS_IO && err.sys_errno == EPERM && err.reason);
	close(read_only);
	close(pipes[0]);
	close(pipes[1]);
	close(src);
	close(dst);
	free(b.p);
	PASS("bad arguments and failing outputs are reported");
}

struct stop {
	u64 got, after;
};
static int stop_sink(void *ctx, const void *raw, size_t len)
{
	struct stop *s = ctx;

	(void)raw;
	s->got += len;
	return s->got >= s->after;
}
static int stop_progress(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	(void)comp_done;
	return raw_done >= ((struct stop *)ctx)->after;
}

static void test_stream(void)
{
	struct bytes b = mixed_model(0, 30);
	struct wfs_encode_result result;
	int fd;
	struct wfs_reader *reader = round_trip(&b, NULL, &fd, &result);
	struct wfs_error err;
	uint64_t seed = 21;

	for (int i = 0; i < 40; i++) {
		u64 off = test_rand_below(&seed, b.len + 1), len = test_rand_below(&seed, b.len - off + 1);
		struct collect c = {b.p + off, 0};

		len = i % 2 ? len : WFS_MIN(len, (u64)100);
		CHECK(wfs_reader_stream(reader, off, len, 1 + i % 5, collect_and_compare, &c, &err) == WFS_OK);
		CHECK(c.at == len);
	}
	for (u64 after = 1; after < b.len; after += b.len / 3) {
		struct stop s = {0, after};

		CHECK(wfs_reader_stream(reader, 0, b.len, 3, stop_sink, &s, &err) == WFS_CANCELLED);
		CHECK(err.status == WFS_CANCELLED && s.got >= after && s.got < after + (1 << 20));
		CHECK(wfs_reader_verify(reader, 3, stop_progress, &s, &err) == WFS_CANCELLED);
	}
	wfs_reader_free(reader);
	close(fd);
	free(b.p);
	PASS("ranges stream in order and stop when asked");
}

int main(void)
{
	test_sizes();
	test_contents();
	test_models();
	test_determinism();
	test_result();
	test_reencode();
	test_disturbed();
	test_outputs();
	test_stream();
	return 0;
}
