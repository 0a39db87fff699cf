/* container_read.c - open a container: head or tail, metadata copy A or B (FORMAT.md 1.1). Their checks are here; those
 * of the metadata's content are in meta_read.c. A damaged copy is survived, a rule broken under a good checksum is not.
 */
#include "checksum.h"
#include "container.h"
#include "file_io.h"

#include <stdlib.h>
#include <sys/stat.h>

static bool has_magic(const struct wfs_disk_head *d)
{
	return !memcmp(d->magic, wfs_magic, sizeof(wfs_magic));
}

static bool is_good_copy(const struct wfs_disk_head *d, size_t got)
{
	return got == sizeof(*d) && has_magic(d) &&
	       wfs_hash64(WFS_CPU_SCALAR, d, offsetof(struct wfs_disk_head, head_xxh)) == d->head_xxh;
}

static bool is_zero(const u8 *bytes, size_t len)
{
	u8 any = 0;

	for (size_t i = 0; i < len; i++)
		any |= bytes[i];
	return any == 0;
}

/* The rules of 1.1 for a copy whose checksum is good. */
static enum wfs_status check_head(const struct wfs_disk_head *d, struct wfs_error *err)
{
	u64 meta_end, end;

	if (d->major != WFS_MAJOR)
		return wfs_fail(err, WFS_UNSUPPORTED, "the container has another major version");
	if (d->incompat)
		return wfs_fail(err, WFS_UNSUPPORTED, "the container uses a feature flag this version does not know");
	if (!is_zero(d->zero, sizeof(d->zero)) || !is_zero(d->reserved, sizeof(d->reserved)))
		return wfs_fail(err, WFS_BAD_DATA, "reserved bytes of the head are not zero");
	if (d->raw_len > WFS_MAX_RAW_LEN)
		return wfs_fail(err, WFS_BAD_DATA, "the original's size is out of range");
	if (d->mtime_nsec > WFS_MAX_NSEC)
		return wfs_fail(err, WFS_BAD_DATA, "the modification time is out of range");
	if (d->block_log2 < WFS_MIN_BLOCK_LOG2 || d->block_log2 > WFS_MAX_BLOCK_LOG2)
		return wfs_fail(err, WFS_BAD_DATA, "the block size is out of range");
	if (d->meta_len < sizeof(struct wfs_disk_meta) + 8)
		return wfs_fail(err, WFS_BAD_DATA, "the metadata is too short");
	if (__builtin_add_overflow((u64)WFS_HEAD_BYTES, d->meta_len, &meta_end) || d->payload_off < meta_end)
		return wfs_fail(err, WFS_BAD_DATA, "metadata and payload overlap");
	if (__builtin_add_overflow(d->payload_off, d->payload_len, &end) ||
	    __builtin_add_overflow(end, meta_end, &end) || end != d->file_len || end > WFS_MAX_FILE_LEN)
		return wfs_fail(err, WFS_BAD_DATA, "the parts of the container do not add up to its size");
	return WFS_OK;
}

static void fill_head(const struct wfs_disk_head *d, bool from_tail, struct wfs_head *head)
{
	*head = (struct wfs_head){
		.raw_len = d->raw_len,
		.mtime_sec = d->mtime_sec,
		.mtime_nsec = d->mtime_nsec,
		.block_log2 = d->block_log2,
		.file_len = d->file_len,
		.payload_off = d->payload_off,
		.payload_len = d->payload_len,
		.meta_len = d->meta_len,
		.meta_xxh = d->meta_xxh,
		.from_tail = from_tail,
	};
	memcpy(head->sha256, d->sha256, sizeof(head->sha256));
}

/* Where both copies of the head are lost: whether copy A of the metadata still begins as it must. */
static enum wfs_status find_sections(int fd, bool *found_ret, struct wfs_error *err)
{
	struct {
		struct wfs_disk_meta meta;
		struct wfs_disk_section section[WFS_SECTION_HASHES];
	} d;
	size_t got;
	int sys_errno = wfs_pread_full(fd, &d, sizeof(d), WFS_HEAD_BYTES, &got);

	if (sys_errno)
		return wfs_fail_io(err, sys_errno, "cannot read the metadata");
	*found_ret = got == sizeof(d) && d.meta.nr_sections >= WFS_SECTION_HASHES &&
		     d.meta.nr_sections <= WFS_MAX_SECTIONS && !d.meta.zero;
	for (u32 i = 0; *found_ret && i < WFS_SECTION_HASHES; i++)
		*found_ret = d.section[i].kind == i + 1 && d.section[i].coding <= WFS_LZ4 && !d.section[i].zero;
	return WFS_OK;
}

