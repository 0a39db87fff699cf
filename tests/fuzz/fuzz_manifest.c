/* fuzz_manifest.c - any bytes as a manifest, and as the entries of one: the parser refuses, or gives entries that keep
 * the rules and from which the writer makes the very same bytes. With a key nothing passes.
 */
#include "fuzz.h"
#include "manifest.h"

#include <string.h>

#define HASH	  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FRAME	  "weightfs-manifest 1\nkey " HASH "\n"
#define SIGNATURE "signature AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\n"

/* What PKCS #8 is for Ed25519 (RFC 8410), with the private key of the RFC's example. */
static const char key_pem[] = "-----BEGIN PRIVATE KEY-----\n"
			      "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
			      "-----END PRIVATE KEY-----\n";

static struct wfs_signing_key *make_key(void)
{
	struct wfs_signing_key *key = NULL;
	FILE *f = tmpfile();

	FUZZ_CHECK(f && fwrite(key_pem, 1, strlen(key_pem), f) == strlen(key_pem) && !fflush(f));
	rewind(f);
	FUZZ_CHECK(wfs_signing_key_read(fileno(f), &key, NULL) == WFS_OK);
	fclose(f);
	return key;
}

static void check_path(const char *path)
{
	FUZZ_CHECK(*path && strlen(path) <= WFS_MANIFEST_MAX_PATH && strcmp(path, WFS_MANIFEST_NAME) != 0);
	while (path) {
		const char *slash = strchr(path, '/');
		size_t len = slash ? (size_t)(slash - path) : strlen(path);

		FUZZ_CHECK(len >= 1 && len <= WFS_MANIFEST_MAX_NAME && (len != 1 || *path != '.') &&
			   (len != 2 || strncmp(path, "..", 2) != 0));
		path = slash ? slash + 1 : NULL;
	}
}

static void check_entry(const struct wfs_manifest *m, const struct wfs_manifest_entry *e)
{
	unsigned sum = 0;

	check_path(e->path);
	FUZZ_CHECK(wfs_manifest_find(m, e->path) == e);
	switch (e->kind) {
	case WFS_MANIFEST_DIR:
		break;
	case WFS_MANIFEST_SYMLINK:
		FUZZ_CHECK(*e->target && strlen(e->target) <= WFS_MANIFEST_MAX_TARGET);
		break;
	case WFS_MANIFEST_CONTAINER:
		for (int i = 0; i < WFS_DIGEST_BYTES; i++)
			sum += e->sha256[i] + e->meta_sha256[i];
		break;
	case WFS_MANIFEST_FILE:
		for (size_t i = 0; i < e->nr_pieces * WFS_DIGEST_BYTES; i++)
			sum += e->piece[i];
		for (uint64_t i = 0; i < e->nr_pieces; i++)
			FUZZ_CHECK(wfs_manifest_piece_len(e, i) >= 1 &&
				   wfs_manifest_piece_len(e, i) <= WFS_MANIFEST_PIECE_BYTES);
		break;
	default:
		FUZZ_CHECK(!"a kind");
	}
	/* All of them must be readable: the sanitizer watches. */
	__asm__ volatile("" : : "r"(sum));
}

static void parse(const struct wfs_signing_key *key, const uint8_t *text, size_t len)
{
	uint8_t public_key[WFS_PUBLIC_KEY_BYTES];
	struct wfs_manifest_writer *writer;
	struct wfs_manifest *m = NULL;
	const struct wfs_manifest_entry *e;
	const void *again;
	size_t nr, again_len;

	wfs_signing_key_public(key, public_key);
	FUZZ_CHECK(wfs_manifest_parse(text, len, public_key, &m, NULL) != WFS_OK && !m);
	if (wfs_manifest_parse(text, len, NULL, &m, NULL) != WFS_OK) {
		FUZZ_CHECK(!m);
		return;
	}
	writer = wfs_manifest_writer_new(key);
	FUZZ_CHECK(writer);
	e = wfs_manifest_entries(m, &nr);
	for (size_t i = 0; i < nr; i++) {
		FUZZ_CHECK(!i || strcmp(e[i - 1].path, e[i].path) < 0);
		check_entry(m, &e[i]);
		FUZZ_CHECK(wfs_manifest_add(writer, &e[i], NULL) == WFS_OK);
	}
	FUZZ_CHECK(wfs_manifest_sign(writer, &again, &again_len, NULL) == WFS_OK && again_len == len);
	FUZZ_CHECK(!memcmp((const uint8_t *)again + strlen(FRAME), text + strlen(FRAME),
			   len - strlen(FRAME) - strlen(SIGNATURE)));
	wfs_manifest_writer_free(writer);
	wfs_manifest_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wfs_signing_key *key; /* made once: it takes longer than an input */
	const size_t len = strlen(FRAME) + size + strlen(SIGNATURE);
	uint8_t *text = fuzz_alloc(len);

	if (!key)
		key = make_key();
	memcpy(text, FRAME, strlen(FRAME));
	memcpy(text + strlen(FRAME), data, size);
	memcpy(text + strlen(FRAME) + size, SIGNATURE, strlen(SIGNATURE));
	parse(key, data, size);
	parse(key, text, len);
	free(text);
	return 0;
}
