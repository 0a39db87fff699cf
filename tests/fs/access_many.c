/* access_many.c - threads, processes and asynchronous queues read a mounted file at the same time (access.h). */
#include "access.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { KIB = 1024, MIB = 1024 * KIB, WORKERS = 8, DEPTH = 32, CHUNK = 8 * MIB };

struct job {
	const struct file *file;
	int fd; /* -1: each worker opens its own */
	const uint8_t *map;
	unsigned index;
};

static void in_threads(const struct file *file, int fd, const uint8_t *map, void *(*work)(void *))
{
	pthread_t thread[WORKERS];
	struct job job[WORKERS];
	for (unsigned i = 0; i < WORKERS; i++) {
		job[i] = (struct job){file, fd, map, i};
		errno = pthread_create(&thread[i], NULL, work, &job[i]);
		CHECK_SYS(file, !errno, "pthread_create");
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
}

/* Random places, then this worker's share of the file in order: as loaders divide a file among themselves. */
static void *read_share(void *job_void)
{
	const struct job *job = job_void;
	const struct file *file = job->file;
	int fd = job->fd >= 0 ? job->fd : open_file(file, job->index % 2 ? O_DIRECT : 0);
	uint8_t *buf = get_memory(file, 16 * MIB);
	uint64_t seed = 100 + job->index, step = file->size > 64 * MIB ? 16 * MIB : 100 * KIB;
	for (int i = 0; i < 100; i++) {
		uint64_t off = rand_next(&seed) % (file->size + 1);
		check_pread(file, fd, buf, off, rand_next(&seed) % (64 * KIB));
	}
	for (uint64_t off = job->index * step; off < file->size; off += WORKERS * step)
		check_pread(file, fd, buf, off, step);
	if (job->fd < 0)
		close(fd);
	munmap(buf, 16 * MIB);
	return NULL;
}

static void threads_one_fd(const struct file *file)
{
	int fd = open_file(file, 0);
	in_threads(file, fd, NULL, read_share);
	close(fd);
	fd = open_file(file, O_DIRECT);
	in_threads(file, fd, NULL, read_share);
	close(fd);
}

static void threads_many_fds(const struct file *file)
{
	in_threads(file, -1, NULL, read_share);
}

static void *fault_pages(void *job_void)
{
	const struct job *job = job_void;
	uint64_t seed = 200 + job->index, size = job->file->size;
	for (int i = 0; i < 2000; i++) {
		uint64_t off = rand_next(&seed) % size;
		uint64_t len = min_u64(1 + rand_next(&seed) % 9000, size - off);
		same(job->file, job->map + off, off, len);
	}
	return NULL;
}

static void threads_faults(const struct file *file)
{
	if (!file->size)
		return;
	for (int shared = 0; shared < 2; shared++) {
		int fd = open_file(file, 0);
		uint8_t *p = mmap(NULL, file->size, PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
		CHECK_SYS(file, p != MAP_FAILED, "mmap");
		CHECK_SYS(file, !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
		close(fd);
		in_threads(file, -1, p, fault_pages);
		munmap(p, file->size);
	}
}

static void wait_children(const struct file *file)
{
	int status;
	while (wait(&status) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			_exit(1); /* the child has said why */
	CHECK_SYS(file, errno == ECHILD, "wait");
}

/* Processes that share one descriptor: at their own offsets, then through its one position. */
static void forks(const struct file *file)
{
	uint64_t *total = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_SYS(file, total != MAP_FAILED, "mmap");
	int fd = open_file(file, 0);
	for (unsigned i = 0; i < 4; i++) {
		pid_t pid = fork();
		CHECK_SYS(file, pid >= 0, "fork");
		if (pid)
			continue;
		struct job job = {file, fd, NULL, i};
		read_share(&job);
		uint8_t *buf = get_memory(file, MIB);
		ssize_t got;
		while ((got = read(fd, buf, 77777)) > 0)
			__atomic_fetch_add(total, (uint64_t)got, __ATOMIC_SEQ_CST);
		_exit(got < 0);
	}
	wait_children(file);
	if (*total != file->size)
		FAIL(file, "processes on one position read %llu bytes", (unsigned long long)*total);
	close(fd);
	munmap(total, 4096);
}

/* A mapping made before the fork, read in the children. */
static void forks_mapping(const struct file *file)
{
	if (!file->size)
		return;
	int fd = open_file(file, 0);
	uint8_t *p = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK_SYS(file, p != MAP_FAILED, "mmap");
	close(fd);
	for (unsigned i = 0; i < 4; i++) {
		pid_t pid = fork();
		CHECK_SYS(file, pid >= 0, "fork");
		if (pid)
			continue;
		struct job job = {file, -1, p, i};
		fault_pages(&job);
		p[i] ^= 1; /* a private copy of the page for each */
		_exit(0);
	}
	wait_children(file);
	same(file, p, 0, min_u64(file->size, 64 * MIB));
	munmap(p, file->size);
}

/* Kernel asynchronous I/O with O_DIRECT, all chunks in flight, the last one rounded up past the end. */
static void libaio(const struct file *file)
{
	aio_context_t ctx = 0;
	if (syscall(SYS_io_setup, DEPTH, &ctx) < 0) {
		CHECK_SYS(file, errno == ENOSYS || errno == EPERM, "io_setup");
		puts("note: this kernel has no libaio");
		return;
	}
	int fd = open_file(file, O_DIRECT);
	uint64_t chunk = file->size > 64 * MIB ? CHUNK : 128 * KIB;
	uint8_t *buf = get_memory(file, DEPTH * chunk);
	for (uint64_t base = 0; base < file->size; base += DEPTH * chunk) {
		struct iocb cb[DEPTH], *list[DEPTH];
		struct io_event event[DEPTH];
		long nr = 0, got = 0;
		for (uint64_t off = base; off < file->size && nr < DEPTH; off += chunk, nr++) {
			cb[nr] = (struct iocb){.aio_fildes = (uint32_t)fd,
					       .aio_lio_opcode = IOCB_CMD_PREAD,
					       .aio_buf = (uint64_t)(uintptr_t)(buf + (uint64_t)nr * chunk),
					       .aio_nbytes = chunk,
					       .aio_offset = (int64_t)off,
					       .aio_data = off};
			list[nr] = &cb[nr];
		}
		CHECK_SYS(file, syscall(SYS_io_submit, ctx, nr, list) == nr, "io_submit");
		while (got < nr) {
			long n = syscall(SYS_io_getevents, ctx, 1, nr - got, event, NULL);
			CHECK_SYS(file, n > 0, "io_getevents");
			for (long i = 0; i < n; i++) {
				uint64_t off = event[i].data;
				if ((uint64_t)event[i].res != expected(file, off, chunk))
					FAIL(file, "aio at %llu gives %lld", (unsigned long long)off,
					     (long long)event[i].res);
				same(file, buf + (off - base), off, (uint64_t)event[i].res);
			}
			got += n;
		}
	}
	close(fd);
	syscall(SYS_io_destroy, ctx);
	munmap(buf, DEPTH * chunk);
}

/* The shared rings of one io_uring, by raw system calls: no liburing needed. */
struct ring {
	int fd;
	uint32_t *sq_tail, *sq_array, sq_mask, *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
};

static bool ring_open(const struct file *file, struct ring *ring)
{
	struct io_uring_params p = {0};
	ring->fd = (int)syscall(SYS_io_uring_setup, DEPTH, &p);
	if (ring->fd < 0) {
		CHECK_SYS(file, errno == ENOSYS || errno == EPERM, "io_uring_setup");
		return false;
	}
	size_t sq_bytes = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
	size_t cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
	uint8_t *sq = mmap(NULL, sq_bytes, prot, flags, ring->fd, IORING_OFF_SQ_RING);
	uint8_t *cq = mmap(NULL, cq_bytes, prot, flags, ring->fd, IORING_OFF_CQ_RING);
	ring->sqe = mmap(NULL, p.sq_entries * sizeof(*ring->sqe), prot, flags, ring->fd, IORING_OFF_SQES);
	CHECK_SYS(file, sq != MAP_FAILED && cq != MAP_FAILED && ring->sqe != MAP_FAILED, "mmap of the ring");
	ring->sq_tail = (uint32_t *)(sq + p.sq_off.tail);
	ring->sq_mask = *(uint32_t *)(sq + p.sq_off.ring_mask);
	ring->sq_array = (uint32_t *)(sq + p.sq_off.array);
	ring->cq_head = (uint32_t *)(cq + p.cq_off.head);
	ring->cq_tail = (uint32_t *)(cq + p.cq_off.tail);
	ring->cq_mask = *(uint32_t *)(cq + p.cq_off.ring_mask);
	ring->cqe = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	return true;
}

static void uring_pass(const struct file *file, struct ring *ring, int fd)
{
	uint64_t chunk = file->size > 64 * MIB ? CHUNK : 100 * KIB;
	uint8_t *buf = get_memory(file, DEPTH * chunk);
	for (uint64_t base = 0; base < file->size; base += DEPTH * chunk) {
		unsigned nr = 0, got = 0;
		for (uint64_t off = base; off < file->size && nr < DEPTH; off += chunk, nr++) {
			uint32_t tail = *ring->sq_tail, slot = tail & ring->sq_mask;
			ring->sqe[slot] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
								.fd = fd,
								.addr = (uint64_t)(uintptr_t)(buf + nr * chunk),
								.len = (uint32_t)chunk,
								.off = off,
								.user_data = off};
			ring->sq_array[slot] = slot;
			__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
		}
		long sent = syscall(SYS_io_uring_enter, ring->fd, nr, nr, IORING_ENTER_GETEVENTS, NULL, 0);
		CHECK_SYS(file, sent == (long)nr, "io_uring_enter");
		for (; got < nr; got++) {
			uint32_t head = *ring->cq_head;
			while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
				syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
			struct io_uring_cqe cqe = ring->cqe[head & ring->cq_mask];
			__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
			if (cqe.res < 0 || (uint64_t)cqe.res != expected(file, cqe.user_data, chunk))
				FAIL(file, "io_uring at %llu gives %d", (unsigned long long)cqe.user_data, cqe.res);
			same(file, buf + (cqe.user_data - base), cqe.user_data, (uint64_t)cqe.res);
		}
	}
	munmap(buf, DEPTH * chunk);
}

static void io_uring(const struct file *file)
{
	struct ring ring;
	if (!ring_open(file, &ring)) {
		puts("note: this kernel has no io_uring");
		return;
	}
	for (int flags = 0; flags <= O_DIRECT; flags += O_DIRECT) {
		int fd = open_file(file, flags);
		uring_pass(file, &ring, fd);
		close(fd);
	}
	close(ring.fd);
}

int main(int argc, char **argv)
{
	static const struct pattern patterns[] = {
		{"threads-one-fd", threads_one_fd},
		{"threads-many-fds", threads_many_fds},
		{"threads-faults", threads_faults},
		{"forks", forks},
		{"forks-mapping", forks_mapping},
		{"libaio", libaio},
		{"io-uring", io_uring},
	};
	return access_main(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
