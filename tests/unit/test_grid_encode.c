/* test_grid_encode.c - blocks on grids: matrices of any shape at any place, cut by the block's borders, under every
 * list, rounding and output, come back from what was encoded; strangers become literals; every variant gives the same
 * bytes.
 */
#include "grid_encode.h"
#include "test_util.h"

#include <math.h>

enum { MAX_FILE = 1 << 19, MAX_MATRICES = 8, MAX_SCALES = 1 << 16 };

static u8 file[MAX_FILE], comp[2][MAX_FILE], back[MAX_FILE];
static size_t file_len;
static struct wfs_matrix matrix[MAX_MATRICES];
static struct wfs_geometry geometry = {matrix, 0};
static struct wfs_grid grid;
static struct wfs_grid_values values;
static struct wfs_grid_encoder encoder;
static struct wfs_grid_buffers *buf;
static struct wfs_encode_scratch *encode_scratch;
static struct wfs_scratch *scratch;
static struct wfs_encode_pool *encode_pool;
static struct wfs_decode_pool *decode_pool;
static u64 seed = 1;

static const enum wfs_cpu cpus[] = {WFS_CPU_SCALAR, WFS_CPU_AVX2, WFS_CPU_AVX512VBMI};

static void set_grid(const struct wfs_grid *g)
{
	grid = *g;
	wfs_grid_values_make(&grid, &values);
	wfs_grid_encoder_make(&values, &encoder);
	CHECK(encoder.usable);
}

static unsigned word_bytes(void)
{
	return wfs_grid_word_bytes(grid.output);
}

/* ---- files ---- */

/* Codes as weights have them: small values are common. */
static u8 random_code(void)
{
	for (;;) {
		u8 code = (u8)test_rand(&seed);
		float part = fabsf(wfs_f32_of_bits(values.value[code]) / wfs_f32_of_bits(values.max_abs));
		double chance = (double)test_rand_below(&seed, 1000) / 1000;

		if (values.value[code] ? part * part < chance : !code || code == 128)
			return code;
	}
}

static void put_word(u8 *at, u32 word)
{
	if (word_bytes() == 4)
		wfs_store32(at, word);
	else
		wfs_store16(at, (u16)word);
}

static void add_matrix(u64 rows, u64 cols, u32 tile_rows, u32 tile_cols)
{
	static u32 scale[MAX_SCALES];
	const u64 height = tile_rows ? tile_rows : rows, width = tile_cols ? tile_cols : cols;
	const u64 across = (cols + width - 1) / width;
	u8 *at = file + file_len;

	CHECK(file_len + rows * cols * word_bytes() <= MAX_FILE && (rows / height + 1) * across <= MAX_SCALES);
	for (u64 i = 0; i < (rows / height + 1) * across; i++)
		scale[i] = (u32)(115 + test_rand_below(&seed, 4)) << 23 | (u32)(test_rand(&seed) >> 41);
	for (u64 i = 0; i < rows * cols; i++, at += word_bytes()) {
		u32 s = scale[i / cols / height * across + i % cols / width];

		put_word(at, wfs_grid_word(&values, wfs_f32_of_bits(s), random_code()));
	}
	matrix[geometry.nr++] = (struct wfs_matrix){.raw_off = file_len,
						    .raw_len = rows * cols * word_bytes(),
						    .cols = cols,
						    .tile_rows = tile_rows,
						    .tile_cols = tile_cols,
						    .word = (u8)word_bytes()};
	file_len += rows * cols * word_bytes();
}

static void add_gap(size_t len)
{
	test_rand_fill(&seed, file + file_len, len);
	file_len += len;
}

static void new_file(size_t start)
{
	file_len = geometry.nr = 0;
	add_gap(start);
}

/* Matrices of odd shapes, bytes between them that are no words, tiles that neither fit. */
static void odd_file(void)
{
	static const u16 size[][2] = {{0, 0}, {1, 0}, {128, 128}, {1, 64}, {1, 16}, {0, 1}, {64, 1}, {7, 33}, {0, 50}};

	new_file(1 + test_rand_below(&seed, 9));
	for (unsigned i = 0; i < MAX_MATRICES; i++) {
		const u64 cols = 1 + test_rand_below(&seed, i % 2 ? 40 : 900),
			  rows = 1 + test_rand_below(&seed, 12000 / cols);
		const u16 *tile = size[test_rand_below(&seed, WFS_ARRAY_LEN(size))];

		add_matrix(rows, cols, tile[0], tile[1]);
		if (test_rand_below(&seed, 2))
			add_gap(word_bytes() * test_rand_below(&seed, 4) + (test_rand_below(&seed, 8) == 0));
	}
}

/* ---- blocks ---- */

