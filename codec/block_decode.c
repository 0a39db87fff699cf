/* block_decode.c - one block's payload back to its bytes, whatever its coding (FORMAT.md 1.5). */
#include "block.h"
#include "split_merge.h"
#include "split_prefetch.h"

#include <lz4.h>
#include <stdlib.h>

_Static_assert(sizeof(struct wfs_scratch) <= 7 << 18, "as wfs.h says");

struct wfs_scratch *wfs_scratch_new(void)
{
	struct wfs_scratch *scratch = aligned_alloc(_Alignof(struct wfs_scratch), sizeof(*scratch));

	if (scratch)
		wfs_split_scratch_init(scratch);
	return scratch;
}

void wfs_scratch_free(struct wfs_scratch *scratch)
{
	free(scratch);
}

static const char *decode_stored(const u8 *comp, size_t comp_len, u8 *raw, size_t raw_len)
{
	if (comp_len != raw_len)
		return "stored block has another length";
	memcpy(raw, comp, raw_len);
	return NULL;
}

static const char *decode_lz4(const u8 *comp, size_t comp_len, u8 *raw, size_t raw_len)
{
	if (comp_len > WFS_MAX_BLOCK || raw_len > WFS_MAX_BLOCK)
		return "LZ4 block is too long";
	if (LZ4_decompress_safe((const char *)comp, (char *)raw, (int)comp_len, (int)raw_len) != (int)raw_len)
		return "LZ4 block is not valid";
	return NULL;
}

static const char *decode_constant(unsigned word, unsigned phase, const u8 *comp, size_t comp_len, u8 *raw,
				   size_t raw_len)
{
	size_t done = WFS_MIN((size_t)word, raw_len);

	if (comp_len != word)
		return "constant block is not one word";
	for (size_t i = 0; i < done; i++)
		raw[i] = comp[(phase + i) % word];
	/* What is done always starts and ends at the same place of a word: double it. */
	while (done < raw_len) {
		size_t len = WFS_MIN(done, raw_len - done);

		memcpy(raw + done, raw, len);
		done += len;
	}
	return NULL;
}

/* The bytes of cut words to either end of the block. */
static void put_edges(const u8 *edges, const struct wfs_block_cut *cut, u8 *raw, size_t raw_len)
{
	memcpy(raw, edges, cut->head);
	memcpy(raw + raw_len - cut->tail, edges + cut->head, cut->tail);
}

static enum wfs_status decode_split(const struct wfs_coder *coder, const struct wfs_decode_pool *pool,
				    const struct wfs_kernels *kernels, unsigned phase, const u8 *comp, size_t comp_len,
				    u8 *raw, size_t raw_len, struct wfs_scratch *scratch, const char **reason_ret)
{
	const struct wfs_split s = wfs_coder_split(coder);
	const struct wfs_block_cut cut = wfs_block_cut(coder->word, phase, raw_len);
	struct wfs_split_view v;
	enum wfs_status status;

	wfs_prefetch_block(comp, raw, raw_len);
	status = wfs_split_parse(comp, comp_len, s, pool, cut.nr_words, cut.head + cut.tail, &v, reason_ret);
	if (status != WFS_OK)
		return status;
	status = kernels->split(&v, pool, s, raw + cut.head, scratch, reason_ret);
	if (status != WFS_OK)
		return status;
	put_edges(v.edges, &cut, raw, raw_len);
	return WFS_OK;
}

/* Words, or the bytes of records. */
static enum wfs_status decode_wide(const struct wfs_coder *coder, const struct wfs_wide_decode_pool *pool,
				   const struct wfs_kernels *kernels, unsigned phase, const u8 *comp, size_t comp_len,
				   u8 *raw, size_t raw_len, struct wfs_scratch *scratch, const char **reason_ret)
{
	const struct wfs_split s = wfs_coder_split(coder);
	const struct wfs_block_cut cut = wfs_block_cut(coder->word, phase, raw_len);
	const bool records = coder->coding == WFS_RECORDS;
	const size_t n = cut.nr_words * (records ? coder->word : 1u);
	struct wfs_wide_view v;
	enum wfs_status status;

	status = wfs_wide_parse(comp, comp_len, s, pool, n, cut.head + cut.tail, &v, reason_ret);
	if (status != WFS_OK)
		return status;
	status = kernels->wide(&v, pool, s, records ? scratch->part : raw + cut.head, scratch, reason_ret);
	if (status != WFS_OK)
		return status;
	if (records) {
		const struct wfs_records r = wfs_coder_records(coder);

		wfs_records_scatter(&r, scratch->part, cut.nr_words, raw + cut.head);
	}
	put_edges(v.edges, &cut, raw, raw_len);
	return WFS_OK;
}

