/* wide_groups.c - where the segments of a block lie: along the rows of its matrices (FORMAT.md 4.2).
 *
 * Weights of a row are alike, those of different rows less so. A row is one segment when its length allows; longer ones
 * are cut evenly, shorter ones joined. Words outside of matrices take segments of a fixed length.
 */
#include "wide.h"

enum {
	ROW_MIN = 300,
	ROW_MAX = 1300,
	OUTSIDE_WORDS = 1024,
	MIN_GROUP = 256, /* words: shorter tensors are not worth a group */
};

unsigned wfs_wide_segment_words(u64 cols)
{
	if (cols < 2)
		return OUTSIDE_WORDS;
	while (cols < ROW_MIN)
		cols *= 2;
	if (cols <= ROW_MAX)
		return (unsigned)cols;
	for (unsigned len = ROW_MAX; len >= ROW_MIN; len--)
		if (cols % len == 0)
			return len;
	return cols <= 2 * ROW_MAX ? (unsigned)cols : OUTSIDE_WORDS;
}

/* From word `first` on segments of seg_len words, the first one's beginning `phase` words before. Nothing to do when
 * the group before goes on like that. */
static void group_add(struct wfs_wide_groups *g, size_t first, unsigned seg_len, unsigned phase)
{
	if (g->nr) {
		const unsigned last = g->nr - 1;
		const size_t since = first - g->group[last].first + (last ? 0 : g->phase);

		if (g->group[last].seg_len == seg_len && since % seg_len == phase)
			return;
	}
	if (g->nr == WFS_WIDE_MAX_GROUPS)
		return;
	if (!g->nr)
		g->phase = phase;
	g->group[g->nr].first = (u32)first;
	g->group[g->nr++].seg_len = (u16)seg_len;
}

/* Whole words of the matrix among the block's: those from *first_ret to *end_ret - 1, phase_ret words of the matrix
 * before them. False: too few, or the matrix has other words. */
static bool matrix_words(const struct wfs_matrix *m, u64 raw_off, unsigned word, size_t nr_words, size_t *first_ret,
			 size_t *end_ret, u64 *before_ret)
{
	const u64 raw_end = raw_off + (u64)nr_words * word, m_end = m->raw_off + m->raw_len;
	const u64 start = WFS_MAX(m->raw_off, raw_off), end = WFS_MIN(m_end, raw_end);

	if (m->word != word || start >= end ||
	    (m->raw_off > raw_off ? m->raw_off - raw_off : raw_off - m->raw_off) % word)
		return false;
	*first_ret = (size_t)((start - raw_off) / word);
	*end_ret = (size_t)((end - raw_off) / word);
	*before_ret = (start - m->raw_off) / word;
	return *end_ret - *first_ret >= MIN_GROUP;
}

void wfs_wide_groups_find(const struct wfs_geometry *geometry, u64 raw_off, unsigned word, size_t nr_words,
			  struct wfs_wide_groups *groups_ret)
{
	const u64 raw_end = raw_off + (u64)nr_words * word;
	size_t at = 0; /* words that have a group */

	groups_ret->nr = 0;
	groups_ret->phase = 0;
	for (size_t i = geometry ? wfs_geometry_find(geometry, raw_off) : 0; geometry && i < geometry->nr; i++) {
		const struct wfs_matrix *m = &geometry->matrix[i];
		const unsigned seg_len = wfs_wide_segment_words(m->cols);
		size_t first, end;
		u64 before;

		if (m->raw_off >= raw_end)
			break;
		if (!matrix_words(m, raw_off, word, nr_words, &first, &end, &before))
			continue;
		if (first - at >= MIN_GROUP || (first > at && !groups_ret->nr))
			group_add(groups_ret, at, OUTSIDE_WORDS, 0);
		group_add(groups_ret, first, seg_len, (unsigned)(before % seg_len));
		at = end;
	}
	if (nr_words - at >= MIN_GROUP || !groups_ret->nr)
		group_add(groups_ret, at, OUTSIDE_WORDS, 0);
}
