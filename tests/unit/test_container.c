/* test_container.c - containers made by hand read back whole; damage to one copy of head or metadata is survived, and
 * damage to anything never gives a wrong byte.
 */
#include "handmade.h"

/* ---- good ones ---- */

static void test_good(void)
{
	struct file f = good_file();
	struct wfs_reader *reader;
	struct wfs_error err;
	struct wfs_info info;
	int fd;

	CHECK_MSG(open_bytes(f.bytes, f.len, &reader, &fd, &err) == WFS_OK, "%s", err.reason);
	wfs_reader_info(reader, &info);
	CHECK(info.head.raw_len == RAW_LEN && info.head.mtime_sec == -5 && info.head.mtime_nsec == 999999999);
	CHECK(info.head.sha256[0] == 0xaa && !info.head.from_tail && !info.meta_from_copy_b && !info.truncated);
	CHECK(info.nr_blocks == 6 && info.nr_regions == 7 && info.nr_coders == 4 && info.nr_pools == 1);
	check_whole(reader);
	wfs_reader_free(reader);
	close(fd);
	free(f.bytes);
	PASS("a container made by hand reads back");
}

static void test_compressed_sections(void)
{
	for (int kind = 1; kind <= 5; kind++) {
		struct wfs_reader *reader;
		struct wfs_error err;
		struct parts p;
		struct file f;
		int fd;

		if (kind == 3)
			continue;
		make_parts(&p);
		p.compressed = kind;
		f = make_file(&p, NULL, NULL);
		CHECK_MSG(open_bytes(f.bytes, f.len, &reader, &fd, &err) == WFS_OK, "%d %s", kind, err.reason);
		check_whole(reader);
		wfs_reader_free(reader);
		close(fd);
		free(f.bytes);
	}
	PASS("sections may be LZ4");
}

static void check_extent(const struct wfs_reader *reader, u64 off)
{
	struct wfs_extent x;

	wfs_reader_extent(reader, off, &x);
	CHECK(x.raw_off == off && x.len >= 1 && x.len <= RAW_LEN - off);
	if (x.block == WFS_NO_BLOCK) {
		for (u64 i = 0; i < x.len; i++)
			CHECK(raw[off + i] == x.fill[i % 8]);
	} else {
		struct wfs_block b;

		wfs_reader_block(reader, x.block, &b);
		CHECK(b.index == x.block && x.skip + x.len <= b.raw_len);
		CHECK(!memcmp(raw + off, raw + b.raw_off + x.skip, (size_t)x.len));
	}
}

static void test_lookups(void)
{
	struct file f = good_file();
	struct wfs_reader *reader;
	struct wfs_region g;
	u64 next = 0;
	int fd;

	CHECK(open_bytes(f.bytes, f.len, &reader, &fd, NULL) == WFS_OK);
	for (u64 off = 0; off < RAW_LEN; off++)
		if (off % 97 == 0 || off % 10000 < 2 || off % 10000 == 9999 || off % 65536 < 2 || off % 65536 == 65535)
			check_extent(reader, off);
	for (u64 i = 0; i < 7; i++) {
		wfs_reader_region(reader, i, &g);
		CHECK(g.raw_off == next);
		next += g.raw_len;
	}
	CHECK(next == RAW_LEN);
	wfs_reader_region(reader, 1, &g);
	CHECK(g.kind == WFS_REGION_CONSTANT && !memcmp(g.fill, "DEFGHABC", 8) && !g.nr_blocks);
	wfs_reader_region(reader, 4, &g);
	CHECK(g.kind == WFS_REGION_COPY && g.copy_of == 60000);
	wfs_reader_region(reader, 5, &g);
	CHECK(g.coding == WFS_SPLIT && g.word == 2 && g.field == 9 && g.first_block == 4 && g.nr_blocks == 1);
	wfs_reader_free(reader);
	close(fd);
	free(f.bytes);
	PASS("look-ups agree with the raw bytes");
}

/* ---- damage ---- */

