/* estimate.h - what weightfs and the published ideas beside it would make of files: the parts of `weightfs estimate`.
 *
 * A file is cut into the words of its tensors and everything else. Each tensor is counted once, in stretches, by all
 * threads (estimate_tensors.c); from the counts follow the bytes of every scheme but two (estimate_schemes.c). These
 * are tried: zstd on every chunk as it is read (estimate_zstd.c), weightfs on the whole file (estimate_wfs.c).
 * man/weightfs-estimate.1 defines every scheme to the byte.
 */
#ifndef ESTIMATE_H
#define ESTIMATE_H

#include "progress.h"
#include "util.h"

enum scheme {
	SCHEME_EXPONENT, /* order-0 bounds */
	SCHEME_JOINT,
	SCHEME_SPLIT12,
	SCHEME_K15,
	SCHEME_HUFFMAN,
	SCHEME_ZSTD,
	SCHEME_WEIGHTFS,
	NR_SCHEMES,
};

/* ---- dtypes (estimate_dtype.c) ---- */

/* How the bits of a word lie: (sign) exponent mantissa, from the top. Integers and dtypes whose elements do not fill
 * bytes have no exponent; the latter are taken as bytes. */
struct dtype {
	const char *name;
	uint8_t word_bytes; /* 1, 2, 4 or 8 */
	uint8_t exponent_bits, mantissa_bits;
	bool rotate; /* zstd's planes: the sign goes to the lowest bit first */
};
enum { NR_DTYPES = 24, MAX_SYMBOL_BITS = 12 };
extern const struct dtype dtypes[NR_DTYPES];
/* Its index, or -1 when it is not known. */
int dtype_index(const char *name);
/* Sign and exponent. */
static inline unsigned symbol_bits(const struct dtype *d)
{
	return d->exponent_bits ? 8u * d->word_bytes - d->mantissa_bits : 0;
}

/* ---- counting words (estimate_count.c) ---- */

/* How often each value occurs: of the topmost 16 bits of the words (of all 8 of bytes), and of each byte below. */
enum { MAX_LOW_BYTES = 6 };
struct histogram {
	uint64_t top[1 << 16];
	uint64_t low[MAX_LOW_BYTES][256];
};
/* What the schemes need of it. */
struct counts {
	uint64_t nr_words;
	double joint_bits; /* entropy of all words: the topmost 16 bits together, each byte below by itself */
	uint64_t symbol[1 << MAX_SYMBOL_BITS]; /* of sign and exponent, when the dtype has them */
};
void histogram_add(struct histogram *h, const struct dtype *d, const uint8_t *words, size_t nr_words);
/* h += more. */
void histogram_merge(struct histogram *h, const struct histogram *more);
/* Fill counts from h, and empty h. words: all that h counts, to save a look at every possible value; or NULL. */
void histogram_reduce(struct histogram *h, const struct dtype *d, uint64_t nr_words, const uint8_t *words,
		      struct counts *counts_ret);

/* ---- schemes that need counts only (estimate_schemes.c, estimate_huffman.c) ---- */

/* Bytes of a tensor of raw_len bytes and nr_rows rows under each scheme before SCHEME_ZSTD. */
void schemes_of_counts(const struct dtype *d, const struct counts *c, uint64_t raw_len, uint64_t nr_rows,
		       uint64_t bytes_ret[NR_SCHEMES]);
/* Bytes of the exponents as DFloat11 keeps them, everything beside them included but sign and mantissa.
 * exponent: how often each of the 2^exponent_bits occurs. */
uint64_t huffman_bytes(unsigned exponent_bits, const uint64_t *exponent);
/* Whether a scheme takes words of this dtype; NULL: bytes that are in no tensor. */
bool scheme_takes(enum scheme scheme, const struct dtype *d);
/* Of every scheme that is no bound: a tensor that would not get smaller is as it is, and a byte says so. */
static inline uint64_t coded_or_raw(uint64_t coded_bytes, uint64_t raw_len)
{
	return 1 + MIN(coded_bytes, raw_len);
}

/* ---- zstd (estimate_zstd.c) ---- */

