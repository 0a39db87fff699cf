/* access.c - one thread reads a mounted file in every way that a loader or a copying tool does (access.h). */
#include "access.h"

#include <linux/fs.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
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

enum { KIB = 1024, MIB = 1024 * KIB, PAGE = 4096, BUF = 9 * MIB };

static void stat_same(const struct file *file)
{
	struct stat st, by_fd;
	const struct stat *had = file->had;
	int fd = open_file(file, 0);
	CHECK_SYS(file, !stat(file->path, &st) && !fstat(fd, &by_fd), "stat");
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != file->size || by_fd.st_size != st.st_size)
		FAIL(file, "size %lld, original %llu", (long long)st.st_size, (unsigned long long)file->size);
	if (st.st_mtim.tv_sec != had->st_mtim.tv_sec || st.st_mtim.tv_nsec != had->st_mtim.tv_nsec)
		FAIL(file, "mtime %lld.%09ld, original %lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		     (long long)had->st_mtim.tv_sec, had->st_mtim.tv_nsec);
	if (st.st_mode != had->st_mode || st.st_uid != had->st_uid || st.st_gid != had->st_gid)
		FAIL(file, "mode %o, original %o, or another owner", st.st_mode, had->st_mode);
	if (st.st_ino != by_fd.st_ino || st.st_dev != by_fd.st_dev || st.st_nlink < 1)
		FAIL(file, "stat and fstat disagree, or no links");
	/* Fewer blocks than bytes would look like holes to cp and tar; a sparse original may have that. */
	if (st.st_blocks < (st.st_size + 511) / 512 && st.st_blocks < had->st_blocks)
		FAIL(file, "%lld blocks for %lld bytes", (long long)st.st_blocks, (long long)st.st_size);
	close(fd);
}

/* read(2) to the end with several buffer sizes; then 0 for ever. */
static void read_all(const struct file *file)
{
	static const uint64_t sizes[] = {32 * KIB, 128 * KIB, MIB, 2 * MIB, 12345, 9 * MIB};
	uint8_t *buf = get_memory(file, BUF);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = open_file(file, 0);
		uint64_t off = 0;
		for (;;) {
			ssize_t got = read(fd, buf, sizes[i]);
			CHECK_SYS(file, got >= 0, "read");
			if ((uint64_t)got != expected(file, off, sizes[i]))
				FAIL(file, "read of %llu at %llu gives %zd", (unsigned long long)sizes[i],
				     (unsigned long long)off, got);
			same(file, buf, off, (uint64_t)got);
			off += (uint64_t)got;
			if (!got)
				break;
		}
		CHECK_SYS(file, read(fd, buf, BUF) == 0, "read at the end");
		close(fd);
	}
	munmap(buf, BUF);
}

static void random_preads(const struct file *file, int fd, unsigned align, int rounds)
{
	uint8_t *buf = get_memory(file, BUF + PAGE);
	uint64_t seed = 77;
	for (int i = 0; i < rounds; i++) {
		uint64_t len = rand_next(&seed) % (1ull << rand_next(&seed) % 22);
		uint64_t off = rand_next(&seed) % (file->size + 1 + file->size / 8);
		uint64_t shift = rand_next(&seed) % PAGE;
		check_pread(file, fd, buf + shift / align * align, off / align * align,
			    (len + align - 1) / align * align);
	}
	munmap(buf, BUF + PAGE);
}

static void pread_random(const struct file *file)
{
	int fd = open_file(file, 0);
	random_preads(file, fd, 1, 400);
	close(fd);
}

