/* wfs.h - the public interface of libwfs, the weightfs container library.
 *
 * A container holds one file, losslessly compressed in blocks that decode alone (codec/FORMAT.md). This library reads
 * and writes containers. It never prints, exits, or keeps changing global state; it does no FUSE and no CUDA.
 *
 * Terms: "raw" is the original file and its bytes, "comp" what is stored. Offsets and lengths are bytes.
 *
 * Threads: a struct wfs_reader never changes after it was opened: any number of threads may use one at the same time.
 * A struct wfs_scratch or wfs_reencoder belongs to one thread at a time. Everything else is stated at the function.
 *
 * Errors: functions that can fail return enum wfs_status and fill *err (which may be NULL) on failure only. Output
 * parameters (*_ret) are written on success only, except where a buffer is filled piece by piece: after a failure
 * its content is undefined and must not be used.
 */
#ifndef WFS_H
#define WFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WFS_API	       __attribute__((visibility("default")))
#define WFS_MUST_CHECK __attribute__((warn_unused_result))

/* ---- status ---------------------------------------------------------------------------------------------------- */

enum wfs_status {
	WFS_OK = 0,
	WFS_BAD_DATA,	   /* the container breaks a rule of FORMAT.md, or is cut short */
	WFS_BAD_CHECKSUM,  /* a hash does not match what it covers */
	WFS_UNSUPPORTED,   /* made by a newer weightfs */
	WFS_NOT_CONTAINER, /* no trace of a container: an ordinary file */
	WFS_IO,		   /* a system call failed: err->sys_errno */
	WFS_NO_MEMORY,
	WFS_BAD_ARGUMENT, /* the caller broke a rule of this header */
	WFS_CANCELLED,	  /* a callback asked to stop */
	WFS_CHANGED,	  /* the source changed while it was read */
	WFS_BUG,	  /* weightfs contradicts itself: please report */
};

#define WFS_NO_BLOCK UINT64_MAX

/* Why a call failed. Plain data, owned by the caller; `reason` points to a constant string, never NULL after a failure,
 * a lower-case clause without a full stop. block is WFS_NO_BLOCK when no single block is concerned. */
struct wfs_error {
	enum wfs_status status;
	int sys_errno; /* for WFS_IO; else 0 */
	uint64_t block;
	const char *reason;
};

/* The name of a status ("BAD_DATA") and one sentence that tells a user what it means. Constant strings. */
WFS_API const char *wfs_status_name(enum wfs_status status);
WFS_API const char *wfs_status_message(enum wfs_status status);

/* "1.0.0" */
WFS_API const char *wfs_version(void);

/* ---- CPU variants ---------------------------------------------------------------------------------------------- */

/* Every variant gives the same bytes and the same refusals. AUTO picks the fastest this CPU and OS support. NEON is
 * there on AArch64 only, SSSE3, AVX2 and AVX512VBMI on x86-64 only. */
enum wfs_cpu {
	WFS_CPU_AUTO = 0,
	WFS_CPU_SCALAR,
	WFS_CPU_SSSE3,
	WFS_CPU_AVX2,
	WFS_CPU_AVX512VBMI,
	WFS_CPU_NEON,
	WFS_NR_CPUS
};

/* "auto", "scalar", "ssse3", "avx2", "avx512vbmi", "neon". */
WFS_API const char *wfs_cpu_name(enum wfs_cpu cpu);
/* The variant of that name, or -1. */
WFS_API int wfs_cpu_from_name(const char *name);
/* Whether this machine can run it. AUTO and SCALAR: always. */
WFS_API bool wfs_cpu_supported(enum wfs_cpu cpu);
/* The variant AUTO stands for on this machine. */
WFS_API enum wfs_cpu wfs_cpu_best(void);

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* What the 4 KiB head says: all that file attributes need. */
struct wfs_head {
	uint64_t raw_len;
	int64_t mtime_sec; /* of the original, since 1970-01-01 UTC */
	uint32_t mtime_nsec;
	uint32_t block_log2;
	uint64_t file_len; /* what the container's size should be */
	uint64_t payload_off, payload_len, meta_len, meta_xxh;
	uint8_t sha256[32]; /* of the original */
	bool from_tail;	    /* the head was damaged; this is the copy at the end */
};

