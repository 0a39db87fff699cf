/* test_guards.c - every block of the golden containers, whole and damaged, by every variant between guard pages:
 * nothing is read beyond the stored bytes or written beyond the decoded ones. Ranges read from a reader likewise.
 */
#include "test_util.h"
#include "wfs.h"
#include "wfs_internal.h"

#include <dirent.h>
#include <fcntl.h>

enum { MAX_BLOCK = 1 << 20, DAMAGED = 20, RANGES = 40, MAX_RANGE = 100000 };

struct tester {
	struct test_guard comp, raw;
	struct wfs_scratch *scratch;
	uint64_t rng, codings, nr_decoded, nr_refused, nr_ranges;
};

/* Stored and decoded bytes end at a guard page, or begin behind one. */
static void decode(struct tester *t, const struct wfs_reader *reader, const struct wfs_block *b, const u8 *comp,
		   bool at_end)
{
	u8 *from = at_end ? test_guard_end(&t->comp, b->comp_len) : test_guard_start(&t->comp);
	u8 *to = at_end ? test_guard_end(&t->raw, b->raw_len) : test_guard_start(&t->raw);

	memcpy(from, comp, b->comp_len);
	if (wfs_block_decode(reader, b, from, to, t->scratch, WFS_DECODE_UNCHECKED, NULL) == WFS_OK)
		t->nr_decoded++;
	else
		t->nr_refused++;
}

static void try_block(struct tester *t, const struct wfs_reader *reader, const struct wfs_block *b)
{
	u8 *comp = malloc((size_t)b->comp_len + 1);

	CHECK(comp && wfs_block_load(reader, b, b, comp, NULL) == WFS_OK);
	t->codings |= (uint64_t)1 << b->coding;
	for (unsigned i = 0; i < DAMAGED; i++) {
		const size_t at = (size_t)test_rand_below(&t->rng, b->comp_len);
		const u8 was = comp[at];

		if (i > 1 && i % 2) /* the counts at the start steer most */
			comp[at % 16 % b->comp_len] ^= (u8)(1u << test_rand_below(&t->rng, 8));
		else if (i > 1)
			comp[at] = (u8)test_rand(&t->rng);
		decode(t, reader, b, comp, i % 2 == 0);
		decode(t, reader, b, comp, i % 2);
		if (i % 2 == 0)
			comp[at] = was;
		else
			CHECK(wfs_block_load(reader, b, b, comp, NULL) == WFS_OK);
	}
	free(comp);
}

static void try_ranges(struct tester *t, const struct wfs_reader *reader, uint64_t raw_len)
{
	for (unsigned i = 0; i < RANGES && raw_len; i++) {
		const uint64_t off = test_rand_below(&t->rng, raw_len), most = 1 + test_rand_below(&t->rng, MAX_RANGE);
		const size_t len = (size_t)WFS_MIN(most, raw_len - off);
		u8 *to = i % 2 ? test_guard_end(&t->raw, len) : test_guard_start(&t->raw);

		CHECK(wfs_reader_read(reader, off, to, len, t->scratch, NULL) == WFS_OK);
		t->nr_ranges++;
	}
}

static void try_file(struct tester *t, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK_MSG(fd >= 0, "%s", path);
	for (int cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		const struct wfs_reader_opts opts = {.cpu = (enum wfs_cpu)cpu};
		struct wfs_reader *reader;
		struct wfs_info info;

		if (!wfs_cpu_supported(opts.cpu))
			continue;
		CHECK_MSG(wfs_reader_open(fd, &opts, &reader, NULL) == WFS_OK, "%s", path);
		wfs_reader_info(reader, &info);
		for (uint64_t i = 0; i < info.nr_blocks; i++) {
			struct wfs_block b;

			wfs_reader_block(reader, i, &b);
			try_block(t, reader, &b);
		}
		try_ranges(t, reader, info.head.raw_len);
		wfs_reader_free(reader);
	}
	close(fd);
}

int main(void)
{
	static const char folder[] = "tests/vectors/ok";
	struct tester t = {.comp = test_guard_new(MAX_BLOCK),
			   .raw = test_guard_new(MAX_BLOCK),
			   .scratch = wfs_scratch_new(),
			   .rng = 6};
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	CHECK(t.scratch && dir);
	while ((entry = readdir(dir)))
		if (strlen(entry->d_name) > 4 && !strcmp(entry->d_name + strlen(entry->d_name) - 4, ".wfs")) {
			CHECK((size_t)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < sizeof(path));
			try_file(&t, path);
		}
	closedir(dir);
	CHECK_MSG(t.codings == (1u << (WFS_RECORDS + 1)) - 1, "not every coding is among the golden containers");
	CHECK(t.nr_decoded && t.nr_refused && t.nr_ranges);
	PASS("%lu payloads of every coding decoded, %lu refused, %lu ranges read between guard pages", t.nr_decoded,
	     t.nr_refused, t.nr_ranges);
	wfs_scratch_free(t.scratch);
	test_guard_free(&t.comp);
	test_guard_free(&t.raw);
	return 0;
}
