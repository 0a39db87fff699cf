/* fuzz_block.c - any bytes as tables and a payload of any coding: every decoder must give the same bytes or the same
 * refusal for the same reason, and touch nothing outside its buffers.
 *
 * Input: u8 {word_log2 : 2, rot : 1, kind : 3}, u8 field, u8 phase, u24 raw_len; of kinds 2 and 3 a grid, which tells
 * the size of words, too, of kind 4 u8 {bytes of a record}, u8 border[8]; of kinds 0 to 4 one pool, of kinds 1, 3 and 4
 * a wide one; the payload.
 */
#include "fuzz.h"
#include "block.h"

enum { INPUT_HEADER = 6 };
enum kind { SPLIT, WIDE, GRID, GRID_WIDE, RECORDS, STORED, LZ4, CONSTANT, NR_KINDS };

struct input {
	struct wfs_coder coder;
	struct wfs_decode_tables tables;
	unsigned phase;
	size_t raw_len;
};

/* Why a variant refuses the payload, or NULL. */
static const char *decode(const struct input *in, enum wfs_cpu cpu, const uint8_t *comp, size_t comp_len, uint8_t *raw,
			  struct wfs_scratch *scratch)
{
	const struct wfs_kernels kernels = wfs_kernels_for(cpu);
	const char *reason = NULL;
	enum wfs_status status = wfs_payload_decode(&in->coder, &in->tables, &kernels, in->phase, comp, comp_len, raw,
						    in->raw_len, scratch, &reason);

	FUZZ_CHECK(reason ? status == WFS_BAD_DATA : status == WFS_OK);
	return reason;
}

static void compare(const struct input *in, const uint8_t *comp, size_t comp_len)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	uint8_t *payload = fuzz_alloc(comp_len), *expected = fuzz_alloc(in->raw_len), *raw = fuzz_alloc(in->raw_len);
	const char *reason;

	FUZZ_CHECK(scratch);
	memcpy(payload, comp, comp_len);
	reason = decode(in, WFS_CPU_SCALAR, payload, comp_len, expected, scratch);
	for (int cpu = WFS_CPU_SCALAR + 1; cpu < WFS_NR_CPUS; cpu++) {
		const char *other;

		if (!wfs_cpu_supported((enum wfs_cpu)cpu))
			continue;
		other = decode(in, (enum wfs_cpu)cpu, payload, comp_len, raw, scratch);
		FUZZ_CHECK(reason ? other && !strcmp(other, reason) : !other && !memcmp(raw, expected, in->raw_len));
	}
	free(payload);
	free(expected);
	free(raw);
	wfs_scratch_free(scratch);
}

/* The grid or pool at the start of data; returns its bytes, or 0 when the container's reader would refuse it. */
static size_t take_grid(struct input *in, const uint8_t *data, size_t size, struct wfs_grid_values *values)
{
	const char *reason = NULL;
	struct wfs_grid grid;
	size_t used = 0;

	if (wfs_grid_parse(data, size, &grid, &used, &reason) != WFS_OK)
		return 0;
	FUZZ_CHECK(used && used <= size);
	wfs_grid_values_make(&grid, values);
	in->tables.grid = values;
	in->coder.word = (u8)wfs_grid_word_bytes(grid.output);
	return used;
}
/* The same for the cut of records. */
static size_t take_records(struct input *in, const uint8_t *data, size_t size)
{
	struct wfs_records r;

	if (size < 1 + WFS_MAX_BORDERS)
		return 0;
	in->coder.word = data[0];
	memcpy(in->coder.border, data + 1, WFS_MAX_BORDERS);
	r = wfs_coder_records(&in->coder);
	if (!wfs_records_valid(&r))
		return 0;
	return 1 + WFS_MAX_BORDERS;
}
static size_t take_split_pool(struct input *in, const uint8_t *data, size_t size)
{
	const unsigned word = in->coder.coding == WFS_GRID ? 1 : in->coder.word;
	struct wfs_pool *pool = malloc(sizeof(*pool));
	const char *reason = NULL;
	size_t used = 0;

	FUZZ_CHECK(pool);
	if (wfs_pool_parse(data, size, pool, &used, &reason) != WFS_OK || pool->field != in->coder.field ||
	    pool->field >= 8 * word) {
		used = 0;
	} else {
		FUZZ_CHECK(used && used <= size);
		in->tables.split = wfs_decode_pool_new(pool);
		FUZZ_CHECK(in->tables.split);
	}
	free(pool);
	return used;
}
static size_t take_wide_pool(struct input *in, const uint8_t *data, size_t size)
{
	struct wfs_wide_pool *pool = malloc(sizeof(*pool));
	const unsigned bits = in->coder.coding == WFS_WIDE ? 8u * in->coder.word : 8u;
	const char *reason = NULL;
	size_t used = 0;

	FUZZ_CHECK(pool);
	if (wfs_wide_pool_parse(data, size, pool, &used, &reason) != WFS_OK || pool->field != in->coder.field ||
	    pool->field > bits || (pool->field == bits && in->coder.rot)) {
		used = 0;
	} else {
		FUZZ_CHECK(used && used <= size);
		in->tables.wide = wfs_wide_decode_pool_new(pool);
		FUZZ_CHECK(in->tables.wide);
	}
	free(pool);
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u8 coding[] = {
		[SPLIT] = WFS_SPLIT,	 [WIDE] = WFS_WIDE,	[GRID] = WFS_GRID, [GRID_WIDE] = WFS_GRID_WIDE,
		[RECORDS] = WFS_RECORDS, [STORED] = WFS_STORED, [LZ4] = WFS_LZ4,   [CONSTANT] = WFS_CONSTANT,
	};
	struct wfs_grid_values values;
	struct input in = {0};
	size_t at = INPUT_HEADER, used;
	enum kind kind;

	_Static_assert(NR_KINDS == 8, "three bits tell the kind");
	if (size < INPUT_HEADER)
		return 0;
	kind = data[0] >> 3 & 7;
	in.coder = (struct wfs_coder){
		.coding = coding[kind],
		.word = (u8)(1u << (data[0] & 3)),
		.rot = data[0] >> 2 & 1,
		.field = data[1],
	};
	in.phase = data[2];
	in.raw_len = wfs_load24(data + 3) % (WFS_MAX_BLOCK + 1);
	if (kind >= STORED) {
		compare(&in, data + at, size - at);
		return 0;
	}
	if (kind >= GRID) {
		used = kind == RECORDS ? take_records(&in, data + at, size - at)
				       : take_grid(&in, data + at, size - at, &values);
		if (!used)
			return 0;
		at += used;
	}
	if (wfs_block_cut(in.coder.word, in.phase, in.raw_len).nr_words == 0)
		return 0;
	used = wfs_coding_is_wide(coding[kind]) ? take_wide_pool(&in, data + at, size - at)
						: take_split_pool(&in, data + at, size - at);
	if (used)
		compare(&in, data + at + used, size - at - used);
	free((void *)in.tables.split);
	free((void *)in.tables.wide);
	return 0;
}
