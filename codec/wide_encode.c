/* wide_encode.c - the frame of the wide encoder: segments, table choice, escapes, literals and the payload's layout
 * (FORMAT.md 4.2). Words are cut by the split encoder's kernels, whose symbols are here the names of the pool.
 *
 * As in split_encode.c, everything of unknown length is made in the scratch first. Every decision depends on exact
 * integers only.
 */
#include "wide_encode.h"

/* Marks segments with escapes in seg[]. */
enum { HAS_ESCAPES = 0x80, TABLE = 0x7f };

/* ---- segments ---- */

/* Fills seg_end; returns how many segments. */
static size_t segments_cut(const struct wfs_wide_groups *groups, size_t nr_words, u32 *seg_end)
{
	size_t nr = 0;

	for (unsigned i = 0; i < groups->nr; i++) {
		const size_t group_end = i + 1 < groups->nr ? groups->group[i + 1].first : nr_words;
		size_t at = groups->group[i].first, phase = i ? 0 : groups->phase;

		for (; at < group_end; at = seg_end[nr++], phase = 0)
			seg_end[nr] = (u32)WFS_MIN(at + groups->group[i].seg_len - phase, group_end);
	}
	return nr;
}

/* Counts the names of the words first..end-1 of one row, whatever position they have. */
static void row_count(unsigned word, const u8 *row, unsigned first, unsigned end, u16 *hist)
{
	for (unsigned pos = 0; pos < WFS_LANES; pos++) {
		const unsigned w = wfs_lane_word(word, pos);

		if (w >= first && w < end)
			hist[row[pos]]++;
	}
}

/* How often each name occurs among the words first..end-1 of the block. */
static void segment_count(unsigned word, const u8 *name, size_t first, size_t end, u16 (*hist)[WFS_FIELD_VALUES],
			  u16 count[WFS_WIDE_NAMES])
{
	const size_t first_row = WFS_CEIL_DIV(first, (size_t)WFS_LANES), end_row = end / WFS_LANES;
	const unsigned in_first = (unsigned)(first % WFS_LANES), in_end = (unsigned)(end % WFS_LANES);

	for (unsigned k = 0; k < WFS_HISTS; k++)
		memset(hist[k], 0, WFS_WIDE_NAMES * sizeof(hist[k][0]));
	if (first_row > end_row) { /* all in one row */
		row_count(word, name + end_row * WFS_LANES, in_first, in_end, hist[0]);
	} else {
		if (in_first)
			row_count(word, name + (first_row - 1) * WFS_LANES, in_first, WFS_LANES, hist[0]);
		if (in_end)
			row_count(word, name + end_row * WFS_LANES, 0, in_end, hist[1]);
	}
	for (size_t i = first_row * WFS_LANES; i < end_row * WFS_LANES; i += 8) {
		const u64 eight = wfs_load64(name + i);

		hist[0][eight & 255]++;
		hist[1][eight >> 8 & 255]++;
		hist[2][eight >> 16 & 255]++;
		hist[3][eight >> 24 & 255]++;
		hist[0][eight >> 32 & 255]++;
		hist[1][eight >> 40 & 255]++;
		hist[2][eight >> 48 & 255]++;
		hist[3][eight >> 56]++;
	}
	for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
		count[i] = (u16)(hist[0][i] + hist[1][i] + hist[2][i] + hist[3][i]);
}

/* The table with the least cost, the lowest number of equals. */
static unsigned table_choose(const struct wfs_wide_encode_pool *pool, const u16 count[WFS_WIDE_NAMES])
{
	u32 cost[WFS_WIDE_MAX_TABLES] = {0};
	unsigned best = 0;

	for (unsigned c = 0; c < WFS_WIDE_NAMES && pool->nr_tables > 1; c += WFS_COST_CHUNK) {
		u32 any = 0;

		for (unsigned i = 0; i < WFS_COST_CHUNK; i++)
			any |= count[c + i];
		for (unsigned t = 0; any && t < pool->nr_tables; t++)
			cost[t] += wfs_chunk_cost(count + c, pool->cost[t] + c);
	}
	for (unsigned t = 1; t < pool->nr_tables; t++)
		if (cost[t] < cost[best])
			best = t;
	return best;
}