static enum wfs_status status_of(const struct file *f, size_t len, bool *from_tail, bool *from_b)
{
	struct wfs_reader *reader;
	struct wfs_info info;
	int fd;
	enum wfs_status status = open_bytes(f->bytes, len, &reader, &fd, NULL);

	if (status == WFS_OK) {
		wfs_reader_info(reader, &info);
		*from_tail = info.head.from_tail;
		*from_b = info.meta_from_copy_b;
		check_whole(reader);
	}
	wfs_reader_free(reader);
	close(fd);
	return status;
}

static void test_copies(void)
{
	struct file f = good_file();
	size_t meta_b = f.len - 4096 - f.meta_len;
	bool from_tail, from_b;

	for (size_t at = 0; at < 4096; at += 1 + at / 8) {
		f.bytes[at] ^= 0x10;
		CHECK(status_of(&f, f.len, &from_tail, &from_b) == WFS_OK && from_tail && !from_b);
		f.bytes[at] ^= 0x10;
		f.bytes[f.len - 4096 + at] ^= 0x10;
		CHECK(status_of(&f, f.len, &from_tail, &from_b) == WFS_OK && !from_tail && !from_b);
		f.bytes[at] ^= 0x10;
		CHECK(status_of(&f, f.len, &from_tail, &from_b) == WFS_BAD_CHECKSUM || at < 8);
		f.bytes[at] ^= 0x10;
		f.bytes[f.len - 4096 + at] ^= 0x10;
	}
	for (size_t at = 0; at < f.meta_len; at += 7) {
		f.bytes[4096 + at] ^= 1;
		CHECK(status_of(&f, f.len, &from_tail, &from_b) == WFS_OK && !from_tail && from_b);
		f.bytes[meta_b + at] ^= 1;
		CHECK(status_of(&f, f.len, &from_tail, &from_b) == WFS_BAD_CHECKSUM);
		f.bytes[4096 + at] ^= 1;
		CHECK(status_of(&f, f.len, &from_tail, &from_b) == WFS_OK && !from_tail && !from_b);
		f.bytes[meta_b + at] ^= 1;
	}
	memset(f.bytes, 0, 4096 + f.meta_len);
	CHECK(status_of(&f, f.len, &from_tail, &from_b) == WFS_OK && from_tail && from_b);
	free(f.bytes);
	PASS("one copy of head and metadata is enough, none is refused");
}

static void test_ordinary_files(void)
{
	struct file f = good_file();
	bool from_tail, from_b;
	u8 *junk = calloc(1, f.len + 1);
	struct file g = {junk, f.len, 0};

	CHECK(junk);
	for (size_t len = 0; len < 20000; len = len * 2 + 1)
		CHECK(status_of(&g, len, &from_tail, &from_b) == WFS_NOT_CONTAINER);
	memcpy(junk, wfs_magic, 8);
	for (size_t len = 0; len < 20000; len = len * 2 + 1)
		CHECK(status_of(&g, len, &from_tail, &from_b) == (len < 8 ? WFS_NOT_CONTAINER : WFS_BAD_CHECKSUM));
	memset(junk, 0, 8);
	memcpy(junk + f.len - 4096, wfs_magic, 8);
	CHECK(status_of(&g, f.len, &from_tail, &from_b) == WFS_BAD_CHECKSUM);
	memcpy(junk, f.bytes, f.len);
	CHECK(status_of(&g, f.len + 1, &from_tail, &from_b) == WFS_BAD_DATA); /* longer than it says */
	free(junk);
	free(f.bytes);
	PASS("ordinary files and traces of a container are told apart");
}

/* What the head of a file of these bytes is, under a container's name and under any. */
static void check_remains(const u8 *bytes, size_t len, enum wfs_status suffixed, enum wfs_status plain)
{
	const struct wfs_reader_opts opts = {.suffixed = true};
	struct wfs_reader *reader = NULL;
	struct wfs_error err;
	struct wfs_head head;
	int fd = file_fd(bytes, len);

	CHECK(wfs_head_read_suffixed(fd, &head, &err) == suffixed && err.status == suffixed && err.reason);
	CHECK(wfs_reader_open(fd, &opts, &reader, NULL) == suffixed && !reader);
	CHECK(wfs_head_read(fd, &head, NULL) == plain && wfs_reader_open(fd, NULL, &reader, NULL) == plain);
	close(fd);
}

