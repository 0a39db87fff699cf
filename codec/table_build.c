/* table_build.c - from a histogram of field values to a table: which values are symbols, how many of the 256 slots each
 * gets, and in which runs the slots lie (FORMAT.md 2.3). Integer arithmetic only.
 *
 * A symbol with two runs, one in each half of the slot space, loses less to the coarse 16-bit states: two runs remove
 * three quarters of the redundancy of one (codec study: 0.002 against 0.009 bit a symbol; more runs gain nothing).
 */
#include "split_encode.h"
#include "log2_fixed.h"

enum {
	SLOTS = 256,
	HALF = SLOTS / 2,
	BUCKET = 16,
	BUCKET_STARTS = 3,
	ORDER_TRIES = 100,
	MAX_CODED = WFS_MAX_SYMS - 1, /* symbols beside the escape */
	MAX_RANKED = MAX_CODED + WFS_MAX_TAIL,
	LITERAL_BYTES = 4, /* beside the word */
	SYMBOL_BYTES = 4,  /* of a stored symbol: value and run */
};

/* The most frequent values, most frequent first, equals by value. */
struct ranking {
	unsigned nr;
	u16 val[MAX_RANKED];
	u32 count[MAX_RANKED];
	u64 total;
};

static void rank_values(const u32 *hist, unsigned nr_values, struct ranking *r)
{
	*r = (struct ranking){0};
	for (unsigned v = 0; v < nr_values; v++) {
		u32 count = hist[v];
		r->total += count;
		if (!count || (r->nr == MAX_RANKED && count <= r->count[MAX_RANKED - 1]))
			continue;
		unsigned i = r->nr < MAX_RANKED ? r->nr++ : MAX_RANKED - 1;
		for (; i > 0 && r->count[i - 1] < count; i--) {
			r->val[i] = r->val[i - 1];
			r->count[i] = r->count[i - 1];
		}
		r->val[i] = (u16)v;
		r->count[i] = count;
	}
	if (!r->nr)
		r->nr = 1; /* value 0 with count 0: a valid table all the same */
}

/* Bits (in 1/65536) saved by the slot that takes a symbol from f to f + 1 slots. */
static u64 slot_gain(u32 count, unsigned f)
{
	return (u64)count * (wfs_log2_q16(f + 1) - wfs_log2_q16(f));
}

/* The symbol that gains most from one more slot, or (more = false) loses least by one less; the lowest of equals.
 * skip: not this one. Returns nr when none can. */
static unsigned slot_best(const u32 *count, const u8 *freq, unsigned nr, bool more, unsigned skip, u64 *gain_ret)
{
	unsigned best = nr;
	for (unsigned i = 0; i < nr; i++) {
		if (i == skip || freq[i] == (more ? SLOTS - 1 : 1))
			continue;
		u64 gain = slot_gain(count[i], more ? freq[i] : freq[i] - 1u);
		if (best == nr || (more ? gain > *gain_ret : gain < *gain_ret)) {
			best = i;
			*gain_ret = gain;
		}
	}
	return best;
}

/* Gives the 256 slots to nr symbols, 2..32, at least one each, with the least cost; returns it in 1/65536 bit. The
 * gain of a slot falls with f, so single slots moved while that pays lead to the optimum. */
static u64 slots_allot(const u32 *count, unsigned nr, u8 *freq)
{
	u64 total = 0, gain = 0, loss = 0, cost = 0;
	unsigned sum = 0;

	for (unsigned i = 0; i < nr; i++)
		total += count[i];
	for (unsigned i = 0; i < nr; i++) {
		u64 share = total ? count[i] * (u64)SLOTS / total : 1;
		freq[i] = (u8)WFS_MAX(1, WFS_MIN(share, SLOTS - 1));
		sum += freq[i];
	}
	for (; sum < SLOTS; sum++)
		freq[slot_best(count, freq, nr, true, nr, &gain)]++;
	for (; sum > SLOTS; sum--)
		freq[slot_best(count, freq, nr, false, nr, &loss)]--;
	for (;;) {
		unsigned to = slot_best(count, freq, nr, true, nr, &gain);
		unsigned from = slot_best(count, freq, nr, false, to, &loss);
		if (to == nr || from == nr || loss >= gain)
			break;
		freq[to]++;
		freq[from]--;
	}
	for (unsigned i = 0; i < nr; i++)
		cost += count[i] * (u64)((8 << 16) - wfs_log2_q16(freq[i]));
	return cost;
}

