/* access.h - shared by the access programs: two descriptors of one content, and how to say that they differ.
 *
 *     access ORIGINAL MOUNTED [PATTERN...]     all patterns when none is named; `access --list` prints them
 *
 * ORIGINAL lies on an ordinary file system and is believed; MOUNTED is read by each pattern and compared. Silent and 0
 * when all agree, else one line and 1. A kernel that lacks an interface (io_uring, libaio) is said on standard output.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	const char *path;	/* the mounted file */
	const uint8_t *want;	/* the original, mapped; NULL when it is empty */
	const struct stat *had; /* its attributes */
	uint64_t size;
	const char *pattern; /* the one that runs */
};

struct pattern {
	const char *name;
	void (*run)(const struct file *file);
};

/* Ends the process, so it may be called in any thread or child. */
#define FAIL(file, ...)                                                                                                \
	do {                                                                                                           \
		fprintf(stderr, "FAIL %s: %s: ", (file)->path, (file)->pattern);                                       \
		fprintf(stderr, __VA_ARGS__);                                                                          \
		fputc('\n', stderr);                                                                                   \
		_exit(1);                                                                                              \
	} while (0)

#define CHECK_SYS(file, cond, what)                                                                                    \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			FAIL(file, "%s: %s", what, strerror(errno));                                                   \
	} while (0)

static inline uint64_t rand_next(uint64_t *state)
{
	uint64_t x = *state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return (x * 0x2545F4914F6CDD1Dull) >> 11;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Bytes that a read of len at off must give. */
static inline uint64_t expected(const struct file *file, uint64_t off, uint64_t len)
{
	return off >= file->size ? 0 : min_u64(len, file->size - off);
}

static inline void same(const struct file *file, const void *got, uint64_t off, uint64_t len)
{
	if (!len || !memcmp(got, file->want + off, len))
		return;
	uint64_t i = 0;
	while (((const uint8_t *)got)[i] == file->want[off + i])
		i++;
	FAIL(file, "byte %llu is %02x, not %02x", (unsigned long long)(off + i), ((const uint8_t *)got)[i],
	     file->want[off + i]);
}

static inline int open_file(const struct file *file, int flags)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | flags);
	CHECK_SYS(file, fd >= 0, "open");
	return fd;
}

/* One pread that must be complete, short only at the end of the file. */
static inline void check_pread(const struct file *file, int fd, void *buf, uint64_t off, uint64_t len)
{
	ssize_t got = pread(fd, buf, len, (off_t)off);
	CHECK_SYS(file, got >= 0, "pread");
	if ((uint64_t)got != expected(file, off, len))
		FAIL(file, "pread of %llu at %llu gives %zd", (unsigned long long)len, (unsigned long long)off, got);
	same(file, buf, off, (uint64_t)got);
}

static inline void *get_memory(const struct file *file, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK_SYS(file, p != MAP_FAILED, "mmap of memory");
	return p;
}

static inline int access_main(int argc, char **argv, const struct pattern *pattern, size_t nr_patterns)
{
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < nr_patterns; i++)
			puts(pattern[i].name);
		return 0;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: access ORIGINAL MOUNTED [PATTERN...] | --list\n");
		return 2;
	}
	struct stat had;
	struct file file = {.path = argv[2], .pattern = "original"};
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	CHECK_SYS(&file, fd >= 0 && !fstat(fd, &had), argv[1]);
	file.had = &had;
	file.size = (uint64_t)had.st_size;
	if (file.size) {
		file.want = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
		CHECK_SYS(&file, file.want != MAP_FAILED, "mmap of the original");
	}
	close(fd);
	for (size_t i = 0; i < nr_patterns; i++) {
		bool wanted = argc == 3;
		for (int a = 3; a < argc; a++)
			wanted |= !strcmp(argv[a], pattern[i].name);
		file.pattern = pattern[i].name;
		if (wanted)
			pattern[i].run(&file);
	}
	return 0;
}

#endif
