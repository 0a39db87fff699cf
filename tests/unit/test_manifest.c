/* test_manifest.c - signed manifests: what is written is read back; every changed bit, cut and wrong key is refused;
 * every rule of MANIFEST.md is kept; containers with the SHA-256 of their blocks, encoded or rewritten, are those that
 * an entry names, and blocks of others are not.
 */
#include "checksum.h"
#include "encode_util.h"
#include "manifest.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

/* ---- keys ---- */

/* A PEM file: private or public, of a type; encrypted when passphrase is given. */
static int key_file(EVP_PKEY *pkey, bool private_key, const char *passphrase)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long len;
	int fd;

	if (private_key)
		CHECK(PEM_write_bio_PKCS8PrivateKey(bio, pkey, passphrase ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL,
						    (void *)(uintptr_t)passphrase) == 1);
	else
		CHECK(PEM_write_bio_PUBKEY(bio, pkey) == 1);
	len = BIO_get_mem_data(bio, &text);
	fd = memory_file(text, (size_t)len);
	BIO_free(bio);
	return fd;
}

static struct wfs_signing_key *signing_key(EVP_PKEY *pkey)
{
	struct wfs_signing_key *key = NULL;
	struct wfs_error err = {0};
	int fd = key_file(pkey, true, NULL);

	CHECK_MSG(wfs_signing_key_read(fd, &key, &err) == WFS_OK, "%s", err.reason);
	close(fd);
	return key;
}

static EVP_PKEY *make_pkey(u8 first)
{
	u8 seed[32] = {first};
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));

	CHECK(pkey);
	return pkey;
}

static struct wfs_signing_key *make_key(u8 first)
{
	EVP_PKEY *pkey = make_pkey(first);
	struct wfs_signing_key *key = signing_key(pkey);

	EVP_PKEY_free(pkey);
	return key;
}

static void key_refused(int fd, bool private_key, const char *reason)
{
	struct wfs_signing_key *key = NULL;
	u8 public_key[WFS_PUBLIC_KEY_BYTES];
	struct wfs_error err = {0};
	enum wfs_status status =
		private_key ? wfs_signing_key_read(fd, &key, &err) : wfs_public_key_read(fd, public_key, &err);

	CHECK_MSG(status == WFS_BAD_DATA && strstr(err.reason, reason), "%s: %s", reason, err.reason);
	CHECK(!key);
	close(fd);
}

static void test_keys(void)
{
	EVP_PKEY *ed = make_pkey(1), *ec = EVP_EC_gen("P-256");
	u8 from_private[WFS_PUBLIC_KEY_BYTES], from_public[WFS_PUBLIC_KEY_BYTES];
	struct wfs_signing_key *key = signing_key(ed);
	static const char text[] = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
	int fd = key_file(ed, false, NULL);

	CHECK(wfs_public_key_read(fd, from_public, NULL) == WFS_OK);
	close(fd);
	wfs_signing_key_public(key, from_private);
	CHECK(!memcmp(from_private, from_public, sizeof(from_public)));
	wfs_signing_key_free(key);
	key_refused(key_file(ec, true, NULL), true, "not a private key of Ed25519");
	key_refused(key_file(ec, false, NULL), false, "not a public key of Ed25519");
	key_refused(key_file(ed, true, "secret"), true, "passphrase");
	key_refused(key_file(ed, true, NULL), false, "not a public key in PEM");
	key_refused(key_file(ed, false, NULL), true, "not a private key in PEM");
	key_refused(memory_file(NULL, 0), false, "not a public key in PEM");
	key_refused(memory_file(text, strlen(text)), false, "not a public key in PEM");
	fd = memory_file(text, strlen(text));
	CHECK(!ftruncate(fd, 100 << 10));
	key_refused(fd, false, "too large");
	EVP_PKEY_free(ed);
	EVP_PKEY_free(ec);
	PASS("keys of Ed25519 are read, others refused");
}

/* ---- a manifest with all there is ---- */

enum { BIG = 3 * WFS_MANIFEST_PIECE_BYTES + 17 };
static const char odd_path[] = "d/a b%\n\xff\x01.bin";