/* Slots of the table whose symbols are the first nr_coded ranked values. count[nr_coded] is the escape's. */
static u64 slots_for(const struct ranking *r, unsigned nr_coded, u8 *freq, u64 *escapes_ret)
{
	u32 count[WFS_MAX_SYMS];
	u64 escapes = r->total;

	for (unsigned i = 0; i < nr_coded; i++) {
		count[i] = r->count[i];
		escapes -= count[i];
	}
	count[nr_coded] = (u32)escapes;
	*escapes_ret = escapes;
	return slots_allot(count, nr_coded + 1, freq);
}

/* How many values become symbols: each costs bytes in the pool, each left out costs escapes. */
static unsigned symbols_choose(const struct ranking *r, struct wfs_split s)
{
	u64 best_cost = UINT64_MAX, ranked = 0;
	unsigned best = 1;

	for (unsigned i = 0; i < r->nr; i++)
		ranked += r->count[i];
	for (unsigned nr = WFS_MIN(r->nr, (unsigned)MAX_CODED); nr >= 1; nr--) {
		u8 freq[WFS_MAX_SYMS];
		u64 escapes, literals = r->total - ranked;
		u64 cost = slots_for(r, nr, freq, &escapes);
		for (unsigned i = nr + WFS_MAX_TAIL; i < r->nr; i++)
			literals += r->count[i];
		cost += (escapes * WFS_ESCAPE_BITS + literals * 8 * (LITERAL_BYTES + s.word)) << 16;
		cost += (u64)nr * 8 * SYMBOL_BYTES << 16;
		if (cost < best_cost) {
			best_cost = cost;
			best = nr;
		}
	}
	return best;
}

/* ---- the order of the slots ---- */

