/* mixed_reader.c - threads read a mounted file in random ways, with advice to the kernel in between, and compare.
 *
 *     mixed_reader SEED THREADS OPERATIONS ORIGINAL MOUNTED
 *
 * Half of the threads share one descriptor. The operations of a thread follow from the seed and its number alone; a
 * difference is reported with the seed, the thread and the number of its operation.
 */
#include "access.h"

#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum { PAGE = 4096, MAX_LEN_LOG2 = 21, MAX_RUN = 24, BUF = (2 << MAX_LEN_LOG2) + 2 * PAGE };

struct worker {
	pthread_t id;
	struct file file; /* its pattern is `what` */
	char what[96];
	uint64_t seed0, number, nr_operations, state;
	int shared_fd; /* -1: its own */
	int fd, direct_fd;
	const uint8_t *map; /* of the whole file */
	uint8_t *buf;
};

static uint64_t below(struct worker *w, uint64_t n)
{
	return rand_next(&w->state) % n;
}

/* Any length up to 4 MiB; every power of two is as likely. */
static uint64_t any_len(struct worker *w)
{
	return below(w, 2ull << below(w, MAX_LEN_LOG2 + 1));
}

/* Most lie in the file, some near its end or behind it. */
static uint64_t any_off(struct worker *w)
{
	uint64_t kind = below(w, 16), size = w->file.size;
	if (kind == 0)
		return size - min_u64(size, below(w, 3 * PAGE));
	return below(w, kind == 1 ? size + size / 8 : size);
}

static int any_fd(struct worker *w)
{
	return below(w, 4) ? w->fd : w->direct_fd;
}

static void read_at(struct worker *w, int fd, uint64_t off, uint64_t len)
{
	check_pread(&w->file, fd, w->buf + below(w, 2) * below(w, PAGE), off, len);
}

static void read_once(struct worker *w)
{
	read_at(w, w->fd, any_off(w), any_len(w));
}

static void read_direct(struct worker *w)
{
	uint64_t align = below(w, 3) ? 512 << below(w, 4) : 1;
	read_at(w, w->direct_fd, any_off(w) / align * align, (any_len(w) + align - 1) / align * align);
}

/* In order, with a constant gap or none. */
static void read_run(struct worker *w)
{
	uint64_t off = any_off(w), len = 1 + any_len(w) / 4, gap = below(w, 2) ? 0 : any_len(w) / 4;
	int fd = any_fd(w);
	for (uint64_t n = 1 + below(w, MAX_RUN); n; n--, off += len + gap)
		read_at(w, fd, off, len);
}

static void read_backwards(struct worker *w)
{
	uint64_t off = any_off(w), len = 1 + any_len(w) / 4;
	int fd = any_fd(w);
	for (uint64_t n = 1 + below(w, MAX_RUN); n && off >= len; n--, off -= len)
		read_at(w, fd, off - len, len);
}

/* Into several pieces of memory with one call. */
static void read_vector(struct worker *w)
{
	enum { PIECES = 5 };
	struct iovec piece[PIECES];
	uint64_t off = any_off(w), len = 0;
	for (int i = 0; i < PIECES; i++) {
		piece[i] = (struct iovec){w->buf + len, any_len(w) / PIECES};
		len += piece[i].iov_len;
	}
	ssize_t got = preadv(any_fd(w), piece, PIECES, (off_t)off);
	CHECK_SYS(&w->file, got >= 0, "preadv");
	if ((uint64_t)got != expected(&w->file, off, len))
		FAIL(&w->file, "preadv of %llu at %llu gives %zd", (unsigned long long)len, (unsigned long long)off,
		     got);
	same(&w->file, w->buf, off, (uint64_t)got);
}

/* What the kernel moves by itself: pages into a pipe, bytes into a file in memory. It may move less than it was asked
 * for, but never nothing. */