static u8 *big_bytes(void)
{
	uint64_t seed = 11;
	u8 *bytes = malloc(BIG);

	CHECK(bytes);
	test_rand_fill(&seed, bytes, BIG);
	return bytes;
}

static void digest(const void *bytes, size_t len, u8 out[32])
{
	CHECK(EVP_Digest(bytes, len, out, NULL, EVP_sha256(), NULL) == 1);
}

static struct bytes sample(const struct wfs_signing_key *key)
{
	u8 sha256[32], meta[32] = "the digest of some metadata....", piece[4 * 32], *big = big_bytes();
	const struct wfs_manifest_entry entry[] = {
		{.kind = WFS_MANIFEST_DIR, .path = "d"},
		{.kind = WFS_MANIFEST_FILE, .path = "d-", .size = 5, .sha256 = sha256, .nr_pieces = 1},
		{.kind = WFS_MANIFEST_FILE,
		 .path = odd_path,
		 .size = BIG,
		 .sha256 = sha256,
		 .piece = piece,
		 .nr_pieces = 4},
		{.kind = WFS_MANIFEST_DIR, .path = "d/sub"},
		{.kind = WFS_MANIFEST_CONTAINER,
		 .path = "d/sub/m.wfs",
		 .size = 1ull << 62,
		 .sha256 = sha256,
		 .meta_sha256 = meta},
		{.kind = WFS_MANIFEST_FILE, .path = "empty", .sha256 = sha256},
		{.kind = WFS_MANIFEST_SYMLINK, .path = "link", .target = "../out of/the store\x80"},
	};
	struct wfs_manifest_writer *writer = wfs_manifest_writer_new(key);
	struct wfs_error err = {0};
	struct bytes b = {0};
	const void *text;
	size_t len;

	for (size_t i = 0; i < 4; i++)
		digest(big + i * WFS_MANIFEST_PIECE_BYTES,
		       WFS_MIN((size_t)BIG - i * WFS_MANIFEST_PIECE_BYTES, (size_t)WFS_MANIFEST_PIECE_BYTES),
		       piece + i * 32);
	digest("hello", 5, sha256);
	for (size_t i = 0; i < WFS_ARRAY_LEN(entry); i++)
		CHECK_MSG(wfs_manifest_add(writer, &entry[i], &err) == WFS_OK, "%s", err.reason);
	CHECK_MSG(wfs_manifest_sign(writer, &text, &len, &err) == WFS_OK, "%s", err.reason);
	bytes_add(&b, text, len);
	wfs_manifest_writer_free(writer);
	free(big);
	return b;
}

