/* block_seeds.c - starting points for fuzz_block: a payload of every word size, rotation and field in the split and the
 * wide coding, of every list and output of grids, of records, and of the codings without words.
 *
 *     block_seeds DIR
 *
 * Each has superrows enough for the vector kernels' own loops, which encoders' choices would not all reach.
 */
#include "classes.h"
#include "grid_encode.h"
#include "split_encode.h"
#include "unit/split_model.h"
#include "wide.h"

enum kind { SPLIT, WIDE, GRID, GRID_WIDE, RECORDS, STORED, LZ4, CONSTANT }; /* as in fuzz_block.c */
enum { GRID_WORDS = 1333, SCALE_BITS = 6 };

/* A seed on its way. */
struct seed {
	u8 *bytes;
	size_t len;
};

static void put(struct seed *seed, const void *bytes, size_t len)
{
	seed->bytes = realloc(seed->bytes, seed->len + len);
	CHECK(seed->bytes);
	memcpy(seed->bytes + seed->len, bytes, len);
	seed->len += len;
}
static void put_header(struct seed *seed, enum kind kind, struct wfs_split s, size_t raw_len)
{
	u8 header[6] = {(u8)((unsigned)__builtin_ctz(s.word) | (unsigned)s.rot << 2 | (unsigned)kind << 3), s.field};

	wfs_store24(header + 3, (u32)raw_len);
	put(seed, header, sizeof(header));
}
static void put_pool(struct seed *seed, const struct wfs_pool *pool)
{
	u8 bytes[WFS_POOL_MAX_BYTES];

	put(seed, bytes, wfs_pool_write(pool, bytes));
}

static void write_seed(const char *dir, const char *name, struct seed *seed)
{
	char path[4096];
	FILE *f;

	CHECK((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) < sizeof(path));
	f = fopen(path, "wb");
	CHECK_MSG(f, "%s", path);
	CHECK(fwrite(seed->bytes, 1, seed->len, f) == seed->len && !fclose(f));
	free(seed->bytes);
}

static void split_seed(const char *dir, uint64_t *rng, struct wfs_split s)
{
	struct model m = model_new(rng, s, 1100 + test_rand_below(rng, 1000), 3, 9, s.field & 1, 20);
	struct seed seed = {0};
	char name[64];

	put_header(&seed, SPLIT, s, m.n * s.word);
	put_pool(&seed, &m.pool);
	put(&seed, m.comp, m.comp_len);
	snprintf(name, sizeof(name), "split-word%u-rot%u-field%u", s.word, s.rot, s.field);
	write_seed(dir, name, &seed);
	model_free(&m);
}

/* The words of a split payload, coded anew: *s is the split that they got, the rest one pool and one payload. */
static void code_wide(const struct model *m, struct wfs_split *s, struct seed *pool_ret, struct seed *payload_ret)
{
	struct wfs_wide_trainer *trainer = wfs_wide_trainer_new(m->s, m->n);
	struct wfs_encode_buffers *buffers = malloc(sizeof(*buffers));
	const struct wfs_wide_groups groups = {2, 30, {{0, 200}, {777, 64}}};
	const size_t room = 8 * m->n + 10000;
	struct wfs_wide_pool *pool = malloc(sizeof(*pool));
	u8 *bytes = malloc(WFS_WIDE_POOL_MAX_BYTES), *comp = malloc(room);
	struct wfs_wide_encode_pool *encode;
	size_t len;

	CHECK(trainer && buffers && pool && bytes && comp);
	for (size_t i = 0; i + 300 < m->n; i += 300)
		wfs_wide_trainer_add(trainer, m->raw + i * m->s.word, 300);
	CHECK(wfs_wide_trainer_finish(trainer, pool, s) == WFS_OK);
	encode = wfs_wide_encode_pool_new(pool, *s);
	CHECK(encode);
	len = wfs_wide_encode(encode, &wfs_encode_kernel_scalar, &groups, m->raw, m->n, comp, room, buffers);
	CHECK(len <= room);
	put(pool_ret, bytes, wfs_wide_pool_write(pool, bytes));
	put(payload_ret, comp, len);
	wfs_wide_trainer_free(trainer);
	wfs_wide_encode_pool_free(encode);
	free(buffers);
	free(pool);
	free(bytes);
	free(comp);
}

