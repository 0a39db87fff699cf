/* block_seeds.c - starting points for fuzz_block: a split payload of every word size, rotation and field.
 *
 *     block_seeds DIR
 *
 * Each has superrows enough for the vector kernels' own loops, which encoders' choices of splits would not all reach.
 */
#include "unit/split_model.h"

static void write_seed(const char *dir, const struct model *m)
{
	u8 head[6 + WFS_POOL_MAX_BYTES];
	const u32 raw_len = (u32)(m->n * m->s.word);
	char path[4096];
	size_t head_len;
	FILE *f;

	head[0] = (u8)(__builtin_ctz(m->s.word) | m->s.rot << 2);
	head[1] = m->s.field;
	head[2] = 0;
	wfs_store24(head + 3, raw_len);
	head_len = 6 + wfs_pool_write(&m->pool, head + 6);
	CHECK((size_t)snprintf(path, sizeof(path), "%s/word%u-rot%u-field%u", dir, m->s.word, m->s.rot, m->s.field) <
	      sizeof(path));
	f = fopen(path, "wb");
	CHECK_MSG(f, "%s", path);
	CHECK(fwrite(head, 1, head_len, f) == head_len && fwrite(m->comp, 1, m->comp_len, f) == m->comp_len);
	CHECK(!fclose(f));
}

int main(int argc, char **argv)
{
	uint64_t rng = 1;

	CHECK(argc == 2);
	for (unsigned word = 1; word <= 8; word *= 2) {
		for (unsigned rot = 0; rot < 2; rot++) {
			for (unsigned field = 1; field <= WFS_MAX_FIELD && field < 8 * word; field++) {
				const struct wfs_split s = wfs_split_make(word, rot, field);
				const size_t n = 1100 + test_rand_below(&rng, 1000);
				struct model m = model_new(&rng, s, n, 3, 9, field & 1, 20);

				write_seed(argv[1], &m);
				model_free(&m);
			}
		}
	}
	return 0;
}