/* What remains of a file without a good copy of the head. */
struct remains {
	bool magic, nothing;
};

static void look_for_remains(const struct wfs_disk_head *d, size_t got, struct remains *remains)
{
	remains->magic |= got >= WFS_MAGIC_BYTES && has_magic(d);
	remains->nothing &= is_zero((const u8 *)d, got);
}

static enum wfs_status refuse(int fd, const struct remains *remains, bool suffixed, struct wfs_error *err)
{
	bool sections = false;
	enum wfs_status status = remains->magic ? WFS_OK : find_sections(fd, &sections, err);

	if (status != WFS_OK)
		return status;
	if (remains->magic || sections)
		return wfs_fail(err, WFS_BAD_CHECKSUM, "head and tail are both damaged");
	if (remains->nothing && suffixed)
		return wfs_fail(err, WFS_BAD_CHECKSUM, "is named like a container and is empty or zeros");
	return wfs_fail(err, WFS_NOT_CONTAINER, "not a weightfs container");
}

static enum wfs_status read_head(int fd, bool suffixed, struct wfs_head *head_ret, struct wfs_error *err)
{
	struct remains remains = {.nothing = true};
	struct wfs_disk_head d;
	enum wfs_status status;
	struct stat st;
	size_t got;
	bool from_tail = false;
	int head_errno = wfs_pread_full(fd, &d, sizeof(d), 0, &got), tail_errno = 0;

	/* A medium that cannot give one copy may still give the other. */
	if (head_errno && head_errno != EIO)
		return wfs_fail_io(err, head_errno, "cannot read the head");
	if (!is_good_copy(&d, got)) {
		look_for_remains(&d, got, &remains);
		if (fstat(fd, &st))
			return wfs_fail_io(err, errno, "cannot stat the container");
		got = 0;
		if (st.st_size >= WFS_HEAD_BYTES)
			tail_errno = wfs_pread_full(fd, &d, sizeof(d), (u64)st.st_size - WFS_HEAD_BYTES, &got);
		if (!is_good_copy(&d, got)) {
			look_for_remains(&d, got, &remains);
			if (head_errno || tail_errno)
				return wfs_fail_io(err, head_errno ? head_errno : tail_errno,
						   "cannot read head or tail");
			return refuse(fd, &remains, suffixed, err);
		}
		from_tail = true;
	}
	status = check_head(&d, err);
	if (status == WFS_OK)
		fill_head(&d, from_tail, head_ret);
	return status;
}

enum wfs_status wfs_head_read(int fd, struct wfs_head *head_ret, struct wfs_error *err)
{
	return read_head(fd, false, head_ret, err);
}

enum wfs_status wfs_head_read_suffixed(int fd, struct wfs_head *head_ret, struct wfs_error *err)
{
	return read_head(fd, true, head_ret, err);
}

/* Read one copy of the metadata; *good_ret: whether it is whole and its checksum right. */
static enum wfs_status read_meta_copy(const struct wfs_reader *r, u64 off, u8 *meta, bool *good_ret,
				      struct wfs_error *err)
{
	size_t got = 0, len = (size_t)r->head.meta_len;
	int sys_errno = wfs_pread_full(r->fd, meta, len, off, &got);

	/* A medium that cannot give copy A may still give copy B. */
	if (sys_errno && sys_errno != EIO)
		return wfs_fail_io(err, sys_errno, "cannot read the metadata");
	*good_ret = !sys_errno && got == len && wfs_hash64(r->cpu, meta, len) == r->head.meta_xxh;
	return WFS_OK;
}

enum wfs_status wfs_meta_load(const struct wfs_reader *reader, u8 **meta_ret, bool *from_copy_b_ret,
			      struct wfs_error *err)
{
	u64 copy_b = reader->head.payload_off + reader->head.payload_len;
	bool good = false, from_copy_b = false;
	enum wfs_status status;
	u8 *meta;

