/* reader_patterns.c - the ways to read, one function each; see reader.h for what is timed. */
#include "reader.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PAGE = 4096, VERIFY_BYTES = 4 << 20 };

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- looking at what was read ---------------------------------------------------------------------------------- */

/* One word a page, weighted by its place, so that the sum is the same in any order of reading. */
static uint64_t look(const void *bytes, uint64_t len, uint64_t off)
{
	uint64_t sum = 0, word;
	for (uint64_t i = 0; i + sizeof(word) <= len; i += PAGE) {
		memcpy(&word, (const unsigned char *)bytes + i, sizeof(word));
		sum += word * (2 * (off + i) + 1);
	}
	return sum;
}

static void add_bytes(struct run *run, const void *bytes, uint64_t len)
{
	run->hash = XXH3_64bits_withSeed(bytes, len, run->hash);
}

/* All of a file, by the descriptor that read it: what lies in the page cache is what it brought. */
static void add_file(struct run *run, int fd, uint64_t size)
{
	unsigned char *buf = reader_memory(VERIFY_BYTES);
	for (uint64_t off = 0; off < size; off += VERIFY_BYTES) {
		uint64_t len = min_u64(VERIFY_BYTES, size - off);
		reader_pread(fd, buf, len, off);
		add_bytes(run, buf, len);
	}
	free(buf);
}

/* ---- in order -------------------------------------------------------------------------------------------------- */

/* One file after the other with calls of run->request bytes. */
static void read_in_order(struct run *run, int flags)
{
	unsigned char *buf = reader_memory(run->request);
	int *fd = calloc((size_t)run->nr_files, sizeof(*fd));
	uint64_t sum = 0;

	if (!fd)
		reader_die("memory");
	double start = reader_now();
	for (int i = 0; i < run->nr_files; i++) {
		fd[i] = reader_open(&run->file[i], flags);
		for (uint64_t off = 0; off < run->file[i].size; off += run->request) {
			uint64_t len = min_u64(run->request, run->file[i].size - off);
			/* By O_DIRECT the last call asks for more than there is, as it must. */
			ssize_t n = pread(fd[i], buf, flags & O_DIRECT ? run->request : len, (off_t)off);
			if (n != (ssize_t)len)
				reader_die(run->file[i].path);
			sum += look(buf, len, off);
		}
		run->bytes += run->file[i].size;
	}
	run->seconds = reader_now() - start;
	for (int i = 0; i < run->nr_files; i++) {
		if (flags & O_DIRECT) { /* what it brought is gone: read again, and buffered, with any length */
			close(fd[i]);
			fd[i] = reader_open(&run->file[i], 0);
		}
		add_file(run, fd[i], run->file[i].size);
		close(fd[i]);
	}
	free(fd);
	run->hash += sum;
}

static void run_seq(struct run *run)
{
	read_in_order(run, 0);
}

static void run_direct(struct run *run)
{
	read_in_order(run, O_DIRECT);
}

static void *map_file(int fd, uint64_t size)
{
	void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		reader_die("mmap");
	return map;
}

static uint64_t look_at_mapped(const struct target *file)
{
	int fd = reader_open(file, 0);
	unsigned char *map = map_file(fd, file->size);
	uint64_t sum = look(map, file->size, 0);
	munmap(map, file->size);
	close(fd);
	return sum;
}

static void run_mmap(struct run *run)
{
	double start = reader_now();
	int fd = reader_open(&run->file[0], 0);
	unsigned char *map = map_file(fd, run->file[0].size);
	uint64_t sum = look(map, run->file[0].size, 0);
	run->seconds = reader_now() - start;
	run->bytes = run->file[0].size;
	add_file(run, fd, run->file[0].size);
	run->hash += sum;
	munmap(map, run->file[0].size);
	close(fd);
}

/* ---- several at once ------------------------------------------------------------------------------------------- */

struct worker {
	struct run *run;
	pthread_t thread;
	unsigned char *buf;
	int fd;
	const struct target *file;
	atomic_ullong *next; /* the first piece of the file that nobody reads */
	uint64_t sum;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t request = w->run->request, off;

	while ((off = atomic_fetch_add(w->next, request)) < w->file->size) {
		uint64_t len = min_u64(request, w->file->size - off);
		reader_pread(w->fd, w->buf, len, off);
		w->sum += look(w->buf, len, off);
	}
	return NULL;
}

/* nr threads; thread i reads file i modulo the number of files, taking turns with others on the same descriptor. */
static void run_workers(struct run *run, int nr)
{
	struct worker *worker = calloc((size_t)nr, sizeof(*worker));
	atomic_ullong *next = calloc((size_t)run->nr_files, sizeof(*next));
	int *fd = calloc((size_t)run->nr_files, sizeof(*fd));

	if (!worker || !next || !fd)
		reader_die("memory");
	for (int i = 0; i < nr; i++)
		worker[i].buf = reader_memory(run->request);
	double start = reader_now();
	for (int i = 0; i < run->nr_files; i++) {
		fd[i] = reader_open(&run->file[i], 0);
		run->bytes += run->file[i].size;
	}
	for (int i = 0; i < nr; i++) {
		struct worker *w = &worker[i];
		w->run = run;
		w->file = &run->file[i % run->nr_files];
		w->fd = fd[i % run->nr_files];
		w->next = &next[i % run->nr_files];
		if (pthread_create(&w->thread, NULL, work, w))
			reader_die("thread");
	}
	for (int i = 0; i < nr; i++)
		pthread_join(worker[i].thread, NULL);
	run->seconds = reader_now() - start;
	uint64_t sum = 0;
	for (int i = 0; i < nr; i++)
		sum += worker[i].sum;
	for (int i = 0; i < run->nr_files; i++) {
		add_file(run, fd[i], run->file[i].size);
		close(fd[i]);
	}
	run->hash += sum;
	free(worker);
	free(next);
	free(fd);
}