/* Around every border that the kernel or the container has, and around the end. */
static void pread_borders(const struct file *file)
{
	static const int near[] = {-4097, -513, -3, -1, 0, 1, 2, 511, 4096};
	static const uint64_t lens[] = {0, 1, 2, 3, 4095, 4096, 65537, 262145, MIB + 1};
	uint8_t *buf = get_memory(file, BUF);
	int fd = open_file(file, 0);
	uint64_t step = file->size > 64 * MIB ? file->size / 16 : 64 * KIB;
	for (uint64_t border = 0; border <= file->size + step; border += step) {
		for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
			uint64_t at = min_u64(border, file->size) + (uint64_t)(int64_t)near[i];
			if ((int64_t)at >= 0)
				check_pread(file, fd, buf, at, lens[(border / step + i) % 9]);
		}
	}
	check_pread(file, fd, buf, file->size, 10);
	check_pread(file, fd, buf, file->size + 1, 10);
	check_pread(file, fd, buf, 1ull << 32, PAGE);
	check_pread(file, fd, buf, 1ull << 40, PAGE);
	check_pread(file, fd, buf, (1ull << 62) - PAGE, PAGE);
	CHECK_SYS(file, pread(fd, buf, 1, -1) == -1 && errno == EINVAL, "pread at -1 is not EINVAL");
	close(fd);
	munmap(buf, BUF);
}

/* Whole file backwards, then strided as a tensor-parallel rank reads its columns. */
static void pread_strides(const struct file *file)
{
	uint8_t *buf = get_memory(file, BUF);
	int fd = open_file(file, 0);
	uint64_t piece = file->size > 64 * MIB ? 4 * MIB : 20 * KIB + 3;
	for (uint64_t end = file->size; end; end -= min_u64(end, piece))
		check_pread(file, fd, buf, end - min_u64(end, piece), min_u64(end, piece));
	for (uint64_t off = 999; off < file->size; off += 5 * piece)
		check_pread(file, fd, buf, off, 1536);
	/* Four streams that take turns on one descriptor. */
	for (uint64_t off = 0; off < file->size / 4; off += piece)
		for (uint64_t s = 0; s < 4; s++)
			check_pread(file, fd, buf, s * (file->size / 4) + off, piece);
	close(fd);
	munmap(buf, BUF);
}

static void readv_pieces(const struct file *file)
{
	uint8_t *buf = get_memory(file, BUF);
	int fd = open_file(file, 0);
	uint64_t seed = 5, off = 0;
	while (off < min_u64(file->size, 64 * MIB)) {
		struct iovec iov[64];
		uint64_t total = 0;
		int nr = 1 + (int)(rand_next(&seed) % 64);
		for (int i = 0; i < nr; i++) {
			uint64_t len = rand_next(&seed) % (rand_next(&seed) % 4 ? 5000 : 100000);
			iov[i] = (struct iovec){buf + total, len}; /* side by side: the result is one piece */
			total += len;
		}
		ssize_t got = off % 2 ? readv(fd, iov, nr) : preadv(fd, iov, nr, (off_t)off);
		CHECK_SYS(file, got >= 0, "readv");
		if ((uint64_t)got != expected(file, off, total))
			FAIL(file, "readv of %llu gives %zd", (unsigned long long)total, got);
		same(file, buf, off, (uint64_t)got);
		off += (uint64_t)got;
		CHECK_SYS(file, lseek(fd, (off_t)off, SEEK_SET) == (off_t)off, "lseek");
	}
	close(fd);
	munmap(buf, BUF);
}

/* More than the kernel moves in one call (0x7ffff000): 1,024 pieces of 4 MiB on the same memory. */
static void read_2gib(const struct file *file)
{
	uint8_t *buf = get_memory(file, 4 * MIB);
	struct iovec iov[1024];
	int fd = open_file(file, 0);
	for (int i = 0; i < 1024; i++)
		iov[i] = (struct iovec){buf, 4 * MIB};
	uint64_t want = min_u64(file->size, 0x7ffff000);
	ssize_t got = preadv(fd, iov, 1024, 0);
	if (got < 0 || (uint64_t)got != want)
		FAIL(file, "preadv of 4 GiB gives %zd, not %llu", got, (unsigned long long)want);
	uint64_t last = want % (4 * MIB);
	same(file, buf, want - last, last);
	close(fd);
	munmap(buf, 4 * MIB);
}

