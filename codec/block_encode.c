/* block_encode.c - one block's bytes to a payload, whatever its coding (FORMAT.md 1.5). The reverse of block_decode.c.
 */
#include "grid_encode.h"
#include "split_encode.h"

#include <lz4.h>
#include <stdlib.h>

struct wfs_encode_scratch {
	struct wfs_encode_buffers buffers;
	struct wfs_grid_buffers grid;
	u8 part[WFS_MAX_BLOCK]; /* records in part order */
	LZ4_stream_t lz4;
};

struct wfs_encode_scratch *wfs_encode_scratch_new(void)
{
	const size_t bytes = WFS_CEIL_DIV(sizeof(struct wfs_encode_scratch), (size_t)64) * 64;
	return aligned_alloc(64, bytes);
}

void wfs_encode_scratch_free(struct wfs_encode_scratch *scratch)
{
	free(scratch);
}

bool wfs_is_constant(const u8 *raw, size_t raw_len)
{
	return raw_len >= 8 && !memcmp(raw, raw + 8, raw_len - 8);
}

/* The fill of a block that repeats its first word. */
static size_t constant_encode(unsigned word, unsigned phase, const u8 *raw, size_t raw_len, u8 *comp)
{
	if (raw_len <= word || memcmp(raw, raw + word, raw_len - word) != 0)
		return raw_len;
	for (unsigned i = 0; i < word; i++)
		comp[(phase + i) % word] = raw[i];
	return word;
}

static size_t lz4_encode(const u8 *raw, size_t raw_len, u8 *comp, struct wfs_encode_scratch *scratch)
{
	if (raw_len < 2)
		return raw_len;
	int len = LZ4_compress_fast_extState(&scratch->lz4, (const char *)raw, (char *)comp, (int)raw_len,
					     (int)raw_len - 1, 1);
	return len > 0 ? (size_t)len : raw_len;
}

static const struct wfs_encode_kernel *kernel_for(enum wfs_cpu cpu)
{
	const struct wfs_encode_kernel *kernel = NULL;
	if (cpu == WFS_CPU_AVX512VBMI)
		kernel = wfs_encode_kernel_avx512vbmi_get();
	else if (cpu == WFS_CPU_AVX2)
		kernel = wfs_encode_kernel_avx2_get();
	return kernel ? kernel : &wfs_encode_kernel_scalar;
}

/* The bytes of cut words behind a payload of len bytes, SIZE_MAX: there is none. Returns what both have. */
static size_t append_edges(u8 *comp, size_t len, const struct wfs_block_cut *cut, const u8 *raw, size_t raw_len)
{
	if (len == SIZE_MAX)
		return raw_len;
	memcpy(comp + len, raw, cut->head);
	memcpy(comp + len + cut->head, raw + raw_len - cut->tail, cut->tail);
	return len + cut->head + cut->tail;
}

/* The words by the split coding, the bytes of cut words behind them. */
static size_t split_encode(const struct wfs_encode_pool *pool, const struct wfs_encode_kernel *kernel, unsigned phase,
			   const u8 *raw, size_t raw_len, u8 *comp, struct wfs_encode_buffers *buffers)
{
	struct wfs_block_cut cut = wfs_block_cut(pool->s.word, phase, raw_len);

	if (!cut.nr_words)
		return raw_len;
	size_t len = wfs_split_encode(pool, kernel, raw + cut.head, cut.nr_words, comp, raw_len - cut.head - cut.tail,
				      buffers);
	return append_edges(comp, len, &cut, raw, raw_len);
}

/* The same by the wide coding, whose segments follow the rows of matrices. */
static size_t wide_encode(const struct wfs_wide_encode_pool *pool, unsigned word,
			  const struct wfs_encode_kernel *kernel, const struct wfs_place *place, unsigned phase,
			  const u8 *raw, size_t raw_len, u8 *comp, struct wfs_encode_buffers *buffers)
{
	struct wfs_block_cut cut = wfs_block_cut(word, phase, raw_len);
	struct wfs_wide_groups groups;

	if (!cut.nr_words)
		return raw_len;
	wfs_wide_groups_find(place->geometry, place->raw_off + cut.head, word, cut.nr_words, &groups);
	size_t len = wfs_wide_encode(pool, kernel, &groups, raw + cut.head, cut.nr_words, comp,
				     raw_len - cut.head - cut.tail, buffers);
	return append_edges(comp, len, &cut, raw, raw_len);
}

