/* fuzz_safetensors.c - any bytes as a safetensors file: the scan refuses or gives tensors that lie inside the file. */
#include "fuzz.h"
#include "wfs.h"

#include <string.h>

struct source {
	const uint8_t *data;
	size_t size;
	uint64_t file_len;
};

/* The input, then zero bytes up to file_len, as in a file with its data cut off. */
static enum wfs_status read_source(void *ctx, void *buf, size_t len, uint64_t off)
{
	const struct source *s = ctx;

	FUZZ_CHECK(off <= s->file_len && len <= s->file_len - off);
	memset(buf, 0, len);
	if (off < s->size)
		memcpy(buf, s->data + off, len < s->size - off ? len : (size_t)(s->size - off));
	return WFS_OK;
}

static void scan(const uint8_t *data, size_t size, uint64_t file_len)
{
	struct source source = {data, size, file_len};
	struct wfs_tensors *tensors = NULL;
	enum wfs_status status = wfs_safetensors_scan(read_source, &source, file_len, &tensors, NULL);

	if (status != WFS_OK) {
		FUZZ_CHECK(status == WFS_NOT_CONTAINER && !tensors);
		return;
	}
	FUZZ_CHECK(tensors->data_off >= 8 && tensors->data_off <= file_len);
	for (size_t i = 0; i < tensors->nr; i++) {
		const struct wfs_tensor *t = &tensors->tensor[i];

		FUZZ_CHECK(t->raw_off >= tensors->data_off && t->raw_off <= file_len);
		FUZZ_CHECK(t->raw_len <= file_len - t->raw_off);
		FUZZ_CHECK(i == 0 || t[-1].raw_off < t->raw_off ||
			   (t[-1].raw_off == t->raw_off && t[-1].raw_len <= t->raw_len));
		FUZZ_CHECK(strlen(t->name) < file_len && strlen(t->dtype) < file_len);
		FUZZ_CHECK(wfs_dtype_bits(t->dtype) <= 128);
		/* All of the shape must be readable: the sanitizer watches. */
		for (uint32_t d = 0; d < t->nr_dims; d++)
			__asm__ volatile("" : : "r"(t->shape[d]));
	}
	wfs_tensors_free(tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scan(data, size, size);
	scan(data, size, size + (1u << 20));
	return 0;
}