/* Read the head of the file fd, or the tail copy when the head is damaged: one pread in the good case. fd stays the
 * caller's. WFS_BAD_CHECKSUM: no good copy, but a trace of one or of the metadata behind it. WFS_NOT_CONTAINER: no
 * trace (an ordinary file). Any thread. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_head_read(int fd, struct wfs_head *head_ret, struct wfs_error *err);
/* The same of a file whose name ends in ".wfs": there an empty file, or one whose first and last 4 KiB are zeros, is a
 * container that has lost all (WFS_BAD_CHECKSUM), as a power cut leaves it (FORMAT.md 1.1). */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_head_read_suffixed(int fd, struct wfs_head *head_ret, struct wfs_error *err);

enum wfs_coding {
	WFS_STORED = 0,
	WFS_LZ4 = 1,
	WFS_CONSTANT = 2,
	WFS_SPLIT = 3,
	WFS_GRID = 4,
	WFS_WIDE = 5,
	WFS_GRID_WIDE = 6,
	WFS_RECORDS = 7
};
enum wfs_region_kind { WFS_REGION_CODED = 1, WFS_REGION_CONSTANT = 2, WFS_REGION_COPY = 3 };

struct wfs_reader; /* an open container */

struct wfs_reader_opts {
	enum wfs_cpu cpu; /* WFS_BAD_ARGUMENT when this machine cannot run it */
	/* Check the SHA-256 of every block as well, whoever decodes it; a container whose metadata has none is refused
	 * (WFS_BAD_DATA). Costs 32 bytes a block. Decoding may then allocate, and fail with WFS_NO_MEMORY. */
	bool check_sha256;
	bool suffixed; /* the file's name ends in ".wfs": as wfs_head_read_suffixed */
};

/* Read and validate head and metadata of the container fd: after this, only block contents can be bad. fd stays the
 * caller's and must stay open as long as the reader; its file position is not used. opts may be NULL. The caller
 * frees the reader. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_reader_open(int fd, const struct wfs_reader_opts *opts,
						       struct wfs_reader **reader_ret, struct wfs_error *err);
/* reader may be NULL. */
WFS_API void wfs_reader_free(struct wfs_reader *reader);

struct wfs_info {
	struct wfs_head head;
	uint64_t nr_blocks, nr_regions;
	uint32_t nr_coders, nr_pools; /* pools: of both entropy coders */
	bool meta_from_copy_b;	      /* copy A of the metadata is damaged */
	bool truncated;		      /* the file is shorter than head.file_len */
	enum wfs_cpu cpu;	      /* the variant in use, never AUTO */
	uint64_t memory_bytes;	      /* what the reader holds */
	bool has_sha256;	      /* the metadata has the SHA-256 of every block */
	uint8_t meta_sha256[32];      /* with opts.check_sha256: of the stored metadata in use; else zero */
};
WFS_API void wfs_reader_info(const struct wfs_reader *reader, struct wfs_info *info_ret);

struct wfs_region {
	uint64_t raw_off, raw_len;
	enum wfs_region_kind kind;
	uint64_t first_block, nr_blocks; /* 0 blocks unless coded */
	uint64_t copy_of;		 /* copy: raw offset of the source */
	uint8_t fill[8];		 /* constant: byte i of the region is fill[i % 8] (phase applied) */
	enum wfs_coding coding;		 /* coded: of the default coder */
	uint8_t word, field;		 /* coded: bytes of its words or records, bits of its coded field */
};
/* index < nr_regions. */
WFS_API void wfs_reader_region(const struct wfs_reader *reader, uint64_t index, struct wfs_region *region_ret);

/* Where the bytes from one raw offset on come from: a block, or a constant fill. Copies are resolved. */
struct wfs_extent {
	uint64_t raw_off; /* as asked */
	uint64_t len;	  /* bytes from raw_off on that this extent covers, at least 1 */
	uint64_t block;	  /* WFS_NO_BLOCK: constant */
	uint32_t skip;	  /* place of raw_off's byte within the decoded block */
	uint8_t fill[8];  /* constant: byte raw_off + i is fill[i % 8] */
};
/* raw_off < raw_len. Logarithmic in the number of regions. */
WFS_API void wfs_reader_extent(const struct wfs_reader *reader, uint64_t raw_off, struct wfs_extent *extent_ret);