static u32 random_next(u32 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static bool bucket_rule_holds(const u8 *len, const u8 *order, unsigned nr)
{
	unsigned pos = 0, starts[SLOTS / BUCKET] = {0};
	for (unsigned i = 0; i < nr; i++) {
		if (pos % BUCKET && ++starts[pos / BUCKET] > BUCKET_STARTS)
			return false;
		pos += len[order[i]];
	}
	return true;
}

/* One greedy try: short runs first, but the last run that a bucket may start must reach the bucket's end. jitter
 * disturbs the choice. False when no run fits. */
static bool runs_order_try(const u8 *len, unsigned nr, unsigned jitter, u32 *random, u8 *order)
{
	bool used[WFS_MAX_RUNS] = {false};
	unsigned pos = 0, met = 0; /* runs that the current bucket has met */

	for (unsigned k = 0; k < nr; k++) {
		unsigned room = BUCKET - pos % BUCKET, best = nr, best_score = 0;
		if (room == BUCKET)
			met = 0;
		unsigned need = met == BUCKET_STARTS ? room : 0;
		for (unsigned i = 0; i < nr; i++) {
			if (used[i] || len[i] < need)
				continue;
			unsigned score = len[i] * 4u + (!need && len[i] >= room ? 8 : 0);
			if (jitter)
				score += random_next(random) % jitter;
			if (best == nr || score < best_score) {
				best = i;
				best_score = score;
			}
		}
		if (best == nr)
			return false;
		used[best] = true;
		order[k] = (u8)best;
		unsigned end = pos + len[best];
		met = end / BUCKET != pos / BUCKET ? end % BUCKET != 0 : met + 1;
		pos = end;
	}
	return true;
}

/* Orders nr runs, together a multiple of 16 slots, under the bucket rule. False: no order found. */
static bool runs_order(const u8 *len, unsigned nr, u8 *order)
{
	u32 random = 12345;
	unsigned slots = 0, covered = 0;

	/* A long run covers buckets where none can start; the others take one start on their first slot and three
	 * inside. Many symbols beside one that has nearly all slots fail here at once. */
	for (unsigned i = 0; i < nr; i++) {
		slots += len[i];
		covered += len[i] >= 2 * BUCKET ? len[i] / BUCKET - 1 : 0;
	}
	if (nr > (slots / BUCKET - covered) * (BUCKET_STARTS + 1))
		return false;
	for (unsigned try = 0; try < ORDER_TRIES; try++) {
		unsigned jitter = !try ? 0 : try < ORDER_TRIES / 4 ? 12 : 80;
		if (runs_order_try(len, nr, jitter, &random, order) && bucket_rule_holds(len, order, nr))
			return true;
	}
	return false;
}

/* Appends the runs of the symbols whose slots (part[sym] > 0) fill a multiple of 16, in a valid order. */
static bool runs_append(struct wfs_table *t, const u8 *part)
{
	u8 len[WFS_MAX_RUNS], sym[WFS_MAX_RUNS], order[WFS_MAX_RUNS];
	unsigned nr = 0;

	for (unsigned i = 0; i < t->m; i++)
		if (part[i]) {
			len[nr] = part[i];
			sym[nr++] = (u8)i;
		}
	if (!runs_order(len, nr, order))
		return false;
	for (unsigned i = 0; i < nr; i++) {
		t->run_len[t->nrun] = len[order[i]];
		t->run_sym[t->nrun++] = sym[order[i]];
	}
	return true;
}

/* Cuts every symbol's slots between the halves so that each half gets 128. Symbols 0..m-2 are in falling frequency. */
static bool halves_cut(const struct wfs_table *t, u8 part[2][WFS_MAX_SYMS])
{
	unsigned spare = WFS_MAX_RUNS - t->m;
	int room[2] = {HALF, HALF};

	memset(part, 0, 2 * WFS_MAX_SYMS);
	for (unsigned i = 0; i + 1 < t->m && spare > 0 && t->freq[i] >= 2; i++, spare--)
		for (unsigned h = 0; h < 2; h++) {
			part[h][i] = t->freq[i] / 2;
			room[h] -= part[h][i];
		}
	for (unsigned i = 0; i < t->m; i++) {
		unsigned left = t->freq[i] - part[0][i] - part[1][i], h = room[1] > room[0];
		part[h][i] += (u8)left;
		room[h] -= (int)left;
	}
	while (room[0]) { /* symbols in both halves move single slots out of the half that is too full */
		unsigned h = room[0] < 0 ? 0 : 1, i = t->m;
		while (i > 0 && !(part[h][i - 1] >= 2 && part[!h][i - 1] >= 1))
			i--;
		if (!i)
			return false;
		part[h][i - 1]--;
		part[!h][i - 1]++;
		room[h]++;
		room[!h]--;
	}
	return true;
}

/* No runs yet. */
static void runs_clear(struct wfs_table *t)
{
	t->nrun = 0;
	memset(t->run_len, 0, sizeof(t->run_len));
	memset(t->run_sym, 0, sizeof(t->run_sym));
}

/* The runs of t, whose m and freq are set. */
static bool table_lay_out(struct wfs_table *t)
{
	u8 part[2][WFS_MAX_SYMS];

	runs_clear(t);
	if (halves_cut(t, part) && runs_append(t, part[0]) && runs_append(t, part[1]))
		return true;
	runs_clear(t);
	return runs_append(t, t->freq);
}

/* A table of the first nr_coded ranked values as symbols. False: no order of its slots was found. */
static bool table_of(const struct ranking *r, unsigned nr_coded, struct wfs_table *t)
{
	u64 escapes;

	memset(t, 0, sizeof(*t));
	t->m = (u8)(nr_coded + 1);
	slots_for(r, nr_coded, t->freq, &escapes);
	memcpy(t->val, r->val, nr_coded * sizeof(t->val[0]));
	t->ntail = (u8)WFS_MIN(r->nr - nr_coded, (unsigned)WFS_MAX_TAIL);
	memcpy(t->tail, r->val + nr_coded, t->ntail * sizeof(t->tail[0]));
	return table_lay_out(t);
}

void wfs_table_build(const u32 *hist, struct wfs_split s, struct wfs_table *table_ret)
{
	struct ranking r;

	rank_values(hist, 1u << s.field, &r);
	unsigned nr = symbols_choose(&r, s);
	/* Fewer symbols until an order is found. It ends: four runs start at most three times inside any bucket. */
	while (!table_of(&r, nr, table_ret))
		nr--;
}

void wfs_table_costs(const struct wfs_table *table, struct wfs_split s, u16 *cost_ret)
{
	const unsigned one = WFS_COST_UNIT, to_q8 = 16 - 8, half = 1 << (to_q8 - 1);
	u32 escape = ((8u << 16) - wfs_log2_q16(table->freq[table->m - 1]) + half) >> to_q8;

	_Static_assert(WFS_COST_UNIT == 1 << 8, "costs are q8");
	for (unsigned v = 0; v < 1u << s.field; v++)
		cost_ret[v] = (u16)(escape + one * (WFS_ESCAPE_BITS + 8 * (LITERAL_BYTES + s.word)));
	for (unsigned i = 0; i < table->ntail; i++)
		cost_ret[table->tail[i]] = (u16)(escape + one * WFS_ESCAPE_BITS);
	for (unsigned i = 0; i + 1 < table->m; i++)
		cost_ret[table->val[i]] = (u16)(((8u << 16) - wfs_log2_q16(table->freq[i]) + half) >> to_q8);
}