/* Pools from the codes of the whole file. */
static void make_pools(void)
{
	const struct wfs_split s = wfs_grid_code_split(&grid);
	struct wfs_trainer *trainer = wfs_trainer_new(s);
	const struct wfs_place place = {.raw_off = matrix[0].raw_off, .geometry = &geometry};
	const size_t nr = (file_len - matrix[0].raw_off) / word_bytes();
	struct wfs_pool pool;

	CHECK(trainer);
	if (wfs_grid_codes(&encoder, WFS_CPU_SCALAR, &place, 0, file + matrix[0].raw_off, nr, buf))
		for (size_t at = 0; at < nr; at += 512)
			wfs_trainer_add(trainer, buf->code + at, WFS_MIN(nr - at, (size_t)512));
	CHECK(wfs_trainer_finish(trainer, 9, &pool) == WFS_OK);
	wfs_trainer_free(trainer);
	wfs_encode_pool_free(encode_pool);
	free(decode_pool);
	encode_pool = wfs_encode_pool_new(&pool, s);
	decode_pool = wfs_decode_pool_new(&pool);
	CHECK(encode_pool && decode_pool);
}

static struct wfs_coder coder_of_grid(void)
{
	const struct wfs_split s = wfs_grid_code_split(&grid);

	return (struct wfs_coder){.coding = WFS_GRID, .word = (u8)word_bytes(), .rot = s.rot, .field = s.field};
}

/* Encodes bytes of the file by every variant and decodes them; returns the payload's length, or len. */
static size_t check_block(struct wfs_place place, size_t len)
{
	const struct wfs_coder coder = coder_of_grid();
	const struct wfs_encode_tables encode = {.grid = &encoder, .split = encode_pool};
	const struct wfs_decode_tables decode = {.grid = &values, .split = decode_pool};
	const struct wfs_kernels kernels = wfs_kernels_for(WFS_CPU_SCALAR);
	const char *reason = NULL;
	const u8 *raw = file + place.raw_off;
	size_t comp_len = 0;

	for (unsigned i = 0; i < WFS_ARRAY_LEN(cpus); i++) {
		size_t got;

		if (!wfs_cpu_supported(cpus[i]))
			continue;
		got = wfs_payload_encode(&coder, &encode, cpus[i], &place, raw, len, comp[i != 0], encode_scratch);
		if (!i)
			comp_len = got;
		CHECK(got == comp_len && (got == len || !memcmp(comp[0], comp[i != 0], got)));
	}
	if (comp_len == len)
		return len;
	memset(back, 0xa5, len);
	CHECK_MSG(wfs_payload_decode(&coder, &decode, &kernels, place.phase, comp[0], comp_len, back, len, scratch,
				     &reason) == WFS_OK,
		  "%s", reason);
	CHECK(!memcmp(back, raw, len));
	return comp_len;
}

static struct wfs_place place_at(u64 off)
{
	/* Words stand where those of the first matrix do. */
	const u64 from = off + 8 * word_bytes() - matrix[0].raw_off % word_bytes();

	return (struct wfs_place){.raw_off = off, .phase = (unsigned)(from % word_bytes()), .geometry = &geometry};
}

/* ---- tests ---- */

static void test_lists(void)
{
	unsigned nr = 0, coded = 0;

	for (unsigned list = 0; list < WFS_NR_LISTS; list++)
		for (unsigned output = 0; output < 3; output++)
			for (unsigned op = 0; op < (output == WFS_GRID_BF16 ? 2u : 1u); op++) {
				struct wfs_grid g;

				wfs_grid_of_list(list, op ? WFS_GRID_TRUNCATE : WFS_GRID_NEAREST, output, &g);
				set_grid(&g);
				for (unsigned i = 0; i < 6; i++) {
					odd_file();
					make_pools();
					for (unsigned k = 0; k < 6; k++, nr++) {
						u64 off = k ? test_rand_below(&seed, file_len - 1) : 0;
						size_t len = k ? 1 + test_rand_below(&seed, file_len - off) : file_len;

						coded += check_block(place_at(off), len) < len;
					}
				}
			}
	CHECK_MSG(coded > nr / 2, "%u of %u", coded, nr);
	PASS("%u blocks of odd matrices, %u of them on their grids", nr, coded);
}

/* The scales and codes of a tile are all that a block of a clean matrix needs. */
static void test_clean(void)
{
	for (unsigned list = 0; list < WFS_NR_LISTS; list++)
		for (unsigned output = 0; output < 3; output++) {
			const struct wfs_place place = {.geometry = &geometry};
			struct wfs_grid g;
			size_t nr;

			wfs_grid_of_list(list, WFS_GRID_NEAREST, output, &g);
			set_grid(&g);
			new_file(0);
			add_matrix(96, 512, output == WFS_GRID_F32 ? 1 : 32, 128);
			nr = file_len / word_bytes();
			CHECK(wfs_grid_codes(&encoder, WFS_CPU_SCALAR, &place, 0, file, nr, buf));
			CHECK(buf->nr_segments == 1 && buf->nr_tiles == (output == WFS_GRID_F32 ? 384u : 12u));
			CHECK_MSG(buf->nr_literals <= nr / 4096, "list %u, output %u: %u literals", list, output,
				  buf->nr_literals);
			make_pools();
			CHECK(check_block(place, file_len) < file_len * (output == WFS_GRID_F32 ? 40 : 75) / 100);
		}
	PASS("clean matrices have no literals");
}