struct wfs_block {
	uint64_t index;
	uint64_t raw_off, comp_off; /* comp_off: in the container file */
	uint32_t raw_len, comp_len; /* comp_len <= raw_len <= 1 MiB */
	uint64_t hash;		    /* XXH3-64 of the raw bytes */
	enum wfs_coding coding;
	uint16_t coder;
	uint8_t word, field, phase; /* bytes of a word, or of a record, up to 255; place of the first byte within it */
};
/* index < nr_blocks. */
WFS_API void wfs_reader_block(const struct wfs_reader *reader, uint64_t index, struct wfs_block *block_ret);

/* Working memory of one thread's decoding, at most 1.75 MiB. NULL: out of memory. */
struct wfs_scratch;
WFS_API struct wfs_scratch *wfs_scratch_new(void);
WFS_API void wfs_scratch_free(struct wfs_scratch *scratch);

#define WFS_DECODE_UNCHECKED 1u /* skip the hash: for benchmarks only, never to serve bytes */

/* Decode one block: comp[0..comp_len) -> raw[0..raw_len). Reads and writes nothing outside these. No system calls, no
 * locks, no allocation, but for what opts.check_sha256 says. The hashes are checked after decoding. flags: 0 or
 * WFS_DECODE_UNCHECKED. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_block_decode(const struct wfs_reader *reader, const struct wfs_block *block,
							const void *comp, void *raw, struct wfs_scratch *scratch,
							unsigned flags, struct wfs_error *err);

/* pread the stored bytes of one block (or of several that follow each other: blocks first..last, whose comp ranges are
 * adjacent) into comp. A file that ends too early is WFS_BAD_DATA. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_block_load(const struct wfs_reader *reader, const struct wfs_block *first,
						      const struct wfs_block *last, void *comp, struct wfs_error *err);

/* Read raw[off, off + len) into buf, all of it; off + len <= raw_len (else WFS_BAD_ARGUMENT). For occasional reads:
 * decodes every block it meets anew, on the calling thread. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_reader_read(const struct wfs_reader *reader, uint64_t off, void *buf,
						       size_t len, struct wfs_scratch *scratch, struct wfs_error *err);

/* Called with consecutive pieces of raw bytes, in order, on the thread that called wfs_reader_stream. Return 0 to go
 * on; other values stop the stream, which then returns WFS_CANCELLED. */
typedef int (*wfs_sink_fn)(void *ctx, const void *raw, size_t len);

/* Decode raw[off, off + len) in order with nr_threads worker threads (0: one a processor) and hand it to sink. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_reader_stream(const struct wfs_reader *reader, uint64_t off, uint64_t len,
							 unsigned nr_threads, wfs_sink_fn sink, void *ctx,
							 struct wfs_error *err);

/* Called now and then with the bytes done so far; return nonzero to cancel. */
typedef int (*wfs_progress_fn)(void *ctx, uint64_t raw_done, uint64_t comp_done);

/* Decode everything and compare its SHA-256 with the head's. WFS_BAD_CHECKSUM when it differs. progress may be NULL. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_reader_verify(const struct wfs_reader *reader, unsigned nr_threads,
							 wfs_progress_fn progress, void *ctx, struct wfs_error *err);

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* What an encoding spends time for. Every level's containers are read by every reader. DEFAULT decodes at memory speed;
 * FAST encodes faster and saves a little less; MAX saves most, and decodes several times slower than DEFAULT. */
enum wfs_level { WFS_LEVEL_DEFAULT = 0, WFS_LEVEL_FAST, WFS_LEVEL_MAX, WFS_NR_LEVELS };

/* "default", "fast", "max". */
WFS_API const char *wfs_level_name(enum wfs_level level);
/* The level of that name, or -1. */
WFS_API int wfs_level_from_name(const char *name);

struct wfs_encode_opts {
	enum wfs_level level;
	unsigned block_log2; /* 16..20; 0: 18 (256 KiB), at level max 20 */
	unsigned nr_threads; /* 0: one a processor. The result does not depend on it */
	enum wfs_cpu cpu;    /* nor on this */
	int64_t mtime_sec;   /* of the original */
	uint32_t mtime_nsec;
	bool block_sha256; /* with the SHA-256 of every block, as containers of a signed store have: 32 bytes a block */
	uint64_t sample_bytes;	  /* wfs_encode_estimate: about how many to encode; 0: 128 MiB */
	wfs_progress_fn progress; /* may be NULL; called on the calling thread */
	void *ctx;
};