static void test_remains(void)
{
	enum { SECTIONS_END = 4096 + 8 + 6 * 24 };
	struct file f = good_file();
	u8 *zeros = calloc(1, 20000);

	CHECK(zeros);
	for (size_t len = 0; len < 20000; len = len * 2 + 1) {
		check_remains(zeros, len, WFS_BAD_CHECKSUM, WFS_NOT_CONTAINER);
		for (size_t at = 0; at < len; at = at * 3 + 1) {
			bool inside = at >= 4096 && at < len - 4096; /* nobody looks at all of a large file */

			zeros[at] = 1;
			check_remains(zeros, len, inside ? WFS_BAD_CHECKSUM : WFS_NOT_CONTAINER, WFS_NOT_CONTAINER);
			zeros[at] = 0;
		}
	}
	/* Both copies of the head are lost, to zeros or to anything, and the metadata tells whose they were. */
	for (u8 fill = 0; fill < 2; fill++) {
		memset(f.bytes, fill, 4096);
		memset(f.bytes + f.len - 4096, fill, 4096);
		check_remains(f.bytes, f.len, WFS_BAD_CHECKSUM, WFS_BAD_CHECKSUM);
		check_remains(f.bytes, SECTIONS_END, WFS_BAD_CHECKSUM, WFS_BAD_CHECKSUM);
		check_remains(f.bytes, SECTIONS_END - 1, WFS_NOT_CONTAINER, WFS_NOT_CONTAINER);
	}
	for (size_t at = 4096; at < SECTIONS_END; at++) {
		size_t in_section = (at - 4096 + 16) % 24;
		bool is_length = at >= 4096 + 8 && in_section >= 8;

		f.bytes[at] ^= 0x80;
		check_remains(f.bytes, f.len, is_length ? WFS_BAD_CHECKSUM : WFS_NOT_CONTAINER,
			      is_length ? WFS_BAD_CHECKSUM : WFS_NOT_CONTAINER);
		f.bytes[at] ^= 0x80;
	}
	free(zeros);
	free(f.bytes);
	PASS("what remains of a container is no ordinary file");
}

/* Every extent either gives the right bytes or is refused; returns how many bytes were given. */
static size_t read_extents(const struct wfs_reader *reader, const char *what, u64 place)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	u8 *got = malloc(RAW_LEN);
	struct wfs_error err;
	struct wfs_extent x;
	size_t nr_given = 0;

	CHECK(scratch && got);
	for (u64 off = 0; off < RAW_LEN; off += x.len) {
		enum wfs_status status;

		wfs_reader_extent(reader, off, &x);
		status = wfs_reader_read(reader, off, got, (size_t)x.len, scratch, &err);
		if (status == WFS_OK) {
			CHECK_MSG(!memcmp(got, raw + off, (size_t)x.len), "%s %llu", what, (unsigned long long)place);
			nr_given += (size_t)x.len;
		} else {
			CHECK(status == WFS_BAD_DATA || status == WFS_BAD_CHECKSUM);
			CHECK(err.status == status && err.block == x.block && err.reason);
		}
	}
	free(got);
	wfs_scratch_free(scratch);
	return nr_given;
}