static void move(struct worker *w, bool into_pipe)
{
	int end[2] = {-1, -1};
	uint64_t first = any_off(w), want = expected(&w->file, first, any_len(w));
	loff_t off = (loff_t)first;
	if (into_pipe)
		CHECK_SYS(&w->file, !pipe2(end, O_CLOEXEC), "pipe");
	else
		CHECK_SYS(&w->file, (end[0] = end[1] = memfd_create("moved", MFD_CLOEXEC)) >= 0, "memfd_create");
	ssize_t got =
		into_pipe ? splice(any_fd(w), &off, end[1], NULL, want, 0) : sendfile(end[1], any_fd(w), &off, want);
	CHECK_SYS(&w->file, got >= 0, into_pipe ? "splice" : "sendfile");
	if ((uint64_t)got > want || (want && !got) || (uint64_t)off != first + (uint64_t)got)
		FAIL(&w->file, "%llu bytes at %llu were to be moved, %zd were", (unsigned long long)want,
		     (unsigned long long)first, got);
	for (uint64_t done = 0; done < (uint64_t)got;) {
		ssize_t part = into_pipe ? read(end[0], w->buf + done, (uint64_t)got - done)
					 : pread(end[0], w->buf + done, (uint64_t)got - done, (off_t)done);
		CHECK_SYS(&w->file, part > 0, "read what was moved");
		done += (uint64_t)part;
	}
	same(&w->file, w->buf, first, (uint64_t)got);
	close(end[0]);
	if (into_pipe)
		close(end[1]);
}

static void move_into_pipe(struct worker *w)
{
	move(w, true);
}

static void move_into_file(struct worker *w)
{
	move(w, false);
}

static void touch(struct worker *w)
{
	uint64_t off = below(w, w->file.size);
	same(&w->file, w->map + off, off, min_u64(any_len(w) / 2, w->file.size - off));
}

static void touch_pages(struct worker *w)
{
	for (int i = 0; i < 32; i++) {
		uint64_t off = below(w, w->file.size);
		same(&w->file, w->map + off, off, 1);
	}
}

static void map_window(struct worker *w)
{
	uint64_t off = below(w, w->file.size) / PAGE * PAGE, len = min_u64(1 + any_len(w), w->file.size - off);
	int flags = (below(w, 2) ? MAP_SHARED : MAP_PRIVATE) | (below(w, 4) ? 0 : MAP_POPULATE);
	uint8_t *p = mmap(NULL, len, PROT_READ, flags, w->fd, (off_t)off);
	CHECK_SYS(&w->file, p != MAP_FAILED, "mmap");
	same(&w->file, p, off, len);
	munmap(p, len);
}

static void advise_file(struct worker *w)
{
	static const int advice[] = {POSIX_FADV_NORMAL,	  POSIX_FADV_RANDOM,   POSIX_FADV_SEQUENTIAL,
				     POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED, POSIX_FADV_NOREUSE};
	errno = posix_fadvise(w->fd, (off_t)any_off(w), (off_t)(below(w, 4) ? any_len(w) : 0), advice[below(w, 6)]);
	CHECK_SYS(&w->file, !errno, "fadvise");
}

static void advise_mapping(struct worker *w)
{
	static const int advice[] = {MADV_NORMAL,   MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
				     MADV_DONTNEED, MADV_COLD,	 MADV_PAGEOUT,	  MADV_POPULATE_READ};
	uint64_t off = below(w, w->file.size) / PAGE * PAGE, len = min_u64(1 + any_len(w), w->file.size - off);
	int got = madvise((void *)(uintptr_t)(w->map + off), len, advice[below(w, 8)]);
	CHECK_SYS(&w->file, !got || errno == EINVAL, "madvise"); /* EINVAL: older than the advice */
}

/* Everything out of the page cache that nobody has mapped, so that what comes goes to the daemon. */
static void drop(struct worker *w)
{
	madvise((void *)(uintptr_t)w->map, w->file.size, MADV_DONTNEED);
	errno = posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
	CHECK_SYS(&w->file, !errno, "fadvise");
}