static void test_round_trip(void)
{
	struct wfs_signing_key *key = make_key(1);
	struct bytes b = sample(key), again = sample(key);
	u8 public_key[WFS_PUBLIC_KEY_BYTES], *big = big_bytes(), sha256[32];
	const struct wfs_manifest_entry *e;
	struct wfs_manifest *m = NULL;
	struct wfs_error err = {0};
	int fd = memory_file(b.p, b.len);
	size_t nr;

	CHECK(b.len == again.len && !memcmp(b.p, again.p, b.len));
	wfs_signing_key_public(key, public_key);
	CHECK_MSG(wfs_manifest_read(fd, public_key, &m, &err) == WFS_OK, "%s", err.reason);
	wfs_manifest_entries(m, &nr);
	CHECK(nr == 7 && wfs_manifest_find(m, "d")->kind == WFS_MANIFEST_DIR);
	digest(b.p, b.len, sha256);
	CHECK(!memcmp(wfs_manifest_sha256(m), sha256, 32));
	for (size_t i = 0; i < nr; i++)
		CHECK(wfs_manifest_find(m, wfs_manifest_entries(m, &nr)[i].path) == &wfs_manifest_entries(m, &nr)[i]);
	CHECK(!wfs_manifest_find(m, "") && !wfs_manifest_find(m, "e") && !wfs_manifest_find(m, "zzz") &&
	      !wfs_manifest_find(m, "d/") && !wfs_manifest_find(m, "emptyx") && !wfs_manifest_find(m, "A"));
	e = wfs_manifest_find(m, odd_path);
	CHECK(e && e->kind == WFS_MANIFEST_FILE && e->size == BIG && e->nr_pieces == 4);
	for (u64 i = 0; i < 4; i++) {
		u8 *piece = big + i * WFS_MANIFEST_PIECE_BYTES;

		CHECK(wfs_manifest_check_piece(e, i, piece, &err) == WFS_OK);
		piece[wfs_manifest_piece_len(e, i) - 1] ^= 1;
		CHECK(wfs_manifest_check_piece(e, i, piece, &err) == WFS_BAD_CHECKSUM && err.block == i);
		piece[wfs_manifest_piece_len(e, i) - 1] ^= 1;
		if (i < 3) /* a piece of another place */
			CHECK(wfs_manifest_check_piece(e, (i + 1) % 3, piece, &err) == WFS_BAD_CHECKSUM);
	}
	CHECK(wfs_manifest_piece_len(e, 3) == 17);
	e = wfs_manifest_find(m, "d-");
	CHECK(e && e->nr_pieces == 1 && wfs_manifest_check_piece(e, 0, "hello", NULL) == WFS_OK);
	CHECK(wfs_manifest_check_piece(e, 0, "hellO", NULL) == WFS_BAD_CHECKSUM);
	e = wfs_manifest_find(m, "d/sub/m.wfs");
	CHECK(e && e->kind == WFS_MANIFEST_CONTAINER && e->size == 1ull << 62);
	CHECK(!memcmp(e->meta_sha256, "the digest of some metadata....", 32));
	CHECK(!strcmp(wfs_manifest_find(m, "link")->target, "../out of/the store\x80"));
	CHECK(wfs_manifest_find(m, "empty")->nr_pieces == 0);
	wfs_manifest_free(m);
	wfs_signing_key_free(key);
	free(b.p);
	free(again.p);
	free(big);
	close(fd);
	PASS("what is written is read back, and the same twice");
}

/* ---- changes ---- */

static enum wfs_status parse(const void *text, size_t len, const u8 *key)
{
	/* Exactly its bytes before a guard page. */
	struct test_guard g = test_guard_new(len + 1);
	struct wfs_manifest *m = NULL;
	struct wfs_error err = {0};
	enum wfs_status status;

	if (len)
		memcpy(test_guard_end(&g, len), text, len);
	status = wfs_manifest_parse(test_guard_end(&g, len), len, key, &m, &err);
	CHECK(status == WFS_OK || (!m && err.status == status && err.reason && err.reason[0]));
	wfs_manifest_free(m);
	test_guard_free(&g);
	return status;
}

static void test_changes(void)
{
	struct wfs_signing_key *key = make_key(1), *other_key = make_key(2);
	u8 public_key[WFS_PUBLIC_KEY_BYTES], other[WFS_PUBLIC_KEY_BYTES];
	struct bytes b = sample(key);
	unsigned long nr = 0;

	wfs_signing_key_public(key, public_key);
	wfs_signing_key_public(other_key, other);
	CHECK(parse(b.p, b.len, public_key) == WFS_OK);
	CHECK(parse(b.p, b.len, other) == WFS_BAD_CHECKSUM);
	for (size_t i = 0; i < 8 * b.len; i++, nr++) {
		b.p[i / 8] ^= (u8)(1 << i % 8);
		CHECK_MSG(parse(b.p, b.len, public_key) != WFS_OK, "bit %zu", i);
		(void)parse(b.p, b.len, NULL);
		b.p[i / 8] ^= (u8)(1 << i % 8);
	}
	for (size_t len = 0; len < b.len; len++, nr += 2) {
		CHECK_MSG(parse(b.p, len, public_key) != WFS_OK, "%zu bytes", len);
		CHECK_MSG(parse(b.p, len, NULL) != WFS_OK, "%zu bytes", len);
	}
	bytes_add(&b, "\n", 1);
	CHECK(parse(b.p, b.len, public_key) != WFS_OK && parse(b.p, b.len, NULL) != WFS_OK);
	free(b.p);
	wfs_signing_key_free(key);
	wfs_signing_key_free(other_key);
	PASS("%lu changed bits and cuts are refused, and another key", nr);
}

