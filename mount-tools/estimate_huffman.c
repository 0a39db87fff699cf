/* estimate_huffman.c - exponents in the Huffman code of DFloat11, with all that its decoder needs beside them.
 *
 * The code: arXiv 2504.11651, and what its published encoder does in detail: an end symbol that occurs once, no code
 * longer than 32 bits (the rarest symbols are made equally rare until that holds), 8 bytes of codes a thread, 512
 * threads a block, 5 bits a thread that say where its first code begins, a 32-bit position a block and one at the end,
 * and look-up tables of 256 entries: one for the first byte of a code, one for every prefix of 1, 2 or 3 bytes that a
 * code goes on behind, and the lengths.
 */
#include "estimate.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_CODE_BITS = 32,
	BLOCK_THREADS = 512,
	BLOCK_BYTES = 8 * BLOCK_THREADS,
	GAP_BITS = 5,
	POSITION_BYTES = 4,
	MAX_SYMBOLS = (1 << 11) + 1, /* with the end symbol */
	TABLE_ENTRIES = 256,
};

struct code {
	unsigned nr; /* symbols that occur, then the end symbol */
	uint64_t weight[MAX_SYMBOLS];
	unsigned len[MAX_SYMBOLS];
	unsigned max_len;
};

struct node {
	uint64_t weight;
	unsigned index; /* < nr: symbol; else the nr - 1 inner nodes, in order of their making */
};

static int compare_nodes(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Leaves in ascending order and inner nodes, which are made in ascending order, are two queues; of equals the leaf
 * comes first. */
static void build(struct code *c)
{
	struct node leaf[MAX_SYMBOLS];
	uint64_t inner[MAX_SYMBOLS];
	unsigned parent[2 * MAX_SYMBOLS] = {0}, depth[MAX_SYMBOLS] = {0}, next_leaf = 0, next_inner = 0;
	for (unsigned i = 0; i < c->nr; i++)
		leaf[i] = (struct node){c->weight[i], i};
	qsort(leaf, c->nr, sizeof(*leaf), compare_nodes);
	for (unsigned made = 0; made + 1 < c->nr; made++) {
		inner[made] = 0;
		for (unsigned child = 0; child < 2; child++) {
			bool take_leaf = next_leaf < c->nr &&
					 (next_inner == made || leaf[next_leaf].weight <= inner[next_inner]);
			inner[made] += take_leaf ? leaf[next_leaf].weight : inner[next_inner];
			parent[take_leaf ? leaf[next_leaf].index : c->nr + next_inner] = made;
			next_leaf += take_leaf;
			next_inner += !take_leaf;
		}
	}
	c->max_len = 0;
	for (unsigned i = c->nr - 2; i-- > 0;) /* the last one is the root */
		depth[i] = depth[parent[c->nr + i]] + 1;
	for (unsigned i = 0; i < c->nr; i++) {
		c->len[i] = depth[parent[i]] + 1;
		c->max_len = MAX(c->max_len, c->len[i]);
	}
}

/* Limit the lengths: the 2, 3, 4 ... rarest symbols count as 1. The end symbol does so anyway. */
static void build_limited(struct code *c)
{
	struct node rarest[MAX_SYMBOLS];
	unsigned nr_rare = 2;
	build(c);
	if (c->max_len <= MAX_CODE_BITS)
		return;
	for (unsigned i = 0; i + 1 < c->nr; i++)
		rarest[i] = (struct node){c->weight[i], i};
	qsort(rarest, c->nr - 1, sizeof(*rarest), compare_nodes);
	for (; c->max_len > MAX_CODE_BITS && nr_rare < c->nr; nr_rare++) {
		for (unsigned i = 0; i < nr_rare; i++)
			c->weight[rarest[i].index] = 1;
		build(c);
	}
}

/* Inner nodes of the code tree at the depths of 0, 8, 16 and 24 bits. */
static unsigned nr_tables(const struct code *c)
{
	unsigned nr = 0, nr_at[MAX_CODE_BITS + 1] = {0};
	uint64_t nr_inner = 1;
	for (unsigned i = 0; i < c->nr; i++)
		nr_at[c->len[i]]++;
	for (unsigned len = 0; len < c->max_len; len++) {
		nr += len % 8 ? 0 : (unsigned)nr_inner;
		nr_inner = 2 * nr_inner - nr_at[len + 1];
	}
	return nr;
}

uint64_t huffman_bytes(unsigned exponent_bits, const uint64_t *exponent)
{
	unsigned nr_exponents = 1u << exponent_bits, entry_bytes = exponent_bits > 8 ? 2 : 1;
	unsigned __int128 nr_bits = 0;
	struct code *c = xcalloc(1, sizeof(*c));
	uint64_t code_bytes, nr_blocks, table_bytes;
	for (unsigned i = 0; i < nr_exponents; i++)
		if (exponent[i])
			c->weight[c->nr++] = exponent[i];
	c->weight[c->nr++] = 1;
	if (c->nr == 1) { /* of no words */
		free(c);
		return 0;
	}
	build_limited(c);
	for (unsigned i = 0, symbol = 0; i < nr_exponents; i++)
		if (exponent[i])
			nr_bits += (unsigned __int128)exponent[i] * c->len[symbol++];
	code_bytes = (uint64_t)((nr_bits + 7) / 8);
	nr_blocks = (code_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
	table_bytes = (uint64_t)nr_tables(c) * TABLE_ENTRIES * entry_bytes + MAX(nr_exponents, (unsigned)TABLE_ENTRIES);
	free(c);
	return code_bytes + nr_blocks * (BLOCK_THREADS * GAP_BITS / 8) + (nr_blocks + 1) * POSITION_BYTES + table_bytes;
}
