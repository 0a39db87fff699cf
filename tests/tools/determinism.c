/* determinism.c - encodes each file at every level, with every variant this CPU has, with 1 and with 4 threads: the
 * containers of a level must be the same, byte for byte, and decode to the file with every variant. Prints what it
 * compared.
 */
#include "wfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes {
	const unsigned char *data;
	size_t len;
};

static _Noreturn void fail(const char *path, const char *cpu, unsigned threads, const char *what)
{
	fprintf(stderr, "determinism: %s, %s, %u threads: %s\n", path, cpu, threads, what);
	exit(1);
}

static struct bytes map(int fd)
{
	struct stat st;
	struct bytes b;

	if (fstat(fd, &st))
		abort();
	b.len = (size_t)st.st_size;
	b.data = b.len ? mmap(NULL, b.len, PROT_READ, MAP_SHARED, fd, 0) : NULL;
	if (b.data == MAP_FAILED)
		abort();
	return b;
}

static int encode(int src, const char *path, enum wfs_level level, enum wfs_cpu cpu, unsigned threads)
{
	struct wfs_encode_opts opts = {
		.level = level, .nr_threads = threads, .cpu = cpu, .mtime_sec = 1, .mtime_nsec = 2};
	struct wfs_encode_result result;
	struct wfs_error err = {0};
	int dst = memfd_create("container", MFD_CLOEXEC);

	if (dst < 0)
		abort();
	if (wfs_encode_file(src, dst, &opts, &result, &err) != WFS_OK)
		fail(path, wfs_cpu_name(cpu), threads, err.reason);
	return dst;
}

static void verify(int fd, const char *path, enum wfs_cpu cpu, unsigned threads)
{
	struct wfs_reader_opts opts = {.cpu = cpu};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};

	if (wfs_reader_open(fd, &opts, &reader, &err) != WFS_OK ||
	    wfs_reader_verify(reader, threads, NULL, NULL, &err) != WFS_OK)
		fail(path, wfs_cpu_name(cpu), threads, err.reason);
	wfs_reader_free(reader);
}

static void compare(const char *path, enum wfs_level level)
{
	int src = open(path, O_RDONLY | O_CLOEXEC), first = -1;
	struct bytes expected = {0};
	unsigned nr = 0;

	if (src < 0)
		fail(path, "-", 0, strerror(errno));
	for (int cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		if (!wfs_cpu_supported((enum wfs_cpu)cpu))
			continue;
		for (unsigned threads = 1; threads <= 4; threads += 3) {
			int dst = encode(src, path, level, (enum wfs_cpu)cpu, threads);
			struct bytes got = map(dst);

			if (first < 0) {
				first = dst;
				expected = got;
			} else {
				if (got.len != expected.len || memcmp(got.data, expected.data, got.len))
					fail(path, wfs_cpu_name((enum wfs_cpu)cpu), threads, "another container");
				munmap((void *)got.data, got.len);
				close(dst);
			}
			nr++;
		}
	}
	for (int cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++)
		for (unsigned threads = 1; wfs_cpu_supported((enum wfs_cpu)cpu) && threads <= 4; threads += 3)
			verify(first, path, (enum wfs_cpu)cpu, threads);
	printf("%s, level %s: %u equal containers of %zu bytes\n", path, wfs_level_name(level), nr, expected.len);
	munmap((void *)expected.data, expected.len);
	close(first);
	close(src);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		for (int level = 0; level < WFS_NR_LEVELS; level++)
			compare(argv[i], (enum wfs_level)level);
	return 0;
}
