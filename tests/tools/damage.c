/* damage.c - damages a container in many single places and proves that never a wrong byte comes out of it.
 *
 *     damage CONTAINER ORIGINAL COUNT [CPU]
 *
 * Half of the cases flip one bit (half of these in head, tail or metadata), half cut the file at a random place. Then
 * the whole file is decoded, block by block: each must give the right bytes or a refusal. A flipped bit may cost one
 * block at most, and none when it is not in the payload; after a cut every block still stored must be right, as long
 * as head and first metadata are there. The same places each time.
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

struct subject {
	const unsigned char *comp, *raw; /* whole container and original */
	uint64_t comp_len, raw_len;
	struct wfs_head head;
	int fd; /* memory file with the container, damaged for one case at a time */
	enum wfs_cpu cpu;
	struct wfs_scratch *scratch;
	unsigned char *block_comp, *block_raw; /* 1 MiB each */
};

struct outcome {
	bool opened;
	uint64_t nr_right, nr_refused;
};

static _Noreturn void fail(const char *what, const char *detail, uint64_t number)
{
	fprintf(stderr, "damage: %s: %s (%llu)\n", what, detail, (unsigned long long)number);
	exit(1);
}

static void must(bool ok, const char *what)
{
	if (!ok)
		fail(what, strerror(errno), 0);
}

static const unsigned char *map_file(const char *path, uint64_t *len_ret)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map;

	must(fd >= 0 && !fstat(fd, &st), path);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	must(map != MAP_FAILED, path);
	close(fd);
	*len_ret = (uint64_t)st.st_size;
	return map;
}

static void write_at(const struct subject *s, uint64_t off, const unsigned char *data, uint64_t len)
{
	while (len) {
		ssize_t done = pwrite(s->fd, data, len < 1u << 30 ? len : 1u << 30, (off_t)off);

		must(done > 0, "pwrite");
		data += done;
		off += (uint64_t)done;
		len -= (uint64_t)done;
	}
}

static void check_bytes(const struct subject *s, uint64_t raw_off, const unsigned char *got, uint64_t len)
{
	if (raw_off + len > s->raw_len || memcmp(got, s->raw + raw_off, len))
		fail("WRONG BYTES", "at raw offset", raw_off);
}

/* Decode every block and every constant or copied region. */
static struct outcome decode_all(const struct subject *s)
{
	struct wfs_reader_opts opts = {.cpu = s->cpu};
	struct wfs_reader *reader = NULL;
	struct outcome o = {0};
	struct wfs_info info;

	if (wfs_reader_open(s->fd, &opts, &reader, NULL) != WFS_OK)
		return o;
	o.opened = true;
	wfs_reader_info(reader, &info);
	if (info.head.raw_len != s->raw_len || memcmp(info.head.sha256, s->head.sha256, 32))
		fail("WRONG HEAD", "accepted", info.head.raw_len);
	for (uint64_t i = 0; i < info.nr_blocks; i++) {
		struct wfs_block b;

		wfs_reader_block(reader, i, &b);
		if (wfs_block_load(reader, &b, &b, s->block_comp, NULL) != WFS_OK ||
		    wfs_block_decode(reader, &b, s->block_comp, s->block_raw, s->scratch, 0, NULL) != WFS_OK) {
			o.nr_refused++;
			continue;
		}
		check_bytes(s, b.raw_off, s->block_raw, b.raw_len);
		o.nr_right++;
	}
	for (uint64_t i = 0; i < info.nr_regions; i++) {
		struct wfs_region r;
		uint64_t len;

		wfs_reader_region(reader, i, &r);
		len = r.raw_len < 1 << 20 ? r.raw_len : 1 << 20;
		if (r.kind != WFS_REGION_CODED &&
		    wfs_reader_read(reader, r.raw_off, s->block_raw, len, s->scratch, NULL) == WFS_OK)
			check_bytes(s, r.raw_off, s->block_raw, len);
	}
	wfs_reader_free(reader);
	return o;
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 8) % limit;
}

static bool in_payload(const struct subject *s, uint64_t at)
{
	return at >= s->head.payload_off && at < s->head.payload_off + s->head.payload_len;
}

static struct outcome flip(const struct subject *s, uint64_t at, unsigned bit, const struct outcome *whole)
{
	unsigned char byte = (unsigned char)(s->comp[at] ^ (1u << bit));
	struct outcome o;

	write_at(s, at, &byte, 1);
	o = decode_all(s);
	write_at(s, at, s->comp + at, 1);
	if (!o.opened)
		fail("a flipped bit", "is not survived at", at);
	if (o.nr_refused > in_payload(s, at) || o.nr_right + o.nr_refused != whole->nr_right)
		fail("a flipped bit", "costs more than its block at", at);
	return o;
}

static struct outcome cut(const struct subject *s, uint64_t at)
{
	struct outcome o;

	must(!ftruncate(s->fd, (off_t)at), "ftruncate");
	o = decode_all(s);
	write_at(s, at, s->comp + at, s->comp_len - at);
	if (o.opened != (at >= 4096 + s->head.meta_len))
		fail("a cut file", o.opened ? "opens without metadata at" : "is not opened, cut at", at);
	return o;
}

int main(int argc, char **argv)
{
	struct subject s = {.cpu = WFS_CPU_AUTO};
	uint64_t seed = 88172645463325252u, count, opened = 0, refused = 0, all_right = 0;
	struct outcome whole;

	if (argc < 4)
		fail("usage", "damage CONTAINER ORIGINAL COUNT [CPU]", 0);
	s.comp = map_file(argv[1], &s.comp_len);
	s.raw = map_file(argv[2], &s.raw_len);
	count = strtoull(argv[3], NULL, 10);
	if (argc > 4)
		s.cpu = (enum wfs_cpu)wfs_cpu_from_name(argv[4]);
	s.fd = memfd_create("damaged", MFD_CLOEXEC);
	s.scratch = wfs_scratch_new();
	s.block_comp = malloc(1 << 20);
	s.block_raw = malloc(1 << 20);
	must(s.fd >= 0 && s.scratch && s.block_comp && s.block_raw, "memory");
	write_at(&s, 0, s.comp, s.comp_len);
	must(wfs_head_read(s.fd, &s.head, NULL) == WFS_OK, argv[1]);
	whole = decode_all(&s);
	if (!whole.opened || whole.nr_refused || s.head.raw_len != s.raw_len)
		fail("the undamaged container", "is not good", 0);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t meta = 4096 + s.head.meta_len, at = random_below(&seed, s.comp_len);
		struct outcome o;

		if (i % 4 == 1) { /* head and metadata A, or metadata B and tail */
			at = random_below(&seed, 2 * meta);
			at = at < meta ? at : s.comp_len - 1 - (at - meta);
		}
		o = i % 2 ? flip(&s, at, (unsigned)random_below(&seed, 8), &whole) : cut(&s, at);
		opened += o.opened;
		refused += o.nr_refused;
		all_right += o.opened && !o.nr_refused;
	}
	printf("%llu places damaged: %llu not opened, %llu opened with %llu blocks refused, %llu wholly right; "
	       "no wrong byte\n",
	       (unsigned long long)count, (unsigned long long)(count - opened),
	       (unsigned long long)(opened - all_right), (unsigned long long)refused, (unsigned long long)all_right);
	wfs_scratch_free(s.scratch);
	free(s.block_comp);
	free(s.block_raw);
	close(s.fd);
	return 0;
}