/* Gives each segment its table. False: a table without escapes meets a name that it does not have. */
static bool tables_choose(const struct wfs_wide_encode_pool *pool, size_t nr_segs, struct wfs_encode_buffers *buf)
{
	size_t first = 0;

	for (size_t g = 0; g < nr_segs; g++) {
		const size_t end = buf->wide.seg_end[g];
		u16 count[WFS_WIDE_NAMES];
		u32 escapes = 0;

		segment_count(pool->s.word, buf->sym, first, end, buf->hist, count);
		const unsigned t = table_choose(pool, count);
		for (unsigned i = 0; i < WFS_WIDE_NAMES; i++)
			escapes += pool->table[t].escaped[i] ? count[i] : 0;
		if (escapes && !pool->table[t].has_escape)
			return false;
		buf->wide.seg[g] = (u8)(t | (escapes ? HAS_ESCAPES : 0));
		first = end;
	}
	return true;
}

/* ---- words ---- */

/* Names and rest bits of all words; returns the end of the rest bits. */
static u8 *words_cut(const struct wfs_wide_encode_pool *pool, const struct wfs_encode_kernel *kernel, const u8 *raw,
		     size_t nr_words, struct wfs_encode_buffers *buf)
{
	const struct wfs_encode_table names = {.map = pool->name};
	const struct wfs_split s = pool->s;
	const size_t nr_whole = nr_words / WFS_SUPER;
	u8 *rest = buf->rest;

	for (size_t i = 0; i < nr_whole; i++) {
		const u8 *from = raw + i * WFS_SUPER * s.word;

		kernel->fields(s, from, 1, buf->field);
		rest = kernel->superrow(s, &names, buf->mode[i], from, buf->field, buf->sym + i * WFS_SUPER, rest);
	}
	if (nr_words % WFS_SUPER)
		rest = wfs_encode_unit_scalar(s, &names, buf->mode[nr_whole], raw + nr_whole * WFS_SUPER * s.word,
					      nr_words % WFS_SUPER, wfs_last_rows(nr_words),
					      buf->sym + nr_whole * WFS_SUPER, rest);
	return rest;
}

/* Positions beyond the last word. */
static void padding_fill(const struct wfs_wide_encode_pool *pool, size_t nr_words, unsigned table, u8 *name)
{
	const size_t last_row = (nr_words - 1) / WFS_LANES * WFS_LANES;

	for (unsigned p = 0; p < WFS_LANES; p++)
		if (last_row + wfs_lane_word(pool->s.word, p) >= nr_words)
			name[last_row + p] = pool->table[table].padding;
}

/* Where the segments of a row are: a walk over rows, forwards or backwards. */
struct row_segments {
	const struct wfs_encode_wide_buffers *wide;
	size_t first, last; /* segments of the row's first and last word */
};

/* Tables of the positions of a row that lies in several segments. */
static void row_tables(const struct row_segments *at, unsigned word, size_t first_word, u8 table[WFS_LANES])
{
	u8 of_word[WFS_LANES];
	size_t g = at->first;

	for (unsigned i = 0; i < WFS_LANES; i++) {
		if (g < at->last && first_word + i == at->wide->seg_end[g])
			g++;
		of_word[i] = at->wide->seg[g];
	}
	for (unsigned p = 0; p < WFS_LANES; p++)
		table[p] = of_word[wfs_lane_word(word, p)];
}

/* What scanning for escapes finds. */
struct escapes {
	size_t nr, nr_literals; /* nr_literals: WFS_MAX_LITERALS + 1 when more than fit */
};

/* The escapes of a row, whose positions have these tables: their bytes, and the words that are literals. */
static void row_escapes(const struct wfs_wide_encode_pool *pool, const u8 *raw, size_t nr_words, size_t first_word,
			const u8 table[WFS_LANES], struct escapes *found, struct wfs_encode_buffers *buf)
{
	const struct wfs_split s = pool->s;
	u64 literals = 0;

	for (unsigned p = 0; p < WFS_LANES; p++) {
		const unsigned w = wfs_lane_word(s.word, p);
		u16 field;

		if (!pool->table[table[p] & TABLE].escaped[buf->sym[first_word + p]] || first_word + w >= nr_words)
			continue;
		wfs_encode_fields_scalar(s, raw + (first_word + w) * s.word, 1, &field);
		buf->nibble[found->nr] = pool->escape[field];
		literals |= (u64)(buf->nibble[found->nr++] == WFS_WIDE_LITERAL) << w;
	}
	if (found->nr_literals + (unsigned)__builtin_popcountll(literals) > WFS_MAX_LITERALS) {
		found->nr_literals = WFS_MAX_LITERALS + 1;
		return;
	}
	for (; literals; literals &= literals - 1)
		buf->literal[found->nr_literals++] = (u32)first_word + (u32)__builtin_ctzll(literals);
}