static void wide_seed(const char *dir, uint64_t *rng, struct wfs_split base)
{
	struct model m = model_new(rng, base, 1100 + test_rand_below(rng, 1000), 3, 9, base.field & 1, 20);
	struct seed seed = {0}, pool = {0}, payload = {0};
	struct wfs_split s;
	char name[64];

	code_wide(&m, &s, &pool, &payload);
	put_header(&seed, WIDE, s, m.n * s.word);
	put(&seed, pool.bytes, pool.len);
	put(&seed, payload.bytes, payload.len);
	snprintf(name, sizeof(name), "wide-word%u-rot%u-field%u", s.word, s.rot, base.field);
	write_seed(dir, name, &seed);
	free(pool.bytes);
	free(payload.bytes);
	model_free(&m);
}

/* What stands before the codes: tiles of all kinds, their scales around 2^-10, and a literal. */
static void put_tiles(struct seed *seed, uint64_t *rng, const struct wfs_grid *grid)
{
	static const struct wfs_grid_segment segments[] = {
		{.n = 700, .cols = 100, .col0 = 77, .tw = 64, .th = 7, .row0 = 1}, /* many words a tile */
		{.n = 300, .cols = 90, .col0 = 5, .tw = 16, .th = 1},
		{.n = GRID_WORDS - 1000, .cols = 37, .col0 = 30, .th = 1},
	};
	const bool palette = grid->op == WFS_GRID_PALETTE;
	u8 header[WFS_GRID_HEADER] = {0}, segment[WFS_GRID_SEGMENT_BYTES], literal[8] = {9}, scales[4096];
	size_t bits = 0;

	header[8] = 1;
	if (!palette) {
		header[0] = 7;
		header[1] = SCALE_BITS;
		header[2] = (u8)WFS_ARRAY_LEN(segments);
		wfs_store32(header + 4, 117 << 7);
	}
	put(seed, header, sizeof(header));
	for (unsigned i = 0; !palette && i < WFS_ARRAY_LEN(segments); i++) {
		wfs_grid_segment_store(segment, &segments[i]);
		put(seed, segment, sizeof(segment));
		bits += SCALE_BITS * wfs_grid_nr_tiles(&segments[i]);
	}
	test_rand_fill(rng, scales, sizeof(scales));
	scales[bits / 8] &= (u8)((1u << (bits % 8)) - 1);
	put(seed, scales, (bits + 7) / 8);
	put(seed, literal, 4 + wfs_grid_word_bytes(grid->output));
}

/* Codes drawn at random. */
static void grid_seed(const char *dir, uint64_t *rng, enum kind kind, enum wfs_grid_list list, enum wfs_grid_op op,
		      enum wfs_grid_output output)
{
	struct seed seed = {0}, pool = {0}, payload = {0};
	u8 bytes[WFS_GRID_MAX_BYTES];
	struct wfs_split codes;
	struct wfs_grid grid;
	struct model m;
	char name[64];

	wfs_grid_of_list(list, op == WFS_GRID_PALETTE ? WFS_GRID_NEAREST : op, output, &grid);
	if (op == WFS_GRID_PALETTE) {
		grid = (struct wfs_grid){.op = (u8)op, .flags = WFS_GRID_SIGNED, .output = (u8)output, .nb = 200};
		for (unsigned i = 0; i < grid.nb; i++)
			grid.base[i] = 17 * i;
	}
	codes = wfs_grid_code_split(&grid);
	m = model_new(rng, codes, GRID_WORDS, 2, 9, false, 20);
	if (kind == GRID_WIDE) {
		code_wide(&m, &codes, &pool, &payload);
	} else {
		put_pool(&pool, &m.pool);
		put(&payload, m.comp, m.comp_len);
	}
	put_header(&seed, kind, codes, m.n * wfs_grid_word_bytes(output));
	put(&seed, bytes, wfs_grid_write(&grid, bytes));
	put(&seed, pool.bytes, pool.len);
	put_tiles(&seed, rng, &grid);
	put(&seed, payload.bytes, payload.len);
	snprintf(name, sizeof(name), "grid%u-list%u-op%u-output%u", kind, list, op, output);
	write_seed(dir, name, &seed);
	free(pool.bytes);
	free(payload.bytes);
	model_free(&m);
}