static void direct(const struct file *file)
{
	uint8_t *buf = get_memory(file, BUF + PAGE);
	int fd = open_file(file, O_DIRECT);
	random_preads(file, fd, 1, 150);
	random_preads(file, fd, 512, 100);
	random_preads(file, fd, PAGE, 100);
	/* In offset order, the last piece rounded up past the end, the memory unaligned every other time. */
	for (uint64_t off = 0; off < file->size + 1; off += 8 * MIB)
		check_pread(file, fd, buf + (off / MIB / 8 % 2), off, 8 * MIB);
	close(fd);
	munmap(buf, BUF + PAGE);
}

/* Maps [off, off + len) of the file in whole pages; the descriptor is closed at once. */
static uint8_t *map(const struct file *file, int prot, int flags, uint64_t off, uint64_t len)
{
	int fd = open_file(file, 0);
	void *p = mmap(NULL, len, prot, flags, fd, (off_t)off);
	CHECK_SYS(file, p != MAP_FAILED, "mmap");
	close(fd);
	return p;
}

static void same_mapping(const struct file *file, int prot, int flags)
{
	if (!file->size)
		return;
	uint8_t *p = map(file, prot, flags, 0, file->size);
	same(file, p, 0, file->size);
	uint64_t in_page = file->size % PAGE;
	for (uint64_t i = in_page; in_page && i < PAGE; i++)
		if (p[file->size - in_page + i])
			FAIL(file, "the last page is not zero behind the end of the file");
	munmap(p, file->size);
	/* As np.memmap does it: a window from a page border on. */
	uint64_t seed = 3;
	for (int i = 0; i < 50; i++) {
		uint64_t off = rand_next(&seed) % file->size / PAGE * PAGE;
		uint64_t len = 1 + rand_next(&seed) % min_u64(file->size - off, 3 * MIB);
		p = map(file, prot, flags, off, len);
		same(file, p, off, len);
		munmap(p, len);
	}
}