/* NaN, infinity, subnormal numbers, -0 and words of no grid are literals; too many of them: not a grid's block. */
static void test_strangers(void)
{
	static const u16 odd[] = {0x7fc0, 0xff80, 0x7f80, 0x0001, 0x8000, 0x4049, 0xc2f7, 0x0000};
	const struct wfs_place place = {.geometry = &geometry};
	struct wfs_grid g;

	wfs_grid_of_list(WFS_LIST_INT8, WFS_GRID_NEAREST, WFS_GRID_BF16, &g);
	set_grid(&g);
	new_file(0);
	add_matrix(64, 640, 1, 128);
	make_pools();
	CHECK(wfs_grid_codes(&encoder, WFS_CPU_SCALAR, &place, 0, file, file_len / 2, buf));
	const u32 before = buf->nr_literals;
	for (unsigned i = 0; i < 64; i++)
		wfs_store16(file + 2 * (640 * i + test_rand_below(&seed, 640)), odd[i % WFS_ARRAY_LEN(odd)]);
	CHECK(wfs_grid_codes(&encoder, WFS_CPU_SCALAR, &place, 0, file, file_len / 2, buf));
	CHECK_MSG(buf->nr_literals >= before + 30 && buf->nr_literals <= before + 80, "%u", buf->nr_literals);
	CHECK(check_block(place, file_len) < file_len);
	add_gap(file_len);
	CHECK(check_block(place, file_len) == file_len);
	PASS("strangers are literals, many of them no block of the grid");
}

static void test_palettes(void)
{
	for (unsigned output = 0; output < 3; output++) {
		struct wfs_grid g = {.op = WFS_GRID_PALETTE, .flags = WFS_GRID_SIGNED, .output = (u8)output, .nb = 50};
		const struct wfs_place place = {0};
		u32 word = 3;

		for (unsigned i = 0; i < g.nb; i++, word += 1 + (u32)test_rand_below(&seed, 1000))
			g.base[i] = word;
		set_grid(&g);
		new_file(0);
		for (unsigned i = 0; i < 20000; i++, file_len += word_bytes())
			put_word(file + file_len, g.base[test_rand_below(&seed, 1 + test_rand_below(&seed, g.nb))]);
		matrix[0] = (struct wfs_matrix){.raw_len = file_len, .cols = 100, .word = (u8)word_bytes()};
		geometry.nr = 1;
		make_pools();
		put_word(file + 700 * word_bytes(), 1); /* not in the palette */
		put_word(file + 800 * word_bytes(), 0); /* neither, but codes behind the last stand for it */
		CHECK(wfs_grid_codes(&encoder, WFS_CPU_SCALAR, &place, 0, file, file_len / word_bytes(), buf));
		CHECK(buf->nr_literals == 1 && buf->literal[0] == 700 && !buf->nr_segments);
		CHECK(check_block(place, file_len) < file_len / 2);
	}
	PASS("palettes");
}

/* A block encoded again from its stored segments, without the geometry. */
static void test_again(void)
{
	struct wfs_place place = {.geometry = &geometry};
	static u8 first[MAX_FILE], segments[WFS_GRID_SEGMENT_BYTES * 16];
	struct wfs_grid g;
	size_t len;

	wfs_grid_of_list(WFS_LIST_E4M3, WFS_GRID_NEAREST, WFS_GRID_BF16, &g);
	set_grid(&g);
	new_file(0);
	add_matrix(100, 300, 1, 0);
	add_matrix(40, 500, 1, 128);
	make_pools();
	len = check_block(place, file_len);
	CHECK(len < file_len);
	memcpy(first, comp[0], len);
	place.geometry = NULL;
	place.nr_segments = wfs_load16(first + 2);
	CHECK(place.nr_segments == 2);
	memcpy(segments, first + WFS_GRID_HEADER, (size_t)WFS_GRID_SEGMENT_BYTES * place.nr_segments);
	place.segments = segments;
	CHECK(check_block(place, file_len) == len && !memcmp(first, comp[0], len));
	place.nr_segments = 1; /* do not cover the words */
	CHECK(check_block(place, file_len) == file_len);
	PASS("the same bytes from stored segments");
}

int main(void)
{
	buf = aligned_alloc(64, (sizeof(*buf) + 63) / 64 * 64);
	encode_scratch = wfs_encode_scratch_new();
	scratch = wfs_scratch_new();
	CHECK(buf && encode_scratch && scratch);
	test_clean();
	test_strangers();
	test_palettes();
	test_again();
	test_lists();
	wfs_encode_pool_free(encode_pool);
	free(decode_pool);
	wfs_scratch_free(scratch);
	wfs_encode_scratch_free(encode_scratch);
	free(buf);
	return 0;
}