struct wfs_encode_result {
	uint64_t raw_len, file_len;
	uint64_t nr_blocks, nr_regions;
	uint8_t sha256[32]; /* of the raw bytes as they were read */
};

/* Encode the whole regular file src_fd into dst_fd (empty, open for writing with pwrite). Both stay the caller's, as do
 * fsync and rename. The result is not verified here. WFS_CHANGED: the source's size or modification time changed while
 * it was read, or what was read twice differed. Memory is bounded whatever the size, but for 14 bytes a block (46 with
 * block_sha256). opts may be NULL. Before the first block progress may be called with 0 bytes done. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_encode_file(int src_fd, int dst_fd, const struct wfs_encode_opts *opts,
						       struct wfs_encode_result *result_ret, struct wfs_error *err);

/* What wfs_encode_file would give, estimated from samples of the blocks without writing anything: file_len is an
 * estimate, sha256 is zero. opts may be NULL; progress is called with 0 bytes done. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_encode_estimate(int src_fd, const struct wfs_encode_opts *opts,
							   struct wfs_encode_result *result_ret, struct wfs_error *err);

/* Write an open container anew into dst_fd (as for wfs_encode_file): the same payload, with the SHA-256 of every block
 * in its metadata, which must not have it yet. Every block is decoded and its hash checked. The result is not verified
 * here. Reader and dst_fd stay the caller's. */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_container_add_sha256(const struct wfs_reader *reader, int dst_fd,
								unsigned nr_threads, wfs_progress_fn progress,
								void *ctx, struct wfs_error *err);

/* Encodes blocks of an open container anew, with the container's own coders: gives the stored bytes again (for
 * benchmarks and tests). Belongs to one thread; the reader must outlive it. */
struct wfs_reencoder;
WFS_API WFS_MUST_CHECK enum wfs_status wfs_reencoder_new(const struct wfs_reader *reader, enum wfs_cpu cpu,
							 struct wfs_reencoder **reencoder_ret, struct wfs_error *err);
WFS_API void wfs_reencoder_free(struct wfs_reencoder *reencoder);
/* Returns the bytes written to comp (room for raw_len bytes): those of the block's coding, or raw_len when that coding
 * does not make the block smaller (comp is then undefined). 0: out of memory. */
WFS_API size_t wfs_block_reencode(struct wfs_reencoder *reencoder, const struct wfs_block *block, const void *raw,
				  void *comp);

/* ---- safetensors ----------------------------------------------------------------------------------------------- */

struct wfs_tensor {
	const char *name;  /* UTF-8 as in the file, JSON escapes resolved, NUL-terminated */
	const char *dtype; /* "BF16"; whatever the header says */
	uint64_t raw_off;  /* in the file */
	uint64_t raw_len;
	const uint64_t *shape;
	uint32_t nr_dims;
};
struct wfs_tensors {
	size_t nr;
	struct wfs_tensor *tensor; /* by raw_off, then raw_len, then header order */
	uint64_t data_off;	   /* where the header ends */
};

/* Read exactly len bytes at off into buf: WFS_OK or the failure (WFS_IO: errno tells which). */
typedef enum wfs_status (*wfs_pread_fn)(void *ctx, void *buf, size_t len, uint64_t off);

/* Scan the header of a safetensors file of file_len bytes. WFS_NOT_CONTAINER: not a safetensors file (or one that lies
 * about itself), which is no fault: it is packed without its help. The ranges lie inside the file after data_off; they
 * may be empty and may overlap, and neither shape nor dtype need match them. The caller frees the list. Source of the
 * format: huggingface/safetensors, README, "Format". */
WFS_API WFS_MUST_CHECK enum wfs_status wfs_safetensors_scan(wfs_pread_fn pread_fn, void *ctx, uint64_t file_len,
							    struct wfs_tensors **tensors_ret, struct wfs_error *err);
WFS_API void wfs_tensors_free(struct wfs_tensors *tensors);
/* Bits of one element of a dtype ("BF16": 16, "F4": 4), or 0 when unknown. */
WFS_API unsigned wfs_dtype_bits(const char *dtype);

#ifdef __cplusplus
}
#endif
#endif
