/* test_signable.c - containers with the SHA-256 of their blocks, encoded or rewritten, are those that a manifest's
 * entry names; others are not, and no block with a wrong SHA-256 gives a byte.
 */
#include "checksum.h"
#include "encode_util.h"
#include "manifest.h"

static struct bytes model_bytes(uint64_t seed)
{
	struct model m = {0};

	add_weights(&m.data, 2, 300000, &seed);
	model_tensor(&m, "BF16", 0);
	bytes_add(&m.data, NULL, 1 << 20); /* a constant region */
	return model_file(&m, 0);
}

static struct wfs_reader *open_checked(int fd)
{
	const struct wfs_reader_opts opts = {.check_sha256 = true};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};

	CHECK_MSG(wfs_reader_open(fd, &opts, &reader, &err) == WFS_OK, "%s", err.reason);
	return reader;
}

static void test_containers(void)
{
	const struct wfs_encode_opts signable = {.block_sha256 = true, .block_log2 = 16};
	const struct wfs_encode_opts plain = {.block_log2 = 16};
	const struct wfs_reader_opts check = {.check_sha256 = true};
	struct bytes b = model_bytes(1), b2 = model_bytes(2);
	struct wfs_manifest_entry entry = {.kind = WFS_MANIFEST_CONTAINER};
	int fd, fd_plain, fd_other, fd_new = memory_file(NULL, 0);
	struct wfs_encode_result result;
	struct wfs_reader *reader = round_trip(&b, &signable, &fd, &result), *refused = NULL, *rewritten;
	struct collect c = {b.p, 0};
	struct wfs_info info, info_new;
	struct wfs_error err = {0};

	wfs_reader_info(reader, &info);
	CHECK(info.has_sha256);
	CHECK(wfs_manifest_check_container(&entry, reader, NULL) == WFS_BAD_ARGUMENT); /* opened without checks */
	CHECK(wfs_container_add_sha256(reader, fd_new, 2, NULL, NULL, NULL) == WFS_BAD_ARGUMENT);
	wfs_reader_free(reader);
	reader = open_checked(fd);
	wfs_reader_info(reader, &info);
	CHECK_MSG(wfs_reader_stream(reader, 0, b.len, 2, collect_and_compare, &c, &err) == WFS_OK, "%s", err.reason);
	entry.size = b.len;
	entry.sha256 = info.head.sha256;
	entry.meta_sha256 = info.meta_sha256;
	CHECK(wfs_manifest_check_container(&entry, reader, &err) == WFS_OK);
	wfs_reader_free(reader);

	/* Without the table: refused; rewritten: the same metadata, the same bytes. */
	reader = round_trip(&b, &plain, &fd_plain, &result);
	CHECK(wfs_reader_open(fd_plain, &check, &refused, &err) == WFS_BAD_DATA && !refused);
	CHECK_MSG(wfs_container_add_sha256(reader, fd_new, 2, NULL, NULL, &err) == WFS_OK, "%s", err.reason);
	wfs_reader_free(reader);
	rewritten = open_checked(fd_new);
	wfs_reader_info(rewritten, &info_new);
	CHECK(!memcmp(info.meta_sha256, info_new.meta_sha256, 32) && info_new.nr_blocks == info.nr_blocks);
	CHECK(wfs_manifest_check_container(&entry, rewritten, &err) == WFS_OK);
	CHECK_MSG(wfs_reader_verify(rewritten, 2, NULL, NULL, &err) == WFS_OK, "%s", err.reason);
	wfs_reader_free(rewritten);

	/* Another file under this entry. */
	wfs_reader_free(round_trip(&b2, &signable, &fd_other, &result));
	reader = open_checked(fd_other);
	CHECK(wfs_manifest_check_container(&entry, reader, &err) == WFS_BAD_CHECKSUM);
	wfs_reader_info(reader, &info_new);
	entry.sha256 = info_new.head.sha256; /* metadata alone must tell as well */
	entry.size = info_new.head.raw_len;
	CHECK(wfs_manifest_check_container(&entry, reader, &err) == WFS_BAD_CHECKSUM && strstr(err.reason, "metadata"));
	wfs_reader_free(reader);
	close(fd);
	close(fd_plain);
	close(fd_other);
	close(fd_new);
	free(b.p);
	free(b2.p);
	PASS("containers are those of their entries or refused");
}

