/* split_encode.c - the frame of the split encoder: encode pools, modes, table choice, escapes, literals and the
 * payload's layout (FORMAT.md 2.2). Kernels do the work on words; every decision is made here or from exact integers
 * there.
 *
 * Everything of unknown length is made in the scratch first, so nothing is written to comp before it is known to fit.
 */
#include "split_encode.h"

#include <stdlib.h>

/* ---- encode pools ---- */

static void symbols_expand(const struct wfs_table *t, struct wfs_encode_table *e)
{
	bool seen[WFS_MAX_SYMS] = {false};
	unsigned pos = 0;

	for (unsigned i = 0; i < t->nrun; i++) {
		unsigned sym = t->run_sym[i];
		if (!seen[sym]) {
			e->base[sym] = (u8)pos;
			e->first[sym] = t->run_len[i];
		} else {
			e->jump[sym] = (u8)(pos - (e->base[sym] + e->first[sym]));
		}
		seen[sym] = true;
		pos += t->run_len[i];
	}
	e->escape = (u8)(t->m - 1);
	for (unsigned i = 0; i < e->escape; i++)
		if (t->freq[i] > t->freq[e->padding])
			e->padding = (u8)i;
	for (unsigned i = 0; i < WFS_LITERAL + 1; i++) {
		unsigned sym = i < WFS_TAIL_BASE ? i : e->escape, freq = sym < t->m ? t->freq[sym] : 1;
		unsigned recip16 = WFS_MIN(65536 / freq, 65535u);
		e->freq[i] = (u8)freq;
		e->base[i] = e->base[sym];
		e->first[i] = e->first[sym];
		e->jump[i] = e->jump[sym];
		e->recip16_lo[i] = (u8)recip16;
		e->recip16_hi[i] = (u8)(recip16 >> 8);
		e->sym[i] = (struct wfs_encode_sym){WFS_CEIL_DIV(1u << 24, freq), (u8)(256 - freq), e->base[i],
						    e->first[i], e->jump[i]};
	}
}

static void map_fill(const struct wfs_table *t, u8 *map, size_t map_bytes)
{
	memset(map, WFS_LITERAL, map_bytes);
	for (unsigned i = 0; i < t->ntail; i++)
		map[t->tail[i]] = (u8)(WFS_TAIL_BASE + i);
	for (unsigned i = 0; i + 1 < t->m; i++)
		map[t->val[i]] = (u8)i;
}

struct wfs_encode_pool *wfs_encode_pool_new(const struct wfs_pool *pool, struct wfs_split s)
{
	const u32 nr_values = 1u << s.field, nr_chunks = WFS_CEIL_DIV(nr_values, (u32)WFS_COST_CHUNK);
	const size_t map_bytes = WFS_MAX(nr_values, (u32)WFS_MAP_MIN);
	const size_t cost_bytes = (size_t)nr_chunks * pool->nr_tables * WFS_COST_CHUNK * sizeof(u16);
	u16 cost[WFS_FIELD_VALUES] = {0};
	/* one allocation: the struct, costs, maps; all sizes are multiples of 64 */
	struct wfs_encode_pool *p = aligned_alloc(64, sizeof(*p) + cost_bytes + pool->nr_tables * map_bytes);

	_Static_assert(sizeof(*p) % 64 == 0, "costs stay aligned");
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	u16 *costs = (u16 *)(p + 1);
	u8 *maps = (u8 *)(p + 1) + cost_bytes;
	p->s = s;
	p->nr_tables = pool->nr_tables;
	p->seg_log2 = pool->seg_log2;
	p->nr_chunks = nr_chunks;
	p->cost = costs;
	for (unsigned t = 0; t < pool->nr_tables; t++, maps += map_bytes) {
		symbols_expand(&pool->table[t], &p->table[t]);
		map_fill(&pool->table[t], maps, map_bytes);
		p->table[t].map = maps;
		wfs_table_costs(&pool->table[t], s, cost);
		for (u32 c = 0; c < nr_chunks; c++)
			memcpy(costs + (c * pool->nr_tables + t) * WFS_COST_CHUNK, cost + c * WFS_COST_CHUNK,
			       WFS_COST_CHUNK * sizeof(u16));
	}
	return p;
}

