/* test_manifest_memory.c - libcrypto out of memory at each of its allocations while a signed manifest is read: told as
 * that, never as a manifest that was changed; and one that was changed never passes.
 */
#include "encode_util.h"
#include "manifest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

/* Allocations until the one that fails; below 0: none does. OpenSSL's hooks take no argument to keep it in. */
static _Thread_local long left = -1;

static bool fails(void)
{
	return left >= 0 && left-- == 0;
}

static void *hook_malloc(size_t len, const char *file, int line)
{
	(void)file;
	(void)line;
	return fails() ? NULL : malloc(len);
}

static void *hook_realloc(void *p, size_t len, const char *file, int line)
{
	(void)file;
	(void)line;
	return fails() ? NULL : realloc(p, len);
}

static void hook_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

static struct wfs_signing_key *make_key(void)
{
	u8 seed[32] = {7};
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
	struct wfs_signing_key *key = NULL;
	BIO *bio = BIO_new(BIO_s_mem());
	struct wfs_error err = {0};
	char *text;
	long len;
	int fd;

	CHECK(pkey && PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL) == 1);
	len = BIO_get_mem_data(bio, &text);
	fd = memory_file(text, (size_t)len);
	CHECK_MSG(wfs_signing_key_read(fd, &key, &err) == WFS_OK, "%s", err.reason);
	close(fd);
	BIO_free(bio);
	EVP_PKEY_free(pkey);
	return key;
}

static enum wfs_status read_manifest(const struct bytes *b, const u8 *public_key)
{
	struct wfs_manifest *m = NULL;
	enum wfs_status status = wfs_manifest_parse(b->p, b->len, public_key, &m, NULL);

	wfs_manifest_free(m);
	return status;
}

/* Read it with one allocation after the other failing; returns how many there were. */
static long starve(const struct bytes *b, const u8 *public_key, enum wfs_status wanted)
{
	bool hit = true;
	long nr;

	for (nr = 0; hit; nr++) {
		enum wfs_status status;

		left = nr;
		status = read_manifest(b, public_key);
		hit = left < 0;
		left = -1;
		CHECK_MSG(status == wanted || (hit && status == WFS_NO_MEMORY), "allocation %ld: %d", nr, status);
	}
	return nr - 1;
}

int main(void)
{
	const struct wfs_manifest_entry entry = {.kind = WFS_MANIFEST_DIR, .path = "d"};
	struct wfs_manifest_writer *writer;
	struct wfs_signing_key *key;
	u8 public_key[WFS_PUBLIC_KEY_BYTES];
	struct bytes b = {0};
	const void *text;
	size_t len;

	CHECK(CRYPTO_set_mem_functions(hook_malloc, hook_realloc, hook_free));
	key = make_key();
	wfs_signing_key_public(key, public_key);
	writer = wfs_manifest_writer_new(key);
	CHECK(wfs_manifest_add(writer, &entry, NULL) == WFS_OK);
	CHECK(wfs_manifest_sign(writer, &text, &len, NULL) == WFS_OK);
	bytes_add(&b, text, len);
	CHECK(starve(&b, public_key, WFS_OK) > 5);
	PASS("without memory a good manifest is not called a changed one");
	b.p[b.len - 10] ^= 1;
	CHECK(read_manifest(&b, public_key) == WFS_BAD_CHECKSUM);
	starve(&b, public_key, WFS_BAD_CHECKSUM);
	PASS("without memory a changed manifest is refused");
	wfs_manifest_writer_free(writer);
	wfs_signing_key_free(key);
	free(b.p);
	return 0;
}
