/* damage_campaign.c - damages whole containers in every way a disk, a copy or a forger does, reads all of each, and
 * proves that what comes out is the original's bytes or a refusal.
 *
 *     damage_campaign COUNT FILE...
 *
 * COUNT cases of each kind and FILE, the same ones each time; a file that is no container is packed first. Each case is
 * one damaged container, read in ranges of random lengths by one of this CPU's variants; where a range is refused, what
 * lies around the refused blocks is read as well. A head that is another good container's counts as that container:
 * then its bytes are the right ones. Forged containers have all hashes right: they may hold other bytes, but then the
 * SHA-256 of the original tells it (counted as "told"). A case of more than 60 s ends the program by SIGALRM.
 */
#include "damage_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_RANGE = 150000, MOST_SECONDS = 60, SLACK = 1 << 24 };

struct tally {
	uint64_t tried, refused, whole, part, told, wrong;
	uint64_t bytes_right, bytes_refused;
	double slowest;
};

/* One container being read, and the original that it must give; NULL: a forged one, which may give others. */
struct reading {
	struct wfs_reader *reader;
	const struct original *expected;
	struct wfs_scratch *scratch;
	uint64_t raw_len, right, refused, other;
	u8 *buf;
};

static void compare(struct reading *r, uint64_t off, size_t len)
{
	const struct bytes *raw = &r->expected->raw;

	if (off + len <= raw->len && !memcmp(r->buf, raw->at + off, len))
		r->right += len;
	else
		r->other += len;
}

static void read_range(struct reading *r, uint64_t off, size_t len)
{
	struct wfs_error err = {0};

	if (wfs_reader_read(r->reader, off, r->buf, len, r->scratch, &err) == WFS_OK) {
		compare(r, off, len);
		return;
	}
	CHECK_MSG(err.reason && (err.status == WFS_BAD_DATA || err.status == WFS_BAD_CHECKSUM), "%s, %s",
		  wfs_status_name(err.status), err.reason);
	while (len) {
		struct wfs_extent x;
		size_t part;

		wfs_reader_extent(r->reader, off, &x);
		part = (size_t)WFS_MIN(x.len, (uint64_t)len);
		if (wfs_reader_read(r->reader, off, r->buf, part, r->scratch, NULL) == WFS_OK)
			compare(r, off, part);
		else
			r->refused += part;
		off += part;
		len -= part;
	}
}

static void read_all(struct reading *r, uint64_t *rng)
{
	for (uint64_t off = 0; off < r->raw_len;) {
		const uint64_t most = 1 + test_rand_below(rng, MAX_RANGE);
		const size_t len = (size_t)WFS_MIN(most, r->raw_len - off);

		read_range(r, off, len);
		off += len;
	}
}

static const struct original *original_of(const struct subject *s, const struct wfs_head *head)
{
	const struct original *known[] = {&s->file, &s->older, s->other};

	for (unsigned i = 0; i < WFS_ARRAY_LEN(known); i++)
		if (!memcmp(known[i]->sha256, head->sha256, sizeof(head->sha256)) && known[i]->raw.len == head->raw_len)
			return known[i];
	return NULL;
}

/* Whether verify says that all is right; it must not when it is not. */
static bool verified(const struct reading *r)
{
	return wfs_reader_verify(r->reader, 1, NULL, NULL, NULL) == WFS_OK;
}

static void judge(struct reading *r, enum kind kind, struct tally *t)
{
	const bool all_right = r->right == r->expected->raw.len && r->raw_len == r->expected->raw.len;

	t->bytes_right += r->right;
	t->bytes_refused += r->refused;
	if (r->other || r->raw_len != r->expected->raw.len) {
		if (kind_is_forged(kind) && !verified(r))
			t->told++;
		else
			t->wrong++;
	} else if (all_right) {
		t->whole++;
	} else {
		t->part++;
		if (verified(r))
			t->wrong++;
	}
}

