/* sign.h - what weightfs sign and weightfs verify --pubkey share: keys, digests of plain files, whole stores as lists.
 */
#ifndef SIGN_H
#define SIGN_H

#include "manifest.h"
#include "progress.h"
#include "sha256.h"
#include "tree.h"

/* ---- sign_store.c ---- */

/* Read a key file; otherwise a message was printed. */
bool public_key_load(const char *command, const char *path, uint8_t key_ret[WFS_PUBLIC_KEY_BYTES]) MUST_CHECK;
struct wfs_signing_key *signing_key_load(const char *command, const char *path) MUST_CHECK;

/* A store that is open: all that lies in it but the manifest and temporaries, in the byte order of paths. */
struct signed_store {
	const char *path; /* as given */
	int root_fd;
	struct tree tree; /* with temporaries */
	size_t *order;	  /* entries of the tree, nr of them */
	size_t nr;
	bool complete; /* all of the tree could be read; else messages were printed */
};

/* Open and list it; otherwise a message was printed. A mount is refused: it shows the originals. */
bool signed_store_open(struct signed_store *s, const char *command, const char *path) MUST_CHECK;
void signed_store_close(struct signed_store *s);

/* Call fn(ctx, i, nr_threads) for every i of the order that is a regular file: small ones side by side with one thread
 * each, big ones one after another. */
void signed_store_for_files(const struct signed_store *s, unsigned nr_threads,
			    void (*fn)(void *ctx, size_t i, unsigned nr_threads), void *ctx);
/* Twice the raw bytes of all files: what the progress counts. */
uint64_t signed_store_work(const struct signed_store *s);

/* The first of an entry's hard links in the order that has a container's name or not as it has: the one that is looked
 * at for all of them.
 */
size_t signed_store_leader(const struct signed_store *s, size_t entry);

/* ---- sign_file.c ---- */

/* SHA-256 of an ordinary file of exactly size bytes, and of each of its pieces (32 bytes each; NULL unless there are
 * several). Returns 0, an errno, or FILE_CHANGED (safe_file.h) when it has another size. whole NULL: only the pieces.
 */
int plain_file_hash(int fd, uint64_t size, uint8_t *piece, uint8_t *whole, struct progress *progress) MUST_CHECK;

struct sign_opts {
	unsigned nr_threads;
	enum wfs_cpu cpu;
	struct progress *progress;
};

/* What the manifest will say of a file. */
struct signed_file {
	bool good, container, rewritten;
	bool follows; /* another name of a file that comes before */
	uint64_t size, nr_pieces;
	uint8_t sha256[SHA256_BYTES], meta_sha256[SHA256_BYTES];
	struct stat st;		   /* rewritten: of the new container */
	uint8_t *piece;		   /* nr_pieces times 32 bytes; NULL unless there are several */
	char reason[REASON_BYTES]; /* not good: why; good: what to say all the same, or "" */
};

/* Prove a file and fill *file_ret. A container without the SHA-256 of its blocks is replaced by one with them, at all
 * its names in the store. */
void sign_file(const struct signed_store *s, const struct tree_entry *e, const struct sign_opts *opts,
	       struct signed_file *file_ret);

#endif
