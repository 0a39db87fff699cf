/* fuzz_block.c - any bytes as a pool of tables and a split payload: every decoder must give the same bytes or the same
 * refusal for the same reason, and touch nothing outside its buffers.
 *
 * Input: u8 {word_log2 : 2, rot : 1}, u8 field, u8 phase, u24 raw_len, one pool, the payload.
 */
#include "fuzz.h"
#include "block.h"

enum { INPUT_HEADER = 6 };

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.coder = {.coding = WFS_SPLIT}};
	struct wfs_decode_pool *ready = NULL;
	struct wfs_pool *pool = NULL;
	const char *reason = NULL;
	size_t used = 0;

	if (size < INPUT_HEADER)
		return 0;
	in.coder.word = (u8)(1u << (data[0] & 3));
	in.coder.rot = data[0] >> 2 & 1;
	in.coder.field = data[1];
	in.phase = data[2];
	in.raw_len = wfs_load24(data + 3) % (WFS_MAX_BLOCK + 1);
	if (wfs_block_cut(in.coder.word, in.phase, in.raw_len).nr_words == 0)
		return 0;
	pool = malloc(sizeof(*pool));
	FUZZ_CHECK(pool);
	if (wfs_pool_parse(data + INPUT_HEADER, size - INPUT_HEADER, pool, &used, &reason) != WFS_OK)
		goto out;
	FUZZ_CHECK(used <= size - INPUT_HEADER);
	/* What the container's reader would refuse before a block is decoded. */
	if (pool->field != in.coder.field || in.coder.field >= 8 * in.coder.word)
		goto out;
	ready = wfs_decode_pool_new(pool);
	FUZZ_CHECK(ready);
	in.tables.split = ready;
	compare(&in, data + INPUT_HEADER + used, size - INPUT_HEADER - used);
out:
	free(ready);
	free(pool);
	return 0;
}
