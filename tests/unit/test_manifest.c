/* test_manifest.c [MANIFEST.md] - signed manifests: what is written is read back; every changed bit, cut and wrong key
 * is refused; every rule of MANIFEST.md is kept, and its example is one.
 */
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

/* clang-format off */
static const char *const good_lists[] = {
	"", FILE_("a") FILE_("a-") FILE_("b"), "dir a\n" FILE_("a-b") FILE_("a/b"), FILE_("%01%0a%20%7f%ff%25"),
	"symlink a ../../etc/passwd\n", "symlink a /\n", "file " HASH " 262144 a\n",
	"file " HASH " 262145 a\n" PIECE PIECE, "container " HASH " 0 " HASH " a.wfs\n", FILE_("..."), FILE_("a.wfs"),
	"dir .weightfs-manifest-\n", "file " HASH " 524288 a\n" PIECE PIECE FILE_("b"),
	"dir d\n" FILE_("d/.weightfs-manifest"),
};
static const char *const bad_lists[] = {
	FILE_("b") FILE_("a"), FILE_("a") FILE_("a"), FILE_("a-") FILE_("a"), "\n", " " FILE_("a"), "file\n",
	FILE_("../a"), FILE_("a/../b"), FILE_("/a"), FILE_("a/"), FILE_("."), FILE_(".."), FILE_(""),
	"dir a\n" FILE_("a//b"), "dir a\n" FILE_("a/./b"), "dir a\n" FILE_("a/.."), FILE_("a/b"),
	FILE_("a") FILE_("a/b"), FILE_("a%00b"), FILE_("a\tb"), FILE_("a\x7f"), FILE_("a\x80"), FILE_("a b"),
	FILE_("%41"), FILE_("%2F"), FILE_("%2f"), FILE_("%0A"), FILE_("%"), FILE_("%0"), FILE_("%zz"), FILE_("a\r"),
	FILE_(".weightfs-manifest"), "file " HASH " 00 a\n", "file " HASH " 01 a\n", "file " HASH " -1 a\n",
	"file " HASH " +1 a\n", "file " HASH "  a\n", "file " HASH " 1a a\n",
	"file " HASH " 18446744073709551616 a\n", "file " HASH " 4611686018427387905 a\n",
	"file " HASH " 4611686018427387904 a\n", "file " HASH " 262145 a\n", "file " HASH " 262145 a\n" PIECE,
	"file " HASH " 262145 a\n" PIECE PIECE PIECE, FILE_("a") PIECE, PIECE, "dir a\n" PIECE,
	"file " HASH " 262145 a\n" PIECE "dir b\n" PIECE, "container " HASH " 0 " HASH " a\n",
	"container " HASH " 0 " HASH " .wfs\n", "container " HASH " 0 " HASH " ..wfs\n",
	"container " HASH " 0 " HASH " ...wfs\n", "container " HASH " 0 " HASH " a.WFS\n",
	"container " HASH " 0 a.wfs\n", "dir d\ncontainer " HASH " 0 " HASH " d/.wfs\n", "symlink a \n",
	"symlink a\n", "symlink a b c\n", "symlink a %00\n", "Dir a\n", "dir  a\n", "dir a\n\n", "dir a\r\n", "#\n",
	"dir a \n", "fifo a\n", "file 0123456789ABCDEF" HASH " 0 a\n", "dir a\ndir a/b\nfile " HASH " 0 a/b\n",
	"signature x\n", SIGNATURE,
};
/* clang-format on */

static void test_rules(void)
{
	for (size_t i = 0; i < WFS_ARRAY_LEN(good_lists); i++)
		CHECK_MSG(parse_lines(good_lists[i], strlen(good_lists[i])) == WFS_OK, "%s", good_lists[i]);
	for (size_t i = 0; i < WFS_ARRAY_LEN(bad_lists); i++)
		CHECK_MSG(parse_lines(bad_lists[i], strlen(bad_lists[i])) == WFS_BAD_DATA, "%s", bad_lists[i]);
	CHECK(parse_lines("dir a\0\n", 7) == WFS_BAD_DATA && parse_lines("dir a\0b\n", 8) == WFS_BAD_DATA);
	PASS("%zu lists that keep the rules, %zu that break them", WFS_ARRAY_LEN(good_lists),
	     WFS_ARRAY_LEN(bad_lists) + 2);
}