static void read_ahead(struct worker *w)
{
	CHECK_SYS(&w->file, !readahead(w->fd, (off_t)any_off(w), any_len(w)), "readahead");
}

static void reopen(struct worker *w)
{
	close(w->direct_fd);
	w->direct_fd = open_file(&w->file, O_DIRECT);
	if (w->shared_fd >= 0)
		return;
	close(w->fd);
	w->fd = open_file(&w->file, 0);
}

static void *work(void *worker_void)
{
	static const struct {
		const char *name;
		void (*run)(struct worker *w);
		unsigned share;
	} operations[] = {
		{"read", read_once, 8},	     {"direct", read_direct, 6},    {"run", read_run, 6},
		{"back", read_backwards, 3}, {"touch", touch, 6},	    {"pages", touch_pages, 6},
		{"window", map_window, 4},   {"fadvise", advise_file, 4},   {"madvise", advise_mapping, 4},
		{"drop", drop, 3},	     {"readahead", read_ahead, 2},  {"reopen", reopen, 2},
		{"vector", read_vector, 4},  {"splice", move_into_pipe, 3}, {"sendfile", move_into_file, 3},
	};
	struct worker *w = worker_void;
	uint64_t shares = 0;

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		shares += operations[i].share;
	w->state = w->seed0 * 1000003 + w->number * 7919 + 1;
	w->buf = get_memory(&w->file, BUF);
	w->direct_fd = open_file(&w->file, O_DIRECT);
	w->fd = w->shared_fd >= 0 ? w->shared_fd : open_file(&w->file, 0);
	w->map = mmap(NULL, w->file.size, PROT_READ, w->number % 2 ? MAP_SHARED : MAP_PRIVATE, w->fd, 0);
	CHECK_SYS(&w->file, w->map != MAP_FAILED, "mmap");
	for (uint64_t n = 0; n < w->nr_operations; n++) {
		uint64_t ticket = below(w, shares);
		size_t i = 0;
		for (; ticket >= operations[i].share; i++)
			ticket -= operations[i].share;
		snprintf(w->what, sizeof(w->what), "seed %llu, thread %llu, operation %llu, %s",
			 (unsigned long long)w->seed0, (unsigned long long)w->number, (unsigned long long)n,
			 operations[i].name);
		operations[i].run(w);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t nr[3];
	struct file file = {.pattern = "start"};
	struct stat st;

	if (argc != 6) {
		fprintf(stderr, "usage: mixed_reader SEED THREADS OPERATIONS ORIGINAL MOUNTED\n");
		return 2;
	}
	for (int i = 0; i < 3; i++)
		nr[i] = strtoull(argv[i + 1], NULL, 10);
	file.path = argv[5];
	int fd = open(argv[4], O_RDONLY | O_CLOEXEC);
	CHECK_SYS(&file, fd >= 0 && !fstat(fd, &st) && st.st_size > 0, argv[4]);
	file.size = (uint64_t)st.st_size;
	file.want = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
	struct worker *worker = calloc(nr[1], sizeof(*worker));
	CHECK_SYS(&file, file.want != MAP_FAILED && worker, "memory");
	close(fd);
	int shared_fd = open_file(&file, 0);
	for (uint64_t i = 0; i < nr[1]; i++) {
		struct worker *w = &worker[i];
		*w = (struct worker){.file = file, .seed0 = nr[0], .number = i, .nr_operations = nr[2]};
		w->file.pattern = w->what;
		w->shared_fd = i % 4 < 2 ? shared_fd : -1;
		errno = pthread_create(&w->id, NULL, work, w);
		CHECK_SYS(&file, !errno, "pthread_create");
	}
	for (uint64_t i = 0; i < nr[1]; i++)
		pthread_join(worker[i].id, NULL);
	free(worker);
	return 0;
}