/* ---- rules ---- */

#define HASH	    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FRAME	    "weightfs-manifest 1\nkey " HASH "\n"
#define SIGNATURE   "signature AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\n"
#define FILE_(path) "file " HASH " 0 " path "\n"
#define PIECE	    "piece " HASH "\n"

static enum wfs_status parse_lines(const char *lines, size_t len)
{
	struct bytes b = {0};
	enum wfs_status status;

	bytes_add(&b, FRAME, strlen(FRAME));
	bytes_add(&b, lines, len);
	bytes_add(&b, SIGNATURE, strlen(SIGNATURE));
	status = parse(b.p, b.len, NULL);
	free(b.p);
	return status;
}

static void test_rules(void)
{
	static const char *const good[] = {"",
					   FILE_("a") FILE_("a-") FILE_("b"),
					   "dir a\n" FILE_("a-b") FILE_("a/b"),
					   FILE_("%01%0a%20%7f%ff%25"),
					   "symlink a ../../etc/passwd\n",
					   "symlink a /\n",
					   "file " HASH " 262144 a\n",
					   "file " HASH " 262145 a\n" PIECE PIECE,
					   "container " HASH " 0 " HASH " a.wfs\n",
					   FILE_("..."),
					   FILE_("a.wfs"),
					   "dir .weightfs-manifest-\n",
					   "file " HASH " 524288 a\n" PIECE PIECE FILE_("b"),
					   "dir d\n" FILE_("d/.weightfs-manifest")};
	static const char *const bad[] = {FILE_("b") FILE_("a"),
					  FILE_("a") FILE_("a"),
					  FILE_("a-") FILE_("a"),
					  "\n",
					  " " FILE_("a"),
					  "file\n",
					  FILE_("../a"),
					  FILE_("a/../b"),
					  FILE_("/a"),
					  FILE_("a/"),
					  FILE_("."),
					  FILE_(".."),
					  FILE_(""),
					  "dir a\n" FILE_("a//b"),
					  "dir a\n" FILE_("a/./b"),
					  "dir a\n" FILE_("a/.."),
					  FILE_("a/b"),
					  FILE_("a") FILE_("a/b"),
					  FILE_("a%00b"),
					  FILE_("a\tb"),
					  FILE_("a\x7f"),
					  FILE_("a\x80"),
					  FILE_("a b"),
					  FILE_("%41"),
					  FILE_("%2F"),
					  FILE_("%2f"),
					  FILE_("%0A"),
					  FILE_("%"),
					  FILE_("%0"),
					  FILE_("%zz"),
					  FILE_("a\r"),
					  FILE_(".weightfs-manifest"),
					  "file " HASH " 00 a\n",
					  "file " HASH " 01 a\n",
					  "file " HASH " -1 a\n",
					  "file " HASH " +1 a\n",
					  "file " HASH "  a\n",
					  "file " HASH " 1a a\n",
					  "file " HASH " 18446744073709551616 a\n",
					  "file " HASH " 4611686018427387905 a\n",
					  "file " HASH " 4611686018427387904 a\n",
					  "file " HASH " 262145 a\n",
					  "file " HASH " 262145 a\n" PIECE,
					  "file " HASH " 262145 a\n" PIECE PIECE PIECE,
					  FILE_("a") PIECE,
					  PIECE,
					  "dir a\n" PIECE,
					  "file " HASH " 262145 a\n" PIECE "dir b\n" PIECE,
					  "container " HASH " 0 " HASH " a\n",
					  "container " HASH " 0 " HASH " .wfs\n",
					  "container " HASH " 0 " HASH " ..wfs\n",
					  "container " HASH " 0 " HASH " ...wfs\n",
					  "container " HASH " 0 " HASH " a.WFS\n",
					  "container " HASH " 0 a.wfs\n",
					  "dir d\ncontainer " HASH " 0 " HASH " d/.wfs\n",
					  "symlink a \n",
					  "symlink a\n",
					  "symlink a b c\n",
					  "symlink a %00\n",
					  "Dir a\n",
					  "dir  a\n",
					  "dir a\n\n",
					  "dir a\r\n",
					  "#\n",
					  "dir a \n",
					  "fifo a\n",
					  "file 0123456789ABCDEF" HASH " 0 a\n",
					  "dir a\ndir a/b\nfile " HASH " 0 a/b\n",
					  "signature x\n",
					  SIGNATURE};

	for (size_t i = 0; i < WFS_ARRAY_LEN(good); i++)
		CHECK_MSG(parse_lines(good[i], strlen(good[i])) == WFS_OK, "%s", good[i]);
	for (size_t i = 0; i < WFS_ARRAY_LEN(bad); i++)
		CHECK_MSG(parse_lines(bad[i], strlen(bad[i])) == WFS_BAD_DATA, "%s", bad[i]);
	CHECK(parse_lines("dir a\0\n", 7) == WFS_BAD_DATA && parse_lines("dir a\0b\n", 8) == WFS_BAD_DATA);
	PASS("%zu lists that keep the rules, %zu that break them", WFS_ARRAY_LEN(good), WFS_ARRAY_LEN(bad) + 2);
}