/* The codes of a grid to scratch. raw: where their words will be. */
static enum wfs_status decode_codes(const struct wfs_coder *coder, const struct wfs_decode_tables *tables,
				    const struct wfs_kernels *kernels, const struct wfs_grid_view *v, const u8 *raw,
				    struct wfs_scratch *scratch, const char **reason_ret)
{
	const struct wfs_split s = wfs_coder_split(coder);
	struct wfs_split_view split;
	struct wfs_wide_view wide;
	enum wfs_status status;

	if (coder->coding == WFS_GRID_WIDE) {
		status = wfs_wide_parse(v->codes, v->codes_len, s, tables->wide, v->n, 0, &wide, reason_ret);
		if (status != WFS_OK)
			return status;
		return kernels->wide(&wide, tables->wide, s, scratch->code, scratch, reason_ret);
	}
	status = wfs_split_parse(v->codes, v->codes_len, s, tables->split, v->n, 0, &split, reason_ret);
	if (status != WFS_OK)
		return status;
	split.later = raw;
	split.later_bytes = coder->word;
	return kernels->split(&split, tables->split, s, scratch->code, scratch, reason_ret);
}

/* The codes of a grid, then the words that they stand for. */
static enum wfs_status decode_grid(const struct wfs_coder *coder, const struct wfs_decode_tables *tables,
				   const struct wfs_kernels *kernels, unsigned phase, const u8 *comp, size_t comp_len,
				   u8 *raw, size_t raw_len, struct wfs_scratch *scratch, const char **reason_ret)
{
	const struct wfs_block_cut cut = wfs_block_cut(coder->word, phase, raw_len);
	const u8 *literal;
	struct wfs_grid_view v;
	enum wfs_status status;
	const char *reason;

	status =
		wfs_grid_parse_payload(comp, comp_len, tables->grid, cut.nr_words, cut.head + cut.tail, &v, reason_ret);
	if (status != WFS_OK)
		return status;
	status = decode_codes(coder, tables, kernels, &v, raw + cut.head, scratch, reason_ret);
	if (status != WFS_OK)
		return status;
	/* Expansion looks up whole vectors of codes; what they give beyond the last word is dropped. */
	memset(scratch->code + v.n, 0, WFS_GRID_CODE_SLACK);
	reason = wfs_grid_scales(&v, tables->grid, kernels->grid_scales, scratch->scale);
	if (reason) {
		*reason_ret = reason;
		return WFS_BAD_DATA;
	}
	put_edges(v.edges, &cut, raw, raw_len);
	raw += cut.head;
	kernels->grid(&v, tables->grid, scratch->code, scratch->scale, raw);
	literal = v.literals;
	for (u32 i = 0; i < v.nr_literals; i++, literal += 4 + coder->word)
		memcpy(raw + (size_t)wfs_load32(literal) * coder->word, literal + 4, coder->word);
	return WFS_OK;
}

enum wfs_status wfs_payload_decode(const struct wfs_coder *coder, const struct wfs_decode_tables *tables,
				   const struct wfs_kernels *kernels, unsigned phase, const u8 *comp, size_t comp_len,
				   u8 *raw, size_t raw_len, struct wfs_scratch *scratch, const char **reason_ret)
{
	const char *reason;

	switch (coder->coding) {
	case WFS_STORED:
		reason = decode_stored(comp, comp_len, raw, raw_len);
		break;
	case WFS_LZ4:
		reason = decode_lz4(comp, comp_len, raw, raw_len);
		break;
	case WFS_CONSTANT:
		reason = decode_constant(coder->word, phase, comp, comp_len, raw, raw_len);
		break;
	case WFS_SPLIT:
		return decode_split(coder, tables->split, kernels, phase, comp, comp_len, raw, raw_len, scratch,
				    reason_ret);
	case WFS_WIDE:
	case WFS_RECORDS:
		return decode_wide(coder, tables->wide, kernels, phase, comp, comp_len, raw, raw_len, scratch,
				   reason_ret);
	case WFS_GRID:
	case WFS_GRID_WIDE:
		return decode_grid(coder, tables, kernels, phase, comp, comp_len, raw, raw_len, scratch, reason_ret);
	default:
		*reason_ret = "block coding is not known";
		return WFS_UNSUPPORTED;
	}
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
