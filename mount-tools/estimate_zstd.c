/* estimate_zstd.c - chunks cut into byte planes, each compressed by the installed libzstd.
 *
 * As ZipNN does it (arXiv 2411.05239 and its published code): chunks of 256 KiB, 128 KiB where words are bytes; of BF16
 * and F32 the sign is moved to the lowest bit, so that a plane holds the exponent alone; byte i of all words of a chunk
 * is plane i; for every plane of a chunk a byte tells how it is stored and 8 bytes where it ends.
 */
#include "estimate.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256 << 10, BYTES_CHUNK = 128 << 10, MAX_PLANE = 128 << 10, PLANE_BYTES = 1 + 8 };
/* Each plane is compressed in both ways, and the smaller result counts: LZ finds zeros and repeats, but costs more than
 * it saves on exponents, which ZipNN gives to zstd's Huffman coder alone. */
enum { WAY_LEVEL_3, WAY_HUFFMAN, NR_WAYS };

/* From zstd.h, whose stable part this is; but the literals' mode is an experimental parameter. A library that refuses
 * it leaves the first way. */
enum { PARAMETER_LEVEL = 100, PARAMETER_LITERALS_MODE = 1002, LITERALS_HUFFMAN = 1 };

struct zstd {
	void *library;
	void *(*create)(void);
	size_t (*destroy)(void *context);
	size_t (*set)(void *context, int parameter, int value);
	int (*min_level)(void);
	size_t (*compress)(void *context, void *dst, size_t room, const void *src, size_t len);
	unsigned (*is_error)(size_t code);
	const char *(*version)(void);
};

struct zstd_worker {
	const struct zstd *z;
	void *context[NR_WAYS];			       /* NULL: the library has not this way */
	uint8_t plane[MAX_PLANE], comp[2 * MAX_PLANE]; /* more than any plane can take */
};

struct zstd *zstd_load(void)
{
	struct zstd *z = xcalloc(1, sizeof(*z));
	z->library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	if (z->library) {
		z->create = (void *(*)(void))dlsym(z->library, "ZSTD_createCCtx");
		z->destroy = (size_t(*)(void *))dlsym(z->library, "ZSTD_freeCCtx");
		z->set = (size_t(*)(void *, int, int))dlsym(z->library, "ZSTD_CCtx_setParameter");
		z->min_level = (int (*)(void))dlsym(z->library, "ZSTD_minCLevel");
		z->compress =
			(size_t(*)(void *, void *, size_t, const void *, size_t))dlsym(z->library, "ZSTD_compress2");
		z->is_error = (unsigned (*)(size_t))dlsym(z->library, "ZSTD_isError");
		z->version = (const char *(*)(void))dlsym(z->library, "ZSTD_versionString");
	}
	if (z->create && z->destroy && z->set && z->min_level && z->compress && z->is_error && z->version)
		return z;
	zstd_free(z);
	return NULL;
}

void zstd_free(struct zstd *z)
{
	if (!z)
		return;
	if (z->library)
		dlclose(z->library);
	free(z);
}

const char *zstd_version(const struct zstd *z)
{
	return z->version();
}

static void *new_context(const struct zstd *z, int level)
{
	void *context = z->create();
	if (!context || z->is_error(z->set(context, PARAMETER_LEVEL, level))) {
		msg("out of memory");
		exit(EXIT_FAILED);
	}
	return context;
}

struct zstd_worker *zstd_worker_new(const struct zstd *z)
{
	struct zstd_worker *w;
	if (!z)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->z = z;
	w->context[WAY_LEVEL_3] = new_context(z, 3);
	/* At the lowest level next to no matches are looked for: all bytes are literals. */
	w->context[WAY_HUFFMAN] = new_context(z, z->min_level());
	if (z->is_error(z->set(w->context[WAY_HUFFMAN], PARAMETER_LITERALS_MODE, LITERALS_HUFFMAN))) {
		z->destroy(w->context[WAY_HUFFMAN]);
		w->context[WAY_HUFFMAN] = NULL;
	}
	return w;
}

void zstd_worker_free(struct zstd_worker *w)
{
	if (!w)
		return;
	for (unsigned way = 0; way < NR_WAYS; way++)
		if (w->context[way])
			w->z->destroy(w->context[way]);
	free(w);
}

static void take_plane(uint8_t *plane, const struct dtype *d, unsigned byte, const uint8_t *words, size_t nr_words)
{
	size_t step = d->word_bytes;
	const uint8_t *from = words + byte, *below = byte ? from - 1 : words + step - 1;
	if (d->rotate) /* each byte takes the topmost bit of the one below it, the lowest that of the topmost */
		for (size_t i = 0; i < nr_words; i++)
			plane[i] = (uint8_t)(from[i * step] << 1 | below[i * step] >> 7);
	else
		for (size_t i = 0; i < nr_words; i++)
			plane[i] = from[i * step];
}

/* What the plane in w->plane takes at best. */
static size_t plane_bytes(struct zstd_worker *w, size_t len)
{
	size_t best = len;
	for (unsigned way = 0; way < NR_WAYS; way++) {
		size_t comp_len;
		if (!w->context[way])
			continue;
		comp_len = w->z->compress(w->context[way], w->comp, sizeof(w->comp), w->plane, len);
		if (!w->z->is_error(comp_len) && comp_len < best)
			best = comp_len;
	}
	return best;
}

static uint64_t chunk_bytes(struct zstd_worker *w, const struct dtype *d, const uint8_t *words, size_t len)
{
	size_t nr_words = len / d->word_bytes;
	uint64_t bytes = 0;
	for (unsigned byte = 0; byte < d->word_bytes; byte++) {
		take_plane(w->plane, d, byte, words, nr_words);
		bytes += PLANE_BYTES + plane_bytes(w, nr_words);
	}
	return bytes;
}

uint64_t zstd_stretch_bytes(struct zstd_worker *w, const struct dtype *d, const uint8_t *words, size_t len)
{
	size_t chunk = d->word_bytes == 1 ? BYTES_CHUNK : CHUNK;
	uint64_t bytes = 0;
	for (size_t off = 0; off < len; off += chunk)
		bytes += chunk_bytes(w, d, words + off, MIN(chunk, len - off));
	return bytes;
}