static void try_image(const struct subject *s, int fd, enum wfs_cpu cpu, enum kind kind, uint64_t *rng, struct tally *t)
{
	struct wfs_reader_opts opts = {.cpu = cpu};
	struct reading r = {.scratch = s->scratch, .buf = s->buf};
	struct wfs_error err = {0};
	struct wfs_info info;

	if (wfs_reader_open(fd, &opts, &r.reader, &err) != WFS_OK) {
		CHECK(err.reason && err.status != WFS_IO && err.status != WFS_BUG && err.status != WFS_NO_MEMORY);
		t->refused++;
		return;
	}
	wfs_reader_info(r.reader, &info);
	r.raw_len = info.head.raw_len;
	r.expected = original_of(s, &info.head);
	if (!r.expected && kind_is_forged(kind))
		r.expected = &s->file;
	if (!r.expected) {
		t->wrong++;
	} else if (r.raw_len > s->file.raw.len + SLACK) {
		/* Constant bytes without end: nothing to compare. */
		t->wrong += !kind_is_forged(kind);
		t->told += kind_is_forged(kind);
	} else {
		read_all(&r, rng);
		judge(&r, kind, t);
	}
	wfs_reader_free(r.reader);
}

static double now(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum wfs_cpu supported_cpu(uint64_t *rng)
{
	enum wfs_cpu cpu;

	do
		cpu = (enum wfs_cpu)(WFS_CPU_SCALAR + test_rand_below(rng, WFS_NR_CPUS - WFS_CPU_SCALAR));
	while (!wfs_cpu_supported(cpu));
	return cpu;
}

static void run_case(const struct subject *s, enum kind kind, uint64_t nr, uint64_t count, struct tally *t)
{
	uint64_t rng = (nr + 1) * 0x9e3779b97f4a7c15u + s->number * NR_KINDS + kind;
	enum wfs_cpu cpu = supported_cpu(&rng);
	struct bytes image = damaged(s, kind, nr, count, &rng);
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	double start = now(), took;

	CHECK(fd >= 0 && pwrite(fd, image.at, image.len, 0) == (ssize_t)image.len);
	alarm(MOST_SECONDS);
	try_image(s, fd, cpu, kind, &rng, t);
	alarm(0);
	took = now() - start;
	t->tried++;
	t->slowest = WFS_MAX(t->slowest, took);
	free(image.at);
	close(fd);
}

/* ---- what is damaged ---- */

static struct bytes content_of(int fd)
{
	struct bytes b = {0};
	struct stat st;

	CHECK(!fstat(fd, &st));
	b.len = (size_t)st.st_size;
	b.at = malloc(b.len + 1);
	CHECK(b.at && pread(fd, b.at, b.len, 0) == (ssize_t)b.len);
	return b;
}

static int fd_of(const struct bytes *b)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	CHECK(fd >= 0 && pwrite(fd, b->at, b->len, 0) == (ssize_t)b->len);
	return fd;
}

/* All that is known of a good container, which is decoded for it. */
static void learn(struct original *o, int fd)
{
	struct wfs_reader *reader;
	struct wfs_scratch *scratch = wfs_scratch_new();
	struct wfs_info info;

	CHECK(scratch && wfs_reader_open(fd, NULL, &reader, NULL) == WFS_OK);
	CHECK(wfs_reader_verify(reader, 1, NULL, NULL, NULL) == WFS_OK);
	wfs_reader_info(reader, &info);
	o->head = info.head;
	memcpy(o->sha256, info.head.sha256, sizeof(o->sha256));
	o->comp = content_of(fd);
	o->raw = (struct bytes){malloc((size_t)info.head.raw_len + 1), (size_t)info.head.raw_len};
	CHECK(o->raw.at && wfs_reader_read(reader, 0, o->raw.at, o->raw.len, scratch, NULL) == WFS_OK);
	o->nr_blocks = info.nr_blocks;
	o->block = calloc((size_t)info.nr_blocks + 1, sizeof(*o->block));
	CHECK(o->block);
	for (uint64_t i = 0; i < info.nr_blocks; i++)
		wfs_reader_block(reader, i, &o->block[i]);
	wfs_scratch_free(scratch);
	wfs_reader_free(reader);
}

