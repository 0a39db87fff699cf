/* cmd_bench.c - weightfs bench: how fast this machine decodes and encodes a file's own blocks, beside memcpy. */
#include "commands.h"
#include "bench.h"
#include "json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_PASSES = 256, OPT_SAMPLE, OPT_CPU, OPT_JSON };

static const struct option options[] = {
	{"passes", required_argument, NULL, OPT_PASSES},
	{"sample", required_argument, NULL, OPT_SAMPLE},
	{"cpu", required_argument, NULL, OPT_CPU},
	{"json", no_argument, NULL, OPT_JSON},
	COMMON_OPTIONS,
};

/* A file without a name, in memory when it is small beside it. Returns a descriptor, or -1 with errno. */
static int open_unnamed(uint64_t bytes)
{
	long pages = sysconf(_SC_AVPHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	const char *dir = getenv("TMPDIR");
	if (pages > 0 && page_bytes > 0 && bytes < (uint64_t)pages * (uint64_t)page_bytes / 8)
		return memfd_create("weightfs-bench", MFD_CLOEXEC);
	return open(dir && *dir ? dir : "/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

/* Pack a plain file. Returns a descriptor of the container, or -1: a message was printed. */
static int pack_plain(const char *path, int fd, const struct stat *st)
{
	const struct wfs_encode_opts opts = {.mtime_sec = st->st_mtim.tv_sec,
					     .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec};
	struct wfs_encode_result result;
	struct wfs_error err = {0};
	char reason[REASON_BYTES];
	int packed_fd = open_unnamed((uint64_t)st->st_size);
	if (packed_fd < 0) {
		msg("bench: cannot make a temporary file: %s", strerror(errno));
		return -1;
	}
	if (wfs_encode_file(fd, packed_fd, &opts, &result, &err) == WFS_OK)
		return packed_fd;
	wfs_reason(reason, NULL, &err);
	msg("bench: %s: %s", path, reason);
	close(packed_fd);
	return -1;
}

/* Open a container; a plain file is packed first. Returns a descriptor, or -1: a message was printed. */
static int open_container(const char *path)
{
	struct wfs_head head;
	struct wfs_error err = {0};
	char reason[REASON_BYTES];
	enum wfs_status status;
	struct stat st;
	int packed_fd, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		msg("bench: %s: %s", path,
		    fd < 0		  ? strerror(errno)
		    : S_ISDIR(st.st_mode) ? "is a directory: name one of its files"
					  : "is not a regular file");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	status = wfs_head_read(fd, &head, &err);
	if (status == WFS_OK)
		return fd;
	packed_fd = -1;
	if (status == WFS_NOT_CONTAINER) {
		packed_fd = pack_plain(path, fd, &st);
	} else {
		wfs_reason(reason, NULL, &err);
		msg("bench: %s: %s", path, reason);
	}
	close(fd);
	return packed_fd;
}

static void print_json(const struct bench_result *r)
{
	struct json j;
	json_init(&j, stdout);
	json_object(&j, NULL);
	json_real(&j, "memcpy_gbps", r->memcpy_gbps, 3);
	json_array(&j, "decode");
	for (unsigned i = 0; i < r->nr_variants; i++) {
		json_object(&j, NULL);
		json_string(&j, "variant", wfs_cpu_name(r->variant[i].cpu));
		json_real(&j, "gbps", r->variant[i].decode_gbps, 3);
		json_real(&j, "checked_gbps", r->variant[i].checked_gbps, 3);
		json_end(&j);
	}
	json_end(&j);
	json_array(&j, "encode");
	for (unsigned i = 0; i < r->nr_variants; i++) {
		json_object(&j, NULL);
		json_string(&j, "variant", wfs_cpu_name(r->variant[i].cpu));
		json_real(&j, "gbps", r->variant[i].encode_gbps, 3);
		json_end(&j);
	}
	json_end(&j);
	json_real(&j, "saved_percent", saved_percent(r->raw_bytes, r->stored_bytes), 4);
	json_end(&j);
}

static void print_table(const char *path, const struct bench_result *r)
{
	char sample[SIZE_TEXT_BYTES], raw[SIZE_TEXT_BYTES], saved[SAVED_TEXT_BYTES];
	out_line("%s: %s, %s", path, size_text(raw, r->raw_bytes), saved_text(saved, r->raw_bytes, r->stored_bytes, 2));
	printf("one thread, GB/s of original bytes, %s of blocks, best of %u pass%s a block\n\n",
	       size_text(sample, r->sample_bytes), r->nr_passes, plural_es(r->nr_passes));
	printf("%-12s %8s %8s %8s %8s %8s\n", "variant", "decode", "/memcpy", "checked", "/memcpy", "encode");
	printf("%-12s %8.2f %8.2f\n", "memcpy", r->memcpy_gbps, 1.0);
	for (unsigned i = 0; i < r->nr_variants; i++) {
		const struct bench_variant *v = &r->variant[i];
		printf("%-12s %8.2f %8.2f %8.2f %8.2f %8.2f\n", wfs_cpu_name(v->cpu), v->decode_gbps,
		       v->decode_gbps / r->memcpy_gbps, v->checked_gbps, v->checked_gbps / r->memcpy_gbps,
		       v->encode_gbps);
	}
}

static bool take_option(int c, struct bench_opts *opts, bool *json)
{
	uint64_t value;
	switch (c) {
	case OPT_PASSES:
		if (!parse_number(optarg, 1, 1000, false, &value)) {
			msg("bench: '%s' is not a number of passes (1 to 1000)", optarg);
			return false;
		}
		opts->nr_passes = (unsigned)value;
		return true;
	case OPT_SAMPLE:
		if (parse_number(optarg, 1 << 20, UINT64_C(1) << 40, true, &opts->sample_bytes))
			return true;
		msg("bench: '%s' is not a size (1M to 1T)", optarg);
		return false;
	case OPT_CPU:
		return parse_cpu("bench", optarg, &opts->cpu);
	default:
		return *json = true;
	}
}

int cmd_bench(const struct command *self, int argc, char **argv)
{
	struct bench_opts opts = {.nr_passes = 7, .sample_bytes = 1 << 30};
	struct bench_result result;
	bool json = false, ok;
	int c, fd;
	while ((c = getopt_long(argc, argv, "hV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(c, &opts, &json))
			return EXIT_USAGE;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	fd = open_container(argv[optind]);
	if (fd < 0)
		return EXIT_FAILED;
	ok = bench_run(argv[optind], fd, &opts, &result);
	close(fd);
	if (ok && json)
		print_json(&result);
	else if (ok)
		print_table(argv[optind], &result);
	return close_stdout() && ok ? EXIT_OK : EXIT_FAILED;
}