static struct escapes escapes_find(const struct wfs_wide_encode_pool *pool, const u8 *raw, size_t nr_words,
				   struct wfs_encode_buffers *buf)
{
	const u32 *seg_end = buf->wide.seg_end;
	struct row_segments at = {&buf->wide, 0, 0};
	struct escapes found = {0, 0};

	for (size_t first = 0; first < nr_words && found.nr_literals <= WFS_MAX_LITERALS; first += WFS_LANES) {
		const size_t last = WFS_MIN(first + WFS_LANES, nr_words) - 1;
		u8 table[WFS_LANES], any = 0;

		for (at.first = at.last; seg_end[at.first] <= first; at.first++)
			;
		for (at.last = at.first; seg_end[at.last] <= last; at.last++)
			;
		for (size_t g = at.first; g <= at.last; g++)
			any |= buf->wide.seg[g];
		if (!(any & HAS_ESCAPES))
			continue;
		row_tables(&at, pool->s.word, first, table);
		row_escapes(pool, raw, nr_words, first, table, &found, buf);
	}
	return found;
}

/* ---- the rANS pass ---- */

/* Pushes one name; returns the new end of the stream. */
static WFS_ALWAYS_INLINE u8 *name_push(const struct wfs_wide_sym *sym, u32 *lane, u8 *end)
{
	u32 x = *lane;
	const u32 whole = x >= sym->limit; /* too large to push on: 16 bits leave */

	wfs_store16(end - 2, (u16)x);
	end -= 2 * whole;
	x >>= 16 * whole;
	*lane = x + (u32)(x * sym->recip >> 44) * sym->rest + sym->start;
	return end;
}

/* All rows backwards. Returns the start of the stream, which ends where the buffer does, or NULL when it is longer than
 * a block. */
static u8 *pass(const struct wfs_wide_encode_pool *pool, size_t nr_words, size_t nr_segs,
		struct wfs_encode_buffers *buf, u32 lane[WFS_WIDE_LANES])
{
	u8 *end = buf->wide_stream + sizeof(buf->wide_stream);
	struct row_segments at = {&buf->wide, nr_segs - 1, nr_segs - 1};

	for (unsigned i = 0; i < WFS_WIDE_LANES; i++)
		lane[i] = WFS_WIDE_STATE_MIN;
	for (size_t r = WFS_CEIL_DIV(nr_words, (size_t)WFS_LANES); r-- > 0;) {
		const size_t first = r * WFS_LANES;
		const u8 *name = buf->sym + first;

		if (end - buf->wide_stream < 2 * WFS_LANES)
			return NULL;
		for (at.last = at.first; at.last && buf->wide.seg_end[at.last - 1] >= first + WFS_LANES; at.last--)
			;
		for (at.first = at.last; at.first && buf->wide.seg_end[at.first - 1] > first; at.first--)
			;
		if (at.first == at.last) {
			const struct wfs_wide_sym *sym = pool->table[buf->wide.seg[at.first] & TABLE].sym;

			for (unsigned p = WFS_LANES; p-- > 0;)
				end = name_push(&sym[name[p]], &lane[p % WFS_WIDE_LANES], end);
		} else {
			u8 table[WFS_LANES];

			row_tables(&at, pool->s.word, first, table);
			for (unsigned p = WFS_LANES; p-- > 0;)
				end = name_push(&pool->table[table[p] & TABLE].sym[name[p]], &lane[p % WFS_WIDE_LANES],
						end);
		}
	}
	return end;
}

/* ---- the payload ---- */

struct payload {
	const struct wfs_wide_groups *groups;
	size_t nr_segs, rest_len, stream_len;
	unsigned nr_modes, number_bits;
	struct escapes escapes;
	u32 lane[WFS_WIDE_LANES];
	const u8 *stream;
};

