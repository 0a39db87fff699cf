/* split_encode_scalar.c - the encoder's reference kernel: every word size, rotation, field and mode.
 *
 * Functions are written for a word size known at compile time and inlined once a size.
 */
#include "split_encode.h"

static WFS_ALWAYS_INLINE u64 word_load(const unsigned word, const u8 *p)
{
	switch (word) {
	case 1:
		return *p;
	case 2:
		return wfs_load16(p);
	case 4:
		return wfs_load32(p);
	default:
		return wfs_load64(p);
	}
}

/* The word rotated left by rot (0 or 1) within its bits. */
static WFS_ALWAYS_INLINE u64 word_rotated(const unsigned word, const u8 *p, unsigned rot)
{
	u64 x = word_load(word, p);
	if (!rot)
		return x;
	u64 mask = ~(u64)0 >> (64 - 8 * word);
	return ((x << 1) | (x >> (8 * word - 1))) & mask;
}

static WFS_ALWAYS_INLINE void fields_load(const unsigned word, unsigned rot, unsigned field, const u8 *raw,
					  size_t nr_words, u16 *out)
{
	for (size_t i = 0; i < nr_words; i++)
		out[i] = (u16)(word_rotated(word, raw + i * word, rot) >> (8 * word - field));
}

void wfs_encode_fields_scalar(struct wfs_split s, const u8 *raw, size_t nr_words, u16 *field)
{
	switch (s.word) {
	case 1:
		fields_load(1, s.rot, s.field, raw, nr_words, field);
		break;
	case 2:
		fields_load(2, s.rot, s.field, raw, nr_words, field);
		break;
	case 4:
		fields_load(4, s.rot, s.field, raw, nr_words, field);
		break;
	default:
		fields_load(8, s.rot, s.field, raw, nr_words, field);
	}
}

static void fields_scalar(struct wfs_split s, const u8 *raw, size_t nr_supers, u16 *field)
{
	wfs_encode_fields_scalar(s, raw, nr_supers * WFS_SUPER, field);
}

static unsigned choose_scalar(const struct wfs_encode_pool *pool, const u16 *field, size_t nr,
			      u16 (*hist)[WFS_FIELD_VALUES])
{
	const unsigned nr_tables = pool->nr_tables;
	u32 cost[WFS_MAX_TABLES] = {0};
	unsigned best = 0;

	if (nr_tables == 1)
		return 0;
	wfs_hist_count(field, nr, pool->nr_chunks * WFS_COST_CHUNK, hist);
	for (u32 c = 0; c < pool->nr_chunks; c++) {
		u16 count[WFS_COST_CHUNK];
		u32 any = 0;
		for (unsigned j = 0; j < WFS_COST_CHUNK; j++) {
			const u16 *h = &hist[0][c * WFS_COST_CHUNK + j];
			count[j] =
				(u16)(h[0] + h[WFS_FIELD_VALUES] + h[2 * WFS_FIELD_VALUES] + h[3 * WFS_FIELD_VALUES]);
			any |= count[j];
		}
		if (!any)
			continue;
		const u16 *costs = pool->cost + (size_t)c * nr_tables * WFS_COST_CHUNK;
		for (unsigned t = 0; t < nr_tables; t++)
			cost[t] += wfs_chunk_cost(count, costs + t * WFS_COST_CHUNK);
	}
	for (unsigned t = 1; t < nr_tables; t++)
		if (cost[t] < cost[best])
			best = t;
	return best;
}

/* Where a unit's rest bits go while its rows are cut: partial bits, then byte planes. */
struct rest_planes {
	u8 partial[WFS_SUPER];
	u8 *planes;
	unsigned shift, keep_sign;
	size_t plane_bytes;
};

static WFS_ALWAYS_INLINE void word_cut(const unsigned word, const unsigned nr_planes, struct wfs_split s, const u8 *map,
				       const u8 *raw, struct rest_planes *p, size_t at, u8 *sym)
{
	u64 x = word_rotated(word, raw, s.rot);
	u64 rest = x & ((1ull << (8 * word - s.field)) - 1);
	/* FORMAT.md 2.5; with shift = 1 and the sign kept this is the identity, which is mode 0 for any rotation. */
	u64 v = rest >> p->shift;
	if (p->keep_sign)
		v = v << 1 | (x & 1);
	sym[at] = map[x >> (8 * word - s.field)];
	p->partial[at] = (u8)(v >> 8 * nr_planes);
	for (unsigned k = 0; k < nr_planes; k++)
		p->planes[k * p->plane_bytes + at] = (u8)(v >> 8 * (nr_planes - 1 - k));
}

/* Lane order: 4 quarters of 16 positions, each of `word` groups of J = 16 / word consecutive words. */
static WFS_ALWAYS_INLINE void rows_cut(const unsigned word, const unsigned nr_planes, struct wfs_split s, const u8 *map,
				       const u8 *raw, unsigned rows, struct rest_planes *p, u8 *sym)
{
	const unsigned per = 16 / word;
	for (unsigned r = 0; r < rows; r++, raw += WFS_LANES * word)
		for (unsigned quarter = 0; quarter < 4; quarter++)
			for (unsigned group = 0; group < word; group++)
				for (unsigned i = 0; i < per; i++)
					word_cut(word, nr_planes, s, map,
						 raw + (per * quarter + 4 * per * group + i) * word, p,
						 r * WFS_LANES + 16 * quarter + per * group + i, sym);
}