static void run_threads(struct run *run)
{
	run->nr_files = 1;
	run_workers(run, run->nr_workers);
}

static void run_files(struct run *run)
{
	run_workers(run, run->nr_files);
}

/* Each process maps the first file and looks at all of it. */
static void run_procs(struct run *run)
{
	const struct target *file = &run->file[0];
	double start = reader_now();

	for (int i = 0; i < run->nr_workers; i++) {
		pid_t child = fork();
		if (child < 0)
			reader_die("fork");
		if (!child) {
			volatile uint64_t sum = look_at_mapped(file);
			(void)sum;
			_exit(0);
		}
	}
	for (int i = 0; i < run->nr_workers; i++) {
		int status;
		if (wait(&status) < 0 || status)
			reader_die("a process");
	}
	run->seconds = reader_now() - start;
	run->bytes = file->size * (uint64_t)run->nr_workers;
	int fd = reader_open(file, 0);
	add_file(run, fd, file->size);
	close(fd);
}

/* ---- here and there -------------------------------------------------------------------------------------------- */

/* Where the next operation goes: the same places in every run, each the start of a page. */
static uint64_t next_place(uint64_t *state, uint64_t size, uint64_t request)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	uint64_t nr = size < request ? 1 : (size - request) / PAGE + 1;
	return (*state * 0x2545f4914f6cdd1du >> 16) % nr * PAGE;
}

static const uint64_t seed = 0x9e3779b97f4a7c15u;

static void latency_begin(struct run *run)
{
	run->latency = calloc(run->count, sizeof(*run->latency));
	if (!run->latency)
		reader_die("memory");
}

static void run_random(struct run *run)
{
	unsigned char *buf = reader_memory(run->request);
	const struct target *file = &run->file[0];
	int fd = reader_open(file, 0);
	uint64_t state = seed;

	latency_begin(run);
	for (uint64_t i = 0; i < run->count; i++) {
		uint64_t off = next_place(&state, file->size, run->request),
			 len = min_u64(run->request, file->size - off);
		double start = reader_now();
		reader_pread(fd, buf, len, off);
		run->latency[i] = reader_now() - start;
		run->seconds += run->latency[i];
		run->bytes += len;
		add_bytes(run, buf, len);
	}
	close(fd);
}

/* Page faults where the kernel was told not to read around them. */
static void run_faults(struct run *run)
{
	const struct target *file = &run->file[0];
	int fd = reader_open(file, 0);
	const unsigned char *map = map_file(fd, file->size);
	uint64_t state = seed, sum = 0;

	if (madvise((void *)(uintptr_t)map, file->size, MADV_RANDOM))
		reader_die("madvise");
	latency_begin(run);
	for (uint64_t i = 0; i < run->count; i++) {
		uint64_t off = next_place(&state, file->size, PAGE);
		double start = reader_now();
		sum += look(map + off, min_u64(PAGE, file->size - off), off);
		run->latency[i] = reader_now() - start;
		run->seconds += run->latency[i];
		run->bytes += min_u64(PAGE, file->size - off);
	}
	run->hash = sum;
	munmap((void *)(uintptr_t)map, file->size);
	close(fd);
}

/* Of every stride the first piece, out of a mapping: one rank's columns of a matrix. */
static void run_strided(struct run *run)
{
	const struct target *file = &run->file[0];
	uint64_t nr = (file->size + run->stride - 1) / run->stride;
	unsigned char *out = reader_memory(nr * run->request);

	double start = reader_now();
	int fd = reader_open(file, 0);
	const unsigned char *map = map_file(fd, file->size);
	for (uint64_t off = 0; off < file->size; off += run->stride) {
		uint64_t len = min_u64(run->request, file->size - off);
		memcpy(out + run->bytes, map + off, len);
		run->bytes += len;
	}
	run->seconds = reader_now() - start;
	add_bytes(run, out, run->bytes);
	munmap((void *)(uintptr_t)map, file->size);
	close(fd);
}

/* Until the first byte is there. */
static void run_open(struct run *run)
{
	unsigned char byte;
	double start = reader_now();
	int fd = reader_open(&run->file[0], 0);
	reader_pread(fd, &byte, 1, 0);
	run->seconds = reader_now() - start;
	run->bytes = 1;
	add_bytes(run, &byte, 1);
	close(fd);
}

const struct pattern reader_patterns[] = {
	{"seq", "read() in order, -b bytes a call", run_seq},
	{"direct", "the same with O_DIRECT", run_direct},
	{"mmap", "a mapping, each page looked at in order", run_mmap},
	{"threads", "-w threads on one descriptor, taking turns at pieces of -b bytes", run_threads},
	{"files", "a thread a file, -b bytes a call", run_files},
	{"procs", "-w processes map one file, each looks at every page", run_procs},
	{"random", "-n preads of -b bytes anywhere, latency of each", run_random},
	{"faults", "-n page faults anywhere after MADV_RANDOM, latency of each", run_faults},
	{"strided", "of every -s bytes the first -b, copied out of a mapping", run_strided},
	{"open", "open and read one byte", run_open},
	{NULL, NULL, NULL},
};