static void test_truncation(void)
{
	struct file f = good_file();
	struct wfs_head head;
	struct wfs_info info;
	struct wfs_reader *reader;
	int fd;

	for (size_t len = f.len; len-- > 0; len -= len % 1021) {
		enum wfs_status status = open_bytes(f.bytes, len, &reader, &fd, NULL);

		if (status == WFS_OK) {
			CHECK(wfs_head_read(fd, &head, NULL) == WFS_OK);
			wfs_reader_info(reader, &info);
			CHECK(info.truncated);
			CHECK(len >= 4096 + f.meta_len);
			if (len >= f.len - 4096 - f.meta_len)
				CHECK(read_extents(reader, "cut", len) == RAW_LEN);
			else
				CHECK(read_extents(reader, "cut", len) < RAW_LEN);
		} else {
			CHECK(status == (len < 8 ? WFS_NOT_CONTAINER : WFS_BAD_CHECKSUM));
			CHECK(len < 4096 + f.meta_len);
		}
		wfs_reader_free(reader);
		close(fd);
		if (len < 1021)
			break;
	}
	free(f.bytes);
	PASS("a cut file is readable as far as it reaches");
}

static void test_flips(void)
{
	struct file f = good_file();
	uint64_t seed = 11;

	for (int i = 0; i < 1500; i++) {
		size_t at = (size_t)test_rand_below(&seed, f.len);
		u8 bit = (u8)(1 << test_rand_below(&seed, 8));
		struct wfs_reader *reader;
		int fd;

		f.bytes[at] ^= bit;
		CHECK_MSG(open_bytes(f.bytes, f.len, &reader, &fd, NULL) == WFS_OK, "one flip at %zu", at);
		if (at < 4096 + f.meta_len + 100 || at >= f.len - 4096 - f.meta_len)
			CHECK(read_extents(reader, "flip", at) == RAW_LEN);
		else
			CHECK(read_extents(reader, "flip", at) < RAW_LEN);
		wfs_reader_free(reader);
		close(fd);
		f.bytes[at] ^= bit;
	}
	free(f.bytes);
	PASS("1,500 single flips: the right bytes or a refusal of the block that was hit");
}

static int sink_collect(void *ctx, const void *bytes, size_t len)
{
	u8 **at = ctx;

	memcpy(*at, bytes, len);
	*at += len;
	return 0;
}

static void test_arguments(void)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	struct file f = good_file();
	struct wfs_reader *reader;
	u8 *got = malloc(RAW_LEN + 1), *at = got;
	struct wfs_reader_opts opts = {.cpu = WFS_NR_CPUS};
	int fd;

	CHECK(scratch && got);
	CHECK(open_bytes(f.bytes, f.len, &reader, &fd, NULL) == WFS_OK);
	CHECK(wfs_reader_read(reader, RAW_LEN, got, 0, scratch, NULL) == WFS_OK);
	CHECK(wfs_reader_read(reader, RAW_LEN, got, 1, scratch, NULL) == WFS_BAD_ARGUMENT);
	CHECK(wfs_reader_read(reader, UINT64_MAX, got, 1, scratch, NULL) == WFS_BAD_ARGUMENT);
	CHECK(wfs_reader_read(reader, 1, got, RAW_LEN, scratch, NULL) == WFS_BAD_ARGUMENT);
	CHECK(wfs_reader_stream(reader, 1, RAW_LEN, 1, sink_collect, &at, NULL) == WFS_BAD_ARGUMENT && at == got);
	CHECK(wfs_reader_stream(reader, 5, RAW_LEN - 5, 3, sink_collect, &at, NULL) == WFS_OK);
	CHECK(at == got + RAW_LEN - 5 && !memcmp(got, raw + 5, RAW_LEN - 5));
	/* The head's SHA-256 is not that of the bytes. */
	CHECK(wfs_reader_verify(reader, 2, NULL, NULL, NULL) == WFS_BAD_CHECKSUM);
	wfs_reader_free(reader);
	CHECK(wfs_reader_open(fd, &opts, &reader, NULL) == WFS_BAD_ARGUMENT);
	close(fd);
	wfs_scratch_free(scratch);
	free(got);
	free(f.bytes);
	PASS("ranges and options out of bounds are refused");
}

int main(void)
{
	make_raw();
	test_good();
	test_compressed_sections();
	test_lookups();
	test_copies();
	test_ordinary_files();
	test_remains();
	test_truncation();
	test_flips();
	test_arguments();
	return 0;
}