struct zstd; /* the library, loaded when it is installed */
/* NULL: it is not. The caller frees it. */
struct zstd *zstd_load(void);
void zstd_free(struct zstd *z);
const char *zstd_version(const struct zstd *z);

/* One thread's working memory. */
struct zstd_worker;
/* z may be NULL: so is the worker then. */
struct zstd_worker *zstd_worker_new(const struct zstd *z);
void zstd_worker_free(struct zstd_worker *w);
/* Bytes that a stretch takes which begins at a chunk's border. */
uint64_t zstd_stretch_bytes(struct zstd_worker *w, const struct dtype *d, const uint8_t *words, size_t len);
enum { ZSTD_TENSOR_BYTES = 32 }; /* of every tensor beside its chunks */

/* ---- a file (estimate_tensors.c, estimate_wfs.c, estimate_file.c) ---- */

/* As `pack --dry-run` takes: less is off by some points on models whose tensors differ, and hardly faster. */
static const uint64_t ESTIMATE_MIN_SAMPLE_BYTES = 128 << 20;

struct estimate_opts {
	unsigned nr_threads;   /* at least 1 */
	uint64_t sample_bytes; /* about so many of each larger file for what is tried; 0: everything */
	enum wfs_cpu cpu;
	enum wfs_level level;
	const struct zstd *zstd; /* NULL: not installed */
	struct progress *progress;
};

/* Whether zstd and weightfs are tried on samples of a file of this length. */
static inline bool estimate_samples(const struct estimate_opts *opts, uint64_t raw_len)
{
	return opts->sample_bytes && opts->sample_bytes < raw_len;
}

/* Sums of one dtype, or of all that belongs to none. */
struct sums {
	uint64_t nr_tensors, nr_weights, raw_bytes;
	uint64_t bytes[NR_SCHEMES]; /* what a scheme does not take is in it as it is */
};

enum { OTHER = NR_DTYPES }; /* headers, gaps, unknown dtypes, files that are not safetensors */

struct estimate {
	uint64_t nr_files;
	bool sampled;			  /* what zstd and weightfs make of them is an estimate */
	struct sums dtype[NR_DTYPES + 1]; /* when sampled, without SCHEME_WEIGHTFS */
	struct sums total;
	uint64_t plain_bytes; /* of the total: were not read */
};

/* A tensor whose words are counted. Tensors of a list neither overlap nor lie in wrong order. */
struct tensor {
	const struct dtype *dtype;
	uint64_t raw_off, raw_len; /* whole words */
	uint64_t nr_rows, nr_weights;
};

struct source {
	int fd;
	uint64_t raw_len;
	struct tensor *tensor;
	size_t nr_tensors;
};

/* Sum up the tensors of a file for every scheme but weightfs. false: *err_ret says why; the sums are undefined. */
bool estimate_tensors(const struct source *s, const struct estimate_opts *opts, struct sums sums[NR_DTYPES],
		      struct wfs_error *err_ret) MUST_CHECK;
/* Encode the file and keep nothing of it but its size; stored_ret: the share of each dtype and of OTHER in it, or, when
 * it is sampled, zeros. Sizes include everything that is stored. */
bool estimate_wfs(const struct source *s, const struct estimate_opts *opts, uint64_t stored_ret[NR_DTYPES + 1],
		  uint64_t *file_len_ret, struct wfs_error *err_ret) MUST_CHECK;

/* Add a file to e. in_tree: what pack would only copy is taken as it is. Each of its bytes is counted twice in the
 * progress. false: *err_ret says why, e is as it was. */
bool estimate_file(int fd, uint64_t raw_len, bool in_tree, const struct estimate_opts *opts, struct estimate *e,
		   struct wfs_error *err_ret) MUST_CHECK;
/* Add a file that weightfs and all others take as it is. */
void estimate_plain(struct estimate *e, uint64_t raw_len);

/* ---- results (estimate_print.c) ---- */

struct estimate_report {
	const char *path;
	const struct estimate *e;
	const struct estimate_opts *opts;
	uint64_t nr_containers, nr_failed;
	double seconds;
};
void estimate_print(const struct estimate_report *r);
void estimate_print_json(const struct estimate_report *r);

#endif
