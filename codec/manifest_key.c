/* manifest_key.c - Ed25519 keys in PEM, signatures, and SHA-256, all by libcrypto. */
#include "manifest_text.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_KEY_FILE_BYTES = 64 << 10 };

struct wfs_signing_key {
	EVP_PKEY *pkey;
	u8 public_key[WFS_PUBLIC_KEY_BYTES];
};

bool wfs_digest(const void *bytes, size_t len, u8 digest_ret[WFS_DIGEST_BYTES])
{
	return EVP_Digest(bytes, len, digest_ret, NULL, EVP_sha256(), NULL) == 1;
}

/* ---- keys ---- */

/* No passphrase: libcrypto would ask on the terminal. */
static int no_passphrase(char *buf, int size, int writing, void *ctx)
{
	(void)buf;
	(void)size;
	(void)writing;
	*(bool *)ctx = true;
	return -1;
}

/* The rest of fd. The caller wipes and frees *text_ret. */
static enum wfs_status read_key_file(int fd, char **text_ret, size_t *len_ret, struct wfs_error *err)
{
	char *text = malloc(MAX_KEY_FILE_BYTES + 1);
	size_t len = 0;

	if (!text)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the key");
	while (len <= MAX_KEY_FILE_BYTES) {
		ssize_t n = read(fd, text + len, MAX_KEY_FILE_BYTES + 1 - len);

		if (n > 0) {
			len += (size_t)n;
		} else if (n == 0) {
			*text_ret = text;
			*len_ret = len;
			return WFS_OK;
		} else if (errno != EINTR) {
			int sys_errno = errno;

			OPENSSL_cleanse(text, len);
			free(text);
			return wfs_fail_io(err, sys_errno, "cannot read the key");
		}
	}
	OPENSSL_cleanse(text, len);
	free(text);
	return wfs_fail(err, WFS_BAD_DATA, "the file is too large for a key");
}

typedef EVP_PKEY *(*pem_read_fn)(BIO *bio, EVP_PKEY **pkey, pem_password_cb *callback, void *ctx);

static EVP_PKEY *parse_pem(const char *text, size_t len, pem_read_fn pem_read, bool *needs_passphrase_ret)
{
	BIO *bio = BIO_new_mem_buf(text, (int)len);
	EVP_PKEY *pkey = bio ? pem_read(bio, NULL, no_passphrase, needs_passphrase_ret) : NULL;

	BIO_free(bio);
	ERR_clear_error(); /* the queue is the calling thread's: leave nothing there */
	return pkey;
}

static enum wfs_status read_pem(int fd, pem_read_fn pem_read, const char *not_pem, const char *not_ed25519,
				EVP_PKEY **pkey_ret, struct wfs_error *err)
{
	bool needs_passphrase = false;
	char *text = NULL;
	size_t len = 0;
	enum wfs_status status = read_key_file(fd, &text, &len, err);
	EVP_PKEY *pkey;

	if (status != WFS_OK)
		return status;
	pkey = parse_pem(text, len, pem_read, &needs_passphrase);
	OPENSSL_cleanse(text, len);
	free(text);
	if (!pkey)
		return wfs_fail(err, WFS_BAD_DATA,
				needs_passphrase ? "the key needs a passphrase: give it decrypted, as by openssl pkey"
						 : not_pem);
	if (EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519) {
		EVP_PKEY_free(pkey);
		return wfs_fail(err, WFS_BAD_DATA, not_ed25519);
	}
	*pkey_ret = pkey;
	return WFS_OK;
}

static bool get_public(const EVP_PKEY *pkey, u8 key_ret[WFS_PUBLIC_KEY_BYTES])
{
	size_t len = WFS_PUBLIC_KEY_BYTES;
	bool good = EVP_PKEY_get_raw_public_key(pkey, key_ret, &len) == 1 && len == WFS_PUBLIC_KEY_BYTES;

	ERR_clear_error();
	return good;
}

enum wfs_status wfs_public_key_read(int fd, uint8_t key_ret[WFS_PUBLIC_KEY_BYTES], struct wfs_error *err)
{
	EVP_PKEY *pkey = NULL;
	enum wfs_status status = read_pem(fd, PEM_read_bio_PUBKEY, "not a public key in PEM form",
					  "not a public key of Ed25519", &pkey, err);

	if (status == WFS_OK && !get_public(pkey, key_ret))
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the key");
	EVP_PKEY_free(pkey);
	return status;
}

enum wfs_status wfs_signing_key_read(int fd, struct wfs_signing_key **key_ret, struct wfs_error *err)
{
	struct wfs_signing_key *key = calloc(1, sizeof(*key));
	enum wfs_status status;

	if (!key)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the key");
	status = read_pem(fd, PEM_read_bio_PrivateKey, "not a private key in PEM form", "not a private key of Ed25519",
			  &key->pkey, err);
	if (status == WFS_OK && !get_public(key->pkey, key->public_key))
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the key");
	if (status != WFS_OK) {
		wfs_signing_key_free(key);
		return status;
	}
	*key_ret = key;
	return WFS_OK;
}

void wfs_signing_key_free(struct wfs_signing_key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->pkey);
	free(key);
}

void wfs_signing_key_public(const struct wfs_signing_key *key, uint8_t key_ret[WFS_PUBLIC_KEY_BYTES])
{
	memcpy(key_ret, key->public_key, WFS_PUBLIC_KEY_BYTES);
}

/* ---- signatures ---- */

bool wfs_signature_make(const struct wfs_signing_key *key, const void *text, size_t len,
			u8 signature_ret[WFS_SIGNATURE_BYTES])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t signature_len = WFS_SIGNATURE_BYTES;
	bool good = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) == 1 &&
		    EVP_DigestSign(ctx, signature_ret, &signature_len, text, len) == 1 &&
		    signature_len == WFS_SIGNATURE_BYTES;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return good;
}

static enum wfs_status check_once(const u8 key[WFS_PUBLIC_KEY_BYTES], const void *text, size_t len,
				  const u8 signature[WFS_SIGNATURE_BYTES])
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, WFS_PUBLIC_KEY_BYTES);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	enum wfs_status status = WFS_NO_MEMORY;

	if (pkey && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1) {
		bool good = EVP_DigestVerify(ctx, signature, WFS_SIGNATURE_BYTES, text, len) == 1;

		status = good ? WFS_OK : WFS_BAD_CHECKSUM;
	}
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return status;
}

/* OpenSSL tells an allocation that failed within EVP_DigestVerify as a wrong signature: one that is wrong is so twice.
 */
enum wfs_status wfs_signature_check(const u8 key[WFS_PUBLIC_KEY_BYTES], const void *text, size_t len,
				    const u8 signature[WFS_SIGNATURE_BYTES])
{
	enum wfs_status status = check_once(key, text, len, signature);

	return status == WFS_BAD_CHECKSUM ? check_once(key, text, len, signature) : status;
}
