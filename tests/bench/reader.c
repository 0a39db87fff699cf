/* reader.c - reads files in one of the ways loaders do and prints what it took as one line of JSON.
 *
 *     reader PATTERN [-b REQUEST] [-s STRIDE] [-n COUNT] [-w WORKERS] [-W] [-d OTHER] FILE...
 *     reader resident|evict|load FILE...       what the page cache holds of them; make that nothing; make that all
 *     reader wake FILE...                      read them past the page cache, for the caches behind the disk
 *     reader touch SIZE                        use so much memory and free it
 *     reader --list
 *
 * -W: the files are read once before, without being timed. -d: another file is, past the page cache: a throttled disk
 * gives at first what it has saved up while nobody read, and this takes it. Sizes may end in K, M or G.
 */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void reader_die(const char *what)
{
	fprintf(stderr, "reader: %s: %s\n", what, strerror(errno));
	exit(1);
}

double reader_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int reader_open(const struct target *file, int flags)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | flags);
	if (fd < 0)
		reader_die(file->path);
	return fd;
}

void reader_pread(int fd, void *buf, uint64_t len, uint64_t off)
{
	while (len) {
		ssize_t n = pread(fd, buf, len, (off_t)off);
		if (n == 0)
			errno = ENODATA;
		if (n <= 0)
			reader_die("pread");
		buf = (char *)buf + n;
		len -= (uint64_t)n;
		off += (uint64_t)n;
	}
}

void *reader_memory(uint64_t len)
{
	enum { HUGE_BYTES = 2 << 20 };
	len = (len + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	void *memory = aligned_alloc(HUGE_BYTES, len);
	if (!memory)
		reader_die("memory");
	madvise(memory, len, MADV_HUGEPAGE);
	memset(memory, 0, len);
	return memory;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_run(const char *pattern, struct run *run)
{
	printf("{\"pattern\":\"%s\",\"seconds\":%.6f,\"bytes\":%llu,\"gbps\":%.4f,\"hash\":\"%016llx\"", pattern,
	       run->seconds, (unsigned long long)run->bytes, (double)run->bytes / run->seconds / 1e9,
	       (unsigned long long)run->hash);
	if (run->latency) {
		qsort(run->latency, run->count, sizeof(*run->latency), by_value);
		printf(",\"p50_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.2f", run->latency[run->count / 2] * 1e6,
		       run->latency[run->count * 99 / 100] * 1e6, run->latency[run->count - 1] * 1e6);
	}
	puts("}");
}

/* A number, perhaps with K, M or G. 0: it is none. */
static uint64_t parse_size(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);
	const char *unit = *end ? strchr("KMG", *end) : NULL;

	if (*end && (!unit || end[1]))
		return 0;
	return *end ? value << 10 * (*end == 'K' ? 1 : *end == 'M' ? 2 : 3) : value;
}

static int usage(void)
{
	fputs("usage: reader PATTERN [-b REQUEST] [-s STRIDE] [-n COUNT] [-w WORKERS] [-W] [-d OTHER] FILE...\n"
	      "       reader resident|evict|load|wake FILE... | touch SIZE | --list\n",
	      stderr);
	return 2;
}

/* Without a file left over, or with a bad number: false. */
static bool parse(int argc, char **argv, struct run *run, bool *warm_ret, const char **drain_ret)
{
	int c;

	*run = (struct run){.request = 1 << 20, .stride = 16 << 10, .count = 1000, .nr_workers = 1};
	while ((c = getopt(argc, argv, "b:s:n:w:Wd:")) >= 0) {
		uint64_t value = c == 'W' || c == 'd' ? 1 : c == '?' ? 0 : parse_size(optarg);
		if (!value || (c == 'w' && value > 1024))
			return false;
		if (c == 'b')
			run->request = value;
		else if (c == 's')
			run->stride = value;
		else if (c == 'n')
			run->count = value;
		else if (c == 'w')
			run->nr_workers = (int)value;
		else if (c == 'd')
			*drain_ret = optarg;
		else
			*warm_ret = true;
	}
	run->nr_files = argc - optind;
	run->file = calloc((size_t)run->nr_files + 1, sizeof(*run->file));
	for (int i = 0; run->file && i < run->nr_files; i++) {
		struct stat st;
		run->file[i].path = argv[optind + i];
		if (stat(run->file[i].path, &st))
			reader_die(run->file[i].path);
		run->file[i].size = (uint64_t)st.st_size;
	}
	return run->file && run->nr_files > 0;
}

static const struct pattern *find_pattern(const char *name)
{
	const struct pattern *pattern = reader_patterns;
	while (pattern->name && strcmp(pattern->name, name) != 0)
		pattern++;
	return pattern->name ? pattern : NULL;
}

int main(int argc, char **argv)
{
	const char *other = NULL;
	bool warm = false;
	struct run run;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (const struct pattern *p = reader_patterns; p->name; p++)
			printf("%-10s %s\n", p->name, p->help);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "touch")) {
		free(reader_memory(parse_size(argv[2])));
		return 0;
	}
	if (argc < 3 || !parse(argc - 1, argv + 1, &run, &warm, &other))
		return usage();
	if (!strcmp(argv[1], "resident"))
		return reader_resident(run.file, run.nr_files);
	if (!strcmp(argv[1], "evict"))
		return reader_evict(run.file, run.nr_files);
	if (!strcmp(argv[1], "load"))
		return reader_load(run.file, run.nr_files);
	if (!strcmp(argv[1], "wake"))
		return reader_wake(run.file, run.nr_files);
	const struct pattern *pattern = find_pattern(argv[1]);
	if (!pattern)
		return usage();
	if (warm && reader_load(run.file, run.nr_files))
		return 1;
	if (other)
		reader_wake(&(struct target){.path = other}, 1);
	pattern->run(&run);
	print_run(pattern->name, &run);
	return 0;
}