static void mmap_private(const struct file *file)
{
	same_mapping(file, PROT_READ, MAP_PRIVATE);
	same_mapping(file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	same_mapping(file, PROT_READ, MAP_PRIVATE | MAP_POPULATE);
}

static void mmap_shared(const struct file *file)
{
	same_mapping(file, PROT_READ, MAP_SHARED);
	int fd = open_file(file, 0);
	if (file->size)
		CHECK_SYS(file,
			  mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
				  errno == EACCES,
			  "a shared writable mapping is not EACCES");
	close(fd);
}

static uint8_t other(uint8_t byte)
{
	return byte ^ 0xFF;
}

/* What a process writes into its private mapping is its own. */
static void mmap_write(const struct file *file)
{
	uint64_t len = min_u64(file->size, 64 * MIB);
	uint8_t *buf = get_memory(file, BUF);
	if (!len)
		return;
	uint8_t *p = map(file, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0, len);
	for (uint64_t off = 0; off < len; off += 3 * PAGE)
		p[off] = other(file->want[off]);
	for (uint64_t off = 0; off < len; off += PAGE) {
		bool written = off / PAGE % 3 == 0;
		if (written && p[off] != other(file->want[off]))
			FAIL(file, "a private page lost what was written");
		same(file, p + off + written, off + written, min_u64(PAGE, len - off) - written);
	}
	int fd = open_file(file, 0);
	for (uint64_t off = 0; off < len; off += MIB)
		check_pread(file, fd, buf, off, MIB);
	close(fd);
	munmap(p, len);
	munmap(buf, BUF);
}

static sigjmp_buf on_bus;
static void bus_handler(int sig)
{
	(void)sig;
	siglongjmp(on_bus, 1);
}

/* SIGBUS on the first page behind the last, and on no other. */
static void mmap_beyond(const struct file *file)
{
	uint64_t pages = (file->size + PAGE - 1) / PAGE * PAGE;
	uint8_t *p = map(file, PROT_READ, MAP_PRIVATE, 0, pages + PAGE);
	struct sigaction bus = {.sa_handler = bus_handler}, old;
	sigaction(SIGBUS, &bus, &old);
	volatile uint8_t *q = p;
	if (file->size) {
		if (sigsetjmp(on_bus, 1))
			FAIL(file, "SIGBUS inside the file");
		if (q[file->size - 1] != file->want[file->size - 1])
			FAIL(file, "the last byte differs");
	}
	if (!sigsetjmp(on_bus, 1)) {
		(void)q[pages];
		FAIL(file, "no SIGBUS behind the end");
	}
	sigaction(SIGBUS, &old, NULL);
	munmap(p, pages + PAGE);
}

static void advice(const struct file *file)
{
	static const int kinds[] = {MADV_NORMAL,   MADV_RANDOM, MADV_SEQUENTIAL,    MADV_WILLNEED, MADV_DONTNEED,
				    MADV_DONTFORK, MADV_COLD,	MADV_POPULATE_READ, MADV_PAGEOUT,  MADV_HUGEPAGE};
	uint64_t len = min_u64(file->size, 64 * MIB);
	if (!len)
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint8_t *p = map(file, PROT_READ, i % 2 ? MAP_PRIVATE : MAP_SHARED, 0, len);
		if (madvise(p, len, kinds[i]) < 0 && errno != EINVAL) /* EINVAL: an older or smaller kernel */
			FAIL(file, "madvise %d: %s", kinds[i], strerror(errno));
		same(file, p, 0, len);
		munmap(p, len);
	}
	for (int kind = POSIX_FADV_NORMAL; kind <= POSIX_FADV_NOREUSE; kind++) {
		uint8_t *buf = get_memory(file, BUF);
		int fd = open_file(file, 0);
		errno = posix_fadvise(fd, 0, 0, kind);
		CHECK_SYS(file, !errno, "posix_fadvise");
		for (uint64_t off = 0; off < len; off += MIB)
			check_pread(file, fd, buf, off, MIB);
		close(fd);
		munmap(buf, BUF);
	}
	int fd = open_file(file, 0);
	CHECK_SYS(file, !readahead(fd, 0, len), "readahead");
	random_preads(file, fd, 1, 20);
	close(fd);
}

/* POSIX_FADV_DONTNEED takes the pages out of memory, as loaders that call it after each shard count on. */
static void dropped(const struct file *file)
{
	uint64_t len = min_u64(file->size, 64 * MIB), nr_pages = (len + PAGE - 1) / PAGE, resident = 1;
	if (!len || (geteuid() && geteuid() != file->had->st_uid)) /* mincore tells only owners */
		return;
	uint8_t *p = map(file, PROT_READ, MAP_SHARED, 0, len);
	uint8_t *in_core = get_memory(file, nr_pages), *buf = get_memory(file, BUF);
	int fd = open_file(file, 0);
	for (uint64_t off = 0; off < len; off += MIB)
		check_pread(file, fd, buf, off, MIB);
	/* Pages that read-ahead is still filling stay: it ends, so this does. */
	for (int tries = 0; resident && tries < 5000; tries++) {
		CHECK_SYS(file, !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
		CHECK_SYS(file, !mincore(p, len, in_core), "mincore");
		resident = 0;
		for (uint64_t i = 0; i < nr_pages; i++)
			resident += in_core[i] & 1;
		if (resident)
			poll(NULL, 0, 10);
	}
	if (resident)
		FAIL(file, "%llu of %llu pages stay in memory", (unsigned long long)resident,
		     (unsigned long long)nr_pages);
	same(file, p, 0, len);
	close(fd);
	munmap(p, len);
	munmap(in_core, nr_pages);
	munmap(buf, BUF);
}

/* sendfile, copy_file_range and a clone attempt, as cp has it. */
static void copies(const struct file *file)
{
	uint64_t len = min_u64(file->size, 64 * MIB);
	int fd = open_file(file, 0), out = memfd_create("copy", MFD_CLOEXEC);
	off_t at = 0;
	ssize_t got = 1;
	CHECK_SYS(file, out >= 0, "memfd_create");
	while ((uint64_t)at < len && got > 0)
		got = sendfile(out, fd, &at, len - (uint64_t)at);
	CHECK_SYS(file, (uint64_t)at == len, "sendfile");
	if (len) {
		void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, out, 0);
		CHECK_SYS(file, p != MAP_FAILED, "mmap of the copy");
		same(file, p, 0, len);
		munmap(p, len);
	}
	CHECK_SYS(file, ioctl(out, FICLONE, fd) == -1 && (errno == EXDEV || errno == EOPNOTSUPP || errno == EINVAL),
		  "FICLONE is not refused the usual way");
	off_t from = 0, to = 0;
	got = copy_file_range(fd, &from, out, &to, len, 0);
	CHECK_SYS(file, got >= 0 || errno == EXDEV, "copy_file_range");
	close(fd);
	close(out);
}