/* The bytes of records in part order by the wide coding. */
static size_t records_encode(const struct wfs_coder *coder, const struct wfs_wide_encode_pool *pool,
			     const struct wfs_encode_kernel *kernel, unsigned phase, const u8 *raw, size_t raw_len,
			     u8 *comp, struct wfs_encode_scratch *scratch)
{
	const struct wfs_records records = wfs_coder_records(coder);
	struct wfs_block_cut cut = wfs_block_cut(coder->word, phase, raw_len);
	struct wfs_wide_groups groups;

	if (!cut.nr_words)
		return raw_len;
	wfs_records_gather(&records, raw + cut.head, cut.nr_words, scratch->part);
	wfs_records_groups(&records, cut.nr_words, &groups);
	size_t len = wfs_wide_encode(pool, kernel, &groups, scratch->part, cut.nr_words * coder->word, comp,
				     raw_len - cut.head - cut.tail, &scratch->buffers);
	return append_edges(comp, len, &cut, raw, raw_len);
}

/* The words as codes of a grid, these by the split or the wide coding. */
static size_t grid_encode(const struct wfs_coder *coder, const struct wfs_encode_tables *tables, enum wfs_cpu cpu,
			  const struct wfs_place *place, unsigned phase, const u8 *raw, size_t raw_len, u8 *comp,
			  struct wfs_encode_scratch *scratch)
{
	const struct wfs_block_cut cut = wfs_block_cut(coder->word, phase, raw_len);
	size_t front, room, len;
	struct wfs_wide_groups groups;

	if (!cut.nr_words ||
	    !wfs_grid_codes(tables->grid, cpu, place, cut.head, raw + cut.head, cut.nr_words, &scratch->grid))
		return raw_len;
	front = wfs_grid_front_bytes(tables->grid, &scratch->grid);
	if (front + cut.head + cut.tail >= raw_len)
		return raw_len;
	room = raw_len - front - cut.head - cut.tail;
	if (coder->coding == WFS_GRID) {
		len = wfs_split_encode(tables->split, kernel_for(cpu), scratch->grid.code, cut.nr_words,
				       comp + raw_len - room, room, &scratch->buffers);
	} else {
		wfs_wide_groups_find(place->geometry, place->raw_off + cut.head, coder->word, cut.nr_words, &groups);
		len = wfs_wide_encode(tables->wide, kernel_for(cpu), &groups, scratch->grid.code, cut.nr_words,
				      comp + raw_len - room, room, &scratch->buffers);
	}
	if (len == SIZE_MAX)
		return raw_len;
	wfs_grid_front_write(tables->grid, &scratch->grid, raw + cut.head, comp);
	memcpy(comp + front, raw, cut.head);
	memcpy(comp + front + cut.head, raw + raw_len - cut.tail, cut.tail);
	return raw_len - room + len;
}

size_t wfs_payload_encode(const struct wfs_coder *coder, const struct wfs_encode_tables *tables, enum wfs_cpu cpu,
			  const struct wfs_place *place, const u8 *raw, size_t raw_len, u8 *comp,
			  struct wfs_encode_scratch *scratch)
{
	const unsigned phase = (unsigned)(place->phase % coder->word);

	if (raw_len > WFS_MAX_BLOCK)
		return raw_len;
	switch (coder->coding) {
	case WFS_LZ4:
		return lz4_encode(raw, raw_len, comp, scratch);
	case WFS_CONSTANT:
		return constant_encode(coder->word, phase, raw, raw_len, comp);
	case WFS_SPLIT:
		return split_encode(tables->split, kernel_for(cpu), phase, raw, raw_len, comp, &scratch->buffers);
	case WFS_WIDE:
		return wide_encode(tables->wide, coder->word, kernel_for(cpu), place, phase, raw, raw_len, comp,
				   &scratch->buffers);
	case WFS_RECORDS:
		return records_encode(coder, tables->wide, kernel_for(cpu), phase, raw, raw_len, comp, scratch);
	case WFS_GRID:
	case WFS_GRID_WIDE:
		return grid_encode(coder, tables, cpu, place, phase, raw, raw_len, comp, scratch);
	default:
		return raw_len;
	}
}
