/* access_sparse.c - parts of a mounted model, read in no order that could be guessed (access.h).
 *
 * Whoever decodes ahead of these readers works in vain. The original is a safetensors file as shards.py writes it.
 */
#include "access.h"

enum { KIB = 1024, PAGE = 4096, RANDOM_READS = 1500, MAX_TENSORS = 1024 };

struct tensor {
	uint64_t begin, end, rows;
};

/* The tensors of the header, in its order: the text "shape":[ROWS, and "data_offsets":[BEGIN,END] of each. */
static unsigned find_tensors(const struct file *file, struct tensor *tensor)
{
	uint64_t header_len;
	unsigned nr = 0;

	memcpy(&header_len, file->want, 8);
	if (header_len > file->size - 8)
		FAIL(file, "the original is no safetensors file");
	char *text = strndup((const char *)file->want + 8, header_len), *at = text;
	CHECK_SYS(file, text, "strndup");
	while (nr < MAX_TENSORS && (at = strstr(at, "\"shape\":["))) {
		struct tensor *t = &tensor[nr];
		t->rows = strtoull(at + 9, NULL, 10);
		at = strstr(at, "\"data_offsets\":[");
		if (!at)
			break;
		t->begin = 8 + header_len + strtoull(at + 16, &at, 10);
		t->end = 8 + header_len + strtoull(at + 1, &at, 10);
		if (t->begin > t->end || t->end > file->size || !t->rows)
			FAIL(file, "the original's header lies");
		nr += t->rows > 1; /* norms are nobody's slices */
	}
	free(text);
	if (nr < 3)
		FAIL(file, "the original has %u matrices", nr);
	return nr;
}

static void random_preads(const struct file *file, uint64_t len)
{
	int fd = open_file(file, 0);
	uint8_t *buf = get_memory(file, len);
	uint64_t seed = 41;
	for (int i = 0; i < RANDOM_READS; i++)
		check_pread(file, fd, buf, rand_next(&seed) % (file->size - len), len);
	munmap(buf, len);
	close(fd);
}

/* A few reads in order, then somewhere else. */
static void bursts(const struct file *file, int flags)
{
	int fd = open_file(file, flags);
	uint8_t *buf = get_memory(file, 64 * KIB);
	uint64_t seed = 53;
	for (int i = 0; i < RANDOM_READS / 5; i++) {
		uint64_t off = rand_next(&seed) % file->size;
		for (uint64_t n = 1 + rand_next(&seed) % 8; n; n--, off += 64 * KIB)
			check_pread(file, fd, buf, off, 64 * KIB);
	}
	munmap(buf, 64 * KIB);
	close(fd);
}

static void bursts_cached(const struct file *file)
{
	bursts(file, 0);
}

static void bursts_direct(const struct file *file)
{
	bursts(file, O_DIRECT);
}

static void random_4k(const struct file *file)
{
	random_preads(file, 4 * KIB);
}

static void random_128k(const struct file *file)
{
	random_preads(file, 128 * KIB);
}

static const uint8_t *map_file(const struct file *file, int advice)
{
	int fd = open_file(file, 0);
	void *p = mmap(NULL, file->size, PROT_READ, MAP_SHARED, fd, 0);
	CHECK_SYS(file, p != MAP_FAILED && !madvise(p, file->size, advice), "mmap");
	close(fd);
	return p;
}

static void random_faults(const struct file *file, int advice, int nr)
{
	const uint8_t *map = map_file(file, advice);
	uint64_t seed = 43;
	for (int i = 0; i < nr; i++) {
		uint64_t off = rand_next(&seed) % (file->size - 16);
		same(file, map + off, off, 16);
	}
}

/* Each brings in a whole read-ahead around it: a few touch much of the file. */
static void faults_around(const struct file *file)
{
	random_faults(file, MADV_NORMAL, 25);
}

static void faults_random(const struct file *file)
{
	random_faults(file, MADV_RANDOM, RANDOM_READS);
}

/* The second of four ranks that divide every other matrix by columns: a small piece of each row. map: or by pread. */
static void column_slices(const struct file *file, const uint8_t *map)
{
	static struct tensor tensor[MAX_TENSORS];
	unsigned nr = find_tensors(file, tensor);
	int fd = open_file(file, 0);
	for (unsigned i = 0; i < nr; i += 2) {
		uint64_t row_len = (tensor[i].end - tensor[i].begin) / tensor[i].rows, len = row_len / 4;
		uint8_t *buf = get_memory(file, len);
		for (uint64_t row = 0; row < tensor[i].rows; row++) {
			uint64_t off = tensor[i].begin + row * row_len + len;
			if (map)
				same(file, map + off, off, len);
			else
				check_pread(file, fd, buf, off, len);
		}
		munmap(buf, len);
	}
	close(fd);
}

static void columns(const struct file *file)
{
	column_slices(file, NULL);
}

static void columns_mapped(const struct file *file)
{
	column_slices(file, map_file(file, MADV_NORMAL));
}

/* One that divides them by rows: a piece of one to two megabytes out of each. */
static void rows(const struct file *file)
{
	static struct tensor tensor[MAX_TENSORS];
	unsigned nr = find_tensors(file, tensor);
	int fd = open_file(file, 0);
	for (unsigned i = 0; i < nr; i++) {
		uint64_t len = (tensor[i].end - tensor[i].begin) / 4;
		uint8_t *buf = get_memory(file, len);
		check_pread(file, fd, buf, tensor[i].begin + len, len);
		munmap(buf, len);
	}
	close(fd);
}

/* A third of the tensors, whole, in random order, as a rank reads its experts. */
static void read_experts(const struct file *file, const uint8_t *map)
{
	static struct tensor tensor[MAX_TENSORS];
	unsigned nr = find_tensors(file, tensor);
	uint64_t seed = 47;
	int fd = open_file(file, 0);
	for (unsigned i = 0; i < nr / 3; i++) {
		unsigned other = i + (unsigned)(rand_next(&seed) % (nr - i));
		struct tensor t = tensor[other];
		tensor[other] = tensor[i];
		uint8_t *buf = get_memory(file, t.end - t.begin);
		if (map)
			same(file, map + t.begin, t.begin, t.end - t.begin);
		else
			check_pread(file, fd, buf, t.begin, t.end - t.begin);
		munmap(buf, t.end - t.begin);
	}
	close(fd);
}

static void experts(const struct file *file)
{
	read_experts(file, NULL);
}

static void experts_mapped(const struct file *file)
{
	read_experts(file, map_file(file, MADV_NORMAL));
}

int main(int argc, char **argv)
{
	static const struct pattern patterns[] = {
		{"random-4k", random_4k},
		{"random-128k", random_128k},
		{"bursts", bursts_cached},
		{"bursts-direct", bursts_direct},
		{"faults-around", faults_around},
		{"faults-random", faults_random},
		{"columns", columns},
		{"columns-mapped", columns_mapped},
		{"rows", rows},
		{"experts", experts},
		{"experts-mapped", experts_mapped},
	};
	return access_main(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