void wfs_encode_pool_free(struct wfs_encode_pool *pool)
{
	free(pool);
}

/* ---- modes (FORMAT.md 2.5) ---- */

/* OR and AND of words, each folded from u64s into the low word. */
struct word_masks {
	u64 any, all;
};

static struct word_masks masks_fold(struct word_masks m, unsigned word)
{
	for (unsigned bits = 32; bits >= 8 * word; bits /= 2) {
		m.any |= m.any >> bits;
		m.all &= m.all >> bits;
	}
	u64 mask = ~(u64)0 >> (64 - 8 * word);
	return (struct word_masks){m.any & mask, m.all & mask};
}

static unsigned mode_of(struct wfs_split s, struct word_masks m)
{
	const unsigned sign_bit = 8u * s.word - 1, most = 8u * s.word - s.field - 1u;
	u64 mantissa = m.any & ((1ull << sign_bit) - 1);
	unsigned zeros = mantissa ? (unsigned)__builtin_ctzll(mantissa) : most;
	unsigned sign = !(m.any >> sign_bit & 1) ? 1 : m.all >> sign_bit & 1 ? 2 : 0;
	return WFS_MIN(zeros, most) | sign << 6;
}

/* The mode that stores fewest bits of these words. Ordinary data shows within 64 bytes that it has none. */
static unsigned superrow_mode(struct wfs_split s, const u8 *raw, size_t nr_words)
{
	struct word_masks m = {0, ~(u64)0};
	size_t len = nr_words * s.word, at = 0;

	for (; at + 64 <= len; at += 64) {
		for (unsigned i = 0; i < 64; i += 8) {
			u64 x = wfs_load64(raw + at + i);
			m.any |= x;
			m.all &= x;
		}
		if (!mode_of(s, masks_fold(m, s.word)))
			return 0;
	}
	m = masks_fold(m, s.word);
	for (; at < len; at += s.word) {
		u64 x = 0;
		memcpy(&x, raw + at, s.word);
		m.any |= x;
		m.all &= x;
	}
	return mode_of(s, m);
}

/* The strongest mode that is right for the words of both modes. */
static unsigned mode_common(unsigned a, unsigned b)
{
	unsigned sign = wfs_mode_sign(a) == wfs_mode_sign(b) ? wfs_mode_sign(a) : 0;
	return WFS_MIN(wfs_mode_zeros(a), wfs_mode_zeros(b)) | sign << 6;
}

/* The last unit may not be bit-packed; then a mode need not pay. */
static unsigned last_mode(struct wfs_split s, unsigned mode, unsigned before, size_t nr_words)
{
	unsigned rows = wfs_last_rows(nr_words);
	size_t with = wfs_unit_bytes(wfs_split_in_mode(s, mode), rows) + (mode != before ? 3 : 0);
	size_t without = wfs_unit_bytes(s, rows) + (before ? 3 : 0);
	return with < without ? mode : 0;
}

/* More changes than a payload can hold: neighbours get the mode they have in common, in groups as large as needed. */
unsigned wfs_modes_find(struct wfs_split s, const u8 *raw, size_t nr_words, struct wfs_encode_buffers *buf)
{
	const size_t nr_supers = WFS_CEIL_DIV(nr_words, (size_t)WFS_SUPER);
	unsigned nr = 0;

	memset(buf->mode, 0, nr_supers);
	if (s.rot != 1 || s.word < 2)
		return 0;
	for (size_t i = 0; i < nr_supers; i++) {
		size_t first = i * WFS_SUPER;
		buf->mode[i] = (u8)superrow_mode(s, raw + first * s.word, WFS_MIN(nr_words - first, (size_t)WFS_SUPER));
	}
	buf->mode[nr_supers - 1] =
		(u8)last_mode(s, buf->mode[nr_supers - 1], nr_supers > 1 ? buf->mode[nr_supers - 2] : 0, nr_words);
	for (size_t group = 1;; group *= 2) {
		unsigned before = 0;
		nr = 0;
		for (size_t i = 0; i < nr_supers; i++) {
			if (i % group)
				buf->mode[i] = (u8)before;
			else
				for (size_t j = i + 1; j < WFS_MIN(i + group, nr_supers); j++)
					buf->mode[i] = (u8)mode_common(buf->mode[i], buf->mode[j]);
			if (buf->mode[i] == before)
				continue;
			before = buf->mode[i];
			if (nr < WFS_MAX_MODES) {
				wfs_store16(buf->mode_list + 3 * nr, (u16)i);
				buf->mode_list[3 * nr + 2] = (u8)before;
			}
			nr++;
		}
		if (nr <= WFS_MAX_MODES)
			return nr;
	}
}