static void seeks(const struct file *file)
{
	int fd = open_file(file, 0);
	CHECK_SYS(file, lseek(fd, 0, SEEK_END) == (off_t)file->size, "SEEK_END");
	CHECK_SYS(file, lseek(fd, 1ll << 40, SEEK_SET) == 1ll << 40, "SEEK_SET");
	off_t data = lseek(fd, 0, SEEK_DATA), hole = lseek(fd, 0, SEEK_HOLE);
	if (file->size) {
		CHECK_SYS(file, data >= 0 && hole >= 0 && hole <= (off_t)file->size, "SEEK_DATA, SEEK_HOLE");
		for (off_t i = 0; i < data; i++)
			if (file->want[i])
				FAIL(file, "SEEK_DATA skips data");
	} else {
		CHECK_SYS(file, data == -1 && errno == ENXIO, "SEEK_DATA of an empty file is not ENXIO");
	}
	close(fd);
}

/* As Ollama: a new descriptor for every tensor, 32 KiB at a time. As a prober: reads that may not wait. */
static void reopens(const struct file *file)
{
	uint8_t *buf = get_memory(file, BUF);
	uint64_t seed = 9;
	for (int i = 0; i < 100; i++) {
		int fd = open_file(file, i % 2 ? O_NOFOLLOW : O_NOATIME | O_NONBLOCK);
		uint64_t off = rand_next(&seed) % (file->size + 1);
		check_pread(file, fd, buf, off, 32 * KIB);
		struct iovec iov = {buf, 32 * KIB};
		ssize_t got = preadv2(fd, &iov, 1, (off_t)(file->size - off), RWF_NOWAIT);
		CHECK_SYS(file, got >= 0 || errno == EAGAIN || errno == EOPNOTSUPP, "preadv2 RWF_NOWAIT");
		if (got > 0)
			same(file, buf, file->size - off, (uint64_t)got);
		close(fd);
	}
	munmap(buf, BUF);
}

int main(int argc, char **argv)
{
	static const struct pattern patterns[] = {
		{"stat", stat_same},
		{"read", read_all},
		{"pread-random", pread_random},
		{"pread-borders", pread_borders},
		{"pread-strides", pread_strides},
		{"readv", readv_pieces},
		{"read-2gib", read_2gib},
		{"direct", direct},
		{"mmap-private", mmap_private},
		{"mmap-shared", mmap_shared},
		{"mmap-write", mmap_write},
		{"mmap-beyond", mmap_beyond},
		{"advice", advice},
		{"dropped", dropped},
		{"copies", copies},
		{"seeks", seeks},
		{"reopens", reopens},
	};
	return access_main(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