/* The most address space this process ever had. */
static size_t peak_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	size_t kib = 0;

	CHECK(status);
	while (!kib && fgets(line, sizeof(line), status))
		(void)!sscanf(line, "VmPeak: %zu kB", &kib);
	CHECK(kib);
	fclose(status);
	return kib << 10;
}

/* Many empty lines: what is claimed for them is bounded by the text's size. Runs first, as it looks at the peak. */
static void test_memory(void)
{
	enum { LEN = 8 << 20, MOST = 12 * LEN };
	struct bytes b = {0};
	struct wfs_manifest *m = NULL;
	struct wfs_error err = {0};
	char *lines = malloc(LEN);
	size_t before, claimed;

	CHECK(lines);
	memset(lines, '\n', LEN);
	bytes_add(&b, FRAME, strlen(FRAME));
	bytes_add(&b, lines, LEN);
	bytes_add(&b, SIGNATURE, strlen(SIGNATURE));
	before = peak_bytes();
	CHECK_MSG(wfs_manifest_parse(b.p, b.len, NULL, &m, &err) == WFS_BAD_DATA, "%s", err.reason);
	claimed = peak_bytes() - before;
	CHECK_MSG(claimed < MOST + (4 << 20), "%zu bytes for %d", claimed, LEN);
	CHECK(!m);
	free(b.p);
	free(lines);
	PASS("a hostile number of lines claims at most 12 times the text");
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

/* ---- the document ---- */

/* The lines of the page from the one that begins with `first` to the one that begins with `last`. */
static size_t page_part(const char *page, const char *first, const char *last, const char **part_ret)
{
	const char *start = strstr(page, first), *end = start ? strstr(start, last) : NULL;

	CHECK_MSG(end && (end = strchr(end + 1, '\n')), "%s", first);
	*part_ret = start + 1; /* behind the line feed before it */
	return (size_t)(end - start);
}

static void test_document(const char *path)
{
	static char page[1 << 16];
	u8 key[WFS_PUBLIC_KEY_BYTES], *zeros = calloc(1, WFS_MANIFEST_PIECE_BYTES);
	const struct wfs_manifest_entry *e;
	struct wfs_manifest *m = NULL;
	struct wfs_error err = {0};
	FILE *file = fopen(path, "r");
	const char *part;
	size_t len, nr;
	int fd;

	CHECK_MSG(file && zeros, "%s", path);
	CHECK(fread(page, 1, sizeof(page) - 1, file) > 1000 && feof(file));
	fclose(file);
	len = page_part(page, "\n-----BEGIN PUBLIC KEY", "\n-----END", &part);
	fd = memory_file(part, len);
	CHECK_MSG(wfs_public_key_read(fd, key, &err) == WFS_OK, "%s", err.reason);
	close(fd);
	len = page_part(page, "\nweightfs-manifest 1\n", "\nsignature ", &part);
	CHECK_MSG(wfs_manifest_parse(part, len, key, &m, &err) == WFS_OK, "%s", err.reason);
	wfs_manifest_entries(m, &nr);
	CHECK(nr == 5 && wfs_manifest_find(m, "a b/test.wfs")->size == 4 && !wfs_manifest_find(m, "a%20b"));
	e = wfs_manifest_find(m, "zeros");
	CHECK(e && e->nr_pieces == 2 && wfs_manifest_check_piece(e, 0, zeros, NULL) == WFS_OK &&
	      wfs_manifest_check_piece(e, 1, zeros, NULL) == WFS_OK);
	wfs_manifest_free(m);
	free(zeros);
	PASS("the example of the document");
}

int main(int argc, char **argv)
{
	test_memory();
	test_document(argc > 1 ? argv[1] : "codec/MANIFEST.md");
	test_keys();
	test_round_trip();
	test_changes();
	test_rules();
	test_frame();
	test_limits();
	return 0;
}