/* ---- words ---- */

/* Symbol ids and rest bits of all words; returns the end of the rest bits. */
static u8 *words_cut(const struct wfs_encode_pool *pool, const struct wfs_encode_kernel *kernel, const u8 *raw,
		     size_t nr_words, struct wfs_encode_buffers *buf)
{
	const struct wfs_split s = pool->s;
	const size_t seg_words = (size_t)1 << pool->seg_log2;
	u8 *rest = buf->rest;

	for (size_t at = 0, g = 0; at < nr_words; at += seg_words, g++) {
		size_t nr = WFS_MIN(nr_words - at, seg_words), whole = nr / WFS_SUPER * WFS_SUPER, i = 0;
		kernel->fields(s, raw + at * s.word, nr / WFS_SUPER, buf->field);
		wfs_encode_fields_scalar(s, raw + (at + whole) * s.word, nr - whole, buf->field + whole);
		buf->seg[g] = (u8)kernel->choose(pool, buf->field, nr, buf->hist);
		const struct wfs_encode_table *table = &pool->table[buf->seg[g]];
		for (; i < whole; i += WFS_SUPER)
			rest = kernel->superrow(s, table, buf->mode[(at + i) / WFS_SUPER], raw + (at + i) * s.word,
						buf->field + i, buf->sym + at + i, rest);
		if (i < nr)
			rest = wfs_encode_unit_scalar(s, table, buf->mode[(at + i) / WFS_SUPER],
						      raw + (at + i) * s.word, nr - i, wfs_last_rows(nr_words),
						      buf->sym + at + i, rest);
	}
	size_t last_row = (nr_words - 1) / WFS_LANES * WFS_LANES;
	for (unsigned p = 0; p < WFS_LANES; p++)
		if (last_row + wfs_lane_word(s.word, p) >= nr_words)
			buf->sym[last_row + p] = pool->table[buf->seg[(nr_words - 1) >> pool->seg_log2]].padding;
	return rest;
}

/* Numbers of the words that are literals, ascending; returns how many, or WFS_MAX_LITERALS + 1 when more than fit. */
static size_t literals_find(struct wfs_split s, size_t nr_rows, struct wfs_encode_buffers *buf)
{
	const u8 *at = buf->sym, *end = buf->sym + nr_rows * WFS_LANES;
	size_t nr = 0;

	while (at < end && (at = memchr(at, WFS_LITERAL, (size_t)(end - at)))) {
		size_t row = (size_t)(at - buf->sym) / WFS_LANES * WFS_LANES;
		u64 words = 0;
		for (unsigned p = 0; p < WFS_LANES; p++)
			words |= (u64)(buf->sym[row + p] == WFS_LITERAL) << wfs_lane_word(s.word, p);
		if (nr + (unsigned)__builtin_popcountll(words) > WFS_MAX_LITERALS)
			return WFS_MAX_LITERALS + 1;
		for (; words; words &= words - 1)
			buf->literal[nr++] = (u32)row + (u32)__builtin_ctzll(words);
		at = buf->sym + row + WFS_LANES;
	}
	return nr;
}

/* ---- the payload ---- */

struct payload {
	size_t nr_segs, nr_escapes, nr_literals, rest_len; /* rest_len: without the carried bytes */
	unsigned nr_modes, nr_tables;
	u8 states[WFS_STATE_BYTES];
	const u8 *stream[WFS_STRANDS];
	size_t stream_len[WFS_STRANDS];
};

static size_t numbers_bytes(const struct payload *p)
{
	return p->nr_tables > 1 ? WFS_CEIL_DIV(p->nr_segs, (size_t)2) : 0;
}