/* Where the stored section 7 lies in copy A of a container's metadata. */
static u64 sha256_section(const u8 *file)
{
	u32 nr = wfs_load32(file + 4096);
	u64 at = 4096 + 8 + 24 * (u64)nr;

	for (u32 i = 0; i < nr; i++) {
		const u8 *entry = file + 4096 + 8 + 24 * i;

		if (wfs_load16(entry) == 7)
			return at;
		at += wfs_load64(entry + 8);
	}
	CHECK(false);
	return 0;
}

/* Change one byte of the metadata, in both copies, and make all its XXH3 right again. */
static void change_metadata(u8 *file, u64 file_len, u64 at)
{
	u64 payload_off = wfs_load64(file + 48), payload_len = wfs_load64(file + 56), meta_len = wfs_load64(file + 64);

	file[at] ^= 1;
	wfs_store64(file + 72, wfs_hash64(WFS_CPU_SCALAR, file + 4096, meta_len));
	wfs_store64(file + 4088, wfs_hash64(WFS_CPU_SCALAR, file, 4088));
	memcpy(file + payload_off + payload_len, file + 4096, meta_len);
	memcpy(file + file_len - 4096, file, 4096);
}

/* A block whose XXH3 is right and whose SHA-256 is not gives no byte to who asked for the check. */
static void test_sha256_guards(void)
{
	const struct wfs_encode_opts signable = {.block_sha256 = true, .block_log2 = 16};
	struct wfs_manifest_entry entry = {.kind = WFS_MANIFEST_CONTAINER};
	struct wfs_scratch *scratch = wfs_scratch_new();
	struct bytes b = model_bytes(3);
	struct wfs_encode_result result;
	struct wfs_reader *reader;
	struct wfs_error err = {0};
	struct wfs_info info;
	u8 *file, byte;
	int fd;

	wfs_reader_free(round_trip(&b, &signable, &fd, &result));
	file = malloc(result.file_len);
	CHECK(file && pread(fd, file, result.file_len, 0) == (ssize_t)result.file_len);
	reader = open_checked(fd);
	wfs_reader_info(reader, &info);
	CHECK(wfs_reader_read(reader, 0, &byte, 1, scratch, &err) == WFS_OK);
	wfs_reader_free(reader);
	change_metadata(file, result.file_len, sha256_section(file) + 5);
	CHECK(pwrite(fd, file, result.file_len, 0) == (ssize_t)result.file_len);
	CHECK(wfs_reader_open(fd, NULL, &reader, &err) == WFS_OK);
	CHECK(wfs_reader_read(reader, 0, &byte, 1, scratch, &err) == WFS_OK);
	wfs_reader_free(reader);
	reader = open_checked(fd);
	CHECK(wfs_reader_read(reader, 0, &byte, 1, scratch, &err) == WFS_BAD_CHECKSUM);
	CHECK(err.block == 0 && strstr(err.reason, "SHA-256"));
	CHECK(wfs_reader_read(reader, b.len / 3, &byte, 1, scratch, &err) == WFS_OK);
	entry.size = b.len;
	entry.sha256 = info.head.sha256;
	entry.meta_sha256 = info.meta_sha256;
	CHECK(wfs_manifest_check_container(&entry, reader, &err) == WFS_BAD_CHECKSUM);
	wfs_reader_free(reader);
	wfs_scratch_free(scratch);
	free(file);
	close(fd);
	free(b.p);
	PASS("a block with the right XXH3 and a wrong SHA-256 is refused");
}

int main(void)
{
	test_containers();
	test_sha256_guards();
	return 0;
}