static void test_frame(void)
{
	static const char *const bad[] = {"",
					  "weightfs-manifest 1\n",
					  FRAME,
					  FRAME "dir a\n",
					  FRAME "dir a" SIGNATURE,
					  SIGNATURE,
					  "weightfs-manifest 1\nkey x\n" SIGNATURE,
					  "weightfs-manifest 1\n" SIGNATURE,
					  FRAME SIGNATURE "\n",
					  FRAME SIGNATURE SIGNATURE,
					  "\xef\xbb\xbf" FRAME SIGNATURE};
	struct bytes b = {0};

	for (size_t i = 0; i < WFS_ARRAY_LEN(bad); i++)
		CHECK_MSG(parse(bad[i], strlen(bad[i]), NULL) == WFS_BAD_DATA, "%s", bad[i]);
	CHECK(parse("weightfs-manifest 2\nnew", 23, NULL) == WFS_UNSUPPORTED);
	bytes_add(&b, FRAME SIGNATURE, strlen(FRAME SIGNATURE));
	CHECK(parse(b.p, b.len, NULL) == WFS_OK);
	for (u8 *digit = b.p + b.len - 4; *digit < 'E'; (*digit)++) /* unused bits of the last digit */
		CHECK((parse(b.p, b.len, NULL) == WFS_OK) == (*digit == 'A'));
	free(b.p);
	PASS("frames");
}

/* Lengths at their limits, and lines that would blow up what reads them carelessly. */
static void test_limits(void)
{
	struct bytes b = {0};
	char name[400];

	memset(name, 'n', sizeof(name));
	for (int len = 255; len <= 256; len++) {
		int line = snprintf(NULL, 0, "dir %.*s\n", len, name);
		char text[512];

		snprintf(text, sizeof(text), "dir %.*s\n", len, name);
		CHECK(parse_lines(text, (size_t)line) == (len == 255 ? WFS_OK : WFS_BAD_DATA));
	}
	/* Directories nested as deep as a path may be long: "d", "d/d", ... */
	for (size_t depth = 1; depth <= 1000; depth++) {
		bytes_add(&b, "dir ", 4);
		for (size_t i = 0; i < depth; i++)
			bytes_add(&b, "d/", i + 1 < depth ? 2 : 1);
		bytes_add(&b, "\n", 1);
	}
	CHECK(parse_lines((char *)b.p, b.len) == WFS_OK);
	b.len = 0;
	for (int chars = 4095; chars <= 4096; chars++) {
		b.len = 0;
		bytes_add(&b, "symlink a ", 10);
		for (int i = 0; i < chars; i++)
			bytes_add(&b, "%20", 3);
		bytes_add(&b, "\n", 1);
		CHECK(parse_lines((char *)b.p, b.len) == (chars == 4095 ? WFS_OK : WFS_BAD_DATA));
	}
	free(b.p);
	PASS("limits");
}

/* ---- containers ---- */

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
	test_keys();
	test_round_trip();
	test_changes();
	test_rules();
	test_frame();
	test_limits();
	test_containers();
	test_sha256_guards();
	return 0;
}