static size_t payload_bytes(const struct payload *p, unsigned word)
{
	return WFS_SPLIT_HEADER + numbers_bytes(p) + 3 * p->nr_modes + WFS_STATE_BYTES + p->stream_len[0] +
	       p->stream_len[1] + WFS_CEIL_DIV(p->nr_escapes, (size_t)2) + (4 + word) * p->nr_literals + p->rest_len;
}

static u8 *append(u8 *out, const void *from, size_t len)
{
	memcpy(out, from, len);
	return out + len;
}

/* Pairs of 4-bit numbers, low nibble first; the byte behind from[nr - 1] is not read. */
static u8 *append_nibbles(u8 *out, const u8 *from, size_t nr)
{
	for (; nr >= 2; nr -= 2, from += 2)
		*out++ = (u8)(from[0] | from[1] << 4);
	if (nr)
		*out++ = from[0];
	return out;
}

static void payload_write(const struct payload *p, unsigned word, const u8 *raw, const struct wfs_encode_buffers *buf,
			  u8 *out)
{
	wfs_store24(out, (u32)p->stream_len[0]);
	wfs_store24(out + 3, (u32)p->stream_len[1]);
	wfs_store24(out + 6, (u32)p->nr_escapes);
	wfs_store16(out + 9, (u16)p->nr_literals);
	out[11] = (u8)p->nr_modes;
	out += WFS_SPLIT_HEADER;
	if (p->nr_tables > 1)
		out = append_nibbles(out, buf->seg, p->nr_segs);
	out = append(out, buf->mode_list, 3 * p->nr_modes);
	out = append(out, p->states, WFS_STATE_BYTES);
	for (unsigned k = 0; k < WFS_STRANDS; k++)
		out = append(out, p->stream[k], p->stream_len[k]);
	out = append_nibbles(out, buf->nibble, p->nr_escapes);
	for (size_t i = 0; i < p->nr_literals; i++) {
		wfs_store32(out, buf->literal[i]);
		out = append(out + 4, raw + (size_t)buf->literal[i] * word, word);
	}
	append(out, buf->rest, p->rest_len);
}

size_t wfs_split_encode(const struct wfs_encode_pool *pool, const struct wfs_encode_kernel *kernel, const u8 *raw,
			size_t nr_words, u8 *comp, size_t room, struct wfs_encode_buffers *buf)
{
	const struct wfs_split s = pool->s;
	const size_t nr_rows = WFS_CEIL_DIV(nr_words, (size_t)WFS_LANES);
	struct payload p = {.nr_tables = pool->nr_tables,
			    .nr_segs = WFS_CEIL_DIV(nr_words, (size_t)1 << pool->seg_log2)};
	u8 carried[WFS_CARRIED] = {0}, *end[WFS_STRANDS];

	p.nr_modes = wfs_modes_find(s, raw, nr_words, buf);
	u8 *rest_end = words_cut(pool, kernel, raw, nr_words, buf);
	p.nr_escapes = kernel->escapes(buf->sym, nr_rows, buf->nibble);
	p.nr_literals = literals_find(s, nr_rows, buf);
	size_t last =
		wfs_unit_bytes(wfs_split_in_mode(s, buf->mode[(nr_words - 1) / WFS_SUPER]), wfs_last_rows(nr_words));
	size_t nr_carried = WFS_MIN(last, (size_t)WFS_CARRIED);
	p.rest_len = (size_t)(rest_end - buf->rest) - nr_carried;
	if (p.nr_literals > WFS_MAX_LITERALS || payload_bytes(&p, s.word) >= room)
		return SIZE_MAX;
	memcpy(carried, rest_end - nr_carried, nr_carried);
	for (unsigned k = 0; k < WFS_STRANDS; k++)
		end[k] = buf->stream[k] + sizeof(buf->stream[k]);
	kernel->pass(pool, buf->sym, nr_rows, buf->seg, carried, p.states, end);
	for (unsigned k = 0; k < WFS_STRANDS; k++) {
		p.stream[k] = end[k];
		p.stream_len[k] = (size_t)(buf->stream[k] + sizeof(buf->stream[k]) - end[k]);
	}
	size_t bytes = payload_bytes(&p, s.word);
	if (bytes >= room)
		return SIZE_MAX;
	payload_write(&p, s.word, raw, buf, comp);
	return bytes;
}
