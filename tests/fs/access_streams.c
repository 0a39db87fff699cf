/* access_streams.c - readers that go through a mounted file in order, several at once, each byte once (access.h).
 *
 * Every pattern reads the whole file, through the page cache and, under the name with -direct, past it.
 */
#include "access.h"

#include <pthread.h>
#include <sys/wait.h>

enum { KIB = 1024, MIB = 1024 * KIB, THREADS = 8, PROCESSES = 4 };

struct stream {
	const struct file *file;
	int fd;
	uint64_t begin, end, step, piece;
};

/* [begin, begin + piece), the same `step` further on, and so forth to the end. */
static void *read_stream(void *stream_void)
{
	const struct stream *s = stream_void;
	uint8_t *buf = get_memory(s->file, s->piece);
	for (uint64_t off = s->begin; off < s->end; off += s->step)
		check_pread(s->file, s->fd, buf, off, min_u64(s->piece, s->end - off));
	munmap(buf, s->piece);
	return NULL;
}

/* Part i of nr equal parts; borders lie anywhere. */
static uint64_t part(const struct file *file, uint64_t i, uint64_t nr)
{
	return i == nr ? file->size : file->size / nr * i;
}

/* Little at a time: who waits for every answer gains most from what is decoded ahead. */
static void one(const struct file *file, int flags)
{
	struct stream s = {file, open_file(file, flags), 0, file->size, 128 * KIB, 128 * KIB};
	read_stream(&s);
	close(s.fd);
}

static void run_threads(struct stream *s)
{
	pthread_t thread[THREADS];
	for (int i = 0; i < THREADS; i++) {
		errno = pthread_create(&thread[i], NULL, read_stream, &s[i]);
		CHECK_SYS(s->file, !errno, "pthread_create");
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	close(s->fd);
}

/* Eight threads on one descriptor, each with an eighth of the file. */
static void threads(const struct file *file, int flags)
{
	struct stream s[THREADS];
	int fd = open_file(file, flags);
	for (uint64_t i = 0; i < THREADS; i++)
		s[i] = (struct stream){file, fd, part(file, i, THREADS), part(file, i + 1, THREADS), 300000, 300000};
	run_threads(s);
}

/* The same taking turns: the piece after a thread's own is its neighbour's. */
static void turns(const struct file *file, int flags)
{
	struct stream s[THREADS];
	int fd = open_file(file, flags);
	for (uint64_t i = 0; i < THREADS; i++)
		s[i] = (struct stream){file, fd, i * MIB, file->size, THREADS * MIB, MIB};
	run_threads(s);
}

/* Processes that share one descriptor. */
static void forks(const struct file *file, int flags)
{
	int fd = open_file(file, flags), status;
	for (uint64_t i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();
		CHECK_SYS(file, pid >= 0, "fork");
		if (pid)
			continue;
		struct stream s = {file, fd, part(file, i, PROCESSES), part(file, i + 1, PROCESSES), MIB, MIB};
		read_stream(&s);
		_exit(0);
	}
	while (wait(&status) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			_exit(1); /* the child has said why */
	close(fd);
}

static void backwards(const struct file *file, int flags)
{
	int fd = open_file(file, flags);
	uint8_t *buf = get_memory(file, MIB);
	for (uint64_t end = file->size; end; end -= min_u64(end, MIB)) {
		uint64_t len = min_u64(end, MIB);
		check_pread(file, fd, buf, end - len, len);
	}
	munmap(buf, MIB);
	close(fd);
}

/* Two streams on one descriptor, turn by turn: one takes a megabyte, the other 64 KiB. */
static void two_speeds(const struct file *file, int flags)
{
	int fd = open_file(file, flags);
	uint8_t *buf = get_memory(file, MIB);
	uint64_t slow_begin = file->size / 17 * 16, fast = 0, slow = slow_begin;
	while (fast < slow_begin || slow < file->size) {
		uint64_t fast_len = min_u64(MIB, slow_begin - fast), slow_len = min_u64(64 * KIB, file->size - slow);
		check_pread(file, fd, buf, fast, fast_len);
		check_pread(file, fd, buf, slow, slow_len);
		fast += fast_len;
		slow += slow_len;
	}
	munmap(buf, MIB);
	close(fd);
}

#define BOTH(name)                                                                                                     \
	static void name##_cached(const struct file *file)                                                             \
	{                                                                                                              \
		name(file, 0);                                                                                         \
	}                                                                                                              \
	static void name##_direct(const struct file *file)                                                             \
	{                                                                                                              \
		name(file, O_DIRECT);                                                                                  \
	}
BOTH(one)
BOTH(threads)
BOTH(turns)
BOTH(forks)
BOTH(backwards)
BOTH(two_speeds)

static void mapped(const struct file *file)
{
	int fd = open_file(file, 0);
	uint8_t *p = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK_SYS(file, p != MAP_FAILED, "mmap");
	close(fd);
	same(file, p, 0, file->size);
	munmap(p, file->size);
}

int main(int argc, char **argv)
{
	static const struct pattern patterns[] = {
		{"one", one_cached},
		{"one-direct", one_direct},
		{"mapped", mapped},
		{"threads", threads_cached},
		{"threads-direct", threads_direct},
		{"turns", turns_cached},
		{"turns-direct", turns_direct},
		{"forks", forks_cached},
		{"forks-direct", forks_direct},
		{"backwards", backwards_cached},
		{"backwards-direct", backwards_direct},
		{"two-speeds", two_speeds_cached},
		{"two-speeds-direct", two_speeds_direct},
	};
	return access_main(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