/* Partial bits of 8 rows, `bits` each: vector i keeps row i in its low bits, bit j >= bits is bit i of row j. */
static void partial_pack(const u8 *partial, unsigned bits, u8 *out)
{
	const u64 ones = 0x0101010101010101;
	for (unsigned i = 0; i < bits; i++)
		for (unsigned p = 0; p < WFS_LANES; p += 8) {
			u64 v = wfs_load64(partial + i * WFS_LANES + p);
			for (unsigned j = bits; j < WFS_SUPER_ROWS; j++)
				v |= (wfs_load64(partial + j * WFS_LANES + p) >> i & ones) << j;
			wfs_store64(out + i * WFS_LANES + p, v);
		}
}

u8 *wfs_encode_unit_scalar(struct wfs_split s, const struct wfs_encode_table *table, unsigned mode, const u8 *raw,
			   size_t nr_words, unsigned rows, u8 *sym, u8 *rest)
{
	const struct wfs_split packing = wfs_split_in_mode(s, mode);
	const bool full = rows == WFS_SUPER_ROWS;
	struct rest_planes p;
	u8 padded[WFS_SUPER * 8];

	if (nr_words < rows * WFS_LANES) { /* missing words are zero */
		memset(padded, 0, rows * WFS_LANES * s.word);
		memcpy(padded, raw, nr_words * s.word);
		raw = padded;
	}
	p.planes = rest + WFS_LANES * (full ? packing.partial : packing.partial ? rows : 0);
	p.plane_bytes = (size_t)rows * WFS_LANES;
	p.keep_sign = wfs_mode_sign(mode) == 0;
	p.shift = wfs_mode_zeros(mode) + 1;
	if (s.word == 1)
		rows_cut(1, 0, s, table->map, raw, rows, &p, sym);
	else if (s.word == 2 && packing.planes)
		rows_cut(2, 1, s, table->map, raw, rows, &p, sym);
	else if (s.word == 2)
		rows_cut(2, 0, s, table->map, raw, rows, &p, sym);
	else if (s.word == 4)
		rows_cut(4, packing.planes, s, table->map, raw, rows, &p, sym);
	else
		rows_cut(8, packing.planes, s, table->map, raw, rows, &p, sym);
	if (full)
		partial_pack(p.partial, packing.partial, rest);
	else if (packing.partial)
		memcpy(rest, p.partial, p.plane_bytes);
	return rest + wfs_unit_bytes(packing, rows);
}

static u8 *superrow_scalar(struct wfs_split s, const struct wfs_encode_table *table, unsigned mode, const u8 *raw,
			   const u16 *field, u8 *sym, u8 *rest)
{
	(void)field; /* cheaper to cut the words again */
	return wfs_encode_unit_scalar(s, table, mode, raw, WFS_SUPER, WFS_SUPER_ROWS, sym, rest);
}

static size_t escapes_scalar(const u8 *sym, size_t nr_rows, u8 *nibble)
{
	size_t nr = 0;
	for (size_t i = 0; i < nr_rows * WFS_LANES; i += 8) {
		u64 escaped = wfs_load64(sym + i) & 0x2020202020202020;
		for (; escaped; escaped &= escaped - 1)
			nibble[nr++] = sym[i + (unsigned)__builtin_ctzll(escaped) / 8] - WFS_TAIL_BASE;
	}
	return nr;
}

/* Pushes one symbol, see struct wfs_encode_sym; returns the new end of the stream. */
static WFS_ALWAYS_INLINE u8 *symbol_push(const struct wfs_encode_sym *sym, u16 *state, u8 *end)
{
	const struct wfs_encode_sym a = *sym;
	u32 x = *state;

	end[-1] = (u8)x;
	u32 whole = (x + (a.rest << 8)) >> 16; /* x >= f << 8, too large to push on: a byte leaves */
	end -= whole;
	x >>= 8 * whole;
	x += (u32)((u64)x * a.recip >> 24) * a.rest; /* q << 8 | rank */
	*state = (u16)(x + a.base + ((u8)x >= a.first ? a.jump : 0));
	return end;
}

static void pass_scalar(const struct wfs_encode_pool *pool, const u8 *sym, size_t nr_rows, const u8 *seg,
			const u8 *carried, u8 *states, u8 **end)
{
	const unsigned rows_log2 = pool->seg_log2 - 6u;
	u16 state[WFS_STRANDS][WFS_LANES];

	for (unsigned k = 0; k < WFS_STRANDS; k++)
		for (unsigned p = 0; p < WFS_LANES; p++)
			state[k][p] = (u16)(256 + carried[k * WFS_LANES + p]);
	for (size_t r = nr_rows; r-- > 0;) {
		const struct wfs_encode_sym *syms = pool->table[seg[r >> rows_log2]].sym;
		const u8 *row = sym + r * WFS_LANES;
		u16 *x = state[r % WFS_STRANDS];
		u8 *e = end[r % WFS_STRANDS];
		for (unsigned p = WFS_LANES; p-- > 0;)
			e = symbol_push(&syms[row[p]], &x[p], e);
		end[r % WFS_STRANDS] = e;
	}
	for (unsigned k = 0; k < WFS_STRANDS; k++)
		for (unsigned p = 0; p < WFS_LANES; p++) {
			states[k * 2 * WFS_LANES + p] = (u8)state[k][p];
			states[k * 2 * WFS_LANES + WFS_LANES + p] = (u8)(state[k][p] >> 8);
		}
}

const struct wfs_encode_kernel wfs_encode_kernel_scalar = {
	.fields = fields_scalar,
	.choose = choose_scalar,
	.superrow = superrow_scalar,
	.escapes = escapes_scalar,
	.pass = pass_scalar,
};