	/* A head that asks for more than the file has must not make us allocate it. */
	if (reader->head.meta_len > reader->file_size)
		return wfs_fail(err, WFS_BAD_CHECKSUM, "both copies of the metadata are cut off");
	meta = malloc((size_t)reader->head.meta_len);
	if (!meta)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the metadata");
	status = read_meta_copy(reader, WFS_HEAD_BYTES, meta, &good, err);
	if (status == WFS_OK && !good) {
		from_copy_b = true;
		status = read_meta_copy(reader, copy_b, meta, &good, err);
	}
	if (status == WFS_OK && !good)
		status = wfs_fail(err, WFS_BAD_CHECKSUM, "both copies of the metadata are damaged");
	if (status != WFS_OK) {
		free(meta);
		return status;
	}
	*meta_ret = meta;
	*from_copy_b_ret = from_copy_b;
	return WFS_OK;
}

/* Of the very bytes that will be parsed: the two copies may differ where someone has made their XXH3 equal. */
static enum wfs_status hash_meta(struct wfs_reader *r, const u8 *meta, struct wfs_error *err)
{
	r->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!r->sha256 || EVP_Digest(meta, (size_t)r->head.meta_len, r->meta_sha256, NULL, r->sha256, NULL) != 1)
		return wfs_fail(err, WFS_NO_MEMORY, "cannot compute SHA-256");
	return WFS_OK;
}

enum wfs_status wfs_reader_open(int fd, const struct wfs_reader_opts *opts, struct wfs_reader **reader_ret,
				struct wfs_error *err)
{
	enum wfs_cpu cpu = opts ? opts->cpu : WFS_CPU_AUTO;
	struct wfs_reader *r = NULL;
	enum wfs_status status;
	u8 *meta = NULL;
	struct stat st;

	if ((unsigned)cpu >= WFS_NR_CPUS || !wfs_cpu_supported(cpu))
		return wfs_fail(err, WFS_BAD_ARGUMENT, "this machine cannot run that CPU variant");
	r = calloc(1, sizeof(*r));
	if (!r)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the reader");
	r->fd = fd;
	r->check_sha256 = opts && opts->check_sha256;
	r->cpu = cpu == WFS_CPU_AUTO ? wfs_cpu_best() : cpu;
	r->kernels = wfs_kernels_for(r->cpu);
	r->memory_bytes = sizeof(*r);
	status = read_head(fd, opts && opts->suffixed, &r->head, err);
	if (status != WFS_OK)
		goto out;
	if (fstat(fd, &st)) {
		status = wfs_fail_io(err, errno, "cannot stat the container");
		goto out;
	}
	r->file_size = (u64)st.st_size;
	if (r->file_size > r->head.file_len) {
		status = wfs_fail(err, WFS_BAD_DATA, "the file is longer than its head says");
		goto out;
	}
	status = wfs_meta_load(r, &meta, &r->meta_from_copy_b, err);
	if (status == WFS_OK && r->check_sha256)
		status = hash_meta(r, meta, err);
	if (status == WFS_OK)
		status = wfs_meta_parse(r, meta, (size_t)r->head.meta_len, err);
	if (status == WFS_OK) {
		*reader_ret = r;
		r = NULL;
	}
out:
	free(meta);
	wfs_reader_free(r);
	return status;
}

void wfs_reader_free(struct wfs_reader *reader)
{
	if (!reader)
		return;
	for (u32 i = 0; reader->pool && i < reader->nr_pools; i++)
		free(reader->pool[i]);
	free(reader->pool);
	for (u32 i = 0; reader->wide_pool && i < reader->nr_wide_pools; i++)
		free(reader->wide_pool[i]);
	free(reader->wide_pool);
	free(reader->grid);
	free(reader->region);
	free(reader->coder);
	free(reader->group_off);
	free(reader->rel_off);
	free(reader->hash);
	free(reader->selector);
	free(reader->block_sha256);
	EVP_MD_free(reader->sha256);
	free(reader);
}

void wfs_reader_info(const struct wfs_reader *reader, struct wfs_info *info_ret)
{
	*info_ret = (struct wfs_info){
		.head = reader->head,
		.nr_blocks = reader->nr_blocks,
		.nr_regions = reader->nr_regions,
		.nr_coders = reader->nr_coders,
		.nr_pools = reader->nr_pools + reader->nr_wide_pools,
		.meta_from_copy_b = reader->meta_from_copy_b,
		.truncated = reader->file_size < reader->head.file_len,
		.cpu = reader->cpu,
		.memory_bytes = reader->memory_bytes,
		.has_sha256 = reader->has_sha256,
	};
	memcpy(info_ret->meta_sha256, reader->meta_sha256, sizeof(info_ret->meta_sha256));
}
