/* sha256.c - SHA-256 by libcrypto, of buffers and files; a thread that hashes beside its caller. */
#include "sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct sha256 {
	EVP_MD_CTX *ctx;
};

static void must(int ok)
{
	if (ok == 1)
		return;
	msg("libcrypto cannot compute SHA-256");
	exit(EXIT_FAILED);
}

struct sha256 *sha256_new(void)
{
	struct sha256 *h = xcalloc(1, sizeof(*h));
	h->ctx = EVP_MD_CTX_new();
	must(h->ctx != NULL);
	must(EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL));
	return h;
}

void sha256_update(struct sha256 *h, const void *data, size_t len)
{
	must(EVP_DigestUpdate(h->ctx, data, len));
}

void sha256_final(struct sha256 *h, uint8_t digest_ret[SHA256_BYTES])
{
	must(EVP_DigestFinal_ex(h->ctx, digest_ret, NULL));
}

void sha256_free(struct sha256 *h)
{
	if (!h)
		return;
	EVP_MD_CTX_free(h->ctx);
	free(h);
}

int sha256_file(int fd, uint8_t digest_ret[SHA256_BYTES], bool (*stop)(void *ctx), void *ctx)
{
	enum { STEP = 1 << 20 };
	struct sha256 *h = sha256_new();
	char *buf = xcalloc(1, STEP);
	off_t off = 0;
	ssize_t n;
	int ret = 0;
	while ((n = pread_full(fd, buf, STEP, off)) > 0) {
		sha256_update(h, buf, (size_t)n);
		off += n;
		if (stop && stop(ctx)) {
			ret = ECANCELED;
			break;
		}
	}
	if (n < 0)
		ret = errno;
	if (!ret)
		sha256_final(h, digest_ret);
	free(buf);
	sha256_free(h);
	return ret;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sha256_from_name(const char *name, uint8_t digest_ret[SHA256_BYTES])
{
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		int high = hex_digit(name[2 * i]), low = high < 0 ? -1 : hex_digit(name[2 * i + 1]);
		if (low < 0)
			return false;
		digest_ret[i] = (uint8_t)(high << 4 | low);
	}
	return name[SHA256_TEXT_BYTES - 1] == '\0';
}

const char *sha256_text(char buf[SHA256_TEXT_BYTES], const uint8_t digest[SHA256_BYTES])
{
	for (unsigned i = 0; i < SHA256_BYTES; i++)
		snprintf(buf + (size_t)2 * i, 3, "%02x", digest[i]);
	return buf;
}

struct hash_thread {
	pthread_t thread;
	bool started;
	struct sha256 *hash; /* the thread's, but for new, final and free */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* protected by lock */
	const void *data; /* not NULL: to be hashed */
	size_t len;
	bool stop;
};

static void *hash_thread_run(void *arg)
{
	struct hash_thread *h = arg;
	pthread_mutex_lock(&h->lock);
	while (!h->stop) {
		const void *data = h->data;
		size_t len = h->len;
		if (!data) {
			pthread_cond_wait(&h->changed, &h->lock);
			continue;
		}
		pthread_mutex_unlock(&h->lock);
		sha256_update(h->hash, data, len);
		pthread_mutex_lock(&h->lock);
		h->data = NULL;
		pthread_cond_broadcast(&h->changed);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

struct hash_thread *hash_thread_new(void)
{
	struct hash_thread *h = xcalloc(1, sizeof(*h));
	h->hash = sha256_new();
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	h->started = !pthread_create(&h->thread, NULL, hash_thread_run, h);
	return h;
}

void hash_thread_add(struct hash_thread *h, const void *data, size_t len)
{
	if (!len)
		return;
	if (!h->started) {
		sha256_update(h->hash, data, len);
		return;
	}
	pthread_mutex_lock(&h->lock);
	h->data = data;
	h->len = len;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

void hash_thread_wait(struct hash_thread *h)
{
	pthread_mutex_lock(&h->lock);
	while (h->data)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void hash_thread_final(struct hash_thread *h, uint8_t digest_ret[SHA256_BYTES])
{
	hash_thread_wait(h);
	sha256_final(h->hash, digest_ret);
}

void hash_thread_free(struct hash_thread *h)
{
	if (!h)
		return;
	if (h->started) {
		hash_thread_wait(h);
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		pthread_cond_broadcast(&h->changed);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	sha256_free(h->hash);
	free(h);
}