static void pack(struct original *o, const struct bytes *raw, unsigned block_log2)
{
	struct wfs_encode_opts opts = {.block_log2 = block_log2, .nr_threads = 1};
	struct wfs_encode_result result;
	int src = fd_of(raw), dst = memfd_create("container", MFD_CLOEXEC);

	CHECK(dst >= 0 && wfs_encode_file(src, dst, &opts, &result, NULL) == WFS_OK);
	learn(o, dst);
	close(src);
	close(dst);
}

static void forget(struct original *o)
{
	free(o->comp.at);
	free(o->raw.at);
	free(o->block);
	*o = (struct original){0};
}

/* A file and its older version: the same but for a byte in each 5,000. */
static void load(struct subject *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct bytes before;

	CHECK_MSG(fd >= 0, "%s: %s", path, strerror(errno));
	if (strlen(path) > 4 && !strcmp(path + strlen(path) - 4, ".wfs")) {
		learn(&s->file, fd);
	} else {
		struct bytes raw = content_of(fd);

		pack(&s->file, &raw, 16);
		free(raw.at);
	}
	close(fd);
	before = (struct bytes){malloc(s->file.raw.len + 1), s->file.raw.len};
	CHECK(before.at);
	memcpy(before.at, s->file.raw.at, before.len);
	for (size_t i = before.len / 2 % 5000; i < before.len; i += 5000)
		before.at[i] ^= 1;
	pack(&s->older, &before, s->file.head.block_log2);
	free(before.at);
}

/* A line for each kind and one for all, whose sums are returned. */
static void print_table(const struct tally *tally, struct tally *sum)
{
	printf("%-22s %7s %7s %7s %7s %7s %6s %8s\n", "kind", "tried", "whole", "in part", "refused", "told", "wrong",
	       "slowest");
	for (enum kind kind = 0; kind <= NR_KINDS; kind++) {
		const struct tally *t = kind < NR_KINDS ? &tally[kind] : sum;

		printf("%-22s %7lu %7lu %7lu %7lu %7lu %6lu %6.0f ms\n", kind < NR_KINDS ? kind_name(kind) : "all",
		       t->tried, t->whole, t->part, t->refused, t->told, t->wrong, 1e3 * t->slowest);
		sum->tried += t->tried;
		sum->whole += t->whole;
		sum->part += t->part;
		sum->refused += t->refused;
		sum->told += t->told;
		sum->bytes_right += t->bytes_right;
		sum->bytes_refused += t->bytes_refused;
		sum->wrong += t->wrong;
		sum->slowest = WFS_MAX(sum->slowest, t->slowest);
	}
}

int main(int argc, char **argv)
{
	struct tally tally[NR_KINDS] = {{0}}, sum = {0};
	struct original last = {0};
	struct subject s = {.scratch = wfs_scratch_new(), .buf = malloc(MAX_RANGE), .other = &last};
	uint64_t count;

	CHECK_MSG(argc > 2, "usage: damage_campaign COUNT FILE...");
	CHECK(s.scratch && s.buf);
	count = strtoull(argv[1], NULL, 10);
	load(&s, argv[argc - 1]);
	last = s.file;
	forget(&s.older);
	for (int i = 2; i < argc; i++) {
		load(&s, argv[i]);
		s.number = (unsigned)i;
		for (enum kind kind = 0; kind < NR_KINDS; kind++)
			for (uint64_t nr = 0; nr < count; nr++)
				run_case(&s, kind, nr, count, &tally[kind]);
		forget(&last);
		forget(&s.older);
		last = s.file;
	}
	forget(&last);
	print_table(tally, &sum);
	printf("%.1f MB right, %.1f MB refused\n", 1e-6 * (double)sum.bytes_right, 1e-6 * (double)sum.bytes_refused);
	wfs_scratch_free(s.scratch);
	free(s.buf);
	return sum.wrong != 0;
}
