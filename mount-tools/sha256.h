/* sha256.h - SHA-256 of buffers and files, and of names that are one. */
#ifndef SHA256_H
#define SHA256_H

#include "util.h"

enum { SHA256_BYTES = 32, SHA256_TEXT_BYTES = 65 };

/* A running hash. Out of memory, and a libcrypto without SHA-256, end the program. */
struct sha256;
struct sha256 *sha256_new(void);
void sha256_update(struct sha256 *h, const void *data, size_t len);
/* The digest of all that was added; afterwards h may only be freed. */
void sha256_final(struct sha256 *h, uint8_t digest_ret[SHA256_BYTES]);
void sha256_free(struct sha256 *h);

/* Hash the whole file. Returns 0, an errno, or ECANCELED when stop(ctx) said so (stop may be NULL). */
int sha256_file(int fd, uint8_t digest_ret[SHA256_BYTES], bool (*stop)(void *ctx), void *ctx) MUST_CHECK;

/* Whether name consists of 64 lower-case hexadecimal digits, as the blobs of the Hugging Face cache do. */
bool sha256_from_name(const char *name, uint8_t digest_ret[SHA256_BYTES]);
const char *sha256_text(char buf[SHA256_TEXT_BYTES], const uint8_t digest[SHA256_BYTES]);

/* A hash on a thread of its own, beside the caller's work: SHA-256 cannot be split among threads, so this is what keeps
 * it from adding to the time of writing. The data must stay as it is until hash_thread_wait() returns. */
struct hash_thread;
struct hash_thread *hash_thread_new(void);
void hash_thread_add(struct hash_thread *h, const void *data, size_t len);
void hash_thread_wait(struct hash_thread *h);
void hash_thread_final(struct hash_thread *h, uint8_t digest_ret[SHA256_BYTES]);
void hash_thread_free(struct hash_thread *h);

#endif