/* The first record begins inside the block, the last one is cut off. */
static void records_seed(const char *dir, uint64_t *rng, enum wfs_class class)
{
	enum { NR = 60, HEAD = 5, TAIL = 7 };
	const struct wfs_records *r = wfs_class_records(class);
	struct model m = model_new(rng, wfs_split_make(1, 0, 5), NR * r->bytes, 3, 9, false, 20);
	struct seed seed = {0}, pool = {0}, payload = {0};
	u8 edges[HEAD + TAIL];
	struct wfs_split s;
	char name[64];

	code_wide(&m, &s, &pool, &payload);
	test_rand_fill(rng, edges, sizeof(edges));
	put_header(&seed, RECORDS, s, HEAD + m.n + TAIL);
	seed.bytes[2] = (u8)(r->bytes - HEAD); /* phase */
	put(&seed, &r->bytes, 1);
	put(&seed, r->border, sizeof(r->border));
	put(&seed, pool.bytes, pool.len);
	put(&seed, payload.bytes, payload.len);
	put(&seed, edges, sizeof(edges));
	snprintf(name, sizeof(name), "records-%u", class);
	write_seed(dir, name, &seed);
	free(pool.bytes);
	free(payload.bytes);
	model_free(&m);
}

/* Stored bytes; a repeated text as LZ4; a word that fills a block cut inside one. */
static void plain_seeds(const char *dir)
{
	static const u8 lz4[] = {0x85, 'w', 'e', 'i', 'g', 'h', 't', 's', ' ', 8, 0, 0x50, ' ', 'e', 'n', 'd', '.'};
	static const u8 word[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct {
		const char *name;
		enum kind kind;
		unsigned word;
		const u8 *payload;
		size_t comp_len, raw_len;
	} plain[] = {
		{"stored", STORED, 1, lz4, sizeof(lz4), sizeof(lz4)},
		{"lz4", LZ4, 1, lz4, sizeof(lz4), 22},
		{"constant", CONSTANT, 8, word, sizeof(word), 1003},
	};

	for (unsigned i = 0; i < WFS_ARRAY_LEN(plain); i++) {
		struct seed seed = {0};

		put_header(&seed, plain[i].kind, (struct wfs_split){.word = (u8)plain[i].word}, plain[i].raw_len);
		put(&seed, plain[i].payload, plain[i].comp_len);
		write_seed(dir, plain[i].name, &seed);
	}
}

int main(int argc, char **argv)
{
	uint64_t rng = 1;

	CHECK(argc == 2);
	for (unsigned word = 1; word <= 8; word *= 2) {
		for (unsigned rot = 0; rot < 2; rot++) {
			for (unsigned field = 1; field <= WFS_MAX_FIELD && field < 8 * word; field++) {
				split_seed(argv[1], &rng, wfs_split_make(word, rot, field));
				wide_seed(argv[1], &rng, wfs_split_make(word, rot, field));
			}
		}
	}
	for (enum wfs_class class = WFS_FIRST_RECORDS; class < WFS_NR_CLASSES; class ++)
		records_seed(argv[1], &rng, class);
	for (enum kind kind = GRID; kind <= GRID_WIDE; kind++) {
		for (unsigned list = 0; list < WFS_NR_LISTS; list++) {
			grid_seed(argv[1], &rng, kind, list, WFS_GRID_NEAREST, list % 3);
			grid_seed(argv[1], &rng, kind, list, WFS_GRID_TRUNCATE, WFS_GRID_BF16);
		}
		for (unsigned output = 0; output <= WFS_GRID_F32; output++)
			grid_seed(argv[1], &rng, kind, 0, WFS_GRID_PALETTE, output);
	}
	plain_seeds(argv[1]);
	return 0;
}
