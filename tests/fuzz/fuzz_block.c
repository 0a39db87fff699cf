/* fuzz_block.c - any bytes as a pool of tables and a split payload: every decoder must give the same bytes or the same
 * refusal, and touch nothing outside its buffers.
 *
 * Input: u8 {word_log2 : 2, rot : 1}, u8 field, u8 phase, u24 raw_len, one pool, the payload.
 */
#include "fuzz.h"
#include "block.h"

enum { INPUT_HEADER = 6 };

static enum wfs_status decode(enum wfs_cpu cpu, const struct wfs_coder *coder, const struct wfs_decode_pool *pool,
			      unsigned phase, const uint8_t *comp, size_t comp_len, uint8_t *raw, size_t raw_len,
			      struct wfs_scratch *scratch)
{
	const struct wfs_decode_tables tables = {.split = pool};
	const struct wfs_kernels kernels = wfs_kernels_for(cpu);
	const char *reason = NULL;
	enum wfs_status status =
		wfs_payload_decode(coder, &tables, &kernels, phase, comp, comp_len, raw, raw_len, scratch, &reason);

	FUZZ_CHECK(status == WFS_OK || (status == WFS_BAD_DATA && reason));
	return status;
}

static void compare(const struct wfs_coder *coder, const struct wfs_decode_pool *pool, unsigned phase,
		    const uint8_t *comp, size_t comp_len, size_t raw_len)
{
	struct wfs_scratch *scratch = wfs_scratch_new();
	uint8_t *payload = fuzz_alloc(comp_len), *expected = fuzz_alloc(raw_len), *raw = fuzz_alloc(raw_len);
	enum wfs_status status;

	FUZZ_CHECK(scratch);
	memcpy(payload, comp, comp_len);
	status = decode(WFS_CPU_SCALAR, coder, pool, phase, payload, comp_len, expected, raw_len, scratch);
	for (int cpu = WFS_CPU_SCALAR + 1; cpu < WFS_NR_CPUS; cpu++) {
		if (!wfs_cpu_supported((enum wfs_cpu)cpu))
			continue;
		FUZZ_CHECK(decode((enum wfs_cpu)cpu, coder, pool, phase, payload, comp_len, raw, raw_len, scratch) ==
			   status);
		FUZZ_CHECK(status != WFS_OK || !memcmp(raw, expected, raw_len));
	}
	free(payload);
	free(expected);
	free(raw);
	wfs_scratch_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wfs_coder coder = {.coding = WFS_SPLIT};
	struct wfs_decode_pool *ready = NULL;
	struct wfs_pool *pool = NULL;
	const char *reason = NULL;
	size_t raw_len, used = 0;

	if (size < INPUT_HEADER)
		return 0;
	coder.word = (u8)(1u << (data[0] & 3));
	coder.rot = data[0] >> 2 & 1;
	coder.field = data[1];
	raw_len = wfs_load24(data + 3) % (WFS_MAX_BLOCK + 1);
	if (wfs_block_cut(coder.word, data[2], raw_len).nr_words == 0)
		return 0;
	pool = malloc(sizeof(*pool));
	FUZZ_CHECK(pool);
	if (wfs_pool_parse(data + INPUT_HEADER, size - INPUT_HEADER, pool, &used, &reason) != WFS_OK)
		goto out;
	FUZZ_CHECK(used <= size - INPUT_HEADER);
	/* What the container's reader would refuse before a block is decoded. */
	if (pool->field != coder.field || coder.field >= 8 * coder.word)
		goto out;
	ready = wfs_decode_pool_new(pool);
	FUZZ_CHECK(ready);
	compare(&coder, ready, data[2], data + INPUT_HEADER + used, size - INPUT_HEADER - used, raw_len);
out:
	free(ready);
	free(pool);
	return 0;
}