static size_t payload_bytes(const struct payload *p, unsigned word)
{
	return WFS_WIDE_HEADER + WFS_WIDE_GROUP_BYTES * p->groups->nr +
	       WFS_CEIL_DIV(p->nr_segs * p->number_bits, (size_t)8) + 3 * p->nr_modes + WFS_WIDE_STATE_BYTES +
	       p->stream_len + p->escapes.nr + (4 + word) * p->escapes.nr_literals + p->rest_len;
}

static u8 *append(u8 *out, const void *from, size_t len)
{
	memcpy(out, from, len);
	return out + len;
}

static u8 *append_numbers(u8 *out, const u8 *seg, size_t nr_segs, unsigned number_bits)
{
	u32 bits = 0;
	unsigned nr_bits = 0;

	for (size_t g = 0; g < nr_segs; g++) {
		bits |= (u32)(seg[g] & TABLE) << nr_bits;
		for (nr_bits += number_bits; nr_bits >= 8; nr_bits -= 8, bits >>= 8)
			*out++ = (u8)bits;
	}
	if (nr_bits)
		*out++ = (u8)bits;
	return out;
}

static void payload_write(const struct payload *p, unsigned word, const u8 *raw, const struct wfs_encode_buffers *buf,
			  u8 *out)
{
	wfs_store24(out, (u32)p->stream_len);
	wfs_store24(out + 3, (u32)p->escapes.nr);
	wfs_store16(out + 6, (u16)p->escapes.nr_literals);
	out[8] = (u8)p->nr_modes;
	out[9] = (u8)p->groups->nr;
	wfs_store16(out + 10, (u16)p->groups->phase);
	out += WFS_WIDE_HEADER;
	for (unsigned i = 0; i < p->groups->nr; i++, out += WFS_WIDE_GROUP_BYTES) {
		wfs_store24(out, p->groups->group[i].first);
		wfs_store16(out + 3, p->groups->group[i].seg_len);
	}
	out = append_numbers(out, buf->wide.seg, p->nr_segs, p->number_bits);
	out = append(out, buf->mode_list, 3 * p->nr_modes);
	out = append(out, p->lane, WFS_WIDE_STATE_BYTES);
	out = append(out, p->stream, p->stream_len);
	out = append(out, buf->nibble, p->escapes.nr);
	for (size_t i = 0; i < p->escapes.nr_literals; i++) {
		wfs_store32(out, buf->literal[i]);
		out = append(out + 4, raw + (size_t)buf->literal[i] * word, word);
	}
	append(out, buf->rest, p->rest_len);
}

size_t wfs_wide_encode(const struct wfs_wide_encode_pool *pool, const struct wfs_encode_kernel *kernel,
		       const struct wfs_wide_groups *groups, const u8 *raw, size_t nr_words, u8 *comp, size_t room,
		       struct wfs_encode_buffers *buf)
{
	const struct wfs_split s = pool->s;
	struct payload p = {.groups = groups, .number_bits = pool->number_bits};

	p.nr_modes = wfs_modes_find(s, raw, nr_words, buf);
	p.rest_len = (size_t)(words_cut(pool, kernel, raw, nr_words, buf) - buf->rest);
	p.nr_segs = segments_cut(groups, nr_words, buf->wide.seg_end);
	if (!tables_choose(pool, p.nr_segs, buf))
		return SIZE_MAX;
	padding_fill(pool, nr_words, buf->wide.seg[p.nr_segs - 1] & TABLE, buf->sym);
	p.escapes = escapes_find(pool, raw, nr_words, buf);
	if (p.escapes.nr_literals > WFS_MAX_LITERALS || payload_bytes(&p, s.word) >= room)
		return SIZE_MAX;
	p.stream = pass(pool, nr_words, p.nr_segs, buf, p.lane);
	if (!p.stream)
		return SIZE_MAX;
	p.stream_len = (size_t)(buf->wide_stream + sizeof(buf->wide_stream) - p.stream);
	size_t bytes = payload_bytes(&p, s.word);
	if (bytes >= room)
		return SIZE_MAX;
	payload_write(&p, s.word, raw, buf, comp);
	return bytes;
}
